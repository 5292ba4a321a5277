/* unpack.c - k3huf_host unpack: decode a run, an archive, part of either, or a directory of archives. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive_file.h"
#include "commands.h"
#include "decode_run.h"
#include "json_print.h"
#include "model_dir.h"
#include "options.h"
#include "output.h"
#include "pipeline.h"

struct unpack {
    struct k3huf_decoding how;
    bool force;
    bool quiet;
    bool json;
    bool progress;
    const char *tensor; /* NULL: none */
    bool range;
    uint64_t from;
    uint64_t size;
};

struct sink {
    struct k3huf_output output;
    struct k3huf_progress progress;
    uint64_t from; /* in the original: where the part begins; of a run also where it ends */
    uint64_t to;
};

static enum k3huf_exit take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct sink *sink = context;
    uint64_t begin = piece->offset < sink->from ? sink->from : piece->offset;
    uint64_t end = piece->offset + piece->size < sink->to ? piece->offset + piece->size : sink->to;
    k3huf_progress_add(&sink->progress, piece->size);
    return begin < end
               ? k3huf_output_write(&sink->output, piece->data + (begin - piece->offset), (size_t)(end - begin), fault)
               : K3HUF_EXIT_OK;
}

static enum k3huf_exit take_source(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                                   struct k3huf_fault *fault) {
    struct sink *sink = context;
    (void)offset;
    return data == NULL ? k3huf_output_zeros(&sink->output, size, fault)
                        : k3huf_output_write(&sink->output, data, (size_t)size, fault);
}

static enum k3huf_exit unpack_run(const struct unpack *unpack, struct k3huf_input *run, struct sink *sink,
                                  uint64_t *packed_bytes, struct k3huf_fault *fault) {
    struct k3huf_run_facts facts = {0};
    sink->to = UINT64_MAX;
    if (unpack->tensor != NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->name, NULL,
                               "is not an archive: it has no tensors by name");
    }
    if (unpack->range) {
        if (!run->seekable) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->name, NULL, "--range needs a file, not a stream");
        }
        sink->from = unpack->from;
        sink->to = unpack->from + unpack->size;
        *packed_bytes = run->size;
        return k3huf_decode_range(run, unpack->how, sink->from, sink->to, take, sink, fault);
    }
    enum k3huf_exit code = k3huf_decode_run(run, unpack->how, take, sink, &facts, fault);
    *packed_bytes = facts.run_bytes;
    if (code == K3HUF_EXIT_CORRUPT && !run->seekable && facts.run_bytes == 0) {
        const struct k3huf_fault found = *fault;
        code = k3huf_fault_set(fault, code, NULL, NULL, "%s (an archive must be a file, not a stream)", found.text);
    }
    return code;
}

static enum k3huf_exit unpack_archive(const struct unpack *unpack, struct k3huf_archive *archive, struct sink *sink,
                                      struct k3huf_fault *fault) {
    archive->require_index = unpack->how.require_index;
    uint64_t from = unpack->range ? unpack->from : 0;
    uint64_t to = unpack->range ? from + unpack->size : archive->page.source_bytes;
    if (unpack->tensor != NULL) {
        struct k3huf_archive_tensor tensor;
        if (!k3huf_archive_find(archive, unpack->tensor, &tensor)) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, archive->name, NULL, "has no tensor '%s'", unpack->tensor);
        }
        from = tensor.source_offset;
        to = from + tensor.bytes;
    }
    sink->from = from;
    return k3huf_archive_decode(archive, from, to, unpack->how.threads, &sink->progress, take_source, sink, fault);
}

