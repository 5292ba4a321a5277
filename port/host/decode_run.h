/* decode_run.h - drive the core's decoder over a run: from a file, a pipe or memory, to whoever takes the bytes.
 *
 * The one place of the host that feeds struct k3huf_decoder. Memory is bounded: two input windows, one stripe's index
 * and an output window that is as large as the decoder asks for (a stripe at most).
 */
#ifndef K3HUF_HOST_DECODE_RUN_H
#define K3HUF_HOST_DECODE_RUN_H

#include "input.h"

/* Decoded bytes, handed on in order and only when final. */
struct k3huf_piece {
    const uint8_t *data;
    size_t size;
    uint64_t offset;        /* of data[0] in the decoded run */
    uint32_t stripe;        /* the one stripe all of it belongs to */
    uint64_t stripe_offset; /* of data[0] in that decoded stripe */
};

/* Takes decoded bytes. Any code but K3HUF_EXIT_OK stops decoding and is passed on, with its fault. */
typedef enum k3huf_exit k3huf_take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault);

/* Decode all of `input` (two cursors where it is seekable, one where it is a stream) and give the bytes to `take`.
 * Bytes after the run's end are an error too. *run_bytes, unless NULL, gets the size of the run.
 * K3HUF_EXIT_CORRUPT with the place for any damage; K3HUF_EXIT_IO; K3HUF_EXIT_INTERNAL; what `take` returned. */
enum k3huf_exit k3huf_decode_run(struct k3huf_input *input, k3huf_take *take, void *context, uint64_t *run_bytes,
                                 struct k3huf_fault *fault);

/* The same for a run that comes to memory part by part, each part whole: its header, then one stripe at a time. */
struct k3huf_run_driver;

/* NULL: out of memory; the fault says so. `name` is for messages. */
struct k3huf_run_driver *k3huf_run_driver_new(const char *name, k3huf_take *take, void *context,
                                              struct k3huf_fault *fault);
void k3huf_run_driver_free(struct k3huf_run_driver *run);

/* Decode the next `size` bytes of the run. All of them are used, or it is a fault. */
enum k3huf_exit k3huf_run_driver_give(struct k3huf_run_driver *run, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault);

/* No more parts: K3HUF_EXIT_CORRUPT where the run is not complete. */
enum k3huf_exit k3huf_run_driver_finish(struct k3huf_run_driver *run, struct k3huf_fault *fault);

#endif
