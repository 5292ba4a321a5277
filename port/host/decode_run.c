/* decode_run.c - see decode_run.h. */
#include "decode_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Large enough for several of the default blocks at once, so that the core can work on them side by side. */
#define WINDOW ((size_t)512 << 10)

/* Index of the largest stripe with the smallest blocks. */
#define INDEX_MAX                                                                                                      \
    (K3HUF_INDEX_HEADER_BYTES + K3HUF_INDEX_ENTRY_BYTES * (K3HUF_STRIPE_RAW_MAX / 2u >> K3HUF_BLOCK_LOG2_MIN))

/* What one cursor has read of the input. */
struct window {
    uint64_t offset; /* of buffer[0] in the run */
    size_t held;
    uint8_t buffer[WINDOW];
};

enum { CODED, RAW, CURSORS };

/* A run being decoded. The input is either `input`, or, where that is NULL, the part in memory. */
struct k3huf_run_driver {
    struct k3huf_decoder decoder;
    struct k3huf_workspace workspace;
    uint8_t index[INDEX_MAX];
    const char *name;
    k3huf_take *take;
    void *context;

    struct k3huf_input *input;
    struct window window[CURSORS];
    const uint8_t *part;
    size_t part_size;
    uint64_t part_offset; /* of part[0] in the run */

    uint8_t *out; /* malloc'ed */
    size_t out_capacity;
    size_t out_at; /* bytes of `out` final and handed on; what waits for its check lies behind them */

    bool between;          /* no byte of the current stripe has been handed on yet */
    uint32_t stripe;       /* number of the current stripe */
    uint64_t stripe_begin; /* its first byte in the decoded run */
};

/* --------------------------------------------------------------------------------------------------- input ---- */

/* Show bytes of the run from `offset` on: at least `least`, unless the input ends or `most` is less, and at most
 * `most`. */
