/* test_format.c - run and stripe headers: each field wrong in turn has its own status and offset, and what is written
 * reads back. Fields are set by the offsets of FORMAT.md, not by the core's own constants. */
#include "unit.h"

#include "rng.h"

static void put(uint8_t *bytes, size_t offset, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        bytes[offset + i] = (uint8_t)(value >> (8u * i));
    }
}

/* A good run header: `raw` bytes in `stripes` stripes, code of two symbols. */
static void good_run(uint8_t bytes[288], uint64_t raw, uint32_t stripes) {
    memset(bytes, 0, 288);
    memcpy(bytes, "KHUF", 4);
    put(bytes, 4, 4, 1);
    put(bytes, 8, 8, raw);
    put(bytes, 16, 4, stripes);
    bytes[20 + 0x3F] = 1;
    bytes[20 + 0xBF] = 1;
}

static void run_is(const uint8_t bytes[288], enum k3huf_status status, uint32_t offset) {
    struct k3huf_run_header header;
    uint32_t bad = 0xFFFFFFFFu;
    assert_status(k3huf_run_header_read(bytes, &header, &bad), status);
    if (status != K3HUF_OK) { assert_int_equal(bad, offset); }
}

static void run_header_is_read(void **state) {
    (void)state;
    uint8_t bytes[288];
    struct k3huf_run_header header;
    uint32_t bad;
    good_run(bytes, UINT64_C(0x123456789), 0x1234567);
    assert_status(k3huf_run_header_read(bytes, &header, &bad), K3HUF_OK);
    assert_true(header.raw_bytes == UINT64_C(0x123456789));
    assert_int_equal(header.nstripes, 0x1234567);
    assert_memory_equal(header.codelen, bytes + 20, 256);
}

static void run_magic(void **state) {
    (void)state;
    uint8_t bytes[288];
    for (unsigned bit = 0; bit < 32; bit++) {
        good_run(bytes, 100, 1);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        run_is(bytes, K3HUF_E_RUN_MAGIC, 0);
    }
    memset(bytes, 0, sizeof bytes);
    run_is(bytes, K3HUF_E_RUN_MAGIC, 0);
    memset(bytes, 0xFF, sizeof bytes);
    run_is(bytes, K3HUF_E_RUN_MAGIC, 0);
}

static void run_version(void **state) {
    (void)state;
    static const uint32_t versions[] = {0, 2, 0x100, 0x01000000, 0x10001, UINT32_MAX};
    uint8_t bytes[288];
    for (size_t i = 0; i < UNIT_COUNT(versions); i++) {
        good_run(bytes, 100, 1);
        put(bytes, 4, 4, versions[i]);
        run_is(bytes, K3HUF_E_RUN_VERSION, 4);
    }
}

static void run_stripes(void **state) {
    (void)state;
    static const struct {
        uint64_t raw;
        uint32_t stripes;
        bool good;
    } cases[] = {
        {0, 0, true},
        {1, 1, true},
        {67108864, 1, true},
        {67108865, 2, true},
        {100, 100, true},
        {UINT32_MAX, UINT32_MAX, true},
        {UINT64_C(67108864) * UINT32_MAX, UINT32_MAX, true},
        /* too few stripes to hold so many bytes */
        {1, 0, false},
        {UINT64_MAX, 0, false},
        {67108865, 1, false},
        {UINT32_MAX, 1, false},
        {UINT64_C(67108864) * 1000 + 1, 1000, false},
        {UINT64_C(67108864) * UINT32_MAX + 1, UINT32_MAX, false},
        {UINT64_MAX, 1, false},
        {UINT64_MAX, UINT32_MAX, false},
        {UINT64_C(1) << 63, UINT32_MAX, false},
        {UINT64_C(1) << 32, 0, false},
        {UINT64_MAX - 67108863, 1, false},
        /* more stripes than bytes */
        {0, 1, false},
        {0, UINT32_MAX, false},
        {1, 2, false},
        {99, 100, false},
        {UINT32_MAX - 1u, UINT32_MAX, false},
    };
    uint8_t bytes[288];
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        good_run(bytes, cases[i].raw, cases[i].stripes);
        run_is(bytes, cases[i].good ? K3HUF_OK : K3HUF_E_RUN_STRIPES, 16);
    }
}

static void run_code_length(void **state) {
    (void)state;
    uint8_t bytes[288];
    for (uint32_t symbol = 0; symbol < 256; symbol++) {
        static const uint8_t lengths[] = {13, 16, 31, 32, 64, 128, 255};
        for (size_t i = 0; i < UNIT_COUNT(lengths); i++) {
            good_run(bytes, 100, 1);
            bytes[20 + symbol] = lengths[i];
            run_is(bytes, K3HUF_E_CODE_LENGTH, 20 + symbol);
        }
    }
}

