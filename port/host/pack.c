/* pack.c - k3huf_host pack: look at what the input is, and make a run, an archive or a directory of archives of it. */
#include "pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive_file.h"
#include "archive_pack.h"
#include "commands.h"
#include "json_print.h"
#include "kind.h"
#include "model_dir.h"
#include "options.h"
#include "output.h"
#include "pipeline.h"
#include "safetensors.h"
#include "trunk.h"

struct pack {
    struct k3huf_encode_options encode;
    bool force;
    bool bytes; /* whatever it is, make a run of it */
    bool rm;
    bool quiet;
    bool verbose;
    bool json;
    bool progress;
    uint32_t part; /* of `parts`, from 1 on; parts 0: all */
    uint32_t parts;
};

/* ------------------------------------------------------------------------------------------------ summaries ---- */

static void print_archive(const struct pack *pack, const char *name, const struct k3huf_archive_result *result) {
    k3huf_print_name(stdout, name, strlen(name));
    printf(": %" PRIu64 " bytes packed to %" PRIu64, result->source_bytes, result->archive_bytes);
    if (result->source_bytes != 0) {
        printf(", ratio %.5f", (double)result->archive_bytes / (double)result->source_bytes);
    }
    if (result->ntensors != 0) {
        printf(", %" PRIu32 " tensor%s, %" PRIu32 " run%s", result->ntensors, result->ntensors == 1 ? "" : "s",
               result->runs, result->runs == 1 ? "" : "s");
    }
    printf(", verified\n");
    if (pack->verbose && result->float_bytes > 0) {
        const double symbols = (double)result->float_bytes / 2.0;
        printf("  %" PRIu32 " tensors of 16-bit floats, %" PRIu64
               " bytes; bits for an upper byte: one code for all %.5f, "
               "a code for each run %.5f, for each tensor %.5f\n",
               result->float_tensors, result->float_bytes, (double)result->coded_one / symbols,
               (double)result->coded_entries / symbols, (double)result->coded_tensors / symbols);
    }
}

static json_t *json_of_archive(const char *source, const char *archive, const struct k3huf_archive_result *result) {
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "kind", "archive", "source_bytes",
        (json_int_t)result->source_bytes, "archive_bytes", (json_int_t)result->archive_bytes, "tensors",
        (json_int_t)result->ntensors, "entries", (json_int_t)result->nentries, "runs", (json_int_t)result->runs,
        "float_tensors", (json_int_t)result->float_tensors, "float_bytes", (json_int_t)result->float_bytes,
        "coded_bits_one_code", (json_int_t)result->coded_one, "coded_bits_run_codes", (json_int_t)result->coded_entries,
        "coded_bits_tensor_codes", (json_int_t)result->coded_tensors);
    (void)json_object_set_new(object, "source", k3huf_json_text(source));
    (void)json_object_set_new(object, "archive", k3huf_json_text(archive));
    return object;
}

/* ------------------------------------------------------------------------------------------------- one file ---- */

static enum k3huf_exit pack_run(const struct pack *pack, struct k3huf_input *input, const char *in_name,
                                const char *out_name, const struct k3huf_encode_options *encode,
                                struct k3huf_progress *progress, struct k3huf_fault *fault) {
    struct k3huf_pack_result result;
    enum k3huf_exit code = k3huf_pack_run(input, out_name, pack->force, encode, &result, fault);
    k3huf_progress_end(progress);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (pack->rm && result.stream) { /* which it was not when the options were read */
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, in_name, NULL, "not removed: it went to a stream");
    }
    if (pack->json && !result.stream) {
        json_t *object = json_pack("{s:s, s:I, s:I, s:I}", "kind", "run", "source_bytes", (json_int_t)result.raw_bytes,
                                   "run_bytes", (json_int_t)result.run_bytes, "stripes", (json_int_t)result.nstripes);
        (void)json_object_set_new(object, "source", k3huf_json_text(in_name));
        return k3huf_json_print(object, fault);
    }
    if (pack->quiet) { return code; }
    FILE *to = result.stream ? stderr : stdout;
    (void)fprintf(to, "%s: %" PRIu64 " bytes packed to %" PRIu64, in_name, result.raw_bytes, result.run_bytes);
    if (result.raw_bytes != 0) {
        (void)fprintf(to, ", ratio %.5f%s", (double)result.run_bytes / (double)result.raw_bytes,
                      result.run_bytes < result.raw_bytes ? "" : " (not smaller: is this bf16?)");
    }
    (void)fprintf(to, ", %" PRIu32 " stripe%s, verified\n", result.nstripes, result.nstripes == 1 ? "" : "s");
    return code;
}