static enum k3huf_exit view(struct k3huf_run_driver *run, unsigned cursor, uint64_t offset, size_t least, uint64_t most,
                            const uint8_t **span, size_t *size, struct k3huf_fault *fault) {
    struct window *window = &run->window[cursor];
    most = most < WINDOW ? most : WINDOW;
    least = least < most ? least : (size_t)most;
    *span = window->buffer;
    *size = 0;
    if (run->input == NULL) {
        if (offset >= run->part_offset && offset - run->part_offset < run->part_size) {
            uint64_t left = run->part_size - (offset - run->part_offset);
            *span = run->part + (offset - run->part_offset);
            *size = (size_t)(most < left ? most : left);
        }
        return K3HUF_EXIT_OK;
    }
    if (run->input->seekable) {
        uint64_t left = offset < run->input->size ? run->input->size - offset : 0;
        most = most < left ? most : left;
        least = least < most / 2 ? (size_t)(most / 2) : least; /* read ahead in large pieces */
    }
    if (most == 0) {
        return K3HUF_EXIT_OK;
    }
    if (offset < window->offset || offset - window->offset > window->held) {
        if (!run->input->seekable) {
            return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, run->name, NULL,
                                   "the decoder asks for offset %" PRIu64 " of a stream out of order", offset);
        }
        window->offset = offset;
        window->held = 0;
    }
    size_t skip = (size_t)(offset - window->offset);
    size_t have = window->held - skip;
    if (have < least) {
        size_t got = 0;
        memmove(window->buffer, window->buffer + skip, have);
        enum k3huf_exit code =
            run->input->seekable
                ? k3huf_input_read_at(run->input, offset + have, window->buffer + have, WINDOW - have, &got, fault)
                : k3huf_input_read(run->input, window->buffer + have, least - have, WINDOW - have, &got, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        have += got;
        skip = 0;
        window->offset = offset;
        window->held = have;
    }
    *span = window->buffer + skip;
    *size = have < most ? have : (size_t)most;
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------- output ---- */

/* Make `out` ready for the next call. While enough room is left it stays where it is, for it may hold bytes that wait;
 * once the decoder asks for more than that, or for a new stripe, none do, and it starts again at the front. */
static enum k3huf_exit make_room(struct k3huf_run_driver *run, const struct k3huf_need *need,
                                 struct k3huf_fault *fault) {
    size_t left = run->out_capacity - run->out_at;
    if (need->part != K3HUF_PART_STRIPE_HEADER && left > 0 && left >= need->out_bytes) {
        return K3HUF_EXIT_OK;
    }
    run->out_at = 0;
    size_t wanted = need->out_bytes > WINDOW ? need->out_bytes : WINDOW;
    if (run->out_capacity < wanted) {
        free(run->out);
        run->out_capacity = 0;
        run->out = malloc(wanted);
        if (run->out == NULL) {
            return k3huf_fault_memory(fault, wanted);
        }
        run->out_capacity = wanted;
    }
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit hand_on(struct k3huf_run_driver *run, size_t size, uint64_t offset, struct k3huf_fault *fault) {
    if (size == 0) {
        return K3HUF_EXIT_OK;
    }
    if (run->between) {
        run->between = false;
        run->stripe_begin = offset;
    }
    struct k3huf_piece piece = {run->out + run->out_at, size, offset, run->stripe, offset - run->stripe_begin};
    run->out_at += size;
    return run->take(run->context, &piece, fault);
}

/* ------------------------------------------------------------------------------------------------- decoding ---- */

static enum k3huf_exit decoder_fault(struct k3huf_run_driver *run, enum k3huf_status status,
                                     struct k3huf_fault *fault) {
    bool mine = status == K3HUF_E_ARGUMENT || status == K3HUF_E_INDEX_MEMORY;
    return k3huf_fault_set(fault, mine ? K3HUF_EXIT_INTERNAL : K3HUF_EXIT_CORRUPT, run->name,
                           k3huf_where(&run->decoder), "%s", k3huf_status_text(status));
}

/* Decode until the run is done or the input has no more to give. */
static enum k3huf_exit drive(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    size_t least[CURSORS] = {1, 1};
    bool waits = false; /* the last call could do nothing with its spans */
    for (;;) {
        struct k3huf_need need;
        k3huf_decoder_need(&run->decoder, &need);
        if (need.part == K3HUF_PART_DONE) {
            return K3HUF_EXIT_OK;
        }
        enum k3huf_exit code = make_room(run, &need, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        struct k3huf_io io = {.out = run->out + run->out_at, .out_size = run->out_capacity - run->out_at};
        code = view(run, CODED, need.coded_offset, least[CODED], need.coded_bytes, &io.coded, &io.coded_size, fault);
        if (code == K3HUF_EXIT_OK) {
            code = view(run, RAW, need.raw_offset, least[RAW], need.raw_bytes, &io.raw, &io.raw_size, fault);
        }
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        if (waits && io.coded_size < least[CODED] && io.raw_size < least[RAW]) {
            /* There is no more than the decoder has already said is too little. Unless the input is at its end, that
             * is a defect: better a message than a loop. */
            if (io.coded_size == need.coded_bytes && io.raw_size == need.raw_bytes) {
                return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, run->name, k3huf_where(&run->decoder),
                                       "the decoder makes no progress");
            }
            return K3HUF_EXIT_OK;
        }
        size_t coded_size = io.coded_size;
        size_t raw_size = io.raw_size;
        enum k3huf_status status = k3huf_decode(&run->decoder, &io);
        code = hand_on(run, (size_t)(io.out - (run->out + run->out_at)), need.out_offset, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        if (k3huf_is_error(status)) {
            return decoder_fault(run, status, fault);
        }
        waits = status == K3HUF_WAIT;
        least[CODED] = waits ? coded_size + 1 : 1;
        least[RAW] = waits ? raw_size + 1 : 1;
        if (need.part == K3HUF_PART_STRIPE_HEADER) {
            struct k3huf_need next;
            k3huf_decoder_need(&run->decoder, &next);
            if (next.part != K3HUF_PART_STRIPE_HEADER) {
                run->between = true;
                run->stripe++;
            }
        }
    }
}

static enum k3huf_exit finish(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    enum k3huf_status status = k3huf_finish(&run->decoder);
    return k3huf_is_error(status) ? decoder_fault(run, status, fault) : K3HUF_EXIT_OK;
}

static struct k3huf_run_driver *run_new(const char *name, struct k3huf_input *input, k3huf_take *take, void *context,
                                        struct k3huf_fault *fault) {
    struct k3huf_run_driver *run = malloc(sizeof *run);
    if (run == NULL) {
        (void)k3huf_fault_memory(fault, sizeof *run);
        return NULL;
    }
    run->name = name;
    run->take = take;
    run->context = context;
    run->input = input;
    run->window[CODED].offset = run->window[RAW].offset = 0;
    run->window[CODED].held = run->window[RAW].held = 0;
    run->part = NULL;
    run->part_size = 0;
    run->part_offset = 0;
    run->out = NULL;
    run->out_capacity = 0;
    run->out_at = 0;
    run->between = true;
    run->stripe = UINT32_MAX; /* the first header makes it 0 */
    run->stripe_begin = 0;
    struct k3huf_config config = {.one_cursor = input != NULL && !input->seekable,
                                  .index = run->index,
                                  .index_size = sizeof run->index,
                                  .workspace = &run->workspace};
    enum k3huf_status status = k3huf_decoder_init(&run->decoder, &config);
    if (status != K3HUF_OK) {
        (void)k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, name, NULL, "%s", k3huf_status_text(status));
        free(run);
        return NULL;
    }
    return run;
}

/* The run is decoded: the input must be all of it, and nothing else. */
static enum k3huf_exit check_end(struct k3huf_run_driver *run, uint64_t end, struct k3huf_fault *fault) {
    struct k3huf_input *input = run->input;
    if (input->seekable) {
        if (input->size > end) {
            return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                                   "%" PRIu64 " bytes after the end of the run (offset %" PRIu64 ")", input->size - end,
                                   end);
        }
        if (input->size < end) { /* the decoder does not read the last filler, so it cannot miss it */
            struct k3huf_place place = {run->stripe, K3HUF_NO_BLOCK, input->size};
            return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, &place, "%s",
                                   k3huf_status_text(K3HUF_E_TRUNCATED));
        }
        return K3HUF_EXIT_OK;
    }
    const uint8_t *span;
    size_t size;
    enum k3huf_exit code = view(run, CODED, end, 1, 1, &span, &size, fault);
    if (code == K3HUF_EXIT_OK && size != 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                               "bytes after the end of the run (offset %" PRIu64 ")", end);
    }
    return code;
}

