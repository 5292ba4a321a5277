/* compare.c - see compare.h. */
#include "compare.h"

#include <inttypes.h>
#include <string.h>

#define CHUNK ((size_t)64 << 10)

size_t k3huf_same_bytes(const uint8_t *a, const uint8_t *b, size_t size) {
    size_t same = 0;
    if (memcmp(a, b, size) == 0) { return size; }
    while (same < size && a[same] == b[same]) { /* memory that others share may have changed since */
        same++;
    }
    return same;
}

enum k3huf_exit k3huf_compare_take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct k3huf_compare *compare = context;
    compare->bytes += piece->size;
    for (size_t done = 0; compare->original != NULL && done < piece->size;) {
        uint8_t expected[CHUNK];
        size_t now = piece->size - done < CHUNK ? piece->size - done : CHUNK;
        size_t got = 0;
        enum k3huf_exit code = k3huf_input_read(compare->original, expected, now, now, &got, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        const size_t i = k3huf_same_bytes(expected, piece->data + done, got);
        if (i < got) {
            return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, compare->name, NULL,
                                   "stripe %" PRIu32 ", decoded offset %" PRIu64
                                   ": differs from %s: expected 0x%02x, found 0x%02x",
                                   piece->stripe, piece->offset + done + i, compare->original->name,
                                   (unsigned)expected[i], (unsigned)piece->data[done + i]);
        }
        if (got < now) {
            return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, compare->name, NULL,
                                   "stripe %" PRIu32 ", decoded offset %" PRIu64 ": %s ends here, the run goes on",
                                   piece->stripe, piece->offset + done + got, compare->original->name);
        }
        done += now;
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_compare_end(struct k3huf_compare *compare, struct k3huf_fault *fault) {
    if (compare->original == NULL) { return K3HUF_EXIT_OK; }
    uint8_t byte;
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read(compare->original, &byte, 1, 1, &got, fault);
    if (code == K3HUF_EXIT_OK && got != 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, compare->name, NULL,
                               "decoded offset %" PRIu64 ": the run ends here, %s goes on", compare->bytes,
                               compare->original->name);
    }
    return code;
}