/* What has been written, for people and for programs. */
static enum k3huf_exit tell(const struct unpack *unpack, const char *in_name, bool is_archive, uint64_t packed_bytes,
                            const struct sink *sink, struct k3huf_fault *fault) {
    const struct k3huf_output *output = &sink->output;
    const bool part = unpack->tensor != NULL || unpack->range;
    if (unpack->json && !output->stream) {
        json_t *object = json_pack("{s:s, s:I, s:I}", "kind", is_archive ? "archive" : "run", "packed_bytes",
                                   (json_int_t)packed_bytes, "bytes", (json_int_t)output->written);
        (void)json_object_set_new(object, "file", k3huf_json_text(in_name));
        (void)json_object_set_new(object, "output", k3huf_json_text(output->name));
        if (part) { (void)json_object_set_new(object, "source_offset", json_integer((json_int_t)sink->from)); }
        if (unpack->tensor != NULL) { (void)json_object_set_new(object, "tensor", k3huf_json_text(unpack->tensor)); }
        return k3huf_json_print(object, fault);
    }
    if (unpack->quiet) { return K3HUF_EXIT_OK; }
    FILE *const to = output->stream ? stderr : stdout;
    k3huf_print_name(to, in_name, strlen(in_name));
    (void)fprintf(to, ": ");
    if (unpack->tensor != NULL) {
        (void)fprintf(to, "%" PRIu64 " bytes of tensor ", output->written);
        k3huf_print_name(to, unpack->tensor, strlen(unpack->tensor));
    } else if (unpack->range) {
        (void)fprintf(to, "%" PRIu64 " bytes from %" PRIu64, output->written, sink->from);
    } else {
        (void)fprintf(to, "%" PRIu64 " bytes decoded to %" PRIu64, packed_bytes, output->written);
    }
    (void)fprintf(to, " in ");
    k3huf_print_name(to, output->name, strlen(output->name));
    (void)fprintf(to, "\n");
    return K3HUF_EXIT_OK;
}

/* `member`: what the manifest has of the file that IN is the archive of; NULL: IN is no part of a directory. */
static enum k3huf_exit unpack_file(const struct unpack *unpack, const char *in_name, const char *out_name,
                                   const struct k3huf_model_file *member, struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct sink sink = {.from = 0};
    struct k3huf_archive archive = {.toc = NULL};
    uint64_t packed_bytes = 0;
    bool is_archive = false;
    enum k3huf_exit code = k3huf_input_open(&input, in_name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (input.seekable) { code = k3huf_archive_recognise(&input, &is_archive, fault); }
    if (code == K3HUF_EXIT_OK && !is_archive && member != NULL) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, in_name, NULL, "is not a k3huf archive");
    }
    if (code == K3HUF_EXIT_OK && is_archive) { code = k3huf_archive_open(&archive, &input, fault); }
    if (code == K3HUF_EXIT_OK && member != NULL) {
        code = k3huf_manifest_check(member, in_name, archive.page.source_bytes, archive.page.source_mtime, fault);
    }
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_not_input(out_name, &input, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_open(&sink.output, out_name, unpack->force, fault); }
    if (code != K3HUF_EXIT_OK) {
        k3huf_archive_close(&archive);
        k3huf_input_close(&input);
        return code;
    }
    k3huf_progress_begin(&sink.progress, in_name, is_archive ? archive.page.source_bytes : input.size / 2 * 3,
                         unpack->progress && (is_archive || input.seekable));
    packed_bytes = input.size;
    code = is_archive ? unpack_archive(unpack, &archive, &sink, fault)
                      : unpack_run(unpack, &input, &sink, &packed_bytes, fault);
    k3huf_progress_end(&sink.progress);
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_commit(&sink.output, fault); }
    if (code == K3HUF_EXIT_OK) { code = tell(unpack, input.name, is_archive, packed_bytes, &sink, fault); }
    k3huf_output_discard(&sink.output);
    k3huf_archive_close(&archive);
    k3huf_input_close(&input);
    return code;
}

/* Everything that the manifest of a directory names. */
static enum k3huf_exit unpack_directory(const struct unpack *unpack, const char *directory, const char *out_directory,
                                        struct k3huf_fault *fault) {
    struct k3huf_model model;
    if (unpack->tensor != NULL || unpack->range) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, directory, NULL,
                               "is a directory: --tensor and --range need one of its archives");
    }
    enum k3huf_exit code = k3huf_manifest_read(directory, &model, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_directory(out_directory, fault); }
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        char *archive = k3huf_path(directory, model.file[i].name, K3HUF_ARCHIVE_SUFFIX, fault);
        char *out = k3huf_path(out_directory, model.file[i].name, NULL, fault);
        code = archive == NULL || out == NULL ? fault->code : unpack_file(unpack, archive, out, &model.file[i], fault);
        free(archive);
        free(out);
    }
    k3huf_model_free(&model);
    return code;
}

