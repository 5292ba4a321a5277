/* run_writer.h - write a run that is decoded again before anybody may rely on it. Used by pack and index. */
#ifndef K3HUF_HOST_RUN_WRITER_H
#define K3HUF_HOST_RUN_WRITER_H

#include "decode_run.h"
#include "output.h"

struct k3huf_run_writer {
    struct k3huf_output output;
    struct k3huf_decoding how; /* it is decoded again */
    k3huf_take *take;
    void *context;
    struct k3huf_run_driver *check; /* output streams only */
};

/* Open the output as k3huf_output_open() does. What is written will be decoded as `how` says and given to `take`.
 * On a fault there is nothing to close. */
enum k3huf_exit k3huf_run_writer_open(struct k3huf_run_writer *writer, const char *name, bool force,
                                      struct k3huf_decoding how, k3huf_take *take, void *context,
                                      struct k3huf_fault *fault);

/* Write the run's next part, whole: its header, or a stripe. Where the output is a stream, which cannot be read back,
 * the part is decoded first. */
enum k3huf_exit k3huf_run_writer_part(struct k3huf_run_writer *writer, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault);

/* All parts are written: decode a file that was written. The run is complete then, or it is a fault. What is left to do
 * is k3huf_output_commit(). */
enum k3huf_exit k3huf_run_writer_check(struct k3huf_run_writer *writer, struct k3huf_fault *fault);

/* Remove what is not committed, and free. */
void k3huf_run_writer_close(struct k3huf_run_writer *writer);

#endif
