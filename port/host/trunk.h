/* trunk.h - the description of a packed trunk: trunk.json, beside its trunk.bin.
 *
 *   {"layers": [{"file_off": F, "nbytes": N, "tensors": {NAME: {"off": O, "nbytes": B, "dtype": D, "shape": [...]}}}]}
 *
 * A layer is one read of N bytes at F, a multiple of 4,096; a tensor lies O bytes behind its layer's first byte.
 * "layers" and "tensors" may be lists, the latter's objects with a "name", or objects by name. dtypes are as in
 * safetensors, in capitals or not. Other members are not looked at. */
#ifndef K3HUF_HOST_TRUNK_H
#define K3HUF_HOST_TRUNK_H

#include "tensors.h"

/* Read `json` as the description of a file of bin_bytes bytes. A tensor's name is "LAYER.NAME", where LAYER is the
 * layer's name or number. K3HUF_EXIT_CORRUPT with layer and tensor for whatever does not fit. Free `tensors` in any
 * case. */
enum k3huf_exit k3huf_trunk_read(struct k3huf_input *json, uint64_t bin_bytes, struct k3huf_tensors *tensors,
                                 struct k3huf_fault *fault);

#endif
