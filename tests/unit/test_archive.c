/* test_archive.c - the bytes of archives: joined CRCs, first page and table of contents there and back, and tables full
 * of lies whose CRCs are right, which may be refused or harmless but nothing else; what is read for a part of a run. */
#include "unit.h"

#include <stdatomic.h>
#include <string.h>

#include "archive_file.h"
#include "crc_join.h"
#include "dispatch.h"
#include "memory_run.h"
#include "rng.h"

static void joined_crcs(void **state) {
    (void)state;
    static uint8_t bytes[5000];
    struct k3huf_rng rng = {7};
    k3huf_rng_fill(&rng, bytes, sizeof bytes);
    const uint32_t whole = k3huf_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += cut < 40 ? 1 : 97) {
        const uint32_t first = k3huf_crc32c(0, bytes, cut);
        const uint32_t second = k3huf_crc32c(0, bytes + cut, sizeof bytes - cut);
        assert_int_equal(k3huf_crc32c_join(first, second, sizeof bytes - cut), whole);
    }
    static uint8_t many[300000];
    k3huf_rng_fill(&rng, many, sizeof many);
    for (size_t size = 0; size <= sizeof many; size += 1 + size / 5) {
        for (unsigned i = 0; k3huf_isa_choice(i) != NULL; i++) {
            assert_int_equal(k3huf_crc32c_long(k3huf_isa_choice(i), whole, many, size),
                             k3huf_crc32c(whole, many, size));
        }
    }
    memset(bytes, 0, sizeof bytes);
    for (size_t n = 0; n < sizeof bytes; n += 1 + n / 3) {
        assert_int_equal(k3huf_crc32c_zeros(n), k3huf_crc32c(0, bytes, n));
    }
    /* Lengths that no memory holds: 2^40 zeros by halves. */
    const uint32_t half = k3huf_crc32c_zeros((uint64_t)1 << 39);
    assert_int_equal(k3huf_crc32c_zeros((uint64_t)1 << 40), k3huf_crc32c_join(half, half, (uint64_t)1 << 39));
}

#define ENTRIES 3u
#define TENSORS 3u
#define DIMS 4u
#define NAMES 8u
#define TOC (ENTRIES * K3HUF_ARCHIVE_ENTRY_BYTES + TENSORS * K3HUF_ARCHIVE_TENSOR_BYTES + DIMS * 8u + NAMES)

/* Stored bytes, a run, zeros; a tensor in each of the latter two, and one without bytes. */
static void make(struct k3huf_archive_page *page, uint8_t toc[TOC]) {
    const struct k3huf_archive_entry entry[ENTRIES] = {
        {4096, 100, 0, 100, 0x11111111, K3HUF_ENTRY_STORED, 0, 0},
        {8192, 5000, 100, 8000, 0x22222222, K3HUF_ENTRY_RUN, 0, 3},
        {0, 0, 8100, 70000, k3huf_crc32c_zeros(70000), K3HUF_ENTRY_ZEROS, 3, 3}};
    const struct k3huf_archive_tensor tensor[TENSORS] = {{100, 8000, 1, 0, 3, 2, "BF16", 0},
                                                         {8100, 70000, 2, 3, 3, 1, "U8", 2},
                                                         {78100, 0, K3HUF_ARCHIVE_NO_ENTRY, 6, 2, 1, "F8_E4M3", 3}};
    static const uint64_t dims[DIMS] = {40, 100, 70000, 0};
    *page = (struct k3huf_archive_page){.archive_bytes = 16384 + TOC,
                                        .toc_offset = 16384,
                                        .toc_bytes = TOC,
                                        .nentries = ENTRIES,
                                        .source_bytes = 78100,
                                        .source_kind = K3HUF_SOURCE_SAFETENSORS,
                                        .ntensors = TENSORS,
                                        .ndims = DIMS,
                                        .source_mtime = -5};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        k3huf_archive_entry_write(toc, i, &entry[i]);
        page->source_crc = k3huf_crc32c_join(page->source_crc, entry[i].raw_crc, entry[i].raw_bytes);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        k3huf_archive_tensor_write(page, toc, i, &tensor[i]);
    }
    for (uint32_t i = 0; i < DIMS; i++) {
        k3huf_archive_dim_write(page, toc, i, dims[i]);
    }
    memcpy(toc + k3huf_archive_names_at(page), "w.0zerEE", NAMES);
    page->toc_crc = k3huf_crc32c(0, toc, TOC);
}

