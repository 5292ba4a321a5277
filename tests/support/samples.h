/* samples.h - codes and data for the tests, the same on every target. Uses the reference code alone. */
#ifndef K3HUF_TEST_SAMPLES_H
#define K3HUF_TEST_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "reference.h"
#include "rng.h"

/* Codes that between them hold the borders: one symbol, exactly full and under-full spaces, flat, as deep as allowed,
 * long codes alone, and random full ones. */
#define K3HUF_SAMPLE_CODES 26u

/* Write sample code `which` (0 ... K3HUF_SAMPLE_CODES - 1) into codelen; returns its name. */
const char *k3huf_sample_code(unsigned which, uint8_t codelen[256]);

/* A random exactly full code of `n` symbols (2 ... 256; 1 gives the one-symbol code); the higher `depth` of 100, the
 * more unequal its lengths. */
void k3huf_random_code(struct k3huf_rng *rng, unsigned n, unsigned depth, uint8_t codelen[256]);

/* `n` symbols, each about as frequent as the code expects. */
void k3huf_sample_symbols(const struct k3huf_reference_code *code, struct k3huf_rng *rng, uint8_t *symbols, size_t n);

/* `size` bytes of raw data for stripes of `stripe_bytes`: their odd bytes from the code, their even bytes random. */
void k3huf_sample_raw(const uint8_t codelen[256], uint64_t seed, uint32_t stripe_bytes, uint8_t *raw, size_t size);

#endif