static enum k3huf_exit check_archive_options(const struct pack *pack, struct k3huf_fault *fault) {
    return pack->encode.stripe_bytes % 2 == 0 ? K3HUF_EXIT_OK
                                              : k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                                                                "pack: --stripe-size must be even for an archive");
}

static enum k3huf_exit pack_file(const struct pack *pack, const char *in_name, const char *out_name,
                                 struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct k3huf_tensors tensors = {0};
    struct k3huf_progress progress = {0};
    struct k3huf_encode_options encode = pack->encode;
    enum k3huf_kind kind = K3HUF_KIND_BYTES;
    enum k3huf_exit code = k3huf_input_open(&input, in_name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_output_not_input(out_name, &input, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_slurp(&input, fault); }
    if (code == K3HUF_EXIT_OK && !pack->bytes) { code = k3huf_kind_of(&input, &kind, fault); }
    const bool safetensors = kind == K3HUF_KIND_SAFETENSORS;
    if (code == K3HUF_EXIT_OK && (kind == K3HUF_KIND_RUN || kind == K3HUF_KIND_ARCHIVE)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_USAGE, input.name, NULL,
                               "is packed already: it begins as %s does (--bytes packs it all the same)",
                               kind == K3HUF_KIND_RUN ? "a run" : "an archive");
    }
    if (code == K3HUF_EXIT_OK && safetensors) {
        code = check_archive_options(pack, fault);
        if (code == K3HUF_EXIT_OK) { code = k3huf_safetensors_read(&input, &tensors, fault); }
    }
    if (code == K3HUF_EXIT_OK) {
        k3huf_progress_begin(&progress, in_name, 3 * input.size, pack->progress);
        encode.progress = &progress;
        if (safetensors) {
            struct k3huf_archive_result result;
            code = k3huf_archive_pack(&input, &tensors, out_name, pack->force, &encode, &result, fault);
            k3huf_progress_end(&progress);
            if (code == K3HUF_EXIT_OK && pack->json) {
                code = k3huf_json_print(json_of_archive(in_name, out_name, &result), fault);
            } else if (code == K3HUF_EXIT_OK && !pack->quiet) {
                print_archive(pack, in_name, &result);
            }
        } else {
            code = pack_run(pack, &input, in_name, out_name, &encode, &progress, fault);
        }
        k3huf_progress_end(&progress);
    }
    /* Last of all, with the input still open: what is removed must be what was packed. */
    if (code == K3HUF_EXIT_OK && pack->rm) { code = k3huf_output_remove(&input, fault); }
    k3huf_tensors_free(&tensors);
    k3huf_input_close(&input);
    return code;
}

/* ----------------------------------------------------------------------------------------------- directories ---- */

/* Read what tensors the file `name` of a model has. */
static enum k3huf_exit read_tensors(const struct k3huf_model *model, const char *directory, const char *name,
                                    struct k3huf_input *input, struct k3huf_tensors *tensors,
                                    struct k3huf_fault *fault) {
    *tensors = (struct k3huf_tensors){.kind = K3HUF_SOURCE_BYTES};
    if (model->trunk && strcmp(name, "trunk.bin") == 0) {
        struct k3huf_input json;
        char *path = k3huf_path(directory, "trunk.json", NULL, fault);
        enum k3huf_exit code = path == NULL ? fault->code : k3huf_input_open(&json, path, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_trunk_read(&json, input->size, tensors, fault);
            k3huf_input_close(&json);
        }
        free(path);
        return code;
    }
    const size_t length = strlen(name);
    const bool json = length > 5 && strcmp(name + length - 5, ".json") == 0;
    return json ? K3HUF_EXIT_OK : k3huf_safetensors_read(input, tensors, fault);
}

/* Whether an archive has the tensors that the source has now. Those of a packed trunk are told by another file, which
 * can change alone; and of two shards that changed places only size and time may be the same. */
