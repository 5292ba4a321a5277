/* test_encoder.c - the code is optimal within its limit, and what the encoder writes is, byte for byte, what FORMAT.md
 * says: the reference encoder writes the same with the same code, and the reference decoder reads it. */
#include "unit.h"

#include "encoder.h"
#include "k3_histogram.h"
#include "package_merge.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

/* ---- code lengths ---- */

/* What every result must be, whatever the histogram: absent symbols have no code, the rest fill the space exactly and
 * keep the limit. Returns the total bits. */
static uint64_t check_lengths(const uint64_t histogram[256], unsigned limit, const uint8_t codelen[256]) {
    uint64_t bits = 0;
    uint32_t space = 0;
    unsigned present = 0;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        assert_true((histogram[symbol] == 0) == (codelen[symbol] == 0));
        assert_true(codelen[symbol] <= limit);
        if (codelen[symbol] > 0) {
            present++;
            space += 4096u >> codelen[symbol];
        }
        bits += histogram[symbol] * codelen[symbol];
    }
    if (present >= 2) { assert_int_equal(space, 4096); }
    if (present == 1) { assert_int_equal(space, 2048); }
    return bits;
}

static uint64_t lengths(const uint64_t histogram[256], unsigned limit, uint8_t codelen[256]) {
    memset(codelen, 0xEE, 256);
    assert_status(k3huf_code_lengths(histogram, limit, codelen), K3HUF_OK);
    return check_lengths(histogram, limit, codelen);
}

/* Least cost over every way to give lengths 1 ... limit to n <= 6 weights with Kraft sum at most 1: all of them. */
static uint64_t brute_force(const uint64_t *weight, unsigned n, unsigned limit) {
    unsigned length[6] = {1, 1, 1, 1, 1, 1};
    uint64_t best = UINT64_MAX;
    for (;;) {
        uint32_t space = 0;
        uint64_t cost = 0;
        for (unsigned i = 0; i < n; i++) {
            space += 4096u >> length[i];
            cost += weight[i] * length[i];
        }
        if (space <= 4096 && cost < best) { best = cost; }
        unsigned i = 0;
        while (i < n && length[i] == limit) {
            length[i++] = 1;
        }
        if (i == n) { return best; }
        length[i]++;
    }
}

/* Least cost for more weights, by levels of the code tree instead of package-merge. On each level some of the nodes
 * become leaves, for the heaviest weights that have none yet, and the others have two children on the next level. A
 * weight costs itself once for every level above its leaf. `weight` is sorted, heaviest first. */
#define LEVELS_MAX 64u
static uint64_t by_levels(const uint64_t *weight, unsigned n, unsigned limit) {
    static uint64_t cost[LEVELS_MAX + 1][LEVELS_MAX + 1], next[LEVELS_MAX + 1][LEVELS_MAX + 1]; /* [placed][nodes] */
    uint64_t rest[LEVELS_MAX + 1], best = UINT64_MAX;
    rest[n] = 0;
    for (unsigned i = n; i-- > 0;) {
        rest[i] = rest[i + 1] + weight[i];
    }
    memset(cost, 0xFF, sizeof cost);
    cost[0][2] = rest[0];
    for (unsigned level = 1; level <= limit; level++) {
        memset(next, 0xFF, sizeof next);
        for (unsigned placed = 0; placed < n; placed++) {
            for (unsigned nodes = 1; nodes <= LEVELS_MAX; nodes++) {
                if (cost[placed][nodes] == UINT64_MAX) { continue; }
                for (unsigned leaves = 0; leaves <= nodes && placed + leaves <= n; leaves++) {
                    const unsigned now = placed + leaves, inner = 2 * (nodes - leaves);
                    const uint64_t total = cost[placed][nodes] + rest[now];
                    if (now == n) {
                        if (total < best) { best = total; }
                    } else if (inner > 0) {
                        const unsigned useful = inner > LEVELS_MAX ? LEVELS_MAX : inner;
                        if (total < next[now][useful]) { next[now][useful] = total; }
                    }
                }
            }
        }
        memcpy(cost, next, sizeof cost);
    }
    return best;
}

