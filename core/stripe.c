/* stripe.c - the state machine for one run: says what it needs, takes any split of it, never blocks.
 *
 *   RUN_HEADER -> STRIPE_HEADER -+-> [INDEX] -> PLANES -----------------+-> next STRIPE_HEADER, or DONE   (two cursors)
 *                                +-> CODED -> RAW -> [INDEX] -> FILLER --+                                 (one cursor)
 *   any state  -> ERROR, which is final and keeps status and place
 *
 * A call works on one part. Coded bytes are decoded where the caller has them. Only where a span ends inside a code are
 * its last bytes (three at most) kept in `hold` and decoded together with the first of the next span from a small copy.
 * A byte that is used in part stays at the cursor, so that every block of an index begins at the cursor, whatever
 * splits came before. Where there is an index and the spans hold whole blocks, those are decoded side by side; where
 * they do not, the same block is decoded in one lane, piece by piece. Either way a block is given to the caller only
 * after its checks.
 *
 * May not decode or parse: that is for the files it calls.
 */
#include "bytes.h"
#include "compiler.h"
#include "k3huf.h"
#include "plane.h"

/* What can lie in hold: up to 7 used bits and less than one code, 18 bits. And how many bytes of the next span are
 * decoded together with it: more than enough to use it up. */
#define HOLD_MAX 3u
#define HOLD_TOP_UP 8u

/* ---- where things are, as offsets in the run */

static uint64_t coded_plane(const struct k3huf_decoder *d) { return d->stripe_offset + K3HUF_STRIPE_HEADER_BYTES; }
static uint64_t raw_plane(const struct k3huf_decoder *d) { return coded_plane(d) + d->stripe.huf_bytes; }
static uint64_t filler(const struct k3huf_decoder *d) { return raw_plane(d) + k3huf_even_bytes(d->stripe.raw_bytes); }

static bool indexed(const struct k3huf_decoder *d) { return d->index.nblocks > 0; }

/* ---- small steps */

static enum k3huf_status fail(struct k3huf_decoder *d, enum k3huf_status status, uint32_t block, uint64_t offset) {
    d->place.stripe = d->part == K3HUF_PART_RUN_HEADER ? K3HUF_NO_STRIPE : d->stripe_number;
    d->place.block = block;
    d->place.offset = offset;
    d->status = status;
    d->part = K3HUF_PART_ERROR;
    return status;
}

/* The same for byte `at` of the coded plane and the current block. */
static enum k3huf_status fail_at(struct k3huf_decoder *d, enum k3huf_status status, uint64_t at) {
    return fail(d, status, indexed(d) ? d->block : K3HUF_NO_BLOCK, coded_plane(d) + at);
}

static void take_coded(struct k3huf_decoder *d, struct k3huf_io *io, size_t n) {
    if (n > 0) { /* a span of no bytes may be NULL, and NULL + 0 is not C */
        io->coded += n;
        io->coded_size -= n;
        d->coded_done += (uint32_t)n;
    }
}

/* Bring the current part's `size` bytes together at `to`. true once they are whole. */
static bool collect(struct k3huf_decoder *d, struct k3huf_io *io, uint8_t *to, uint32_t size) {
    const size_t n = k3huf_least(io->coded_size, size - d->coded_done);
    k3huf_copy(to + d->coded_done, io->coded, n);
    take_coded(d, io, n);
    return d->coded_done == size;
}

/* Begin d->block; without an index the whole stripe is one block. */
static void enter_block(struct k3huf_decoder *d) {
    d->now.last = true;
    d->now.begin = 0;
    d->now.end = d->stripe.huf_bytes * 8u;
    d->now.raw_bytes = d->stripe.raw_bytes;
    if (indexed(d)) { k3huf_block_init(&d->now, &d->index, &d->stripe, d->block); }
    d->symbols_left = k3huf_odd_bytes(d->now.raw_bytes);
    d->bit = d->now.begin & 7u;
    d->held = 0;
    d->crc = 0;
}

static void enter_part(struct k3huf_decoder *d, enum k3huf_part part) {
    d->part = part;
    d->coded_done = 0;
    enter_block(d);
}

/* On to stripe d->stripe_number at `offset` in the run, or to the end. */
static enum k3huf_status next_stripe(struct k3huf_decoder *d, uint64_t offset) {
    enter_part(d, d->stripe_number == d->run.nstripes ? K3HUF_PART_DONE : K3HUF_PART_STRIPE_HEADER);
    d->stripe_offset = offset;
    return K3HUF_OK;
}

