/* bytes.c - the loops over bytes as Eva sees them, for every size up to SIZE_MAX_HERE, exact, any contents: words that
 * are read and written as bytes, overlaps, initialised memory. Every further size is index.acsl's to prove.
 */
#include "any.h"
#include "bytes.h"

#define SIZE_MAX_HERE 40u

void copy_and_zero(void) {
    //@ loop unroll SIZE_MAX_HERE + 1;
    for (size_t n = 1; n <= SIZE_MAX_HERE; n++) {
        uint8_t *const to = raw_bytes(n);
        k3huf_copy(to, any_bytes(n), n);
        //@ assert copied: \initialized(to + (0 .. n - 1));
        uint8_t *const zero = raw_bytes(n);
        k3huf_zero(zero, n);
        //@ assert zeroed: \forall integer i; 0 <= i < n ==> zero[i] == 0;
        uint8_t *const both = any_bytes(n + 3u); /* the two may overlap where to <= from */
        k3huf_copy(both, both + 3, n);
    }
    k3huf_copy(NULL, NULL, 0);
    k3huf_zero(NULL, 0);
}

void crc(void) {
    uint32_t crc[K3HUF_LANES];
    (void)k3huf_crc32c(any32(0, UINT32_MAX), NULL, 0);
    //@ loop unroll SIZE_MAX_HERE + 1;
    for (size_t n = 1; n <= SIZE_MAX_HERE; n++) {
        const uint8_t *const bytes = any_bytes(n);
        const uint8_t *const data[K3HUF_LANES] = {bytes, bytes, bytes, bytes, bytes, bytes};
        (void)k3huf_crc32c(any32(0, UINT32_MAX), bytes, n);
        //@ loop unroll K3HUF_LANES;
        for (uint32_t lanes = 1; lanes <= K3HUF_LANES; lanes++) {
            Frama_C_make_unknown((char *)crc, sizeof crc);
            k3huf_crc32c_lanes(crc, data, n, lanes);
        }
    }
}

void merge(void) {
    k3huf_merge(NULL, NULL, NULL, 0);
    //@ loop unroll SIZE_MAX_HERE + 1;
    for (size_t n = 1; n <= SIZE_MAX_HERE; n++) {
        uint8_t *const out = raw_bytes(2u * n);
        k3huf_merge(out, any_bytes(n), any_bytes(n), n);
        //@ assert merged: \initialized(out + (0 .. 2 * n - 1));
        uint8_t *const window = any_bytes(2u * n); /* in place: the symbols are its upper half */
        k3huf_merge(window, any_bytes(n), window + n, n);
    }
}

/* Every number as a status, and every byte of its text. */
void status(void) {
    const char *const text = k3huf_status_text((enum k3huf_status)any32(0, UINT32_MAX));
    //@ assert text: \valid_read(text);
    //@ loop unroll 30;
    for (uint32_t number = 0; number <= K3HUF_STATUS_COUNT; number++) {
        const char *at = k3huf_status_text((enum k3huf_status)number);
        //@ loop unroll 80;
        while (*at != '\0') {
            at++;
        }
    }
}
