/* test_encode_run.c - a run that goes to a file in parts has the bytes of one that is gathered stripe by stripe, for
 * any number of threads; an input that is not what was counted is refused, and nothing is written where the planes of
 * the stripe do not reach; whatever goes wrong between writing and the file is found, wherever it is. CRCs out of those
 * of blocks are those of the bytes.
 *
 * Writing is done wrong by the system's calls, which the linker wraps (CMakeLists.txt). */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

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

static uint64_t base; /* of inputs */

static struct k3huf_input input_of(size_t size) {
    return (struct k3huf_input){
        .name = "weights", .fd = -1, .seekable = true, .size = size, .base = base, .memory = weights};
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

/* ------------------------------------------------------------------------------------------- wrong writing ---- */

#define CALLS_MAX 32u

/* What is done wrong; all 0: nothing. */
static struct {
    bool flip;
    uint64_t at;   /* of the byte in the file */
    unsigned bit;  /* of this bit of it */
    unsigned skip; /* not the first times that it is written */
    unsigned lose; /* else: the call of that number, counted from 1, writes nothing */
    unsigned cut;  /* else: the file ends before the last byte that it writes */
    unsigned late; /* else: it writes this byte with this bit wrong, behind what it should write */
    unsigned seal; /* else: when an index is complete, this bit of its entries goes wrong, counted from 1 */
    unsigned calls;
    uint64_t end[CALLS_MAX]; /* of what each has written */
    uint64_t joint;          /* where one has begun with the last byte of another */
} wrong;

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset) {
    for (unsigned i = 0; i < wrong.calls && i < CALLS_MAX; i++) {
        if (wrong.end[i] == (uint64_t)offset + 1u) { wrong.joint = (uint64_t)offset; }
    }
    if (wrong.calls < CALLS_MAX) { wrong.end[wrong.calls] = (uint64_t)offset + size; }
    if (++wrong.calls == wrong.lose) { return (ssize_t)size; }
    if (wrong.calls == wrong.cut) {
        assert_int_equal(__real_pwrite64(fd, data, size, offset), (ssize_t)size);
        assert_int_equal(ftruncate(fd, offset + (off_t)size - 1), 0);
        return (ssize_t)size;
    }
    if (wrong.calls == wrong.late) {
        uint8_t byte = 0;
        const ssize_t done = __real_pwrite64(fd, data, size, offset);
        assert_int_equal(pread(fd, &byte, 1, (off_t)wrong.at), 1);
        byte ^= (uint8_t)(1u << wrong.bit);
        assert_int_equal(__real_pwrite64(fd, &byte, 1, (off_t)wrong.at), 1);
        return done;
    }
    if (!wrong.flip || wrong.at < (uint64_t)offset || wrong.at >= (uint64_t)offset + size || wrong.skip-- > 0) {
        return __real_pwrite64(fd, data, size, offset);
    }
    uint8_t *const other = malloc(size);
    assert_non_null(other);
    memcpy(other, data, size);
    other[wrong.at - (uint64_t)offset] ^= (uint8_t)(1u << wrong.bit);
    wrong.flip = false;
    const ssize_t done = __real_pwrite64(fd, other, size, offset);
    free(other);
    return done;
}

void __real_k3huf_index_seal(uint8_t *index, uint32_t raw_bytes, uint32_t block_log2);
void __wrap_k3huf_index_seal(uint8_t *index, uint32_t raw_bytes, uint32_t block_log2);

void __wrap_k3huf_index_seal(uint8_t *index, uint32_t raw_bytes, uint32_t block_log2) {
    if (wrong.seal != 0) {
        index[K3HUF_INDEX_HEADER_BYTES + (wrong.seal - 1u) / 8u] ^= (uint8_t)(1u << (wrong.seal - 1u) % 8u);
    }
    __real_k3huf_index_seal(index, raw_bytes, block_log2);
}

/* Of the output, the run's header. */
ssize_t __wrap_write(int fd, const void *data, size_t size) {
    const off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0) { return __real_write(fd, data, size); } /* what the test itself says */
    const ssize_t done = __wrap_pwrite64(fd, data, size, at);
    assert_int_equal(lseek(fd, at + done, SEEK_SET), at + done);
    return done;
}

