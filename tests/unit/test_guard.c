/* test_guard.c - spans that end exactly at, or begin exactly behind, a page that may not be touched: whatever the run
 * says, the core reads and writes inside its spans only. A stray access is a fault, which CMocka reports as a failure.
 * Needs mmap() and mprotect(), so it runs on Linux targets only. */
#define _DEFAULT_SOURCE 1
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"
#include "vectors.h"

#define ARENA (512u * 1024u) /* usable bytes, a multiple of every page size */

/* Usable memory between two forbidden pages. */
struct arena {
    uint8_t *begin;
};

static struct arena arenas[4]; /* one for each span of a call, and one for the index */
static bool at_end;            /* place spans at the arena's end, else at its begin */
static uint8_t out[K3HUF_VECTOR_RAW_MAX];
static uint8_t index_memory[4096];

static struct arena make_arena(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct arena arena;
    uint8_t *all = mmap(NULL, ARENA + 2u * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    arena.begin = all + page;
    assert_int_equal(mprotect(arena.begin, ARENA, PROT_READ | PROT_WRITE), 0);
    return arena;
}

static int make_arenas(void **state) {
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(arenas); i++) {
        arenas[i] = make_arena();
    }
    return 0;
}

/* Copy `size` bytes into an arena, against its border. */
static uint8_t *place(unsigned arena, const uint8_t *bytes, size_t size) {
    assert_true(size <= ARENA);
    uint8_t *at = at_end ? arenas[arena].begin + (ARENA - size) : arenas[arena].begin;
    if (size > 0) { memcpy(at, bytes, size); }
    return at;
}

static uint8_t *place_span(void *context, enum k3huf_span which, const uint8_t *bytes, size_t size) {
    (void)context;
    return place((unsigned)which, bytes, size);
}

/* Without this the other tests prove nothing. */
static void the_guards_are_there(void **state) {
    (void)state;
    /* write() looks at memory without faulting: it fails with EFAULT. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < UNIT_COUNT(arenas); i++) {
        assert_int_equal(write(ends[1], arenas[i].begin, 1), 1);
        assert_int_equal(write(ends[1], arenas[i].begin + ARENA - 1, 1), 1);
        assert_int_equal(write(ends[1], arenas[i].begin - 1, 1), -1);
        assert_int_equal(write(ends[1], arenas[i].begin + ARENA, 1), -1);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static struct k3huf_feed feed_in(unsigned mode, const uint8_t *run, size_t run_size, size_t raw_size,
                                 const char **name) {
    struct k3huf_feed feed = {.run = run,
                              .run_size = run_size,
                              .out = out,
                              .out_size = raw_size,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .place_span = place_span,
                              .seed = mode};
    *name = k3huf_feed_mode(&feed, mode);
    return feed;
}

static void good_run(const uint8_t *run, size_t run_size, const uint8_t *raw, size_t raw_size, unsigned mode) {
    const char *name;
    struct k3huf_feed feed;
    /* Index memory of exactly the size that the run needs: as long as it is less, the decoder says so. */
    size_t index_size = K3HUF_INDEX_HEADER_BYTES;
    do {
        feed = feed_in(mode, run, run_size, raw_size, &name);
        feed.expected = raw;
        feed.index = place(3, index_memory, index_size);
        feed.index_size = index_size;
        k3huf_feed_run(&feed);
        index_size += K3HUF_INDEX_ENTRY_BYTES;
    } while (feed.status == K3HUF_E_INDEX_MEMORY && feed.fault == NULL && index_size < sizeof index_memory);
    if (feed.fault != NULL || feed.status != K3HUF_DONE || feed.produced != raw_size) {
        fail_msg("%s: %s, \"%s\"", name, feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status));
    }
}

/* Golden vectors: small ones in every mode, large ones in those whose calls are few enough to copy the spans. */
static void vectors_between_guards(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        const struct k3huf_vector *v = &k3huf_vectors[i];
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            const bool few_calls = mode < K3HUF_FEED_MODES_WHOLE || (mode >= 16 && mode < 20);
            for (unsigned end = 0; end < 2 && (v->raw_size <= 3000 || few_calls); end++) {
                at_end = end == 1;
                good_run(v->run, v->run_size, v->raw, v->raw_size, mode);
            }
        }
    }
}

