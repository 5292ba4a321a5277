/* check_part.c - see check_part.h. Decoding is the core's; what is here brings the bytes and compares. */
#include "check_part.h"

#include <inttypes.h>

#include "compare.h"

/* All of it is there: it was written. */
static enum k3huf_exit read_back(struct k3huf_input *file, uint32_t stripe, uint64_t offset, uint8_t *to, size_t size,
                                 struct k3huf_fault *fault) {
    size_t got = 0;
    const enum k3huf_exit code = k3huf_input_read_at(file, offset, to, size, &got, fault);
    const struct k3huf_place place = {stripe, K3HUF_NO_BLOCK, offset + got};
    return code != K3HUF_EXIT_OK || got == size ? code
                                                : k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file->name, &place, "%s",
                                                                  k3huf_status_text(K3HUF_E_TRUNCATED));
}

static enum k3huf_exit differs(const struct k3huf_input *file, uint32_t stripe, uint64_t offset,
                               struct k3huf_fault *fault) {
    const struct k3huf_place place = {stripe, K3HUF_NO_BLOCK, offset};
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file->name, &place, "read back, it is not what was written");
}

enum k3huf_exit k3huf_written_check(struct k3huf_input *file, uint32_t stripe, uint64_t offset, const uint8_t *expected,
                                    size_t size, struct k3huf_fault *fault) {
    uint8_t found[4096];
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (size_t done = 0; done < size && code == K3HUF_EXIT_OK; done += sizeof found) {
        const size_t now = size - done < sizeof found ? size - done : sizeof found;
        code = read_back(file, stripe, offset + done, found, now, fault);
        const size_t same = code == K3HUF_EXIT_OK ? k3huf_same_bytes(found, expected + done, now) : now;
        if (same != now) { code = differs(file, stripe, offset + done + same, fault); }
    }
    return code;
}

/* Block `i` of the part, as the index will have it, without where it is decoded to. */
static struct k3huf_block block_of(const struct k3huf_written_part *part, uint32_t i) {
    const uint32_t block_bytes = 2u << part->block_log2;
    const struct k3huf_index index = {.entries = part->entries};
    const bool last = i + 1u == k3huf_index_blocks(part->raw_bytes, part->block_log2);
    struct k3huf_block block = {.begin = k3huf_index_bit(&index, i),
                                .end = last ? part->begin + part->bits : k3huf_index_bit(&index, i + 1u),
                                .raw_bytes = last ? part->raw_bytes - i * block_bytes : block_bytes,
                                .last = last && part->at + part->raw_bytes == part->place.header.raw_bytes};
    if (block.last) { block.end = part->place.header.huf_bytes * 8u; }
    block.coded = part->coded + (block.begin / 8u - part->begin / 8u);
    block.raw = part->even + (size_t)i * (block_bytes / 2u);
    return block;
}

/* `size` bytes that decode to `found`; they are at `at` in the part. */
static enum k3huf_exit compare(const struct k3huf_part_files *files, const struct k3huf_written_part *part, uint32_t at,
                               const uint8_t *found, uint32_t size, struct k3huf_fault *fault) {
    const uint8_t *expected = part->raw + at;
    const size_t i = k3huf_same_bytes(expected, found, size);
    if (i == size) { return K3HUF_EXIT_OK; }
    return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, files->written->name, NULL,
                           "stripe %" PRIu32 ", source offset %" PRIu64
                           ": differs from %s: expected 0x%02x, found 0x%02x",
                           part->place.stripe, files->original->base + part->offset + at + i, files->original->name,
                           (unsigned)expected[i], (unsigned)found[i]);
}

/* Blocks `first` up to `end` - 1, as many as there are lanes or fewer. */
static enum k3huf_exit check_blocks(const struct k3huf_part_files *files, const struct k3huf_table *table,
                                    const struct k3huf_written_part *part, uint32_t first, uint32_t end,
                                    struct k3huf_check_memory *memory, struct k3huf_fault *fault) {
    uint32_t size = 0;
    for (uint32_t i = first; i < end; i++) {
        struct k3huf_block *block = &memory->block[i - first];
        *block = block_of(part, i);
        block->out = memory->decoded + size;
        size += block->raw_bytes;
    }
    (void)files->isa->decode_blocks(table, &memory->workspace, memory->block, end - first, false);
    for (uint32_t i = first; i < end; i++) {
        const struct k3huf_block *block = &memory->block[i - first];
        if (block->status != K3HUF_OK) {
            const uint32_t number = (part->at >> (part->block_log2 + 1u)) + i;
            const struct k3huf_place place = {part->place.stripe, part->indexed ? number : K3HUF_NO_BLOCK,
                                              part->place.begin + K3HUF_STRIPE_HEADER_BYTES + block->bad_bit / 8u};
            return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, files->written->name, &place, "%s",
                                   k3huf_status_text(block->status));
        }
    }
    return compare(files, part, first << (part->block_log2 + 1u), memory->decoded, size, fault);
}

enum k3huf_exit k3huf_part_read_back(const struct k3huf_part_files *files, const struct k3huf_written_part *part,
                                     struct k3huf_fault *fault) {
    const uint32_t stripe = part->place.stripe;
    const uint64_t coded_plane = part->place.begin + K3HUF_STRIPE_HEADER_BYTES;
    const uint64_t even_plane = coded_plane + part->place.header.huf_bytes;
    const enum k3huf_exit code = read_back(files->written, stripe, coded_plane + part->begin / 8u, part->coded,
                                           (part->begin % 8u + part->bits + 7u) / 8u, fault);
    return code != K3HUF_EXIT_OK ? code
                                 : read_back(files->written, stripe, even_plane + part->at / 2u, part->even,
                                             k3huf_even_bytes(part->raw_bytes), fault);
}

enum k3huf_exit k3huf_part_check(const struct k3huf_part_files *files, const struct k3huf_table *table,
                                 const struct k3huf_written_part *part, struct k3huf_check_memory *memory,
                                 struct k3huf_fault *fault) {
    const uint32_t blocks = k3huf_index_blocks(part->raw_bytes, part->block_log2);
    const uint32_t used = part->begin % 8u;
    /* The part before was checked with this byte as it was then. */
    if (used != 0 && (part->coded[0] ^ part->front) >> (8u - used) != 0) {
        return differs(files->written, part->place.stripe,
                       part->place.begin + K3HUF_STRIPE_HEADER_BYTES + part->begin / 8u, fault);
    }
    enum k3huf_exit code = blocks == 0 ? compare(files, part, 0, part->even, part->raw_bytes, fault) : K3HUF_EXIT_OK;
    for (uint32_t first = 0; first < blocks && code == K3HUF_EXIT_OK; first += K3HUF_LANES) {
        const uint32_t end = blocks - first < K3HUF_LANES ? blocks : first + K3HUF_LANES;
        code = check_blocks(files, table, part, first, end, memory, fault);
    }
    return code;
}
