/* test_merge_crc.c - plane merge and CRC-32C against their definitions, for all small sizes and alignments. */
#include "unit.h"

#include "reference.h"
#include "rng.h"

#define CANARY 0xB7u
#define MERGE_MAX 200u
#define CRC_MAX 300u

static uint8_t noise[70000];

static int fill_noise(void **state) {
    (void)state;
    struct k3huf_rng rng = {3};
    k3huf_rng_fill(&rng, noise, sizeof noise);
    return 0;
}

static void check_merged(const uint8_t *out, const uint8_t *raw, const uint8_t *symbols, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (out[2 * i] != raw[i] || out[2 * i + 1] != symbols[i]) {
            fail_msg("merge of %u: wrong at %u", (unsigned)n, (unsigned)i);
        }
    }
}

static void merge_all_sizes_and_alignments(void **state) {
    (void)state;
    static uint8_t out[2 * MERGE_MAX + 64];
    for (unsigned n = 0; n <= MERGE_MAX; n++) {
        for (unsigned align = 0; align < 16; align++) {
            /* Each of the three at its own alignment, all 16 of each met. */
            const unsigned a = align, b = (align * 7 + n) % 16, c = (align * 11 + 3 * n) % 16;
            memset(out, CANARY, sizeof out);
            k3huf_merge(out + 16 + a, noise + b, noise + 1000 + c, n);
            check_merged(out + 16 + a, noise + b, noise + 1000 + c, n);
            for (unsigned i = 0; i < 16 + a; i++) {
                assert_int_equal(out[i], CANARY);
            }
            for (size_t i = 16 + a + 2 * n; i < sizeof out; i++) {
                assert_int_equal(out[i], CANARY);
            }
        }
    }
}

/* The symbols lie in the output's own second half, or anywhere behind it. */
static void merge_in_place(void **state) {
    (void)state;
    static uint8_t out[2 * MERGE_MAX + 200];
    for (unsigned n = 0; n <= MERGE_MAX; n++) {
        for (unsigned gap = 0; gap < 70; gap++) {
            const unsigned align = (gap + n) % 16;
            uint8_t *const at = out + align, *const symbols = at + n + gap;
            memset(out, CANARY, sizeof out);
            memcpy(symbols, noise + 500, n);
            k3huf_merge(at, noise + align, symbols, n);
            check_merged(at, noise + align, noise + 500, n);
        }
    }
}

static void merge_large(void **state) {
    (void)state;
    static uint8_t out[120000];
    k3huf_merge(out, noise + 1, noise + 5000, 60000);
    check_merged(out, noise + 1, noise + 5000, 60000);
    memcpy(out + 60000, noise + 5000, 60000);
    k3huf_merge(out, noise + 1, out + 60000, 60000);
    check_merged(out, noise + 1, noise + 5000, 60000);
}