/* Every symbol and raw byte of the stripe is out: go on behind its filler. */
static enum k3huf_status stripe_done(struct k3huf_decoder *d) {
    d->raw_done += d->stripe.raw_bytes;
    d->stripe_number++;
    d->index.nblocks = 0; /* there is no block to enter */
    return next_stripe(d, d->stripe_offset + k3huf_stripe_bytes(&d->stripe));
}

/* Is there an index to look for: room for its magic, symbols to index, and memory? */
static bool may_be_indexed(const struct k3huf_decoder *d) {
    return d->config.index != NULL && d->stripe.pad >= 4u && d->stripe.huf_bytes > 0;
}

/* ---- headers */

static enum k3huf_status run_header(struct k3huf_decoder *d, struct k3huf_io *io) {
    uint32_t bad = 0;
    if (!collect(d, io, d->hold, K3HUF_RUN_HEADER_BYTES)) { return K3HUF_WAIT; }
    enum k3huf_status status = k3huf_run_header_read(d->hold, &d->run, &bad);
    if (status == K3HUF_OK) { status = k3huf_table_build(&d->table, d->run.codelen); }
    if (status != K3HUF_OK) { return fail(d, status, K3HUF_NO_BLOCK, bad); }
    return next_stripe(d, K3HUF_RUN_HEADER_BYTES);
}

static enum k3huf_status stripe_header(struct k3huf_decoder *d, struct k3huf_io *io) {
    uint32_t bad = 0;
    if (!collect(d, io, d->hold, K3HUF_STRIPE_HEADER_BYTES)) { return K3HUF_WAIT; }
    const enum k3huf_status status =
        k3huf_stripe_header_read(d->hold, &d->run, d->stripe_number, d->raw_done, &d->stripe, &bad);
    if (status != K3HUF_OK) { return fail(d, status, K3HUF_NO_BLOCK, d->stripe_offset + bad); }
    if (d->config.require_index && !may_be_indexed(d)) {
        return fail(d, K3HUF_E_INDEX_ABSENT, K3HUF_NO_BLOCK, filler(d));
    }
    d->index.nblocks = 0;
    d->index_bytes = 0;
    d->raw_used = 0;
    d->block = 0;
    d->given = 0;
    d->pending = 0;
    /* A part without bytes is not entered, so that every call that goes on has used some. */
    if (d->config.one_cursor) {
        enter_part(d, d->stripe.huf_bytes > 0 ? K3HUF_PART_CODED : K3HUF_PART_RAW);
    } else {
        enter_part(d, may_be_indexed(d) ? K3HUF_PART_INDEX : K3HUF_PART_PLANES);
    }
    return K3HUF_OK;
}

/* ---- the index */

/* How many of the filler's first bytes to bring together: enough for the magic, for the header, for all of it. */
static uint32_t index_wanted(const struct k3huf_decoder *d) {
    if (d->index_bytes > 0) { return d->index_bytes; }
    return d->coded_done < 4u ? 4u : K3HUF_INDEX_HEADER_BYTES;
}

/* K3HUF_OK: the index is whole and checked, or the filler is plain and may be. */
static enum k3huf_status collect_index(struct k3huf_decoder *d, struct k3huf_io *io) {
    for (;;) {
        uint32_t bad = 0;
        uint32_t block = K3HUF_NO_BLOCK;
        enum k3huf_status status = k3huf_index_probe(d->config.index, d->coded_done, &d->stripe, &d->index_bytes, &bad);
        if (status == K3HUF_OK && d->index_bytes > d->config.index_size) {
            status = K3HUF_E_INDEX_MEMORY;
        } else if (status == K3HUF_OK) {
            status = k3huf_index_read(d->config.index, d->coded_done, &d->stripe, &d->index, &bad, &block);
        }
        if (status == K3HUF_OK && d->config.require_index && !indexed(d)) { status = K3HUF_E_INDEX_ABSENT; }
        if (status == K3HUF_OK) { return K3HUF_OK; }
        if (k3huf_is_error(status)) { return fail(d, status, block, filler(d) + bad); }
        if (!collect(d, io, d->config.index, index_wanted(d))) { return K3HUF_WAIT; }
    }
}

/* ---- one lane, over spans that end anywhere */