static bool has_tensors(const struct k3huf_archive *archive, const struct k3huf_tensors *tensors) {
    bool same = archive->page.source_kind == (uint32_t)tensors->kind && archive->page.ntensors == tensors->n;
    for (uint32_t i = 0; same && i < tensors->n; i++) {
        const struct k3huf_tensor *want = &tensors->tensor[i];
        struct k3huf_archive_tensor found;
        k3huf_archive_tensor_read(&archive->page, archive->toc, i, &found);
        same = found.source_offset == want->offset && found.bytes == want->bytes && found.rank == want->rank &&
               found.name_bytes == want->name_bytes && strcmp(found.dtype, want->dtype) == 0 &&
               memcmp(k3huf_archive_name(archive, found.name_at), want->name, want->name_bytes) == 0;
        for (uint32_t d = 0; same && d < want->rank; d++) {
            same = k3huf_archive_dim_read(&archive->page, archive->toc, found.dims_at + d) ==
                   tensors->dims[want->dims_at + d];
        }
    }
    return same;
}

/* Whether an archive is there that was made of this state of the source, and is sound. */
static bool is_complete(const struct pack *pack, const char *archive_name, const struct k3huf_model_file *file,
                        const struct k3huf_tensors *tensors) {
    struct k3huf_input input;
    struct k3huf_archive archive;
    struct k3huf_fault fault;
    if (pack->force || k3huf_input_open(&input, archive_name, &fault) != K3HUF_EXIT_OK) { return false; }
    bool good = input.seekable && k3huf_archive_open(&archive, &input, &fault) == K3HUF_EXIT_OK;
    if (input.seekable) {
        good = good && k3huf_model_file_is(file, archive.page.source_bytes, archive.page.source_mtime) &&
               has_tensors(&archive, tensors) &&
               k3huf_archive_verify(&archive, NULL, pack->encode.threads, NULL, &fault) == K3HUF_EXIT_OK;
        k3huf_archive_close(&archive);
    }
    k3huf_input_close(&input);
    return good;
}

struct totals {
    uint64_t source_bytes;
    uint64_t archive_bytes;
    uint32_t packed;
    uint32_t skipped;
    json_t *files; /* NULL: none wanted */
};

static enum k3huf_exit pack_member(const struct pack *pack, const struct k3huf_model *model, const char *directory,
                                   const char *out_directory, const struct k3huf_model_file *file,
                                   struct totals *totals, struct k3huf_fault *fault) {
    struct k3huf_input input = {.fd = -1};
    struct k3huf_tensors tensors = {0};
    struct k3huf_progress progress = {0};
    struct k3huf_encode_options encode = pack->encode;
    char *source = k3huf_path(directory, file->name, NULL, fault);
    char *archive = k3huf_path(out_directory, file->name, K3HUF_ARCHIVE_SUFFIX, fault);
    enum k3huf_exit code = source == NULL || archive == NULL ? fault->code : K3HUF_EXIT_OK;
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_open(&input, source, fault); }
    /* The manifest has it as it was when the directory was read. */
    if (code == K3HUF_EXIT_OK && !k3huf_model_file_is(file, input.size, k3huf_nanoseconds(input.mtime))) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_IO, source, NULL, "changed while the directory was packed");
    }
    if (code == K3HUF_EXIT_OK) { code = read_tensors(model, directory, file->name, &input, &tensors, fault); }
    if (code == K3HUF_EXIT_OK && is_complete(pack, archive, file, &tensors)) {
        totals->skipped++;
        if (!pack->quiet && !pack->json) {
            k3huf_print_name(stdout, archive, strlen(archive));
            printf(": complete and verified already\n");
        }
    } else if (code == K3HUF_EXIT_OK) {
        struct k3huf_archive_result result;
        k3huf_progress_begin(&progress, source, 3 * input.size, pack->progress);
        encode.progress = &progress;
        /* What is there is stale or damaged: replaced once the new one is complete. */
        code = k3huf_archive_pack(&input, &tensors, archive, true, &encode, &result, fault);
        k3huf_progress_end(&progress);
        if (code == K3HUF_EXIT_OK) {
            totals->packed++;
            totals->source_bytes += result.source_bytes;
            totals->archive_bytes += result.archive_bytes;
            if (totals->files != NULL) {
                code = k3huf_json_append(totals->files, json_of_archive(source, archive, &result), fault);
            } else if (!pack->quiet) {
                print_archive(pack, source, &result);
                (void)fflush(stdout); /* a batch system's log shows how far it is */
            }
        }
    }
    k3huf_tensors_free(&tensors);
    k3huf_input_close(&input);
    free(source);
    free(archive);
    return code;
}