static void sort_down(uint64_t *weight, unsigned n) {
    for (unsigned i = 1; i < n; i++) {
        for (unsigned j = i; j > 0 && weight[j] > weight[j - 1]; j--) {
            const uint64_t t = weight[j];
            weight[j] = weight[j - 1];
            weight[j - 1] = t;
        }
    }
}

/* Put n weights at symbols that are neither neighbours nor in a special place. */
static void scatter(uint64_t histogram[256], const uint64_t *weight, unsigned n) {
    memset(histogram, 0, 256 * sizeof histogram[0]);
    for (unsigned i = 0; i < n; i++) {
        histogram[(i * 47 + 5) % 256] = weight[i];
    }
}

static void optimal_for_all_small_histograms(void **state) {
    (void)state;
    uint64_t histogram[256];
    uint8_t codelen[256];
    for (unsigned n = 2; n <= 4; n++) {
        const unsigned most = n == 4 ? 5 : 8; /* every weight from 1 to that: ties of all kinds */
        uint64_t weight[6] = {1, 1, 1, 1, 1, 1};
        for (bool more = true; more;) {
            scatter(histogram, weight, n);
            for (unsigned limit = n > 2 ? 2 : 1; limit <= 4; limit++) {
                assert_int_equal(lengths(histogram, limit, codelen), brute_force(weight, n, limit));
            }
            unsigned i = 0;
            while (i < n && weight[i] == most) {
                weight[i++] = 1;
            }
            more = i < n;
            if (more) { weight[i]++; }
        }
    }
}

static void optimal_for_random_histograms(void **state) {
    (void)state;
    struct k3huf_rng rng = {20};
    uint64_t histogram[256], weight[6];
    uint8_t codelen[256];
    for (unsigned n = 5; n <= 6; n++) {
        for (unsigned round = 0; round < 60; round++) {
            const unsigned spread = k3huf_rng_below(&rng, 20);
            for (unsigned i = 0; i < n; i++) {
                weight[i] = 1 + k3huf_rng_below(&rng, 2u << k3huf_rng_below(&rng, spread + 1));
            }
            scatter(histogram, weight, n);
            for (unsigned limit = 3; limit <= 5; limit++) {
                assert_int_equal(lengths(histogram, limit, codelen), brute_force(weight, n, limit));
            }
            /* A limit that does not bind changes nothing. */
            assert_int_equal(lengths(histogram, 12, codelen), brute_force(weight, n, 5));
        }
    }
}

/* The second witness agrees with brute force where both can be had, so it can be trusted with more symbols. */
static void witnesses_agree(void **state) {
    (void)state;
    struct k3huf_rng rng = {21};
    for (unsigned round = 0; round < 40; round++) {
        uint64_t weight[6];
        const unsigned n = 2 + k3huf_rng_below(&rng, 5);
        for (unsigned i = 0; i < n; i++) {
            weight[i] = 1 + k3huf_rng_below(&rng, 2u << k3huf_rng_below(&rng, 12));
        }
        sort_down(weight, n);
        for (unsigned limit = 3; limit <= 5; limit++) {
            assert_int_equal(by_levels(weight, n, limit), brute_force(weight, n, limit));
        }
    }
}

static void optimal_with_many_symbols(void **state) {
    (void)state;
    struct k3huf_rng rng = {22};
    uint64_t histogram[256], weight[LEVELS_MAX];
    uint8_t codelen[256];
    for (unsigned round = 0; round < 12; round++) {
        const unsigned n = 7 + k3huf_rng_below(&rng, 34);
        for (unsigned i = 0; i < n; i++) {
            weight[i] = 1 + (k3huf_rng_next(&rng) >> (34 + k3huf_rng_below(&rng, 28)));
        }
        sort_down(weight, n);
        scatter(histogram, weight, n);
        for (unsigned limit = 6; limit <= 12; limit += 3) {
            assert_int_equal(lengths(histogram, limit, codelen), by_levels(weight, n, limit));
        }
    }
}

