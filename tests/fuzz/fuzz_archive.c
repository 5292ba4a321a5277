/* fuzz_archive.c - fuzz target: an archive through the host tool's reader, in memory (port/host/archive.c,
 * archive_file.c, decode_run.c, archive_list.c): open, find, list, verify, unpack whole and in part.
 *
 * Its runs go through the driver once more as from a pipe, and part by part.
 *
 * Held against the reader of tests/support/reference_archive.c: both must agree on whether first page and table of
 * contents are good, on each entry, and on every byte. What is handed on comes in order and without gaps; a part is the
 * same bytes as in the whole, or is refused; refusals say where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_file.h"
#include "archive_list.h"
#include "decode_run.h"
#include "mutate.h"
#include "numbers.h"
#include "reference.h"
#include "reference_archive.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define ENTRIES_MAX 64u /* with more, only opening and listing are looked at */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return k3huf_fuzz_mutate_archive(data, size, max_size, seed);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    /* The lists go to standard output. The core as it is built here, and no variant of it. */
    return freopen("/dev/null", "w", stdout) == NULL || setenv("K3HUF_ISA", "baseline", 1) != 0 ? 1 : 0;
}

/* What an entry is, by the reference. */
struct truth {
    struct k3huf_reference_entry entry;
    uint8_t *own;         /* malloc'ed, or NULL */
    const uint8_t *bytes; /* of the source; NULL: zeros, or not known */
    bool known;           /* they decode to the right size */
    bool good;            /* and have the entry's CRC */
};

/* What the reader hands on. */
struct watch {
    const struct truth *truth;
    uint32_t n;
    uint64_t at;
};

static enum k3huf_exit take(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                            struct k3huf_fault *fault) {
    struct watch *const watch = context;
    (void)fault;
    if (offset != watch->at || size == 0) { k3huf_fuzz_found("bytes out of order", NULL); }
    watch->at += size;
    for (uint32_t i = 0; i < watch->n; i++) {
        const struct truth *const t = &watch->truth[i];
        const uint64_t end = t->entry.source_offset + t->entry.raw_bytes;
        if (offset >= end) { continue; }
        if (offset < t->entry.source_offset || size > end - offset || (data == NULL) != (t->entry.kind == 2)) {
            k3huf_fuzz_found("bytes of no entry", NULL);
        }
        if (t->bytes != NULL && memcmp(t->bytes + (offset - t->entry.source_offset), data, (size_t)size) != 0) {
            k3huf_fuzz_found("wrong bytes", NULL);
        }
        return K3HUF_EXIT_OK;
    }
    k3huf_fuzz_found("bytes behind the last entry", NULL);
}

static void learn(const struct k3huf_reference_archive *archive, struct truth *truth) {
    for (uint32_t i = 0; i < archive->nentries; i++) {
        struct truth *const t = &truth[i];
        *t = (struct truth){.entry = k3huf_reference_archive_entry(archive, i)};
        const struct k3huf_reference_entry *const e = &t->entry;
        const uint8_t *const stored = archive->bytes + e->offset;
        size_t bytes = 0, used = 0;
        if (e->kind == 2) {
            t->known = t->good = true; /* the table's check has seen to the CRC */
        } else if (e->kind == 0) {
            t->bytes = stored;
            t->known = true;
        } else if (e->raw_bytes <= 2u * e->bytes) { /* half of them lie in the run bare */
            t->own = malloc((size_t)e->raw_bytes);
            if (t->own == NULL) { abort(); }
            t->known =
                k3huf_reference_decode(stored, (size_t)e->bytes, t->own, (size_t)e->raw_bytes, &bytes, &used) == NULL &&
                bytes == e->raw_bytes && used == e->bytes;
            t->bytes = t->known ? t->own : NULL;
        }
        if (t->bytes != NULL) { t->good = k3huf_reference_crc32c(0, t->bytes, (size_t)e->raw_bytes) == e->raw_crc; }
    }
}

static void expect(bool good, enum k3huf_exit code, const char *what, const struct k3huf_fault *fault) {
    if (good ? code != K3HUF_EXIT_OK : code != K3HUF_EXIT_CORRUPT) {
        k3huf_fuzz_found(what, code == K3HUF_EXIT_OK ? "taken" : fault->text);
    }
    if (code != K3HUF_EXIT_OK && strstr(fault->text, "offset ") == NULL && strstr(fault->text, "entry '") == NULL) {
        k3huf_fuzz_found("no place in a refusal", fault->text);
    }
}

/* The source's bytes from `from` up to `to`. */
static void part(struct k3huf_archive *archive, const struct truth *truth, uint64_t from, uint64_t to) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct watch watch = {truth, archive->page.nentries, from};
    bool good = true, bad = false; /* all of what is touched; something that cannot pass */
    for (uint32_t i = 0; i < watch.n; i++) {
        const struct truth *const t = &truth[i];
        const uint64_t begin = t->entry.source_offset, end = begin + t->entry.raw_bytes;
        if (from < end && to > begin && from < to) {
            good = good && t->good;
            /* Blocks of a run may be sound where others are not; a sound run may be another than the entry's. */
            bad = bad || (!t->good && (t->known || (from <= begin && to >= end)));
        }
    }
    const enum k3huf_exit code = k3huf_archive_decode(archive, from, to, 1, NULL, take, &watch, &fault);
    if (good || bad) { expect(good, code, "a part", &fault); }
    if (code == K3HUF_EXIT_OK && watch.at != to) { k3huf_fuzz_found("a part that ends early", NULL); }
}

