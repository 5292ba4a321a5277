/* archive_list.c - see archive_list.h; and k3huf_host list. */
#include "archive_list.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json_print.h"
#include "model_dir.h"
#include "options.h"

static const char *const kinds[] = {"stored", "run", "zeros"};
static const char *const sources[] = {"bytes", "safetensors", "trunk"};

/* A tensor, with its share of the entry that holds it. */
struct row {
    struct k3huf_archive_tensor tensor;
    uint32_t kind;
    uint64_t packed;
};

/* Tensors whose names are the same but for the numbers in them. */
struct family {
    char *name; /* malloc'ed: '*' for every number between dots */
    uint64_t tensors;
    uint64_t bytes;
    uint64_t packed;
};

static struct row read_row(const struct k3huf_archive *archive, uint32_t number) {
    struct row row = {.kind = K3HUF_ENTRY_STORED};
    k3huf_archive_tensor_read(&archive->page, archive->toc, number, &row.tensor);
    if (row.tensor.entry != K3HUF_ARCHIVE_NO_ENTRY) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, row.tensor.entry, &entry);
        row.kind = entry.kind;
        row.packed = (uint64_t)((double)entry.bytes * (double)row.tensor.bytes / (double)entry.raw_bytes + 0.5);
    }
    return row;
}

static double ratio(uint64_t packed, uint64_t bytes) { return bytes == 0 ? 1 : (double)packed / (double)bytes; }

/* Families ---------------------------------------------------------------------------------------------------- */

static char *family_name(const char *name, size_t size) {
    char *family = malloc(size + 1);
    size_t n = 0;
    for (size_t i = 0; family != NULL && i < size;) {
        size_t end = i;
        bool digits = true;
        while (end < size && name[end] != '.') {
            digits = digits && isdigit((unsigned char)name[end]) != 0;
            end++;
        }
        if (digits && end > i) {
            family[n++] = '*';
        } else {
            memcpy(family + n, name + i, end - i);
            n += end - i;
        }
        if (end < size) { family[n++] = '.'; }
        i = end + 1;
    }
    if (family != NULL) { family[n] = '\0'; }
    return family;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct family *)a)->name, ((const struct family *)b)->name);
}

/* One family for each tensor, sorted, then those of the same name added up. */
static enum k3huf_exit gather(const struct k3huf_archive *archive, struct family **families, uint32_t *n,
                              struct k3huf_fault *fault) {
    const uint32_t all = archive->page.ntensors;
    *n = 0;
    *families = calloc(all == 0 ? 1 : all, sizeof **families);
    if (*families == NULL) { return k3huf_fault_memory(fault, all * sizeof **families); }
    for (uint32_t i = 0; i < all; i++) {
        const struct row row = read_row(archive, i);
        char *name = family_name(k3huf_archive_name(archive, row.tensor.name_at), row.tensor.name_bytes);
        if (name == NULL) { return k3huf_fault_memory(fault, row.tensor.name_bytes); }
        (*families)[(*n)++] = (struct family){name, 1, row.tensor.bytes, row.packed};
    }
    qsort(*families, *n, sizeof **families, by_name);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all; i++) {
        struct family *family = &(*families)[i];
        if (kept > 0 && strcmp((*families)[kept - 1].name, family->name) == 0) {
            struct family *sum = &(*families)[kept - 1];
            sum->tensors++;
            sum->bytes += family->bytes;
            sum->packed += family->packed;
            free(family->name);
        } else {
            (*families)[kept++] = *family;
        }
    }
    *n = kept;
    return K3HUF_EXIT_OK;
}

static void free_families(struct family *families, uint32_t n) {
    for (uint32_t i = 0; families != NULL && i < n; i++) {
        free(families[i].name);
    }
    free(families);
}

/* For people -------------------------------------------------------------------------------------------------- */

static void print_name(const char *name, size_t size) {
    k3huf_print_name(stdout, name, size);
    putchar('\n');
}

static void print_tensors(const struct k3huf_archive *archive) {
    printf("%-8s %-20s %14s %14s %7s %-6s %s\n", "dtype", "shape", "bytes", "packed", "ratio", "as", "tensor");
    for (uint32_t i = 0; i < archive->page.ntensors; i++) {
        const struct row row = read_row(archive, i);
        char shape[64] = "[";
        size_t at = 1;
        for (uint32_t d = 0; d < row.tensor.rank && at < sizeof shape - 24; d++) {
            at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%" PRIu64, d == 0 ? "" : ",",
                                   k3huf_archive_dim_read(&archive->page, archive->toc, row.tensor.dims_at + d));
        }
        (void)snprintf(shape + at, sizeof shape - at, "]");
        printf("%-8s %-20s %14" PRIu64 " %14" PRIu64 " %7.4f %-6s ", row.tensor.dtype, shape, row.tensor.bytes,
               row.packed, ratio(row.packed, row.tensor.bytes), kinds[row.kind]);
        print_name(k3huf_archive_name(archive, row.tensor.name_at), row.tensor.name_bytes);
    }
}

