/* image.c - k3huf_host image: lay runs and archives out on a disk image behind a table of contents (k3huf_image.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive_file.h"
#include "commands.h"
#include "input.h"
#include "json_print.h"
#include "k3huf_image.h"
#include "k3huf_job.h"
#include "options.h"
#include "output.h"

#define CHUNK ((size_t)1 << 20)

struct placed_run {
    struct k3huf_input input;
    char name[K3HUF_IMAGE_NAME_BYTES];
    uint64_t offset;
    uint64_t raw_bytes;
    bool archive;
};

struct image {
    const char *name;
    uint64_t lba_bytes;
    uint64_t first;    /* byte of the first run; 0: behind the table */
    uint64_t capacity; /* least size of the image */
    bool force;
    bool json;
    struct placed_run *run;
    uint32_t runs;
    struct k3huf_output output;
};

/* The run's name in the table: the file's, without folder. */
static enum k3huf_exit name_run(struct image *image, uint32_t number, struct k3huf_fault *fault) {
    struct placed_run *run = &image->run[number];
    const char *slash = strrchr(run->input.name, '/');
    const char *name = slash == NULL ? run->input.name : slash + 1;
    if (strlen(name) >= sizeof run->name || *name == '\0') {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->input.name, NULL,
                               "its name must have 1 to %u characters to stand in an image",
                               K3HUF_IMAGE_NAME_BYTES - 1u);
    }
    memcpy(run->name, name, strlen(name) + 1);
    if (image->json && !k3huf_json_holds(name, strlen(name))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->input.name, NULL,
                               "its name is not UTF-8, and --json cannot tell it");
    }
    for (uint32_t i = 0; i < number; i++) {
        if (strcmp(image->run[i].name, run->name) == 0) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->input.name, NULL, "two runs have the name %s", name);
        }
    }
    return K3HUF_EXIT_OK;
}

/* A run's header, or an archive's tables, must be sound. */
static enum k3huf_exit look_at(struct placed_run *run, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    struct k3huf_run_header header;
    uint32_t bad = 0;
    size_t got = 0;
    enum k3huf_exit code = k3huf_archive_recognise(&run->input, &run->archive, fault);
    if (code == K3HUF_EXIT_OK && run->archive) {
        struct k3huf_archive archive;
        code = k3huf_archive_open(&archive, &run->input, fault);
        run->raw_bytes = archive.page.source_bytes;
        k3huf_archive_close(&archive);
        return code;
    }
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_read_at(&run->input, 0, bytes, sizeof bytes, &got, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    const enum k3huf_status status =
        got < sizeof bytes ? K3HUF_E_TRUNCATED : k3huf_run_header_read(bytes, &header, &bad);
    if (status != K3HUF_OK) {
        const struct k3huf_place place = {K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, got < sizeof bytes ? got : bad};
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->input.name, &place, "%s", k3huf_status_text(status));
    }
    run->raw_bytes = header.raw_bytes;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit open_run(struct image *image, uint32_t number, const char *name, struct k3huf_fault *fault) {
    struct placed_run *run = &image->run[number];
    enum k3huf_exit code = k3huf_input_open(&run->input, name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    image->runs = number + 1;
    if (!run->input.seekable) { return k3huf_fault_set(fault, K3HUF_EXIT_IO, run->input.name, NULL, "is not a file"); }
    code = name_run(image, number, fault);
    return code == K3HUF_EXIT_OK ? look_at(run, fault) : code;
}

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

static uint64_t table_bytes(const struct image *image) {
    return K3HUF_IMAGE_HEAD_BYTES + (uint64_t)image->runs * K3HUF_IMAGE_ENTRY_BYTES;
}

/* Decide where each run goes. */
static enum k3huf_exit place_runs(struct image *image, struct k3huf_fault *fault) {
    uint64_t at = round_up(table_bytes(image), image->lba_bytes);
    if (image->first != 0) {
        if (image->first < table_bytes(image)) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                                   "--offset must leave the table of contents its %" PRIu64 " bytes",
                                   table_bytes(image));
        }
        at = image->first;
    }
    for (uint32_t i = 0; i < image->runs; i++) {
        image->run[i].offset = at;
        at = round_up(at + image->run[i].input.size, image->lba_bytes);
    }
    image->capacity = round_up(image->capacity > at ? image->capacity : at, 4096);
    return K3HUF_EXIT_OK;
}

