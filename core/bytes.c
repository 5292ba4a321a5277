/* bytes.c - copy and zero, eight bytes at a time. May not grow: whoever needs speed has its own loop. */
#include "bytes.h"
#include "compiler.h"

void k3huf_copy(uint8_t *to, const uint8_t *from, size_t n) {
    size_t i = 0;
    for (; i + 8u <= n; i += 8u) {
        k3huf_store64(to + i, k3huf_load64(from + i));
    }
    for (; i < n; i++) {
        to[i] = from[i];
    }
}

void k3huf_zero(uint8_t *to, size_t n) {
    size_t i = 0;
    for (; i + 8u <= n; i += 8u) {
        k3huf_store64(to + i, 0);
    }
    for (; i < n; i++) {
        to[i] = 0;
    }
}