/* A file that is to be written, as it should be, and what it is made of. */
struct model {
    struct k3huf_encode_options options;
    struct k3huf_counts counts;
    uint8_t codelen[K3HUF_SYMBOLS];
    size_t size;
    uint8_t *file; /* malloc'ed, and so is: */
    uint8_t *read; /* what a file has that was written wrong */
    size_t file_size;
    unsigned calls; /* that write it */
    uint64_t joint;
};

static enum k3huf_exit write_it(struct model *model, struct k3huf_fault *fault) {
    struct k3huf_output output;
    struct k3huf_encoded encoded;
    struct k3huf_input written;
    size_t got = 0;
    const enum k3huf_exit code =
        to_file(&output, &model->options, model->size, model->codelen, &model->counts, &encoded, fault);
    model->calls = wrong.calls;
    model->joint = wrong.joint;
    memset(&wrong, 0, sizeof wrong);
    model->file_size = output.written;
    if (code == K3HUF_EXIT_OK) {
        struct k3huf_fault ignored;
        assert_true(encoded.checked);
        assert_int_equal(k3huf_input_adopt(&written, output.fd, output.name, &ignored), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_input_read_at(&written, 0, model->read, model->file_size, &got, &ignored),
                         K3HUF_EXIT_OK);
        assert_int_equal(got, model->file_size);
    }
    k3huf_output_discard(&output);
    return code;
}

static struct model model_with(uint32_t size, uint32_t stripe_bytes, uint32_t block_log2, unsigned threads) {
    struct model model = {.options = {.stripe_bytes = stripe_bytes,
                                      .max_code_length = K3HUF_CODE_LENGTH_MAX,
                                      .block_log2 = block_log2,
                                      .threads = threads},
                          .size = size,
                          .file = malloc(2 * (size_t)BYTES),
                          .read = malloc(2 * (size_t)BYTES)};
    struct k3huf_input input = input_of(model.size);
    struct k3huf_fault fault;
    assert_non_null(model.file);
    assert_non_null(model.read);
    make(0, 200);
    memset(&wrong, 0, sizeof wrong);
    assert_int_equal(k3huf_count(&input, &model.options, &model.counts, &fault), K3HUF_EXIT_OK);
    assert_int_equal(k3huf_choose_code(model.counts.histogram, model.size, 12, "", model.codelen, &fault),
                     K3HUF_EXIT_OK);
    assert_int_equal(write_it(&model, &fault), K3HUF_EXIT_OK);
    memcpy(model.file, model.read, model.file_size);
    return model;
}

/* Two parts a stripe, whose joint is inside a byte; then a stripe of one. */
static struct model model_of(uint32_t block_log2, unsigned threads) {
    return model_with(MIB + MIB / 4 + 5001, MIB + MIB / 4, block_log2, threads);
}

static void free_model(struct model *model) {
    free(model->counts.stripe);
    free(model->read);
    free(model->file);
}

static struct k3huf_stripe_header first_stripe(const struct model *model, struct k3huf_run_header *run) {
    struct k3huf_stripe_header stripe;
    uint32_t bad = 0;
    assert_int_equal(k3huf_run_header_read(model->file, run, &bad), K3HUF_OK);
    assert_int_equal(k3huf_stripe_header_read(model->file + K3HUF_RUN_HEADER_BYTES, run, 0, 0, &stripe, &bad),
                     K3HUF_OK);
    return stripe;
}

/* Where in the file. */
enum place { RUN_HEADER, STRIPE_HEADER, CODED, EVEN, INDEX };

