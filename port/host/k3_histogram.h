/* k3_histogram.h - bytes that look like real bf16 weights, for bench and tests. Deterministic. */
#ifndef K3HUF_HOST_K3_HISTOGRAM_H
#define K3HUF_HOST_K3_HISTOGRAM_H

#include "k3huf.h"

/* Counts of the high (odd-offset) byte of 2,097,152 real bf16 weights: Kimi K3 self_attn.f_a_proj.weight, 1 MiB each of
 * layers 1, 12, 24 and 36. Source: docs/measurements/research-two-symbol.json in the public repository
 * andrewd780/kimi-k3-for-me. Order-0 entropy 2.7248 bits; the optimal 12-bit code takes 2.75562. */
extern const uint64_t k3huf_k3_histogram[K3HUF_SYMBOLS];

/* Fill `data` with `size` bytes: odd-offset bytes drawn with the frequencies of `histogram` (sum 1 ... 2^32), even ones
 * uniform. The same seed and histogram give the same bytes on every machine, and a shorter size the front of them.
 * Random numbers: splitmix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014). */
void k3huf_generate(uint8_t *data, size_t size, uint64_t seed, const uint64_t histogram[K3HUF_SYMBOLS]);

#endif
