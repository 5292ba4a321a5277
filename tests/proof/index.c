/* index.c - the block index as Eva sees it: initialised memory, bytes read as words, shifts by every block size. That
 * fillers of every size are read inside their bounds is index.acsl's to prove; here sizes are small, and exact.
 */
#include "any.h"

#define SIZE_MAX_HERE 40u /* of a filler: an index of three blocks */

/* Every filler of up to SIZE_MAX_HERE bytes behind every stripe header, plausible or not. */
void index_read(void) {
    struct k3huf_stripe_header stripe;
    stripe.raw_bytes = any32(0, UINT32_MAX);
    stripe.huf_bytes = any32(0, UINT32_MAX);
    stripe.pad = any32(0, UINT32_MAX);
    //@ loop unroll SIZE_MAX_HERE + 1;
    for (size_t size = 1; size <= SIZE_MAX_HERE; size++) {
        const uint8_t *const filler = any_bytes(size);
        struct k3huf_index index;
        uint32_t bytes;
        uint32_t bad;
        uint32_t block;
        if (k3huf_index_probe(filler, size, &stripe, &bytes, &bad) > K3HUF_DONE) {
            //@ assert probe_place: bad < K3HUF_INDEX_HEADER_BYTES;
        }
        if (k3huf_index_read(filler, size, &stripe, &index, &bad, &block) > K3HUF_DONE) {
            //@ assert read_place: bad < size;
        }
        (void)index.nblocks;
    }
}

/* What index.acsl takes from here: no block size gives more than 2^19 blocks, whatever a stripe header says. */
void index_blocks(void) {
    //@ loop unroll 9;
    for (uint32_t log2 = K3HUF_BLOCK_LOG2_MIN; log2 <= K3HUF_BLOCK_LOG2_MAX; log2++) {
        const uint32_t blocks = k3huf_index_blocks(any32(0, UINT32_MAX), log2);
        //@ assert blocks: blocks <= 524288;
    }
}

/* The writer, and the blocks of what it writes, for stripes that end on, before and behind a block's end. */
void index_seal(void) {
    static const uint32_t raw_bytes[] = {1, 2, 3, 8191, 8192, 8193, 8194, 16384, 24577};
    //@ loop unroll 9;
    for (size_t i = 0; i < sizeof raw_bytes / sizeof raw_bytes[0]; i++) {
        //@ loop unroll 9;
        for (uint32_t log2 = K3HUF_BLOCK_LOG2_MIN; log2 <= K3HUF_BLOCK_LOG2_MAX; log2++) {
            const uint32_t size = k3huf_index_bytes(raw_bytes[i], log2);
            if (size == 0) { continue; }
            uint8_t *const bytes = any_bytes(size);
            k3huf_index_seal(bytes, raw_bytes[i], log2);
            const struct k3huf_index index = {bytes + K3HUF_INDEX_HEADER_BYTES, k3huf_index_blocks(raw_bytes[i], log2),
                                              log2};
            const struct k3huf_stripe_header stripe = {raw_bytes[i], any32(0, UINT32_MAX), any32(0, UINT32_MAX)};
            //@ loop unroll 9;
            for (uint32_t number = 0; number < index.nblocks; number++) {
                struct k3huf_block block;
                k3huf_block_init(&block, &index, &stripe, number);
                //@ assert raw: 1 <= block.raw_bytes <= stripe.raw_bytes;
            }
        }
    }
}
