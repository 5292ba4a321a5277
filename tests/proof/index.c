/* index.c - every filler of a given size, every stripe header before it, plausible or not; SIZES below says which sizes.
 * And the writer, for every block size.
 */
#include "any.h"

static struct k3huf_stripe_header any_stripe(void) {
    struct k3huf_stripe_header stripe;
    stripe.raw_bytes = any32(0, UINT32_MAX);
    stripe.huf_bytes = any32(0, UINT32_MAX);
    stripe.pad = any32(0, UINT32_MAX);
    return stripe;
}

static void probe_and_read(size_t size) {
    const struct k3huf_stripe_header stripe = any_stripe();
    const uint8_t *const filler = any_bytes(size);
    struct k3huf_index index;
    uint32_t bytes;
    uint32_t bad;
    uint32_t block;
    if (k3huf_index_probe(filler, size, &stripe, &bytes, &bad) > K3HUF_DONE) {
        //@ assert probe_place: bad < K3HUF_INDEX_HEADER_BYTES;
    }
    const enum k3huf_status status = k3huf_index_read(filler, size, &stripe, &index, &bad, &block);
    if (status > K3HUF_DONE) {
        //@ assert read_place: bad < size;
    } else if (status == K3HUF_OK && index.nblocks > 0) {
        //@ assert fits: 16 + 8 * index.nblocks <= size;
        const uint32_t number = any32(0, index.nblocks - 1u);
        (void)k3huf_index_bit(&index, number);
        (void)k3huf_index_crc(&index, number);
    }
}

/* Every size up to that of an index of twelve blocks, and that of the largest one of a 64 MiB stripe. */
void index_read(void) {
    //@ loop unroll 200;
    for (size_t size = 1; size <= 112; size++) {
        probe_and_read(size);
    }
    probe_and_read(K3HUF_INDEX_HEADER_BYTES + K3HUF_INDEX_ENTRY_BYTES * 8192u);
}