/* Fibonacci weights make the deepest Huffman trees: 30 of them go to 29 levels without a limit. */
static void twelve_is_the_limit(void **state) {
    (void)state;
    uint64_t histogram[256], weight[30];
    uint8_t codelen[256];
    weight[29] = weight[28] = 1;
    for (unsigned i = 28; i-- > 0;) {
        weight[i] = weight[i + 1] + weight[i + 2];
    }
    for (unsigned n = 2; n <= 30; n++) {
        scatter(histogram, weight + 30 - n, n);
        for (unsigned limit = 5; limit <= 12; limit++) {
            assert_int_equal(lengths(histogram, limit, codelen), by_levels(weight + 30 - n, n, limit));
        }
        unsigned longest = 0;
        for (unsigned symbol = 0; symbol < 256; symbol++) {
            longest = codelen[symbol] > longest ? codelen[symbol] : longest;
        }
        assert_int_equal(longest, n <= 13 ? n - 1 : 12);
    }
}

static void limits_that_cannot_be_are_refused(void **state) {
    (void)state;
    uint64_t histogram[256] = {0};
    uint8_t codelen[256];
    static const uint8_t none[256];
    for (unsigned n = 1; n <= 256; n++) {
        histogram[n - 1] = n;
        for (unsigned limit = 1; limit <= 12; limit++) {
            if (n <= 1u << limit) {
                (void)lengths(histogram, limit, codelen);
            } else {
                memset(codelen, 0xEE, 256);
                assert_status(k3huf_code_lengths(histogram, limit, codelen), K3HUF_E_ARGUMENT);
                assert_memory_equal(codelen, none, 256);
            }
        }
        assert_status(k3huf_code_lengths(histogram, 0, codelen), K3HUF_E_ARGUMENT);
        assert_status(k3huf_code_lengths(histogram, 13, codelen), K3HUF_E_ARGUMENT);
    }
}

static void special_histograms(void **state) {
    (void)state;
    uint64_t histogram[256] = {0};
    uint8_t codelen[256];
    static const uint8_t none[256];
    assert_status(k3huf_code_lengths(histogram, 12, codelen), K3HUF_OK);
    assert_memory_equal(codelen, none, 256);
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        memset(histogram, 0, sizeof histogram);
        histogram[symbol] = UINT64_C(1) << (symbol % 50);
        (void)lengths(histogram, 12, codelen);
        assert_int_equal(codelen[symbol], 1);
    }
    /* All equal: flat, and with one symbol less one length shorter. */
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        histogram[symbol] = 1000;
    }
    assert_int_equal(lengths(histogram, 12, codelen), 8 * 256 * 1000);
    assert_int_equal(lengths(histogram, 8, codelen), 8 * 256 * 1000);
    histogram[17] = 0;
    assert_int_equal(lengths(histogram, 12, codelen), 8 * 254 * 1000 + 7 * 1000);
    /* Counts of the largest files. */
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        histogram[symbol] = (UINT64_C(1) << 43) >> (symbol / 8);
    }
    (void)lengths(histogram, 12, codelen);
    /* Counts whose sums do not fit 64 bits still give a code. */
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        histogram[symbol] = UINT64_MAX;
    }
    memset(codelen, 0xEE, 256);
    assert_status(k3huf_code_lengths(histogram, 12, codelen), K3HUF_OK);
    (void)check_lengths(histogram, 12, codelen);
}

/* The figures of the histogram's source: bits a symbol and ratio of a run at each limit, to five digits. */
static void the_k3_histogram(void **state) {
    (void)state;
    uint64_t total = 0, weight[LEVELS_MAX];
    uint8_t codelen[256];
    unsigned n = 0;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        total += k3huf_k3_histogram[symbol];
        if (k3huf_k3_histogram[symbol] > 0) { weight[n++] = k3huf_k3_histogram[symbol]; }
    }
    assert_int_equal(total, 2097152);
    sort_down(weight, n);
    const uint64_t bits = lengths(k3huf_k3_histogram, 12, codelen);
    assert_int_equal(bits, by_levels(weight, n, 12));
    assert_int_equal((bits * 100000 + total / 2) / total, 275562);
    static const struct {
        unsigned limit, ratio;
    } known[] = {{12, 67223}, {11, 67262}, {10, 67303}, {9, 67462}, {8, 67644}};
    for (size_t i = 0; i < UNIT_COUNT(known); i++) {
        const uint64_t cost = lengths(k3huf_k3_histogram, known[i].limit, codelen);
        assert_int_equal(((cost + 8 * total) * 100000 + 8 * total) / (16 * total), known[i].ratio);
    }
}

