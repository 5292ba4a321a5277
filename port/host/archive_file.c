/* archive_file.c - see archive_file.h. May not write files or know the fields of an archive's bytes (archive.h). */
#include "archive_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "crc_join.h"
#include "dispatch.h"

#define CHUNK ((size_t)1 << 20)
#define NAME_SHOWN 200

enum k3huf_exit k3huf_archive_recognise(struct k3huf_input *input, bool *is, struct k3huf_fault *fault) {
    uint8_t front[8];
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read_at(input, 0, front, sizeof front, &got, fault);
    *is = code == K3HUF_EXIT_OK && k3huf_archive_magic(front, got);
    return code;
}

static enum k3huf_exit corrupt(const char *name, uint64_t offset, const char *text, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, name, NULL, "offset %" PRIu64 ": %s", offset, text);
}

static enum k3huf_exit read_exactly(struct k3huf_input *input, uint64_t offset, uint8_t *to, size_t size,
                                    struct k3huf_fault *fault) {
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read_at(input, offset, to, size, &got, fault);
    return code == K3HUF_EXIT_OK && got != size ? corrupt(input->name, offset + got, "the archive is cut short", fault)
                                                : code;
}

enum k3huf_exit k3huf_archive_open(struct k3huf_archive *archive, struct k3huf_input *input,
                                   struct k3huf_fault *fault) {
    uint8_t page[K3HUF_ARCHIVE_PAGE];
    struct k3huf_archive_fault bad = {0};
    *archive = (struct k3huf_archive){.name = input->name, .input = input};
    enum k3huf_exit code = read_exactly(input, 0, page, sizeof page, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (!k3huf_archive_page_read(page, input->size, &archive->page, &bad)) {
        return corrupt(input->name, bad.offset, bad.text, fault);
    }
    const size_t size = (size_t)archive->page.toc_bytes;
    archive->toc = malloc(size == 0 ? 1 : size);
    if (archive->toc == NULL) { return k3huf_fault_memory(fault, size); }
    code = read_exactly(input, archive->page.toc_offset, archive->toc, size, fault);
    if (code == K3HUF_EXIT_OK && !k3huf_archive_toc_check(&archive->page, archive->toc, &bad)) {
        code = corrupt(input->name, bad.offset, bad.text, fault);
    }
    return code;
}

void k3huf_archive_close(struct k3huf_archive *archive) {
    free(archive->toc);
    archive->toc = NULL;
}

const char *k3huf_archive_name(const struct k3huf_archive *archive, uint32_t name_at) {
    return (const char *)archive->toc + k3huf_archive_names_at(&archive->page) + name_at;
}

bool k3huf_archive_find(const struct k3huf_archive *archive, const char *name, struct k3huf_archive_tensor *tensor) {
    for (uint32_t i = 0; i < archive->page.ntensors; i++) {
        k3huf_archive_tensor_read(&archive->page, archive->toc, i, tensor);
        if (tensor->name_bytes == strlen(name) &&
            memcmp(k3huf_archive_name(archive, tensor->name_at), name, tensor->name_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------- decoding ---- */

/* One entry being decoded: what of it is wanted, in the source. */
struct cut {
    const struct k3huf_archive_entry *entry;
    uint64_t from;
    uint64_t to;
    bool whole; /* all of it is decoded, so that its CRC can be checked */
    struct k3huf_decoding how;
    uint32_t crc;
    k3huf_take_source *take;
    void *context;
};

/* Bytes of the entry at `offset` in it: those that are wanted are handed on. */
static enum k3huf_exit hand_on(struct cut *cut, const uint8_t *data, uint64_t size, uint64_t offset,
                               struct k3huf_fault *fault) {
    uint64_t begin = cut->entry->source_offset + offset;
    uint64_t end = begin + size;
    if (begin < cut->from) {
        data += cut->from - begin < size ? cut->from - begin : size;
        begin = cut->from;
    }
    if (end > cut->to) { end = cut->to; }
    return begin < end ? cut->take(cut->context, data, end - begin, begin, fault) : K3HUF_EXIT_OK;
}

static enum k3huf_exit take_piece(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct cut *cut = context;
    if (cut->whole) { cut->crc = k3huf_crc32c_join(cut->crc, k3huf_piece_crc(piece), piece->size); }
    return hand_on(context, piece->data, piece->size, piece->offset, fault);
}

static enum k3huf_exit decode_stored(struct k3huf_input *entry, struct cut *cut, struct k3huf_fault *fault) {
    const uint64_t size = cut->entry->raw_bytes;
    uint8_t *chunk = malloc(size < CHUNK ? (size_t)size : CHUNK);
    enum k3huf_exit code = chunk == NULL ? k3huf_fault_memory(fault, CHUNK) : K3HUF_EXIT_OK;
    for (uint64_t at = 0; at < size && code == K3HUF_EXIT_OK;) {
        const size_t now = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        code = read_exactly(entry, at, chunk, now, fault);
        if (code == K3HUF_EXIT_OK) {
            cut->crc = k3huf_crc32c_long(k3huf_isa(), cut->crc, chunk, now);
            code = hand_on(cut, chunk, now, at, fault);
        }
        at += now;
    }
    free(chunk);
    return code;
}

/* A header that is none is for the decoder to report. */
static enum k3huf_exit check_raw_bytes(struct k3huf_input *run, const struct k3huf_archive_entry *entry,
                                       struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    struct k3huf_run_header header;
    uint32_t bad = 0;
    size_t got = 0;
    const enum k3huf_exit code = k3huf_input_read_at(run, 0, bytes, sizeof bytes, &got, fault);
    if (code == K3HUF_EXIT_OK && got == sizeof bytes && k3huf_run_header_read(bytes, &header, &bad) == K3HUF_OK &&
        header.raw_bytes != entry->raw_bytes) {
        return corrupt(run->name, 8, "the run decodes to another size than the entry says", fault);
    }
    return code;
}

enum k3huf_exit k3huf_archive_check_run(struct k3huf_input *run, const struct k3huf_archive_entry *entry, bool *indexed,
                                        struct k3huf_fault *fault) {
    struct k3huf_run_facts facts = {0};
    enum k3huf_exit code = check_raw_bytes(run, entry, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_walk_run(run, &facts, fault); }
    *indexed = code == K3HUF_EXIT_OK && facts.indexed == facts.nstripes;
    return *indexed && facts.crc != entry->raw_crc ? k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                                                                     "its blocks do not have the CRC-32C of the entry")
                                                   : code;
}

void k3huf_archive_label(char label[K3HUF_ENTRY_LABEL_BYTES], const char *archive, const char *name, size_t name_bytes,
                         uint64_t offset) {
    (void)snprintf(label, K3HUF_ENTRY_LABEL_BYTES, "%s: entry '%.*s' at %" PRIu64, archive,
                   (int)(name_bytes <= NAME_SHOWN ? name_bytes : k3huf_text_whole(name, NAME_SHOWN)), name, offset);
}

static enum k3huf_exit decode_cut(struct k3huf_input *input, struct cut *cut, const char *name, size_t name_bytes,
                                  struct k3huf_fault *fault) {
    const struct k3huf_archive_entry *entry = cut->entry;
    const uint64_t from = cut->from - entry->source_offset;
    const uint64_t to = cut->to - entry->source_offset;
    if (entry->kind == K3HUF_ENTRY_ZEROS) { return cut->take(cut->context, NULL, to - from, cut->from, fault); }
    char label[K3HUF_ENTRY_LABEL_BYTES];
    k3huf_archive_label(label, input->name, name, name_bytes, entry->offset);
    struct k3huf_input view;
    k3huf_input_view(&view, input, entry->offset, entry->bytes, label);
    /* A part of stored bytes has no CRC of its own: all are read for the entry's. */
    cut->whole = entry->kind == K3HUF_ENTRY_STORED || (from == 0 && to == entry->raw_bytes);
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (entry->kind == K3HUF_ENTRY_STORED) {
        code = decode_stored(&view, cut, fault);
    } else {
        if (cut->whole) {
            code = check_raw_bytes(&view, entry, fault);
        } else { /* nor has a part of a run without block index */
            bool indexed = false;
            code = k3huf_archive_check_run(&view, entry, &indexed, fault);
            cut->whole = !indexed;
            cut->how.walked = true;
        }
        if (code == K3HUF_EXIT_OK) {
            code = cut->whole ? k3huf_decode_run(&view, cut->how, take_piece, cut, NULL, fault)
                              : k3huf_decode_range(&view, cut->how, from, to, take_piece, cut, fault);
        }
    }
    if (code == K3HUF_EXIT_OK && cut->whole && cut->crc != entry->raw_crc) {
        code =
            k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, label, NULL, "its bytes do not have the CRC-32C of the entry");
    }
    return code;
}

enum k3huf_exit k3huf_archive_decode_entry(struct k3huf_input *input, const struct k3huf_archive_entry *entry,
                                           const char *name, size_t name_bytes, struct k3huf_decoding how,
                                           k3huf_take_source *take, void *context, struct k3huf_fault *fault) {
    struct cut cut = {.entry = entry,
                      .from = entry->source_offset,
                      .to = entry->source_offset + entry->raw_bytes,
                      .how = how,
                      .take = take,
                      .context = context};
    return decode_cut(input, &cut, name, name_bytes, fault);
}

enum k3huf_exit k3huf_archive_decode(struct k3huf_archive *archive, uint64_t from, uint64_t to, unsigned threads,
                                     struct k3huf_progress *progress, k3huf_take_source *take, void *context,
                                     struct k3huf_fault *fault) {
    if (from > to || to > archive->page.source_bytes) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, archive->name, NULL,
                               "bytes %" PRIu64 " up to %" PRIu64 " are asked for, but the source has %" PRIu64, from,
                               to, archive->page.source_bytes);
    }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < archive->page.nentries && code == K3HUF_EXIT_OK; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, i, &entry);
        const uint64_t end = entry.source_offset + entry.raw_bytes;
        struct cut cut = {.entry = &entry,
                          .from = from < entry.source_offset ? entry.source_offset : from,
                          .to = to < end ? to : end,
                          .how = {.threads = threads, .require_index = archive->require_index},
                          .take = take,
                          .context = context};
        if (cut.from < cut.to) {
            code =
                decode_cut(archive->input, &cut, k3huf_archive_name(archive, entry.name_at), entry.name_bytes, fault);
            k3huf_progress_add(progress, cut.to - cut.from);
        }
    }
    return code;
}

