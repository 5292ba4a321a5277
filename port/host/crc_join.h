/* crc_join.h - the CRC-32C of two spans from those of each, so that spans can be read side by side or not at all. */
#ifndef K3HUF_HOST_CRC_JOIN_H
#define K3HUF_HOST_CRC_JOIN_H

#include <stddef.h>
#include <stdint.h>

struct k3huf_isa;

/* CRC-32C of a span with CRC `first`, followed by one of `bytes` bytes with CRC `second`. */
uint32_t k3huf_crc32c_join(uint32_t first, uint32_t second, uint64_t bytes);

/* CRC-32C of `n` (1 or more) spans one behind the other, each of `bytes` bytes but the last, which has last_bytes.
 * crcs(context, i) is the CRC of span i. */
uint32_t k3huf_crc32c_join_all(uint32_t (*crcs)(const void *context, size_t i), const void *context, size_t n,
                               uint64_t bytes, uint64_t last_bytes);

/* CRC-32C of `size` bytes, going on from `crc`: what k3huf_crc32c() computes, faster for many bytes. */
uint32_t k3huf_crc32c_long(const struct k3huf_isa *isa, uint32_t crc, const uint8_t *data, size_t size);

/* CRC-32C of `bytes` zero bytes. */
uint32_t k3huf_crc32c_zeros(uint64_t bytes);

#endif
