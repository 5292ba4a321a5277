/* test_planes.c - coded planes without index that end early or late, or hold bits that are no code: status, place and
 * what is given out, with every way to chunk the run. */
#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

#define RAW_MAX 12000u
#define RUN_MAX (2u * RAW_MAX)

static uint8_t raw[RAW_MAX], run[RUN_MAX], good[RUN_MAX], out[RAW_MAX], codelen[256];
static size_t raw_size, run_size, good_size;
static uint32_t stripe_bytes;
/* Of stripe 1, the last one. */
static size_t header, coded;
static uint32_t huf, symbols;

static uint32_t get(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put(uint8_t *bytes, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

static void restore(void) {
    memcpy(run, good, good_size);
    run_size = good_size;
}

/* Two stripes, the second of `size` bytes. */
static void build(unsigned which, uint32_t size) {
    stripe_bytes = size + 1u;
    raw_size = stripe_bytes + size;
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, 0, 0};
    k3huf_sample_code(which, codelen);
    k3huf_sample_raw(codelen, which + size, stripe_bytes, raw, raw_size);
    good_size = k3huf_reference_encode(&plan, raw, raw_size, good, sizeof good);
    assert_true(good_size > 0);
    header = 288u + 16u + get(good + 288 + 8) + stripe_bytes - stripe_bytes / 2u;
    coded = header + 16u;
    huf = get(good + header + 8);
    symbols = size / 2u;
    restore();
}

/* First bit of symbol `n` of stripe 1; that behind the last code for n = symbols. */
static uint64_t bit_of(uint32_t n) {
    uint64_t bit = 0;
    for (uint32_t i = 0; i < n; i++) {
        bit += codelen[raw[stripe_bytes + 2u * i + 1u]];
    }
    return bit;
}

/* Are there codes that fill a plane of `bytes` bytes? If not, the stripe's header is refused. */
static bool possible(uint32_t bytes) {
    uint32_t shortest = 12, longest = 1;
    for (unsigned i = 0; i < 256; i++) {
        if (codelen[i] > 0 && codelen[i] < shortest) { shortest = codelen[i]; }
        if (codelen[i] > longest) { longest = codelen[i]; }
    }
    return bytes >= (symbols * shortest + 7u) / 8u && bytes <= (symbols * longest + 7u) / 8u;
}

static unsigned tried;

/* The plane of stripe 1 fails in every mode, at byte `at` of it; at most `whole` symbols of it come out. */
static void fails(const char *what, enum k3huf_status status, uint64_t at, uint32_t whole) {
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
        struct k3huf_feed feed = {
            .run = run, .run_size = run_size, .out = out, .out_size = raw_size, .expected = raw, .seed = mode};
        const char *const name = k3huf_feed_mode(&feed, mode);
        k3huf_feed_run(&feed);
        const size_t most = stripe_bytes + (feed.one_cursor ? 0 : 2u * whole);
        if (feed.fault != NULL || feed.status != status || feed.place.stripe != 1 ||
            feed.place.block != K3HUF_NO_BLOCK || feed.place.offset != coded + at || feed.produced < stripe_bytes ||
            feed.produced > most) {
            fail_msg(
                "%s, %u symbols, %s: %s; \"%s\" in stripe %d, block %d at byte %d of the plane, not %d; %u bytes of "
                "%u to %u",
                what, (unsigned)symbols, name, feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status),
                (int)feed.place.stripe, (int)feed.place.block, (int)(feed.place.offset - coded), (int)at,
                (unsigned)feed.produced, (unsigned)stripe_bytes, (unsigned)most);
        }
    }
    restore();
    tried++;
}

static const uint32_t sizes[] = {41, 120, 501, 5600};
static const unsigned codes[] = {4, 5, 7, 13, 20};

static void planes_that_end_early(void **state) {
    (void)state;
    tried = 0;
    for (size_t i = 0; i < UNIT_COUNT(sizes) * UNIT_COUNT(codes); i++) {
        build(codes[i / UNIT_COUNT(sizes)], sizes[i % UNIT_COUNT(sizes)]);
        for (uint32_t less = 1; less <= 3 && possible(huf - less); less++) {
            uint32_t whole = 0;
            while (bit_of(whole + 1u) <= 8u * (huf - less)) {
                whole++;
            }
            memmove(run + coded + huf - less, run + coded + huf, good_size - coded - huf);
            put(run + header + 8, huf - less);
            run_size = good_size - less;
            fails("a plane cut short", K3HUF_E_CODED_SHORT, bit_of(whole) / 8u, whole);
        }
    }
    assert_true(tried > 30);
}

static void planes_that_go_on(void **state) {
    (void)state;
    tried = 0;
    for (size_t i = 0; i < UNIT_COUNT(sizes) * UNIT_COUNT(codes); i++) {
        build(codes[i / UNIT_COUNT(sizes)], sizes[i % UNIT_COUNT(sizes)]);
        const uint64_t end = bit_of(symbols);
        for (uint32_t more = 1; more <= 9 && possible(huf + more); more += 4) { /* bytes of 0 */
            memmove(run + coded + huf + more, run + coded + huf, good_size - coded - huf);
            memset(run + coded + huf, 0, more);
            put(run + header + 8, huf + more);
            run_size = good_size + more;
            fails("bytes behind the last code", K3HUF_E_CODED_LONG, end / 8u, symbols);
        }
        for (unsigned bit = (unsigned)(end % 8u); bit > 0 && bit < 8; bit++) {
            run[coded + huf - 1u] = (uint8_t)(run[coded + huf - 1u] | (0x80u >> bit));
            fails("a bit behind the last code", K3HUF_E_CODED_LONG, end / 8u, symbols);
        }
    }
    assert_true(tried > 50);
}

/* In this code twelve ones are none. */
static void bits_that_are_no_code(void **state) {
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(sizes); i++) {
        build(5, sizes[i]);
        for (uint32_t n = 0; n < symbols && bit_of(n) + 12u <= bit_of(symbols); n += 1u + n / 2u) {
            for (uint64_t bit = bit_of(n); bit < bit_of(n) + 12u; bit++) {
                run[coded + bit / 8u] = (uint8_t)(run[coded + bit / 8u] | (0x80u >> (bit % 8u)));
            }
            fails("no code", K3HUF_E_CODE_WORD, bit_of(n) / 8u, n);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_that_end_early),
        cmocka_unit_test(planes_that_go_on),
        cmocka_unit_test(bits_that_are_no_code),
    };
    return cmocka_run_group_tests_name("planes", tests, NULL, NULL);
}