static void run_code_overfull(void **state) {
    (void)state;
    uint8_t bytes[288];
    /* One code of 12 bits too many, wherever it is. */
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        if (symbol == 0x3F || symbol == 0xBF) { continue; }
        good_run(bytes, 100, 1);
        bytes[20 + symbol] = 12;
        run_is(bytes, K3HUF_E_CODE_OVERFULL, 20);
    }
    /* As over-full as can be: a sum kept in 16 bits of 2^-12 would wrap (256 x 2048 = 8 x 65536). */
    good_run(bytes, 100, 1);
    memset(bytes + 20, 1, 256);
    run_is(bytes, K3HUF_E_CODE_OVERFULL, 20);
    /* Exactly full and just short of it are both fine. */
    good_run(bytes, 100, 1);
    memset(bytes + 20, 8, 256);
    run_is(bytes, K3HUF_OK, 0);
    bytes[20] = 7;
    run_is(bytes, K3HUF_E_CODE_OVERFULL, 20);
    bytes[20] = 9;
    run_is(bytes, K3HUF_OK, 0);
}

static void run_code_empty(void **state) {
    (void)state;
    uint8_t bytes[288];
    good_run(bytes, 2, 1);
    memset(bytes + 20, 0, 256);
    run_is(bytes, K3HUF_E_CODE_EMPTY, 20);
    put(bytes, 8, 8, UINT32_MAX);
    put(bytes, 16, 4, 64);
    run_is(bytes, K3HUF_E_CODE_EMPTY, 20);
    put(bytes, 8, 8, 1);
    put(bytes, 16, 4, 1);
    run_is(bytes, K3HUF_OK, 0); /* one byte is an even byte: nothing to decode */
    put(bytes, 8, 8, 0);
    put(bytes, 16, 4, 0);
    run_is(bytes, K3HUF_OK, 0);
}

