/* fuzz_blocks.c - fuzz target: the index of a run's first stripe (k3huf_index_probe, k3huf_index_read) and, where it is
 * let through, every block by itself and all of them side by side (k3huf_decode_blocks), each part of the run in memory
 * of exactly its size. The verdict on each block and its bytes must be the bit-by-bit reference's. */
#include <stdlib.h>
#include <string.h>

#include "k3huf.h"
#include "mutate.h"
#include "reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return k3huf_fuzz_mutate_run(data, size, max_size, seed);
}

#define BLOCKS_MAX 64u
#define FILL 0xC5u

static uint8_t *copy(const uint8_t *bytes, size_t size) {
    uint8_t *const to = malloc(size == 0 ? 1 : size);
    if (to == NULL) { abort(); }
    memcpy(to, bytes, size);
    return to;
}

/* What the block must come to, and its bytes. `coded` is the whole plane. */
static enum k3huf_status reference(const struct k3huf_reference_code *code, const struct k3huf_block *block,
                                   const uint8_t *coded, uint8_t *out) {
    const uint32_t symbols = block->raw_bytes / 2u;
    const uint64_t bits = (block->end + UINT64_C(7)) / 8u * 8u;
    uint64_t bit = block->begin;
    for (uint32_t i = 0; i < symbols; i++) {
        const int symbol = k3huf_reference_symbol(code, coded, bits, &bit);
        if (symbol == K3HUF_REFERENCE_NO_CODE) { return K3HUF_E_CODE_WORD; }
        if (symbol < 0) { return block->last ? K3HUF_E_CODED_SHORT : K3HUF_E_BLOCK_END; }
        out[2u * i] = block->raw[i];
        out[2u * i + 1u] = (uint8_t)symbol;
    }
    if (!block->last && bit != block->end) { return K3HUF_E_BLOCK_END; }
    for (; block->last && bit < bits; bit++) {
        if (bits - bit >= 8u || ((coded[bit / 8u] >> (7u - bit % 8u)) & 1u) != 0) { return K3HUF_E_CODED_LONG; }
    }
    if (block->raw_bytes % 2u != 0) { out[2u * symbols] = block->raw[symbols]; }
    return k3huf_reference_crc32c(0, out, block->raw_bytes) == block->crc ? K3HUF_OK : K3HUF_E_BLOCK_CRC;
}

static void check(const struct k3huf_reference_code *code, const struct k3huf_block *block, const uint8_t *coded,
                  enum k3huf_status status) {
    uint8_t *const witness = calloc(block->raw_bytes, 1);
    if (witness == NULL) { abort(); }
    const enum k3huf_status expected = reference(code, block, coded, witness);
    if (expected != K3HUF_OK) { memset(witness, 0, block->raw_bytes); /* nothing unverified stays */ }
    if (status != expected) { k3huf_fuzz_found(k3huf_status_text(expected), k3huf_status_text(status)); }
    if (memcmp(block->out, witness, block->raw_bytes) != 0) {
        k3huf_fuzz_found("a block's bytes", k3huf_status_text(status));
    }
    free(witness);
}

