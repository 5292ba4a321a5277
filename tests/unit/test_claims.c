/* test_claims.c - small files that claim to be large, to the readers of the host tool: archives and the runs in them,
 * safetensors headers, trunk.json, model indexes, manifests. What is asked of the readers: a claim alone costs nothing.
 * Memory is counted (every allocation of the tool and of the JSON library passes here) and bounded by a fixed amount,
 * the input's size and what is produced; so is processor time, which a loop over a claim of 2^32 and more would exceed.
 */
#include "unit.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "archive_file.h"
#include "archive_list.h"
#include "crc_join.h"
#include "model_dir.h"
#include "safetensors.h"
#include "trunk.h"

/* What the readers hold whatever they read: a driver of runs, its groups, parsers' buffers. */
#define MEMORY_FIXED ((size_t)2 << 20)
#define MEMORY_EACH_BYTE 64u
#define SECONDS 10.0 /* of processor time for each case; under an emulator too */

/* ---------------------------------------------------------------------------------------- counted memory ---- */

static size_t memory_now, memory_peak;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);

static void *came(void *memory) {
    memory_now += memory == NULL ? 0 : malloc_usable_size(memory);
    memory_peak = memory_now > memory_peak ? memory_now : memory_peak;
    return memory;
}

static void went(void *memory) {
    const size_t size = memory == NULL ? 0 : malloc_usable_size(memory);
    memory_now -= size < memory_now ? size : memory_now;
}

void *__wrap_malloc(size_t size) { return came(__real_malloc(size)); }
void *__wrap_calloc(size_t n, size_t size) { return came(__real_calloc(n, size)); }
void *__wrap_realloc(void *memory, size_t size) {
    went(memory);
    return came(__real_realloc(memory, size));
}
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size) {
    const int result = __real_posix_memalign(memory, alignment, size);
    if (result == 0) { (void)came(*memory); }
    return result;
}
void __wrap_free(void *memory) {
    went(memory);
    __real_free(memory);
}

char *__wrap_strdup(const char *text) {
    char *const copy = __wrap_malloc(strlen(text) + 1);
    return copy == NULL ? NULL : strcpy(copy, text);
}

/* A case: what it may cost is checked at its end. */
static clock_t begun;
static size_t memory_before;

static void begin_case(void) {
    memory_before = memory_peak = memory_now;
    begun = clock();
}

static void end_case(const char *what, size_t input, uint64_t produced) {
    const size_t peak = memory_peak - memory_before;
    const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    if (peak > MEMORY_FIXED + MEMORY_EACH_BYTE * input + 2u * produced || seconds > SECONDS) {
        fail_msg("%s: %zu bytes of memory and %.2f s for %zu bytes read and %" PRIu64 " produced", what, peak, seconds,
                 input, produced);
    }
    assert_true(memory_now <= memory_before); /* and all of it is given back */
}

static struct k3huf_input in_memory(const char *name, void *bytes, size_t size) {
    return (struct k3huf_input){.name = name, .fd = -1, .seekable = true, .size = size, .memory = bytes};
}

