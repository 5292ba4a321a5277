/* crc_join.c - see crc_join.h.
 *
 * A CRC without its inversions is the remainder of a polynomial over GF(2), so n zero bytes behind a span multiply it
 * by x^(8n) modulo the CRC's polynomial. Bits are reflected here as in the CRC: the highest one is the coefficient of
 * x^0.
 */
#include "crc_join.h"

#include "dispatch.h"

/* Below that, joining costs more than it saves. */
#define LONG_LEAST ((size_t)64 << 10)

#define POLYNOMIAL 0x82F63B78u
#define ONE 0x80000000u

static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) { product ^= b; }
        b = (b & 1u) != 0 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* x^(8 * bytes) */
static uint32_t shift(uint64_t bytes) {
    uint32_t power = ONE >> 8;
    uint32_t result = ONE;
    for (; bytes != 0; bytes >>= 1) {
        if ((bytes & 1u) != 0) { result = multiply(result, power); }
        power = multiply(power, power);
    }
    return result;
}

uint32_t k3huf_crc32c_join(uint32_t first, uint32_t second, uint64_t bytes) {
    return multiply(first, shift(bytes)) ^ second;
}

uint32_t k3huf_crc32c_join_all(uint32_t (*crcs)(const void *context, size_t i), const void *context, size_t n,
                               uint64_t bytes, uint64_t last_bytes) {
    const uint32_t by = shift(bytes);
    uint32_t crc = crcs(context, 0);
    for (size_t i = 1; i < n; i++) {
        crc = multiply(crc, i + 1 < n || last_bytes == bytes ? by : shift(last_bytes)) ^ crcs(context, i);
    }
    return crc;
}

uint32_t k3huf_crc32c_long(const struct k3huf_isa *isa, uint32_t crc, const uint8_t *data, size_t size) {
    if (size < LONG_LEAST) { return isa->crc32c(crc, data, size); }
    const size_t span = size / K3HUF_LANES;
    const uint32_t by = shift(span);
    const uint8_t *spans[K3HUF_LANES];
    uint32_t crcs[K3HUF_LANES] = {0};
    for (unsigned i = 0; i < K3HUF_LANES; i++) {
        spans[i] = data + i * span;
    }
    isa->crc32c_lanes(crcs, spans, span, K3HUF_LANES);
    for (unsigned i = 0; i < K3HUF_LANES; i++) {
        crc = multiply(crc, by) ^ crcs[i];
    }
    return isa->crc32c(crc, data + K3HUF_LANES * span, size - K3HUF_LANES * span);
}

uint32_t k3huf_crc32c_zeros(uint64_t bytes) { return ~multiply(UINT32_MAX, shift(bytes)); }