/* ---- whole runs ---- */

#define RAW_MAX 70000u
#define RUN_MAX (2u * RAW_MAX + 4096u)
static uint8_t raw[RAW_MAX], run[RUN_MAX], want[RUN_MAX], decoded[RAW_MAX];

/* Encode raw[0 ... size) as pack does. Returns the run's size. */
static size_t encode(size_t size, uint32_t stripe_bytes, uint32_t block_log2, uint8_t codelen[256]) {
    uint64_t histogram[256] = {0};
    struct k3huf_run_header header = {.raw_bytes = size};
    struct k3huf_encoder encoder;
    for (size_t at = 0; at < size; at += stripe_bytes) {
        k3huf_histogram_odd(histogram, raw + at, size - at < stripe_bytes ? size - at : stripe_bytes);
        header.nstripes++;
    }
    (void)lengths(histogram, 12, codelen);
    memcpy(header.codelen, codelen, 256);
    assert_status(k3huf_encoder_init(&encoder, codelen), K3HUF_OK);
    k3huf_run_header_write(&header, run);
    size_t used = 288;
    uint32_t number = 0;
    for (size_t at = 0; at < size; at += stripe_bytes, number++) {
        const uint32_t bytes = size - at < stripe_bytes ? (uint32_t)(size - at) : stripe_bytes;
        const size_t capacity = k3huf_stripe_bound(bytes, block_log2);
        size_t written = 0;
        assert_true(used + capacity < sizeof run);
        run[used + capacity] = 0xEE;
        assert_status(
            k3huf_encode_stripe(&encoder, number, raw + at, bytes, block_log2, run + used, capacity, &written),
            K3HUF_OK);
        assert_true(written <= capacity);
        assert_int_equal(run[used + capacity], 0xEE);
        used += written;
    }
    return used;
}

static void round_trip(size_t size, uint32_t stripe_bytes, uint32_t block_log2) {
    uint8_t codelen[256];
    size_t raw_bytes, used;
    const size_t run_size = encode(size, stripe_bytes, block_log2, codelen);
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, block_log2, 0};
    assert_int_equal(k3huf_reference_encode(&plan, raw, size, want, sizeof want), run_size);
    assert_memory_equal(run, want, run_size);
    const char *wrong = k3huf_reference_decode(run, run_size, decoded, sizeof decoded, &raw_bytes, &used);
    if (wrong != NULL) { fail_msg("%u bytes in stripes of %u: %s", (unsigned)size, (unsigned)stripe_bytes, wrong); }
    assert_int_equal(raw_bytes, size);
    assert_int_equal(used, run_size);
    assert_memory_equal(decoded, raw, size);
}

static void tiny_inputs(void **state) {
    (void)state;
    struct k3huf_rng rng = {30};
    for (size_t size = 0; size <= 40; size++) {
        k3huf_rng_fill(&rng, raw, size);
        for (uint32_t stripe = 1; stripe <= 41; stripe++) {
            for (uint32_t log2 = 0; log2 <= 12; log2 += 12) {
                round_trip(size, stripe, log2);
            }
        }
    }
}

static void kinds_of_data(void **state) {
    (void)state;
    struct k3huf_rng rng = {31};
    static const uint32_t sizes[] = {4999, 5000, 16384, 16385, 16386, RAW_MAX};
    for (size_t i = 0; i < UNIT_COUNT(sizes); i++) {
        static const struct {
            uint32_t stripe, log2;
        } plans[] = {{67108864, 0}, {67108864, 12}, {3333, 0}, {20001, 12}, {16384, 13}, {67108864, 20}};
        for (unsigned kind = 0; kind < 5; kind++) {
            switch (kind) {
            case 0: /* all 256 symbols */
                k3huf_rng_fill(&rng, raw, sizes[i]);
                for (unsigned symbol = 0; symbol < 256; symbol++) {
                    raw[2 * symbol + 1] = (uint8_t)symbol;
                }
                break;
            case 1: /* one symbol */
                k3huf_rng_fill(&rng, raw, sizes[i]);
                for (uint32_t k = 1; k < sizes[i]; k += 2) {
                    raw[k] = 0x80;
                }
                break;
            case 2: /* two symbols, one of them once */
                memset(raw, 0x11, sizes[i]);
                raw[3001] = 0xEE;
                break;
            case 3: /* as deep as it gets: halving counts */
                for (uint32_t k = 0; k < sizes[i]; k++) {
                    uint8_t symbol = 0;
                    while (symbol < 20 && (k3huf_rng_next(&rng) >> 63) != 0) {
                        symbol++;
                    }
                    raw[k] = symbol;
                }
                break;
            default: k3huf_generate(raw, sizes[i], i, k3huf_k3_histogram);
            }
            for (size_t p = 0; p < UNIT_COUNT(plans); p++) {
                round_trip(sizes[i], plans[p].stripe, plans[p].log2);
            }
        }
    }
}

