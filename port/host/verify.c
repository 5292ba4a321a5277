/* verify.c - k3huf_host verify: decode a run, an archive or a directory of them without writing, and compare with the
 * original. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_file.h"
#include "commands.h"
#include "compare.h"
#include "json_print.h"
#include "model_dir.h"
#include "options.h"
#include "pipeline.h"

struct verify {
    struct k3huf_decoding how;
    bool manifest;
    bool quiet;
    bool verbose;
    bool json;
    bool progress;
};

/* ------------------------------------------------------------------------------------------------- one file ---- */

struct watched {
    struct k3huf_compare compare;
    struct k3huf_progress *progress;
};

static enum k3huf_exit take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct watched *watched = context;
    k3huf_progress_add(watched->progress, piece->size);
    return k3huf_compare_take(&watched->compare, piece, fault);
}

static enum k3huf_exit verify_run(const struct verify *verify, struct k3huf_input *run, struct k3huf_input *original,
                                  struct k3huf_progress *progress, struct k3huf_fault *fault) {
    struct watched watched = {.compare = {.name = run->name, .original = original}, .progress = progress};
    struct k3huf_run_facts facts;
    enum k3huf_exit code = k3huf_decode_run(run, verify->how, take, &watched, &facts, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_compare_end(&watched.compare, fault); }
    k3huf_progress_end(progress);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (verify->json) {
        json_t *object = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I}", "kind", "run", "compared", original != NULL,
                                   "run_bytes", (json_int_t)facts.run_bytes, "raw_bytes",
                                   (json_int_t)watched.compare.bytes, "stripes", (json_int_t)facts.nstripes,
                                   "indexed_stripes", (json_int_t)facts.indexed, "blocks", (json_int_t)facts.blocks);
        (void)json_object_set_new(object, "file", k3huf_json_text(run->name));
        return k3huf_json_print(object, fault);
    }
    if (verify->quiet) { return code; }
    printf("%s: %" PRIu64 " bytes decode to %" PRIu64 "%s%s; block index in %" PRIu32 " of %" PRIu32
           " stripes, %" PRIu64 " block CRCs right\n",
           run->name, facts.run_bytes, watched.compare.bytes, original == NULL ? "" : ", the same as ",
           original == NULL ? "" : original->name, facts.indexed, facts.nstripes, facts.blocks);
    return code;
}

static enum k3huf_exit verify_archive(const struct verify *verify, struct k3huf_input *input,
                                      struct k3huf_input *original, struct k3huf_progress *progress,
                                      struct k3huf_fault *fault) {
    struct k3huf_archive archive;
    enum k3huf_exit code = k3huf_archive_open(&archive, input, fault);
    archive.require_index = verify->how.require_index;
    if (code == K3HUF_EXIT_OK && original != NULL) { code = k3huf_input_slurp(original, fault); }
    if (code == K3HUF_EXIT_OK) {
        k3huf_progress_begin(progress, input->name, archive.page.source_bytes, verify->progress);
        code = k3huf_archive_verify(&archive, original, verify->how.threads, progress, fault);
        k3huf_progress_end(progress);
    }
    if (code == K3HUF_EXIT_OK && verify->json) {
        json_t *object = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I}", "kind", "archive", "compared", original != NULL,
                                   "archive_bytes", (json_int_t)archive.page.archive_bytes, "source_bytes",
                                   (json_int_t)archive.page.source_bytes, "entries", (json_int_t)archive.page.nentries,
                                   "tensors", (json_int_t)archive.page.ntensors);
        (void)json_object_set_new(object, "file", k3huf_json_text(input->name));
        code = k3huf_json_print(object, fault);
    } else if (code == K3HUF_EXIT_OK && !verify->quiet) {
        printf("%s: %" PRIu64 " bytes decode to %" PRIu64 "%s%s; %" PRIu32 " entries, %" PRIu32
               " tensors, all CRCs right\n",
               input->name, archive.page.archive_bytes, archive.page.source_bytes,
               original == NULL ? "" : ", the same as ", original == NULL ? "" : original->name, archive.page.nentries,
               archive.page.ntensors);
    }
    k3huf_archive_close(&archive);
    return code;
}