static void put(uint8_t *bytes, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

static const uint64_t claims[] = {
    0, 1, 4096, 67108864, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 4095, UINT64_MAX};
#define CLAIMS UNIT_COUNT(claims)

/* ------------------------------------------------------------------------------------------------ archives ---- */

#define TOC_AT 8192u
#define NAMES 4u
#define ARCHIVE_BYTES (TOC_AT + 2u * 48u + 48u + 8u + NAMES)

static enum k3huf_exit take(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                            struct k3huf_fault *fault) {
    uint64_t *const produced = context;
    (void)offset;
    (void)fault;
    *produced += data == NULL ? 0 : size; /* zeros are handed on by number */
    return K3HUF_EXIT_OK;
}

/* An entry of 600 bytes (a run, or stored), one of zeros, a tensor in the first. */
static void make(uint8_t *bytes, uint32_t kind) {
    struct k3huf_archive_page page = {.archive_bytes = ARCHIVE_BYTES,
                                      .toc_offset = TOC_AT,
                                      .toc_bytes = ARCHIVE_BYTES - TOC_AT,
                                      .nentries = 2,
                                      .source_bytes = 600 + 70000,
                                      .ntensors = 1,
                                      .ndims = 1};
    const struct k3huf_archive_entry entries[2] = {{4096, 600, 0, 600, 0, kind, 0, NAMES},
                                                   {0, 0, 600, 70000, 0, K3HUF_ENTRY_ZEROS, 0, 0}};
    const struct k3huf_archive_tensor tensor = {0, 600, 0, 0, NAMES, 1, "U8", 0};
    memset(bytes, 0, ARCHIVE_BYTES);
    k3huf_archive_page_write(&page, bytes);
    k3huf_archive_entry_write(bytes + TOC_AT, 0, &entries[0]);
    k3huf_archive_entry_write(bytes + TOC_AT, 1, &entries[1]);
    k3huf_archive_tensor_write(&page, bytes + TOC_AT, 0, &tensor);
    k3huf_archive_dim_write(&page, bytes + TOC_AT, 0, 600);
    memcpy(bytes + ARCHIVE_BYTES - NAMES, "name", NAMES);
}

/* Right CRCs over whatever the fields say: those of zeros, of the source, of table and page. */
static void seal(uint8_t *bytes) {
    static const uint8_t zero[4];
    uint32_t source = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(bytes + TOC_AT, i, &entry);
        entry.raw_crc =
            entry.kind == K3HUF_ENTRY_ZEROS ? k3huf_crc32c_zeros(entry.raw_bytes) : k3huf_crc32c(0, bytes + 4096, 600);
        k3huf_archive_entry_write(bytes + TOC_AT, i, &entry);
        source = k3huf_crc32c_join(source, entry.raw_crc, entry.raw_bytes);
    }
    put(bytes + 40, 4, k3huf_crc32c(0, bytes + TOC_AT, ARCHIVE_BYTES - TOC_AT));
    put(bytes + 56, 4, source);
    put(bytes + 12, 4, k3huf_crc32c(k3huf_crc32c(k3huf_crc32c(0, bytes, 12), zero, 4), bytes + 16, 4080));
}

/* Everything that the tool does with an archive; how it opened. */
static enum k3huf_exit read_archive(uint8_t *bytes, size_t size, const char *what) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_archive archive;
    struct k3huf_input input = in_memory("archive", bytes, size);
    uint64_t produced = 0;
    begin_case();
    const enum k3huf_exit code = k3huf_archive_open(&archive, &input, &fault);
    if (code == K3HUF_EXIT_OK) {
        const uint64_t end = archive.page.source_bytes;
        struct k3huf_archive_tensor tensor;
        (void)k3huf_archive_decode(&archive, 0, end, 1, NULL, take, &produced, &fault);
        (void)k3huf_archive_decode(&archive, end / 2, end / 2 + (end > 100 ? 100 : 0), 1, NULL, take, &produced,
                                   &fault);
        (void)k3huf_archive_verify(&archive, NULL, 1, NULL, &fault);
        (void)k3huf_archive_find(&archive, "nothing", &tensor);
    } else {
        assert_int_equal(code, K3HUF_EXIT_CORRUPT);
    }
    k3huf_archive_close(&archive);
    end_case(what, size, produced);
    return code;
}

