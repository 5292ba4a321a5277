/* fuzz_index.c - fuzz target: the block index alone (k3huf_index_probe, k3huf_index_read, k3huf_block_init,
 * k3huf_index_seal), for stripes of any claimed size, most of which no run in memory could hold. The input is the three
 * numbers of a stripe header and the first bytes of its filler. The verdict, its place and every block must be what
 * FORMAT.md says, as `expect` below has it, and with less of the filler at hand the reader must wait or say the same.
 */
#include <stdlib.h>
#include <string.h>

#include "k3huf.h"
#include "mutate.h"
#include "numbers.h"
#include "reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#define CONTROL 12u /* raw_bytes, huf_bytes, pad */
#define HEADER 16u
#define ENTRY 8u

static uint32_t index_crc(const uint8_t *index, size_t size) {
    static const uint8_t zero[4] = {0};
    const uint32_t crc = k3huf_reference_crc32c(k3huf_reference_crc32c(0, index, 12), zero, 4);
    return k3huf_reference_crc32c(crc, index + HEADER, size - HEADER);
}

/* Blocks of a stripe with blocks of 2^log2 symbols. */
static uint64_t blocks(uint32_t raw_bytes, unsigned log2) {
    return (raw_bytes / 2u + (UINT64_C(1) << log2) - 1u) >> log2;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    struct k3huf_rng rng = {seed};
    if (max_size < CONTROL + HEADER + ENTRY) { return size; }
    if (size < CONTROL + HEADER + ENTRY || k3huf_rng_below(&rng, 8) == 0) { /* a valid one */
        const unsigned log2 = 12u + k3huf_rng_below(&rng, 9);
        uint64_t most = (max_size - CONTROL - HEADER) / ENTRY;
        most = most > 64 ? 64 : most;
        const uint64_t symbols = ((1u + k3huf_rng_below(&rng, (uint32_t)most)) << log2) -
                                 (k3huf_rng_below(&rng, 2) == 0 ? 0 : k3huf_rng_below(&rng, 1u << log2));
        const uint32_t raw = symbols > 33554432u ? 67108864u : (uint32_t)(2u * symbols + k3huf_rng_below(&rng, 2));
        const uint64_t n = blocks(raw, log2);
        uint64_t bit = 0;
        if (CONTROL + HEADER + ENTRY * n > max_size) { return size; }
        uint8_t *const index = data + CONTROL;
        memcpy(index, "K3IX\1\0", 6);
        index[6] = (uint8_t)log2;
        index[7] = 0;
        k3huf_fuzz_put(index + 8, 4, n);
        for (uint64_t i = 0; i < n; i++) {
            k3huf_fuzz_put(index + HEADER + ENTRY * i, 4, bit);
            k3huf_fuzz_put(index + HEADER + ENTRY * i + 4, 4, k3huf_rng_next(&rng));
            bit += (UINT64_C(1) << log2) * (1u + k3huf_rng_below(&rng, 3));
        }
        size = CONTROL + HEADER + ENTRY * (size_t)n;
        k3huf_fuzz_put(data, 4, raw);
        k3huf_fuzz_put(data + 4, 4, bit / 8u + k3huf_rng_below(&rng, 9));
        k3huf_fuzz_put(data + 8, 4, size - CONTROL + k3huf_rng_below(&rng, 3));
    }
    uint8_t *const index = data + CONTROL;
    const uint32_t entries = (uint32_t)(size - CONTROL - HEADER) / ENTRY;
    for (uint32_t n = k3huf_rng_below(&rng, 3); n > 0 && entries > 0; n--) {
        uint8_t *const entry = index + HEADER + ENTRY * k3huf_rng_below(&rng, entries);
        uint8_t *const number = data + 4u * k3huf_rng_below(&rng, 3);
        switch (k3huf_rng_below(&rng, 8)) {
        case 0: k3huf_fuzz_put(number, 4, k3huf_fuzz_other(&rng, k3huf_fuzz_get(number, 4))); break;
        case 1: index[4u + k3huf_rng_below(&rng, 4)] ^= (uint8_t)(1u << k3huf_rng_below(&rng, 8)); break;
        case 2: k3huf_fuzz_put(index + 8, 4, k3huf_fuzz_other(&rng, k3huf_fuzz_get(index + 8, 4))); break;
        case 3: k3huf_fuzz_put(entry, 4, k3huf_fuzz_other(&rng, k3huf_fuzz_get(entry, 4))); break;
        case 4: k3huf_fuzz_put(entry, 4, k3huf_fuzz_get(entry, 4) + k3huf_rng_below(&rng, 9000) - 4500u); break;
        case 5: size -= k3huf_rng_below(&rng, ENTRY + 1u); break;
        case 6: size = CONTROL + LLVMFuzzerMutate(index, size - CONTROL, max_size - CONTROL); break;
        default: k3huf_fuzz_put(data + 4, 4, k3huf_fuzz_get(entry, 4) / 8u + k3huf_rng_below(&rng, 3)); break;
        }
        if (size < CONTROL + HEADER + ENTRY) { return size; }
    }
    const uint64_t bytes = HEADER + ENTRY * k3huf_fuzz_get(index + 8, 4);
    if (k3huf_rng_below(&rng, 4) != 0 && bytes <= size - CONTROL) {
        k3huf_fuzz_put(index + 12, 4, index_crc(index, (size_t)bytes));
    }
    return size;
}