static enum k3huf_exit verify_file(const struct verify *verify, const char *name, const char *original_name,
                                   struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct k3huf_input original = {.fd = -1};
    struct k3huf_progress progress = {0};
    bool is_archive = false;
    enum k3huf_exit code = k3huf_input_open(&input, name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (original_name != NULL) {
        code = k3huf_input_open(&original, original_name, fault);
        if (code != K3HUF_EXIT_OK) {
            k3huf_input_close(&input);
            return code;
        }
    }
    struct k3huf_input *compared = original_name == NULL ? NULL : &original;
    if (input.seekable) { code = k3huf_archive_recognise(&input, &is_archive, fault); }
    if (code == K3HUF_EXIT_OK && is_archive) {
        code = verify_archive(verify, &input, compared, &progress, fault);
    } else if (code == K3HUF_EXIT_OK) {
        k3huf_progress_begin(&progress, name, input.size / 2 * 3, verify->progress && input.seekable);
        code = verify_run(verify, &input, compared, &progress, fault);
        k3huf_progress_end(&progress);
    }
    k3huf_input_close(&input);
    if (compared != NULL) { k3huf_input_close(&original); }
    return code;
}

/* ------------------------------------------------------------------------------------------------ directories ---- */

enum state { STATE_OK, STATE_STALE, STATE_MISSING, STATE_UNREADABLE, STATE_DAMAGED, STATES };
static const char *const state_names[STATES] = {"ok", "stale", "missing", "unreadable", "damaged"};

/* One file of a manifest. The fault says more unless it is in order. What is found goes on to the next file; only what
 * is wrong with this program does not. */
static enum k3huf_exit look(const struct verify *verify, const char *path, const struct k3huf_model_file *file,
                            const char *source_path, enum state *state, struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct k3huf_input source = {.fd = -1};
    struct k3huf_archive archive = {.toc = NULL};
    struct k3huf_progress progress = {0};
    *state = STATE_MISSING;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        (void)k3huf_fault_set(fault, K3HUF_EXIT_IO, path, NULL, "is not there");
        return K3HUF_EXIT_OK;
    }
    *state = STATE_UNREADABLE;
    enum k3huf_exit code = k3huf_input_open(&input, path, fault);
    if (code != K3HUF_EXIT_OK) { return K3HUF_EXIT_OK; }
    code = input.seekable ? k3huf_archive_open(&archive, &input, fault)
                          : k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "is not a file");
    if (code == K3HUF_EXIT_OK) {
        archive.require_index = verify->how.require_index;
        code = k3huf_manifest_check(file, path, archive.page.source_bytes, archive.page.source_mtime, fault);
        if (code == K3HUF_EXIT_OK) {
            if (source_path != NULL) { code = k3huf_input_open(&source, source_path, fault); }
            k3huf_progress_begin(&progress, path, archive.page.source_bytes, verify->progress);
            if (code == K3HUF_EXIT_OK) {
                code = k3huf_archive_verify(&archive, source_path == NULL ? NULL : &source, verify->how.threads,
                                            &progress, fault);
            }
            k3huf_progress_end(&progress);
        }
    }
    *state = code == K3HUF_EXIT_OK         ? STATE_OK
             : code == K3HUF_EXIT_MISMATCH ? STATE_STALE
             : code == K3HUF_EXIT_IO       ? STATE_UNREADABLE
                                           : STATE_DAMAGED;
    k3huf_archive_close(&archive);
    k3huf_input_close(&source);
    k3huf_input_close(&input);
    return code == K3HUF_EXIT_INTERNAL ? code : K3HUF_EXIT_OK;
}