/* The block's last symbol is out and `next` is the byte behind its last code, `bit` bits of it used: is that where the
 * coded plane or the next block says it ends? */
static enum k3huf_status check_end(struct k3huf_decoder *d, struct k3huf_io *io, const uint8_t *next) {
    const uint32_t byte = d->coded_done - d->held;
    if (!d->now.last && byte * 8u + d->bit != d->now.end) { return fail_at(d, K3HUF_E_BLOCK_END, byte); }
    if (d->now.last && !k3huf_plane_ends(next, d->stripe.huf_bytes - byte, d->bit)) {
        return fail_at(d, K3HUF_E_CODED_LONG, byte);
    }
    if (d->now.last && d->bit != 0 && d->held == 0) { take_coded(d, io, 1); /* the plane's last byte */ }
    return K3HUF_OK;
}

/* Decode what the coded span allows of `lane`, whose raw, out, symbols and crc the caller has set: first what is in
 * hold together with the beginning of the span, then the span itself. */
static enum k3huf_status one_lane(struct k3huf_decoder *d, struct k3huf_io *io, struct k3huf_lane *lane) {
    const uint32_t coded_end = (d->now.end + 7u) / 8u;
    uint8_t joint[HOLD_MAX + HOLD_TOP_UP];
    for (;;) {
        const size_t held = d->held;
        const size_t span = k3huf_least(io->coded_size, coded_end - d->coded_done);
        const size_t fresh = held > 0 ? k3huf_least(span, HOLD_TOP_UP) : span;
        const uint8_t *const begin = held > 0 ? joint : io->coded;
        const size_t symbols = lane->symbols;
        if (held > 0) {
            k3huf_copy(joint, d->hold, held);
            k3huf_copy(joint + held, io->coded, fresh);
        }
        lane->coded = begin;
        lane->coded_size = held + fresh;
        lane->bit = d->bit;
        k3huf_lanes(&d->table, d->config.workspace, lane, 1);
        d->bit = lane->bit;
        d->symbols_left -= (uint32_t)(symbols - lane->symbols);
        const size_t used = held + fresh - lane->coded_size;
        if (lane->status == K3HUF_E_CODE_WORD) { return fail_at(d, K3HUF_E_CODE_WORD, d->coded_done - held + used); }
        if (lane->symbols > 0 && (held == 0 || used < held)) { break; }
        d->held = (uint32_t)(used < held ? held - used : 0);
        k3huf_copy(d->hold, lane->coded, d->held);
        take_coded(d, io, used - (held - d->held));
        if (d->symbols_left == 0) { return check_end(d, io, lane->coded); }
        if (lane->symbols == 0) { return K3HUF_OK; }
    }
    /* The span ends inside a code: what is left of it is all in reach of the lane. */
    take_coded(d, io, k3huf_least(io->coded_size, coded_end - d->coded_done));
    k3huf_copy(d->hold, lane->coded, lane->coded_size);
    d->held = (uint32_t)lane->coded_size;
    if (d->coded_done == coded_end) {
        return fail_at(d, d->now.last ? K3HUF_E_CODED_SHORT : K3HUF_E_BLOCK_END, d->coded_done - d->held);
    }
    return K3HUF_OK;
}

/* ---- two cursors */

static void take_raw(struct k3huf_decoder *d, struct k3huf_io *io, size_t n) {
    if (n > 0) {
        io->raw += n;
        io->raw_size -= n;
        d->raw_used += (uint32_t)n;
    }
}

static void give_out(struct k3huf_decoder *d, struct k3huf_io *io, size_t n) {
    if (n > 0) {
        io->out += n;
        io->out_size -= n;
        d->given += (uint32_t)n;
    }
    d->pending = 0;
}

