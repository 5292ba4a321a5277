/* decode_run.h - decode a run on several threads: from a file, a pipe or memory, to whoever takes the bytes in order.
 *
 * The one place of the host tool that walks a run's stripes to decode them. Jobs are groups of blocks of indexed
 * stripes, or of whole stripes without an index, several of them side by side on each thread.
 *
 * Memory in flight is bounded: with an index 2 x threads groups (with one thread 6) of 1/2 MiB of raw bytes, or of a
 * block for each lane where that is more, and what they are coded in. Without an index a group is a stripe for
 * each lane, and all groups together have at most 1 GiB: eight stripes of 64 MiB as coded and decoded. A stream adds
 * one stripe as coded.
 *
 * The first damage in the order of the run is what is reported, the same for any number of threads and any kind of
 * input: all bytes before the block (or, without an index, the stripe) that it is in are handed on, and none after.
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
    uint64_t stripe_offset; /* of data[0] in that decoded stripe; an even number */
    bool stripe_end;        /* the stripe's last byte is among them */
    unsigned nblocks;       /* with an index: the blocks that it is; 0: none */
    const struct k3huf_block *block;
};

/* CRC-32C of a piece: out of those of its blocks, which are checked, or else computed. */
uint32_t k3huf_piece_crc(const struct k3huf_piece *piece);

/* Takes decoded bytes, on the thread that called. Any code but K3HUF_EXIT_OK stops decoding and is passed on, with its
 * fault. */
typedef enum k3huf_exit k3huf_take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault);

/* What was decoded, or walked. */
struct k3huf_run_facts {
    uint64_t run_bytes;
    uint64_t raw_bytes; /* as the run's header has it */
    uint32_t nstripes;
    uint32_t indexed; /* stripes with a block index */
    uint64_t blocks;  /* in all of them */
    /* Only walked: of the stripes with a block index, CRC-32C joined from those of their blocks, and that of all
     * entries.
     */
    uint32_t crc;
    uint32_t entries_crc;
};

/* How to decode. */
struct k3huf_decoding {
    unsigned threads; /* 1 ... K3HUF_THREADS_MAX */
    /* Refuse a stripe without block index before any of it is handed on: K3HUF_E_INDEX_ABSENT where its filler begins.
     * Of a range, the stripes that it lies in. */
    bool require_index;
    bool walked;              /* of a range: k3huf_walk_run() has passed the run, and need not again */
    bool except_single_bytes; /* but not one of a single byte, which cannot have an index: for who compares the bytes */
};

/* Decode all of `input` and give the bytes to `take`. Bytes after the
 * run's end are an error too. *facts may be NULL.
 * K3HUF_EXIT_CORRUPT with the place for any damage; K3HUF_EXIT_IO; K3HUF_EXIT_INTERNAL; what `take` returned. */
enum k3huf_exit k3huf_decode_run(struct k3huf_input *input, struct k3huf_decoding how, k3huf_take *take, void *context,
                                 struct k3huf_run_facts *facts, struct k3huf_fault *fault);

/* Read the run's header, and header and index of every stripe, and no more. Only for seekable inputs. What stripes are
 * there, where, and which have an index is certain then: the sizes add up and the last stripe ends the input; and so
 * is, where all have one, what CRC the decoded run has, if its blocks have theirs. */
enum k3huf_exit k3huf_walk_run(struct k3huf_input *input, struct k3huf_run_facts *facts, struct k3huf_fault *fault);

/* Decode the bytes `from` ... `to` - 1 of the decoded run and no others but those of the blocks (or, without an index,
 * the stripes) that they lie in, which are handed on whole: `take` cuts. Only for seekable inputs. The run is walked
 * before; of planes, what lies outside is not checked. `from` and `to` beyond the end are K3HUF_EXIT_USAGE. */
enum k3huf_exit k3huf_decode_range(struct k3huf_input *input, struct k3huf_decoding how, uint64_t from, uint64_t to,
                                   k3huf_take *take, void *context, struct k3huf_fault *fault);

/* As k3huf_decode_run(), for a run that comes to memory part by part, each part whole: its header, then one stripe at a
 * time. */
struct k3huf_run_driver;

/* NULL: out of memory; the fault says so. `name` is for messages. */
struct k3huf_run_driver *k3huf_run_driver_new(const char *name, struct k3huf_decoding how, k3huf_take *take,
                                              void *context, struct k3huf_fault *fault);
void k3huf_run_driver_free(struct k3huf_run_driver *run);

/* Decode the next `size` bytes of the run. All of them are used, or it is a fault. */
enum k3huf_exit k3huf_run_driver_give(struct k3huf_run_driver *run, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault);

/* No more parts: K3HUF_EXIT_CORRUPT where the run is not complete. */
enum k3huf_exit k3huf_run_driver_finish(struct k3huf_run_driver *run, struct k3huf_fault *fault);

#endif
