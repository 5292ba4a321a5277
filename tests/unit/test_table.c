/* test_table.c - the decode table agrees with the code's bitwise definition. What an entry looks like is the core's own
 * business: each bit pattern is decoded by k3huf_lanes() and by the reference, and the results compared. */
#include "unit.h"

#include "reference.h"
#include "rng.h"
#include "samples.h"
#include "vectors.h"

#define STREAM 64u                /* bytes: enough for the fast loop even where each code has 12 bits */
#define SYMBOLS (STREAM * 8u + 1) /* more than the bits can hold */
#define CANARY 0xB7u

static struct k3huf_table table;
static struct k3huf_workspace workspace;

/* Decode `size` bytes of `stream` as far as they go, both ways. */
static void compare(const struct k3huf_reference_code *code, const uint8_t *stream, size_t size, const char *name) {
    uint8_t want[SYMBOLS], got[SYMBOLS + 16];
    size_t n = 0;
    uint64_t bit = 0;
    int symbol;
    while ((symbol = k3huf_reference_symbol(code, stream, size * 8u, &bit)) >= 0) {
        want[n++] = (uint8_t)symbol;
    }

    memset(got, CANARY, sizeof got);
    struct k3huf_lane lane = {
        .coded = stream, .coded_size = size, .out = got, .symbols = SYMBOLS, .status = K3HUF_E_ARGUMENT};
    k3huf_lanes(&table, &workspace, &lane, 1);
    const enum k3huf_status status = symbol == K3HUF_REFERENCE_NO_CODE ? K3HUF_E_CODE_WORD : K3HUF_WAIT;
    const uint64_t at = (uint64_t)(lane.coded - stream) * 8u + lane.bit;
    if (lane.status != status || at != bit || lane.symbols != SYMBOLS - n || lane.out != got + n ||
        memcmp(got, want, n) != 0) {
        fail_msg("%s, bits %02X %02X: %u symbols to bit %u, \"%s\", instead of %u to bit %u, \"%s\"", name, stream[0],
                 stream[1], (unsigned)(SYMBOLS - lane.symbols), (unsigned)at, k3huf_status_text(lane.status),
                 (unsigned)n, (unsigned)bit, k3huf_status_text(status));
    }
    for (size_t i = n; i < sizeof got; i++) {
        assert_int_equal(got[i], CANARY);
    }
}

/* Every 12-bit pattern in front of random bits; then again with the pattern's place moved by random symbols. */
static void check_code(const uint8_t codelen[256], const char *name) {
    struct k3huf_reference_code code;
    struct k3huf_rng rng = {99};
    uint8_t stream[STREAM];
    assert_null(k3huf_reference_code_build(&code, codelen));
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    for (unsigned pattern = 0; pattern < 4096; pattern++) {
        k3huf_rng_fill(&rng, stream, STREAM);
        stream[0] = (uint8_t)(pattern >> 4);
        stream[1] = (uint8_t)((pattern << 4) | (stream[1] & 15u));
        compare(&code, stream, STREAM, name);
        compare(&code, stream, 2, name); /* too short for the fast loop */
    }
    if (code.longest == 0) { return; }
    /* Whole codes up to the end, so that all 64 bytes are decoded where the space is under-full too. */
    for (int i = 0; i < 200; i++) {
        uint8_t symbols[SYMBOLS];
        uint64_t bit = 0;
        memset(stream, 0, STREAM);
        k3huf_sample_symbols(&code, &rng, symbols, SYMBOLS);
        (void)k3huf_reference_put(&code, symbols, SYMBOLS, stream, STREAM, &bit);
        compare(&code, stream, STREAM, name);
    }
}

static void sample_codes(void **state) {
    (void)state;
    for (unsigned i = 0; i < K3HUF_SAMPLE_CODES; i++) {
        uint8_t codelen[256];
        const char *name = k3huf_sample_code(i, codelen);
        check_code(codelen, name);
    }
}

static void codes_of_the_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        check_code(k3huf_vectors[i].run + 20, k3huf_vectors[i].name);
    }
}

static void a_code_without_symbols_decodes_nothing(void **state) {
    (void)state;
    static const uint8_t none[256];
    check_code(none, "no symbols");
    static const uint8_t zeros[STREAM];
    uint8_t out[4] = {CANARY, CANARY, CANARY, CANARY};
    struct k3huf_lane lane = {.coded = zeros, .coded_size = STREAM, .out = out, .symbols = 4};
    k3huf_lanes(&table, &workspace, &lane, 1);
    assert_status(lane.status, K3HUF_E_CODE_WORD);
    assert_ptr_equal(lane.coded, zeros);
    assert_int_equal(lane.bit, 0);
    assert_int_equal(out[0], CANARY);
}

static void bad_lengths_are_refused(void **state) {
    (void)state;
    uint8_t codelen[256] = {0};
    for (unsigned length = 13; length < 256; length++) {
        codelen[200] = (uint8_t)length;
        assert_status(k3huf_table_build(&table, codelen), K3HUF_E_CODE_LENGTH);
    }
    /* Each full sample code with one code too many. */
    for (unsigned i = 0; i < K3HUF_SAMPLE_CODES; i++) {
        uint32_t space = 0;
        k3huf_sample_code(i, codelen);
        for (unsigned symbol = 0; symbol < 256; symbol++) {
            space += codelen[symbol] == 0 ? 0 : 4096u >> codelen[symbol];
        }
        if (space < 4096) { continue; }
        for (unsigned symbol = 0; symbol < 256; symbol++) {
            const uint8_t was = codelen[symbol];
            if (was == 1) { continue; }
            codelen[symbol] = was == 0 ? 12 : (uint8_t)(was - 1);
            assert_status(k3huf_table_build(&table, codelen), K3HUF_E_CODE_OVERFULL);
            codelen[symbol] = was;
        }
        assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    }
    memset(codelen, 1, 256);
    assert_status(k3huf_table_build(&table, codelen), K3HUF_E_CODE_OVERFULL);
    memset(codelen, 12, 256);
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
}

/* The tail of long codes as its declaration in k3huf.h says, for every 12-bit window, and the lengths. */
static void tail_of_long_codes(void **state) {
    (void)state;
    for (unsigned i = 0; i < K3HUF_SAMPLE_CODES; i++) {
        uint8_t codelen[256];
        struct k3huf_reference_code code;
        const char *name = k3huf_sample_code(i, codelen);
        assert_null(k3huf_reference_code_build(&code, codelen));
        assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
        assert_memory_equal(table.length, codelen, 256);
        for (unsigned window = 0; window < 4096; window++) {
            const uint8_t bits[2] = {(uint8_t)(window >> 4), (uint8_t)(window << 4)};
            uint64_t length = 0;
            const int symbol = k3huf_reference_symbol(&code, bits, 12, &length);
            const bool long_code = window >= table.tail11 && window < table.tail_end;
            if (long_code != (symbol >= 0 && length > 10)) { fail_msg("%s: window %03X", name, window); }
            if (!long_code) { continue; }
            const unsigned codes11 = (unsigned)(table.tail12 - table.tail11) / 2u;
            const bool of_11 = window < table.tail12;
            const unsigned place = of_11 ? (window - table.tail11) / 2u : codes11 + window - table.tail12;
            if (length != (of_11 ? 11u : 12u) || table.tail[place] != symbol) {
                fail_msg("%s: window %03X", name, window);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_codes),
        cmocka_unit_test(codes_of_the_vectors),
        cmocka_unit_test(a_code_without_symbols_decodes_nothing),
        cmocka_unit_test(bad_lengths_are_refused),
        cmocka_unit_test(tail_of_long_codes),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
