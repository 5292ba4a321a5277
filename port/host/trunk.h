/* trunk.h - the description of a packed trunk: trunk.json, beside its trunk.bin.
 *
 *   {"align": A, "layers": [{"file_off": F, "nbytes": N,
 *                            "tensors": {NAME: {"off": O, "nbytes": B, "dtype": D, "shape": [...]}}}]}
 *
 * A layer is one read of N bytes at F, a multiple of A (4,096 if that is not said); a tensor lies O bytes behind its
 * layer's first byte. A layer may be null: absent. dtypes are as in safetensors, in capitals or not, or the engine's
 * own, such as MX4 and I8R. "shape" may be missing. Other members are not looked at. This is what the public engines
 * for Kimi K3 write and read (kimi-k3-in-c: tools/pack_trunk.py, tools/mxfp4_trunk.py, k3_trunk.c). */
#ifndef K3HUF_HOST_TRUNK_H
#define K3HUF_HOST_TRUNK_H

#include "tensors.h"

/* Read `json` as the description of a file of bin_bytes bytes. Where two layers have tensors of one name, every
 * tensor's name becomes "LAYER.NAME", where LAYER is its layer's number in the list. K3HUF_EXIT_CORRUPT with layer and
 * tensor for whatever does not fit. Free `tensors` in any case. */
enum k3huf_exit k3huf_trunk_read(struct k3huf_input *json, uint64_t bin_bytes, struct k3huf_tensors *tensors,
                                 struct k3huf_fault *fault);

#endif
