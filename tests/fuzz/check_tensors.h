/* check_tensors.h - what must hold of a list of tensors that a reader of the host tool let through, checked plainly and
 * without its help. */
#ifndef K3HUF_FUZZ_CHECK_TENSORS_H
#define K3HUF_FUZZ_CHECK_TENSORS_H

#include "tensors.h"

/* In order, apart, inside a file of `file_bytes` bytes, of the size that dtype and shape make, each name there and
 * there once; the names' total size in the list bounded by `text_bytes`, what the reader was given, times 256. */
void k3huf_fuzz_check_tensors(const struct k3huf_tensors *tensors, uint64_t file_bytes, size_t text_bytes);

#endif