enum k3huf_exit k3huf_decode_run(struct k3huf_input *input, k3huf_take *take, void *context, uint64_t *run_bytes,
                                 struct k3huf_fault *fault) {
    struct k3huf_run_driver *run = run_new(input->name, input, take, context, fault);
    if (run == NULL) {
        return fault->code;
    }
    enum k3huf_exit code = drive(run, fault);
    if (code == K3HUF_EXIT_OK) {
        code = finish(run, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        struct k3huf_need need;
        k3huf_decoder_need(&run->decoder, &need);
        code = check_end(run, need.coded_offset, fault);
        if (run_bytes != NULL) {
            *run_bytes = need.coded_offset;
        }
    }
    k3huf_run_driver_free(run);
    return code;
}

/* ---------------------------------------------------------------------------------------------------- parts ---- */

struct k3huf_run_driver *k3huf_run_driver_new(const char *name, k3huf_take *take, void *context,
                                              struct k3huf_fault *fault) {
    return run_new(name, NULL, take, context, fault);
}

void k3huf_run_driver_free(struct k3huf_run_driver *run) {
    if (run != NULL) {
        free(run->out);
        free(run);
    }
}

enum k3huf_exit k3huf_run_driver_give(struct k3huf_run_driver *run, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault) {
    run->part_offset += run->part_size;
    run->part = part;
    run->part_size = size;
    enum k3huf_exit code = drive(run, fault);
    if (code != K3HUF_EXIT_OK) {
        return code;
    }
    struct k3huf_need need;
    k3huf_decoder_need(&run->decoder, &need);
    if (need.coded_offset != run->part_offset + size ||
        (need.part != K3HUF_PART_STRIPE_HEADER && need.part != K3HUF_PART_DONE)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                               "part of the run at offset %" PRIu64 " is not whole", run->part_offset);
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_run_driver_finish(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    return finish(run, fault);
}