/* What is found of a directory. */
struct found {
    uint32_t count[STATES];
    uint32_t files;
    json_t *list; /* NULL: none wanted */
};

static enum k3huf_exit record(const struct verify *verify, struct found *found, const char *name, enum state state,
                              const char *text, struct k3huf_fault *fault) {
    found->count[state]++;
    found->files++;
    if (found->list != NULL) {
        return k3huf_json_append(found->list,
                                 json_pack("{s:o, s:s, s:o}", "source", k3huf_json_text(name), "state",
                                           state_names[state], "text", k3huf_json_text(text)),
                                 fault);
    }
    if (state != STATE_OK || verify->verbose) {
        printf("%-8s ", state_names[state]);
        k3huf_print_name(stdout, name, strlen(name));
        printf("%s%s\n", state == STATE_OK ? "" : ": ", text);
    }
    return K3HUF_EXIT_OK;
}

/* Files of the model in `source` that the manifest does not name: whoever believes all of it to be packed would lose
 * them. That no model can be read there counts only where nothing else has been found wrong. */
static enum k3huf_exit look_for_others(const struct verify *verify, struct found *found, const char *source,
                                       const struct k3huf_model *model, struct k3huf_fault *fault) {
    struct k3huf_model now;
    struct k3huf_fault text;
    enum k3huf_exit code = k3huf_model_read(source, &now, &text);
    if (code != K3HUF_EXIT_OK) {
        code = found->count[STATE_OK] == found->files || code == K3HUF_EXIT_INTERNAL ? code : K3HUF_EXIT_OK;
        *fault = text;
    } else {
        for (uint32_t i = 0; i < now.n && code == K3HUF_EXIT_OK; i++) {
            if (k3huf_model_find(model, now.file[i].name) == NULL) {
                (void)k3huf_fault_set(&text, K3HUF_EXIT_IO, source, NULL, "has it, but the manifest does not name it");
                code = record(verify, found, now.file[i].name, STATE_MISSING, text.text, fault);
            }
        }
    }
    k3huf_model_free(&now);
    return code;
}

static enum k3huf_exit verify_directory(const struct verify *verify, const char *directory, const char *source,
                                        struct k3huf_fault *fault) {
    static const enum k3huf_exit codes[STATES] = {K3HUF_EXIT_OK, K3HUF_EXIT_MISMATCH, K3HUF_EXIT_IO, K3HUF_EXIT_IO,
                                                  K3HUF_EXIT_CORRUPT};
    struct k3huf_model model;
    struct found all = {.list = verify->json ? json_array() : NULL};
    const uint32_t *const count = all.count;
    enum k3huf_exit code = k3huf_manifest_read(directory, &model, fault);
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        const struct k3huf_model_file *file = &model.file[i];
        struct k3huf_fault found = {.code = K3HUF_EXIT_OK};
        enum state state = STATE_OK;
        char *path = k3huf_path(directory, file->name, K3HUF_ARCHIVE_SUFFIX, fault);
        char *source_path = source == NULL ? NULL : k3huf_path(source, file->name, NULL, fault);
        code = path == NULL || (source != NULL && source_path == NULL)
                   ? fault->code
                   : look(verify, path, file, source_path, &state, &found);
        if (code != K3HUF_EXIT_OK && found.code == code) { *fault = found; }
        if (code == K3HUF_EXIT_OK) { code = record(verify, &all, file->name, state, found.text, fault); }
        free(path);
        free(source_path);
    }
    if (code == K3HUF_EXIT_OK && source != NULL) { code = look_for_others(verify, &all, source, &model, fault); }
    if (code == K3HUF_EXIT_OK && all.list != NULL) {
        code =
            k3huf_json_print(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "kind", "directory", "ok",
                                       (json_int_t)count[STATE_OK], "stale", (json_int_t)count[STATE_STALE], "missing",
                                       (json_int_t)count[STATE_MISSING], "damaged", (json_int_t)count[STATE_DAMAGED],
                                       "unreadable", (json_int_t)count[STATE_UNREADABLE], "files", all.list),
                             fault);
    } else if (code == K3HUF_EXIT_OK && !verify->quiet) {
        printf("%s: %" PRIu32 " of %" PRIu32 " files in order, %" PRIu32 " missing, %" PRIu32 " stale, %" PRIu32
               " damaged",
               directory, count[STATE_OK], all.files, count[STATE_MISSING], count[STATE_STALE], count[STATE_DAMAGED]);
        if (count[STATE_UNREADABLE] > 0) { printf(", %" PRIu32 " unreadable", count[STATE_UNREADABLE]); }
        printf("\n");
    }
    for (int state = STATES - 1; state > STATE_OK && code == K3HUF_EXIT_OK; state--) {
        if (count[state] > 0) {
            code = k3huf_fault_set(fault, codes[state], directory, NULL, "%" PRIu32 " of %" PRIu32 " files %s",
                                   count[state], all.files, state_names[state]);
        }
    }
    json_decref(all.list);
    k3huf_model_free(&model);
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