static void there_and_back(void **state) {
    (void)state;
    struct k3huf_archive_page page;
    struct k3huf_archive_page read;
    struct k3huf_archive_fault fault = {0};
    uint8_t toc[TOC];
    uint8_t bytes[K3HUF_ARCHIVE_PAGE];
    make(&page, toc);
    k3huf_archive_page_write(&page, bytes);
    assert_true(k3huf_archive_magic(bytes, sizeof bytes));
    assert_false(k3huf_archive_magic(bytes, 7));
    assert_true(k3huf_archive_page_read(bytes, page.archive_bytes, &read, &fault));
    assert_memory_equal(&page, &read, sizeof page);
    assert_true(k3huf_archive_toc_check(&read, toc, &fault));
    struct k3huf_archive_tensor tensor;
    k3huf_archive_tensor_read(&read, toc, 2, &tensor);
    assert_string_equal(tensor.dtype, "F8_E4M3");
    assert_int_equal(tensor.entry, K3HUF_ARCHIVE_NO_ENTRY);
    assert_int_equal(k3huf_archive_dim_read(&read, toc, 2), 70000);
    assert_false(k3huf_archive_page_read(bytes, page.archive_bytes - 1, &read, &fault));
    assert_false(k3huf_archive_page_read(bytes, page.archive_bytes + 1, &read, &fault));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x10;
        assert_false(k3huf_archive_page_read(bytes, page.archive_bytes, &read, &fault));
        bytes[i] ^= 0x10;
    }
}

/* Change fields at random, seal, and if the result is taken, everything it says must be inside. */
static void lies(void **state) {
    (void)state;
    struct k3huf_rng rng = {1};
    unsigned taken = 0;
    for (unsigned round = 0; round < 30000; round++) {
        struct k3huf_archive_page page;
        struct k3huf_archive_fault fault = {0};
        uint8_t toc[TOC];
        uint8_t bytes[K3HUF_ARCHIVE_PAGE];
        make(&page, toc);
        static const uint64_t values[] = {0,
                                          1,
                                          3,
                                          100,
                                          4096,
                                          8192,
                                          78100,
                                          UINT32_MAX,
                                          UINT64_MAX,
                                          UINT64_MAX - 4095,
                                          (uint64_t)1 << 63,
                                          (uint64_t)1 << 32};
        for (unsigned i = 0; i < 1 + round % 3; i++) {
            const uint64_t value = values[k3huf_rng_below(&rng, UNIT_COUNT(values))];
            const size_t at = (size_t)k3huf_rng_below(&rng, TOC / 4) * 4;
            for (size_t b = 0; b < (k3huf_rng_below(&rng, 2) == 0 ? 4u : 8u) && at + b < TOC; b++) {
                toc[at + b] = (uint8_t)(value >> (8 * b));
            }
        }
        page.toc_crc = k3huf_crc32c(0, toc, TOC);
        k3huf_archive_page_write(&page, bytes);
        assert_true(k3huf_archive_page_read(bytes, page.archive_bytes, &page, &fault));
        if (!k3huf_archive_toc_check(&page, toc, &fault)) {
            assert_non_null(fault.text);
            assert_true(fault.offset < page.archive_bytes);
            continue;
        }
        taken++;
        uint64_t source = 0;
        for (uint32_t i = 0; i < page.nentries; i++) {
            struct k3huf_archive_entry entry;
            k3huf_archive_entry_read(toc, i, &entry);
            assert_int_equal(entry.source_offset, source);
            source += entry.raw_bytes;
            assert_true(source <= page.source_bytes && entry.bytes <= page.toc_offset);
            assert_true(entry.offset <= page.toc_offset - entry.bytes);
            assert_true((uint64_t)entry.name_at + entry.name_bytes <= NAMES);
        }
        for (uint32_t i = 0; i < page.ntensors; i++) {
            struct k3huf_archive_tensor tensor;
            k3huf_archive_tensor_read(&page, toc, i, &tensor);
            assert_true(tensor.bytes == 0 || tensor.entry < ENTRIES);
            assert_true((uint64_t)tensor.dims_at + tensor.rank <= DIMS);
            assert_true(tensor.dtype[0] > ' ' && tensor.dtype[0] <= '~');
            assert_true((uint64_t)tensor.name_at + tensor.name_bytes <= NAMES && tensor.name_bytes > 0);
        }
    }
    assert_true(taken > 500); /* dimensions and names may be anything */
}

/* What a listing prints of a tensor is text and nothing else. */
static void dtypes(void **state) {
    (void)state;
    static const struct {
        char bytes[K3HUF_ARCHIVE_DTYPE_BYTES + 1];
        bool sound;
    } cases[] = {{"F32", true},
                 {"F8_E8M0x", true},
                 {"~!", true},
                 {"", false},
                 {"\0BF16", false},
                 {"BF\0"
                  "16",
                  false},
                 {"BF16\n", false},
                 {"\x1b[2Jxx", false},
                 {"BF 16", false},
                 {"B\xc3\xa4", false},
                 {"BF16\x7f", false}};
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        struct k3huf_archive_page page;
        struct k3huf_archive_fault fault = {0};
        uint8_t toc[TOC];
        make(&page, toc);
        struct k3huf_archive_tensor tensor;
        k3huf_archive_tensor_read(&page, toc, 0, &tensor);
        memcpy(tensor.dtype, cases[i].bytes, K3HUF_ARCHIVE_DTYPE_BYTES);
        k3huf_archive_tensor_write(&page, toc, 0, &tensor);
        page.toc_crc = k3huf_crc32c(0, toc, TOC);
        assert_int_equal(k3huf_archive_toc_check(&page, toc, &fault), cases[i].sound);
        if (!cases[i].sound) { assert_string_equal(fault.text, "a tensor's dtype is not text"); }
    }
}