/* ------------------------------------------------------------------------------------------------ comparing ---- */

enum k3huf_exit k3huf_source_compare(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                                     struct k3huf_fault *fault) {
    static const uint8_t zeros[(size_t)64 << 10];
    struct k3huf_source_compare *compare = context;
    uint8_t expected[sizeof zeros];
    for (uint64_t done = 0; compare->original != NULL && done < size;) {
        const size_t now = size - done < sizeof zeros ? (size_t)(size - done) : sizeof zeros;
        const uint8_t *found = data == NULL ? zeros : data + done;
        size_t got = 0;
        enum k3huf_exit code = k3huf_input_read_at(compare->original, offset + done, expected, now, &got, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        const size_t i = k3huf_same_bytes(expected, found, got);
        if (i < got) {
            return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, compare->name, NULL,
                                   "source offset %" PRIu64 ": differs from %s: expected 0x%02x, found 0x%02x",
                                   offset + done + i, compare->original->name, (unsigned)expected[i],
                                   (unsigned)found[i]);
        }
        if (got < now) {
            return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, compare->name, NULL,
                                   "source offset %" PRIu64 ": %s ends here", offset + done + got,
                                   compare->original->name);
        }
        done += now;
    }
    return K3HUF_EXIT_OK;
}

/* No two tensors may have one name: the one thing that the table's check leaves, since it needs memory. */
struct name {
    const char *text;
    size_t bytes;
};