static void decode(const struct k3huf_run_header *run, const struct k3huf_stripe_header *stripe,
                   const struct k3huf_index *index, const uint8_t *coded, const uint8_t *plane) {
    static struct k3huf_table table;
    static struct k3huf_workspace workspace;
    static struct k3huf_block block[BLOCKS_MAX];
    struct k3huf_reference_code code;
    if (k3huf_table_build(&table, run->codelen) != K3HUF_OK ||
        k3huf_reference_code_build(&code, run->codelen) != NULL) {
        k3huf_fuzz_found("a code that the run header's check let through", NULL);
    }
    uint8_t *const out = malloc(stripe->raw_bytes);
    if (out == NULL) { abort(); }
    for (uint32_t i = 0; i < index->nblocks; i++) {
        const uint32_t at = i << index->block_log2;
        struct k3huf_block *const b = &block[i];
        k3huf_block_init(b, index, stripe, i);
        /* Alone, with memory of exactly what it may touch. */
        const uint32_t first = b->begin / 8u;
        uint8_t *const own_coded = copy(coded + first, (b->end + 7u) / 8u - first);
        uint8_t *const own_raw = copy(plane + at, k3huf_even_bytes(b->raw_bytes));
        uint8_t *const own_out = malloc(b->raw_bytes);
        if (own_out == NULL) { abort(); }
        memset(own_out, FILL, b->raw_bytes);
        b->coded = own_coded;
        b->raw = own_raw;
        b->out = own_out;
        check(&code, b, coded, k3huf_decode_blocks(&table, &workspace, b, 1, true));
        free(own_coded);
        free(own_raw);
        free(own_out);
        k3huf_block_init(b, index, stripe, i);
        b->coded = coded + first;
        b->raw = plane + at;
        b->out = out + 2u * (size_t)at;
    }
    memset(out, FILL, stripe->raw_bytes);
    const enum k3huf_status status = k3huf_decode_blocks(&table, &workspace, block, index->nblocks, true);
    enum k3huf_status first = K3HUF_OK;
    for (uint32_t i = 0; i < index->nblocks; i++) {
        check(&code, &block[i], coded, block[i].status);
        first = first == K3HUF_OK ? block[i].status : first;
    }
    if (status != first) { k3huf_fuzz_found("not the first block's status", k3huf_status_text(status)); }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct k3huf_run_header run;
    struct k3huf_stripe_header stripe;
    uint32_t bad = 0, bytes = 0, bad_block = 0;
    if (size < K3HUF_RUN_HEADER_BYTES + K3HUF_STRIPE_HEADER_BYTES ||
        k3huf_run_header_read(data, &run, &bad) != K3HUF_OK || run.nstripes == 0 ||
        k3huf_stripe_header_read(data + K3HUF_RUN_HEADER_BYTES, &run, 0, 0, &stripe, &bad) != K3HUF_OK ||
        k3huf_stripe_bytes(&stripe) > size - K3HUF_RUN_HEADER_BYTES) {
        return 0;
    }
    const uint8_t *const at = data + K3HUF_RUN_HEADER_BYTES + K3HUF_STRIPE_HEADER_BYTES;
    uint8_t *const coded = copy(at, stripe.huf_bytes);
    uint8_t *const plane = copy(at + stripe.huf_bytes, k3huf_even_bytes(stripe.raw_bytes));
    const uint8_t *const filler = at + stripe.huf_bytes + k3huf_even_bytes(stripe.raw_bytes);

    /* With each number of bytes at hand: wait, or the same answer as with all, and no byte beyond is looked at. */
    struct k3huf_index index;
    const enum k3huf_status whole = k3huf_index_read(filler, stripe.pad, &stripe, &index, &bad, &bad_block);
    const uint32_t most = stripe.pad < 600u ? stripe.pad : 600u;
    for (uint32_t n = 0; n <= most; n++) {
        uint8_t *const part = copy(filler, n);
        uint32_t part_bad = 0;
        const enum k3huf_status probed = k3huf_index_probe(part, n, &stripe, &bytes, &part_bad);
        if (probed == K3HUF_WAIT ? n >= K3HUF_INDEX_HEADER_BYTES : bytes > stripe.pad) {
            k3huf_fuzz_found("k3huf_index_probe()", k3huf_status_text(probed));
        }
        const enum k3huf_status status = k3huf_index_read(part, n, &stripe, &index, &part_bad, &bad_block);
        if (status != K3HUF_WAIT && (status != whole || (k3huf_is_error(status) && part_bad != bad))) {
            k3huf_fuzz_found("k3huf_index_read() of a part", k3huf_status_text(status));
        }
        free(part);
    }
    uint8_t *const own = copy(filler, stripe.pad);
    if (k3huf_index_read(own, stripe.pad, &stripe, &index, &bad, &bad_block) == K3HUF_WAIT) {
        k3huf_fuzz_found("k3huf_index_read() waits for more than the filler", NULL);
    }
    if (index.nblocks > 0 && index.nblocks <= BLOCKS_MAX) { decode(&run, &stripe, &index, coded, plane); }
    free(own);
    free(coded);
    free(plane);
    return 0;
}
