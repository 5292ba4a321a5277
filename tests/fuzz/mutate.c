/* mutate.c - see mutate.h. */
#include "mutate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

#define HEADER 288u
#define CODELEN 20u
#define STRIPE_HEADER 16u
#define INDEX_HEADER 16u
#define RAW_MAX 60000u
#define STRIPES_MAX 8u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

/* Where the parts of a stripe are that lies whole in the run. */
struct place {
    size_t header, coded, plane, filler, end;
    uint32_t raw, huf, pad;
};

static uint8_t raw[RAW_MAX];

_Noreturn void k3huf_fuzz_found(const char *what, const char *detail) {
    (void)fprintf(stderr, "found: %s: %s\n", what, detail == NULL ? "" : detail);
    abort();
}

static unsigned locate(const uint8_t *data, size_t size, struct place places[STRIPES_MAX]) {
    unsigned n = 0;
    for (size_t at = HEADER; n < STRIPES_MAX && size >= HEADER && size - at >= STRIPE_HEADER; n++) {
        struct place *const p = &places[n];
        p->raw = (uint32_t)k3huf_fuzz_get(data + at + 4, 4);
        p->huf = (uint32_t)k3huf_fuzz_get(data + at + 8, 4);
        p->pad = (uint32_t)k3huf_fuzz_get(data + at + 12, 4);
        p->header = at;
        p->coded = at + STRIPE_HEADER;
        if ((uint64_t)p->huf + p->pad + (p->raw - p->raw / 2u) > size - p->coded) { break; }
        p->plane = p->coded + p->huf;
        p->filler = p->plane + (p->raw - p->raw / 2u);
        at = p->end = p->filler + p->pad;
    }
    return n;
}

static size_t build(struct k3huf_rng *rng, uint8_t *data, size_t max_size) {
    static const uint32_t most[] = {1, 4, 60, 3000, 8300, 17000, RAW_MAX};
    uint8_t codelen[256];
    k3huf_sample_code(k3huf_rng_below(rng, K3HUF_SAMPLE_CODES), codelen);
    for (;;) { /* the smallest size always fits, as the fuzz targets are run */
        const uint32_t bytes = k3huf_rng_below(rng, most[k3huf_rng_below(rng, sizeof most / sizeof most[0])] + 1u);
        const uint32_t stripes = 1u + k3huf_rng_below(rng, 4u) % 3u;
        const struct k3huf_reference_plan plan = {
            .codelen = codelen,
            .stripe_bytes = bytes / stripes + k3huf_rng_below(rng, 3u) + 1u,
            .block_log2 = k3huf_rng_below(rng, 4) == 0 ? 0u : 12u + k3huf_rng_below(rng, 3) / 2u,
            .filler = k3huf_rng_below(rng, 3) == 0 ? k3huf_rng_below(rng, 40) : 0,
        };
        k3huf_sample_raw(codelen, k3huf_rng_next(rng), plan.stripe_bytes, raw, bytes);
        const size_t size = k3huf_reference_encode(&plan, raw, bytes, data, max_size);
        if (size > 0) { return size; }
        if (max_size < HEADER + 64u) { return 0; }
    }
}

/* Make index entries and CRCs those of what the planes hold: bit 0 of `what` block CRCs, bit 1 bit offsets, and the
 * index's own CRC in any case. */