static void print_entries(const struct k3huf_archive *archive) {
    printf("%-6s %14s %14s %14s %14s  %s\n", "as", "offset", "bytes", "source offset", "source bytes", "first tensor");
    for (uint32_t i = 0; i < archive->page.nentries; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, i, &entry);
        printf("%-6s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "  ", kinds[entry.kind], entry.offset,
               entry.bytes, entry.source_offset, entry.raw_bytes);
        if (entry.name_bytes == 0) {
            printf("-\n");
        } else {
            print_name(k3huf_archive_name(archive, entry.name_at), entry.name_bytes);
        }
    }
}

static void print_summary(const struct k3huf_archive *archive) {
    const struct k3huf_archive_page *page = &archive->page;
    k3huf_print_name(stdout, archive->name, strlen(archive->name));
    printf(": k3huf archive, version 1, of a source of kind %s\n",
           page->source_kind < 3 ? sources[page->source_kind] : "unknown");
    printf("%-14s %" PRIu64 "\n%-14s %" PRIu64 "\n", "source bytes", page->source_bytes, "archive bytes",
           page->archive_bytes);
    if (page->source_bytes > 0) { printf("%-14s %.5f\n", "ratio", ratio(page->archive_bytes, page->source_bytes)); }
    printf("%-14s %08" PRIx32 " (CRC-32C)\n%-14s %" PRIu32 "\n%-14s %" PRIu32 "\n", "source CRC", page->source_crc,
           "entries", page->nentries, "tensors", page->ntensors);
}

static void print_families(const struct family *families, uint32_t n) {
    printf("\n%8s %16s %16s %7s %s\n", "tensors", "bytes", "packed", "ratio", "family");
    for (uint32_t i = 0; i < n; i++) {
        printf("%8" PRIu64 " %16" PRIu64 " %16" PRIu64 " %7.4f ", families[i].tensors, families[i].bytes,
               families[i].packed, ratio(families[i].packed, families[i].bytes));
        print_name(families[i].name, strlen(families[i].name));
    }
}

/* For programs ------------------------------------------------------------------------------------------------- */

/* JSON is UTF-8; what is not cannot be listed. */
static enum k3huf_exit check_text(const struct k3huf_archive *archive, struct k3huf_fault *fault) {
    bool good = true;
    for (uint32_t i = 0; i < archive->page.ntensors && good; i++) {
        const struct row row = read_row(archive, i);
        good = k3huf_json_holds(k3huf_archive_name(archive, row.tensor.name_at), row.tensor.name_bytes);
    }
    for (uint32_t i = 0; i < archive->page.nentries && good; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, i, &entry);
        good = k3huf_json_holds(k3huf_archive_name(archive, entry.name_at), entry.name_bytes);
    }
    return good ? K3HUF_EXIT_OK
                : k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, archive->name, NULL,
                                  "offset %" PRIu64 ": a name in the table of contents is not UTF-8",
                                  archive->page.toc_offset);
}

static json_t *json_of_tensors(const struct k3huf_archive *archive) {
    json_t *tensors = json_array();
    for (uint32_t i = 0; i < archive->page.ntensors; i++) {
        const struct row row = read_row(archive, i);
        json_t *shape = json_array();
        for (uint32_t d = 0; d < row.tensor.rank; d++) {
            const uint64_t dim = k3huf_archive_dim_read(&archive->page, archive->toc, row.tensor.dims_at + d);
            (void)json_array_append_new(shape, json_integer((json_int_t)dim));
        }
        json_t *object =
            json_pack("{s:s%, s:s, s:o, s:I, s:I, s:I, s:s}", "name", k3huf_archive_name(archive, row.tensor.name_at),
                      (size_t)row.tensor.name_bytes, "dtype", row.tensor.dtype, "shape", shape, "source_offset",
                      (json_int_t)row.tensor.source_offset, "bytes", (json_int_t)row.tensor.bytes, "packed_bytes",
                      (json_int_t)row.packed, "as", kinds[row.kind]);
        if (row.tensor.entry != K3HUF_ARCHIVE_NO_ENTRY) {
            (void)json_object_set_new(object, "entry", json_integer(row.tensor.entry));
        }
        (void)json_array_append_new(tensors, object);
    }
    return tensors;
}

