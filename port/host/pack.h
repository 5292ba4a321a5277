/* pack.h - any bytes to one run. */
#ifndef K3HUF_HOST_PACK_H
#define K3HUF_HOST_PACK_H

#include "encode_run.h"

struct k3huf_pack_result {
    uint64_t raw_bytes;
    uint64_t run_bytes;
    uint32_t nstripes;
    bool stream; /* the run went to a stream (output.h) */
};

/* Pack all of a seekable input into `out_name` ("-" for standard output) and decode it again, comparing it with the
 * input, before the output gets its name. Memory: that of encode_run.h and of decode_run.h.
 *
 * The input is read twice: for the histogram, and to encode. What goes to a file in parts (encode_run.h) is checked
 * part by part; another file is decoded when it is written, and the input read a third time to compare. K3HUF_EXIT_IO
 * where it changes meanwhile. An output stream cannot be read back: there every stripe is decoded and compared before
 * it is written. */
enum k3huf_exit k3huf_pack_run(struct k3huf_input *input, const char *out_name, bool force,
                               const struct k3huf_encode_options *options, struct k3huf_pack_result *result,
                               struct k3huf_fault *fault);

#endif