static void make_table(const struct image *image, uint8_t *table) {
    const uint32_t size = (uint32_t)table_bytes(image);
    memset(table, 0, size);
    k3huf_put32(table + K3HUF_IMAGE_MAGIC, K3HUF_IMAGE_MAGIC_VALUE);
    k3huf_put32(table + K3HUF_IMAGE_VERSION, K3HUF_IMAGE_VERSION_VALUE);
    k3huf_put32(table + K3HUF_IMAGE_LBA_BYTES, (uint32_t)image->lba_bytes);
    k3huf_put32(table + K3HUF_IMAGE_ENTRIES, image->runs);
    for (uint32_t i = 0; i < image->runs; i++) {
        uint8_t *entry = table + K3HUF_IMAGE_HEAD_BYTES + i * K3HUF_IMAGE_ENTRY_BYTES;
        k3huf_put64(entry + K3HUF_IMAGE_OFFSET, image->run[i].offset);
        k3huf_put64(entry + K3HUF_IMAGE_RUN_BYTES, image->run[i].input.size);
        k3huf_put64(entry + K3HUF_IMAGE_RAW_BYTES, image->run[i].raw_bytes);
        k3huf_put32(entry + K3HUF_IMAGE_KIND, image->run[i].archive ? K3HUF_IMAGE_KIND_ARCHIVE : K3HUF_IMAGE_KIND_RUN);
        memcpy(entry + K3HUF_IMAGE_NAME, image->run[i].name, strlen(image->run[i].name));
    }
    k3huf_put32(table + K3HUF_IMAGE_CRC, k3huf_image_table_crc(table, size));
}

static enum k3huf_exit write_zeros(struct image *image, uint64_t until, uint8_t *buffer, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    memset(buffer, 0, CHUNK);
    while (code == K3HUF_EXIT_OK && image->output.written < until) {
        const uint64_t left = until - image->output.written;
        code = k3huf_output_write(&image->output, buffer, left < CHUNK ? (size_t)left : CHUNK, fault);
    }
    return code;
}

static enum k3huf_exit write_run(struct image *image, struct placed_run *run, uint8_t *buffer,
                                 struct k3huf_fault *fault) {
    enum k3huf_exit code = write_zeros(image, run->offset, buffer, fault);
    for (uint64_t at = 0; code == K3HUF_EXIT_OK && at < run->input.size;) {
        size_t got = 0;
        code = k3huf_input_read_at(&run->input, at, buffer, CHUNK, &got, fault);
        if (code == K3HUF_EXIT_OK && got == 0) {
            return k3huf_fault_set(fault, K3HUF_EXIT_IO, run->input.name, NULL, "changed while it was read");
        }
        if (code == K3HUF_EXIT_OK) { code = k3huf_output_write(&image->output, buffer, got, fault); }
        at += got;
    }
    return code == K3HUF_EXIT_OK ? k3huf_input_unchanged(&run->input, fault) : code;
}

static enum k3huf_exit write_image(struct image *image, struct k3huf_fault *fault) {
    uint8_t *buffer = malloc(CHUNK);
    if (buffer == NULL) { return k3huf_fault_memory(fault, CHUNK); }
    _Static_assert(K3HUF_IMAGE_BYTES_MAX <= CHUNK, "a table fits the buffer");
    make_table(image, buffer);
    enum k3huf_exit code = k3huf_output_write(&image->output, buffer, (size_t)table_bytes(image), fault);
    for (uint32_t i = 0; i < image->runs && code == K3HUF_EXIT_OK; i++) {
        code = write_run(image, &image->run[i], buffer, fault);
    }
    if (code == K3HUF_EXIT_OK) { code = write_zeros(image, image->capacity, buffer, fault); }
    free(buffer);
    return code;
}

