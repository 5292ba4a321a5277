/* inflight.c - the in-flight engine (inflight.h): reads ahead on both planes and the index while cores decode.
 *
 *   job -> run header -> stage: stripe header -> index -> groups: [reads] -> [work ring] -> any core: decode, check,
 *                        write to host memory -> done                                   -> completion
 *
 * Core 0 runs everything in k3huf_inflight_step(), which never waits: it looks at the window, moves reads on, opens the
 * next stripe while the groups of this one are under way, hands groups whose two planes are read to the work ring, and
 * decodes one itself. The other cores take groups from the ring in any order of completion. A group is in the hands of
 * one core at a time; its state and the ring's counters are the only things that cores share for writing.
 *
 * A failure ends nothing at once: groups that are under way come to their end, so that of several failures the one
 * nearest to the run's beginning is reported, whatever the order in which they showed.
 *
 * Freestanding: no libc, no allocation. May not look at the window (jobs.c) or at the drive (reads.c) by itself.
 */
#include "inflight.h"

#include <stddef.h>

#include "k3huf_image.h"
#include "line.h"

/* ---- small things */

static uint64_t now(const struct k3huf_inflight *e) { return e->port->ticks(e->port->context); }

static uint64_t ms_to_ticks(const struct k3huf_port *port, uint32_t ms) { return port->limits.tick_hz / 1000u * ms; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t coded_plane(const struct k3huf_stage *s) { return s->offset + K3HUF_STRIPE_HEADER_BYTES; }
static uint64_t raw_plane(const struct k3huf_stage *s) { return coded_plane(s) + s->header.huf_bytes; }
static uint64_t filler(const struct k3huf_stage *s) { return raw_plane(s) + k3huf_even_bytes(s->header.raw_bytes); }

/* Start reading `size` (at least 1) bytes of the run from `offset` on. */
static void start_span(struct k3huf_inflight *e, struct k3huf_read_span *span, uint8_t *buffer, uint64_t offset,
                       uint32_t size) {
    const uint32_t lba_bytes = e->port->limits.lba_bytes;
    const uint64_t begin = e->base + offset;
    span->buffer = buffer;
    span->lba = begin / lba_bytes;
    span->skip = (uint32_t)(begin % lba_bytes);
    span->size = size;
    span->offset = offset;
    span->blocks = (span->skip + size + lba_bytes - 1u) / lba_bytes;
    k3huf_reads_start(&e->reads, span);
}

/* ---- failures */

static struct k3huf_failure failure_at(const struct k3huf_inflight *e, uint32_t status, uint32_t stripe, uint32_t block,
                                       uint64_t offset) {
    return (struct k3huf_failure){status, stripe, block, offset, (e->base + offset) / e->port->limits.lba_bytes};
}

/* The failure of a span; its block, if any, is for the caller to find. */
static struct k3huf_failure span_failure(const struct k3huf_inflight *e, const struct k3huf_read_span *span,
                                         uint32_t stripe) {
    struct k3huf_failure failure = failure_at(e, K3HUF_JOB_E_DRIVE, stripe, K3HUF_NO_BLOCK, span->offset);
    const uint64_t bad = span->bad_lba * e->port->limits.lba_bytes;
    if (bad > e->base + span->offset) { failure.offset = bad - e->base; }
    failure.lba = span->bad_lba;
    switch (span->status) {
    case K3HUF_PORT_E_MEDIA: failure.status = K3HUF_JOB_E_READ; break;
    case K3HUF_PORT_E_TIMEOUT: failure.status = K3HUF_JOB_E_READ_TIMEOUT; break;
    case K3HUF_PORT_E_ABSENT: failure.status = K3HUF_JOB_E_ABSENT; break;
    default: break;
    }
    return failure;
}

static bool earlier(const struct k3huf_failure *a, const struct k3huf_failure *b) {
    if (a->stripe != b->stripe) { return a->stripe < b->stripe; }
    return a->block != b->block ? a->block < b->block : a->offset < b->offset;
}

static void fail(struct k3huf_inflight *e, struct k3huf_failure failure) {
    e->ending = true;
    if (e->failure.status == 0 || earlier(&failure, &e->failure)) { e->failure = failure; }
}

/* ---- host memory; any core */

/* Write to the job's destination, from byte `at` of it. */
static bool write_host(struct k3huf_inflight *e, uint32_t core, uint64_t at, const uint8_t *from, size_t size) {
    const struct k3huf_port *const port = e->port;
    const uint64_t begin = now(e);
    enum k3huf_port_status status = K3HUF_PORT_BUSY;
    port->cache_clean(port->context, from, size);
    while (status == K3HUF_PORT_BUSY && now(e) - begin <= e->window_timeout) {
        status = port->window_write(port->context, core, e->record->job.destination + at, from, size);
    }
    return status == K3HUF_PORT_OK && port->window_flush(port->context, core) == K3HUF_PORT_OK;
}

/* Of decoded bytes, the first of them raw byte `at` of the run, write those that the job wants; *written of them. */
static bool write_wanted(struct k3huf_inflight *e, uint32_t core, uint64_t at, const uint8_t *bytes, size_t size,
                         uint32_t *written) {
    const uint64_t begin = at < e->from ? e->from : at;
    const uint64_t end = least(at + size, e->to);
    *written = 0;
    if (begin >= end) { return true; }
    if (!write_host(e, core, begin - e->from, bytes + (begin - at), (size_t)(end - begin))) { return false; }
    *written = (uint32_t)(end - begin);
    return true;
}

/* ---- decoding a group; any core */

/* Where the codes of block `number` can end at the latest, in bits: an index that leaves more room is wrong, which the
 * decoder finds out from fewer bytes as well. */
static uint32_t block_end(const struct k3huf_stage *s, uint32_t number) {
    struct k3huf_block block;
    k3huf_block_init(&block, &s->index, &s->header, number);
    const uint64_t most = block.begin + (uint64_t)k3huf_odd_bytes(block.raw_bytes) * K3HUF_CODE_LENGTH_MAX + 8u;
    return (uint32_t)least(block.end, most);
}

static void decode_group(struct k3huf_inflight *e, uint32_t core, struct k3huf_group *g) {
    const struct k3huf_stage *const s = &e->stage[g->stage];
    struct k3huf_core *const own = &e->core[core];
    const uint64_t began = now(e);
    const uint32_t coded_begin = k3huf_index_bit(&s->index, g->first_block) / 8u;
    const uint32_t raw_per_block = 2u << s->index.block_log2;
    uint32_t bytes = 0;
    g->ahead = atomic_load_explicit(&e->reading, memory_order_relaxed);
    for (uint32_t i = 0; i < g->blocks; i++) {
        struct k3huf_block *const block = &own->block[i];
        k3huf_block_init(block, &s->index, &s->header, g->first_block + i);
        block->end = block_end(s, g->first_block + i);
        block->coded = g->coded.buffer + g->coded.skip + (block->begin / 8u - coded_begin);
        block->raw = g->raw.buffer + g->raw.skip + (size_t)i * (raw_per_block / 2u);
        block->out = own->out + (size_t)i * raw_per_block;
        bytes += block->raw_bytes;
    }
    g->status = (uint32_t)k3huf_decode_blocks(&e->table, &own->workspace, own->block, g->blocks, true);
    for (uint32_t i = g->blocks; i-- > 0;) {
        if (own->block[i].status != K3HUF_OK) {
            g->bad_block = g->first_block + i;
            g->bad_bit = own->block[i].bad_bit;
        }
    }
    const uint64_t decoded = now(e);
    g->bytes = 0;
    if (g->status == K3HUF_OK) {
        const uint64_t at = s->raw_before + (uint64_t)g->first_block * raw_per_block;
        if (!write_wanted(e, core, at, own->out, bytes, &g->bytes)) {
            g->status = K3HUF_JOB_E_WINDOW;
            g->bad_block = g->first_block;
            g->bad_bit = coded_begin * 8u;
        }
    }
    g->core = core;
    g->decode_ticks = decoded - began;
    g->write_ticks = now(e) - decoded;
}

/* Take a group from the work ring and decode it. false: the ring is empty. */
static bool work_once(struct k3huf_inflight *e, uint32_t core) {
    /* The tail is acquired too: whoever moved it had seen a head that is not behind it, so the head read below is not
     * either. A head from before that would make an empty ring look like one with a group. */
    unsigned tail = atomic_load_explicit(&e->work_tail, memory_order_acquire);
    unsigned slot = 0;
    do {
        /* Acquire: what core 0 stored before it put the group in, its planes included, is visible from here on. A slot
         * is not put in again before it was taken and finished, so an entry in front of the tail does not change; a
         * stale one is not believed, as the exchange fails. */
        if (atomic_load_explicit(&e->work_head, memory_order_acquire) == tail) { return false; }
        slot = atomic_load_explicit(&e->work[tail % K3HUF_INFLIGHT_WORK], memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&e->work_tail, &tail, tail + 1u, memory_order_acq_rel,
                                                    memory_order_acquire));
    decode_group(e, core, &e->group[slot]);
    atomic_store_explicit(&e->group[slot].state, K3HUF_GROUP_FINISHED, memory_order_release);
    e->port->signal(e->port->context);
    return true;
}

/* A secondary core's life. */
static void secondary(void *argument, uint32_t core) {
    struct k3huf_inflight *const e = argument;
    while (atomic_load_explicit(&e->stop, memory_order_acquire) == 0) {
        if (!work_once(e, core)) { e->port->wait(e->port->context, core); }
    }
    atomic_fetch_sub_explicit(&e->running, 1u, memory_order_release);
}

/* ---- stages: opening a stripe while another is decoded */

static void stage_fail(struct k3huf_stage *s, struct k3huf_failure failure) {
    s->failure = failure;
    s->state = K3HUF_STAGE_FAILED;
}

static void stage_truncated(const struct k3huf_inflight *e, struct k3huf_stage *s) {
    stage_fail(s, failure_at(e, K3HUF_E_TRUNCATED, s->number, K3HUF_NO_BLOCK, e->record->job.run_bytes));
}

static void open_stage(struct k3huf_inflight *e, struct k3huf_stage *s) {
    s->number = e->open_next;
    s->offset = e->open_offset;
    s->raw_before = e->open_raw;
    s->next_block = 0;
    s->end_block = 0;
    s->groups = 0;
    s->state = K3HUF_STAGE_HEADER;
    if (e->record->job.run_bytes < s->offset || e->record->job.run_bytes - s->offset < K3HUF_STRIPE_HEADER_BYTES) {
        stage_truncated(e, s);
    } else {
        start_span(e, &s->span, s->buffer, s->offset, K3HUF_STRIPE_HEADER_BYTES);
    }
}

/* A stripe whose filler cannot hold an index, or does not. */
static void stage_plain(const struct k3huf_inflight *e, struct k3huf_stage *s) {
    if ((e->record->job.options & K3HUF_OPTION_REQUIRE_INDEX) != 0) {
        stage_fail(s, failure_at(e, K3HUF_JOB_E_NO_INDEX, s->number, K3HUF_NO_BLOCK, filler(s)));
        return;
    }
    s->index.nblocks = 0;
    s->state = K3HUF_STAGE_PLAIN;
}

static void stage_header(struct k3huf_inflight *e, struct k3huf_stage *s) {
    uint32_t bad = 0;
    const enum k3huf_status status =
        k3huf_stripe_header_read(s->buffer + s->span.skip, &e->run, s->number, s->raw_before, &s->header, &bad);
    if (status != K3HUF_OK) {
        stage_fail(s, failure_at(e, (uint32_t)status, s->number, K3HUF_NO_BLOCK, s->offset + bad));
        return;
    }
    if (e->record->job.run_bytes < filler(s)) {
        stage_truncated(e, s);
        return;
    }
    e->open_next++;
    e->open_offset += k3huf_stripe_bytes(&s->header);
    e->open_raw += s->header.raw_bytes;
    if (e->open_raw <= e->from || s->raw_before >= e->to) {
        s->state = K3HUF_STAGE_PASSED;
        return;
    }
    /* The last stripe's filler may be cut short. What the smallest blocks would need covers any index. */
    const uint64_t have = least(s->header.pad, e->record->job.run_bytes - filler(s));
    const uint64_t want = least(have, k3huf_index_bytes(s->header.raw_bytes, K3HUF_BLOCK_LOG2_MIN));
    if (s->header.pad < 4u || s->header.huf_bytes == 0) {
        stage_plain(e, s);
        return;
    }
    if (want < 4u) {
        stage_truncated(e, s);
        return;
    }
    s->state = K3HUF_STAGE_INDEX;
    start_span(e, &s->span, s->buffer, filler(s), (uint32_t)want);
}

static void stage_index(struct k3huf_inflight *e, struct k3huf_stage *s) {
    const uint8_t *const bytes = s->buffer + s->span.skip;
    uint32_t size = 0;
    uint32_t bad = 0;
    uint32_t block = K3HUF_NO_BLOCK;
    enum k3huf_status status = k3huf_index_probe(bytes, s->span.size, &s->header, &size, &bad);
    if (status == K3HUF_OK && size == 0) {
        stage_plain(e, s);
        return;
    }
    if (status == K3HUF_WAIT || (status == K3HUF_OK && size > s->span.size)) {
        stage_truncated(e, s); /* the filler has room for it, the source ends first */
        return;
    }
    if (status == K3HUF_OK) { status = k3huf_index_read(bytes, size, &s->header, &s->index, &bad, &block); }
    if (status != K3HUF_OK) {
        stage_fail(s, failure_at(e, (uint32_t)status, s->number, block, filler(s) + bad));
        return;
    }
    if (least(2u << s->index.block_log2, s->header.raw_bytes) > K3HUF_INFLIGHT_GROUP_BYTES) {
        stage_fail(s, failure_at(e, K3HUF_JOB_E_BLOCK_SIZE, s->number, 0, filler(s)));
        return;
    }
    /* The last block of a stripe of an odd number of bytes has the last of them besides its symbols' two each. */
    const uint32_t shift = s->index.block_log2 + 1u;
    const uint64_t begin = e->from > s->raw_before ? e->from - s->raw_before : 0;
    const uint64_t end = least(e->to - s->raw_before, s->header.raw_bytes);
    s->next_block = (uint32_t)least(begin >> shift, s->index.nblocks - 1u);
    s->end_block = (uint32_t)least(((end - 1u) >> shift) + 1u, s->index.nblocks);
    s->state = K3HUF_STAGE_INDEXED;
}

static bool step_stage(struct k3huf_inflight *e, struct k3huf_stage *s) {
    if ((s->state != K3HUF_STAGE_HEADER && s->state != K3HUF_STAGE_INDEX) || !k3huf_span_done(&s->span)) {
        return false;
    }
    if (s->span.status != K3HUF_PORT_OK) {
        stage_fail(s, span_failure(e, &s->span, s->number));
    } else if (s->state == K3HUF_STAGE_HEADER) {
        stage_header(e, s);
    } else {
        stage_index(e, s);
    }
    return true;
}

/* ---- groups */

static unsigned group_state(const struct k3huf_group *g) {
    return atomic_load_explicit(&g->state, memory_order_acquire);
}

/* Start the reads of the next blocks of `s` in the free slot `g`. */
static void start_group(struct k3huf_inflight *e, struct k3huf_stage *s, struct k3huf_group *g) {
    const uint32_t first = s->next_block;
    const uint32_t begin = k3huf_index_bit(&s->index, first) / 8u;
    const uint32_t most = K3HUF_INFLIGHT_SYMBOLS >> s->index.block_log2;
    uint32_t end = (block_end(s, first) + 7u) / 8u;
    uint32_t n = 1;
    while (n < most && first + n < s->end_block) {
        const uint32_t further = (block_end(s, first + n) + 7u) / 8u;
        if (further - begin > K3HUF_INFLIGHT_CODED_SPAN) {
            break; /* only an index that is wrong leaves so much room */
        }
        end = further;
        n++;
    }
    const uint32_t symbols = 1u << s->index.block_log2;
    const uint32_t raw_begin = first * symbols;
    const uint32_t raw_end =
        first + n == s->index.nblocks ? k3huf_even_bytes(s->header.raw_bytes) : (first + n) * symbols;
    s->next_block = first + n;
    s->groups++;
    g->stage = s->number % 2u;
    g->first_block = first;
    g->blocks = n;
    g->steady = s->next_block < s->end_block || s->raw_before + s->header.raw_bytes < least(e->to, e->run.raw_bytes);
    atomic_store_explicit(&g->state, K3HUF_GROUP_READING, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->reading, 1u, memory_order_relaxed);
    start_span(e, &g->coded, g->coded_buffer, coded_plane(s) + begin, end - begin);
    start_span(e, &g->raw, g->raw_buffer, raw_plane(s) + raw_begin, raw_end - raw_begin);
}

/* Both planes are there, or will not be. */
static void group_read(struct k3huf_inflight *e, struct k3huf_group *g) {
    struct k3huf_stage *const s = &e->stage[g->stage];
    atomic_fetch_sub_explicit(&e->reading, 1u, memory_order_relaxed);
    if (g->coded.status == K3HUF_PORT_OK && g->raw.status == K3HUF_PORT_OK) {
        const unsigned head = atomic_load_explicit(&e->work_head, memory_order_relaxed);
        atomic_store_explicit(&g->state, K3HUF_GROUP_READY, memory_order_relaxed);
        atomic_store_explicit(&e->work[head % K3HUF_INFLIGHT_WORK], (unsigned)(g - e->group), memory_order_relaxed);
        atomic_store_explicit(&e->work_head, head + 1u, memory_order_release);
        e->port->signal(e->port->context);
        return;
    }
    if (g->coded.status != K3HUF_PORT_OK) {
        struct k3huf_failure failure = span_failure(e, &g->coded, s->number);
        const uint64_t bad = failure.offset - coded_plane(s);
        failure.block = g->first_block;
        while (failure.block + 1u < g->first_block + g->blocks && (block_end(s, failure.block) + 7u) / 8u <= bad) {
            failure.block++;
        }
        fail(e, failure);
    }
    if (g->raw.status != K3HUF_PORT_OK) {
        struct k3huf_failure failure = span_failure(e, &g->raw, s->number);
        const uint64_t block = (failure.offset - raw_plane(s)) >> s->index.block_log2;
        failure.block = (uint32_t)least(block, s->index.nblocks - 1u);
        fail(e, failure);
    }
    s->groups--;
    atomic_store_explicit(&g->state, K3HUF_GROUP_FREE, memory_order_relaxed);
}

static void trace_group(struct k3huf_inflight *e, const struct k3huf_group *g, const struct k3huf_stage *s) {
    struct k3huf_line line = {0};
    k3huf_line_text(&line, "trace: stripe ");
    k3huf_line_number(&line, s->number);
    k3huf_line_text(&line, " blocks ");
    k3huf_line_number(&line, g->first_block);
    k3huf_line_text(&line, "-");
    k3huf_line_number(&line, g->first_block + g->blocks - 1u);
    k3huf_line_text(&line, " core ");
    k3huf_line_number(&line, g->core);
    k3huf_line_text(&line, ", groups being read ");
    k3huf_line_number(&line, g->ahead);
    k3huf_line_text(&line, ", decode ticks ");
    k3huf_line_number(&line, g->decode_ticks);
    k3huf_line_text(&line, ", write ticks ");
    k3huf_line_number(&line, g->write_ticks);
    e->port->log(e->port->context, line.text);
}

/* A core is done with it. */
static void group_finished(struct k3huf_inflight *e, struct k3huf_group *g) {
    struct k3huf_stage *const s = &e->stage[g->stage];
    e->tally->bytes += g->bytes;
    e->tally->decode_ticks += g->decode_ticks;
    e->tally->write_ticks += g->write_ticks;
    e->tally->groups++;
    if (g->steady) {
        e->tally->ahead += g->ahead;
        e->tally->ahead_of++;
    }
    if (g->status != 0) {
        fail(e, failure_at(e, g->status, s->number, g->bad_block, coded_plane(s) + g->bad_bit / 8u));
    }
    if ((e->record->job.options & K3HUF_OPTION_TRACE) != 0) { trace_group(e, g, s); }
    s->groups--;
    atomic_store_explicit(&g->state, K3HUF_GROUP_FREE, memory_order_relaxed);
}

/* Slots by state; `busy` gets those that are ready or being decoded, `live` those that are not free. */
static bool step_groups(struct k3huf_inflight *e, uint32_t *busy, uint32_t *live) {
    bool any = false;
    *busy = 0;
    *live = 0;
    for (uint32_t slot = 0; slot < K3HUF_INFLIGHT_SLOTS; slot++) {
        struct k3huf_group *const g = &e->group[slot];
        const unsigned state = group_state(g);
        if (state == K3HUF_GROUP_READING && k3huf_span_done(&g->coded) && k3huf_span_done(&g->raw)) {
            group_read(e, g);
            any = true;
        } else if (state == K3HUF_GROUP_FINISHED) {
            group_finished(e, g);
            any = true;
        }
        *busy += group_state(g) == K3HUF_GROUP_READY || group_state(g) == K3HUF_GROUP_FINISHED;
        *live += group_state(g) != K3HUF_GROUP_FREE;
    }
    return any;
}

/* ---- stripes without index: one lane on core 0, both planes read ahead in chunks
 *
 * The core's decoder does it, given a run of this one stripe: the run's own code, no filler. So there is no second
 * place that decodes. */

#define PLAIN_PREFIX (K3HUF_RUN_HEADER_BYTES + K3HUF_STRIPE_HEADER_BYTES)
#define PLAIN_CHUNK (K3HUF_INFLIGHT_SYMBOLS)

static struct k3huf_failure plain_failure(const struct k3huf_inflight *e, const struct k3huf_stage *s) {
    const struct k3huf_place *const place = k3huf_where(&e->plain.decoder);
    const uint64_t offset = coded_plane(s) + (place->offset > PLAIN_PREFIX ? place->offset - PLAIN_PREFIX : 0);
    return failure_at(e, (uint32_t)e->plain.decoder.status, s->number, K3HUF_NO_BLOCK, offset);
}

static void begin_plain(struct k3huf_inflight *e, const struct k3huf_stage *s) {
    struct k3huf_plain *const p = &e->plain;
    const struct k3huf_config config = {.workspace = &e->core[0].workspace};
    const struct k3huf_stripe_header alone = {s->header.raw_bytes, s->header.huf_bytes, 0};
    const uint64_t raw_bytes = e->run.raw_bytes;
    const uint32_t nstripes = e->run.nstripes;
    uint8_t prefix[PLAIN_PREFIX];
    struct k3huf_io io = {.coded = prefix, .coded_size = sizeof prefix};
    e->run.raw_bytes = s->header.raw_bytes;
    e->run.nstripes = 1;
    k3huf_run_header_write(&e->run, prefix);
    e->run.raw_bytes = raw_bytes;
    e->run.nstripes = nstripes;
    k3huf_stripe_header_write(&alone, 0, prefix + K3HUF_RUN_HEADER_BYTES);
    enum k3huf_status status = k3huf_decoder_init(&p->decoder, &config);
    while (status == K3HUF_OK && io.coded_size > 0) {
        status = k3huf_decode(&p->decoder, &io);
    }
    p->begun = true;
    p->produced = 0;
    p->coded = (struct k3huf_plain_plane){coded_plane(s), raw_plane(s), 0, 0};
    p->raw = (struct k3huf_plain_plane){raw_plane(s), filler(s), 0, 0};
    if (status != K3HUF_OK) { fail(e, plain_failure(e, s)); }
}

static struct k3huf_read_span *plain_span(struct k3huf_inflight *e, bool coded, uint32_t chunk) {
    struct k3huf_group *const g = &e->group[chunk % K3HUF_INFLIGHT_SLOTS];
    return coded ? &g->coded : &g->raw;
}

/* Ask for further chunks of a plane; every one but the first begins at a logical block. */
static void read_plain(struct k3huf_inflight *e, struct k3huf_plain_plane *plane, bool coded) {
    const uint32_t lba_bytes = e->port->limits.lba_bytes;
    while (plane->next < plane->end && plane->tail - plane->head < K3HUF_INFLIGHT_SLOTS) {
        struct k3huf_group *const g = &e->group[plane->tail % K3HUF_INFLIGHT_SLOTS];
        const uint64_t border = e->base + plane->next + PLAIN_CHUNK;
        const uint64_t end = least(plane->end, border - border % lba_bytes - e->base);
        start_span(e, plain_span(e, coded, plane->tail), coded ? g->coded_buffer : g->raw_buffer, plane->next,
                   (uint32_t)(end - plane->next));
        plane->next = end;
        plane->tail++;
    }
}

/* The chunk a plane is at, or NULL where it is used up or not there yet (*wait). */
static struct k3huf_read_span *plain_chunk(struct k3huf_inflight *e, const struct k3huf_plain_plane *plane, bool coded,
                                           const struct k3huf_stage *s, bool *wait) {
    if (plane->head == plane->tail) { return NULL; }
    struct k3huf_read_span *const span = plain_span(e, coded, plane->head);
    if (!k3huf_span_done(span)) {
        *wait = true;
        return NULL;
    }
    if (span->status != K3HUF_PORT_OK) {
        fail(e, span_failure(e, span, s->number));
        *wait = true;
        return NULL;
    }
    return span;
}

static void use_plain(struct k3huf_read_span *span, struct k3huf_plain_plane *plane, size_t left) {
    if (span != NULL) {
        span->skip += span->size - (uint32_t)left;
        span->size = (uint32_t)left;
        plane->head += left == 0;
    }
}

/* One call of the decoder. true: something was done. */
static bool step_plain(struct k3huf_inflight *e, struct k3huf_stage *s) {
    struct k3huf_plain *const p = &e->plain;
    bool wait = false;
    if (!p->begun) {
        begin_plain(e, s);
        if (e->ending) { return true; }
    }
    read_plain(e, &p->coded, true);
    read_plain(e, &p->raw, false);
    struct k3huf_read_span *const coded = plain_chunk(e, &p->coded, true, s, &wait);
    struct k3huf_read_span *const raw = plain_chunk(e, &p->raw, false, s, &wait);
    if (wait) { return e->ending; }
    struct k3huf_io io = {.out = e->core[0].out, .out_size = K3HUF_INFLIGHT_GROUP_BYTES};
    if (coded != NULL) {
        io.coded = coded->buffer + coded->skip;
        io.coded_size = coded->size;
    }
    if (raw != NULL) {
        io.raw = raw->buffer + raw->skip;
        io.raw_size = raw->size;
    }
    const uint64_t began = now(e);
    const enum k3huf_status status = k3huf_decode(&p->decoder, &io);
    const uint64_t decoded = now(e);
    const size_t bytes = K3HUF_INFLIGHT_GROUP_BYTES - io.out_size;
    use_plain(coded, &p->coded, io.coded_size);
    use_plain(raw, &p->raw, io.raw_size);
    e->tally->decode_ticks += decoded - began;
    uint32_t written = 0;
    if (bytes > 0 && !write_wanted(e, 0, s->raw_before + p->produced, e->core[0].out, bytes, &written)) {
        fail(e, failure_at(e, K3HUF_JOB_E_WINDOW, s->number, K3HUF_NO_BLOCK, coded_plane(s)));
        return true;
    }
    e->tally->write_ticks += now(e) - decoded;
    e->tally->bytes += written;
    p->produced += bytes;
    if (status == K3HUF_WAIT) { (void)k3huf_finish(&p->decoder); /* both planes are used up and symbols are missing */ }
    /* Of a part, what lies behind it is not waited for. */
    if (status == K3HUF_DONE || (status == K3HUF_OK && s->raw_before + p->produced >= e->to)) {
        s->state = K3HUF_STAGE_UNUSED;
        p->begun = false;
        e->issue_next++;
    } else if (status != K3HUF_OK) {
        fail(e, plain_failure(e, s));
    }
    return true;
}

/* ---- bytes that are not coded: read ahead as a plane is, in order on core 0; a CRC of all, what is wanted written */

/* One chunk. true: something was done. */
static bool step_copy(struct k3huf_inflight *e, struct k3huf_stage *s) {
    struct k3huf_plain_plane *const plane = &e->plain.coded;
    bool wait = false;
    read_plain(e, plane, true);
    struct k3huf_read_span *const span = plain_chunk(e, plane, true, s, &wait);
    if (wait) { return e->ending; }
    if (span != NULL) {
        const uint8_t *const bytes = span->buffer + span->skip;
        uint32_t written = 0;
        const uint64_t began = now(e);
        e->tally->crc = k3huf_crc32c(e->tally->crc, bytes, span->size);
        const uint64_t checked = now(e);
        if (!write_wanted(e, 0, span->offset, bytes, span->size, &written)) {
            fail(e, failure_at(e, K3HUF_JOB_E_WINDOW, s->number, K3HUF_NO_BLOCK, span->offset));
            return true;
        }
        e->tally->decode_ticks += checked - began;
        e->tally->write_ticks += now(e) - checked;
        e->tally->bytes += written;
        use_plain(span, plane, 0);
    } else {
        s->state = K3HUF_STAGE_UNUSED;
        e->issue_next++;
    }
    return true;
}

/* ---- jobs */

/* Whether the source, of `bytes` bytes, has those that the job wants. */
static bool part_is_there(const struct k3huf_job *job, uint64_t bytes) {
    return job->from <= bytes && job->destination_bytes <= bytes - job->from;
}

/* A COPY is a run of one stripe that is neither. */
static void begin_copy(struct k3huf_inflight *e) {
    const struct k3huf_job *const job = &e->record->job;
    struct k3huf_stage *const s = &e->stage[0];
    if (!part_is_there(job, job->run_bytes)) {
        fail(e, failure_at(e, K3HUF_JOB_E_PART, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0));
        return;
    }
    e->to = job->from + job->destination_bytes;
    e->plain.coded = (struct k3huf_plain_plane){0, job->run_bytes, 0, 0};
    e->stripes = 1;
    e->open_next = 1;
    s->number = 0;
    s->state = K3HUF_STAGE_COPY;
}

static void begin_job(struct k3huf_inflight *e) {
    const struct k3huf_job *const job = &e->record->job;
    e->ending = false;
    e->failure.status = 0;
    e->base = job->lba * e->port->limits.lba_bytes + job->offset;
    e->open_next = 0;
    e->issue_next = 0;
    e->open_offset = K3HUF_RUN_HEADER_BYTES;
    e->open_raw = 0;
    e->plain.begun = false;
    e->tally = &e->record->completion;
    k3huf_completion_clear(e->tally);
    e->reads.reads = 0;
    e->reads.blocks = 0;
    e->reads.retries = 0;
    e->began = now(e);
    e->starved = false;
    e->stage[0].state = K3HUF_STAGE_UNUSED;
    e->stage[1].state = K3HUF_STAGE_UNUSED;
    const bool list = job->kind == K3HUF_KIND_LIST;
    const uint32_t head = list ? K3HUF_IMAGE_HEAD_BYTES : K3HUF_RUN_HEADER_BYTES;
    e->phase = list ? K3HUF_PHASE_LIST_HEAD : K3HUF_PHASE_HEADER;
    e->stripes = 0;
    e->from = job->from;
    e->to = UINT64_MAX;
    if (!k3huf_reads_ready(&e->reads)) {
        fail(e, failure_at(e, K3HUF_JOB_E_DRIVE, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0));
    } else if (job->kind == K3HUF_KIND_COPY) {
        begin_copy(e);
    } else if (job->run_bytes < head) {
        const uint32_t status = list ? (uint32_t)K3HUF_JOB_E_TABLE : (uint32_t)K3HUF_E_TRUNCATED;
        fail(e, failure_at(e, status, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, job->run_bytes));
    } else {
        start_span(e, &e->stage[0].span, e->stage[0].buffer, 0, head);
        return;
    }
    e->phase = K3HUF_PHASE_RUN;
}

/* The run header, or a part of a table of contents, is there. */
static void read_run_header(struct k3huf_inflight *e, const uint8_t *bytes) {
    const struct k3huf_job *const job = &e->record->job;
    uint32_t bad = 0;
    enum k3huf_status status = k3huf_run_header_read(bytes, &e->run, &bad);
    if (status == K3HUF_OK) { status = k3huf_table_build(&e->table, e->run.codelen); }
    if (status != K3HUF_OK) {
        fail(e, failure_at(e, (uint32_t)status, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, bad));
    } else if (job->kind == K3HUF_KIND_PART) {
        if (!part_is_there(job, e->run.raw_bytes)) {
            fail(e, failure_at(e, K3HUF_JOB_E_PART, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 8));
        } else if (job->destination_bytes > 0) {
            e->to = job->from + job->destination_bytes;
            e->stripes = e->run.nstripes;
        }
    } else if (e->run.raw_bytes > job->destination_bytes) {
        fail(e, failure_at(e, K3HUF_JOB_E_DESTINATION_SMALL, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 8));
    } else {
        e->stripes = e->run.nstripes;
    }
}

static void list_table(struct k3huf_inflight *e, const uint8_t *bytes, uint32_t size) {
    uint32_t status = 0;
    /* The head was read before, for the size: this is another reading of it. */
    if (k3huf_image_table_bytes(bytes) != size || !k3huf_image_table_sound(bytes, size)) {
        status = K3HUF_JOB_E_TABLE;
    } else if (size > e->record->job.destination_bytes) {
        status = K3HUF_JOB_E_DESTINATION_SMALL;
    } else if (!write_host(e, 0, 0, bytes, size)) {
        status = K3HUF_JOB_E_WINDOW;
    } else {
        e->tally->bytes = size;
    }
    if (status != 0) { fail(e, failure_at(e, status, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0)); }
}

static bool step_head(struct k3huf_inflight *e) {
    struct k3huf_stage *const s = &e->stage[0];
    const uint8_t *const bytes = s->buffer + s->span.skip;
    if (!k3huf_span_done(&s->span)) { return false; }
    const enum k3huf_job_phase phase = e->phase;
    e->phase = K3HUF_PHASE_RUN; /* a LIST is a run of no stripes from here on */
    if (s->span.status != K3HUF_PORT_OK) {
        fail(e, span_failure(e, &s->span, K3HUF_NO_STRIPE));
    } else if (phase == K3HUF_PHASE_HEADER) {
        read_run_header(e, bytes);
    } else if (phase == K3HUF_PHASE_LIST) {
        list_table(e, bytes, s->span.size);
    } else {
        const uint32_t size = k3huf_image_table_bytes(bytes);
        if (size == 0 || size > e->record->job.run_bytes) {
            fail(e, failure_at(e, K3HUF_JOB_E_TABLE, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0));
        } else if (e->ending) { /* said here, for a run of no stripes would now be whole */
            fail(e, (struct k3huf_failure){K3HUF_JOB_E_CANCELLED, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0, 0});
        } else {
            e->phase = K3HUF_PHASE_LIST;
            start_span(e, &s->span, s->buffer, 0, size);
        }
    }
    return true;
}

/* Begin what can be begun: the next stripe, the next groups. */
static bool step_run(struct k3huf_inflight *e, uint32_t live, bool *decoded) {
    bool any = step_stage(e, &e->stage[0]);
    any = step_stage(e, &e->stage[1]) || any;
    if (e->open_next < e->stripes && e->stage[e->open_next % 2u].state == K3HUF_STAGE_UNUSED && !e->ending) {
        open_stage(e, &e->stage[e->open_next % 2u]);
        any = true;
    }
    for (uint32_t i = 0; i < 2u; i++) {
        struct k3huf_stage *const s = &e->stage[i];
        if (s->state == K3HUF_STAGE_INDEXED && s->next_block == s->end_block && s->groups == 0) {
            s->state = K3HUF_STAGE_UNUSED;
            any = true;
        }
    }
    struct k3huf_stage *const s = &e->stage[e->issue_next % 2u];
    if (e->ending || e->issue_next >= e->stripes || s->state == K3HUF_STAGE_UNUSED || s->number != e->issue_next) {
        return any;
    }
    if (s->state == K3HUF_STAGE_FAILED) {
        fail(e, s->failure);
        return true;
    }
    if (s->state == K3HUF_STAGE_PASSED) {
        s->state = K3HUF_STAGE_UNUSED;
        e->issue_next++;
        return true;
    }
    if (s->state == K3HUF_STAGE_COPY) {
        *decoded = step_copy(e, s);
        return *decoded || any;
    }
    if (s->state == K3HUF_STAGE_PLAIN && live == 0) {
        *decoded = step_plain(e, s);
        return *decoded || any;
    }
    for (uint32_t slot = 0; slot < K3HUF_INFLIGHT_SLOTS && s->state == K3HUF_STAGE_INDEXED; slot++) {
        if (s->next_block < s->end_block && group_state(&e->group[slot]) == K3HUF_GROUP_FREE) {
            start_group(e, s, &e->group[slot]);
            any = true;
        }
    }
    if (s->state == K3HUF_STAGE_INDEXED && s->next_block == s->end_block) { e->issue_next++; }
    return any;
}

static void end_job(struct k3huf_inflight *e) {
    struct k3huf_completion *const c = e->tally;
    if (e->failure.status != 0) {
        c->status = e->failure.status;
        c->stripe = e->record->job.kind == K3HUF_KIND_COPY ? K3HUF_NO_STRIPE : e->failure.stripe;
        c->block = e->failure.block;
        c->offset = e->failure.offset;
        c->lba = e->failure.lba;
    } else if (e->ending) {
        c->status = K3HUF_JOB_E_CANCELLED;
    }
    if (c->status != 0) { c->crc = 0; /* not of all bytes */ }
    c->ticks = now(e) - e->began;
    c->reads = e->reads.reads;
    c->read = e->reads.blocks * e->port->limits.lba_bytes;
    c->retries = e->reads.retries;
    k3huf_jobs_done(&e->jobs, e->record);
    e->record = NULL;
    e->phase = K3HUF_PHASE_IDLE;
}

/* The running job's share of a step. */
static bool step_job(struct k3huf_inflight *e) {
    uint32_t busy = 0;
    uint32_t live = 0;
    bool decoded = false;
    bool any = k3huf_reads_step(&e->reads);
    const uint64_t time = now(e);
    if (e->starved) { e->tally->storage_ticks += time - e->starved_at; }
    if (e->jobs.cancel) { e->ending = true; }
    if (e->phase != K3HUF_PHASE_RUN) {
        any = step_head(e) || any;
    } else {
        any = step_groups(e, &busy, &live) || any;
        any = step_run(e, live, &decoded) || any;
    }
    const bool worked = work_once(e, 0);
    e->starved = busy == 0 && !decoded && !worked && !k3huf_reads_idle(&e->reads);
    e->starved_at = time;
    /* A stage that is open waits for its spans; with nothing under way they are all done. */
    const bool whole = e->issue_next == e->stripes && e->stage[0].state == K3HUF_STAGE_UNUSED &&
                       e->stage[1].state == K3HUF_STAGE_UNUSED;
    if (e->phase == K3HUF_PHASE_RUN && (e->ending || whole) && live == 0 && k3huf_reads_idle(&e->reads) && !worked) {
        e->ending = e->ending && !whole;
        end_job(e);
        return true;
    }
    return any || decoded || worked;
}

/* ---- the public calls */

static void log_start(struct k3huf_inflight *e) {
    struct k3huf_line line = {0};
    k3huf_line_text(&line, "in-flight engine: ");
    k3huf_line_number(&line, e->cores);
    k3huf_line_text(&line, " cores, static memory ");
    k3huf_line_number(&line, sizeof *e);
    k3huf_line_text(&line, " bytes, of them ring ");
    k3huf_line_number(&line, K3HUF_INFLIGHT_RING_BYTES);
    e->port->log(e->port->context, line.text);
}

static bool limits_good(const struct k3huf_port_limits *limits) {
    const uint32_t lba = limits->lba_bytes;
    return (lba == 512u || lba == 1024u || lba == 2048u || lba == 4096u) && limits->lba_count <= UINT64_MAX / lba &&
           limits->max_transfer_bytes >= lba && limits->max_transfer_bytes % lba == 0 && limits->buffer_align >= 1u &&
           lba % limits->buffer_align == 0 && limits->queue_depth >= 1u && limits->core_count >= 1u &&
           limits->window_bytes >= K3HUF_CONTROL_BYTES && limits->tick_hz >= 1000u;
}

enum k3huf_port_status k3huf_inflight_start(struct k3huf_inflight *e, const struct k3huf_port *port,
                                            const struct k3huf_inflight_config *config) {
    if (!limits_good(&port->limits) || config->read_attempts < 1u) { return K3HUF_PORT_E_ARGUMENT; }
    e->port = port;
    e->cores = 1;
    e->record = NULL;
    e->phase = K3HUF_PHASE_IDLE;
    e->window_timeout = ms_to_ticks(port, config->host_timeout_ms);
    e->poll_period = port->limits.tick_hz / 1000u * config->poll_us / 1000u;
    e->polled_at = 0;
    atomic_init(&e->stop, 0u);
    atomic_init(&e->running, 0u);
    atomic_init(&e->work_head, 0u);
    atomic_init(&e->work_tail, 0u);
    atomic_init(&e->reading, 0u);
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_WORK; i++) {
        atomic_init(&e->work[i], 0u);
    }
    for (uint32_t slot = 0; slot < K3HUF_INFLIGHT_SLOTS; slot++) {
        atomic_init(&e->group[slot].state, K3HUF_GROUP_FREE);
    }
    k3huf_reads_init(&e->reads, port, config->read_attempts, ms_to_ticks(port, config->read_timeout_ms));
    for (uint32_t core = 1; core < port->limits.core_count && core < K3HUF_INFLIGHT_CORES; core++) {
        atomic_fetch_add_explicit(&e->running, 1u, memory_order_relaxed);
        const enum k3huf_port_status status = port->core_start(port->context, core, secondary, e);
        if (status == K3HUF_PORT_OK) {
            e->cores++;
        } else {
            struct k3huf_line line = {0};
            atomic_fetch_sub_explicit(&e->running, 1u, memory_order_relaxed);
            k3huf_line_text(&line, "core ");
            k3huf_line_number(&line, core);
            k3huf_line_text(&line, " is not used: ");
            k3huf_line_text(&line, k3huf_port_status_text(status));
            port->log(port->context, line.text);
        }
    }
    k3huf_jobs_init(&e->jobs, port, e->cores, K3HUF_INFLIGHT_GROUP_BYTES, e->window_timeout);
    log_start(e);
    return K3HUF_PORT_OK;
}