/* Blocks that lie whole in the spans, side by side. K3HUF_WAIT: there is none. */
static enum k3huf_status whole_blocks(struct k3huf_decoder *d, struct k3huf_io *io) {
    struct k3huf_block block[K3HUF_LANES];
    size_t raw = 0;
    size_t out = 0;
    uint32_t n = 0;
    for (; n < K3HUF_LANES && d->block + n < d->index.nblocks; n++) {
        struct k3huf_block *const b = &block[n];
        k3huf_block_init(b, &d->index, &d->stripe, d->block + n);
        if ((b->end + 7u) / 8u - d->coded_done > io->coded_size ||
            k3huf_even_bytes(b->raw_bytes) > io->raw_size - raw || b->raw_bytes > io->out_size - out) {
            break;
        }
        b->coded = io->coded + (b->begin / 8u - d->coded_done);
        b->raw = io->raw + raw;
        b->out = io->out + out;
        raw += k3huf_even_bytes(b->raw_bytes);
        out += b->raw_bytes;
    }
    if (n == 0) { return K3HUF_WAIT; }
    (void)k3huf_decode_blocks(&d->table, d->config.workspace, block, n, !d->config.skip_crc);
    for (uint32_t i = 0; i < n; i++) {
        const struct k3huf_block *const b = &block[i];
        if (b->status != K3HUF_OK) {
            k3huf_zero(io->out, out); /* blocks behind the first bad one are not given out either */
            return fail_at(d, b->status, b->bad_bit / 8u);
        }
        take_coded(d, io, (b->last ? d->stripe.huf_bytes : b->end / 8u) - d->coded_done);
        take_raw(d, io, k3huf_even_bytes(b->raw_bytes));
        give_out(d, io, b->raw_bytes);
        out -= b->raw_bytes;
        d->block++;
    }
    if (d->block < d->index.nblocks) { enter_block(d); }
    return K3HUF_OK;
}

/* Decode pairs of the current block, as many as the spans hold. */
static enum k3huf_status pairs(struct k3huf_decoder *d, struct k3huf_io *io) {
    const size_t room = k3huf_least(io->raw_size, (io->out_size - d->pending) / 2u);
    const size_t symbols = k3huf_least(d->symbols_left, room);
    if (symbols == 0) { return K3HUF_OK; }
    struct k3huf_lane lane;
    lane.raw = io->raw;
    lane.out = io->out + d->pending;
    lane.symbols = symbols;
    lane.crc = d->crc;
    lane.with_crc = indexed(d) && !d->config.skip_crc;
    const enum k3huf_status status = one_lane(d, io, &lane);
    const uint32_t done = (uint32_t)(symbols - lane.symbols);
    take_raw(d, io, done);
    d->pending += 2u * done;
    d->crc = lane.crc;
    return status;
}

/* As much of the current block as the spans hold, in one lane. */
static enum k3huf_status part_of_block(struct k3huf_decoder *d, struct k3huf_io *io) {
    const enum k3huf_status status = pairs(d, io);
    if (status != K3HUF_OK) { return status; }
    const bool odd_tail = (d->now.raw_bytes & 1u) != 0; /* the stripe's last even byte has no partner */
    bool whole = d->symbols_left == 0;
    if (whole && odd_tail) {
        whole = io->raw_size > 0 && io->out_size > d->pending;
        if (whole) {
            uint8_t *const to = io->out + d->pending;
            *to = *io->raw;
            d->crc = k3huf_crc32c(d->crc, to, 1);
            d->pending++;
            take_raw(d, io, 1);
        }
    }
    if (whole && indexed(d)) {
        if (!d->config.skip_crc && d->crc != d->now.crc) { return fail_at(d, K3HUF_E_BLOCK_CRC, d->now.begin / 8u); }
        d->block++;
    }
    if (whole || !indexed(d)) { give_out(d, io, d->pending); }
    if (whole && d->block < d->index.nblocks) { enter_block(d); }
    return K3HUF_OK;
}

static enum k3huf_status planes(struct k3huf_decoder *d, struct k3huf_io *io) {
    const uint32_t first = d->block;
    enum k3huf_status status = K3HUF_OK;
    if (indexed(d)) {
        if (io->out_size < d->now.raw_bytes) { return K3HUF_WAIT; }
        while (status == K3HUF_OK && d->held == 0 && d->pending == 0 && d->block < d->index.nblocks) {
            status = whole_blocks(d, io);
        }
    }
    /* Only where not one block lies whole in the spans is a block begun in pieces, for that costs the lanes. */
    if (!k3huf_is_error(status) && d->block == first) { status = part_of_block(d, io); }
    if (!k3huf_is_error(status) && d->raw_used == k3huf_even_bytes(d->stripe.raw_bytes)) { status = stripe_done(d); }
    return status;
}

/* ---- one cursor: symbols go to the upper half of the stripe's window and are merged in place as raw bytes come */