/* RFC 3720, appendix B.4 (the CRC's bytes there are in order of transmission, least significant first). */
static void crc_of_the_rfc(void **state) {
    (void)state;
    uint8_t data[32];
    memset(data, 0, 32);
    assert_int_equal(k3huf_crc32c(0, data, 32), 0x8A9136AAu);
    memset(data, 0xFF, 32);
    assert_int_equal(k3huf_crc32c(0, data, 32), 0x62A8AB43u);
    for (unsigned i = 0; i < 32; i++) {
        data[i] = (uint8_t)i;
    }
    assert_int_equal(k3huf_crc32c(0, data, 32), 0x46DD794Eu);
    for (unsigned i = 0; i < 32; i++) {
        data[i] = (uint8_t)(31 - i);
    }
    assert_int_equal(k3huf_crc32c(0, data, 32), 0x113FDB5Cu);
    static const uint8_t command[48] = {0x01, 0xC0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                                        0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                        0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
    assert_int_equal(k3huf_crc32c(0, command, 48), 0xD9963A56u);
    assert_int_equal(k3huf_crc32c(0, (const uint8_t *)"123456789", 9), 0xE3069283u);
    assert_int_equal(k3huf_crc32c(0, NULL, 0), 0);
    assert_int_equal(k3huf_crc32c(0x12345678, NULL, 0), 0x12345678);
}

static void crc_all_sizes_and_alignments(void **state) {
    (void)state;
    for (unsigned align = 0; align < 8; align++) {
        for (unsigned size = 0; size <= CRC_MAX; size++) {
            if (k3huf_crc32c(0, noise + align, size) != k3huf_reference_crc32c(0, noise + align, size)) {
                fail_msg("CRC of %u bytes, alignment %u", size, align);
            }
        }
    }
    assert_int_equal(k3huf_crc32c(0, noise, sizeof noise), k3huf_reference_crc32c(0, noise, sizeof noise));
}

static void crc_goes_on(void **state) {
    (void)state;
    const uint32_t whole = k3huf_reference_crc32c(0, noise, CRC_MAX);
    for (unsigned cut = 0; cut <= CRC_MAX; cut++) {
        const uint32_t first = k3huf_crc32c(0, noise, cut);
        assert_int_equal(k3huf_crc32c(first, noise + cut, CRC_MAX - cut), whole);
    }
}

/* Spans of no bytes may be NULL, and arithmetic on NULL is not C: the sanitizers watch. */
static void nothing_at_null(void **state) {
    (void)state;
    uint32_t crc[K3HUF_LANES];
    const uint8_t *data[K3HUF_LANES];
    for (uint32_t i = 0; i < K3HUF_LANES; i++) {
        crc[i] = i;
        data[i] = NULL;
    }
    for (uint32_t n = 1; n <= K3HUF_LANES; n++) {
        k3huf_crc32c_lanes(crc, data, 0, n);
    }
    for (uint32_t i = 0; i < K3HUF_LANES; i++) {
        assert_int_equal(crc[i], i);
    }
    assert_int_equal(k3huf_crc32c(7, NULL, 0), 7);
    k3huf_merge(NULL, NULL, NULL, 0);
}

static void crc_lanes(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= K3HUF_LANES; n++) {
        for (unsigned size = 0; size <= CRC_MAX; size++) {
            uint32_t crc[K3HUF_LANES + 1], want[K3HUF_LANES + 1];
            const uint8_t *data[K3HUF_LANES + 1];
            for (uint32_t i = 0; i <= K3HUF_LANES; i++) {
                data[i] = noise + 1000 * i + (size + 3 * i) % 8;
                crc[i] = i * 0x01234567u;
                want[i] = i < n ? k3huf_reference_crc32c(crc[i], data[i], size) : crc[i];
            }
            k3huf_crc32c_lanes(crc, data, size, n);
            assert_memory_equal(crc, want, sizeof crc);
        }
    }
    /* Long, and the same span in several lanes. */
    uint32_t crc[K3HUF_LANES] = {0};
    const uint8_t *data[K3HUF_LANES];
    for (uint32_t i = 0; i < K3HUF_LANES; i++) {
        data[i] = noise + i / 2;
    }
    k3huf_crc32c_lanes(crc, data, 65536, K3HUF_LANES);
    for (uint32_t i = 0; i < K3HUF_LANES; i++) {
        assert_int_equal(crc[i], k3huf_reference_crc32c(0, data[i], 65536));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_all_sizes_and_alignments),
        cmocka_unit_test(merge_in_place),
        cmocka_unit_test(merge_large),
        cmocka_unit_test(crc_of_the_rfc),
        cmocka_unit_test(crc_all_sizes_and_alignments),
        cmocka_unit_test(crc_goes_on),
        cmocka_unit_test(crc_lanes),
        cmocka_unit_test(nothing_at_null),
    };
    return cmocka_run_group_tests_name("merge_crc", tests, fill_noise, NULL);
}
