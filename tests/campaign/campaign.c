/* campaign.c - corruption campaign: seeded faults of storage in good runs, and what the decoder made of each.
 *
 *   campaign FAULTS [SEED]
 *
 * FAULTS faults are put, one at a time, into runs with a block index that is required, into the same without requiring
 * it, and into runs without index, and decoded with one cursor and with two. The tables count by kind of fault what
 * came of it:
 *
 *   refused    a status that is an error
 *   exact      the right bytes: the fault hit bits that are not looked at
 *   undetected wrong bytes without a word
 *
 * Where the index is required none may be undetected: one is enough for exit code 1. Where it is not, a fault that
 * hides an index (its magic is all that tells it from plain filler) takes the protection with it. Without an index
 * there is next to none, and the table says how little. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feeder.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

#define RAW_MAX 30000u
#define RUN_MAX 64000u
#define FILLER 24u

enum kind { KIND_BIT, KIND_BURST, KIND_SWAP, KIND_CUT, KINDS };
static const char *const kind_names[KINDS] = {"single bit", "burst", "swap", "truncation"};

struct count {
    uint64_t faults, refused, exact, undetected;
};

static uint8_t raw[RAW_MAX], run[RUN_MAX], damaged[RUN_MAX], out[RAW_MAX], index_memory[4096];
static size_t raw_size, run_size;

/* Shapes of runs: one stripe and several, odd and even, whole and part blocks, under-full codes and full ones. */
static const struct {
    unsigned code;
    uint32_t size, stripe, log2;
} shapes[] = {
    {13, 24577, 24577, 12}, {20, 30000, 10001, 12}, {4, 16384, 16384, 12}, {8, 9003, 3000, 12},
    {25, 29999, 29999, 13}, {11, 20000, 8194, 12},  {0, 12000, 12000, 12}, {22, 300, 100, 12},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static void build(unsigned shape, bool indexed) {
    uint8_t codelen[256];
    const struct k3huf_reference_plan plan = {codelen, shapes[shape].stripe, indexed ? shapes[shape].log2 : 0,
                                              shape % 2u * FILLER};
    k3huf_sample_code(shapes[shape].code, codelen);
    raw_size = shapes[shape].size;
    k3huf_sample_raw(codelen, shape, plan.stripe_bytes, raw, raw_size);
    run_size = k3huf_reference_encode(&plan, raw, raw_size, run, sizeof run);
    if (run_size == 0) {
        (void)fprintf(stderr, "campaign: shape %u does not fit\n", shape);
        exit(2);
    }
}

static void flip(uint8_t *bytes, uint32_t bit) { bytes[bit / 8u] ^= (uint8_t)(1u << (bit % 8u)); }

/* Put one fault into `damaged`; returns its size. There is always a difference to `run`. */
static size_t damage(enum kind kind, struct k3huf_rng *rng) {
    const uint32_t size = (uint32_t)run_size;
    memcpy(damaged, run, run_size);
    switch (kind) {
    case KIND_BIT: flip(damaged, k3huf_rng_below(rng, size * 8u)); break;
    case KIND_BURST: { /* 2 to 256 bits from the first that is wrong to the last, those between at random */
        const uint32_t bits = 2u + k3huf_rng_below(rng, k3huf_rng_below(rng, 2) == 0 ? 31u : 255u);
        const uint32_t at = k3huf_rng_below(rng, size * 8u - bits);
        flip(damaged, at);
        flip(damaged, at + bits - 1u);
        for (uint32_t i = 1; i < bits - 1u; i++) {
            if ((k3huf_rng_next(rng) >> 63) != 0) { flip(damaged, at + i); }
        }
        break;
    }
    case KIND_SWAP: /* two spans of 1 to 64 bytes trade places */
        do {
            const uint32_t bytes = 1u + k3huf_rng_below(rng, 64);
            const uint32_t a = k3huf_rng_below(rng, size - bytes + 1u), b = k3huf_rng_below(rng, size - bytes + 1u);
            if (a + bytes <= b || b + bytes <= a) {
                memcpy(damaged + a, run + b, bytes);
                memcpy(damaged + b, run + a, bytes);
            }
        } while (memcmp(damaged, run, run_size) == 0);
        break;
    default: return k3huf_rng_below(rng, size);
    }
    return run_size;
}

static void one_fault(enum kind kind, bool required, struct k3huf_rng *rng, struct count *count) {
    const size_t size = damage(kind, rng);
    struct k3huf_feed feed = {.run = damaged,
                              .run_size = size,
                              .out = out,
                              .out_size = raw_size,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .require_index = required,
                              .seed = k3huf_rng_next(rng)};
    /* Whole spans in most cases, which is fast; else chunks up to 5000 and 70000 bytes. */
    const uint32_t mode = k3huf_rng_below(rng, 16);
    (void)k3huf_feed_mode(&feed, mode < 14u ? mode % K3HUF_FEED_MODES_WHOLE : mode + 2u);
    k3huf_feed_run(&feed);
    count->faults++;
    const bool right = feed.produced == raw_size && memcmp(out, raw, raw_size) == 0;
    if (feed.fault != NULL) {
        (void)fprintf(stderr, "campaign: the decoder broke its contract: %s\n", feed.fault);
        exit(1);
    }
    if (k3huf_is_error(feed.status) || feed.status == K3HUF_WAIT) {
        count->refused++; /* WAIT: claims more than there is room for */
    } else if (right) {
        count->exact++;
    } else {
        count->undetected++;
    }
}

static void print_row(const char *name, const struct count *c) {
    (void)printf("%-12s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %10" PRIu64 " %9.4f%%\n", name, c->faults, c->refused,
                 c->exact, c->undetected, c->faults == 0 ? 0.0 : 100.0 * (double)c->undetected / (double)c->faults);
}

/* Returns the undetected ones. */
static uint64_t campaign(const char *what, bool indexed, bool required, uint64_t faults, uint64_t seed) {
    struct k3huf_rng rng = {seed};
    struct count counts[KINDS] = {{0}}, sum = {0};
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        const uint64_t share = faults / SHAPES + (shape < faults % SHAPES);
        build(shape, indexed);
        for (uint64_t i = 0; i < share; i++) {
            const enum kind kind = (enum kind)((i + shape) % KINDS);
            one_fault(kind, required, &rng, &counts[kind]);
        }
    }
    (void)printf("%s, %" PRIu64 " faults, seed %" PRIu64 "\n%-12s %9s %9s %9s %10s %10s\n", what, faults, seed, "fault",
                 "faults", "refused", "exact", "undetected", "share");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        print_row(kind_names[kind], &counts[kind]);
        sum.faults += counts[kind].faults;
        sum.refused += counts[kind].refused;
        sum.exact += counts[kind].exact;
        sum.undetected += counts[kind].undetected;
    }
    print_row("all", &sum);
    return sum.undetected;
}

int main(int argc, char **argv) {
    char *end = NULL;
    const uint64_t faults = argc > 1 ? strtoull(argv[1], &end, 10) : 0;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc > 3 || faults == 0 || *end != '\0') {
        (void)fprintf(stderr, "usage: campaign FAULTS [SEED]\n");
        return 2;
    }
    const uint64_t undetected = campaign("block index, required", true, true, faults, seed);
    (void)campaign("block index, not required", true, false, faults, seed);
    (void)campaign("no block index", false, false, faults, seed);
    if (undetected > 0) {
        (void)printf("campaign: %" PRIu64 " faults went undetected although an index was required\n", undetected);
        return 1;
    }
    return 0;
}
