/* test_lanes.c - k3huf_lanes(): every number of lanes, lengths, starting bits, spans cut short, bits that are no code,
 * bare symbols and the running CRC; nothing is written outside a lane's output. */
#include "unit.h"

#include "reference.h"
#include "rng.h"
#include "samples.h"

#define SYMBOLS_MAX 6000u
#define CODED_MAX (SYMBOLS_MAX * 12u / 8u + 16u)
#define GUARD 32u
#define MANY (2u * K3HUF_LANES + 1u) /* more lanes than run side by side */
#define CANARY 0xB7u

static struct k3huf_table table;
static struct k3huf_workspace workspace;

/* What one lane is to decode, and what must come out. */
static struct {
    uint8_t symbols[SYMBOLS_MAX];
    uint8_t raw[SYMBOLS_MAX];
    uint8_t coded[CODED_MAX];
    uint8_t out[GUARD + 2u * SYMBOLS_MAX + GUARD];
    uint8_t want[2u * SYMBOLS_MAX];
    size_t n, want_size, coded_size;
    uint64_t begin, end; /* bits */
} lanes[MANY];

static struct k3huf_reference_code code;

static void use_code(unsigned which) {
    uint8_t codelen[256];
    k3huf_sample_code(which, codelen);
    assert_null(k3huf_reference_code_build(&code, codelen));
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
}

/* Make lane `i`: n symbols from bit `begin` of its first byte on; random bits before, and after if `noise`. */
static struct k3huf_lane make(unsigned i, struct k3huf_rng *rng, size_t n, unsigned begin, bool bare, bool noise) {
    lanes[i].n = n;
    lanes[i].begin = lanes[i].end = begin;
    k3huf_sample_symbols(&code, rng, lanes[i].symbols, n);
    k3huf_rng_fill(rng, lanes[i].raw, n);
    memset(lanes[i].coded, 0, CODED_MAX);
    assert_true(k3huf_reference_put(&code, lanes[i].symbols, n, lanes[i].coded, CODED_MAX, &lanes[i].end));
    lanes[i].coded[0] = (uint8_t)(lanes[i].coded[0] | (k3huf_rng_next(rng) & (0xFF00u >> begin) & 0xFFu));
    lanes[i].coded_size = (size_t)((lanes[i].end + 7u) / 8u);
    if (noise) {
        const uint64_t end = lanes[i].end;
        if (end % 8u != 0) { lanes[i].coded[end / 8u] = (uint8_t)(lanes[i].coded[end / 8u] | (0xFFu >> (end % 8u))); }
        k3huf_rng_fill(rng, lanes[i].coded + lanes[i].coded_size, 12);
        lanes[i].coded_size += k3huf_rng_below(rng, 13);
    }
    for (size_t k = 0; k < n; k++) {
        if (bare) {
            lanes[i].want[k] = lanes[i].symbols[k];
        } else {
            lanes[i].want[2 * k] = lanes[i].raw[k];
            lanes[i].want[2 * k + 1] = lanes[i].symbols[k];
        }
    }
    lanes[i].want_size = bare ? n : 2 * n;
    memset(lanes[i].out, CANARY, sizeof lanes[i].out);
    return (struct k3huf_lane){.coded = lanes[i].coded,
                               .coded_size = lanes[i].coded_size,
                               .bit = begin,
                               .status = K3HUF_E_ARGUMENT,
                               .raw = bare ? NULL : lanes[i].raw,
                               .out = lanes[i].out + GUARD,
                               .symbols = n};
}

/* Lane `i` has produced `done` symbols and stands where it should; nothing else was written. */
static void check(unsigned i, const struct k3huf_lane *lane, size_t done, uint64_t at, enum k3huf_status status) {
    const size_t each = lane->raw == NULL ? 1 : 2;
    assert_status(lane->status, status);
    assert_int_equal(lane->symbols, lanes[i].n - done);
    assert_ptr_equal(lane->out, lanes[i].out + GUARD + each * done);
    if (lane->raw != NULL) { assert_ptr_equal(lane->raw, lanes[i].raw + done); }
    assert_int_equal((uint64_t)(lane->coded - lanes[i].coded) * 8u + lane->bit, at);
    assert_true(lane->bit < 8);
    assert_int_equal(lane->coded_size, lanes[i].coded_size - (size_t)(lane->coded - lanes[i].coded));
    assert_memory_equal(lanes[i].out + GUARD, lanes[i].want, each * done);
    for (size_t k = 0; k < GUARD; k++) {
        assert_int_equal(lanes[i].out[k], CANARY);
    }
    for (size_t k = GUARD + each * done; k < sizeof lanes[i].out; k++) {
        assert_int_equal(lanes[i].out[k], CANARY);
    }
    if (!lane->with_crc) {
        assert_int_equal(lane->crc, 0);
    } else {
        assert_int_equal(lane->crc, k3huf_reference_crc32c(0, lanes[i].want, each * done));
    }
}

