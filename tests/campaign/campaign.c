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

#include "faults.h"
#include "feeder.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

#define RAW_MAX 30000u
#define RUN_MAX 64000u
#define FILLER 24u

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

static void one_fault(enum k3huf_fault_kind kind, bool required, struct k3huf_rng *rng, struct k3huf_count *count) {
    const size_t size = k3huf_put_fault(kind, rng, run, run_size, 0, run_size, damaged);
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

/* Returns the undetected ones. */
static uint64_t campaign(const char *what, bool indexed, bool required, uint64_t faults, uint64_t seed) {
    struct k3huf_rng rng = {seed};
    struct k3huf_count counts[KINDS] = {{0}};
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        const uint64_t share = faults / SHAPES + (shape < faults % SHAPES);
        build(shape, indexed);
        for (uint64_t i = 0; i < share; i++) {
            const enum k3huf_fault_kind kind = (enum k3huf_fault_kind)((i + shape) % KINDS);
            one_fault(kind, required, &rng, &counts[kind]);
        }
    }
    return k3huf_print_counts(what, seed, k3huf_kind_names, counts, KINDS).undetected;
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
    const uint64_t optional = campaign("block index, not required", true, false, faults, seed);
    const uint64_t bare = campaign("no block index", false, false, faults, seed);
    (void)printf("trust: corruption of runs | %" PRIu64 " faults each with index required, not required, without index "
                 "| %" PRIu64 " undetected with it required, none allowed; else %" PRIu64 " and %" PRIu64
                 ", where nothing is checked\n",
                 faults, undetected, optional, bare);
    if (undetected > 0) {
        (void)printf("campaign: %" PRIu64 " faults went undetected although an index was required\n", undetected);
        return 1;
    }
    return 0;
}
