/* compare.h - compare decoded bytes with an original as they come. Used by pack and verify. */
#ifndef K3HUF_HOST_COMPARE_H
#define K3HUF_HOST_COMPARE_H

#include "decode_run.h"

struct k3huf_compare {
    struct k3huf_input *original; /* read in order from its start; NULL: decoded bytes are only counted */
    const char *name;             /* of the run, for messages */
    uint64_t bytes;               /* compared so far; start with 0 */
};

/* How many bytes are the same in both, from the first on: `size` where all are. */
size_t k3huf_same_bytes(const uint8_t *a, const uint8_t *b, size_t size);

/* A k3huf_take; `context` is a struct k3huf_compare. K3HUF_EXIT_MISMATCH with stripe, offset, expected and found byte
 * for the first difference, or where the original ends first. */
enum k3huf_exit k3huf_compare_take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault);

/* All is decoded: K3HUF_EXIT_MISMATCH where the original has more bytes. */
enum k3huf_exit k3huf_compare_end(struct k3huf_compare *compare, struct k3huf_fault *fault);

#endif
