/* k3_histogram.c - see k3_histogram.h. */
#include "k3_histogram.h"

const uint64_t k3huf_k3_histogram[K3HUF_SYMBOLS] = {
    [50] = 2,      [51] = 3,      [52] = 7,       [53] = 40,      [54] = 179,     [55] = 624,  [56] = 2582,
    [57] = 10293,  [58] = 41695,  [59] = 164903,  [60] = 519798,  [61] = 309278,  [62] = 190,  [177] = 1,
    [178] = 1,     [179] = 2,     [180] = 10,     [181] = 32,     [182] = 176,    [183] = 633, [184] = 2573,
    [185] = 10473, [186] = 41711, [187] = 164459, [188] = 518923, [189] = 308338, [190] = 226};

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* A drawn number's top bits tell where in the cumulative histogram to start looking. */
#define GUIDE_BITS 12u

void k3huf_generate(uint8_t *data, size_t size, uint64_t seed, const uint64_t histogram[K3HUF_SYMBOLS]) {
    uint64_t below[K3HUF_SYMBOLS + 1] = {0}; /* counts of the smaller symbols, as a fraction of 2^32 of their sum */
    uint8_t guide[1u << GUIDE_BITS];
    uint64_t sum = 0;
    for (unsigned s = 0; s < K3HUF_SYMBOLS; s++) {
        sum += histogram[s];
    }
    uint64_t count = 0;
    for (unsigned s = 0; s < K3HUF_SYMBOLS; s++) {
        count += histogram[s];
        /* Rounded up, which keeps a symbol with count 0 out and one with count 1 in. 64 bits hold it: sum <= 2^32. */
        below[s + 1] = (count << 31) / sum * 2 + ((count << 31) % sum * 2 + sum - 1) / sum;
    }
    for (uint32_t g = 0, s = 0; g < 1u << GUIDE_BITS; g++) {
        while (below[s + 1] <= (uint64_t)g << (32u - GUIDE_BITS)) {
            s++;
        }
        guide[g] = (uint8_t)s;
    }
    uint64_t state = seed;
    for (size_t i = 0; i < size; i += 2) {
        uint64_t random = next_random(&state);
        uint32_t draw = (uint32_t)(random >> 32);
        unsigned s = guide[draw >> (32u - GUIDE_BITS)];
        while (below[s + 1] <= draw) {
            s++;
        }
        data[i] = (uint8_t)random;
        if (i + 1 < size) { data[i + 1] = (uint8_t)s; }
    }
}