/* What FORMAT.md makes of the whole filler. *at is the field's offset, *n the number of blocks. */
static enum k3huf_status expect(const uint8_t *filler, size_t size, const struct k3huf_stripe_header *stripe,
                                uint32_t *at, uint64_t *n) {
    *at = 0;
    *n = 0;
    if (stripe->raw_bytes / 2u == 0 || stripe->pad < 4 || size < 4 || memcmp(filler, "K3IX", 4) != 0) {
        return stripe->raw_bytes / 2u != 0 && stripe->pad >= 4 && size < 4 ? K3HUF_WAIT : K3HUF_OK;
    }
    if (stripe->pad < HEADER) { return K3HUF_E_INDEX_SIZE; }
    if (size < HEADER) { return K3HUF_WAIT; }
    const unsigned log2 = filler[6];
    *at = 4;
    if (k3huf_fuzz_get(filler + 4, 2) != 1) { return K3HUF_E_INDEX_VERSION; }
    *at = 6;
    if (log2 < 12 || log2 > 20) { return K3HUF_E_INDEX_LOG2; }
    *at = 7;
    if (filler[7] != 0) { return K3HUF_E_INDEX_FLAGS; }
    *at = 8;
    const uint64_t count = k3huf_fuzz_get(filler + 8, 4);
    if (count != blocks(stripe->raw_bytes, log2)) { return K3HUF_E_INDEX_COUNT; }
    if (HEADER + ENTRY * count > stripe->pad) { return K3HUF_E_INDEX_SIZE; }
    if (HEADER + ENTRY * count > size) { return K3HUF_WAIT; }
    *at = 12;
    if (index_crc(filler, (size_t)(HEADER + ENTRY * count)) != k3huf_fuzz_get(filler + 12, 4)) {
        return K3HUF_E_INDEX_CRC;
    }
    uint64_t least = 0;
    for (uint64_t i = 0; i < count; i++) {
        *at = (uint32_t)(HEADER + ENTRY * i);
        const uint64_t bit = k3huf_fuzz_get(filler + *at, 4);
        if (bit < least || (i == 0 && bit != 0) || bit >= UINT64_C(8) * stripe->huf_bytes) {
            return K3HUF_E_INDEX_OFFSET;
        }
        least = bit + (UINT64_C(1) << log2);
    }
    *n = count;
    return K3HUF_OK;
}

static void check_blocks(const struct k3huf_index *index, const struct k3huf_stripe_header *stripe,
                         const uint8_t *filler) {
    uint64_t raw = 0;
    for (uint32_t i = 0; i < index->nblocks; i++) {
        struct k3huf_block block;
        const uint8_t *const entry = filler + HEADER + ENTRY * (size_t)i;
        const bool last = i + 1u == index->nblocks;
        const uint64_t end = last ? UINT64_C(8) * stripe->huf_bytes : k3huf_fuzz_get(entry + ENTRY, 4);
        k3huf_block_init(&block, index, stripe, i);
        if (block.begin != k3huf_fuzz_get(entry, 4) || block.end != end || block.last != last ||
            block.crc != k3huf_fuzz_get(entry + 4, 4) || block.begin >= block.end ||
            (!last && block.raw_bytes != UINT64_C(2) << filler[6])) {
            k3huf_fuzz_found("a block of the index", NULL);
        }
        raw += block.raw_bytes;
    }
    if (index->nblocks > 0 && raw != stripe->raw_bytes) { k3huf_fuzz_found("blocks that are not the stripe", NULL); }
}

