/* encoder.h - raw bytes to version-1 stripes. The one encoder: pack, bench and the tests use it.
 *
 * Pure computation on the caller's memory: no allocation, no I/O, no static state. FORMAT.md in core/ says what the
 * bytes mean. To make a run: k3huf_histogram_odd() over every stripe, k3huf_code_lengths() (package_merge.h),
 * k3huf_encoder_init(), k3huf_run_header_write(), then k3huf_encode_stripe() for stripe 0, 1, ... Or a stripe in parts,
 * side by side: k3huf_encode_part() for each, k3huf_join_part() in their order.
 */
#ifndef K3HUF_HOST_ENCODER_H
#define K3HUF_HOST_ENCODER_H

#include "k3huf.h"

/* The canonical code, ready for encoding. Read-only once made; any number of threads may share it. */
struct k3huf_encoder {
    uint8_t codelen[K3HUF_SYMBOLS];
    uint32_t word[K3HUF_SYMBOLS]; /* code << 8 | code length; K3HUF_ENCODER_ABSENT where there is no code */
};

/* Its low byte is a length, as in any other word, so that the hot loop need not look at it. */
#define K3HUF_ENCODER_ABSENT 0x80000001u

/* Add the counts of data[1], data[3], ... to the histogram. Over a stripe in pieces: pieces of an even size. */
void k3huf_histogram_odd(uint64_t histogram[K3HUF_SYMBOLS], const uint8_t *data, size_t size);

/* Assign the canonical codes (FORMAT.md, The code). K3HUF_OK, K3HUF_E_CODE_LENGTH, K3HUF_E_CODE_OVERFULL. */
enum k3huf_status k3huf_encoder_init(struct k3huf_encoder *encoder, const uint8_t codelen[K3HUF_SYMBOLS]);

/* One part of a stripe: whole blocks, or the stripe's last bytes. Parts can be encoded on several threads at once, each
 * into memory of its own, and are joined in order afterwards. */
struct k3huf_coded_part {
    uint8_t *coded;   /* gets the codes, from its first bit on; k3huf_coded_bound(raw_bytes) bytes */
    uint8_t *even;    /* gets the even bytes, k3huf_even_bytes(raw_bytes) of them */
    uint8_t *entries; /* gets 8 bytes a block, as in an index but with bits counted from the part's first; or NULL */
    uint32_t bits;    /* out: of all its codes; zero bits fill the last byte */
};

/* Memory that the codes of raw_bytes bytes need: the most they can be, and slack. */
size_t k3huf_coded_bound(uint32_t raw_bytes);

/* Encode raw_bytes bytes that begin at a block of the stripe, with blocks of 2^block_log2 symbols (0: one block).
 * K3HUF_OK; K3HUF_E_CODE_WORD: an odd byte has no code, what the part holds is then of no use. */
enum k3huf_status k3huf_encode_part(const struct k3huf_encoder *encoder, const uint8_t *raw, uint32_t raw_bytes,
                                    uint32_t block_log2, struct k3huf_coded_part *part);

/* Append the part's codes to a coded plane of `bits` bits, whose last byte is filled with zero bits. Returns the bits
 * of both. `plane` has room for all of them, in whole bytes; no byte beyond is written. */
uint32_t k3huf_join_part(uint8_t *plane, uint32_t bits, const struct k3huf_coded_part *part);

/* Make a part's entries, `blocks` of them, those of an index: the part begins at `bits` in the plane. */
void k3huf_join_entries(uint8_t *entries, uint32_t blocks, uint32_t bits);

/* Memory that k3huf_encode_stripe() needs at `out`: the largest stripe that raw_bytes bytes can become, and slack.
 * block_log2 0: without an index. */
size_t k3huf_stripe_bound(uint32_t raw_bytes, uint32_t block_log2);

/* Write stripe number `stripe` with all its parts: header, coded plane, raw plane and, unless block_log2 is 0, a filler
 * that holds the block index with blocks of 2^block_log2 symbols and nothing else. `raw` and `out` must not overlap.
 * `out` has `capacity` bytes, at least k3huf_stripe_bound(); *size gets the size of the stripe.
 *
 * K3HUF_OK; K3HUF_E_ARGUMENT: raw_bytes, block_log2 or capacity out of range; K3HUF_E_CODE_WORD: an odd byte has no
 * code, what `out` holds is then of no use. */
enum k3huf_status k3huf_encode_stripe(const struct k3huf_encoder *encoder, uint32_t stripe, const uint8_t *raw,
                                      uint32_t raw_bytes, uint32_t block_log2, uint8_t *out, size_t capacity,
                                      size_t *size);

#endif
