/* faults.h - seeded faults of storage, and what came of them: for the corruption campaigns. */
#ifndef K3HUF_CAMPAIGN_FAULTS_H
#define K3HUF_CAMPAIGN_FAULTS_H

#include <stddef.h>
#include <stdint.h>

#include "rng.h"

/* A single bit; 2 to 256 bits from the first that is wrong to the last, those between at random; two spans of 1 to 64
 * bytes that trade places; a cut. */
enum k3huf_fault_kind { KIND_BIT, KIND_BURST, KIND_SWAP, KIND_CUT, KINDS };
extern const char *const k3huf_kind_names[KINDS];

struct k3huf_count {
    uint64_t faults, refused, exact, undetected;
};

/* Copy `size` bytes to `damaged` and put one fault in that begins (a swap: of which one span begins) in bytes `from` up
 * to `to`; a cut leaves `from` bytes at least. Returns the size. There is always a difference. */
size_t k3huf_put_fault(enum k3huf_fault_kind kind, struct k3huf_rng *rng, const uint8_t *good, size_t size, size_t from,
                       size_t to, uint8_t *damaged);

/* A table: its heading, a row each, and the sum, which is returned. */
struct k3huf_count k3huf_print_counts(const char *what, uint64_t seed, const char *const *names,
                                      const struct k3huf_count *counts, unsigned n);

#endif