static enum k3huf_exit run_verify(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct verify verify = {.how = {.threads = k3huf_pipeline_processors()}, .progress = true};
    const struct k3huf_option options[] = {{"manifest", 0, K3HUF_OPTION_ON, &verify.manifest, 0, 0},
                                           {"require-index", 0, K3HUF_OPTION_ON, &verify.how.require_index, 0, 0},
                                           {"json", 0, K3HUF_OPTION_ON, &verify.json, 0, 0},
                                           {"no-progress", 0, K3HUF_OPTION_OFF, &verify.progress, 0, 0},
                                           {"quiet", 'q', K3HUF_OPTION_ON, &verify.quiet, 0, 0},
                                           {"verbose", 'v', K3HUF_OPTION_ON, &verify.verbose, 0, 0},
                                           {"threads", 'T', K3HUF_OPTION_THREADS, &verify.how.threads, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    code = k3huf_option_operands(argc, argv, 1, 2, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const char *original = argc - optind == 2 ? argv[optind + 1] : NULL;
    if (original != NULL && strcmp(argv[optind], "-") == 0 && strcmp(original, "-") == 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "verify: only one input can be standard input");
    }
    verify.progress = verify.progress && !verify.quiet;
    const bool directory = k3huf_is_directory(argv[optind]);
    if (directory || verify.manifest) { return verify_directory(&verify, argv[optind], original, fault); }
    return verify_file(&verify, argv[optind], original, fault);
}

const struct k3huf_command k3huf_command_verify = {
    "verify", "decode without writing, and compare with the original",
    "usage: k3huf_host verify [OPTIONS] FILE [ORIGINAL]\n"
    "Decode FILE, a run or an archive, and check all of it, every CRC included; with ORIGINAL compare byte by byte and "
    "name\n"
    "the first difference. Either may be - for standard input; an archive must be a file. Where FILE is a directory, "
    "its\n"
    "manifest says what must be there: the summary tells which archives are missing, stale (made of another state of "
    "the\n"
    "source), unreadable or damaged; ORIGINAL is the directory that was packed, and files of the model in it that the\n"
    "manifest does not name are missing too.\n\n"
    "      --manifest       FILE is a directory\n"
    "      --require-index  refuse runs without block index, which have no checksums of their own\n"
    "  -T, --threads N      use N threads (default: every processor)\n"
    "      --json           print the result as one JSON object\n"
    "  -q, --quiet          print nothing but errors\n"
    "  -v, --verbose        of a directory, list also what is in order\n"
    "      --no-progress    no progress on a terminal\n"
    "  -h, --help           print this\n\n"
    "Exit code 0: sound (and the same); 1: differs from ORIGINAL, or stale; 3: missing, or it cannot be read; 4: FILE "
    "is corrupt.\n",
    run_verify};
