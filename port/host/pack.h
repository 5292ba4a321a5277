/* pack.h - any bytes to one run. */
#ifndef K3HUF_HOST_PACK_H
#define K3HUF_HOST_PACK_H

#include "fault.h"

struct k3huf_pack_options {
    uint32_t stripe_bytes;    /* raw bytes of every stripe but the last, 1 ... K3HUF_STRIPE_RAW_MAX */
    uint32_t max_code_length; /* 1 ... K3HUF_CODE_LENGTH_MAX */
    uint32_t block_log2;      /* block index with blocks of 2^block_log2 symbols; 0: no index */
    unsigned threads;         /* 1 ... K3HUF_THREADS_MAX */
    bool force;               /* replace an existing file */
};

struct k3huf_pack_result {
    uint64_t raw_bytes;
    uint64_t run_bytes;
    uint32_t nstripes;
    bool stream; /* the run went to a stream (output.h) */
};

/* Pack `in_name` into `out_name` ("-" for the standard streams) and decode it again, comparing it with the input,
 * before the output gets its name. The run is the same for any number of threads. Memory: one stripe as coded, parts of
 * 1/2 MiB (or one block) under way on each thread, what decoding needs (decode_run.h), and all of the input where it is
 * a stream.
 *
 * A seekable input is read three times: for the histogram, to encode, to compare. K3HUF_EXIT_IO where it changes
 * meanwhile. An output stream cannot be read back: there every stripe is decoded and compared before it is written. */
enum k3huf_exit k3huf_pack(const char *in_name, const char *out_name, const struct k3huf_pack_options *options,
                           struct k3huf_pack_result *result, struct k3huf_fault *fault);

#endif
