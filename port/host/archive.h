/* archive.h - the bytes of an archive (FORMAT.md, The bytes of a k3huf archive): the one reader and writer of them.
 *
 * Pure computation on the caller's memory, as in the core: no allocation, no I/O, no libc. Who opens, reads and writes
 * archive files is archive_file.h and archive_pack.h.
 */
#ifndef K3HUF_HOST_ARCHIVE_H
#define K3HUF_HOST_ARCHIVE_H

#include "k3huf.h"

#define K3HUF_ARCHIVE_PAGE 4096u
#define K3HUF_ARCHIVE_TOC_MAX 268435456u
#define K3HUF_ARCHIVE_ENTRY_BYTES 48u
#define K3HUF_ARCHIVE_TENSOR_BYTES 48u
#define K3HUF_ARCHIVE_DTYPE_BYTES 8u
#define K3HUF_ARCHIVE_NO_ENTRY UINT32_MAX

enum k3huf_archive_kind { K3HUF_ENTRY_STORED = 0, K3HUF_ENTRY_RUN = 1, K3HUF_ENTRY_ZEROS = 2 };
enum k3huf_source_kind { K3HUF_SOURCE_BYTES = 0, K3HUF_SOURCE_SAFETENSORS = 1, K3HUF_SOURCE_TRUNK = 2 };

struct k3huf_archive_page {
    uint64_t archive_bytes;
    uint64_t toc_offset;
    uint64_t toc_bytes;
    uint32_t toc_crc;
    uint32_t nentries;
    uint64_t source_bytes;
    uint32_t source_crc;
    uint32_t source_kind;
    uint32_t ntensors;
    uint32_t ndims;
    int64_t source_mtime;
};

struct k3huf_archive_entry {
    uint64_t offset;
    uint64_t bytes;
    uint64_t source_offset;
    uint64_t raw_bytes;
    uint32_t raw_crc;
    uint32_t kind;
    uint32_t name_at;
    uint32_t name_bytes;
};

struct k3huf_archive_tensor {
    uint64_t source_offset;
    uint64_t bytes;
    uint32_t entry;
    uint32_t name_at;
    uint32_t name_bytes;
    uint32_t rank;
    char dtype[K3HUF_ARCHIVE_DTYPE_BYTES + 1];
    uint32_t dims_at;
};

/* What is wrong with an archive: static text and the offset of the field, in the archive. NULL: nothing. */
struct k3huf_archive_fault {
    const char *text;
    uint64_t offset;
};

/* Whether bytes, the first of a file, are the magic of an archive. */
bool k3huf_archive_magic(const uint8_t *bytes, size_t size);

/* What a first page says of the archive's size, unchecked. */
uint64_t k3huf_archive_page_bytes(const uint8_t bytes[K3HUF_ARCHIVE_PAGE]);

/* Read and check a first page, against the size of the file it is in. */
bool k3huf_archive_page_read(const uint8_t bytes[K3HUF_ARCHIVE_PAGE], uint64_t file_bytes,
                             struct k3huf_archive_page *page, struct k3huf_archive_fault *fault);
void k3huf_archive_page_write(const struct k3huf_archive_page *page, uint8_t bytes[K3HUF_ARCHIVE_PAGE]);

/* Check a table of contents of page->toc_bytes bytes, every field of it but the uniqueness of tensor names. */
bool k3huf_archive_toc_check(const struct k3huf_archive_page *page, const uint8_t *toc,
                             struct k3huf_archive_fault *fault);

/* Parts of a table of contents. Those of one that is to be read must have been checked. */
void k3huf_archive_entry_read(const uint8_t *toc, uint32_t number, struct k3huf_archive_entry *entry);
void k3huf_archive_entry_write(uint8_t *toc, uint32_t number, const struct k3huf_archive_entry *entry);
void k3huf_archive_tensor_read(const struct k3huf_archive_page *page, const uint8_t *toc, uint32_t number,
                               struct k3huf_archive_tensor *tensor);
void k3huf_archive_tensor_write(const struct k3huf_archive_page *page, uint8_t *toc, uint32_t number,
                                const struct k3huf_archive_tensor *tensor);
uint64_t k3huf_archive_dim_read(const struct k3huf_archive_page *page, const uint8_t *toc, uint32_t at);
void k3huf_archive_dim_write(const struct k3huf_archive_page *page, uint8_t *toc, uint32_t at, uint64_t value);

/* Offset of the names in a table of contents, which is also the size of all before them. */
uint64_t k3huf_archive_names_at(const struct k3huf_archive_page *page);

#endif
