/* encode_run.h - bytes of a seekable input to one run, on several threads: whoever takes its parts writes them.
 *
 * What is written to a file in parts (all but stripes below 1 MiB, or more than 4,096 of them) is read back and decoded
 * at once, and compared with the bytes that it was made of. In the end headers and indexes are looked at once more.
 * Planes are not: what damages them after their part was checked is for others to find.
 *
 * Memory: for each thread three parts (with one thread six) of 1.1 MiB, with more than 16 threads of 3/8 MiB, or of one
 * block, as read, coded and decoded: less than four times their size. To a stream, and with such stripes as above, two
 * such parts and one stripe as coded.
 */
#ifndef K3HUF_HOST_ENCODE_RUN_H
#define K3HUF_HOST_ENCODE_RUN_H

#include "input.h"
#include "output.h"
#include "progress.h"

struct k3huf_encode_options {
    uint32_t stripe_bytes;    /* raw bytes of a stripe but the last ones, 1 ... K3HUF_STRIPE_RAW_MAX */
    uint32_t max_code_length; /* 1 ... K3HUF_CODE_LENGTH_MAX */
    uint32_t block_log2;      /* block index with blocks of 2^block_log2 symbols; 0: no index */
    unsigned threads;         /* 1 ... K3HUF_THREADS_MAX */
    /* NULL: none. Counts the input once when counted, once when encoded, once when checked. */
    struct k3huf_progress *progress;
};

/* From that size on, a stripe gives two bytes to a last one that had a single byte, if there is to be an index. */
#define K3HUF_STRIPE_MOVED_MIN 6u

/* What counting finds out. */
struct k3huf_counts {
    uint64_t histogram[K3HUF_SYMBOLS]; /* of the odd bytes, counted from each stripe's first byte */
    uint32_t crc;                      /* CRC-32C of the input's bytes */
    bool zeros;                        /* all of them are 0 */
    /* The same of each stripe, so that encoding knows their sizes beforehand; malloc'ed, free() it. NULL where there is
     * one, or where it would be of no use. */
    uint32_t (*stripe)[K3HUF_SYMBOLS];
};

/* Read all of the input. On a fault there is nothing to free. K3HUF_EXIT_IO, K3HUF_EXIT_INTERNAL; K3HUF_EXIT_USAGE:
 * more stripes than a run can have. */
enum k3huf_exit k3huf_count(struct k3huf_input *input, const struct k3huf_encode_options *options,
                            struct k3huf_counts *counts, struct k3huf_fault *fault);

/* Code lengths for a histogram; `raw_bytes` of input it is of. K3HUF_EXIT_USAGE: max_code_length is too small. */
enum k3huf_exit k3huf_choose_code(const uint64_t histogram[K3HUF_SYMBOLS], uint64_t raw_bytes, uint32_t max_code_length,
                                  const char *name, uint8_t codelen[K3HUF_SYMBOLS], struct k3huf_fault *fault);

/* Takes the next part of the run, whole: its header, or a stripe. Any code but K3HUF_EXIT_OK ends all. */
typedef enum k3huf_exit k3huf_put(void *context, const uint8_t *part, size_t size, struct k3huf_fault *fault);

/* Where a run goes. */
struct k3huf_sink {
    k3huf_put *put;
    void *context;
    struct k3huf_output *file; /* what put() writes to, where that is a file: stripes may go there in parts; or NULL */
};

/* What encoding made. */
struct k3huf_encoded {
    struct k3huf_run_header header;
    uint32_t crc; /* CRC-32C of the input's bytes */
    bool checked; /* all of it was read back from the file, decoded, and compared with the input as it was read */
};

/* Encode all of the input with that code. `counts` is what counting found, or several joined. The run is the same for
 * any number of threads. K3HUF_EXIT_IO where the input is not what was counted, by its CRC. */
enum k3huf_exit k3huf_encode_run(struct k3huf_input *input, const struct k3huf_encode_options *options,
                                 const uint8_t codelen[K3HUF_SYMBOLS], const struct k3huf_counts *counts,
                                 const struct k3huf_sink *sink, struct k3huf_encoded *encoded,
                                 struct k3huf_fault *fault);

#endif