/* Each field of page and table with each claim, alone and with a second one. */
static void archive_fields(void **state) {
    (void)state;
    static const struct {
        uint16_t at;
        uint8_t bytes;
    } fields[] = {{16, 8},           {24, 8},           {32, 8},           {44, 4},
                  {48, 8},           {64, 4},           {68, 4}, /* first page */
                  {TOC_AT, 8},       {TOC_AT + 8, 8},   {TOC_AT + 16, 8},  {TOC_AT + 24, 8},
                  {TOC_AT + 36, 4},  {TOC_AT + 44, 4},  {TOC_AT + 48, 8},  {TOC_AT + 56, 8},
                  {TOC_AT + 72, 8},  {TOC_AT + 84, 4}, /* the entry of zeros */
                  {TOC_AT + 96, 8},  {TOC_AT + 104, 8}, {TOC_AT + 112, 4}, {TOC_AT + 120, 4},
                  {TOC_AT + 124, 4}, {TOC_AT + 136, 4}, {TOC_AT + 144, 8}};
    static uint8_t bytes[ARCHIVE_BYTES];
    unsigned opened = 0;
    for (size_t a = 0; a < UNIT_COUNT(fields); a++) {
        for (size_t b = 0; b < UNIT_COUNT(fields); b++) {
            for (size_t i = 0; i < CLAIMS; i++) {
                make(bytes, i % 2 == 0 ? K3HUF_ENTRY_STORED : K3HUF_ENTRY_RUN);
                put(bytes + fields[a].at, fields[a].bytes, claims[i]);
                put(bytes + fields[b].at, fields[b].bytes, claims[a == b ? i : (i + b) % CLAIMS]);
                seal(bytes);
                opened += read_archive(bytes, sizeof bytes, "an archive with false fields") == K3HUF_EXIT_OK;
            }
        }
    }
    assert_true(opened > 0); /* dimensions may be anything up to 2^63 - 1 */
    for (unsigned over = 0; over < 2; over++) {
        make(bytes, K3HUF_ENTRY_STORED);
        put(bytes + TOC_AT + 144, 8, (uint64_t)INT64_MAX + over);
        seal(bytes);
        assert_int_equal(read_archive(bytes, sizeof bytes, "a dimension"),
                         over == 0 ? K3HUF_EXIT_OK : K3HUF_EXIT_CORRUPT);
    }
}

