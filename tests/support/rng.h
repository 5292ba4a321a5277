/* rng.h - a small seeded generator of pseudo-random numbers for the tests (SplitMix64: Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014). The same seed gives the same numbers on every target. */
#ifndef K3HUF_TEST_RNG_H
#define K3HUF_TEST_RNG_H

#include <stddef.h>
#include <stdint.h>

struct k3huf_rng {
    uint64_t state; /* the seed, to begin with */
};

static inline uint64_t k3huf_rng_next(struct k3huf_rng *rng) {
    rng->state += 0x9E3779B97F4A7C15u;
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A number from 0 to bound - 1. The small bias towards low numbers does not matter here. */
static inline uint32_t k3huf_rng_below(struct k3huf_rng *rng, uint32_t bound) {
    return (uint32_t)(((k3huf_rng_next(rng) >> 32) * bound) >> 32);
}

static inline void k3huf_rng_fill(struct k3huf_rng *rng, uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(k3huf_rng_next(rng) >> 56);
}

#endif
