/* test_hostile.c - small inputs that claim to be large ones. What is asked of the decoder: a claim alone costs nothing.
 * Output is not touched beyond twice the bytes there are (each output pair has a bare byte in the run), calls are few,
 * and what is wanted next is bounded. The runs here are some hundred bytes, so that work in proportion to what they
 * claim, up to 2^58 bytes, would never end. */
#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "samples.h"

#define RUN_MAX 90000u
#define OUT_BYTES 4096u

static uint8_t run[RUN_MAX], out[RUN_MAX], index_memory[256];

static void put(uint8_t *bytes, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

static struct k3huf_feed feed_in(unsigned mode, size_t run_size, size_t out_size) {
    struct k3huf_feed feed = {.run = run,
                              .run_size = run_size,
                              .out = out,
                              .out_size = out_size,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .seed = mode};
    (void)k3huf_feed_mode(&feed, mode);
    return feed;
}

/* A run header and that of a stripe, a code of one bit for two symbols, and `rest` bytes more. */
static size_t claim(uint64_t raw_bytes, uint32_t nstripes, uint32_t stripe_raw, uint32_t huf, uint32_t pad,
                    size_t rest) {
    memset(run, 0, 288 + 16 + rest);
    memcpy(run, "KHUF", 4);
    put(run + 4, 4, 1);
    put(run + 8, 8, raw_bytes);
    put(run + 16, 4, nstripes);
    run[20 + 0x3F] = run[20 + 0xBF] = 1;
    memcpy(run + 288, "KHUF", 4);
    put(run + 288 + 4, 4, stripe_raw);
    put(run + 288 + 8, 4, huf);
    put(run + 288 + 12, 4, pad);
    return 288 + 16 + rest;
}

/* Every claim of every field together with every other, over 40 bytes of planes that are there. */
static void claims_cost_nothing(void **state) {
    (void)state;
    static const uint64_t totals[] = {0,
                                      1,
                                      67108864,
                                      UINT64_C(1) << 32,
                                      UINT64_MAX,
                                      (UINT64_C(1) << 32) + 1u, /* 1 if cut to 32 bits */
                                      UINT64_MAX / 2u + 1u,
                                      UINT64_C(67108864) * UINT32_MAX};
    static const uint32_t counts[] = {0, 1, 64, UINT32_MAX};
    static const uint32_t stripes[] = {0, 1, 64, 67108864, UINT32_MAX};
    static const uint32_t planes[] = {0, 4, 4194304, UINT32_MAX}; /* 4194304: right for 67108864 raw bytes */
    static const uint32_t pads[] = {0, 16, UINT32_MAX};
    unsigned decoding = 0;
    for (unsigned i = 0; i < 8u * 4u * 5u * 4u * 3u; i++) {
        const uint64_t total = totals[i % 8u];
        const uint32_t count = counts[i / 8u % 4u], stripe = stripes[i / 32u % 5u];
        const size_t size = claim(total, count, stripe, planes[i / 160u % 4u], pads[i / 640u], 40);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
            struct k3huf_feed feed = feed_in(mode, size, OUT_BYTES);
            k3huf_feed_run(&feed);
            assert_null(feed.fault);
            const bool honest = (total == 0 && count == 0) || (total == 1 && count == 1 && stripe == 1);
            if (feed.status == K3HUF_DONE ? !honest : feed.calls > 60 || feed.produced > 2 * 40) {
                fail_msg("%u bytes in %u stripes, the first of %u, mode %u: \"%s\" after %u calls and %u bytes",
                         (unsigned)total, (unsigned)count, (unsigned)stripe, mode, k3huf_status_text(feed.status),
                         (unsigned)feed.calls, (unsigned)feed.produced);
            }
            decoding += feed.produced > 1;
            /* Behind what there can be, no byte is touched; before, the end may have come while symbols waited. */
            for (size_t k = 2 * 40; k < OUT_BYTES; k++)
                assert_int_equal(out[k], K3HUF_FEED_FILL);
        }
    }
    assert_true(decoding > 0); /* some of them get as far as the planes */
}

static void nothing_at_all(void **state) {
    (void)state;
    const size_t size = claim(0, 0, 0, 0, 0, 40);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
        struct k3huf_feed feed = feed_in(mode, size, OUT_BYTES);
        k3huf_feed_run(&feed);
        assert_null(feed.fault);
        assert_status(feed.status, K3HUF_DONE);
        assert_int_equal(feed.calls, 1);
        assert_int_equal(feed.produced, 0);
        assert_int_equal(feed.run_end, 288);
    }
    /* ... and a stripe of nothing, which would be a way to claim stripes without end. */
    const size_t one = claim(1, 1, 0, 0, 0, 40);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
        struct k3huf_feed feed = feed_in(mode, one, OUT_BYTES);
        k3huf_feed_run(&feed);
        assert_null(feed.fault);
        assert_status(feed.status, K3HUF_E_STRIPE_RAW);
    }
}