/* An archive of 8 KiB may be of nearly 2^63 zeros: nothing may go over them one by one but who writes them. */
static void zeros_without_end(void **state) {
    (void)state;
    static uint8_t bytes[ARCHIVE_BYTES];
    for (size_t i = 1; i < CLAIMS; i++) {
        const uint64_t zeros = claims[i] > INT64_MAX - 600 ? INT64_MAX - 600 : claims[i];
        make(bytes, K3HUF_ENTRY_STORED);
        put(bytes + 48, 8, 600 + zeros);
        put(bytes + TOC_AT + 48 + 24, 8, zeros);
        seal(bytes);
        assert_int_equal(read_archive(bytes, sizeof bytes, "zeros"), K3HUF_EXIT_OK);
        if (zeros == INT64_MAX - 600) { /* and one more */
            put(bytes + 48, 8, UINT64_C(1) << 63);
            put(bytes + TOC_AT + 48 + 24, 8, zeros + 1);
            seal(bytes);
            assert_int_equal(read_archive(bytes, sizeof bytes, "too many zeros"), K3HUF_EXIT_CORRUPT);
            continue;
        }
        /* Compared with a source that is not so long: until that ends. */
        static uint8_t source[600];
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct k3huf_archive archive;
        struct k3huf_input input = in_memory("archive", bytes, sizeof bytes);
        struct k3huf_input original = in_memory("source", source, sizeof source);
        begin_case();
        assert_int_equal(k3huf_archive_open(&archive, &input, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_archive_verify(&archive, &original, 1, NULL, &fault), K3HUF_EXIT_MISMATCH);
        k3huf_archive_close(&archive);
        end_case("zeros, compared", sizeof bytes, 0);
    }
}

/* Runs of 600 bytes in an entry that claims what they claim. */
static void runs_in_archives(void **state) {
    (void)state;
    static uint8_t bytes[ARCHIVE_BYTES];
    static const uint32_t counts[] = {0, 1, 64, UINT32_MAX};
    static const uint32_t stripes[] = {0, 1, 500, 67108864, UINT32_MAX};
    static const uint32_t planes[] = {0, 40, 4194304, UINT32_MAX};
    static const uint32_t pads[] = {0, 16, UINT32_MAX};
    for (unsigned i = 0; i < CLAIMS * 4 * 5 * 4 * 3; i++) {
        const uint64_t raw = claims[i % CLAIMS];
        uint8_t *const run = bytes + 4096;
        make(bytes, K3HUF_ENTRY_RUN);
        memcpy(run, "KHUF\1", 5);
        put(run + 8, 8, raw);
        put(run + 16, 4, counts[i / CLAIMS % 4]);
        run[20 + 0x3F] = run[20 + 0xBF] = 1;
        memcpy(run + 288, "KHUF", 4);
        put(run + 292, 4, stripes[i / (CLAIMS * 4) % 5]);
        put(run + 296, 4, planes[i / (CLAIMS * 20) % 4]);
        put(run + 300, 4, pads[i / (CLAIMS * 80)]);
        put(bytes + TOC_AT + 24, 8, raw);
        put(bytes + TOC_AT + 48 + 16, 8, raw);
        put(bytes + 48, 8, raw + 70000);
        seal(bytes);
        (void)read_archive(bytes, sizeof bytes, "a run in an archive");
    }
}

/* A table of which each tensor has all names for its name, and all dimensions for its shape: listing it would make
 * the product of both. */
static void names_many_times_over(void **state) {
    (void)state;
    enum { TENSORS = 2000, DIMS = 5000, LETTERS = 50000 };
    for (unsigned what = 0; what < 3; what++) {
        struct k3huf_archive_page page = {
            .toc_offset = 4096, .nentries = 0, .ntensors = TENSORS, .ndims = what == 1 ? DIMS : 0};
        page.toc_bytes = k3huf_archive_names_at(&page) + LETTERS;
        page.archive_bytes = page.toc_offset + page.toc_bytes;
        uint8_t *const bytes = calloc(1, (size_t)page.archive_bytes);
        assert_non_null(bytes);
        uint8_t *const toc = bytes + 4096;
        memset(toc + k3huf_archive_names_at(&page), 'n', LETTERS);
        for (uint32_t i = 0; i < TENSORS; i++) {
            const struct k3huf_archive_tensor tensor = {.entry = K3HUF_ARCHIVE_NO_ENTRY,
                                                        .name_at = what == 0 ? 0 : i * 5,
                                                        .name_bytes = what == 0 ? LETTERS : 5,
                                                        .rank = what == 1 ? DIMS : 0,
                                                        .dtype = "U8"};
            k3huf_archive_tensor_write(&page, toc, i, &tensor);
        }
        page.toc_crc = k3huf_crc32c(0, toc, (size_t)page.toc_bytes);
        k3huf_archive_page_write(&page, bytes);
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct k3huf_archive archive;
        struct k3huf_input input = in_memory("archive", bytes, (size_t)page.archive_bytes);
        const enum k3huf_exit code = k3huf_archive_open(&archive, &input, &fault);
        assert_int_equal(code, what == 2 ? K3HUF_EXIT_OK : K3HUF_EXIT_CORRUPT);
        if (what == 0) { assert_non_null(strstr(fault.text, "the tensors' names are larger than all names")); }
        if (what == 1) { assert_non_null(strstr(fault.text, "the tensors' shapes are larger than all dimensions")); }
        k3huf_archive_close(&archive);
        free(bytes);
    }
    static uint8_t bytes[ARCHIVE_BYTES]; /* and entries: both have the one name */
    make(bytes, K3HUF_ENTRY_STORED);
    put(bytes + TOC_AT + 48 + 44, 4, 1);
    seal(bytes);
    assert_int_equal(read_archive(bytes, sizeof bytes, "names of entries"), K3HUF_EXIT_CORRUPT);
    put(bytes + TOC_AT + 44, 4, NAMES - 1);
    seal(bytes);
    assert_int_equal(read_archive(bytes, sizeof bytes, "names of entries"), K3HUF_EXIT_OK);
}

/* -------------------------------------------------------------------------------------------------- models ---- */

static enum k3huf_exit read_safetensors(uint64_t length, const char *header, const char *what) {
    static uint8_t bytes[8192];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_tensors tensors;
    const size_t size = 8 + strlen(header) + 100;
    put(bytes, 8, length);
    memcpy(bytes + 8, header, strlen(header));
    struct k3huf_input input = in_memory("file", bytes, size);
    bool is = false;
    begin_case();
    assert_int_equal(k3huf_safetensors_recognise(&input, &is, &fault), K3HUF_EXIT_OK);
    const enum k3huf_exit code = k3huf_safetensors_read(&input, &tensors, &fault);
    k3huf_tensors_free(&tensors);
    end_case(what, size, 0);
    return code;
}

static void safetensors_claims(void **state) {
    (void)state;
    char header[2048];
    for (size_t i = 0; i < CLAIMS; i++) {
        assert_int_equal(read_safetensors(claims[i], "{}", "a header's length"), K3HUF_EXIT_CORRUPT);
        for (size_t k = 0; k < CLAIMS; k++) {
            static const char *const shapes[] = {"[%" PRIu64 ",%" PRIu64 "]", "[%" PRIu64 ",0,%" PRIu64 "]",
                                                 "[4294967296,%" PRIu64 ",4294967296,%" PRIu64 "]"};
            for (size_t s = 0; s < UNIT_COUNT(shapes); s++) {
                int n = snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"BF16\",\"shape\":");
                n += snprintf(header + n, sizeof header - (size_t)n, shapes[s], claims[i], claims[k]);
                n += snprintf(header + n, sizeof header - (size_t)n, ",\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}}",
                              claims[(i + s) % CLAIMS], claims[k]);
                (void)read_safetensors((uint64_t)n, header, "a tensor");
            }
        }
    }
    assert_int_equal(read_safetensors(2, "{}", "none"), K3HUF_EXIT_OK);
}