static void fix(uint8_t *data, const struct place *p, unsigned what) {
    uint8_t *const index = data + p->filler;
    if (p->pad < INDEX_HEADER || memcmp(index, "K3IX", 4) != 0) { return; }
    const uint64_t nblocks = k3huf_fuzz_get(index + 8, 4);
    const unsigned log2 = index[6];
    if (INDEX_HEADER + 8u * nblocks > p->pad) { return; }
    struct k3huf_reference_code code;
    if (what != 0 && log2 >= 12 && log2 <= 20 && k3huf_reference_code_build(&code, data + CODELEN) == NULL) {
        uint64_t bit = 0;
        uint32_t crc = 0, i = 0;
        for (uint64_t block = 0; block < nblocks; block++) {
            const uint64_t begin = bit;
            uint8_t pair[2];
            bool good = true;
            crc = 0;
            for (; good && i < p->raw / 2u && i >> log2 == block; i++) {
                const int symbol = k3huf_reference_symbol(&code, data + p->coded, (uint64_t)p->huf * 8u, &bit);
                good = symbol >= 0;
                pair[0] = data[p->plane + i];
                pair[1] = (uint8_t)symbol;
                crc = k3huf_reference_crc32c(crc, pair, 2);
            }
            if (!good) { break; }
            if (block + 1u == nblocks && p->raw % 2u != 0) {
                crc = k3huf_reference_crc32c(crc, data + p->filler - 1, 1);
            }
            if ((what & 2u) != 0) { k3huf_fuzz_put(index + INDEX_HEADER + 8u * block, 4, begin); }
            if ((what & 1u) != 0) { k3huf_fuzz_put(index + INDEX_HEADER + 8u * block + 4u, 4, crc); }
        }
    }
    k3huf_fuzz_put(index + 12, 4, 0);
    k3huf_fuzz_put(index + 12, 4, k3huf_reference_crc32c(0, index, INDEX_HEADER + (size_t)(8u * nblocks)));
}

static void change_number(struct k3huf_rng *rng, uint8_t *at, unsigned n) {
    k3huf_fuzz_put(at, n, k3huf_fuzz_other(rng, k3huf_fuzz_get(at, n)));
}

static void change_code(struct k3huf_rng *rng, uint8_t *codelen) {
    const uint32_t a = k3huf_rng_below(rng, 256), b = k3huf_rng_below(rng, 256);
    const uint8_t kept = codelen[a];
    switch (k3huf_rng_below(rng, 4)) {
    case 0: /* another symbol gets the code */
        codelen[a] = codelen[b];
        codelen[b] = kept;
        break;
    case 1: codelen[a] = (uint8_t)k3huf_rng_below(rng, 14); break;
    case 2: /* split: as full as before */
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t symbol = (a + i) % 256u;
            if (codelen[symbol] > 0 && codelen[symbol] < 12 && codelen[b] == 0) { codelen[b] = ++codelen[symbol]; }
        }
        break;
    default: k3huf_sample_code(k3huf_rng_below(rng, K3HUF_SAMPLE_CODES), codelen); break;
    }
}

static void flip(struct k3huf_rng *rng, uint8_t *bytes, size_t size) {
    if (size > 0) { bytes[k3huf_rng_below(rng, (uint32_t)size)] ^= (uint8_t)(1u << k3huf_rng_below(rng, 8)); }
}

/* Take away or put in a few bytes at `at`, and let the 4-byte size field at `field` follow. */
static size_t resize(struct k3huf_rng *rng, uint8_t *data, size_t size, size_t max_size, size_t at, size_t field) {
    const size_t n = 1u + k3huf_rng_below(rng, 8);
    if (k3huf_rng_below(rng, 2) == 0 && max_size - size >= n) {
        memmove(data + at + n, data + at, size - at);
        memset(data + at, k3huf_rng_below(rng, 2) == 0 ? 0 : 0x5A, n);
        k3huf_fuzz_put(data + field, 4, k3huf_fuzz_get(data + field, 4) + n);
        return size + n;
    }
    if (size - at >= n) {
        memmove(data + at, data + at + n, size - at - n);
        k3huf_fuzz_put(data + field, 4, k3huf_fuzz_get(data + field, 4) - n);
        return size - n;
    }
    return size;
}

/* Repeat a stripe at the end of the run, and let the run header follow. */
static size_t repeat(uint8_t *data, size_t size, size_t max_size, const struct place *p, unsigned n) {
    const size_t bytes = p->end - p->header;
    if (max_size - size < bytes) { return size; }
    memcpy(data + size, data + p->header, bytes);
    k3huf_fuzz_put(data + size, 4, 0x4655484Bu ^ n);
    k3huf_fuzz_put(data + 8, 8, k3huf_fuzz_get(data + 8, 8) + p->raw);
    k3huf_fuzz_put(data + 16, 4, k3huf_fuzz_get(data + 16, 4) + 1u);
    return size + bytes;
}