static enum k3huf_status coded_only(struct k3huf_decoder *d, struct k3huf_io *io) {
    struct k3huf_lane lane;
    d->pending = d->stripe.raw_bytes;
    lane.raw = NULL;
    lane.out = io->out + (d->stripe.raw_bytes - d->symbols_left);
    lane.symbols = d->symbols_left;
    lane.crc = 0;
    lane.with_crc = false;
    const enum k3huf_status status = one_lane(d, io, &lane);
    if (status == K3HUF_OK && d->symbols_left == 0) { enter_part(d, K3HUF_PART_RAW); }
    return status;
}

static bool needs_window(const struct k3huf_decoder *d) {
    return d->config.one_cursor && d->part >= K3HUF_PART_INDEX && d->part <= K3HUF_PART_FILLER;
}

/* The window holds the whole stripe, and now the index is known: do its blocks end where it says, and have its CRCs? */
static enum k3huf_status check_window(struct k3huf_decoder *d, const struct k3huf_io *io) {
    const uint8_t *at = io->out;
    uint32_t bit = 0;
    for (d->block = 0; d->block < d->index.nblocks; d->block++) {
        enter_block(d);
        const uint32_t begin = bit;
        for (uint32_t i = 1; i < d->now.raw_bytes; i += 2u) {
            bit += d->run.codelen[at[i]];
        }
        if (!d->now.last && bit != d->now.end) { return fail_at(d, K3HUF_E_BLOCK_END, bit / 8u); }
        if (!d->config.skip_crc && k3huf_crc32c(0, at, d->now.raw_bytes) != d->now.crc) {
            return fail_at(d, K3HUF_E_BLOCK_CRC, begin / 8u);
        }
        at += d->now.raw_bytes;
    }
    return K3HUF_OK;
}

static enum k3huf_status filler_only(struct k3huf_decoder *d, struct k3huf_io *io) {
    take_coded(d, io, k3huf_least(io->coded_size, d->stripe.pad - d->coded_done));
    if (d->coded_done < d->stripe.pad) { return K3HUF_OK; }
    give_out(d, io, d->pending);
    return stripe_done(d);
}

static enum k3huf_status raw_only(struct k3huf_decoder *d, struct k3huf_io *io) {
    const uint32_t even = k3huf_even_bytes(d->stripe.raw_bytes);
    const uint32_t odd = k3huf_odd_bytes(d->stripe.raw_bytes);
    const size_t n = k3huf_least(io->coded_size, odd - d->raw_used);
    d->pending = d->stripe.raw_bytes;
    k3huf_merge(io->out + 2u * (size_t)d->raw_used, io->coded, io->out + even + d->raw_used, n);
    take_coded(d, io, n);
    d->raw_used += (uint32_t)n;
    if (d->raw_used == odd && odd < even && io->coded_size > 0) {
        io->out[2u * (size_t)odd] = *io->coded;
        take_coded(d, io, 1);
        d->raw_used++;
    }
    if (d->raw_used < even) { return K3HUF_OK; }
    enter_part(d, may_be_indexed(d) ? K3HUF_PART_INDEX : K3HUF_PART_FILLER);
    return d->part == K3HUF_PART_FILLER ? filler_only(d, io) : K3HUF_OK;
}

static enum k3huf_status index_part(struct k3huf_decoder *d, struct k3huf_io *io) {
    enum k3huf_status status = collect_index(d, io);
    if (status == K3HUF_OK && !d->config.one_cursor) {
        enter_part(d, K3HUF_PART_PLANES);
    } else if (status == K3HUF_OK) {
        d->part = K3HUF_PART_FILLER; /* what the index took of the filler stays taken */
        status = check_window(d, io);
        if (status == K3HUF_OK) { status = filler_only(d, io); }
    }
    return status;
}

/* ---- the public calls */

enum k3huf_status k3huf_decoder_init(struct k3huf_decoder *decoder, const struct k3huf_config *config) {
    k3huf_zero((uint8_t *)decoder, sizeof *decoder);
    decoder->config.one_cursor = config->one_cursor; /* one by one: a copy of the whole may become a call of memcpy */
    decoder->config.skip_crc = config->skip_crc;
    decoder->config.require_index = config->require_index;
    decoder->config.index = config->index;
    decoder->config.index_size = config->index_size;
    decoder->config.workspace = config->workspace;
    decoder->place.stripe = K3HUF_NO_STRIPE;
    decoder->place.block = K3HUF_NO_BLOCK;
    enter_part(decoder, K3HUF_PART_RUN_HEADER);
    const bool small = config->index == NULL ? config->require_index : config->index_size < K3HUF_INDEX_HEADER_BYTES;
    if (config->workspace == NULL || small) { return fail(decoder, K3HUF_E_ARGUMENT, K3HUF_NO_BLOCK, 0); }
    return K3HUF_OK;
}