static uint8_t raw[20000], run[40000];

static size_t build(unsigned which, size_t size, uint32_t stripe_bytes, unsigned log2, uint32_t filler) {
    uint8_t codelen[256];
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, log2, filler};
    k3huf_sample_code(which, codelen);
    k3huf_sample_raw(codelen, size, stripe_bytes, raw, size);
    const size_t run_size = k3huf_reference_encode(&plan, raw, size, run, sizeof run);
    assert_true(run_size > 0);
    return run_size;
}

/* Every sample code, with and without index, all sizes near the fast loop's margins. */
static void sample_runs_between_guards(void **state) {
    (void)state;
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        for (size_t size = 1; size < 900; size += 1 + size / 6) {
            const unsigned log2 = (size + which) % 2 == 0 ? 12 : 0;
            const size_t run_size = build(which, size, size % 3 == 0 ? 301 : 5000, log2, (uint32_t)(size % 4));
            for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
                at_end = (mode + size) % 2 == 0;
                if (mode < K3HUF_FEED_MODES_WHOLE || (mode + which) % 4 == 0) {
                    good_run(run, run_size, raw, size, mode);
                }
            }
        }
    }
}

static void indexed_blocks_between_guards(void **state) {
    (void)state;
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which += 3) {
        const size_t run_size = build(which, sizeof raw, 18001, 12, 3);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            at_end = mode % 4 < 2;
            if (mode < K3HUF_FEED_MODES_WHOLE || (mode >= 16 && mode < 20)) {
                good_run(run, run_size, raw, sizeof raw, mode);
            }
        }
    }
}