static size_t some_length(struct k3huf_rng *rng) {
    static const uint16_t lengths[] = {0, 1, 2, 3, 5, 29, 30, 31, 59, 60, 61, 100, 1000, 4096, 6000};
    return k3huf_rng_below(rng, 4) == 0 ? k3huf_rng_below(rng, SYMBOLS_MAX + 1u)
                                        : lengths[k3huf_rng_below(rng, UNIT_COUNT(lengths))];
}

/* All numbers of lanes, with lengths and starting bits of their own, with and without CRC and raw plane, with the span
 * ending exactly at the last code or going on with other bits. */
static void lanes_of_all_kinds(void **state) {
    (void)state;
    struct k3huf_rng rng = {7};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        use_code(which);
        for (unsigned round = 0; round < 27; round++) {
            struct k3huf_lane lane[MANY];
            const uint32_t n = round % MANY + 1u;
            const bool bare = k3huf_rng_below(&rng, 3) == 0;
            for (uint32_t i = 0; i < n; i++) {
                lane[i] = make(i, &rng, some_length(&rng), k3huf_rng_below(&rng, 8), bare, k3huf_rng_below(&rng, 2));
                lane[i].with_crc = k3huf_rng_below(&rng, 2);
            }
            k3huf_lanes(&table, &workspace, lane, n);
            for (uint32_t i = 0; i < n; i++) {
                check(i, &lane[i], lanes[i].n, lanes[i].end, K3HUF_OK);
            }
        }
    }
}

/* Lanes with and without a raw plane in one call. */
static void bare_and_merged_lanes_together(void **state) {
    (void)state;
    struct k3huf_rng rng = {8};
    use_code(13);
    for (unsigned mask = 0; mask < 1u << K3HUF_LANES; mask++) {
        struct k3huf_lane lane[K3HUF_LANES];
        for (uint32_t i = 0; i < K3HUF_LANES; i++) {
            lane[i] = make(i, &rng, some_length(&rng), i % 8u, (mask >> i & 1u) != 0, false);
            lane[i].with_crc = true;
        }
        k3huf_lanes(&table, &workspace, lane, K3HUF_LANES);
        for (uint32_t i = 0; i < K3HUF_LANES; i++) {
            check(i, &lane[i], lanes[i].n, lanes[i].end, K3HUF_OK);
        }
    }
}

static void every_starting_bit(void **state) {
    (void)state;
    struct k3huf_rng rng = {9};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        use_code(which);
        for (unsigned bit = 0; bit < 8; bit++) {
            for (unsigned n = 0; n < 70; n += 1 + n / 8) {
                struct k3huf_lane lane = make(0, &rng, n, bit, false, false);
                k3huf_lanes(&table, &workspace, &lane, 1);
                check(0, &lane, n, lanes[0].end, K3HUF_OK);
            }
        }
    }
}

/* The span ends early, at every byte: the whole codes before it are decoded; with the rest given, the rest comes. */
static void spans_cut_short_go_on(void **state) {
    (void)state;
    struct k3huf_rng rng = {10};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        use_code(which);
        struct k3huf_lane whole = make(0, &rng, 60 + k3huf_rng_below(&rng, 40), which % 8, which % 3 == 0, false);
        whole.with_crc = true;
        const size_t size = lanes[0].coded_size;
        for (size_t cut = 0; cut < size; cut++) {
            struct k3huf_lane lane = whole;
            size_t done = 0;
            uint64_t at = lanes[0].begin;
            while (done < lanes[0].n && k3huf_reference_symbol(&code, lanes[0].coded, cut * 8u, &at) >= 0) {
                done++;
            }
            memset(lanes[0].out, CANARY, sizeof lanes[0].out);
            lanes[0].coded_size = lane.coded_size = cut;
            k3huf_lanes(&table, &workspace, &lane, 1);
            check(0, &lane, done, at, K3HUF_WAIT);
            /* The same again changes nothing. */
            k3huf_lanes(&table, &workspace, &lane, 1);
            check(0, &lane, done, at, K3HUF_WAIT);
            lane.coded_size += size - cut;
            lanes[0].coded_size = size;
            k3huf_lanes(&table, &workspace, &lane, 1);
            check(0, &lane, lanes[0].n, lanes[0].end, K3HUF_OK);
        }
    }
}