static void trunk_claims(void **state) {
    (void)state;
    char text[1024];
    for (unsigned i = 0; i < CLAIMS * CLAIMS * CLAIMS; i++) {
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        struct k3huf_tensors tensors;
        const uint64_t a = claims[i % CLAIMS], b = claims[i / CLAIMS % CLAIMS], c = claims[i / CLAIMS / CLAIMS];
        const int n = snprintf(text, sizeof text,
                               "{\"align\":%" PRIu64 ",\"layers\":[{\"file_off\":%" PRIu64 ",\"nbytes\":%" PRIu64
                               ",\"tensors\":{\"w\":{\"off\":%" PRIu64 ",\"nbytes\":%" PRIu64
                               ",\"dtype\":\"MX4\",\"shape\":[%" PRIu64 "]},\"v\":{\"off\":%" PRIu64
                               ",\"nbytes\":%" PRIu64 ",\"dtype\":\"F4\"}}}]}",
                               c == 0 ? 4096 : c, a, b, c, a, b, b, c);
        struct k3huf_input input = in_memory("trunk.json", text, (size_t)n);
        begin_case();
        (void)k3huf_trunk_read(&input, claims[(i + i / CLAIMS) % CLAIMS], &tensors, &fault);
        k3huf_tensors_free(&tensors);
        end_case("a trunk", (size_t)n, 0);
    }
}