static enum k3huf_exit report(const struct image *image, struct k3huf_fault *fault) {
    if (image->json) {
        json_t *runs = json_array();
        for (uint32_t i = 0; i < image->runs; i++) {
            const struct placed_run *run = &image->run[i];
            (void)json_array_append_new(
                runs, json_pack("{s:s, s:s, s:I, s:I, s:I}", "name", run->name, "kind",
                                run->archive ? "archive" : "run", "offset", (json_int_t)run->offset, "run_bytes",
                                (json_int_t)run->input.size, "raw_bytes", (json_int_t)run->raw_bytes));
        }
        return k3huf_json_print(json_pack("{s:s, s:I, s:I, s:o}", "image", image->name, "bytes",
                                          (json_int_t)image->capacity, "lba_bytes", (json_int_t)image->lba_bytes,
                                          "runs", runs),
                                fault);
    }
    FILE *to = strcmp(image->name, "-") == 0 ? stderr : stdout;
    for (uint32_t i = 0; i < image->runs; i++) {
        const struct placed_run *run = &image->run[i];
        k3huf_print_name(to, run->name, strlen(run->name));
        (void)fprintf(to, ": LBA %" PRIu64 " + %" PRIu64 ", %s%" PRIu64 " bytes, decode to %" PRIu64 "\n",
                      run->offset / image->lba_bytes, run->offset % image->lba_bytes,
                      run->archive ? "an archive of " : "", run->input.size, run->raw_bytes);
    }
    (void)fprintf(to, "%s: %" PRIu64 " bytes, %" PRIu32 " runs\n", image->name, image->capacity, image->runs);
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit make_image(struct image *image, char **names, uint32_t runs, struct k3huf_fault *fault) {
    image->run = calloc(runs, sizeof *image->run);
    if (image->run == NULL) { return k3huf_fault_memory(fault, (uint64_t)runs * sizeof *image->run); }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < runs && code == K3HUF_EXIT_OK; i++) {
        code = open_run(image, i, names[i], fault);
    }
    for (uint32_t i = 0; i < image->runs && code == K3HUF_EXIT_OK; i++) {
        code = k3huf_output_not_input(image->name, &image->run[i].input, fault);
    }
    if (code == K3HUF_EXIT_OK) { code = place_runs(image, fault); }
    if (code == K3HUF_EXIT_OK) {
        code = k3huf_output_open(&image->output, image->name, image->force, fault);
        if (code == K3HUF_EXIT_OK) {
            code = write_image(image, fault);
            if (code == K3HUF_EXIT_OK) { code = k3huf_output_commit(&image->output, fault); }
            k3huf_output_discard(&image->output);
        }
    }
    if (code == K3HUF_EXIT_OK) { code = report(image, fault); }
    for (uint32_t i = 0; i < image->runs; i++) {
        k3huf_input_close(&image->run[i].input);
    }
    free(image->run);
    return code;
}

static enum k3huf_exit run_image(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct image image = {.lba_bytes = 4096};
    const struct k3huf_option options[] = {{"lba", 0, K3HUF_OPTION_NUMBER, &image.lba_bytes, 512, 4096},
                                           {"offset", 0, K3HUF_OPTION_NUMBER, &image.first, 1, INT64_MAX / 2},
                                           {"size", 0, K3HUF_OPTION_NUMBER, &image.capacity, 0, INT64_MAX / 2},
                                           {"json", 0, K3HUF_OPTION_ON, &image.json, 0, 0},
                                           {"force", 'f', K3HUF_OPTION_ON, &image.force, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    if ((image.lba_bytes & (image.lba_bytes - 1)) != 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "--lba must be 512, 1024, 2048 or 4096");
    }
    code = k3huf_option_operands(argc, argv, 2, 1 + (int)K3HUF_IMAGE_ENTRIES_MAX, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    image.name = argv[optind];
    if (image.json && !k3huf_json_holds(image.name, strlen(image.name))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, image.name, NULL,
                               "its name is not UTF-8, and --json cannot tell it");
    }
    if (strcmp(image.name, "-") == 0 && image.json) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "image: standard output cannot hold both the image and --json");
    }
    return make_image(&image, argv + optind + 1, (uint32_t)(argc - optind - 1), fault);
}

const struct k3huf_command k3huf_command_image = {
    "image", "lay runs and archives out on a disk image",
    "usage: k3huf_host image [OPTIONS] IMAGE RUN...\n"
    "Write IMAGE: a table of contents, then each RUN, which may be an archive, at the border of a logical block. The\n"
    "table has them under their file names; k3huf_host offload finds them, and an archive's tensors, by these.\n\n"
    "      --lba N      bytes of a logical block: 512, 1024, 2048 or 4096 (default 4096)\n"
    "      --offset N   put the first run at byte N exactly, block border or not\n"
    "      --size N     make the image at least N bytes large (K, M, G are understood)\n"
    "      --json       print where the runs are as JSON\n"
    "  -f, --force      replace IMAGE where it exists\n"
    "  -h, --help       print this\n",
    run_image};
