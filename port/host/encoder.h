/* encoder.h - raw bytes to version-1 stripes. The one encoder: pack, bench and the tests use it.
 *
 * Pure computation on the caller's memory: no allocation, no I/O, no static state. FORMAT.md in core/ says what the
 * bytes mean. To make a run: k3huf_histogram_odd() over every stripe, k3huf_code_lengths() (package_merge.h),
 * k3huf_encoder_init(), k3huf_run_header_write(), then k3huf_encode_stripe() for stripe 0, 1, ...
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