static void what_cannot_be_encoded_is_refused(void **state) {
    (void)state;
    struct k3huf_encoder encoder;
    uint8_t codelen[256] = {0};
    size_t size;
    codelen[5] = codelen[6] = 1;
    assert_status(k3huf_encoder_init(&encoder, codelen), K3HUF_OK);
    memset(raw, 5, 1006);
    const size_t capacity = k3huf_stripe_bound(1006, 0);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 0, run, capacity, &size), K3HUF_OK);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 0, run, capacity - 1, &size), K3HUF_E_ARGUMENT);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 0, 0, run, sizeof run, &size), K3HUF_E_ARGUMENT);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 67108865, 0, run, sizeof run, &size), K3HUF_E_ARGUMENT);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 11, run, sizeof run, &size), K3HUF_E_ARGUMENT);
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 21, run, sizeof run, &size), K3HUF_E_ARGUMENT);
    /* Every place where a symbol without a code can stand. */
    for (unsigned k = 1; k < 1006; k += 2) {
        raw[k] = 7;
        assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 0, run, capacity, &size), K3HUF_E_CODE_WORD);
        raw[k] = 5;
    }
    raw[0] = 7; /* an even byte may be anything */
    assert_status(k3huf_encode_stripe(&encoder, 0, raw, 1006, 0, run, capacity, &size), K3HUF_OK);
    codelen[9] = 12;
    assert_status(k3huf_encoder_init(&encoder, codelen), K3HUF_E_CODE_OVERFULL);
    codelen[9] = 13;
    assert_status(k3huf_encoder_init(&encoder, codelen), K3HUF_E_CODE_LENGTH);
}

/* A stripe encoded in parts and joined has the planes and the index of the stripe encoded as a whole. */
static void parts_are_joined(void **state) {
    (void)state;
    static uint8_t coded[RUN_MAX], even[RAW_MAX], entries[8u * 16u], plane[RUN_MAX];
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        uint8_t codelen[256];
        struct k3huf_encoder encoder;
        const uint32_t size = 40000u + which * 1111u, block = 8192u, nblocks = (size / 2u + 4095u) / 4096u;
        size_t stripe_size;
        k3huf_sample_code(which, codelen);
        k3huf_sample_raw(codelen, which, size, raw, size);
        assert_status(k3huf_encoder_init(&encoder, codelen), K3HUF_OK);
        assert_status(k3huf_encode_stripe(&encoder, 0, raw, size, 12, run, sizeof run, &stripe_size), K3HUF_OK);
        const size_t huf = run[8] | (size_t)run[9] << 8 | (size_t)run[10] << 16;
        for (uint32_t blocks_a_part = 1; blocks_a_part <= nblocks; blocks_a_part++) {
            uint8_t index[16u + 8u * 16u];
            uint32_t bits = 0;
            memset(plane, 0, huf);
            memset(plane + huf, 0xEE, 32);
            for (uint32_t first = 0; first < nblocks; first += blocks_a_part) {
                const uint32_t n = nblocks - first < blocks_a_part ? nblocks - first : blocks_a_part;
                const uint32_t begin = first * block, end = first + n == nblocks ? size : begin + n * block;
                struct k3huf_coded_part part = {.coded = coded, .even = even, .entries = entries};
                assert_true(k3huf_coded_bound(end - begin) < sizeof coded);
                coded[k3huf_coded_bound(end - begin)] = 0xEE;
                assert_status(k3huf_encode_part(&encoder, raw + begin, end - begin, 12, &part), K3HUF_OK);
                assert_int_equal(coded[k3huf_coded_bound(end - begin)], 0xEE);
                assert_memory_equal(even, run + 16 + huf + begin / 2u, k3huf_even_bytes(end - begin));
                k3huf_join_entries(entries, n, bits);
                memcpy(index + 16 + 8u * first, entries, 8u * n);
                bits = k3huf_join_part(plane, bits, &part);
            }
            assert_int_equal((bits + 7u) / 8u, huf);
            assert_memory_equal(plane, run + 16, huf);
            for (size_t i = 0; i < 32; i++) {
                assert_int_equal(plane[huf + i], 0xEE);
            }
            k3huf_index_seal(index, size, 12);
            assert_memory_equal(index, run + 16 + huf + k3huf_even_bytes(size), 16 + 8u * nblocks);
        }
    }
}

