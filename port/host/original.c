/* original.c - see original.h. */
#include "original.h"

#include <string.h>

void k3huf_original_init(struct k3huf_original *original, const uint8_t codelen[K3HUF_SYMBOLS]) {
    size_t at = 0;
    memset(original, 0, sizeof *original);
    for (unsigned length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            if (codelen[symbol] == length) {
                for (size_t i = 0; i < (size_t)1 << (K3HUF_CODE_LENGTH_MAX - length); i++) {
                    original->table[at++] = (struct k3huf_original_entry){(uint8_t)symbol, (uint8_t)length};
                }
            }
        }
    }
}

bool k3huf_original_decode(const struct k3huf_original *original, const uint8_t *coded, size_t huf_bytes,
                           const uint8_t *raw, uint8_t *out, size_t raw_bytes) {
    const uint8_t *p = coded;
    const uint8_t *end = coded + huf_bytes;
    uint64_t acc = 0;
    unsigned bits = 0;
    size_t odd = raw_bytes / 2;
    for (size_t i = 0; i < odd; i++) {
        while (bits < K3HUF_CODE_LENGTH_MAX) {
            acc = acc << 8 | (p < end ? *p++ : 0u);
            bits += 8;
        }
        struct k3huf_original_entry entry = original->table[acc >> (bits - K3HUF_CODE_LENGTH_MAX) & 0xFFFu];
        if (entry.length == 0) { return false; }
        bits -= entry.length;
        out[2 * i] = raw[i];
        out[2 * i + 1] = entry.symbol;
    }
    if (raw_bytes % 2 != 0) { out[2 * odd] = raw[odd]; }
    return true;
}