static void run_reserved_is_ignored(void **state) {
    (void)state;
    uint8_t bytes[288];
    for (unsigned bit = 0; bit < 96; bit++) {
        good_run(bytes, 100, 1);
        bytes[276 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
        run_is(bytes, K3HUF_OK, 0);
    }
}

static void run_header_round_trip(void **state) {
    (void)state;
    struct k3huf_rng rng = {1};
    for (int i = 0; i < 200; i++) {
        struct k3huf_run_header header = {0}, back;
        uint8_t bytes[288], want[288];
        uint32_t bad;
        header.nstripes = k3huf_rng_below(&rng, UINT32_MAX) >> k3huf_rng_below(&rng, 32);
        header.raw_bytes = header.nstripes * (UINT64_C(1) + k3huf_rng_below(&rng, 67108864));
        header.codelen[k3huf_rng_below(&rng, 128)] = (uint8_t)(1 + k3huf_rng_below(&rng, 12));
        header.codelen[128 + k3huf_rng_below(&rng, 128)] = (uint8_t)(1 + k3huf_rng_below(&rng, 12));
        memset(bytes, 0xEE, sizeof bytes);
        k3huf_run_header_write(&header, bytes);
        good_run(want, header.raw_bytes, header.nstripes);
        memcpy(want + 20, header.codelen, 256);
        assert_memory_equal(bytes, want, 288);
        assert_status(k3huf_run_header_read(bytes, &back, &bad), K3HUF_OK);
        assert_true(back.raw_bytes == header.raw_bytes);
        assert_int_equal(back.nstripes, header.nstripes);
        assert_memory_equal(back.codelen, header.codelen, 256);
    }
}

/* ---- stripes ---- */

static const struct k3huf_run_header *run_of(uint64_t raw, uint32_t stripes) {
    static struct k3huf_run_header run;
    uint8_t bytes[288];
    uint32_t bad;
    good_run(bytes, raw, stripes);
    assert_status(k3huf_run_header_read(bytes, &run, &bad), K3HUF_OK);
    return &run;
}

static void good_stripe(uint8_t bytes[16], uint32_t number, uint32_t raw, uint32_t huf, uint32_t pad) {
    put(bytes, 0, 4, 0x4655484Bu ^ number);
    put(bytes, 4, 4, raw);
    put(bytes, 8, 4, huf);
    put(bytes, 12, 4, pad);
}

static void stripe_is(const uint8_t bytes[16], const struct k3huf_run_header *run, uint32_t number, uint64_t before,
                      enum k3huf_status status, uint32_t offset) {
    struct k3huf_stripe_header header;
    uint32_t bad = 0xFFFFFFFFu;
    assert_status(k3huf_stripe_header_read(bytes, run, number, before, &header, &bad), status);
    if (status != K3HUF_OK) { assert_int_equal(bad, offset); }
}

/* One stripe of `raw` bytes alone in its run, code of two symbols. */
static void lone_stripe_is(uint32_t raw, uint32_t huf, enum k3huf_status status, uint32_t offset) {
    uint8_t bytes[16];
    good_stripe(bytes, 0, raw, huf, 0);
    stripe_is(bytes, run_of(raw, 1), 0, 0, status, offset);
}

static void stripe_header_is_read(void **state) {
    (void)state;
    uint8_t bytes[16];
    struct k3huf_stripe_header header;
    uint32_t bad;
    good_stripe(bytes, 2, 1001, 63, 0xFEDCBA98);
    assert_status(k3huf_stripe_header_read(bytes, run_of(3001, 3), 2, 2000, &header, &bad), K3HUF_OK);
    assert_int_equal(header.raw_bytes, 1001);
    assert_int_equal(header.huf_bytes, 63);
    assert_true(header.pad == 0xFEDCBA98);
    assert_true(k3huf_stripe_bytes(&header) == UINT64_C(16) + 63 + 501 + 0xFEDCBA98u);
    assert_int_equal(k3huf_odd_bytes(1001), 500);
    assert_int_equal(k3huf_even_bytes(1001), 501);
    assert_int_equal(k3huf_even_bytes(1), 1);
    assert_int_equal(k3huf_odd_bytes(1), 0);
}

static void stripe_magic(void **state) {
    (void)state;
    uint8_t bytes[16];
    static const uint32_t numbers[] = {0, 1, 2, 255, 256, 65535};
    for (size_t i = 0; i < UNIT_COUNT(numbers); i++) {
        const uint32_t number = numbers[i];
        const struct k3huf_run_header *run = run_of(100 * UINT64_C(65536), 65536);
        good_stripe(bytes, number, 100, 7, 0);
        stripe_is(bytes, run, number, UINT64_C(100) * number, K3HUF_OK, 0);
        good_stripe(bytes, number + 1, 100, 7, 0);
        stripe_is(bytes, run, number, UINT64_C(100) * number, K3HUF_E_STRIPE_MAGIC, 0);
        for (unsigned bit = 0; bit < 32; bit++) {
            good_stripe(bytes, number, 100, 7, 0);
            bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            stripe_is(bytes, run, number, UINT64_C(100) * number, K3HUF_E_STRIPE_MAGIC, 0);
        }
    }
}

static void stripe_raw_bytes(void **state) {
    (void)state;
    uint8_t bytes[16];
    const struct k3huf_run_header *run = run_of(UINT64_C(200000000), 3);
    static const uint32_t impossible[] = {0, 67108865, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < UNIT_COUNT(impossible); i++) {
        good_stripe(bytes, 1, impossible[i], 8388608, 0);
        stripe_is(bytes, run, 1, 67108864, K3HUF_E_STRIPE_RAW, 4);
    }
    /* More than the run still has. */
    run = run_of(1000, 2);
    good_stripe(bytes, 0, 1001, 63, 0);
    stripe_is(bytes, run, 0, 0, K3HUF_E_STRIPE_RAW, 4);
    good_stripe(bytes, 1, 501, 32, 0);
    stripe_is(bytes, run, 1, 500, K3HUF_E_STRIPE_RAW, 4);
    /* The last stripe has to end the run exactly. */
    good_stripe(bytes, 1, 499, 32, 0);
    stripe_is(bytes, run, 1, 500, K3HUF_E_STRIPE_RAW, 4);
    good_stripe(bytes, 1, 500, 32, 0);
    stripe_is(bytes, run, 1, 500, K3HUF_OK, 0);
    /* A stripe that is not the last has to leave something for the others. */
    good_stripe(bytes, 0, 1000, 63, 0);
    stripe_is(bytes, run, 0, 0, K3HUF_E_STRIPE_RAW, 4);
    good_stripe(bytes, 0, 999, 63, 0);
    stripe_is(bytes, run, 0, 0, K3HUF_OK, 0);
    /* ... but no more than they can hold. */
    run = run_of(UINT64_C(67108864) + 10, 2);
    good_stripe(bytes, 0, 9, 1, 0);
    stripe_is(bytes, run, 0, 0, K3HUF_E_STRIPE_RAW, 4);
    good_stripe(bytes, 0, 10, 1, 0);
    stripe_is(bytes, run, 0, 0, K3HUF_OK, 0);
}

static void stripe_coded_bytes(void **state) {
    (void)state;
    static const uint32_t symbols[] = {1, 2, 7, 8, 9, 1000, 33554432};
    for (size_t i = 0; i < UNIT_COUNT(symbols); i++) {
        /* One bit each: the only size possible. */
        const uint32_t huf = (symbols[i] + 7) / 8;
        for (uint32_t odd = 0; odd < (symbols[i] < 33554432 ? 2 : 1); odd++) {
            const uint32_t raw = 2 * symbols[i] + odd;
            lone_stripe_is(raw, huf, K3HUF_OK, 0);
            lone_stripe_is(raw, huf - 1, K3HUF_E_STRIPE_CODED, 8);
            lone_stripe_is(raw, huf + 1, K3HUF_E_STRIPE_CODED, 8);
            lone_stripe_is(raw, UINT32_MAX, K3HUF_E_STRIPE_CODED, 8);
            lone_stripe_is(raw, 0, K3HUF_E_STRIPE_CODED, 8);
        }
    }
    lone_stripe_is(1, 0, K3HUF_OK, 0);
    lone_stripe_is(1, 1, K3HUF_E_STRIPE_CODED, 8);

    /* Lengths 3 to 12, those of the first and of the last byte value too: 10 symbols take 30 to 120 bits. What lies
     * behind the lengths is not one of them. */
    static const uint8_t values[][2] = {{9, 8}, {0, 255}, {255, 0}};
    for (size_t i = 0; i < UNIT_COUNT(values); i++) {
        struct k3huf_run_header run;
        memset(&run, 0xFF, sizeof run);
        run.raw_bytes = 20;
        run.nstripes = 1;
        memset(run.codelen, 0, sizeof run.codelen);
        run.codelen[values[i][0]] = 3;
        run.codelen[values[i][1]] = 12;
        run.codelen[7] = 5;
        for (uint32_t huf = 0; huf < 20; huf++) {
            uint8_t bytes[16];
            good_stripe(bytes, 0, 20, huf, 0);
            stripe_is(bytes, &run, 0, 0, huf >= 4 && huf <= 15 ? K3HUF_OK : K3HUF_E_STRIPE_CODED, 8);
        }
    }
}

static void stripe_filler_may_be_anything(void **state) {
    (void)state;
    static const uint32_t pads[] = {0, 1, 37, 0x7FFFFFFF, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < UNIT_COUNT(pads); i++) {
        uint8_t bytes[16];
        struct k3huf_stripe_header header;
        uint32_t bad;
        good_stripe(bytes, 0, 67108864, 4194304, pads[i]);
        assert_status(k3huf_stripe_header_read(bytes, run_of(67108864, 1), 0, 0, &header, &bad), K3HUF_OK);
        assert_true(header.pad == pads[i]);
        assert_true(k3huf_stripe_bytes(&header) == UINT64_C(16) + 4194304 + 33554432 + pads[i]);
    }
}

static void stripe_header_round_trip(void **state) {
    (void)state;
    struct k3huf_rng rng = {2};
    for (int i = 0; i < 200; i++) {
        const uint32_t number = k3huf_rng_below(&rng, 5);
        const uint32_t raw = 1 + k3huf_rng_below(&rng, 1u + (67108863u >> k3huf_rng_below(&rng, 26)));
        const struct k3huf_stripe_header header = {raw, (raw / 2 + 7) / 8, k3huf_rng_below(&rng, UINT32_MAX)};
        struct k3huf_stripe_header back;
        uint8_t bytes[16], want[16];
        uint32_t bad;
        memset(bytes, 0xEE, sizeof bytes);
        k3huf_stripe_header_write(&header, number, bytes);
        good_stripe(want, number, header.raw_bytes, header.huf_bytes, header.pad);
        assert_memory_equal(bytes, want, 16);
        assert_status(
            k3huf_stripe_header_read(bytes, run_of(raw * UINT64_C(5), 5), number, raw * (uint64_t)number, &back, &bad),
            K3HUF_OK);
        assert_int_equal(back.raw_bytes, header.raw_bytes);
        assert_int_equal(back.huf_bytes, header.huf_bytes);
        assert_int_equal(back.pad, header.pad);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_header_is_read),
        cmocka_unit_test(run_magic),
        cmocka_unit_test(run_version),
        cmocka_unit_test(run_stripes),
        cmocka_unit_test(run_code_length),
        cmocka_unit_test(run_code_overfull),
        cmocka_unit_test(run_code_empty),
        cmocka_unit_test(run_reserved_is_ignored),
        cmocka_unit_test(run_header_round_trip),
        cmocka_unit_test(stripe_header_is_read),
        cmocka_unit_test(stripe_magic),
        cmocka_unit_test(stripe_raw_bytes),
        cmocka_unit_test(stripe_coded_bytes),
        cmocka_unit_test(stripe_filler_may_be_anything),
        cmocka_unit_test(stripe_header_round_trip),
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
