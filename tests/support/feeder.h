/* feeder.h - drives struct k3huf_decoder over a run in memory the way a port would, in both cursor modes and with any
 * chunking, and holds the decoder to its contract in k3huf.h on every call.
 *
 * Checked on each call, and reported in `fault`:
 *   - spans are advanced by what was used and never beyond their end;
 *   - K3HUF_OK means that some input was used, K3HUF_WAIT that none was;
 *   - the next offsets are the last ones plus what was used, as long as the part is the same or the run is read with
 *     one cursor;
 *   - nothing is written behind the output span;
 *   - bytes that become final are those of `expected`, at once and still at the end;
 *   - after an error of k3huf_decode(), no byte behind the final ones holds anything but zero or what was there before;
 *   - an end that is final: the same status again, with nothing used;
 *   - the number of calls is bounded by the sizes, so that a decoder that stands still is found out. */
#ifndef K3HUF_TEST_FEEDER_H
#define K3HUF_TEST_FEEDER_H

#include "k3huf.h"

/* Sizes of the spans of one cursor: drawn evenly from least to most. */
struct k3huf_chunks {
    uint32_t least, most;
};

#define K3HUF_CHUNKS_WHOLE ((struct k3huf_chunks){UINT32_MAX, UINT32_MAX})
#define K3HUF_CHUNKS_OF(LEAST, MOST) ((struct k3huf_chunks){(LEAST), (MOST)})

/* The three spans of a call. */
enum k3huf_span { K3HUF_SPAN_CODED, K3HUF_SPAN_RAW, K3HUF_SPAN_OUT };

struct k3huf_feed {
    /* To be filled in; zero is a good value for all that is not needed. */
    const uint8_t *run; /* run_size bytes; all of the input there is */
    size_t run_size;
    uint8_t *out; /* out_size bytes for the whole decoded run; filled with K3HUF_FEED_FILL first */
    size_t out_size;
    const uint8_t *expected; /* NULL, or the decoded run, out_size bytes (to compare what there is of it) */
    bool one_cursor;
    bool skip_crc;
    bool require_index;
    bool clip;      /* spans end where the current part ends; otherwise they may go on into what follows in the run */
    uint8_t *index; /* memory for the index, two cursors */
    size_t index_size;
    struct k3huf_chunks coded_chunks, raw_chunks, out_chunks;
    uint64_t seed;
    /* Optional: moves a span to where it is to be presented (for guard pages): returns the place, with the same `size`
     * bytes in it. Out spans are copied back by the feeder after the call. */
    uint8_t *(*place_span)(void *context, enum k3huf_span which, const uint8_t *bytes, size_t size);
    void *context;

    /* Results. */
    enum k3huf_status status; /* the last one; K3HUF_WAIT only where the decoder wants more output than out_size; what
                                 k3huf_decoder_init() said, if that failed */
    struct k3huf_place place; /* where, after an error */
    size_t produced;          /* final output bytes */
    uint64_t run_end;  /* after K3HUF_DONE: bytes of the run, which with two cursors may be over run_size, where the
                          last filler is cut off */
    uint64_t calls;    /* of k3huf_decode() */
    const char *fault; /* NULL, or how the decoder broke its contract */
};

#define K3HUF_FEED_FILL 0xC5u

/* Decode. Uses one static decoder and workspace: not re-entrant. */
void k3huf_feed_run(struct k3huf_feed *feed);

/* Ready-made ways to chunk, each in both cursor modes: sets one_cursor, clip and the three chunk sizes of `feed`, and
 * returns the mode's name. The first four are whole spans: with two cursors and one, clipped to their part and not. */
#define K3HUF_FEED_MODES 24u
#define K3HUF_FEED_MODES_WHOLE 4u
const char *k3huf_feed_mode(struct k3huf_feed *feed, unsigned mode);

#endif