/* An index that is read is the one that is written for its stripe. */
static void write_again(const uint8_t *filler, const struct k3huf_stripe_header *stripe) {
    const size_t size = k3huf_index_bytes(stripe->raw_bytes, filler[6]);
    uint8_t *const index = malloc(size);
    if (index == NULL) { abort(); }
    memcpy(index, filler, size);
    memset(index, 0xC5, HEADER);
    k3huf_index_seal(index, stripe->raw_bytes, filler[6]);
    if (memcmp(index, filler, size) != 0) { k3huf_fuzz_found("an index written again", NULL); }
    free(index);
}

/* CRCs side by side, of spans of the input. */
static void crc_lanes(const uint8_t *data, size_t size) {
    uint32_t crc[K3HUF_LANES], expected[K3HUF_LANES];
    const uint8_t *lane[K3HUF_LANES];
    const uint32_t lanes = 1u + (uint32_t)(size % K3HUF_LANES);
    const size_t each = size / K3HUF_LANES;
    for (uint32_t i = 0; i < lanes; i++) {
        lane[i] = data + i * each;
        crc[i] = (uint32_t)k3huf_fuzz_get(data, 4) + i;
        expected[i] = k3huf_reference_crc32c(crc[i], lane[i], each);
    }
    k3huf_crc32c_lanes(crc, lane, each, lanes);
    if (memcmp(crc, expected, lanes * sizeof crc[0]) != 0) { k3huf_fuzz_found("CRCs side by side", NULL); }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CONTROL) { return 0; }
    /* As k3huf_stripe_header_read() lets it through: its sizes are in range, and fit each other loosely. */
    const struct k3huf_stripe_header stripe = {(uint32_t)k3huf_fuzz_get(data, 4) % (K3HUF_STRIPE_RAW_MAX + 1u),
                                               (uint32_t)k3huf_fuzz_get(data + 4, 4) % (K3HUF_STRIPE_RAW_MAX + 1u),
                                               (uint32_t)k3huf_fuzz_get(data + 8, 4)};
    if (stripe.raw_bytes == 0) { return 0; }
    crc_lanes(data, size);
    const size_t whole = size - CONTROL < stripe.pad ? size - CONTROL : stripe.pad;
    for (size_t n = 0; n <= whole; n += n < 40 || n + 9 >= whole ? 1 : 1 + (n & 7u)) {
        uint8_t *const filler = malloc(n == 0 ? 1 : n); /* just as large, so that no byte behind it is looked at */
        struct k3huf_index index;
        uint32_t at = 0, bad = 0, bad_block = 0, bytes = 0;
        uint64_t blocks_expected = 0;
        if (filler == NULL) { abort(); }
        memcpy(filler, data + CONTROL, n);
        const enum k3huf_status expected = expect(filler, n, &stripe, &at, &blocks_expected);
        const enum k3huf_status probed = k3huf_index_probe(filler, n, &stripe, &bytes, &bad);
        const enum k3huf_status status = k3huf_index_read(filler, n, &stripe, &index, &bad, &bad_block);
        if (status != expected || (k3huf_is_error(status) && bad != at) || index.nblocks != blocks_expected) {
            k3huf_fuzz_found(k3huf_status_text(expected), k3huf_status_text(status));
        }
        if (k3huf_is_error(probed) && probed != expected) { k3huf_fuzz_found("the probe", k3huf_status_text(probed)); }
        if (bytes > stripe.pad || (index.nblocks > 0 && bytes != HEADER + ENTRY * index.nblocks)) {
            k3huf_fuzz_found("the probe's size", NULL);
        }
        if (status == K3HUF_E_INDEX_OFFSET && bad_block != (at - HEADER) / ENTRY) {
            k3huf_fuzz_found("the block that an offset is of", NULL);
        }
        check_blocks(&index, &stripe, filler);
        if (index.nblocks > 0) { write_again(filler, &stripe); }
        free(filler);
        if (n == whole) { break; }
    }
    return 0;
}
