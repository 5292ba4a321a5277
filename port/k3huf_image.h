/* k3huf_image.h - the table of contents of a drive or disk image that holds runs and archives: its bytes and how to
 * check them. Used by the engine (LIST jobs) and by k3huf_host image and offload. Declarations only.
 *
 * The table begins at the image's first byte: a head of 64 bytes, then `entries` entries of 96 bytes. Numbers are
 * little-endian. Runs and archives lie anywhere behind it; nothing in them refers to it.
 */
#ifndef K3HUF_IMAGE_H
#define K3HUF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define K3HUF_IMAGE_HEAD_BYTES 64u
#define K3HUF_IMAGE_ENTRY_BYTES 96u
#define K3HUF_IMAGE_ENTRIES_MAX 512u
#define K3HUF_IMAGE_BYTES_MAX (K3HUF_IMAGE_HEAD_BYTES + K3HUF_IMAGE_ENTRIES_MAX * K3HUF_IMAGE_ENTRY_BYTES)

#define K3HUF_IMAGE_MAGIC_VALUE 0x4354334Bu /* the bytes "K3TC" */
#define K3HUF_IMAGE_VERSION_VALUE 1u

/* Head. */
#define K3HUF_IMAGE_MAGIC 0u     /* u32 */
#define K3HUF_IMAGE_VERSION 4u   /* u32, 1 */
#define K3HUF_IMAGE_LBA_BYTES 8u /* u32, the block size the runs are aligned to */
#define K3HUF_IMAGE_ENTRIES 12u  /* u32, 0 ... K3HUF_IMAGE_ENTRIES_MAX */
#define K3HUF_IMAGE_CRC 16u      /* u32, CRC-32C of head and entries, this field taken as 0 */
                                 /* 20 ... 63: 0 */
/* Entry. */
#define K3HUF_IMAGE_OFFSET 0u     /* u64, the run's or archive's first byte, counted from the image's */
#define K3HUF_IMAGE_RUN_BYTES 8u  /* u64 */
#define K3HUF_IMAGE_RAW_BYTES 16u /* u64, decoded */
#define K3HUF_IMAGE_KIND 24u      /* u32, K3HUF_IMAGE_KIND_... */
                                  /* 28 ... 31: 0 */
#define K3HUF_IMAGE_NAME 32u      /* 64 bytes, at most 63 characters, NUL to the end */
#define K3HUF_IMAGE_NAME_BYTES 64u

#define K3HUF_IMAGE_KIND_RUN 0u
#define K3HUF_IMAGE_KIND_ARCHIVE 1u /* as FORMAT.md has it, with a table of contents of its own; a host's business */

/* Bytes of the table whose head begins at `bytes` (at least K3HUF_IMAGE_HEAD_BYTES of them), or 0: not a table. */
uint32_t k3huf_image_table_bytes(const uint8_t *bytes);

/* CRC-32C of a table of `size` bytes, its CRC field taken as 0. */
uint32_t k3huf_image_table_crc(const uint8_t *bytes, uint32_t size);

/* Is the table of `size` bytes (what k3huf_image_table_bytes() said) sound: CRC, names that end, known kinds? */
bool k3huf_image_table_sound(const uint8_t *bytes, uint32_t size);

#endif