static size_t change_once(struct k3huf_rng *rng, uint8_t *data, size_t size, size_t max_size) {
    struct place places[STRIPES_MAX];
    const unsigned n = locate(data, size, places);
    const struct place *const p = &places[n > 0 ? k3huf_rng_below(rng, n) : 0];
    if (k3huf_rng_below(rng, 4) == 0 || n == 0) {
        switch (k3huf_rng_below(rng, 5)) {
        case 0: change_number(rng, data + 8, 8); break;
        case 1: change_number(rng, data + 16, 4); break;
        case 2: change_code(rng, data + CODELEN); break;
        case 3: flip(rng, data, HEADER); break;
        default: size -= k3huf_rng_below(rng, (uint32_t)(size - HEADER) + 1u); break;
        }
        return size;
    }
    uint8_t *const index = data + p->filler;
    const bool indexed = p->pad >= INDEX_HEADER + 8u && memcmp(index, "K3IX", 4) == 0;
    const uint32_t entries = indexed ? (p->pad - INDEX_HEADER) / 8u : 1u;
    uint8_t *const entry = index + INDEX_HEADER + 8u * k3huf_rng_below(rng, entries);
    switch (k3huf_rng_below(rng, indexed ? 11u : 6u)) {
    case 0: change_number(rng, data + p->header + 4u * k3huf_rng_below(rng, 4), 4); break;
    case 1: flip(rng, data + p->coded, p->huf); break;
    case 2: flip(rng, data + p->plane, p->filler - p->plane); break;
    case 3: size = resize(rng, data, size, max_size, p->plane, p->header + 8u); break;
    case 4: size = resize(rng, data, size, max_size, p->end, p->header + 12u); break;
    case 5: size = repeat(data, size, max_size, p, n); break;
    case 6: flip(rng, index, INDEX_HEADER); break;
    case 7: k3huf_fuzz_put(entry, 4, k3huf_fuzz_get(entry, 4) + k3huf_rng_below(rng, 64) - 32u); break;
    case 8: change_number(rng, entry, 4); break;
    case 9: flip(rng, entry, 8); break;
    default: { /* a shift of all offsets but the first */
        const uint64_t by = k3huf_rng_below(rng, 32);
        for (uint32_t i = 1; i < entries; i++) {
            k3huf_fuzz_put(index + INDEX_HEADER + 8u * i, 4, k3huf_fuzz_get(index + INDEX_HEADER + 8u * i, 4) + by);
        }
        break;
    }
    }
    return size;
}

size_t k3huf_fuzz_mutate_run(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    struct k3huf_rng rng = {seed};
    uint8_t control[K3HUF_FUZZ_CONTROL_BYTES];
    if (size < HEADER || k3huf_rng_below(&rng, 8) == 0) {
        size = build(&rng, data, max_size);
        if (size > HEADER && k3huf_rng_below(&rng, 3) != 0) {
            k3huf_rng_fill(&rng, control, sizeof control);
            memcpy(data + K3HUF_FUZZ_CONTROL, control, sizeof control);
        }
        return size;
    }
    if (k3huf_rng_below(&rng, 4) == 0) { return LLVMFuzzerMutate(data, size, max_size); }
    if (k3huf_rng_below(&rng, 3) == 0) { flip(&rng, data + K3HUF_FUZZ_CONTROL, K3HUF_FUZZ_CONTROL_BYTES); }
    for (uint32_t n = 1u + k3huf_rng_below(&rng, 3); n > 0; n--) {
        size = change_once(&rng, data, size, max_size);
    }
    const uint32_t fixing = k3huf_rng_below(&rng, 6);
    struct place places[STRIPES_MAX];
    const unsigned n = fixing < 4 ? locate(data, size, places) : 0;
    for (unsigned i = 0; i < n; i++) {
        fix(data, &places[i], fixing);
    }
    return size;
}
