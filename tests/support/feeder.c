/* feeder.c - see feeder.h. Knows the decoder by its public header alone. */
#include "feeder.h"

#include <string.h>

#include "rng.h"

#define BEHIND 64u /* bytes behind an output span that are watched */

/* One span of one call. */
struct span {
    size_t possible; /* bytes that could be given */
    size_t size;     /* bytes given */
    uint8_t *at;     /* where; NULL if there are none */
};

static struct k3huf_decoder decoder;
static struct k3huf_workspace workspace;

static size_t smaller(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

static uint64_t draw(struct k3huf_rng *rng, struct k3huf_chunks chunks) {
    if (chunks.least >= chunks.most) { return chunks.least; }
    return chunks.least + (uint64_t)k3huf_rng_below(rng, chunks.most - chunks.least + 1u);
}

static void give(const struct k3huf_feed *feed, struct span *span, enum k3huf_span which, const uint8_t *bytes,
                 size_t possible, uint64_t size) {
    span->possible = possible;
    span->size = smaller(size, possible);
    span->at = NULL;
    if (span->size == 0) { return; }
    if (feed->place_span != NULL) {
        span->at = feed->place_span(feed->context, which, bytes, span->size);
    } else {
        memcpy(&span->at, &bytes, sizeof bytes); /* input spans are const to the decoder, output spans are not */
    }
}

static size_t input_left(const struct k3huf_feed *feed, uint64_t offset, uint64_t part_bytes) {
    const size_t left = offset < feed->run_size ? (size_t)(feed->run_size - offset) : 0;
    return feed->clip ? smaller(left, part_bytes) : left;
}

/* The input from `offset` on; NULL behind its end, where a run that is cut off may send the decoder. */
static const uint8_t *input_at(const struct k3huf_feed *feed, uint64_t offset) {
    return offset < feed->run_size ? feed->run + offset : NULL;
}

/* How the decoder dealt with one span: NULL or the fault. */
static const char *check_span(const struct span *span, const uint8_t *at, size_t size) {
    if (size > span->size) { return "a span grew"; }
    if (span->at == NULL ? at != NULL : at != span->at + (span->size - size)) {
        return "a span was not advanced by what was used of it";
    }
    return NULL;
}

static void fail(struct k3huf_feed *feed, const char *fault) {
    if (feed->fault == NULL && fault != NULL) { feed->fault = fault; }
}

/* One call of k3huf_decode(). Returns whether it was given all there is. */
static bool call(struct k3huf_feed *feed, struct k3huf_rng *rng, const struct k3huf_need *need, uint64_t extra) {
    struct span coded, raw = {0}, out;
    give(feed, &coded, K3HUF_SPAN_CODED, input_at(feed, need->coded_offset),
         input_left(feed, need->coded_offset, need->coded_bytes), draw(rng, feed->coded_chunks) + extra);
    if (!feed->one_cursor) {
        give(feed, &raw, K3HUF_SPAN_RAW, input_at(feed, need->raw_offset),
             input_left(feed, need->raw_offset, need->raw_bytes), draw(rng, feed->raw_chunks) + extra);
    }
    uint64_t out_wanted = draw(rng, feed->out_chunks) + extra;
    if (out_wanted < need->out_bytes) { out_wanted = need->out_bytes; }
    uint8_t *const final = feed->out + feed->produced;
    give(feed, &out, K3HUF_SPAN_OUT, final, feed->out_size - feed->produced, out_wanted);

    uint8_t behind[BEHIND];
    const size_t behind_size = smaller(BEHIND, feed->out_size - feed->produced - out.size);
    memcpy(behind, final + out.size, behind_size);

    struct k3huf_io io = {.coded = coded.at,
                          .coded_size = coded.size,
                          .raw = raw.at,
                          .raw_size = raw.size,
                          .out = out.at,
                          .out_size = out.size};
    feed->status = k3huf_decode(&decoder, &io);
    feed->calls++;

    fail(feed, check_span(&coded, io.coded, io.coded_size));
    fail(feed, check_span(&raw, io.raw, io.raw_size));
    fail(feed, check_span(&out, io.out, io.out_size));
    if (feed->fault != NULL) { return true; }
    const size_t used_coded = coded.size - io.coded_size, used_raw = raw.size - io.raw_size;
    const size_t made = out.size - io.out_size;
    if (feed->status == K3HUF_WAIT && used_coded + used_raw + made != 0) {
        fail(feed, "K3HUF_WAIT, yet a span was used");
    }
    if (memcmp(behind, final + out.size, behind_size) != 0) { fail(feed, "bytes behind the output span were written"); }
    if (feed->place_span != NULL && out.size > 0) { memcpy(final, out.at, out.size); }
    if (feed->expected != NULL && made > 0 && memcmp(final, feed->expected + feed->produced, made) != 0) {
        fail(feed, "wrong bytes were made final");
    }
    feed->produced += made;

    struct k3huf_need next;
    k3huf_decoder_need(&decoder, &next);
    if (feed->status == K3HUF_OK && used_coded + used_raw == 0) { fail(feed, "K3HUF_OK, yet no input was used"); }
    if (!k3huf_is_error(feed->status) && next.out_offset != feed->produced) {
        fail(feed, "the output offset is not the number of final bytes");
    }
    if (!k3huf_is_error(feed->status) && feed->status != K3HUF_DONE) {
        if ((feed->one_cursor || next.part == need->part) && next.coded_offset != need->coded_offset + used_coded) {
            fail(feed, "the coded cursor's offset is not where its span ended");
        }
        if (!feed->one_cursor && next.part == need->part && next.raw_offset != need->raw_offset + used_raw) {
            fail(feed, "the raw cursor's offset is not where its span ended");
        }
    }
    return coded.size == coded.possible && raw.size == raw.possible && out.size == out.possible;
}

/* Once a run has ended, nothing changes any more. */
static void check_end(struct k3huf_feed *feed) {
    struct k3huf_need need;
    k3huf_decoder_need(&decoder, &need);
    if (need.part != (feed->status == K3HUF_DONE ? K3HUF_PART_DONE : K3HUF_PART_ERROR)) {
        fail(feed, "the part does not tell the end");
    }
    feed->run_end = need.coded_offset;
    uint8_t byte = K3HUF_FEED_FILL;
    struct k3huf_io io = {.coded = feed->run,
                          .coded_size = feed->run_size,
                          .raw = feed->run,
                          .raw_size = feed->run_size,
                          .out = &byte,
                          .out_size = 1};
    if (k3huf_decode(&decoder, &io) != feed->status || io.coded_size != feed->run_size ||
        io.raw_size != feed->run_size || io.out_size != 1 || byte != K3HUF_FEED_FILL) {
        fail(feed, "k3huf_decode() after the end did not just repeat the status");
    }
    if (k3huf_finish(&decoder) != feed->status) {
        fail(feed, "k3huf_finish() after the end did not repeat the status");
    }
    const struct k3huf_place *place = k3huf_where(&decoder);
    if (feed->status != K3HUF_DONE && (place->stripe != feed->place.stripe || place->block != feed->place.block ||
                                       place->offset != feed->place.offset)) {
        fail(feed, "the place changed after the end");
    }
}

void k3huf_feed_run(struct k3huf_feed *feed) {
    struct k3huf_rng rng = {feed->seed};
    const struct k3huf_config config = {.one_cursor = feed->one_cursor,
                                        .skip_crc = feed->skip_crc,
                                        .require_index = feed->require_index,
                                        .index = feed->index,
                                        .index_size = feed->index_size,
                                        .workspace = &workspace};
    const uint64_t most_calls = 16u * ((uint64_t)feed->run_size + feed->out_size) + 10000u;
    uint64_t extra = 0; /* bytes that spans grow by while the decoder waits */

    memset(feed->out, K3HUF_FEED_FILL, feed->out_size);
    memset(&decoder, 0xA7, sizeof decoder); /* init must set all that is read */
    feed->produced = 0;
    feed->calls = 0;
    feed->fault = NULL;
    feed->place = (struct k3huf_place){K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0};
    feed->status = k3huf_decoder_init(&decoder, &config);
    if (feed->status != K3HUF_OK) { return; }
    bool finished = false;
    while (feed->fault == NULL) {
        struct k3huf_need need;
        k3huf_decoder_need(&decoder, &need);
        const bool all = call(feed, &rng, &need, extra);
        if (feed->status == K3HUF_OK) {
            extra = 0;
        } else if (feed->status != K3HUF_WAIT) {
            break;
        } else if (!all) {
            extra += 1u + extra / 8u;
        } else if (need.out_bytes > feed->out_size - feed->produced) {
            return; /* there is no room for the output that the run claims */
        } else {
            feed->status = k3huf_finish(&decoder);
            finished = true;
            break;
        }
        if (feed->calls > most_calls) { fail(feed, "no end: more calls than the sizes allow"); }
    }
    if (feed->fault != NULL) { return; }
    if (k3huf_is_error(feed->status)) {
        feed->place = *k3huf_where(&decoder);
    } else if (feed->status != K3HUF_DONE) {
        fail(feed, "k3huf_finish() gave neither K3HUF_DONE nor an error");
    }
    /* k3huf_finish() has no output span and so cannot clear it. */
    for (size_t i = feed->produced; i < feed->out_size && !finished; i++) {
        if (feed->out[i] != 0 && feed->out[i] != K3HUF_FEED_FILL) {
            fail(feed, "output that is not final was left behind");
        }
    }
    if (feed->expected != NULL && memcmp(feed->out, feed->expected, feed->produced) != 0) {
        fail(feed, "final bytes were changed later");
    }
    check_end(feed);
}

#define ALL UINT32_MAX

const char *k3huf_feed_mode(struct k3huf_feed *feed, unsigned mode) {
    static const struct {
        const char *name[2]; /* two cursors, one cursor */
        struct k3huf_chunks coded, raw, out;
        bool clip;
    } modes[K3HUF_FEED_MODES / 2u] = {
        {{"2 cursors, whole parts", "1 cursor, whole parts"}, {ALL, ALL}, {ALL, ALL}, {ALL, ALL}, true},
        {{"2 cursors, all of the run", "1 cursor, all of the run"}, {ALL, ALL}, {ALL, ALL}, {ALL, ALL}, false},
        {{"2 cursors, bytes", "1 cursor, bytes"}, {1, 1}, {1, 1}, {1, 1}, true},
        {{"2 cursors, coded bytes", "1 cursor, input bytes"}, {1, 1}, {ALL, ALL}, {ALL, ALL}, false},
        {{"2 cursors, raw bytes", "1 cursor, output bytes"}, {ALL, ALL}, {1, 1}, {1, 1}, false},
        {{"2 cursors, output bytes", "1 cursor, output bytes of parts"}, {ALL, ALL}, {ALL, ALL}, {1, 1}, true},
        {{"2 cursors, 0-3", "1 cursor, 0-3"}, {0, 3}, {0, 3}, {0, 3}, true},
        {{"2 cursors, 0-100", "1 cursor, 0-100"}, {0, 100}, {0, 100}, {0, 100}, false},
        {{"2 cursors, 0-5000", "1 cursor, 0-5000"}, {0, 5000}, {0, 5000}, {0, 5000}, true},
        {{"2 cursors, 0-70000", "1 cursor, 0-70000"}, {0, 70000}, {0, 70000}, {0, 70000}, false},
        {{"2 cursors, little coded", "1 cursor, 7-20"}, {7, 20}, {0, 5000}, {0, 9000}, false},
        {{"2 cursors, little raw", "1 cursor, 500-600"}, {500, 600}, {0, 20}, {0, 300}, true},
    };
    const unsigned cursors = mode % 2u, way = mode / 2u;
    feed->one_cursor = cursors == 1u;
    feed->clip = modes[way].clip;
    feed->coded_chunks = modes[way].coded;
    feed->raw_chunks = modes[way].raw;
    feed->out_chunks = modes[way].out;
    return modes[way].name[cursors];
}
