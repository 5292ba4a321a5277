/* safetensors.h - the header of a .safetensors file (https://github.com/huggingface/safetensors, Format): 8 bytes of
 * length, little-endian, and as many of JSON: {"NAME": {"dtype", "shape", "data_offsets": [BEGIN, END]}, ...,
 * "__metadata__": {...}}. Offsets count from the header's end. */
#ifndef K3HUF_HOST_SAFETENSORS_H
#define K3HUF_HOST_SAFETENSORS_H

#include "tensors.h"

/* The longest header that is read, as in the format's own library. */
#define K3HUF_SAFETENSORS_HEADER_MAX 100000000u

/* Whether a seekable input is meant as such a file: by its name, or by a length and braces in the right places. */
enum k3huf_exit k3huf_safetensors_recognise(struct k3huf_input *input, bool *is, struct k3huf_fault *fault);

/* Read and check its header. Gaps between tensors and after the last are no fault; all else that is odd is
 * K3HUF_EXIT_CORRUPT. Free `tensors` in any case. */
enum k3huf_exit k3huf_safetensors_read(struct k3huf_input *input, struct k3huf_tensors *tensors,
                                       struct k3huf_fault *fault);

#endif
