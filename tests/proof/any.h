/* any.h - values of which the analyser knows nothing but their range: a driver that passes for these passes for every
 * input. May not narrow a range without a comment in the driver that says why.
 */
#ifndef K3HUF_PROOF_ANY_H
#define K3HUF_PROOF_ANY_H

#include <stdlib.h>

#include "__fc_builtin.h"
#include "k3huf.h"

static inline uint32_t any32(uint32_t least, uint32_t most) { return Frama_C_unsigned_int_interval(least, most); }
static inline uint64_t any64(void) { return Frama_C_unsigned_long_long_interval(0, UINT64_MAX); }

/* Memory of just `size` bytes, any contents: a read or write of one more is an alarm. */
static inline uint8_t *any_bytes(size_t size) {
    uint8_t *const bytes = malloc(size);
    if (bytes == NULL) { exit(1); }
    Frama_C_make_unknown((char *)bytes, size);
    return bytes;
}

/* The same, not initialised: a read before a write is an alarm too. */
static inline uint8_t *raw_bytes(size_t size) {
    uint8_t *const bytes = malloc(size);
    if (bytes == NULL) { exit(1); }
    return bytes;
}

#endif
