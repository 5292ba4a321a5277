/* numbers.h - little-endian numbers of n bytes, and numbers that break readers: for the fuzz targets and mutators. */
#ifndef K3HUF_FUZZ_NUMBERS_H
#define K3HUF_FUZZ_NUMBERS_H

#include <stdint.h>

#include "rng.h"

static inline uint64_t k3huf_fuzz_get(const uint8_t *bytes, unsigned n) {
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value |= (uint64_t)bytes[i] << (8u * i);
    }
    return value;
}

static inline void k3huf_fuzz_put(uint8_t *bytes, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

/* A number in place of `value`: a border of some field or integer, a bit off, or a little more or less. */
static inline uint64_t k3huf_fuzz_other(struct k3huf_rng *rng, uint64_t value) {
    static const uint64_t special[] = {0,          1,          2,          UINT32_MAX,  UINT32_MAX - 1u,
                                       0x80000000, 67108864,   67108865,   UINT64_MAX,  UINT64_C(1) << 32,
                                       4096,       0x7FFFFFFF, 0x1FFFFFFF, 0x20000000u, UINT64_C(1) << 63};
    switch (k3huf_rng_below(rng, 4)) {
    case 0: return special[k3huf_rng_below(rng, sizeof special / sizeof special[0])];
    case 1: return value ^ (UINT64_C(1) << k3huf_rng_below(rng, 32));
    case 2: return value + 1u + k3huf_rng_below(rng, 16);
    default: return value - 1u - k3huf_rng_below(rng, 16);
    }
}

#endif