enum k3huf_inflight_step k3huf_inflight_step(struct k3huf_inflight *e) {
    bool any = false;
    const uint64_t time = now(e);
    if (e->record == NULL || time - e->polled_at >= e->poll_period) {
        e->polled_at = time;
        e->jobs.progress = e->record == NULL ? 0 : (uint32_t)(e->tally->bytes >> 10);
        any = k3huf_jobs_step(&e->jobs);
    }
    if (e->record == NULL) {
        e->record = k3huf_jobs_next(&e->jobs);
        if (e->record == NULL) {
            return k3huf_jobs_stop(&e->jobs) ? K3HUF_STEP_STOPPED : any ? K3HUF_STEP_BUSY : K3HUF_STEP_IDLE;
        }
        begin_job(e);
        any = true;
    }
    return step_job(e) || any ? K3HUF_STEP_BUSY : K3HUF_STEP_IDLE;
}

bool k3huf_inflight_finish(struct k3huf_inflight *e) {
    const uint64_t began = now(e);
    atomic_store_explicit(&e->stop, 1u, memory_order_release);
    while (atomic_load_explicit(&e->running, memory_order_acquire) > 0) {
        e->port->signal(e->port->context);
        if (now(e) - began > e->window_timeout) { return false; }
    }
    return true;
}

enum k3huf_port_status k3huf_inflight_run(struct k3huf_inflight *e, const struct k3huf_port *port,
                                          const struct k3huf_inflight_config *config) {
    const enum k3huf_port_status status = k3huf_inflight_start(e, port, config);
    if (status != K3HUF_PORT_OK) { return status; }
    for (;;) {
        const enum k3huf_inflight_step step = k3huf_inflight_step(e);
        if (step == K3HUF_STEP_STOPPED) { break; }
        if (step == K3HUF_STEP_IDLE) { port->wait(port->context, 0); }
    }
    return k3huf_inflight_finish(e) ? K3HUF_PORT_OK : K3HUF_PORT_E_CORE;
}
