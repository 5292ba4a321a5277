/* test_encode_run.c - a run that goes to a file in parts has the bytes of one that is gathered stripe by stripe, for
 * any number of threads; an input that is not what was counted is refused, and nothing is written where the planes of
 * the stripe do not reach. CRCs out of those of blocks are those of the bytes. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc_join.h"
#include "encode_run.h"
#include "rng.h"

#define MIB ((uint32_t)1 << 20)
#define BYTES (2u * MIB + 70001u)

static uint8_t weights[BYTES];

/* Odd bytes of few values, some of them rare, so that stripes of one size get planes of many. */
static void make(uint32_t from, uint32_t values) {
    struct k3huf_rng rng = {from};
    k3huf_rng_fill(&rng, weights + from, BYTES - from);
    for (size_t i = from | 1u; i < BYTES; i += 2) {
        weights[i] = (uint8_t)(weights[i] % values * weights[i - 1] / 256u);
    }
}

static struct k3huf_input input_of(size_t size) {
    return (struct k3huf_input){.name = "weights", .fd = -1, .seekable = true, .size = size, .memory = weights};
}

struct collected {
    uint8_t *bytes;
    size_t size;
};

static enum k3huf_exit collect(void *context, const uint8_t *part, size_t size, struct k3huf_fault *fault) {
    struct collected *collected = context;
    (void)fault;
    memcpy(collected->bytes + collected->size, part, size);
    collected->size += size;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit put(void *context, const uint8_t *part, size_t size, struct k3huf_fault *fault) {
    return k3huf_output_write(context, part, size, fault);
}

static enum k3huf_exit to_file(struct k3huf_output *output, const struct k3huf_encode_options *options, size_t size,
                               const uint8_t codelen[K3HUF_SYMBOLS], const struct k3huf_counts *counts,
                               struct k3huf_encoded *encoded, struct k3huf_fault *fault) {
    struct k3huf_input input = input_of(size);
    const struct k3huf_sink sink = {.put = put, .context = output, .file = output};
    assert_int_equal(k3huf_output_open(output, "test_encode_run.out", false, fault), K3HUF_EXIT_OK);
    return k3huf_encode_run(&input, options, codelen, counts, &sink, encoded, fault);
}

static void same_bytes_either_way(void **state) {
    (void)state;
    static const size_t sizes[] = {BYTES, MIB, MIB + 1, 2 * MIB - 1, 2 * MIB + 2};
    static const uint32_t stripes[] = {MIB, MIB + 1, K3HUF_STRIPE_RAW_MAX, MIB - 1};
    uint8_t *memory = malloc(2 * (size_t)BYTES);
    uint8_t *read = malloc(2 * (size_t)BYTES);
    assert_non_null(memory);
    assert_non_null(read);
    make(0, 200);
    for (unsigned i = 0; i < UNIT_COUNT(sizes) * UNIT_COUNT(stripes) * 2u; i++) {
        const size_t size = sizes[i / 2u % UNIT_COUNT(sizes)];
        const struct k3huf_encode_options options = {.stripe_bytes = stripes[i / 2u / UNIT_COUNT(sizes)],
                                                     .max_code_length = K3HUF_CODE_LENGTH_MAX,
                                                     .block_log2 = i % 2u == 0 ? 0 : 13,
                                                     .threads = 1u + i / 2u % 3u};
        struct k3huf_input input = input_of(size);
        struct k3huf_fault fault;
        struct k3huf_counts counts;
        struct k3huf_encoded encoded;
        struct k3huf_output output;
        struct collected collected = {.bytes = memory};
        const struct k3huf_sink sink = {.put = collect, .context = &collected};
        uint8_t codelen[K3HUF_SYMBOLS];
        size_t got = 0;
        assert_int_equal(k3huf_count(&input, &options, &counts, &fault), K3HUF_EXIT_OK);
        assert_int_equal(counts.stripe != NULL, options.stripe_bytes < size && options.stripe_bytes >= MIB);
        assert_int_equal(k3huf_choose_code(counts.histogram, size, options.max_code_length, "", codelen, &fault),
                         K3HUF_EXIT_OK);
        assert_int_equal(k3huf_encode_run(&input, &options, codelen, &counts, &sink, &encoded, &fault), K3HUF_EXIT_OK);
        assert_int_equal(encoded.crc, k3huf_crc32c(0, weights, size));
        encoded.crc = 0;
        assert_int_equal(to_file(&output, &options, size, codelen, &counts, &encoded, &fault), K3HUF_EXIT_OK);
        assert_int_equal(encoded.crc, k3huf_crc32c(0, weights, size));
        struct k3huf_input written;
        assert_int_equal(output.written, collected.size);
        assert_int_equal(k3huf_input_adopt(&written, output.fd, output.name, &fault), K3HUF_EXIT_OK);
        assert_int_equal(written.size, collected.size);
        assert_int_equal(k3huf_input_read_at(&written, 0, read, collected.size, &got, &fault), K3HUF_EXIT_OK);
        assert_int_equal(got, collected.size);
        assert_memory_equal(read, memory, got);
        k3huf_output_discard(&output);
        free(counts.stripe);
    }
    free(read);
    free(memory);
}

/* The first stripe, or the last one, becomes larger or smaller than was counted. */
static void another_input_is_refused(void **state) {
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        const struct k3huf_encode_options options = {
            .stripe_bytes = MIB, .max_code_length = 12, .block_log2 = 14, .threads = 1u + i / 4u};
        struct k3huf_input input = input_of(BYTES);
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct k3huf_counts counts;
        struct k3huf_encoded encoded;
        struct k3huf_output output;
        uint8_t codelen[K3HUF_SYMBOLS];
        const uint32_t first = i % 2u == 0 ? 0 : 2 * MIB;
        make(0, 200);
        assert_int_equal(k3huf_count(&input, &options, &counts, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_choose_code(counts.histogram, BYTES, 12, "", codelen, &fault), K3HUF_EXIT_OK);
        /* The most frequent value is 0; the rarest has a long code. */
        unsigned rarest = 0;
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            if (codelen[symbol] > codelen[rarest]) { rarest = symbol; }
        }
        for (uint32_t at = first + 1u; at < first + 1000u; at += 2) {
            weights[at] = (uint8_t)(i / 2u % 2u == 0 ? 0 : rarest);
        }
        assert_int_equal(to_file(&output, &options, BYTES, codelen, &counts, &encoded, &fault), K3HUF_EXIT_IO);
        /* The place is that of the part by which it was found: in the stripe that has changed. */
        uint32_t offset = 0;
        assert_int_equal(
            sscanf(fault.text, "weights: changed while it was read: found at offset %" SCNu32 " of the file", &offset),
            1);
        assert_in_range(offset, first, first == 0 ? MIB - 1u : BYTES - 1u);
        k3huf_output_discard(&output);
        free(counts.stripe);
    }
}

static uint32_t nth(const void *context, size_t i) { return ((const uint32_t *)context)[i]; }

static void crcs_of_many_spans(void **state) {
    (void)state;
    for (size_t n = 1; n <= 40; n++) {
        for (size_t last = 0; last <= 777; last += 259) {
            uint32_t crcs[40];
            for (size_t i = 0; i < n; i++) {
                crcs[i] = k3huf_crc32c(0, weights + 777 * i, i + 1 < n ? 777 : last);
            }
            assert_int_equal(k3huf_crc32c_join_all(nth, crcs, n, 777, last),
                             k3huf_crc32c(0, weights, 777 * (n - 1) + last));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_either_way),
        cmocka_unit_test(another_input_is_refused),
        cmocka_unit_test(crcs_of_many_spans),
    };
    return cmocka_run_group_tests_name("encode_run", tests, NULL, NULL);
}
