/* mutate_archive.c - archives for fuzz_archive.c (mutate.h): built from FORMAT.md, and changed where it counts. */
#include "mutate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"
#include "reference.h"
#include "reference_archive.h"
#include "samples.h"

#define PAGE K3HUF_REFERENCE_PAGE
#define RAW_MAX 20000u
#define ENTRIES_MAX 6u
#define TENSORS_MAX 12u
#define RANK_MAX 4u
#define NAME_MAX 8u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

static uint8_t raw[RAW_MAX];

static size_t page_end(size_t at) { return (at + PAGE - 1u) / PAGE * PAGE; }

/* A run of random contents at `to`; its size, 0 where it does not fit. */
static size_t make_run(struct k3huf_rng *rng, uint8_t *to, size_t room, uint32_t *raw_bytes) {
    static const uint32_t most[] = {2, 60, 3000, 9000, RAW_MAX};
    uint8_t codelen[256];
    *raw_bytes = 1u + k3huf_rng_below(rng, most[k3huf_rng_below(rng, 5)]);
    k3huf_sample_code(k3huf_rng_below(rng, K3HUF_SAMPLE_CODES), codelen);
    const struct k3huf_reference_plan plan = {
        .codelen = codelen,
        .stripe_bytes = *raw_bytes / (1u + k3huf_rng_below(rng, 3)) + 1u,
        .block_log2 = k3huf_rng_below(rng, 4) == 0 ? 0u : 12u,
        .filler = k3huf_rng_below(rng, 4) == 0 ? k3huf_rng_below(rng, 40) : 0,
    };
    k3huf_sample_raw(codelen, k3huf_rng_next(rng), plan.stripe_bytes, raw, *raw_bytes);
    return k3huf_reference_encode(&plan, raw, *raw_bytes, to, room);
}

struct entry {
    uint64_t offset, bytes, source_offset, raw_bytes;
    uint32_t crc, kind;
};

