/* reference_archive.h - the independent witness of archives: a reader written straight from FORMAT.md, The bytes of a
 * k3huf archive, slow and plain on purpose. As reference.h, whose bit-by-bit decoder and CRC it uses, it shares nothing
 * with core and host tool. */
#ifndef K3HUF_TEST_REFERENCE_ARCHIVE_H
#define K3HUF_TEST_REFERENCE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#define K3HUF_REFERENCE_PAGE 4096u
#define K3HUF_REFERENCE_ENTRY 48u  /* bytes of an entry of the table of contents */
#define K3HUF_REFERENCE_TENSOR 48u /* and of a tensor */

/* CRC-32C of two spans, one behind the other, from those of each; the second has `size` bytes. */
uint32_t k3huf_reference_crc32c_join(uint32_t first, uint32_t second, uint64_t size);

/* CRC-32C of `size` zeros. */
uint32_t k3huf_reference_crc32c_zeros(uint64_t size);

struct k3huf_reference_archive {
    const uint8_t *bytes, *entries, *tensors, *dims, *names; /* inside the archive's bytes */
    uint32_t nentries, ntensors, ndims;
    uint64_t toc_offset, toc_bytes, names_bytes, source_bytes;
};

struct k3huf_reference_entry {
    uint64_t offset, bytes, source_offset, raw_bytes, name_bytes;
    uint32_t raw_crc, kind;
    const uint8_t *name;
};

/* Find the parts by what the first page says. NULL, or what keeps them from lying in the archive. No rule but that is
 * looked at. */
const char *k3huf_reference_archive_parts(struct k3huf_reference_archive *archive, const uint8_t *bytes, size_t size);

/* The same, and every rule that FORMAT.md has for first page and table of contents, but that names are there once. */
const char *k3huf_reference_archive_open(struct k3huf_reference_archive *archive, const uint8_t *bytes, size_t size);

/* Whether two tensors of an open archive have one name. */
int k3huf_reference_archive_twins(const struct k3huf_reference_archive *archive);

struct k3huf_reference_entry k3huf_reference_archive_entry(const struct k3huf_reference_archive *archive,
                                                           uint32_t number);

/* Make the source's CRC that of the entries', and those of table and page what they must be, if the parts are there. */
void k3huf_reference_archive_seal(uint8_t *bytes, size_t size);

#endif
