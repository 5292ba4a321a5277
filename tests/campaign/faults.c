/* faults.c - see faults.h. */
#include "faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const k3huf_kind_names[KINDS] = {"single bit", "burst", "swap", "truncation"};

static void flip(uint8_t *bytes, size_t bit) { bytes[bit / 8u] ^= (uint8_t)(1u << (bit % 8u)); }

size_t k3huf_put_fault(enum k3huf_fault_kind kind, struct k3huf_rng *rng, const uint8_t *good, size_t size, size_t from,
                       size_t to, uint8_t *damaged) {
    memcpy(damaged, good, size);
    switch (kind) {
    case KIND_BIT: flip(damaged, from * 8u + k3huf_rng_below(rng, (uint32_t)(to - from) * 8u)); break;
    case KIND_BURST: {
        const uint32_t bits = 2u + k3huf_rng_below(rng, k3huf_rng_below(rng, 2) == 0 ? 31u : 255u);
        const size_t last = size * 8u - bits; /* where it can begin */
        const size_t end = to * 8u < last ? to * 8u : last;
        const size_t begin = from * 8u < end ? from * 8u : end - 1u;
        const size_t at = begin + k3huf_rng_below(rng, (uint32_t)(end - begin));
        flip(damaged, at);
        flip(damaged, at + bits - 1u);
        for (uint32_t i = 1; i < bits - 1u; i++) {
            if ((k3huf_rng_next(rng) >> 63) != 0) { flip(damaged, at + i); }
        }
        break;
    }
    case KIND_SWAP:
        do {
            const uint32_t bytes = 1u + k3huf_rng_below(rng, 64);
            const size_t end = to < size - bytes + 1u ? to : size - bytes + 1u;
            const size_t begin = from < end ? from : end - 1u;
            const size_t a = begin + k3huf_rng_below(rng, (uint32_t)(end - begin));
            const size_t b = k3huf_rng_below(rng, (uint32_t)(size - bytes + 1u));
            if (a + bytes <= b || b + bytes <= a) {
                memcpy(damaged + a, good + b, bytes);
                memcpy(damaged + b, good + a, bytes);
            }
        } while (memcmp(damaged, good, size) == 0);
        break;
    default: return from + k3huf_rng_below(rng, (uint32_t)(to - from));
    }
    return size;
}

static void print_row(const char *name, const struct k3huf_count *c) {
    (void)printf("%-12s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %10" PRIu64 " %9.4f%%\n", name, c->faults, c->refused,
                 c->exact, c->undetected, c->faults == 0 ? 0.0 : 100.0 * (double)c->undetected / (double)c->faults);
}

struct k3huf_count k3huf_print_counts(const char *what, uint64_t seed, const char *const *names,
                                      const struct k3huf_count *counts, unsigned n) {
    struct k3huf_count sum = {0};
    for (unsigned i = 0; i < n; i++) {
        sum.faults += counts[i].faults;
        sum.refused += counts[i].refused;
        sum.exact += counts[i].exact;
        sum.undetected += counts[i].undetected;
    }
    (void)printf("%s, %" PRIu64 " faults, seed %" PRIu64 "\n%-12s %9s %9s %9s %10s %10s\n", what, sum.faults, seed,
                 "fault", "faults", "refused", "exact", "undetected", "share");
    for (unsigned i = 0; i < n; i++) {
        print_row(names[i], &counts[i]);
    }
    print_row("all", &sum);
    return sum;
}
