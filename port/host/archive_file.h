/* archive_file.h - an archive, opened for reading: its entries and tensors, and, of one that is a file, the bytes of
 * its source. */
#ifndef K3HUF_HOST_ARCHIVE_FILE_H
#define K3HUF_HOST_ARCHIVE_FILE_H

#include "archive.h"
#include "decode_run.h"
#include "progress.h"

struct k3huf_archive {
    const char *name;          /* for messages; the caller's */
    struct k3huf_input *input; /* the caller's */
    struct k3huf_archive_page page;
    uint8_t *toc;       /* malloc'ed, checked */
    bool require_index; /* the caller's wish, false to begin with: refuse runs without block index when decoding */
};

/* Whether a seekable input begins as an archive does. */
enum k3huf_exit k3huf_archive_recognise(struct k3huf_input *input, bool *is, struct k3huf_fault *fault);

/* Read and check first page and table of contents. K3HUF_EXIT_CORRUPT with the offset of what is wrong. Memory: the
 * table of contents, which must be in the file before anything is allocated for it. Close in any case. */
enum k3huf_exit k3huf_archive_open(struct k3huf_archive *archive, struct k3huf_input *input, struct k3huf_fault *fault);

void k3huf_archive_close(struct k3huf_archive *archive);

/* The name at a place among the names, not ended by 0. */
const char *k3huf_archive_name(const struct k3huf_archive *archive, uint32_t name_at);

/* The tensor of that name; false: there is none. */
bool k3huf_archive_find(const struct k3huf_archive *archive, const char *name, struct k3huf_archive_tensor *tensor);

/* Whether what lies at the place of an entry of kind run, `run`, can be that run: its raw bytes are as many, its
 * stripes end where the entry ends, and its blocks' CRCs, joined, are the entry's. Reads headers and block indexes
 * alone; the blocks of a run that passes can be decoded and checked each by its own CRC. *indexed false: stripes
 * without index have no CRCs, so that only all of the bytes can be compared with the entry's. K3HUF_EXIT_CORRUPT,
 * K3HUF_EXIT_IO. */
enum k3huf_exit k3huf_archive_check_run(struct k3huf_input *run, const struct k3huf_archive_entry *entry, bool *indexed,
                                        struct k3huf_fault *fault);

/* The label of an entry, for messages: the archive's name, the entry's, and where it is. */
#define K3HUF_ENTRY_LABEL_BYTES 4352
void k3huf_archive_label(char label[K3HUF_ENTRY_LABEL_BYTES], const char *archive, const char *name, size_t name_bytes,
                         uint64_t offset);

/* Takes bytes of the source in order: `data` NULL stands for that many zeros. `offset` is in the source. */
typedef enum k3huf_exit k3huf_take_source(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                                          struct k3huf_fault *fault);

/* Give the source's bytes `from` ... `to` - 1 to `take`. Nothing goes unchecked: entries that lie inside as a whole
 * are checked by their CRC; of others the blocks of a run that hold the bytes are, once the run is known to be the
 * entry's (k3huf_archive_check_run), and where there are no blocks
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
