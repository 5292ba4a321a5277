/* archive_file.h - an archive, opened for reading: its entries and tensors, and, of one that is a file, the bytes of
 * its source. */
#ifndef K3HUF_HOST_ARCHIVE_FILE_H
#define K3HUF_HOST_ARCHIVE_FILE_H

#include "archive.h"
#include "decode_run.h"
#include "progress.h"

struct k3huf_archive {
    const char *name;          /* for messages; the caller's */
    struct k3huf_input *input; /* the caller's; NULL where it is not a file */
    struct k3huf_archive_page page;
    uint8_t *toc;       /* malloc'ed, checked */
    bool require_index; /* the caller's wish, false to begin with: refuse runs without block index when decoding */
};

/* Whether a seekable input begins as an archive does. */
enum k3huf_exit k3huf_archive_recognise(struct k3huf_input *input, bool *is, struct k3huf_fault *fault);

/* Read and check first page and table of contents. K3HUF_EXIT_CORRUPT with the offset of what is wrong. Memory: the
 * table of contents, which must be in the file before anything is allocated for it. Close in any case. */
enum k3huf_exit k3huf_archive_open(struct k3huf_archive *archive, struct k3huf_input *input, struct k3huf_fault *fault);

/* Reads `size` bytes at `offset` of an archive: all of them, or it is a fault. */
typedef enum k3huf_exit k3huf_archive_get(void *context, uint64_t offset, uint8_t *to, size_t size,
                                          struct k3huf_fault *fault);

/* The same for an archive of `bytes` bytes that lies anywhere. Without a file it can be looked up, not decoded. */
enum k3huf_exit k3huf_archive_open_by(struct k3huf_archive *archive, const char *name, uint64_t bytes,
                                      k3huf_archive_get *get, void *context, struct k3huf_fault *fault);

void k3huf_archive_close(struct k3huf_archive *archive);

/* The name at a place among the names, not ended by 0. */
const char *k3huf_archive_name(const struct k3huf_archive *archive, uint32_t name_at);

/* The tensor of that name; false: there is none. */
bool k3huf_archive_find(const struct k3huf_archive *archive, const char *name, struct k3huf_archive_tensor *tensor);

/* Takes bytes of the source in order: `data` NULL stands for that many zeros. `offset` is in the source. */
typedef enum k3huf_exit k3huf_take_source(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                                          struct k3huf_fault *fault);

/* Give the source's bytes `from` ... `to` - 1 to `take`. Nothing goes unchecked: entries that lie inside as a whole
 * are checked by their CRC; of others the blocks of a run that hold the bytes are, and where there are no blocks
 * (stored bytes, a run without index) all of the entry is read for its CRC. K3HUF_EXIT_CORRUPT names the entry;
 * K3HUF_EXIT_USAGE: beyond the source's end. Memory as decode_run.h has it. */
enum k3huf_exit k3huf_archive_decode(struct k3huf_archive *archive, uint64_t from, uint64_t to, unsigned threads,
                                     struct k3huf_progress *progress, k3huf_take_source *take, void *context,
                                     struct k3huf_fault *fault);

/* The same for one entry, which may come from an archive that is not complete: all of it, and checked. */
enum k3huf_exit k3huf_archive_decode_entry(struct k3huf_input *input, const struct k3huf_archive_entry *entry,
                                           const char *name, size_t name_bytes, struct k3huf_decoding how,
                                           k3huf_take_source *take, void *context, struct k3huf_fault *fault);

/* A k3huf_take_source that compares: `context` is a struct k3huf_source_compare. K3HUF_EXIT_MISMATCH at the first
 * difference. */
struct k3huf_source_compare {
    struct k3huf_input *original; /* seekable; NULL: nothing is compared */
    const char *name;             /* of the archive, for messages */
};
enum k3huf_exit k3huf_source_compare(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                                     struct k3huf_fault *fault);

/* Decode all; compare with `original` unless it is NULL (a seekable input, to be of the same size). */
enum k3huf_exit k3huf_archive_verify(struct k3huf_archive *archive, struct k3huf_input *original, unsigned threads,
                                     struct k3huf_progress *progress, struct k3huf_fault *fault);

#endif