static size_t build(struct k3huf_rng *rng, uint8_t *data, size_t max_size) {
    struct entry entry[ENTRIES_MAX];
    const uint32_t n = k3huf_rng_below(rng, ENTRIES_MAX + 1u);
    const size_t toc_most =
        ENTRIES_MAX * K3HUF_REFERENCE_ENTRY + TENSORS_MAX * (K3HUF_REFERENCE_TENSOR + RANK_MAX * 8u + NAME_MAX) + PAGE;
    uint64_t source = 0;
    uint32_t used = 0;
    if (max_size < PAGE + toc_most) { return 0; }
    memset(data, 0, max_size);
    size_t at = PAGE;
    for (uint32_t i = 0; i < n; i++) {
        struct entry *const e = &entry[used];
        uint32_t bytes = 0;
        *e = (struct entry){.offset = at, .source_offset = source, .kind = k3huf_rng_below(rng, 3)};
        if (e->kind == 1) {
            e->bytes = make_run(rng, data + at, max_size - toc_most - at, &bytes);
            if (e->bytes == 0) { break; }
            e->crc = k3huf_reference_crc32c(0, raw, bytes);
            e->raw_bytes = bytes;
        } else if (e->kind == 0) {
            e->bytes = e->raw_bytes = 1u + k3huf_rng_below(rng, k3huf_rng_below(rng, 4) == 0 ? 9000 : 60);
            if (e->bytes > max_size - toc_most - at) { break; }
            k3huf_rng_fill(rng, data + at, (size_t)e->bytes);
            e->crc = k3huf_reference_crc32c(0, data + at, (size_t)e->bytes);
        } else {
            e->raw_bytes = k3huf_rng_below(rng, 4) == 0 ? k3huf_rng_next(rng) >> (1u + k3huf_rng_below(rng, 60))
                                                        : k3huf_rng_below(rng, 100000);
            e->raw_bytes += e->raw_bytes == 0;
            e->offset = 0;
            if (e->raw_bytes > UINT64_MAX / 4u - source) { break; }
            e->crc = k3huf_reference_crc32c_zeros(e->raw_bytes);
        }
        source += e->raw_bytes;
        at = page_end(at + (size_t)e->bytes);
        used++;
        if (at + toc_most >= max_size) { break; }
    }
    uint8_t *const toc = data + at;
    uint8_t tensors[TENSORS_MAX * K3HUF_REFERENCE_TENSOR] = {0}, dims[TENSORS_MAX * RANK_MAX * 8u] = {0};
    uint8_t names[TENSORS_MAX * NAME_MAX];
    uint32_t ntensors = 0, ndims = 0, nnames = 0;
    for (uint32_t i = 0; i < used; i++) {
        const struct entry *const e = &entry[i];
        uint8_t *const to = toc + (size_t)i * K3HUF_REFERENCE_ENTRY;
        const uint32_t name_at = nnames;
        uint64_t from = 0;
        for (uint32_t k = k3huf_rng_below(rng, 3); k > 0 && ntensors < TENSORS_MAX && from < e->raw_bytes; k--) {
            uint8_t *const t = tensors + (size_t)ntensors * K3HUF_REFERENCE_TENSOR;
            const uint32_t rank = k3huf_rng_below(rng, RANK_MAX + 1u);
            const uint64_t left = e->raw_bytes - from;
            const uint64_t bytes = k == 1 ? left : 1u + k3huf_rng_next(rng) % left;
            const int name_bytes =
                snprintf((char *)names + nnames, NAME_MAX, "t%u.%u", (unsigned)(ntensors % 3u), (unsigned)ntensors);
            k3huf_fuzz_put(t, 8, e->source_offset + from);
            k3huf_fuzz_put(t + 8, 8, bytes);
            k3huf_fuzz_put(t + 16, 4, i);
            k3huf_fuzz_put(t + 20, 4, nnames);
            k3huf_fuzz_put(t + 24, 4, (unsigned)name_bytes);
            k3huf_fuzz_put(t + 28, 4, rank);
            memcpy(t + 32, e->kind == 1 ? "BF16" : "F8_E4M3", e->kind == 1 ? 4 : 7);
            k3huf_fuzz_put(t + 40, 4, ndims);
            for (uint32_t d = 0; d < rank; d++, ndims++) {
                k3huf_fuzz_put(dims + 8u * ndims, 8, k3huf_rng_below(rng, 5000));
            }
            nnames += (unsigned)name_bytes;
            ntensors++;
            from += bytes;
        }
        k3huf_fuzz_put(to, 8, e->offset);
        k3huf_fuzz_put(to + 8, 8, e->bytes);
        k3huf_fuzz_put(to + 16, 8, e->source_offset);
        k3huf_fuzz_put(to + 24, 8, e->raw_bytes);
        k3huf_fuzz_put(to + 32, 4, e->crc);
        k3huf_fuzz_put(to + 36, 4, e->kind);
        k3huf_fuzz_put(to + 40, 4, name_at);
        k3huf_fuzz_put(to + 44, 4, nnames > name_at ? k3huf_rng_below(rng, nnames - name_at + 1u) : 0);
    }
    size_t size = at + (size_t)used * K3HUF_REFERENCE_ENTRY;
    memcpy(data + size, tensors, (size_t)ntensors * K3HUF_REFERENCE_TENSOR);
    size += (size_t)ntensors * K3HUF_REFERENCE_TENSOR;
    memcpy(data + size, dims, (size_t)ndims * 8u);
    size += (size_t)ndims * 8u;
    memcpy(data + size, names, nnames);
    size += nnames;
    memcpy(data, "K3HUFAR\n\1", 9);
    k3huf_fuzz_put(data + 16, 8, size);
    k3huf_fuzz_put(data + 24, 8, at);
    k3huf_fuzz_put(data + 32, 8, size - at);
    k3huf_fuzz_put(data + 44, 4, used);
    k3huf_fuzz_put(data + 48, 8, source);
    k3huf_fuzz_put(data + 60, 4, k3huf_rng_below(rng, 3));
    k3huf_fuzz_put(data + 64, 4, ntensors);
    k3huf_fuzz_put(data + 68, 4, ndims);
    k3huf_rng_fill(rng, data + K3HUF_FUZZ_ARCHIVE_CONTROL, 16);
    return size;
}

/* The entries' CRCs become those of what is there, where that is sound. */
static void fix_entries(uint8_t *data, const struct k3huf_reference_archive *archive) {
    for (uint32_t i = 0; i < archive->nentries && i < ENTRIES_MAX; i++) {
        const struct k3huf_reference_entry e = k3huf_reference_archive_entry(archive, i);
        uint8_t *const crc = data + (archive->entries - data) + (size_t)i * K3HUF_REFERENCE_ENTRY + 32;
        const uint64_t size = archive->toc_offset + archive->toc_bytes;
        size_t bytes = 0, used = 0;
        if (e.kind == 2) {
            k3huf_fuzz_put(crc, 4, k3huf_reference_crc32c_zeros(e.raw_bytes));
        } else if (e.offset <= size && e.bytes <= size - e.offset) {
            if (e.kind == 0) {
                k3huf_fuzz_put(crc, 4, k3huf_reference_crc32c(0, data + e.offset, (size_t)e.bytes));
            } else if (k3huf_reference_decode(data + e.offset, (size_t)e.bytes, raw, sizeof raw, &bytes, &used) ==
                       NULL) {
                k3huf_fuzz_put(crc, 4, k3huf_reference_crc32c(0, raw, bytes));
            }
        }
    }
}

