/* vectors.c - the table of the golden vectors that vectors.S embeds. Sizes are those of tests/data/manifest.json, so
 * that a file that changed shows (test_golden compares them with what was embedded). */
#include "vectors.h"

#define FILES(NAME)                                                                                                    \
    extern const uint8_t k3huf_run_##NAME[], k3huf_run_##NAME##_end[], k3huf_raw_##NAME[], k3huf_raw_##NAME##_end[];

FILES(two_bytes)
FILES(three_bytes_odd_tail)
FILES(one_symbol)
FILES(two_symbols)
FILES(all_256_symbols)
FILES(special_values)
FILES(random_bytes_odd_length)
FILES(deep_tree_limit12)
FILES(k3_three_stripes)
FILES(k3_stripes_with_filler)
FILES(k3_histogram_256k)
FILES(real_weights_silero)

#define VECTOR(NAME, RUN_SIZE, RAW_SIZE, STRIPE_BYTES)                                                                 \
    {                                                                                                                  \
        .name = #NAME, .run = k3huf_run_##NAME, .run_end = k3huf_run_##NAME##_end, .run_size = (RUN_SIZE),             \
        .raw = k3huf_raw_##NAME, .raw_end = k3huf_raw_##NAME##_end, .raw_size = (RAW_SIZE),                            \
        .stripe_bytes = (STRIPE_BYTES)                                                                                 \
    }

const struct k3huf_vector k3huf_vectors[K3HUF_VECTORS] = {
    VECTOR(two_bytes, 306, 2, 67108864),
    VECTOR(three_bytes_odd_tail, 307, 3, 67108864),
    VECTOR(one_symbol, 1429, 2000, 67108864),
    VECTOR(two_symbols, 1431, 2002, 67108864),
    VECTOR(all_256_symbols, 8496, 8192, 67108864),
    VECTOR(special_values, 6742, 10000, 67108864),
    VECTOR(random_bytes_odd_length, 10306, 10007, 67108864),
    VECTOR(deep_tree_limit12, 79678, 120000, 67108864),
    VECTOR(k3_three_stripes, 134968, 195831, 65536),
    VECTOR(k3_stripes_with_filler, 137983, 200000, 65536),
    VECTOR(k3_histogram_256k, 180511, 262144, 67108864),
    VECTOR(real_weights_silero, 286715, 400000, 67108864),
};
