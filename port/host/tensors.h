/* tensors.h - which tensors a file holds and where: what its own header says, checked. Made by safetensors.c and
 * trunk.c, for archive_pack.c and list. */
#ifndef K3HUF_HOST_TENSORS_H
#define K3HUF_HOST_TENSORS_H

#include <jansson.h>

#include "archive.h"
#include "input.h"

#define K3HUF_RANK_MAX 64u

struct k3huf_tensor {
    char *name; /* malloc'ed */
    size_t name_bytes;
    char dtype[K3HUF_ARCHIVE_DTYPE_BYTES + 1]; /* a longer one's first characters */
    uint64_t offset;                           /* in the file */
    uint64_t bytes;
    uint32_t rank;
    uint32_t dims_at; /* in the list's dims */
};

struct k3huf_tensors {
    enum k3huf_source_kind kind;
    struct k3huf_tensor *tensor; /* malloc'ed, by offset once k3huf_tensors_finish() was called */
    uint32_t n;
    uint32_t capacity;
    uint64_t *dims; /* malloc'ed */
    uint32_t ndims;
    uint32_t dims_capacity;
};

/* Add a tensor from a JSON object's "dtype" and "shape". K3HUF_EXIT_CORRUPT, with `file` and the tensor's name, where
 * they are not sound, where `bytes` is not what dtype and shape give, or where it is not inside 0 ... file_bytes. A
 * dtype that is not known is taken as it is, whatever its shape: there will be new ones, and bytes are bytes. */
enum k3huf_exit k3huf_tensors_add(struct k3huf_tensors *tensors, const char *file, uint64_t file_bytes,
                                  const char *name, size_t name_bytes, const json_t *object, uint64_t offset,
                                  uint64_t bytes, struct k3huf_fault *fault);

/* Sort by offset. K3HUF_EXIT_CORRUPT where two tensors overlap or have one name. */
enum k3huf_exit k3huf_tensors_finish(struct k3huf_tensors *tensors, const char *file, struct k3huf_fault *fault);

void k3huf_tensors_free(struct k3huf_tensors *tensors);

/* A JSON number that is a whole one, 0 or more. */
bool k3huf_json_size(const json_t *value, uint64_t *number);

/* Bits of a value of that dtype; 0: not one that is known. */
unsigned k3huf_dtype_bits(const char *dtype);

/* Whether values of that dtype have 16 bits of which the upper 8 are sign and exponent, mostly: what a run is for. */
bool k3huf_dtype_is_float16(const char *dtype);

/* Read `size` bytes of an input and parse them as one JSON object, with no name twice. `what` names it in messages.
 * K3HUF_EXIT_CORRUPT with the offset in the input. */
enum k3huf_exit k3huf_json_read(struct k3huf_input *input, uint64_t offset, size_t size, const char *what,
                                json_t **object, struct k3huf_fault *fault);

#endif