/* 120,000 layers' tensors, and shards that are not there: time in proportion to the text. */
static void many_names(void **state) {
    (void)state;
    enum { NAMES_MAX = 120000, TEXT_MAX = 16 << 20 };
    char folder[] = "k3huf_claims_XXXXXX", path[64];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_model model;
    struct k3huf_tensors tensors;
    char *const text = malloc(TEXT_MAX);
    assert_non_null(text);
    assert_non_null(mkdtemp(folder));
    for (unsigned what = 0; what < 3; what++) {
        static const char *const fronts[] = {"{\"weight_map\":{", "{\"k3huf_manifest\":1,\"files\":[", "{\"layers\":["};
        static const char *const names[] = {"model.safetensors.index.json", K3HUF_MANIFEST_NAME, ""};
        size_t size = (size_t)snprintf(text, TEXT_MAX, "%s", fronts[what]);
        for (unsigned i = 0; i < NAMES_MAX; i++) {
            size += (size_t)snprintf(text + size, TEXT_MAX - size,
                                     what == 0   ? "%s\"t%u\":\"shard-%u\""
                                     : what == 1 ? "%s{\"source\":\"%u-%u\",\"source_bytes\":1,\"source_mtime\":0}"
                                                 : "%s{\"file_off\":0,\"nbytes\":9,\"tensors\":{\"w%u\":{\"off\":0,"
                                                   "\"nbytes\":0,\"dtype\":\"U%u\"}}}",
                                     i == 0 ? "" : ",", i, i);
        }
        size += (size_t)snprintf(text + size, TEXT_MAX - size, what == 0 ? "}}" : "]}");
        assert_true(size < TEXT_MAX - 1);
        if (what < 2) {
            (void)snprintf(path, sizeof path, "%s/%s", folder, names[what]);
            FILE *const file = fopen(path, "w");
            assert_non_null(file);
            assert_int_equal(fwrite(text, 1, size, file), size);
            assert_int_equal(fclose(file), 0);
        }
        struct k3huf_input input = in_memory("trunk.json", text, size);
        begin_case();
        switch (what) {
        case 0: assert_int_equal(k3huf_model_read(folder, &model, &fault), K3HUF_EXIT_CORRUPT); break;
        case 1: assert_int_equal(k3huf_manifest_read(folder, &model, &fault), K3HUF_EXIT_OK); break;
        default: assert_int_equal(k3huf_trunk_read(&input, 4096, &tensors, &fault), K3HUF_EXIT_OK); break;
        }
        if (what < 2) {
            assert_int_equal(model.n, NAMES_MAX + (what == 0));
            k3huf_model_free(&model);
        } else {
            assert_int_equal(tensors.n, NAMES_MAX);
            k3huf_tensors_free(&tensors);
        }
        end_case(fronts[what], size, 0);
        if (what < 2) { assert_int_equal(unlink(path), 0); }
    }
    assert_int_equal(rmdir(folder), 0);
    free(text);
}

/* A manifest in which a file is there twice would give one of them the other's size. */
static void a_file_twice_in_a_manifest(void **state) {
    (void)state;
    static const char text[] =
        "{\"k3huf_manifest\":1,\"files\":[{\"source\":\"a\",\"source_bytes\":1,\"source_mtime\":0},"
        "{\"source\":\"b\",\"source_bytes\":2,\"source_mtime\":0},{\"source\":\"a\",\"source_bytes\":3,"
        "\"source_mtime\":0}]}";
    char folder[] = "k3huf_claims_XXXXXX", path[64];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_model model;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, K3HUF_MANIFEST_NAME);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, sizeof text - 1, file), sizeof text - 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(k3huf_manifest_read(folder, &model, &fault), K3HUF_EXIT_CORRUPT);
    assert_non_null(strstr(fault.text, "names a file twice"));
    k3huf_model_free(&model);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archive_fields),     cmocka_unit_test(zeros_without_end),
        cmocka_unit_test(runs_in_archives),   cmocka_unit_test(names_many_times_over),
        cmocka_unit_test(safetensors_claims), cmocka_unit_test(trunk_claims),
        cmocka_unit_test(many_names),         cmocka_unit_test(a_file_twice_in_a_manifest),
    };
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