/* Several lanes whose spans grow by random steps until all is decoded. */
static void lanes_fed_in_pieces(void **state) {
    (void)state;
    struct k3huf_rng rng = {11};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        use_code(which);
        struct k3huf_lane lane[MANY];
        size_t given[MANY], size[MANY];
        for (uint32_t i = 0; i < MANY; i++) {
            lane[i] = make(i, &rng, some_length(&rng), k3huf_rng_below(&rng, 8), false, false);
            lane[i].with_crc = true;
            size[i] = lanes[i].coded_size;
            lane[i].coded_size = given[i] = 0;
        }
        for (bool all = false; !all;) {
            all = true;
            for (uint32_t i = 0; i < MANY; i++) {
                size_t more = 1 + k3huf_rng_below(&rng, 400);
                if (more > size[i] - given[i]) { more = size[i] - given[i]; }
                given[i] += more;
                lane[i].coded_size += more;
                all = all && given[i] == size[i];
            }
            k3huf_lanes(&table, &workspace, lane, MANY);
            for (uint32_t i = 0; i < MANY; i++) {
                assert_true(lane[i].status == K3HUF_OK || lane[i].status == K3HUF_WAIT);
            }
        }
        for (uint32_t i = 0; i < MANY; i++) {
            check(i, &lane[i], lanes[i].n, lanes[i].end, K3HUF_OK);
        }
    }
}

/* A symbol taken out of an under-full code: its bits are no code, and the lane stops in front of them while the other
 * lanes go on. */
static void bits_that_are_no_code(void **state) {
    (void)state;
    struct k3huf_rng rng = {12};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        uint8_t full[256], holed[256];
        k3huf_sample_code(which, full);
        memcpy(holed, full, sizeof full);
        assert_null(k3huf_reference_code_build(&code, full));
        /* The last code of the longest length is all that can go without moving others. */
        const uint8_t gone = code.symbols[code.before[12] + code.count[12] - 1u];
        holed[gone] = 0;
        assert_status(k3huf_table_build(&table, holed), K3HUF_OK);
        if (code.before[12] + code.count[12] < 2) { continue; }
        for (unsigned round = 0; round < 18; round++) {
            struct k3huf_lane lane[MANY];
            const uint32_t n = round % MANY + 1u;
            for (uint32_t i = 0; i < n; i++) {
                lane[i] = make(i, &rng, some_length(&rng), k3huf_rng_below(&rng, 8), round % 2 == 0, true);
            }
            k3huf_lanes(&table, &workspace, lane, n);
            for (uint32_t i = 0; i < n; i++) {
                const uint8_t *hit = memchr(lanes[i].symbols, gone, lanes[i].n);
                const size_t done = hit == NULL ? lanes[i].n : (size_t)(hit - lanes[i].symbols);
                uint64_t at = lanes[i].begin;
                for (size_t k = 0; k < done; k++) {
                    at += code.length[lanes[i].symbols[k]];
                }
                check(i, &lane[i], done, at, hit == NULL ? K3HUF_OK : K3HUF_E_CODE_WORD);
            }
        }
    }
}

/* The first 300 places of a stream, each hit by bits that are no code. */
static void no_code_at_every_place(void **state) {
    (void)state;
    struct k3huf_rng rng = {13};
    uint8_t codelen[256];
    k3huf_sample_code(5, codelen); /* lengths 1 to 12; twelve ones are no code */
    assert_null(k3huf_reference_code_build(&code, codelen));
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    for (size_t place = 0; place < 300; place++) {
        struct k3huf_lane lane = make(0, &rng, 400, (unsigned)(place % 8), false, false);
        uint64_t at = lanes[0].begin;
        for (size_t k = 0; k < place; k++) {
            at += code.length[lanes[0].symbols[k]];
        }
        for (uint64_t bit = at; bit < at + 12u; bit++) {
            lanes[0].coded[bit / 8u] = (uint8_t)(lanes[0].coded[bit / 8u] | (0x80u >> (bit % 8u)));
        }
        lane.with_crc = true;
        k3huf_lanes(&table, &workspace, &lane, 1);
        check(0, &lane, place, at, K3HUF_E_CODE_WORD);
    }
}

/* Nothing to decode needs no memory: all pointers may be NULL. */
static void lanes_of_nothing(void **state) {
    (void)state;
    use_code(0);
    for (size_t n = 1; n <= K3HUF_LANES; n++) {
        struct k3huf_lane lane[K3HUF_LANES];
        memset(lane, 0, sizeof lane);
        for (size_t i = 0; i < n; i++) {
            lane[i].with_crc = i % 2 == 0;
            lane[i].status = K3HUF_WAIT;
        }
        k3huf_lanes(&table, &workspace, lane, n);
        for (size_t i = 0; i < n; i++) {
            assert_status(lane[i].status, K3HUF_OK);
            assert_int_equal(lane[i].crc, 0);
            assert_null(lane[i].out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_of_all_kinds),     cmocka_unit_test(bare_and_merged_lanes_together),
        cmocka_unit_test(every_starting_bit),     cmocka_unit_test(spans_cut_short_go_on),
        cmocka_unit_test(lanes_fed_in_pieces),    cmocka_unit_test(bits_that_are_no_code),
        cmocka_unit_test(no_code_at_every_place), cmocka_unit_test(lanes_of_nothing),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
