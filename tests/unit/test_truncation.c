/* test_truncation.c - small runs cut at every byte and with every bit flipped: always a status or the right bytes,
 * never a hang (the feeder counts calls). What is right for a damaged run is decided by the reference decoder. */
#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "samples.h"

#define RAW_MAX 12000u
#define RUN_MAX 24000u

static uint8_t raw[RAW_MAX], run[RUN_MAX], out[RAW_MAX], witness[RAW_MAX], index_memory[128];
static size_t raw_size, run_size;

static void build(unsigned which, size_t size, uint32_t stripe_bytes, unsigned log2, uint32_t filler) {
    uint8_t codelen[256];
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, log2, filler};
    k3huf_sample_code(which, codelen);
    k3huf_sample_raw(codelen, size, stripe_bytes, raw, size);
    run_size = k3huf_reference_encode(&plan, raw, size, run, sizeof run);
    assert_true(run_size > 0);
    raw_size = size;
}

/* Runs of one to three stripes, odd and even sizes, with and without index and filler. */
static const struct {
    unsigned code;
    size_t size;
    uint32_t stripe;
    unsigned log2;
    uint32_t filler;
} plans[] = {
    {13, 0, 100, 0, 0}, {13, 1, 100, 0, 0},  {1, 2, 100, 0, 0},   {13, 3, 100, 12, 0},
    {4, 41, 100, 0, 0}, {5, 40, 100, 12, 0}, {8, 60, 31, 0, 0},   {13, 61, 31, 12, 3},
    {4, 75, 25, 0, 5},  {0, 50, 20, 12, 0},  {2, 33, 11, 12, 17}, {7, 90, 100, 0, 4},
};

static struct k3huf_feed feed_in(unsigned mode, size_t size) {
    struct k3huf_feed feed = {.run = run,
                              .run_size = size,
                              .out = out,
                              .out_size = raw_size,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .seed = mode + size};
    (void)k3huf_feed_mode(&feed, mode);
    return feed;
}

/* Bytes of `run` that a decoder with two cursors has to see: it does not read the last stripe's filler, but for its
 * index or the four bytes that tell there is none. */
static size_t needed_with_two_cursors(unsigned log2, uint32_t filler, uint32_t last_stripe_bytes) {
    const uint32_t looked_at = log2 != 0 && last_stripe_bytes > 1 ? 0 : last_stripe_bytes > 1 && filler >= 4 ? 4 : 0;
    return raw_size == 0 ? 288 : run_size - filler + looked_at;
}

static void cut_at_every_byte(void **state) {
    (void)state;
    for (size_t p = 0; p < UNIT_COUNT(plans); p++) {
        build(plans[p].code, plans[p].size, plans[p].stripe, plans[p].log2, plans[p].filler);
        const uint32_t last = raw_size == 0 ? 0 : (uint32_t)((raw_size - 1u) % plans[p].stripe) + 1u;
        const size_t enough = needed_with_two_cursors(plans[p].log2, plans[p].filler, last);
        for (size_t size = 0; size <= run_size; size++) {
            for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
                if (mode >= K3HUF_FEED_MODES_WHOLE && (mode + size) % 7u != 0) {
                    continue; /* bounds the time; every mode meets every seventh cut of every plan */
                }
                struct k3huf_feed feed = feed_in(mode, size);
                feed.expected = raw;
                k3huf_feed_run(&feed);
                const bool whole = size >= (feed.one_cursor ? run_size : enough);
                const enum k3huf_status status = whole ? K3HUF_DONE : K3HUF_E_TRUNCATED;
                /* With one cursor the place is the first byte that is missing; with two it may be a later one. */
                const bool place = feed.one_cursor ? feed.place.offset == size : feed.place.offset <= run_size;
                if (feed.fault != NULL || feed.status != status ||
                    (whole ? feed.produced != raw_size || feed.run_end != run_size : !place)) {
                    fail_msg("plan %u, %u of %u bytes, mode %u: %s; \"%s\" at %u instead of \"%s\"", (unsigned)p,
                             (unsigned)size, (unsigned)run_size, mode, feed.fault == NULL ? "" : feed.fault,
                             k3huf_status_text(feed.status), (unsigned)feed.place.offset, k3huf_status_text(status));
                }
            }
        }
    }
}

/* Decode the damaged `run` in `mode` and by the reference. Both must come to the same verdict and, if it is a good one,
 * the same bytes. */