/* Every number of bits in front, and every length of a part from nothing on: against bits appended one by one. */
static void joints_at_every_bit(void **state) {
    (void)state;
    struct k3huf_rng rng = {33};
    for (uint32_t before = 0; before < 80; before++) {
        for (uint32_t bits = 0; bits < 200; bits++) {
            uint8_t plane[64], expected[64], coded[32];
            memset(plane, 0, sizeof plane);
            k3huf_rng_fill(&rng, plane, (before + 7) / 8);
            k3huf_rng_fill(&rng, coded, sizeof coded);
            if (before % 8 != 0) { plane[before / 8] &= (uint8_t)(0xff00u >> (before % 8)); }
            if (bits % 8 != 0) { coded[bits / 8] &= (uint8_t)(0xff00u >> (bits % 8)); }
            memcpy(expected, plane, sizeof plane);
            for (uint32_t i = 0; i < bits; i++) {
                const unsigned bit = coded[i / 8] >> (7 - i % 8) & 1u;
                expected[(before + i) / 8] |= (uint8_t)(bit << (7 - (before + i) % 8));
            }
            memset(plane + (before + 7) / 8, 0xA5, sizeof plane - (before + 7) / 8);
            memset(expected + (before + bits + 7) / 8, 0xA5, sizeof plane - (before + bits + 7) / 8);
            const struct k3huf_coded_part part = {coded, NULL, NULL, bits};
            assert_int_equal(k3huf_join_part(plane, before, &part), before + bits);
            assert_memory_equal(plane, expected, sizeof plane);
        }
    }
}

/* ---- the generator the ratios are measured with ---- */

static void generated_data_follows_the_histogram(void **state) {
    (void)state;
    uint64_t histogram[256] = {0};
    k3huf_generate(raw, RAW_MAX, 1, k3huf_k3_histogram);
    k3huf_generate(decoded, 1001, 1, k3huf_k3_histogram);
    assert_memory_equal(raw, decoded, 1001);
    k3huf_generate(decoded, 1001, 2, k3huf_k3_histogram);
    assert_memory_not_equal(raw, decoded, 1001);
    k3huf_histogram_odd(histogram, raw, RAW_MAX);
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        const uint64_t n = RAW_MAX / 2, expected = k3huf_k3_histogram[symbol] * n / 2097152;
        if (k3huf_k3_histogram[symbol] == 0) { assert_int_equal(histogram[symbol], 0); }
        /* Five standard deviations of a binomial, squared: 25 n p (1 - p) < 25 (expected + 1). */
        const uint64_t far = histogram[symbol] > expected ? histogram[symbol] - expected : expected - histogram[symbol];
        assert_true(far * far <= 25 * (expected + 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimal_for_all_small_histograms),
        cmocka_unit_test(optimal_for_random_histograms),
        cmocka_unit_test(witnesses_agree),
        cmocka_unit_test(optimal_with_many_symbols),
        cmocka_unit_test(twelve_is_the_limit),
        cmocka_unit_test(limits_that_cannot_be_are_refused),
        cmocka_unit_test(special_histograms),
        cmocka_unit_test(the_k3_histogram),
        cmocka_unit_test(tiny_inputs),
        cmocka_unit_test(kinds_of_data),
        cmocka_unit_test(joints_at_every_bit),
        cmocka_unit_test(what_cannot_be_encoded_is_refused),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(generated_data_follows_the_histogram),
    };
    return cmocka_run_group_tests_name("encoder", tests, NULL, NULL);
}