/* The smallest stripes there are: calls grow with the bytes that are there, not with the stripes that are claimed. */
static void many_small_stripes(void **state) {
    (void)state;
    static const uint32_t there[] = {1, 100, 4000};
    for (size_t i = 0; i < UNIT_COUNT(there); i++) {
        (void)claim(UINT32_MAX, UINT32_MAX, 1, 0, 0, 0);
        for (uint32_t stripe = 0; stripe < there[i]; stripe++) {
            uint8_t *const at = run + 288 + 17u * (size_t)stripe;
            put(at, 4, 0x4655484Bu ^ stripe);
            put(at + 4, 4, 1);
            put(at + 8, 8, 0);
            at[16] = (uint8_t)stripe;
        }
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
            struct k3huf_feed feed = feed_in(mode, 288 + 17u * (size_t)there[i], sizeof out);
            k3huf_feed_run(&feed);
            assert_null(feed.fault);
            assert_status(feed.status, K3HUF_E_TRUNCATED);
            assert_int_equal(feed.produced, there[i]);
            assert_int_equal(feed.place.stripe, there[i]);
            assert_true(feed.calls <= 3u * (uint64_t)there[i] + 60u);
            for (uint32_t stripe = 0; stripe < there[i]; stripe++) {
                assert_int_equal(out[stripe], (uint8_t)stripe);
            }
        }
    }
}

/* An index as large as they come, announced by sixteen bytes: no more than those are asked for where the memory is too
 * small, and none of its entries is looked at where they are not there. */
static void a_large_index_is_only_claimed(void **state) {
    (void)state;
    const size_t planes = 8;
    const size_t size = claim(65536u * 4u, 1, 65536u * 4u, 16384, UINT32_MAX, planes);
    uint8_t filler[16] = {'K', '3', 'I', 'X', 1, 0, 12, 0, 32};
    const struct k3huf_stripe_header stripe = {65536u * 4u, 16384, UINT32_MAX};
    struct k3huf_index index;
    uint32_t bytes, bad, block;
    assert_status(k3huf_index_probe(filler, sizeof filler, &stripe, &bytes, &bad), K3HUF_OK);
    assert_int_equal(bytes, 16 + 8 * 32);
    assert_status(k3huf_index_read(filler, sizeof filler, &stripe, &index, &bad, &block), K3HUF_WAIT);
    assert_int_equal(index.nblocks, 0);
    put(filler + 8, 4, UINT32_MAX);
    assert_status(k3huf_index_read(filler, sizeof filler, &stripe, &index, &bad, &block), K3HUF_E_INDEX_COUNT);
    assert_int_equal(bad, 8);
    /* The filler lies behind planes that are not there: with two cursors the decoder asks for it and for no more. */
    struct k3huf_feed feed = feed_in(0, size, OUT_BYTES);
    k3huf_feed_run(&feed);
    assert_null(feed.fault);
    assert_status(feed.status, K3HUF_E_TRUNCATED);
    assert_int_equal(feed.produced, 0);
    assert_int_equal(feed.place.offset, 288 + 16 + 16384 + 131072);
}

/* Stripes behind fillers of 2^32 - 1 bytes that are not there: with two cursors the decoder goes on to where the next
 * stripe's header would be, and says so, where a size of 32 bits has long wrapped. Three fillers wrap it three times.
 */
static void places_beyond_32_bits(void **state) {
    (void)state;
    enum { STRIPES = 4 };
    static struct k3huf_decoder decoder;
    static struct k3huf_workspace workspace;
    const struct k3huf_config config = {.workspace = &workspace};
    uint64_t stripe_at = 288;
    (void)claim(STRIPES, STRIPES, 1, 0, UINT32_MAX, 1);
    assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
    struct k3huf_io header = {.coded = run, .coded_size = 288, .out = out};
    assert_status(k3huf_decode(&decoder, &header), K3HUF_OK);
    for (uint32_t stripe = 0; stripe < STRIPES; stripe++) {
        struct k3huf_need need;
        put(run + 288, 4, 0x4655484Bu ^ stripe);
        k3huf_decoder_need(&decoder, &need);
        assert_int_equal(need.part, K3HUF_PART_STRIPE_HEADER);
        assert_true(need.coded_offset == stripe_at);
        struct k3huf_io io = {.coded = run + 288, .coded_size = 16, .out = out};
        assert_status(k3huf_decode(&decoder, &io), K3HUF_OK);
        k3huf_decoder_need(&decoder, &need);
        assert_true(need.raw_offset == stripe_at + 16u);
        assert_true(need.raw_bytes == 1);
        io = (struct k3huf_io){.raw = run + 304, .raw_size = 1, .out = out, .out_size = 1};
        assert_status(k3huf_decode(&decoder, &io), stripe + 1u < STRIPES ? K3HUF_OK : K3HUF_DONE);
        stripe_at += UINT64_C(16) + 1u + UINT32_MAX;
        assert_true(k3huf_where(&decoder)->stripe == K3HUF_NO_STRIPE);
    }
    struct k3huf_need end;
    k3huf_decoder_need(&decoder, &end);
    assert_true(end.coded_offset == stripe_at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_cost_nothing),   cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(many_small_stripes),    cmocka_unit_test(a_large_index_is_only_claimed),
        cmocka_unit_test(places_beyond_32_bits),
    };
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