static void compare(unsigned mode, const char *wrong, size_t raw_bytes, unsigned plan, size_t bit) {
    struct k3huf_feed feed = feed_in(mode, run_size);
    k3huf_feed_run(&feed);
    /* With two cursors the last filler is not read: that it is there is for the caller to see. */
    const bool done = feed.status == K3HUF_DONE && feed.run_end <= run_size;
    if (feed.fault != NULL || done != (wrong == NULL) || (feed.status != K3HUF_DONE && !k3huf_is_error(feed.status)) ||
        (done && (feed.produced != raw_bytes || memcmp(out, witness, raw_bytes) != 0))) {
        fail_msg("plan %u, byte %u, bit %u, mode %u: %s; \"%s\" where the reference says \"%s\"", plan,
                 (unsigned)(bit / 8), (unsigned)(bit % 8), mode, feed.fault == NULL ? "" : feed.fault,
                 k3huf_status_text(feed.status), wrong == NULL ? "good" : wrong);
    }
}

static void every_bit_flipped(void **state) {
    (void)state;
    for (unsigned p = 0; p < UNIT_COUNT(plans); p++) {
        build(plans[p].code, plans[p].size, plans[p].stripe, plans[p].log2, plans[p].filler);
        for (size_t bit = 0; bit < run_size * 8u; bit++) {
            size_t raw_bytes, used;
            run[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            const char *wrong = k3huf_reference_decode(run, run_size, witness, raw_size, &raw_bytes, &used);
            for (unsigned mode = (unsigned)(bit % 9u); mode < K3HUF_FEED_MODES; mode += 9) {
                compare(mode, wrong, raw_bytes, p, bit);
            }
            /* With an index no flip may pass unseen. */
            if (wrong == NULL && plans[p].log2 != 0) { assert_memory_equal(witness, raw, raw_size); }
            run[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
    }
}

/* An indexed run of two blocks: flips in its headers, index and coded plane, and in some of its raw bytes, are found or
 * change nothing. Too long for the reference at every bit; the original is the witness. */
static void flips_in_an_indexed_run(void **state) {
    (void)state;
    build(1, 8400, 8400, 12, 6);
    const size_t coded_end = 288 + 16 + 525, filler = coded_end + 4200;
    assert_int_equal(run_size, filler + 16 + 2 * 8 + 6);
    unsigned mode = 0;
    for (size_t bit = 0; bit < run_size * 8u; bit += bit / 8u >= coded_end && bit / 8u < filler ? 41 : 1) {
        const bool ignored = (bit / 8u >= 276 && bit / 8u < 288) || bit / 8u >= filler + 32;
        struct k3huf_feed feed = feed_in(mode % K3HUF_FEED_MODES_WHOLE, run_size);
        mode++;
        run[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        k3huf_feed_run(&feed);
        run[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        if (feed.fault != NULL || (feed.status == K3HUF_DONE && memcmp(out, raw, raw_size) != 0) ||
            (feed.status != K3HUF_DONE && (ignored || !k3huf_is_error(feed.status)))) {
            fail_msg("byte %u, bit %u, mode %u: %s; \"%s\"", (unsigned)(bit / 8), (unsigned)(bit % 8), mode - 1u,
                     feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status));
        }
    }
}

/* Sizes that claim the largest there is, in every field that holds one. */
static void huge_sizes(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        unsigned bytes;
    } fields[] = {{8, 8}, {16, 4}, {288 + 4, 4}, {288 + 8, 4}, {288 + 12, 4}};
    static const uint8_t tops[] = {0xFF, 0x7F, 0x80, 0x00};
    for (size_t f = 0; f < UNIT_COUNT(fields); f++) {
        for (size_t t = 0; t < UNIT_COUNT(tops); t++) {
            for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
                build(13, 60, 30, 12, 0);
                memset(run + fields[f].offset, tops[t] == 0x80 || tops[t] == 0 ? 0 : 0xFF, fields[f].bytes);
                run[fields[f].offset + fields[f].bytes - 1u] = tops[t];
                struct k3huf_feed feed = feed_in(mode, run_size);
                k3huf_feed_run(&feed);
                assert_null(feed.fault);
                assert_true(k3huf_is_error(feed.status));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(every_bit_flipped),
        cmocka_unit_test(flips_in_an_indexed_run),
        cmocka_unit_test(huge_sizes),
    };
    return cmocka_run_group_tests_name("truncation", tests, NULL, NULL);
}