/* Offset and size of what the coded cursor reads in this part. */
static uint64_t part_span(const struct k3huf_decoder *d, uint64_t *size) {
    switch (d->part) {
    case K3HUF_PART_RUN_HEADER: *size = K3HUF_RUN_HEADER_BYTES; return 0;
    case K3HUF_PART_STRIPE_HEADER: *size = K3HUF_STRIPE_HEADER_BYTES; return d->stripe_offset;
    case K3HUF_PART_INDEX: *size = index_wanted(d); return filler(d);
    case K3HUF_PART_PLANES:
    case K3HUF_PART_CODED: *size = d->stripe.huf_bytes; return coded_plane(d);
    case K3HUF_PART_RAW: *size = k3huf_even_bytes(d->stripe.raw_bytes); return raw_plane(d);
    case K3HUF_PART_FILLER: *size = d->stripe.pad; return filler(d);
    case K3HUF_PART_DONE:
    case K3HUF_PART_ERROR: break;
    }
    *size = d->coded_done;
    return d->stripe_offset;
}

void k3huf_decoder_need(const struct k3huf_decoder *d, struct k3huf_need *need) {
    uint64_t size = 0;
    need->part = d->part;
    need->coded_offset = part_span(d, &size) + d->coded_done;
    need->coded_bytes = size - d->coded_done;
    need->raw_offset = 0;
    need->raw_bytes = 0;
    need->out_offset = d->raw_done;
    need->out_bytes = needs_window(d) ? d->stripe.raw_bytes : 0;
    if (d->part == K3HUF_PART_PLANES) {
        need->raw_offset = raw_plane(d) + d->raw_used;
        need->raw_bytes = k3huf_even_bytes(d->stripe.raw_bytes) - d->raw_used;
        need->out_offset += d->given;
        need->out_bytes = indexed(d) ? d->now.raw_bytes : d->symbols_left > 0 ? 2u : 1u;
    }
}

static enum k3huf_status work(struct k3huf_decoder *d, struct k3huf_io *io) {
    if (needs_window(d) && io->out_size < d->stripe.raw_bytes) { return K3HUF_WAIT; }
    switch (d->part) {
    case K3HUF_PART_RUN_HEADER: return run_header(d, io);
    case K3HUF_PART_STRIPE_HEADER: return stripe_header(d, io);
    case K3HUF_PART_INDEX: return index_part(d, io);
    case K3HUF_PART_PLANES: return planes(d, io);
    case K3HUF_PART_CODED: return coded_only(d, io);
    case K3HUF_PART_RAW: return raw_only(d, io);
    case K3HUF_PART_FILLER: return filler_only(d, io);
    case K3HUF_PART_DONE:
    case K3HUF_PART_ERROR: break;
    }
    return d->status;
}

enum k3huf_status k3huf_decode(struct k3huf_decoder *decoder, struct k3huf_io *io) {
    const enum k3huf_part part = decoder->part;
    const size_t coded_size = io->coded_size;
    const size_t raw_size = io->raw_size;
    (void)work(decoder, io);
    if (decoder->part == K3HUF_PART_ERROR) {
        k3huf_zero(io->out, k3huf_least(io->out_size, decoder->pending));
        decoder->pending = 0;
        return decoder->status;
    }
    if (decoder->part == K3HUF_PART_DONE) { return K3HUF_DONE; }
    const bool moved = io->coded_size != coded_size || io->raw_size != raw_size || decoder->part != part;
    return moved ? K3HUF_OK : K3HUF_WAIT;
}

enum k3huf_status k3huf_finish(struct k3huf_decoder *decoder) {
    if (decoder->part == K3HUF_PART_DONE) { return K3HUF_DONE; }
    if (decoder->part != K3HUF_PART_ERROR) {
        struct k3huf_need need;
        k3huf_decoder_need(decoder, &need);
        (void)fail(decoder, K3HUF_E_TRUNCATED, K3HUF_NO_BLOCK, need.coded_offset);
        decoder->pending = 0;
    }
    return decoder->status;
}

const struct k3huf_place *k3huf_where(const struct k3huf_decoder *decoder) { return &decoder->place; }