/* `even`: where the raw plane begins. */
static void flip(struct model *model, uint64_t at, unsigned bit, enum place place, uint64_t even) {
    struct k3huf_fault fault = {.text = ""};
    char wanted[120];
    wrong.flip = true;
    wrong.at = at;
    wrong.bit = bit;
    const enum k3huf_exit code = write_it(model, &fault);
    if (code == K3HUF_EXIT_OK) {
        assert_true(place == CODED); /* the only bytes that are written twice */
        assert_memory_equal(model->read, model->file, model->file_size);
        return;
    }
    if (place == CODED) {
        assert_true(code == K3HUF_EXIT_CORRUPT || code == K3HUF_EXIT_MISMATCH);
        assert_non_null(strstr(fault.text, "test_encode_run.out: stripe 0, "));
        return;
    }
    if (place == EVEN) {
        const uint64_t offset = base + 2u * (at - even);
        (void)snprintf(wanted, sizeof wanted,
                       "test_encode_run.out: stripe 0, source offset %" PRIu64
                       ": differs from weights: expected 0x%02x, found 0x%02x",
                       offset, (unsigned)weights[offset], (unsigned)weights[offset] ^ 1u << bit);
        assert_int_equal(code, K3HUF_EXIT_MISMATCH);
        assert_string_equal(fault.text, wanted);
        return;
    }
    assert_int_equal(code, K3HUF_EXIT_CORRUPT);
    (void)snprintf(wanted, sizeof wanted,
                   "test_encode_run.out: %soffset %" PRIu64 ": read back, it is not what was written",
                   place == RUN_HEADER ? "run header, " : "stripe 0, ", at);
    assert_string_equal(fault.text, wanted);
}

static void a_wrong_bit_is_found(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t block_log2 = i == 0 ? 14 : 0;
        base = i * 1000u;
        struct model model = model_of(block_log2, 2u - i);
        struct k3huf_rng rng = {i};
        struct k3huf_run_header run;
        const struct k3huf_stripe_header stripe = first_stripe(&model, &run);
        const uint64_t coded = K3HUF_RUN_HEADER_BYTES + K3HUF_STRIPE_HEADER_BYTES;
        const uint64_t even = coded + stripe.huf_bytes;
        const uint64_t index = even + k3huf_even_bytes(stripe.raw_bytes);
        assert_int_equal(run.nstripes, 2);
        assert_int_equal(stripe.pad, k3huf_index_bytes(stripe.raw_bytes, 14) * (block_log2 != 0));
        for (uint64_t at = 0; at < K3HUF_RUN_HEADER_BYTES; at += 41) {
            flip(&model, at, at % 8u, RUN_HEADER, even);
        }
        for (uint64_t at = K3HUF_RUN_HEADER_BYTES; at < coded; at += 3) {
            flip(&model, at, at % 8u, STRIPE_HEADER, even);
        }
        for (uint64_t at = index; at < index + stripe.pad; at += 37) {
            flip(&model, at, at % 8u, INDEX, even);
        }
        const uint64_t ends[] = {coded, even - 1u, even, index - 1u};
        for (size_t end = 0; end < UNIT_COUNT(ends); end++) {
            flip(&model, ends[end], 7, end < 2 ? CODED : EVEN, even);
            flip(&model, ends[end], 0, end < 2 ? CODED : EVEN, even);
        }
        for (unsigned round = 0; round < 5; round++) {
            flip(&model, coded + k3huf_rng_next(&rng) % stripe.huf_bytes, round % 8u, CODED, even);
            flip(&model, even + k3huf_rng_next(&rng) % (index - even), round % 8u, EVEN, even);
        }
        free_model(&model);
    }
    base = 0;
}

/* The byte in which two parts meet is written twice. */
static void a_wrong_bit_where_parts_meet_is_found(void **state) {
    (void)state;
    struct model model = model_of(14, 2);
    struct k3huf_run_header run;
    struct k3huf_index index;
    uint32_t bad = 0;
    uint32_t block = 0;
    const struct k3huf_stripe_header stripe = first_stripe(&model, &run);
    const uint8_t *const begin = model.file + K3HUF_RUN_HEADER_BYTES;
    assert_int_equal(
        k3huf_index_read(begin + k3huf_stripe_bytes(&stripe) - stripe.pad, stripe.pad, &stripe, &index, &bad, &block),
        K3HUF_OK);
    const uint64_t coded = K3HUF_RUN_HEADER_BYTES + K3HUF_STRIPE_HEADER_BYTES;
    assert_in_range(model.joint, coded + 1u, coded + stripe.huf_bytes - 1u);
    uint32_t i = 0;
    while (coded + k3huf_index_bit(&index, i) / 8u < model.joint) {
        i++;
    }
    const unsigned used = k3huf_index_bit(&index, i) % 8u;
    assert_in_range(used, 1, 7);
    for (unsigned bit = 0; bit < 8; bit++) {
        struct k3huf_fault fault = {.text = ""};
        wrong.flip = true;
        wrong.at = model.joint;
        wrong.bit = bit;
        wrong.skip = 1;
        assert_int_not_equal(write_it(&model, &fault), K3HUF_EXIT_OK);
        /* Bits of the part before were in order when that was looked at. */
        assert_int_equal(strstr(fault.text, "read back, it is not what was written") != NULL, bit >= 8u - used);
    }
    free_model(&model);
}