/* Runs with some bits flipped anywhere: any verdict will do, as long as it comes and nothing outside is touched. */
static void damaged_runs_between_guards(void **state) {
    (void)state;
    struct k3huf_rng rng = {40};
    for (unsigned round = 0; round < 3000; round++) {
        const unsigned log2 = round % 2 == 0 ? 12 : 0;
        const size_t size = 1 + k3huf_rng_below(&rng, round % 50 == 0 ? 20000 : 300);
        const size_t run_size =
            build(round % K3HUF_SAMPLE_CODES, size, (uint32_t)size / (1u + k3huf_rng_below(&rng, 4)) + 1u, log2,
                  k3huf_rng_below(&rng, 20));
        /* Damage where sizes, code and index are, or anywhere. */
        const size_t limit = k3huf_rng_below(&rng, 2) == 0 ? run_size : run_size < 330 ? run_size : 330;
        for (unsigned flips = 1 + k3huf_rng_below(&rng, 3); flips > 0; flips--) {
            const uint32_t bit = k3huf_rng_below(&rng, (uint32_t)limit * 8u);
            run[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        const char *name;
        const size_t cut = k3huf_rng_below(&rng, 8) == 0 ? k3huf_rng_below(&rng, (uint32_t)run_size) : run_size;
        struct k3huf_feed feed =
            feed_in(k3huf_rng_below(&rng, size > 3000 ? K3HUF_FEED_MODES_WHOLE : K3HUF_FEED_MODES), run, cut,
                    k3huf_rng_below(&rng, 4) == 0 ? k3huf_rng_below(&rng, (uint32_t)size + 1u) : size, &name);
        at_end = k3huf_rng_below(&rng, 2) == 0;
        k3huf_feed_run(&feed);
        if (feed.fault != NULL) { fail_msg("round %u, %s: %s", round, name, feed.fault); }
        assert_true(k3huf_is_error(feed.status) || feed.status == K3HUF_DONE || feed.status == K3HUF_WAIT);
    }
}

/* The parts by themselves: one lane between guards, with coded spans of all small sizes, sound and not. */
static void lanes_between_guards(void **state) {
    (void)state;
    static struct k3huf_table table;
    static struct k3huf_workspace workspace;
    struct k3huf_rng rng = {41};
    uint8_t noise[200];
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        uint8_t codelen[256];
        k3huf_sample_code(which, codelen);
        assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
        for (size_t coded = 0; coded < 90; coded++) {
            for (size_t symbols = 0; symbols < 100; symbols += 1 + symbols / 4) {
                at_end = !at_end;
                k3huf_rng_fill(&rng, noise, sizeof noise);
                struct k3huf_lane lane = {.coded = place(0, noise, coded),
                                          .coded_size = coded,
                                          .bit = coded == 0 ? 0 : k3huf_rng_below(&rng, 8),
                                          .with_crc = true,
                                          .raw = place(1, noise + 90, symbols),
                                          .symbols = symbols};
                const bool bare = k3huf_rng_below(&rng, 2) == 0;
                uint8_t filled[200];
                memset(filled, K3HUF_FEED_FILL, sizeof filled);
                lane.out = place(2, filled, bare ? symbols : 2 * symbols);
                lane.raw = bare ? NULL : lane.raw;
                uint8_t *const begin = lane.out;
                k3huf_lanes(&table, &workspace, &lane, 1);
                assert_int_equal(lane.out - begin, (bare ? 1 : 2) * (ptrdiff_t)(symbols - lane.symbols));
                assert_true((lane.status == K3HUF_OK) == (lane.symbols == 0));
            }
        }
    }
}

#define LONG_SYMBOLS 3200u

/* Lanes over one long coded span that ends at a guard, cut at many places, with the workspace at a guard as well: the
 * whole codes in the span come out, and no more. */
static void cut_lanes_are_right(const uint8_t codelen[256], struct k3huf_rng *rng, const uint8_t *symbols,
                                unsigned begin, size_t step) {
    static struct k3huf_table table;
    static uint8_t coded[LONG_SYMBOLS * 12u / 8u + 16u], outs[K3HUF_LANES][LONG_SYMBOLS];
    static const struct k3huf_workspace fresh;
    struct k3huf_reference_code code;
    uint64_t end = begin;
    assert_null(k3huf_reference_code_build(&code, codelen));
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    memset(coded, 0, sizeof coded);
    assert_true(k3huf_reference_put(&code, symbols, LONG_SYMBOLS, coded, sizeof coded, &end));
    for (size_t size = 1; size <= (end + 7u) / 8u; size += 1u + k3huf_rng_below(rng, (uint32_t)step)) {
        struct k3huf_lane lane[K3HUF_LANES];
        const size_t n = size % 2u == 0 ? 1 : K3HUF_LANES;
        uint64_t bit = begin;
        size_t whole = 0;
        while (whole < LONG_SYMBOLS && bit + codelen[symbols[whole]] <= size * 8u) {
            bit += codelen[symbols[whole++]];
        }
        at_end = true;
        void *const workspace = place(3, (const uint8_t *)&fresh, sizeof fresh);
        for (size_t i = 0; i < n; i++) {
            lane[i] = (struct k3huf_lane){.coded = place(0, coded, size),
                                          .coded_size = size,
                                          .bit = begin,
                                          .out = outs[i],
                                          .symbols = LONG_SYMBOLS};
        }
        k3huf_lanes(&table, workspace, lane, n);
        for (size_t i = 0; i < n; i++) {
            assert_status(lane[i].status, whole == LONG_SYMBOLS ? K3HUF_OK : K3HUF_WAIT);
            assert_int_equal(LONG_SYMBOLS - lane[i].symbols, whole);
            assert_memory_equal(outs[i], symbols, whole);
        }
    }
}

/* Every sample code; and the one that takes most of the coded span in a turn of the fast loop: in turn four codes of
 * ten bits and one of twelve. */
static void long_lanes_between_guards(void **state) {
    (void)state;
    static uint8_t symbols[LONG_SYMBOLS];
    struct k3huf_rng rng = {43};
    uint8_t codelen[256];
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        struct k3huf_reference_code code;
        k3huf_sample_code(which, codelen);
        assert_null(k3huf_reference_code_build(&code, codelen));
        k3huf_sample_symbols(&code, &rng, symbols, LONG_SYMBOLS);
        cut_lanes_are_right(codelen, &rng, symbols, which % 8u, 600);
    }
    memset(codelen, 0, sizeof codelen);
    memset(codelen, 10, 100);
    memset(codelen + 100, 12, 100);
    for (unsigned begin = 0; begin < 8; begin++) {
        for (size_t i = 0; i < LONG_SYMBOLS; i++) {
            symbols[i] = (uint8_t)(k3huf_rng_below(&rng, 100) + (i % 5u == 4u ? 100u : 0));
        }
        cut_lanes_are_right(codelen, &rng, symbols, begin, 60);
    }
}

