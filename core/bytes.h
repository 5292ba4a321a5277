/* bytes.h - the core's own small tools, so that nothing is asked of a libc. Private to core/. Not for the hot loop. */
#ifndef K3HUF_BYTES_H
#define K3HUF_BYTES_H

#include "k3huf.h"

/* `n` bytes from `from` to `to`; the two may overlap where to <= from. With n of 0 neither is looked at. */
void k3huf_copy(uint8_t *to, const uint8_t *from, size_t n);

/* `n` bytes of 0 at `to`. */
void k3huf_zero(uint8_t *to, size_t n);

static inline size_t k3huf_least(size_t a, size_t b) { return a < b ? a : b; }

/* Note where something is wrong, and return what. */
static inline enum k3huf_status k3huf_fail_at(uint32_t *bad, uint32_t at, enum k3huf_status status) {
    *bad = at;
    return status;
}

#endif