static void verify(struct k3huf_archive *archive, const struct truth *truth, bool good, bool twins) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    const uint64_t size = archive->page.source_bytes;
    expect(good && !twins, k3huf_archive_verify(archive, NULL, 1, NULL, &fault), "verify", &fault);
    if (!good || twins || size > 200000) { return; }
    uint8_t *const source = calloc(1, (size_t)size + 1u);
    if (source == NULL) { abort(); }
    for (uint32_t i = 0; i < archive->page.nentries; i++) {
        if (truth[i].bytes != NULL) {
            memcpy(source + truth[i].entry.source_offset, truth[i].bytes, (size_t)truth[i].entry.raw_bytes);
        }
    }
    if (k3huf_reference_crc32c(0, source, (size_t)size) != archive->page.source_crc) {
        k3huf_fuzz_found("the source's CRC", NULL);
    }
    struct k3huf_input original = {.name = "original", .fd = -1, .seekable = true, .size = size, .memory = source};
    if (k3huf_archive_verify(archive, &original, 1, NULL, &fault) != K3HUF_EXIT_OK) {
        k3huf_fuzz_found("verify against the source", fault.text);
    }
    original.size = size + 1u;
    if (k3huf_archive_verify(archive, &original, 1, NULL, &fault) != K3HUF_EXIT_MISMATCH) {
        k3huf_fuzz_found("verify against a longer source", NULL);
    }
    if (size > 0) {
        original.size = size;
        source[size / 3u] ^= 1u;
        if (k3huf_archive_verify(archive, &original, 1, NULL, &fault) != K3HUF_EXIT_MISMATCH) {
            k3huf_fuzz_found("verify against another source", NULL);
        }
    }
    free(source);
}

/* ---- a run of the archive by itself: from a pipe, and from memory, its header and each stripe a part */

static enum k3huf_exit take_piece(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct watch *const watch = context;
    const struct truth *const t = watch->truth;
    (void)fault;
    if (piece->offset != watch->at || piece->size == 0) { k3huf_fuzz_found("pieces out of order", NULL); }
    watch->at += piece->size;
    if (t->known &&
        (watch->at > t->entry.raw_bytes || memcmp(t->bytes + piece->offset, piece->data, piece->size) != 0)) {
        k3huf_fuzz_found("a piece's bytes", NULL);
    }
    return K3HUF_EXIT_OK;
}

static void judge(const struct truth *truth, const uint8_t *run, const struct watch *watch, enum k3huf_exit code,
                  const struct k3huf_fault *fault) {
    if (code != K3HUF_EXIT_OK && code != K3HUF_EXIT_CORRUPT) { k3huf_fuzz_found("a run's refusal", fault->text); }
    if (truth->known ? code != K3HUF_EXIT_OK || watch->at != truth->entry.raw_bytes
                     : code == K3HUF_EXIT_OK && k3huf_fuzz_get(run + 8, 8) == truth->entry.raw_bytes) {
        k3huf_fuzz_found("a run by itself", code == K3HUF_EXIT_OK ? "taken" : fault->text);
    }
}

static void from_pipe(const struct truth *truth, const uint8_t *run, size_t size) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct watch watch = {.truth = truth};
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], run, size) != (ssize_t)size || close(ends[1]) != 0) { abort(); }
    struct k3huf_input input = {.name = "pipe", .fd = ends[0]};
    judge(truth, run, &watch,
          k3huf_decode_run(&input, (struct k3huf_decoding){.threads = 1}, take_piece, &watch, NULL, &fault), &fault);
    if (close(ends[0]) != 0) { abort(); }
}

static void in_parts(const struct truth *truth, const uint8_t *run, size_t size) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct watch watch = {.truth = truth};
    struct k3huf_run_driver *const driver =
        k3huf_run_driver_new("parts", (struct k3huf_decoding){.threads = 1}, take_piece, &watch, &fault);
    if (driver == NULL) { abort(); }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    size_t at = 0, part = K3HUF_RUN_HEADER_BYTES;
    while (at < size && code == K3HUF_EXIT_OK) {
        part = part < size - at ? part : size - at;
        code = k3huf_run_driver_give(driver, run + at, part, &fault);
        at += part;
        if (size - at < K3HUF_STRIPE_HEADER_BYTES) {
            part = size - at;
        } else {
            const uint64_t raw = k3huf_fuzz_get(run + at + 4, 4);
            const uint64_t whole = K3HUF_STRIPE_HEADER_BYTES + k3huf_fuzz_get(run + at + 8, 4) + raw - raw / 2u +
                                   k3huf_fuzz_get(run + at + 12, 4);
            part = whole < size - at ? (size_t)whole : size - at;
        }
    }
    if (code == K3HUF_EXIT_OK) { code = k3huf_run_driver_finish(driver, &fault); }
    judge(truth, run, &watch, code, &fault);
    k3huf_run_driver_free(driver);
}

