/* check_part.h - read what was written to a file back, decode it, and compare it with what it was made of.
 *
 * Where a part lies and where its blocks begin is what the writer says; that the file's headers and index say the same
 * is for the caller to see to. May not use bytes of a plane that were not read from the file.
 */
#ifndef K3HUF_HOST_CHECK_PART_H
#define K3HUF_HOST_CHECK_PART_H

#include "dispatch.h"
#include "input.h"

/* What is checked by what. */
struct k3huf_part_files {
    const struct k3huf_isa *isa;
    struct k3huf_input *written;
    const struct k3huf_input *original; /* for messages */
};

/* A stripe in a file. */
struct k3huf_stripe_place {
    struct k3huf_stripe_header header;
    uint32_t stripe;
    uint64_t begin; /* of its header in the file, bytes */
};

/* A part: whole blocks, or the stripe's last bytes. Memory is the caller's. */
struct k3huf_written_part {
    struct k3huf_stripe_place place;
    uint64_t offset;    /* of its first byte in the original */
    const uint8_t *raw; /* what was encoded, as it was read there */
    uint32_t at;        /* of its first byte in the decoded stripe */
    uint32_t raw_bytes;
    const uint8_t *entries; /* of its blocks, as in an index; their CRCs are not looked at */
    uint32_t block_log2;
    bool indexed;   /* there is an index, in which blocks have their numbers */
    uint32_t begin; /* its first bit in the coded plane */
    uint32_t bits;
    uint8_t front; /* the byte that holds this bit, as it was before: bits of another part */
    /* The writer's bytes until others are read over them, all of them. */
    uint8_t *coded; /* k3huf_coded_bound(raw_bytes) bytes */
    uint8_t *even;  /* k3huf_even_bytes(raw_bytes) */
};

/* What one check needs besides; contents mean nothing between calls. */
struct k3huf_check_memory {
    struct k3huf_workspace workspace;
    struct k3huf_block block[K3HUF_LANES];
    uint8_t *decoded; /* room for K3HUF_LANES blocks, or for the part, whichever is less */
};

/* None of these looks at the file's size: it may still grow. K3HUF_EXIT_CORRUPT with the place in the file;
 * K3HUF_EXIT_IO. */

/* Read bytes back and compare them. `stripe` is for messages: K3HUF_NO_STRIPE in the run's header. */
enum k3huf_exit k3huf_written_check(struct k3huf_input *file, uint32_t stripe, uint64_t offset, const uint8_t *expected,
                                    size_t size, struct k3huf_fault *fault);

/* Read the part's bytes back: `coded` and `even` get them. */
enum k3huf_exit k3huf_part_read_back(const struct k3huf_part_files *files, const struct k3huf_written_part *part,
                                     struct k3huf_fault *fault);

/* Decode what was read back and compare it with `raw`. Also K3HUF_EXIT_MISMATCH. */
enum k3huf_exit k3huf_part_check(const struct k3huf_part_files *files, const struct k3huf_table *table,
                                 const struct k3huf_written_part *part, struct k3huf_check_memory *memory,
                                 struct k3huf_fault *fault);

#endif
