/* memory_run.h - whole runs in memory: made from raw bytes, and decoded by the core's state machine. For bench and
 * plan; pack and unpack work on files (pack.h, decode_run.h). `isa` is the variant of core and encoder to use. */
#ifndef K3HUF_HOST_MEMORY_RUN_H
#define K3HUF_HOST_MEMORY_RUN_H

#include "dispatch.h"

/* The most bytes that k3huf_memory_pack() can need. */
size_t k3huf_memory_bound(size_t raw_bytes, uint32_t stripe_bytes, uint32_t block_log2);

/* Pack `raw_bytes` bytes, header to end, into stripes of `stripe_bytes` raw bytes (1 ... K3HUF_STRIPE_RAW_MAX; the last
 * may be smaller), with a block index unless block_log2 is 0. `run` has k3huf_memory_bound() bytes. Returns the run's
 * size, 0 where the arguments are out of range. */
size_t k3huf_memory_pack(const struct k3huf_isa *isa, const uint8_t *raw, size_t raw_bytes, uint32_t stripe_bytes,
                         uint32_t block_log2, uint8_t *run);

/* What decoding needs beside input and output. */
struct k3huf_memory_decoder {
    struct k3huf_decoder decoder;
    struct k3huf_workspace workspace;
    uint8_t *index; /* NULL: indexes are ignored */
    size_t index_size;
};

/* Decode the run of `run_bytes` bytes, whole, into `raw_bytes` at `out`, through two cursors. K3HUF_DONE or what is
 * wrong; K3HUF_E_ARGUMENT where the run holds more than `raw_bytes`. */
enum k3huf_status k3huf_memory_decode(const struct k3huf_isa *isa, struct k3huf_memory_decoder *memory,
                                      const uint8_t *run, size_t run_bytes, uint8_t *out, size_t raw_bytes);

#endif