static void tensors(const struct k3huf_archive *archive) {
    for (uint32_t i = 0; i < archive->page.ntensors && i < 16; i++) {
        struct k3huf_archive_tensor tensor, found;
        char name[64] = {0};
        k3huf_archive_tensor_read(&archive->page, archive->toc, i, &tensor);
        const char *const at = k3huf_archive_name(archive, tensor.name_at);
        if (tensor.name_bytes >= sizeof name || memchr(at, 0, tensor.name_bytes) != NULL) { continue; }
        memcpy(name, at, tensor.name_bytes);
        if (!k3huf_archive_find(archive, name, &found) || found.name_bytes != tensor.name_bytes ||
            memcmp(k3huf_archive_name(archive, found.name_at), name, found.name_bytes) != 0) {
            k3huf_fuzz_found("a tensor that is not found", name);
        }
    }
}

static void list(const struct k3huf_archive *archive, unsigned control) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    const struct k3huf_list_options options = {
        .json = (control & 1u) != 0, .tensors = (control & 2u) != 0, .entries = (control & 4u) != 0, .families = true};
    const enum k3huf_exit code = k3huf_archive_print(archive, &options, &fault);
    if (code != K3HUF_EXIT_OK && !(code == K3HUF_EXIT_CORRUPT && strstr(fault.text, "not UTF-8") != NULL)) {
        k3huf_fuzz_found("list", fault.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *const own = malloc(size == 0 ? 1 : size);
    if (own == NULL) { abort(); }
    if (size > 0) { memcpy(own, data, size); }
    struct k3huf_input input = {.name = "archive", .fd = -1, .seekable = true, .size = size, .memory = own};
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_archive archive;
    struct k3huf_reference_archive reference;
    bool is_archive = false;
    const char *const wrong = k3huf_reference_archive_open(&reference, own, size);
    if (k3huf_archive_recognise(&input, &is_archive, &fault) != K3HUF_EXIT_OK || (wrong == NULL && !is_archive)) {
        k3huf_fuzz_found("an archive that is not known as one", NULL);
    }
    const enum k3huf_exit code = k3huf_archive_open(&archive, &input, &fault);
    if ((code == K3HUF_EXIT_OK) != (wrong == NULL)) {
        k3huf_fuzz_found(wrong == NULL ? "a good table is refused" : wrong, code == K3HUF_EXIT_OK ? NULL : fault.text);
    }
    expect(wrong == NULL, code, "open", &fault);
    if (code == K3HUF_EXIT_OK) {
        const uint8_t *const control = own + K3HUF_FUZZ_ARCHIVE_CONTROL;
        list(&archive, control[15]);
        tensors(&archive);
        if (archive.page.nentries <= ENTRIES_MAX) {
            static struct truth truth[ENTRIES_MAX];
            const uint64_t end = archive.page.source_bytes;
            uint64_t from = k3huf_fuzz_get(control, 7), to = k3huf_fuzz_get(control + 7, 7);
            bool good = true;
            learn(&reference, truth);
            for (uint32_t i = 0; i < archive.page.nentries; i++) {
                good = good && truth[i].good;
            }
            part(&archive, truth, 0, end);
            /* Anywhere, or from somewhere in an entry for a few bytes. */
            if (archive.page.nentries > 0 && (control[14] & 1u) != 0) {
                const struct k3huf_reference_entry *const e = &truth[control[13] % archive.page.nentries].entry;
                from = e->source_offset + from % e->raw_bytes;
                to = from + to % (end - from + 1u < 20000u ? end - from + 1u : 20000u);
            } else {
                from %= end + 1u;
                to = from + to % (end - from + 1u);
            }
            part(&archive, truth, from, to);
            if (end < UINT64_MAX) {
                struct watch nothing = {truth, 0, 0};
                if (k3huf_archive_decode(&archive, 0, end + 1u, 1, NULL, take, &nothing, &fault) != K3HUF_EXIT_USAGE) {
                    k3huf_fuzz_found("a part beyond the end", NULL);
                }
            }
            if ((control[14] & 6u) == 0) {
                verify(&archive, truth, good, k3huf_reference_archive_twins(&reference) != 0);
            }
            for (uint32_t i = 0; i < archive.page.nentries; i++) {
                const struct k3huf_reference_entry *const e = &truth[i].entry;
                const bool run = e->kind == K3HUF_ENTRY_RUN && e->bytes < 60000; /* it fits a pipe */
                if (run && (control[14] & 24u) == 0) {
                    from_pipe(&truth[i], own + e->offset, (size_t)e->bytes);
                    in_parts(&truth[i], own + e->offset, (size_t)e->bytes);
                }
                free(truth[i].own);
            }
        }
    }
    k3huf_archive_close(&archive);
    free(own);
    return 0;
}
