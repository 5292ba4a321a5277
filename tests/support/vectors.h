/* vectors.h - the golden vectors of tests/data, embedded in the test binary because a bare-metal target has no files.
 */
#ifndef K3HUF_TEST_VECTORS_H
#define K3HUF_TEST_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#define K3HUF_VECTORS 12u
#define K3HUF_VECTOR_RAW_MAX 400000u /* of the largest raw_size */
#define K3HUF_VECTOR_RUN_MAX 286715u /* of the largest run_size */

struct k3huf_vector {
    const char *name;
    const uint8_t *run, *run_end; /* as embedded */
    size_t run_size;              /* as the manifest has it */
    const uint8_t *raw, *raw_end;
    size_t raw_size;
    size_t stripe_bytes; /* raw size of every stripe but the last */
};

/* Smallest first. */
extern const struct k3huf_vector k3huf_vectors[K3HUF_VECTORS];

#endif
