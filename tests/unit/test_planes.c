/* test_planes.c - stripes without index through the decoder: headers that are wrong, coded planes that end early or
 * late or hold bits that are no code. Status, place and what is given out, with every way to chunk the run; and what
 * the decoder says that it wants next. */
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

static void bad_stripe_headers(void **state) {
    (void)state;
    build(13, 501);
    /* Offsets are from the stripe's header, which lies 16 bytes before its coded plane. */
    run[header] ^= 1;
    fails("magic", K3HUF_E_STRIPE_MAGIC, (uint64_t)0 - 16u, 0);
    put(run + header + 4, 502);
    fails("raw bytes", K3HUF_E_STRIPE_RAW, (uint64_t)0 - 16u + 4u, 0);
    put(run + header + 8, 0);
    fails("coded bytes", K3HUF_E_STRIPE_CODED, (uint64_t)0 - 16u + 8u, 0);
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

/* ---- what is wanted next */

static struct k3huf_decoder decoder;
static struct k3huf_workspace workspace;
static struct k3huf_need need;

static void wants(enum k3huf_part part, uint64_t coded_offset, uint64_t coded_bytes, uint64_t raw_offset,
                  uint64_t raw_bytes, uint64_t out_offset, uint32_t out_bytes) {
    k3huf_decoder_need(&decoder, &need);
    assert_int_equal(need.part, part);
    assert_int_equal(need.coded_offset, coded_offset);
    assert_int_equal(need.coded_bytes, coded_bytes);
    assert_int_equal(need.raw_offset, raw_offset);
    assert_int_equal(need.raw_bytes, raw_bytes);
    assert_int_equal(need.out_offset, out_offset);
    assert_int_equal(need.out_bytes, out_bytes);
}

/* Give `n` bytes of the coded cursor and `n_raw` of the raw one from where they are wanted, and `n_out` for output. */
static enum k3huf_status give(size_t n, size_t n_raw, size_t n_out) {
    k3huf_decoder_need(&decoder, &need);
    struct k3huf_io io = {.coded = run + need.coded_offset,
                          .coded_size = n,
                          .raw = run + need.raw_offset,
                          .raw_size = n_raw,
                          .out = out + need.out_offset,
                          .out_size = n_out};
    return k3huf_decode(&decoder, &io);
}

/* A run of two stripes with index and filler behind it, 5 and 4 raw bytes: each part as a whole. */
static void what_is_wanted(void **state) {
    (void)state;
    static uint8_t index[24];
    const struct k3huf_reference_plan plan = {codelen, 5, 12, 7};
    k3huf_sample_code(1, codelen); /* two symbols of one bit: a coded plane is one byte */
    k3huf_sample_raw(codelen, 9, 5, raw, 9);
    run_size = k3huf_reference_encode(&plan, raw, 9, run, sizeof run);
    assert_int_equal(run_size, 288u + (16u + 1u + 3u + 31u) + (16u + 1u + 2u + 31u));
    for (unsigned one = 0; one < 2; one++) {
        const struct k3huf_config config = {
            .one_cursor = one == 1, .index = index, .index_size = sizeof index, .workspace = &workspace};
        memset(out, 0, 9);
        assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
        wants(K3HUF_PART_RUN_HEADER, 0, 288, 0, 0, 0, 0);
        assert_status(give(100, 0, 0), K3HUF_OK);
        wants(K3HUF_PART_RUN_HEADER, 100, 188, 0, 0, 0, 0);
        assert_status(give(0, 0, 0), K3HUF_WAIT);
        assert_status(give(188, 0, 0), K3HUF_OK);
        uint64_t at = 288, done = 0;
        for (uint32_t size = 5; size >= 4; size--) {
            const uint64_t filler = at + 16u + 1u + (size + 1u) / 2u;
            wants(K3HUF_PART_STRIPE_HEADER, at, 16, 0, 0, done, 0);
            assert_status(give(16, 0, 0), K3HUF_OK);
            if (one == 1) {
                wants(K3HUF_PART_CODED, at + 16u, 1, 0, 0, done, size);
                assert_status(give(1, 0, size - 1u), K3HUF_WAIT);
                assert_status(give(1, 0, size), K3HUF_OK);
                wants(K3HUF_PART_RAW, at + 17u, (size + 1u) / 2u, 0, 0, done, size);
                assert_status(give(1, 0, size), K3HUF_OK);
                wants(K3HUF_PART_RAW, at + 18u, (size + 1u) / 2u - 1u, 0, 0, done, size);
                assert_status(give(2, 0, size), K3HUF_OK);
            }
            const uint32_t window = one == 1 ? size : 0;
            wants(K3HUF_PART_INDEX, filler, 4, 0, 0, done, window);
            assert_status(give(3, 0, window), K3HUF_OK);
            wants(K3HUF_PART_INDEX, filler + 3u, 1, 0, 0, done, window);
            assert_status(give(1, 0, window), K3HUF_OK);
            wants(K3HUF_PART_INDEX, filler + 4u, 12, 0, 0, done, window);
            assert_status(give(12, 0, window), K3HUF_OK);
            wants(K3HUF_PART_INDEX, filler + 16u, 8, 0, 0, done, window);
            assert_status(give(8, 0, window), K3HUF_OK);
            if (one == 1) {
                wants(K3HUF_PART_FILLER, filler + 24u, 7, 0, 0, done, window);
                assert_status(give(7, 0, window), size == 5 ? K3HUF_OK : K3HUF_DONE);
            } else {
                wants(K3HUF_PART_PLANES, at + 16u, 1, at + 17u, (size + 1u) / 2u, done, size);
                assert_status(give(1, (size + 1u) / 2u, size - 1u), K3HUF_WAIT);
                assert_status(give(1, (size + 1u) / 2u, size), size == 5 ? K3HUF_OK : K3HUF_DONE);
            }
            at = filler + 31u;
            done += size;
        }
        wants(K3HUF_PART_DONE, at, 0, 0, 0, done, 0);
        assert_int_equal(at, run_size);
        assert_memory_equal(out, raw, 9);
        assert_status(k3huf_finish(&decoder), K3HUF_DONE);
    }
}

/* Planes without index, a part of them at a time: output comes as symbols do. */
static void what_is_wanted_without_index(void **state) {
    (void)state;
    const struct k3huf_config config = {.workspace = &workspace};
    build(1, 41);
    assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
    assert_status(give(288, 0, 0), K3HUF_OK);
    assert_status(give(16, 0, 0), K3HUF_OK); /* 42 raw bytes, 21 symbols of one bit, 3 coded bytes */
    wants(K3HUF_PART_PLANES, 304, 3, 307, 21, 0, 2);
    assert_status(give(1, 5, 99), K3HUF_OK);
    wants(K3HUF_PART_PLANES, 304, 3, 312, 16, 10, 2);
    assert_status(give(1, 9, 6), K3HUF_OK);
    wants(K3HUF_PART_PLANES, 305, 2, 315, 13, 16, 2);
    assert_status(give(2, 13, 1), K3HUF_WAIT);
    assert_status(give(2, 13, 26), K3HUF_OK);
    wants(K3HUF_PART_STRIPE_HEADER, 328, 16, 0, 0, 42, 0);
    assert_status(give(16, 0, 0), K3HUF_OK); /* 41 raw bytes: the last one has no symbol */
    wants(K3HUF_PART_PLANES, 344, 3, 347, 21, 42, 2);
    assert_status(give(3, 19, 40), K3HUF_OK);
    wants(K3HUF_PART_PLANES, 346, 1, 366, 2, 80, 2);
    assert_status(give(1, 2, 1), K3HUF_WAIT);
    assert_status(give(1, 1, 2), K3HUF_OK);
    wants(K3HUF_PART_PLANES, 347, 0, 367, 1, 82, 1);
    assert_status(give(0, 0, 1), K3HUF_WAIT);
    assert_status(give(0, 1, 0), K3HUF_WAIT);
    assert_status(give(0, 1, 1), K3HUF_DONE);
    assert_memory_equal(out, raw, 83);
    wants(K3HUF_PART_DONE, 368, 0, 0, 0, 83, 0);
}

/* The input ends: where, in each part. */
static void ends_inside(void **state) {
    (void)state;
    const struct k3huf_config config = {.workspace = &workspace};
    build(1, 41);
    static const struct {
        size_t header, stripe, coded;
        uint64_t offset;
    } cases[] = {{0, 0, 0, 0},     {10, 0, 0, 10},    {288, 0, 0, 288},
                 {288, 7, 0, 295}, {288, 16, 0, 304}, {288, 16, 2, 306}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
        (void)give(cases[i].header, 0, 0);
        (void)give(cases[i].stripe, 0, 0);
        (void)give(cases[i].coded, 21, 42);
        assert_status(k3huf_finish(&decoder), K3HUF_E_TRUNCATED);
        assert_int_equal(k3huf_where(&decoder)->stripe, cases[i].header < 288 ? K3HUF_NO_STRIPE : 0);
        assert_int_equal(k3huf_where(&decoder)->block, K3HUF_NO_BLOCK);
        assert_int_equal(k3huf_where(&decoder)->offset, cases[i].offset);
        assert_status(k3huf_finish(&decoder), K3HUF_E_TRUNCATED);
        assert_status(give(0, 0, 0), K3HUF_E_TRUNCATED);
        wants(K3HUF_PART_ERROR, need.coded_offset, 0, 0, 0, 0, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_stripe_headers), cmocka_unit_test(planes_that_end_early),
        cmocka_unit_test(planes_that_go_on),  cmocka_unit_test(bits_that_are_no_code),
        cmocka_unit_test(what_is_wanted),     cmocka_unit_test(what_is_wanted_without_index),
        cmocka_unit_test(ends_inside),
    };
    return cmocka_run_group_tests_name("planes", tests, NULL, NULL);
}