/* "OFFSET:LENGTH" */
static enum k3huf_exit range_option(const char *text, struct unpack *unpack, struct k3huf_fault *fault) {
    const char *colon = strchr(text, ':');
    char offset[32];
    const size_t length = colon == NULL ? sizeof offset : (size_t)(colon - text);
    bool good = length < sizeof offset;
    if (good) {
        memcpy(offset, text, length);
        offset[length] = '\0';
        good = k3huf_option_number(offset, "range", 0, INT64_MAX, &unpack->from, fault) == K3HUF_EXIT_OK &&
               k3huf_option_number(colon + 1, "range", 0, INT64_MAX, &unpack->size, fault) == K3HUF_EXIT_OK;
    }
    unpack->range = true;
    return good ? K3HUF_EXIT_OK
                : k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                                  "--range must be OFFSET:LENGTH, two numbers of bytes, not '%s'", text);
}

static enum k3huf_exit run_unpack(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct unpack unpack = {.how = {.threads = k3huf_pipeline_processors()}, .progress = true};
    const char *out_name = NULL;
    const char *range = NULL;
    const struct k3huf_option options[] = {{"output", 'o', K3HUF_OPTION_TEXT, &out_name, 0, 0},
                                           {"tensor", 0, K3HUF_OPTION_TEXT, &unpack.tensor, 0, 0},
                                           {"range", 0, K3HUF_OPTION_TEXT, &range, 0, 0},
                                           {"require-index", 0, K3HUF_OPTION_ON, &unpack.how.require_index, 0, 0},
                                           {"json", 0, K3HUF_OPTION_ON, &unpack.json, 0, 0},
                                           {"no-progress", 0, K3HUF_OPTION_OFF, &unpack.progress, 0, 0},
                                           {"quiet", 'q', K3HUF_OPTION_ON, &unpack.quiet, 0, 0},
                                           {"threads", 'T', K3HUF_OPTION_THREADS, &unpack.how.threads, 0, 0},
                                           {"force", 'f', K3HUF_OPTION_ON, &unpack.force, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    if (range != NULL) { code = range_option(range, &unpack, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    const int operands = out_name == NULL ? 2 : 1;
    code = k3huf_option_operands(argc, argv, operands, operands, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (out_name == NULL) { out_name = argv[optind + 1]; }
    if (unpack.tensor != NULL && unpack.range) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "unpack: --tensor or --range, not both");
    }
    unpack.progress = unpack.progress && !unpack.quiet;
    return k3huf_is_directory(argv[optind]) ? unpack_directory(&unpack, argv[optind], out_name, fault)
                                            : unpack_file(&unpack, argv[optind], out_name, NULL, fault);
}

const struct k3huf_command k3huf_command_unpack = {
    "unpack", "decode a run, an archive, or a directory of archives",
    "usage: k3huf_host unpack [OPTIONS] IN OUT\n"
    "Decode IN, a run or an archive, into OUT: the file that was packed. Of a directory, all that its manifest names "
    "goes\n"
    "to the directory OUT; an archive of another state of its source than the manifest has (stale) is refused. IN may "
    "be - where it is a run (an archive must be a file), OUT may be - for standard "
    "output.\n"
    "OUT appears complete or not at all; standard output, a device or a FIFO gets bytes as they are decoded.\n\n"
    "  -o, --output OUT          the same as the second argument\n"
    "      --tensor NAME         only the bytes of that tensor of an archive\n"
    "      --range OFFSET:LENGTH only these bytes of the original; K, M and G may follow either. No more is decoded "
    "than\n"
    "                            the blocks that hold them, or, of an entry without blocks, all of it for its CRC\n"
    "      --require-index       refuse runs without block index, which have no checksums of their own\n"
    "  -T, --threads N           use N threads (default: every processor)\n"
    "  -f, --force               replace OUT where it exists\n"
    "      --json                print the summary as one JSON object, a directory's one a file\n"
    "  -q, --quiet               print no summary and no progress\n"
    "      --no-progress         no progress on a terminal\n"
    "  -h, --help                print this\n",
    run_unpack};