static void merge_and_crc_between_guards(void **state) {
    (void)state;
    struct k3huf_rng rng = {42};
    uint8_t noise[600];
    k3huf_rng_fill(&rng, noise, sizeof noise);
    for (size_t n = 0; n <= 200; n++) {
        for (unsigned end = 0; end < 2; end++) {
            at_end = end == 1;
            const uint8_t *raws = place(0, noise, n), *symbols = place(1, noise + 300, n);
            uint8_t *merged = place(2, noise, 2 * n);
            k3huf_merge(merged, raws, symbols, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(merged[2 * i] == noise[i] && merged[2 * i + 1] == noise[300 + i]);
            }
            assert_int_equal(k3huf_crc32c(0, raws, n), k3huf_reference_crc32c(0, noise, n));
            uint32_t crc[K3HUF_LANES] = {0};
            const uint8_t *data[K3HUF_LANES];
            for (uint32_t i = 0; i < K3HUF_LANES; i++) {
                data[i] = i % 2 == 0 ? raws : symbols;
            }
            k3huf_crc32c_lanes(crc, data, n, K3HUF_LANES);
            for (uint32_t i = 0; i < K3HUF_LANES; i++) {
                assert_int_equal(crc[i], k3huf_reference_crc32c(0, noise + 300 * (i % 2), n));
            }
        }
    }
}

static void headers_between_guards(void **state) {
    (void)state;
    const size_t run_size = build(13, 60, 30, 12, 0);
    for (unsigned end = 0; end < 2; end++) {
        struct k3huf_run_header header;
        struct k3huf_stripe_header stripe;
        struct k3huf_index index;
        uint32_t bad, bytes, block;
        at_end = end == 1;
        assert_status(k3huf_run_header_read(place(0, run, 288), &header, &bad), K3HUF_OK);
        assert_status(k3huf_stripe_header_read(place(0, run + 288, 16), &header, 0, 0, &stripe, &bad), K3HUF_OK);
        const size_t filler = 288u + 16u + stripe.huf_bytes + 15u;
        assert_int_equal(stripe.pad, 24);
        assert_true(filler + 24u < run_size);
        for (size_t size = 0; size <= 24; size++) {
            const uint8_t *at = place(0, run + filler, size);
            assert_status(k3huf_index_probe(at, size, &stripe, &bytes, &bad), size < 16 ? K3HUF_WAIT : K3HUF_OK);
            assert_status(k3huf_index_read(at, size, &stripe, &index, &bad, &block), size < 24 ? K3HUF_WAIT : K3HUF_OK);
        }
        k3huf_run_header_write(&header, place(0, run, 288));
        k3huf_stripe_header_write(&stripe, 0, place(0, run, 16));
        k3huf_index_seal(place(0, run + filler, 24), 30, 12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guards_are_there),        cmocka_unit_test(vectors_between_guards),
        cmocka_unit_test(sample_runs_between_guards),  cmocka_unit_test(indexed_blocks_between_guards),
        cmocka_unit_test(damaged_runs_between_guards), cmocka_unit_test(lanes_between_guards),
        cmocka_unit_test(long_lanes_between_guards),   cmocka_unit_test(merge_and_crc_between_guards),
        cmocka_unit_test(headers_between_guards),
    };
    return cmocka_run_group_tests_name("guard", tests, make_arenas, NULL);
}