static int by_name(const void *a, const void *b) {
    const struct name *x = a;
    const struct name *y = b;
    const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order != 0 ? order : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static enum k3huf_exit check_names(const struct k3huf_archive *archive, struct k3huf_fault *fault) {
    const uint32_t n = archive->page.ntensors;
    struct name *names = n == 0 ? NULL : malloc(n * sizeof *names);
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (n > 0 && names == NULL) { return k3huf_fault_memory(fault, n * sizeof *names); }
    for (uint32_t i = 0; i < n; i++) {
        struct k3huf_archive_tensor tensor;
        k3huf_archive_tensor_read(&archive->page, archive->toc, i, &tensor);
        names[i] = (struct name){k3huf_archive_name(archive, tensor.name_at), tensor.name_bytes};
    }
    if (n > 0) { qsort(names, n, sizeof *names, by_name); }
    for (uint32_t i = 1; i < n && code == K3HUF_EXIT_OK; i++) {
        if (by_name(&names[i - 1], &names[i]) == 0) {
            code = corrupt(archive->name, archive->page.toc_offset, "two tensors have one name", fault);
        }
    }
    free(names);
    return code;
}

enum k3huf_exit k3huf_archive_verify(struct k3huf_archive *archive, struct k3huf_input *original, unsigned threads,
                                     struct k3huf_progress *progress, struct k3huf_fault *fault) {
    struct k3huf_source_compare compare = {.original = original, .name = archive->name};
    const uint64_t size = archive->page.source_bytes;
    enum k3huf_exit code = check_names(archive, fault);
    if (code == K3HUF_EXIT_OK) {
        code = k3huf_archive_decode(archive, 0, size, threads, progress, k3huf_source_compare, &compare, fault);
    }
    if (code == K3HUF_EXIT_OK && original != NULL && original->size != size) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, archive->name, NULL,
                               "source offset %" PRIu64 ": the archive ends here, %s goes on", size, original->name);
    }
    return code;
}