static void a_lost_write_is_found(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct model model = model_of(i == 0 ? 14 : 0, 1u + i);
        const unsigned calls = model.calls;
        assert_int_equal(calls, i == 0 ? 1 + 2 + 3 * 2 + 2 : 1 + 2 + 3 * 2);
        for (unsigned call = 1; call <= calls; call++) {
            struct k3huf_fault fault = {.text = ""};
            wrong.lose = call;
            const enum k3huf_exit code = write_it(&model, &fault);
            assert_true(code == K3HUF_EXIT_CORRUPT || code == K3HUF_EXIT_MISMATCH);
            assert_non_null(strstr(fault.text, "test_encode_run.out: "));
        }
        free_model(&model);
    }
}

/* Anywhere in runs of any kind: many parts, parts that meet between bytes, stripes of one byte and of odd ones, blocks
 * of any size, many threads. */
static void a_wrong_bit_anywhere_is_found(void **state) {
    (void)state;
    static const struct {
        uint32_t size;
        uint32_t stripe_bytes;
        uint32_t block_log2;
        unsigned threads;
    } cases[] = {{MIB + 1, MIB, 0, 1},          {2 * MIB + 3, K3HUF_STRIPE_RAW_MAX, 12, 17},
                 {BYTES, MIB + 7, 13, 3},       {BYTES, K3HUF_STRIPE_RAW_MAX, 16, 2},
                 {2 * MIB, 2 * MIB, 20, 1},     {BYTES, K3HUF_STRIPE_RAW_MAX, 0, 20},
                 {2 * MIB - 1, MIB + 1, 18, 64}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        struct model model = model_with(cases[i].size, cases[i].stripe_bytes, cases[i].block_log2, cases[i].threads);
        struct k3huf_rng rng = {100 + i};
        for (unsigned round = 0; round < 6; round++) {
            struct k3huf_fault fault = {.text = ""};
            wrong.flip = true;
            wrong.at = round == 0 ? model.file_size - 1u : k3huf_rng_next(&rng) % model.file_size;
            wrong.bit = round % 8u;
            if (write_it(&model, &fault) == K3HUF_EXIT_OK) {
                assert_memory_equal(model.read, model.file, model.file_size); /* it was written over */
            } else {
                assert_non_null(strstr(fault.text, "test_encode_run.out: "));
            }
        }
        free_model(&model);
    }
}

/* The last even bytes of a run without an index: nothing else would miss them. */
static void a_file_that_ends_early_is_found(void **state) {
    (void)state;
    struct model model = model_of(0, 1);
    struct k3huf_fault fault = {.text = ""};
    wrong.cut = model.calls;
    assert_int_equal(write_it(&model, &fault), K3HUF_EXIT_CORRUPT);
    assert_non_null(strstr(fault.text, k3huf_status_text(K3HUF_E_TRUNCATED)));
    free_model(&model);
}

/* What was in order when it was read back: the places that all else is found by are looked at in the end. */
static void headers_that_go_wrong_late_are_found(void **state) {
    (void)state;
    struct model model = model_of(14, 2);
    struct k3huf_run_header run;
    const struct k3huf_stripe_header stripe = first_stripe(&model, &run);
    const uint64_t index = K3HUF_RUN_HEADER_BYTES + k3huf_stripe_bytes(&stripe) - stripe.pad;
    /* One bit more for a code of an even number of them: still a code, and another one. */
    unsigned symbol = 0;
    while (run.codelen[symbol] == 0 || run.codelen[symbol] % 2u != 0 || run.codelen[symbol] > 10) {
        symbol++;
    }
    const struct {
        uint64_t at;
        unsigned bit;
    } places[] = {{0, 1},
                  {20 + symbol, 0},
                  {K3HUF_RUN_HEADER_BYTES, 1},
                  {K3HUF_RUN_HEADER_BYTES + 8, 1},
                  {index, 1},
                  {index + 12, 1},
                  {index + K3HUF_INDEX_HEADER_BYTES + 8, 1},
                  {index + stripe.pad - 1u, 1}};
    const unsigned calls = model.calls;
    for (size_t i = 0; i < UNIT_COUNT(places); i++) {
        struct k3huf_fault fault = {.text = ""};
        wrong.late = calls;
        wrong.at = places[i].at;
        wrong.bit = places[i].bit;
        assert_int_equal(write_it(&model, &fault), K3HUF_EXIT_CORRUPT);
        assert_non_null(strstr(fault.text, "test_encode_run.out: "));
    }
    free_model(&model);
}