static enum k3huf_exit pack_directory(const struct pack *pack, const char *directory, const char *out_directory,
                                      struct k3huf_fault *fault) {
    struct k3huf_model model;
    struct totals totals = {.files = pack->json ? json_array() : NULL};
    enum k3huf_exit code = check_archive_options(pack, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_model_read(directory, &model, fault);
    /* Whatever can be refused is refused before anything is written. */
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        struct k3huf_input input;
        struct k3huf_tensors tensors = {0};
        char *source = k3huf_path(directory, model.file[i].name, NULL, fault);
        code = source == NULL ? fault->code : k3huf_input_open(&input, source, fault);
        if (code == K3HUF_EXIT_OK) {
            code = read_tensors(&model, directory, model.file[i].name, &input, &tensors, fault);
            k3huf_input_close(&input);
        }
        k3huf_tensors_free(&tensors);
        free(source);
    }
    if (code == K3HUF_EXIT_OK && !pack->force) { code = k3huf_model_keep_others(out_directory, &model, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_directory(out_directory, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_manifest_write(out_directory, &model, fault); }
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        if (pack->parts == 0 || i % pack->parts == pack->part - 1) {
            code = pack_member(pack, &model, directory, out_directory, &model.file[i], &totals, fault);
        }
    }
    if (code == K3HUF_EXIT_OK && pack->json) {
        code =
            k3huf_json_print(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "kind", "directory", "packed",
                                       (json_int_t)totals.packed, "skipped", (json_int_t)totals.skipped, "not_packed",
                                       (json_int_t)model.others, "source_bytes", (json_int_t)totals.source_bytes,
                                       "archive_bytes", (json_int_t)totals.archive_bytes, "files", totals.files),
                             fault);
    } else if (code == K3HUF_EXIT_OK && !pack->quiet) {
        printf("%s: %" PRIu32 " of %" PRIu32 " files packed, %" PRIu32 " complete already; %" PRIu64
               " bytes packed to %" PRIu64,
               out_directory, totals.packed, model.n, totals.skipped, totals.source_bytes, totals.archive_bytes);
        if (model.others != 0) {
            printf("; %" PRIu32 " other file%s not packed", model.others, model.others == 1 ? "" : "s");
        }
        printf("\n");
    }
    json_decref(totals.files);
    k3huf_model_free(&model);
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

/* "K/N" */
static enum k3huf_exit part_option(const char *text, struct pack *pack, struct k3huf_fault *fault) {
    unsigned long part = 0;
    unsigned long parts = 0;
    int end = 0;
    /* Digits first: sscanf() would take blanks and signs too, and 1/-2 for the first of very many. */
    if (strspn(text, "0123456789/") != strlen(text) || sscanf(text, "%6lu/%6lu%n", &part, &parts, &end) != 2 ||
        text[end] != '\0' || part < 1 || part > parts) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "--part must be K/N with K from 1 to N, not '%s'",
                               text);
    }
    pack->part = (uint32_t)part;
    pack->parts = (uint32_t)parts;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit run_pack(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct pack pack = {.encode = {.threads = k3huf_pipeline_processors()}, .progress = true};
    const char *out_name = NULL;
    const char *part = NULL;
    bool index = true;
    uint64_t code_length = K3HUF_CODE_LENGTH_MAX;
    uint64_t stripe_bytes = K3HUF_STRIPE_RAW_MAX;
    uint64_t block_log2 = K3HUF_BLOCK_LOG2_DEFAULT;
    const struct k3huf_option options[] = {
        {"output", 'o', K3HUF_OPTION_TEXT, &out_name, 0, 0},
        {"max-code-length", 0, K3HUF_OPTION_NUMBER, &code_length, 1, K3HUF_CODE_LENGTH_MAX},
        {"stripe-size", 0, K3HUF_OPTION_NUMBER, &stripe_bytes, 1, K3HUF_STRIPE_RAW_MAX},
        {"no-index", 0, K3HUF_OPTION_OFF, &index, 0, 0},
        {"block-log2", 0, K3HUF_OPTION_NUMBER, &block_log2, K3HUF_BLOCK_LOG2_MIN, K3HUF_BLOCK_LOG2_MAX},
        {"bytes", 0, K3HUF_OPTION_ON, &pack.bytes, 0, 0},
        {"part", 0, K3HUF_OPTION_TEXT, &part, 0, 0},
        {"rm", 0, K3HUF_OPTION_ON, &pack.rm, 0, 0},
        {"keep", 0, K3HUF_OPTION_OFF, &pack.rm, 0, 0},
        {"json", 0, K3HUF_OPTION_ON, &pack.json, 0, 0},
        {"no-progress", 0, K3HUF_OPTION_OFF, &pack.progress, 0, 0},
        {"quiet", 'q', K3HUF_OPTION_ON, &pack.quiet, 0, 0},
        {"verbose", 'v', K3HUF_OPTION_ON, &pack.verbose, 0, 0},
        {"threads", 'T', K3HUF_OPTION_THREADS, &pack.encode.threads, 0, 0},
        {"force", 'f', K3HUF_OPTION_ON, &pack.force, 0, 0},
        {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    if (part != NULL) { code = part_option(part, &pack, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    const int operands = out_name == NULL ? 2 : 1;
    code = k3huf_option_operands(argc, argv, operands, operands, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (out_name == NULL) { out_name = argv[optind + 1]; }
    pack.encode.max_code_length = (uint32_t)code_length;
    pack.encode.stripe_bytes = (uint32_t)stripe_bytes;
    pack.encode.block_log2 = index ? (uint32_t)block_log2 : 0;
    pack.progress = pack.progress && !pack.quiet;
    const char *in_name = argv[optind];
    const bool directory = k3huf_is_directory(in_name);
    if (pack.rm && (directory || strcmp(in_name, "-") == 0 || k3huf_output_is_stream(out_name))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "pack: --rm is for one file packed into another, which a stream is not");
    }
    if (pack.parts != 0 && !directory) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "pack: --part is for directories");
    }
    return directory ? pack_directory(&pack, in_name, out_name, fault) : pack_file(&pack, in_name, out_name, fault);
}

const struct k3huf_command k3huf_command_pack = {
    "pack", "pack a file or a model, and check that it decodes",
    "usage: k3huf_host pack [OPTIONS] IN OUT\n"
    "Pack IN into OUT, decode it and compare it with IN. OUT appears complete and checked or not at all. What IN is "
    "shows\n"
    "in its contents:\n"
    "  a .safetensors file    OUT is an archive: its bf16 and F16 tensors coded, all else as it is\n"
    "  a directory            with a sharded or plain safetensors model, or with trunk.bin and trunk.json: OUT is a\n"
    "                         directory of archives, one a file; those complete and sound already are left alone.\n"
    "                         Of a directory the weight files and their index; other files are not packed\n"
    "  a run or an archive    refused: it is packed already\n"
    "  any other file         little-endian bf16 values: OUT is a run\n"
    "IN may be - for standard input, which is held in memory. OUT may be - or a device where it is a run: each stripe "
    "is\n"
    "checked before it is written.\n\n"
    "  -o, --output OUT         the same as the second argument\n"
    "      --bytes              make a run of IN, whatever it is\n"
    "      --part K/N           of a directory, the K-th of N shares of its files: each depends on one file only\n"
    "      --rm                 remove IN, a file, once OUT is a file, complete, checked and on the disk, and if IN "
    "is\n"
    "                           as it was read; --keep: keep it (default)\n"
    "      --max-code-length N  longest code in bits, 1 ... 12 (default 12)\n"
    "      --stripe-size BYTES  raw bytes of a stripe, 1 ... 64M, K and M may follow (default 64M); even and odd "
    "bytes\n"
    "                           are told apart from each stripe's first byte on. A last stripe of a single byte, "
    "which\n"
    "                           cannot have an index, gets two more of the stripe before (stripes of 6 or more)\n"
    "      --no-index           write no block index: the exact original layout\n"
    "      --block-log2 N       its blocks have 2^N symbols, 12 ... 20 (default 14)\n"
    "  -T, --threads N          use N threads (default: every processor); OUT does not depend on it\n"
    "  -f, --force              replace OUT where it exists; of a directory, pack all files anew. Without it only "
    "what\n"
    "                           begins as an archive is replaced there, and a manifest\n"
    "      --json               print the summary as one JSON object\n"
    "  -q, --quiet              print no summary and no progress\n"
    "  -v, --verbose            say what codes of their own gain\n"
    "      --no-progress        no progress on a terminal\n"
    "  -h, --help               print this\n",
    run_pack};