static json_t *json_of_entries(const struct k3huf_archive *archive) {
    json_t *entries = json_array();
    for (uint32_t i = 0; i < archive->page.nentries; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, i, &entry);
        (void)json_array_append_new(entries, json_pack("{s:s%, s:s, s:I, s:I, s:I, s:I, s:I}", "name",
                                                       k3huf_archive_name(archive, entry.name_at),
                                                       (size_t)entry.name_bytes, "as", kinds[entry.kind], "offset",
                                                       (json_int_t)entry.offset, "bytes", (json_int_t)entry.bytes,
                                                       "source_offset", (json_int_t)entry.source_offset, "source_bytes",
                                                       (json_int_t)entry.raw_bytes, "crc", (json_int_t)entry.raw_crc));
    }
    return entries;
}

static enum k3huf_exit print_json(const struct k3huf_archive *archive, const struct family *families, uint32_t n,
                                  struct k3huf_fault *fault) {
    const struct k3huf_archive_page *page = &archive->page;
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:I, s:I, s:I}", "name", families[i].name, "tensors",
                                              (json_int_t)families[i].tensors, "bytes", (json_int_t)families[i].bytes,
                                              "packed_bytes", (json_int_t)families[i].packed));
    }
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:f, s:I, s:o, s:o, s:o}", "kind", "archive", "version", 1, "source_kind",
                  page->source_kind < 3 ? sources[page->source_kind] : "unknown", "source_bytes",
                  (json_int_t)page->source_bytes, "archive_bytes", (json_int_t)page->archive_bytes, "ratio",
                  ratio(page->archive_bytes, page->source_bytes), "source_crc", (json_int_t)page->source_crc, "tensors",
                  json_of_tensors(archive), "entries", json_of_entries(archive), "families", list);
    (void)json_object_set_new(root, "file", k3huf_json_text(archive->name));
    return k3huf_json_print(root, fault);
}

enum k3huf_exit k3huf_archive_print(const struct k3huf_archive *archive, const struct k3huf_list_options *options,
                                    struct k3huf_fault *fault) {
    struct family *families = NULL;
    uint32_t n = 0;
    enum k3huf_exit code = gather(archive, &families, &n, fault);
    if (code == K3HUF_EXIT_OK && options->json) {
        code = check_text(archive, fault);
        if (code == K3HUF_EXIT_OK) { code = print_json(archive, families, n, fault); }
    } else if (code == K3HUF_EXIT_OK) {
        if (options->tensors) { print_tensors(archive); }
        if (options->families) { print_summary(archive); }
        if (options->entries) {
            printf("\n");
            print_entries(archive);
        }
        if (options->families && n > 0) { print_families(families, n); }
    }
    free_families(families, n);
    return code;
}

/* An archive that is a file or a stream. */
static enum k3huf_exit print_file(const char *name, const struct k3huf_list_options *options,
                                  struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct k3huf_archive archive = {.toc = NULL};
    enum k3huf_exit code = k3huf_input_open(&input, name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_input_slurp(&input, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_archive_open(&archive, &input, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_archive_print(&archive, options, fault); }
    k3huf_archive_close(&archive);
    k3huf_input_close(&input);
    return code;
}

enum k3huf_exit k3huf_archive_print_directory(const char *directory, const struct k3huf_list_options *options,
                                              struct k3huf_fault *fault) {
    struct k3huf_model model;
    enum k3huf_exit code = k3huf_manifest_read(directory, &model, fault);
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        char *path = k3huf_path(directory, model.file[i].name, K3HUF_ARCHIVE_SUFFIX, fault);
        if (path != NULL && !options->json) {
            if (i > 0) { putchar('\n'); }
            if (!options->families) { /* the summary has the name */
                k3huf_print_name(stdout, path, strlen(path));
                printf(":\n");
            }
        }
        code = path == NULL ? fault->code : print_file(path, options, fault);
        free(path);
    }
    k3huf_model_free(&model);
    return code;
}

/* Command ------------------------------------------------------------------------------------------------------ */

static enum k3huf_exit run_list(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct k3huf_list_options chosen = {.tensors = true};
    const struct k3huf_option options[] = {{"json", 0, K3HUF_OPTION_ON, &chosen.json, 0, 0}, {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    code = k3huf_option_operands(argc, argv, 1, 1, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    return k3huf_is_directory(argv[optind]) ? k3huf_archive_print_directory(argv[optind], &chosen, fault)
                                            : print_file(argv[optind], &chosen, fault);
}

const struct k3huf_command k3huf_command_list = {
    "list", "list the tensors of an archive, or of a directory of archives",
    "usage: k3huf_host list [OPTIONS] ARCHIVE\n"
    "List the tensors of ARCHIVE (- for standard input, which is held in memory): dtype, shape, bytes, packed bytes, "
    "ratio,\n"
    "and how they are kept. Where one run holds several tensors, a tensor's packed bytes are its share by size. Reads "
    "the\n"
    "table of contents only. Of a directory, all archives that its manifest names are listed.\n\n"
    "      --json   tensors, entries and families as one JSON object, a directory's one an archive\n"
    "  -h, --help   print this\n",
    run_list};