/* One change to a field of the page, the table, or what an entry holds. */
static size_t change_once(struct k3huf_rng *rng, uint8_t *data, size_t size, size_t max_size) {
    static const uint8_t page_field[][2] = {{8, 4},  {16, 8}, {24, 8}, {32, 8}, {44, 4}, {48, 8},
                                            {56, 4}, {60, 4}, {64, 4}, {68, 4}, {72, 8}};
    static const uint8_t entry_field[][2] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}, {32, 4}, {36, 4}, {40, 4}, {44, 4}};
    static const uint8_t tensor_field[][2] = {{0, 8}, {8, 8}, {16, 4}, {20, 4}, {24, 4}, {28, 4}, {32, 8}, {40, 4}};
    struct k3huf_reference_archive archive;
    const bool whole = k3huf_reference_archive_parts(&archive, data, size) == NULL;
    const uint32_t what = k3huf_rng_below(rng, 9);
    uint8_t *at = data;
    const uint8_t *field = page_field[k3huf_rng_below(rng, sizeof page_field / 2)];
    if (what >= 2 && !whole) { return size; }
    if (what == 2 || what == 3) {
        if (archive.nentries == 0) { return size; }
        at += (archive.entries - data) + k3huf_rng_below(rng, archive.nentries) * K3HUF_REFERENCE_ENTRY;
        field = entry_field[k3huf_rng_below(rng, 8)];
    } else if (what == 4 || what == 5) {
        if (archive.ntensors == 0) { return size; }
        at += (archive.tensors - data) + k3huf_rng_below(rng, archive.ntensors) * K3HUF_REFERENCE_TENSOR;
        field = tensor_field[k3huf_rng_below(rng, 8)];
    } else if (what == 6 || what == 7) { /* inside an entry */
        if (archive.nentries == 0) { return size; }
        const struct k3huf_reference_entry e =
            k3huf_reference_archive_entry(&archive, k3huf_rng_below(rng, archive.nentries));
        if (e.offset > size || e.bytes > size - e.offset || e.bytes == 0) { return size; }
        if (e.kind == 1 && what == 6) {
            (void)k3huf_fuzz_mutate_run(data + e.offset, (size_t)e.bytes, (size_t)e.bytes,
                                        (unsigned)k3huf_rng_next(rng));
        } else {
            data[e.offset + k3huf_rng_next(rng) % e.bytes] ^= (uint8_t)(1u << k3huf_rng_below(rng, 8));
        }
        return size;
    } else if (what == 8) { /* the end moves, and the page with it or not */
        const size_t by = k3huf_rng_below(rng, 60);
        if (k3huf_rng_below(rng, 2) == 0 && max_size - size >= by) {
            memset(data + size, 0, by);
            size += by;
        } else if (size - archive.toc_offset >= by) {
            size -= by;
        }
        k3huf_fuzz_put(data + 16, 8, size);
        k3huf_fuzz_put(data + 32, 8, size - archive.toc_offset);
        return size;
    }
    at += field[0];
    if (what % 2 != 0 &&
        whole) { /* in step with others: the same field of two neighbours trades places, or a sum stays */
        const uint64_t by = k3huf_rng_below(rng, 64);
        const size_t step = what == 5 || what == 3 ? 48 : 8;
        if (field[1] == 8 && (size_t)(data + size - at) >= step + 8u) {
            k3huf_fuzz_put(at, 8, k3huf_fuzz_get(at, 8) + by);
            k3huf_fuzz_put(at + step, 8, k3huf_fuzz_get(at + step, 8) - by);
            return size;
        }
    }
    k3huf_fuzz_put(at, field[1], k3huf_fuzz_other(rng, k3huf_fuzz_get(at, field[1])));
    return size;
}

size_t k3huf_fuzz_mutate_archive(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    struct k3huf_rng rng = {seed};
    struct k3huf_reference_archive archive;
    const bool renewed = size < PAGE || k3huf_rng_below(&rng, 6) == 0;
    if (renewed) { size = build(&rng, data, max_size); }
    if (size < PAGE) { return size; }
    if (!renewed && k3huf_rng_below(&rng, 8) == 0) { size = LLVMFuzzerMutate(data, size, max_size); }
    if (k3huf_rng_below(&rng, 3) == 0 && size >= PAGE) { k3huf_rng_fill(&rng, data + K3HUF_FUZZ_ARCHIVE_CONTROL, 16); }
    for (uint32_t n = k3huf_rng_below(&rng, 4); n > 0 && size >= PAGE; n--) {
        size = change_once(&rng, data, size, max_size);
    }
    const uint32_t fixing = k3huf_rng_below(&rng, 8);
    if (fixing > 3 && k3huf_reference_archive_parts(&archive, data, size) == NULL) { fix_entries(data, &archive); }
    if (fixing > 0) { k3huf_reference_archive_seal(data, size); }
    return size;
}