/* An index that is sound in itself, and not that of the blocks. */
static void an_index_that_says_something_else_is_found(void **state) {
    (void)state;
    struct model model = model_of(14, 2);
    for (unsigned bit = 0; bit < 64; bit += 7) {
        struct k3huf_fault fault = {.text = ""};
        wrong.seal = 64u * 5u + bit + 1u;
        assert_int_equal(write_it(&model, &fault), K3HUF_EXIT_CORRUPT);
        if (bit == 0 || bit >= 32) {
            assert_string_equal(fault.text, "test_encode_run.out: read back, an index is not that of the blocks");
        }
    }
    free_model(&model);
}

/* An input that is read wrong. */
struct source {
    unsigned pass;  /* under way, from 1 on */
    unsigned wrong; /* in that one */
    uint64_t at;
};

static enum k3huf_exit get(void *context, uint64_t offset, uint8_t *to, size_t size, struct k3huf_fault *fault) {
    struct source *source = context;
    (void)fault;
    source->pass += offset == 0;
    memcpy(to, weights + offset, size);
    if (source->pass == source->wrong && source->at >= offset && source->at < offset + size) {
        to[source->at - offset] ^= 1u;
    }
    return K3HUF_EXIT_OK;
}

static void an_input_that_is_read_wrong_is_refused(void **state) {
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        struct source source = {.wrong = i % 3u, .at = 1000000u + i / 3u % 2u};
        const struct k3huf_encode_options options = {.stripe_bytes = i / 6u % 2u == 0 ? MIB : MIB / 2,
                                                     .max_code_length = 12,
                                                     .block_log2 = i / 12u == 0 ? 14 : 0,
                                                     .threads = 2};
        struct k3huf_input input;
        struct k3huf_fault fault = {.text = ""};
        struct k3huf_counts counts;
        struct k3huf_encoded encoded;
        struct k3huf_output output;
        const struct k3huf_sink sink = {.put = put, .context = &output, .file = &output};
        uint8_t codelen[K3HUF_SYMBOLS];
        make(0, 200);
        memset(&wrong, 0, sizeof wrong);
        k3huf_input_by(&input, get, &source, BYTES, "weights");
        assert_int_equal(k3huf_count(&input, &options, &counts, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_choose_code(counts.histogram, BYTES, 12, "", codelen, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_open(&output, "test_encode_run.out", false, &fault), K3HUF_EXIT_OK);
        const enum k3huf_exit code = k3huf_encode_run(&input, &options, codelen, &counts, &sink, &encoded, &fault);
        assert_int_equal(source.pass, 2);
        assert_int_equal(code, source.wrong == 0 ? K3HUF_EXIT_OK : K3HUF_EXIT_IO);
        if (source.wrong != 0) { assert_non_null(strstr(fault.text, "weights: changed while it was read: ")); }
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
        cmocka_unit_test(an_input_that_is_read_wrong_is_refused),
        cmocka_unit_test(a_wrong_bit_is_found),
        cmocka_unit_test(a_wrong_bit_anywhere_is_found),
        cmocka_unit_test(a_wrong_bit_where_parts_meet_is_found),
        cmocka_unit_test(a_lost_write_is_found),
        cmocka_unit_test(a_file_that_ends_early_is_found),
        cmocka_unit_test(headers_that_go_wrong_late_are_found),
        cmocka_unit_test(an_index_that_says_something_else_is_found),
        cmocka_unit_test(crcs_of_many_spans),
    };
    return cmocka_run_group_tests_name("encode_run", tests, NULL, NULL);
}
