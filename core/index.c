/* index.c - the block index in a stripe's filler: bytes to a checked view and back (FORMAT.md, The block index).
 *
 * The one parser of these bytes. What it lets through cannot lead a decoder outside the coded plane: offsets start at
 * 0, never go back, and each pair is as far apart as the block's symbols need. May not decode.
 */
#include "bytes.h"
#include "compiler.h"
#include "k3huf.h"

#define INDEX_MAGIC 0x5849334bu
#define INDEX_VERSION 1u

/* Byte offsets of the fields. */
enum { MAGIC_AT = 0, VERSION_AT = 4, LOG2_AT = 6, FLAGS_AT = 7, COUNT_AT = 8, CRC_AT = 12 };

uint32_t k3huf_index_blocks(uint32_t raw_bytes, uint32_t block_log2) {
    const uint32_t symbols = k3huf_odd_bytes(raw_bytes);
    return (symbols >> block_log2) + ((symbols & ((1u << block_log2) - 1u)) != 0);
}

uint32_t k3huf_index_bytes(uint32_t raw_bytes, uint32_t block_log2) {
    const uint32_t blocks = k3huf_index_blocks(raw_bytes, block_log2);
    return blocks == 0 ? 0 : K3HUF_INDEX_HEADER_BYTES + blocks * K3HUF_INDEX_ENTRY_BYTES;
}

uint32_t k3huf_index_bit(const struct k3huf_index *index, uint32_t block) {
    return k3huf_load_le32(index->entries + (size_t)block * K3HUF_INDEX_ENTRY_BYTES);
}

uint32_t k3huf_index_crc(const struct k3huf_index *index, uint32_t block) {
    return k3huf_load_le32(index->entries + (size_t)block * K3HUF_INDEX_ENTRY_BYTES + 4u);
}

enum k3huf_status k3huf_index_probe(const uint8_t *filler, size_t size, const struct k3huf_stripe_header *stripe,
                                    uint32_t *bytes, uint32_t *bad) {
    *bytes = 0;
    *bad = 0;
    if (stripe->pad < 4u || k3huf_odd_bytes(stripe->raw_bytes) == 0) {
        return K3HUF_OK; /* too small for the magic, or nothing to index */
    }
    if (size < 4u) { return K3HUF_WAIT; }
    if (k3huf_load_le32(filler + MAGIC_AT) != INDEX_MAGIC) { return K3HUF_OK; }
    if (stripe->pad < K3HUF_INDEX_HEADER_BYTES) { return k3huf_fail_at(bad, MAGIC_AT, K3HUF_E_INDEX_SIZE); }
    if (size < K3HUF_INDEX_HEADER_BYTES) { return K3HUF_WAIT; }
    if (((uint32_t)filler[VERSION_AT] | (uint32_t)filler[VERSION_AT + 1u] << 8) != INDEX_VERSION) {
        return k3huf_fail_at(bad, VERSION_AT, K3HUF_E_INDEX_VERSION);
    }
    const uint32_t log2 = filler[LOG2_AT];
    if (log2 < K3HUF_BLOCK_LOG2_MIN || log2 > K3HUF_BLOCK_LOG2_MAX) {
        return k3huf_fail_at(bad, LOG2_AT, K3HUF_E_INDEX_LOG2);
    }
    if (filler[FLAGS_AT] != 0) { return k3huf_fail_at(bad, FLAGS_AT, K3HUF_E_INDEX_FLAGS); }
    if (k3huf_load_le32(filler + COUNT_AT) != k3huf_index_blocks(stripe->raw_bytes, log2)) {
        return k3huf_fail_at(bad, COUNT_AT, K3HUF_E_INDEX_COUNT);
    }
    if (k3huf_index_bytes(stripe->raw_bytes, log2) > stripe->pad) {
        return k3huf_fail_at(bad, COUNT_AT, K3HUF_E_INDEX_SIZE);
    }
    *bytes = k3huf_index_bytes(stripe->raw_bytes, log2);
    return K3HUF_OK;
}

/* CRC-32C of a whole index with its own CRC field taken as 0. */
static uint32_t index_crc(const uint8_t *filler, size_t size) {
    static const uint8_t zero[4] = {0, 0, 0, 0};
    uint32_t crc = k3huf_crc32c(0, filler, CRC_AT);
    crc = k3huf_crc32c(crc, zero, sizeof zero);
    return k3huf_crc32c(crc, filler + K3HUF_INDEX_HEADER_BYTES, size - K3HUF_INDEX_HEADER_BYTES);
}

enum k3huf_status k3huf_index_read(const uint8_t *filler, size_t size, const struct k3huf_stripe_header *stripe,
                                   struct k3huf_index *out, uint32_t *bad, uint32_t *block) {
    uint32_t bytes = 0;
    out->nblocks = 0;
    out->entries = NULL;
    out->block_log2 = 0;
    *block = K3HUF_NO_BLOCK;
    const enum k3huf_status status = k3huf_index_probe(filler, size, stripe, &bytes, bad);
    if (status != K3HUF_OK || bytes == 0) { return status; }
    if (size < bytes) { return K3HUF_WAIT; }
    if (index_crc(filler, bytes) != k3huf_load_le32(filler + CRC_AT)) {
        return k3huf_fail_at(bad, CRC_AT, K3HUF_E_INDEX_CRC);
    }
    out->entries = filler + K3HUF_INDEX_HEADER_BYTES;
    out->block_log2 = filler[LOG2_AT];
    const uint32_t nblocks = (bytes - K3HUF_INDEX_HEADER_BYTES) / K3HUF_INDEX_ENTRY_BYTES;
    const uint64_t plane_bits = (uint64_t)stripe->huf_bytes * 8u;
    for (uint32_t i = 0; i < nblocks; i++) {
        /* Block i has at least one bit a symbol; a block that is not the last has 2^block_log2 symbols. */
        const uint64_t begin = k3huf_index_bit(out, i);
        const uint64_t before = i == 0 ? 0 : (uint64_t)k3huf_index_bit(out, i - 1u) + (1u << out->block_log2);
        if (begin < before || begin >= plane_bits || (i == 0 && begin != 0)) {
            *block = i;
            return k3huf_fail_at(bad, K3HUF_INDEX_HEADER_BYTES + i * K3HUF_INDEX_ENTRY_BYTES, K3HUF_E_INDEX_OFFSET);
        }
    }
    out->nblocks = nblocks;
    return K3HUF_OK;
}

void k3huf_index_seal(uint8_t *index, uint32_t raw_bytes, uint32_t block_log2) {
    if (k3huf_index_bytes(raw_bytes, block_log2) == 0) { return; }
    k3huf_store_le32(index + MAGIC_AT, INDEX_MAGIC);
    index[VERSION_AT] = INDEX_VERSION;
    index[VERSION_AT + 1u] = 0;
    index[LOG2_AT] = (uint8_t)block_log2;
    index[FLAGS_AT] = 0;
    k3huf_store_le32(index + COUNT_AT, k3huf_index_blocks(raw_bytes, block_log2));
    k3huf_store_le32(index + CRC_AT, index_crc(index, k3huf_index_bytes(raw_bytes, block_log2)));
}