#define STRIPE 70000u
#define STRIPES 5u
#define RUN_AT 8192u
static uint8_t weights[STRIPES * STRIPE];
static uint8_t source[RUN_AT + 2 * sizeof weights];
static uint64_t stripe_at[STRIPES + 1]; /* in `source` */
static atomic_uint headers[STRIPES];    /* how often each stripe's was read */

/* A k3huf_input_get. */
static enum k3huf_exit get(void *context, uint64_t offset, uint8_t *to, size_t size, struct k3huf_fault *fault) {
    (void)context;
    (void)fault;
    memcpy(to, source + offset, size);
    for (unsigned i = 0; i < STRIPES; i++) {
        if (offset <= stripe_at[i] && stripe_at[i] < offset + size) { (void)atomic_fetch_add(&headers[i], 1u); }
    }
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit expect(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                              struct k3huf_fault *fault) {
    uint64_t *at = context;
    (void)fault;
    assert_true(offset == *at && offset + size <= sizeof weights);
    assert_memory_equal(data, weights + offset, (size_t)size);
    *at += size;
    return K3HUF_EXIT_OK;
}

/* The headers of all stripes once, to know the run; then those up to the part's last once more, to decode it. Without
 * index all is decoded. */
static void a_part_reads_headers_twice(void **state) {
    (void)state;
    struct k3huf_rng rng = {3};
    k3huf_rng_fill(&rng, weights, sizeof weights);
    for (size_t i = 1; i < sizeof weights; i += 2) {
        weights[i] &= 7u;
    }
    for (unsigned round = 0; round < 8; round++) {
        const bool indexed = round % 2 == 0;
        const unsigned threads = 1 + round / 4;
        const size_t run_bytes =
            k3huf_memory_pack(k3huf_isa(), weights, sizeof weights, STRIPE, indexed ? 12 : 0, source + RUN_AT);
        assert_true(run_bytes > 0 && run_bytes <= sizeof weights);
        stripe_at[0] = RUN_AT + K3HUF_RUN_HEADER_BYTES;
        for (unsigned i = 0; i < STRIPES; i++) {
            const uint8_t *const h = source + stripe_at[i];
            const struct k3huf_stripe_header header = {
                .raw_bytes = STRIPE,
                .huf_bytes = (uint32_t)h[8] | (uint32_t)h[9] << 8 | (uint32_t)h[10] << 16 | (uint32_t)h[11] << 24,
                .pad = (uint32_t)h[12] | (uint32_t)h[13] << 8 | (uint32_t)h[14] << 16 | (uint32_t)h[15] << 24};
            stripe_at[i + 1] = stripe_at[i] + k3huf_stripe_bytes(&header);
        }
        assert_int_equal(stripe_at[STRIPES], RUN_AT + run_bytes);
        const struct k3huf_archive_entry entry = {.offset = RUN_AT,
                                                  .bytes = run_bytes,
                                                  .raw_bytes = sizeof weights,
                                                  .raw_crc = k3huf_crc32c(0, weights, sizeof weights),
                                                  .kind = K3HUF_ENTRY_RUN};
        uint8_t toc[K3HUF_ARCHIVE_ENTRY_BYTES];
        k3huf_archive_entry_write(toc, 0, &entry);
        struct k3huf_input input;
        k3huf_input_by(&input, get, NULL, sizeof source, "source");
        struct k3huf_archive archive = {
            .name = "source", .input = &input, .page = {.nentries = 1, .source_bytes = sizeof weights}, .toc = toc};
        for (uint64_t from = 1; from < sizeof weights - 40000u; from += 33333) {
            struct k3huf_fault fault;
            const uint64_t to = from + 1 + from % 40000u;
            const unsigned last = (unsigned)((to - 1) / STRIPE);
            uint64_t at = from;
            for (unsigned i = 0; i < STRIPES; i++) {
                atomic_store(&headers[i], 0u);
            }
            assert_int_equal(k3huf_archive_decode(&archive, from, to, threads, NULL, expect, &at, &fault),
                             K3HUF_EXIT_OK);
            assert_int_equal(at, to);
            for (unsigned i = 0; i < STRIPES; i++) {
                assert_int_equal(atomic_load(&headers[i]), !indexed || i <= last ? 2 : 1);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_crcs), cmocka_unit_test(there_and_back),
                                       cmocka_unit_test(lies), cmocka_unit_test(dtypes),
                                       cmocka_unit_test(a_part_reads_headers_twice)};
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
