/* original.h - the single-symbol decoder of the original prototype, as a yardstick for bench and a check for tests.
 *
 * One table of 4096 entries of 2 bytes, one symbol a look-up, bits taken in byte by byte. Written the plain way,
 * neither tuned nor held back. It decodes sound stripes; it checks only that it reads and writes nothing beyond its
 * spans.
 */
#ifndef K3HUF_HOST_ORIGINAL_H
#define K3HUF_HOST_ORIGINAL_H

#include "k3huf.h"

struct k3huf_original_entry {
    uint8_t symbol;
    uint8_t length; /* 0: no code starts with these 12 bits */
};

struct k3huf_original {
    struct k3huf_original_entry table[1u << K3HUF_CODE_LENGTH_MAX];
};

/* `codelen` as in a run header that has been checked. */
void k3huf_original_init(struct k3huf_original *original, const uint8_t codelen[K3HUF_SYMBOLS]);

/* Decode one stripe from its planes: huf_bytes bytes at `coded`, ceil(raw_bytes / 2) at `raw`, into raw_bytes at `out`.
 * false: bits that are no code. */
bool k3huf_original_decode(const struct k3huf_original *original, const uint8_t *coded, size_t huf_bytes,
                           const uint8_t *raw, uint8_t *out, size_t raw_bytes);

#endif
