/* drive.h - the image file of the soak test: a table of contents and runs, sound and damaged, with what must come of
 * each. Knows nothing of jobs and threads. */
#ifndef K3HUF_TEST_SOAK_DRIVE_H
#define K3HUF_TEST_SOAK_DRIVE_H

#include "k3huf.h"

#define SOAK_RUNS 26u
#define SOAK_RAW_MAX (1u << 20) /* of a run, decoded */
#define SOAK_STRIPES 8u         /* of a run, at most */
#define SOAK_STATUSES 6u

/* What a run decodes to, and how it ends. */
struct soak_run {
    const char *name;
    uint64_t at, bytes; /* in the image */
    uint8_t *raw;       /* what every byte that reaches host memory must be */
    size_t raw_size;
    uint32_t status[SOAK_STATUSES]; /* one of these, up to the first zero; none: K3HUF_OK */
    uint32_t bad_stripe;            /* where, unless K3HUF_OK */
    bool plain; /* a stripe has no index, as far as anybody can see: refused where one is required */
    /* What reaches host memory at once: each stripe's raw bytes, and how many of them make a group; 0: no index, in
     * order. */
    uint32_t stripes, stripe_bytes[SOAK_STRIPES], group_bytes[SOAK_STRIPES];
};

struct soak_drive {
    uint8_t *image;
    uint64_t size;       /* a multiple of 4096 */
    uint32_t table_size; /* of the table of contents, at its begin */
    struct soak_run run[SOAK_RUNS];
};

/* Build it; the same for the same seed. Ends the program if it cannot. */
void soak_drive_build(struct soak_drive *drive, uint64_t seed);
void soak_drive_free(struct soak_drive *drive);

#endif
