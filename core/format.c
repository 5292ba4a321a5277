/* format.c - run and stripe headers: bytes to checked structs and back (FORMAT.md, Run and Stripe).
 *
 * The one parser of these bytes. Every field is checked before anything is computed from it, and every sum is made in a
 * width it cannot overflow: the comments say why. May not look at planes or fillers.
 */
#include "bytes.h"
#include "compiler.h"
#include "k3huf.h"

#define RUN_MAGIC 0x4655484bu
#define RUN_VERSION 1u

/* Byte offsets of the fields. */
enum { RUN_MAGIC_AT = 0, RUN_VERSION_AT = 4, RUN_RAW_AT = 8, RUN_STRIPES_AT = 16, RUN_CODELEN_AT = 20 };
enum { STRIPE_MAGIC_AT = 0, STRIPE_RAW_AT = 4, STRIPE_CODED_AT = 8, STRIPE_PAD_AT = 12 };

/* Check code lengths alone: each at most 12, Kraft sum at most 1. *used gets the number of symbols with a code. */
static enum k3huf_status check_code(const uint8_t codelen[K3HUF_SYMBOLS], uint32_t *used, uint32_t *bad) {
    uint32_t kraft = 0; /* in units of 2^-12: at most 256 x 2^11, far from overflow */
    *used = 0;
    for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        const uint32_t length = codelen[symbol];
        if (length > K3HUF_CODE_LENGTH_MAX) { return k3huf_fail_at(bad, RUN_CODELEN_AT + symbol, K3HUF_E_CODE_LENGTH); }
        if (length > 0) {
            kraft += 1u << (K3HUF_CODE_LENGTH_MAX - length);
            *used += 1u;
        }
    }
    if (kraft > 1u << K3HUF_CODE_LENGTH_MAX) { return k3huf_fail_at(bad, RUN_CODELEN_AT, K3HUF_E_CODE_OVERFULL); }
    return K3HUF_OK;
}

enum k3huf_status k3huf_run_header_read(const uint8_t bytes[K3HUF_RUN_HEADER_BYTES], struct k3huf_run_header *out,
                                        uint32_t *bad) {
    uint32_t used = 0;
    *bad = 0;
    if (k3huf_load_le32(bytes + RUN_MAGIC_AT) != RUN_MAGIC) {
        return k3huf_fail_at(bad, RUN_MAGIC_AT, K3HUF_E_RUN_MAGIC);
    }
    if (k3huf_load_le32(bytes + RUN_VERSION_AT) != RUN_VERSION) {
        return k3huf_fail_at(bad, RUN_VERSION_AT, K3HUF_E_RUN_VERSION);
    }
    out->raw_bytes = k3huf_load_le64(bytes + RUN_RAW_AT);
    out->nstripes = k3huf_load_le32(bytes + RUN_STRIPES_AT);
    /* Each stripe holds 1 ... 2^26 raw bytes: with 32 bits of stripes the product stays under 2^58. */
    if (out->nstripes > out->raw_bytes || out->raw_bytes > (uint64_t)out->nstripes * K3HUF_STRIPE_RAW_MAX) {
        return k3huf_fail_at(bad, RUN_STRIPES_AT, K3HUF_E_RUN_STRIPES);
    }
    k3huf_copy(out->codelen, bytes + RUN_CODELEN_AT, K3HUF_SYMBOLS);
    const enum k3huf_status status = check_code(out->codelen, &used, bad);
    if (status != K3HUF_OK) { return status; }
    /* Only where every stripe has a single byte is there no symbol to decode. */
    if (used == 0 && out->raw_bytes > out->nstripes) { return k3huf_fail_at(bad, RUN_CODELEN_AT, K3HUF_E_CODE_EMPTY); }
    return K3HUF_OK;
}

void k3huf_run_header_write(const struct k3huf_run_header *header, uint8_t bytes[K3HUF_RUN_HEADER_BYTES]) {
    k3huf_zero(bytes, K3HUF_RUN_HEADER_BYTES);
    k3huf_store_le32(bytes + RUN_MAGIC_AT, RUN_MAGIC);
    k3huf_store_le32(bytes + RUN_VERSION_AT, RUN_VERSION);
    k3huf_store_le64(bytes + RUN_RAW_AT, header->raw_bytes);
    k3huf_store_le32(bytes + RUN_STRIPES_AT, header->nstripes);
    k3huf_copy(bytes + RUN_CODELEN_AT, header->codelen, K3HUF_SYMBOLS);
}

/* Can `coded` bytes hold `symbols` codes whose lengths are among `codelen`, padded to a whole byte? */
static bool coded_size_possible(uint32_t coded, uint32_t symbols, const uint8_t codelen[K3HUF_SYMBOLS]) {
    uint32_t shortest = K3HUF_CODE_LENGTH_MAX;
    uint32_t longest = 1;
    for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        const uint32_t length = codelen[symbol];
        if (length > 0 && length < shortest) { shortest = length; }
        if (length > longest) { longest = length; }
    }
    /* symbols <= 2^25, times 12: under 2^29. */
    return coded >= (symbols * shortest + 7u) / 8u && coded <= (symbols * longest + 7u) / 8u;
}

enum k3huf_status k3huf_stripe_header_read(const uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES],
                                           const struct k3huf_run_header *run, uint32_t stripe, uint64_t raw_before,
                                           struct k3huf_stripe_header *out, uint32_t *bad) {
    *bad = 0;
    if (k3huf_load_le32(bytes + STRIPE_MAGIC_AT) != (RUN_MAGIC ^ stripe)) {
        return k3huf_fail_at(bad, STRIPE_MAGIC_AT, K3HUF_E_STRIPE_MAGIC);
    }
    out->raw_bytes = k3huf_load_le32(bytes + STRIPE_RAW_AT);
    out->huf_bytes = k3huf_load_le32(bytes + STRIPE_CODED_AT);
    out->pad = k3huf_load_le32(bytes + STRIPE_PAD_AT);
    if (out->raw_bytes == 0 || out->raw_bytes > K3HUF_STRIPE_RAW_MAX) {
        return k3huf_fail_at(bad, STRIPE_RAW_AT, K3HUF_E_STRIPE_RAW);
    }
    /* What is left of the run after this stripe must be what the stripes after it can hold. The caller vouches for
     * raw_before <= raw_bytes and stripe < nstripes, so neither difference wraps. */
    const uint64_t left = run->raw_bytes - raw_before;
    const uint32_t stripes_after = run->nstripes - stripe - 1u;
    if (out->raw_bytes > left || left - out->raw_bytes < stripes_after ||
        left - out->raw_bytes > (uint64_t)stripes_after * K3HUF_STRIPE_RAW_MAX) {
        return k3huf_fail_at(bad, STRIPE_RAW_AT, K3HUF_E_STRIPE_RAW);
    }
    if (!coded_size_possible(out->huf_bytes, k3huf_odd_bytes(out->raw_bytes), run->codelen)) {
        return k3huf_fail_at(bad, STRIPE_CODED_AT, K3HUF_E_STRIPE_CODED);
    }
    return K3HUF_OK;
}

void k3huf_stripe_header_write(const struct k3huf_stripe_header *header, uint32_t stripe,
                               uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES]) {
    k3huf_store_le32(bytes + STRIPE_MAGIC_AT, RUN_MAGIC ^ stripe);
    k3huf_store_le32(bytes + STRIPE_RAW_AT, header->raw_bytes);
    k3huf_store_le32(bytes + STRIPE_CODED_AT, header->huf_bytes);
    k3huf_store_le32(bytes + STRIPE_PAD_AT, header->pad);
}
