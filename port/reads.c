/* reads.c - see reads.h. Freestanding. */
#include "reads.h"

void k3huf_reads_init(struct k3huf_reads *reads, const struct k3huf_port *port, uint32_t attempts_max,
                      uint64_t timeout) {
    reads->port = port;
    reads->attempts_max = attempts_max;
    reads->timeout = timeout;
    reads->tags = port->limits.queue_depth < K3HUF_INFLIGHT_READS ? port->limits.queue_depth : K3HUF_INFLIGHT_READS;
    reads->given_up = K3HUF_PORT_OK;
    reads->queue_head = 0;
    reads->queue_tail = 0;
    reads->live = 0;
    reads->reads = 0;
    reads->blocks = 0;
    reads->retries = 0;
    for (uint32_t tag = 0; tag < K3HUF_INFLIGHT_READS; tag++) {
        reads->read[tag].state = K3HUF_READ_FREE;
    }
}

static void reset(struct k3huf_reads *reads) {
    const bool good = reads->port->storage_reset(reads->port->context) == K3HUF_PORT_OK;
    reads->given_up = good ? K3HUF_PORT_OK : K3HUF_PORT_E_DEVICE;
}

bool k3huf_reads_ready(struct k3huf_reads *reads) {
    if (reads->given_up == K3HUF_PORT_E_DEVICE) {
        reset(reads);
    } else { /* after the last time-out the reset was good */
        reads->given_up = K3HUF_PORT_OK;
    }
    return reads->given_up == K3HUF_PORT_OK;
}

void k3huf_reads_start(struct k3huf_reads *reads, struct k3huf_read_span *span) {
    span->status = K3HUF_PORT_OK;
    span->bad_lba = 0;
    span->submitted = 0;
    span->outstanding = 0;
    reads->port->cache_invalidate(reads->port->context, span->buffer,
                                  (size_t)span->blocks * reads->port->limits.lba_bytes);
    reads->queue[reads->queue_tail++ % K3HUF_READS_SPANS] = span;
}

static void release(struct k3huf_reads *reads, struct k3huf_read *read) {
    const struct k3huf_port *const port = reads->port;
    struct k3huf_read_span *const span = read->span;
    read->state = K3HUF_READ_FREE;
    reads->live--;
    span->outstanding--;
    if (k3huf_span_done(span) && span->status == K3HUF_PORT_OK) {
        port->cache_invalidate(port->context, span->buffer, (size_t)span->blocks * port->limits.lba_bytes);
    }
}

/* The read is over without success: so is its span, from its first bad block on. */
static void give_up(struct k3huf_reads *reads, struct k3huf_read *read, enum k3huf_port_status status) {
    struct k3huf_read_span *const span = read->span;
    const uint64_t lba = span->lba + read->first;
    if (span->status == K3HUF_PORT_OK || lba < span->bad_lba) {
        span->status = status;
        span->bad_lba = lba;
    }
    span->submitted = span->blocks; /* what is not yet handed out is not read */
    release(reads, read);
}

static void wait_again(struct k3huf_reads *reads, struct k3huf_read *read) {
    read->state = K3HUF_READ_WAITING;
    read->since = reads->port->ticks(reads->port->context);
}

/* A read ended with `status`. */
static void finish(struct k3huf_reads *reads, struct k3huf_read *read, enum k3huf_port_status status) {
    if (status == K3HUF_PORT_OK && read->locating && read->first + 1u < read->end) {
        read->first++;
        read->attempts = 0;
        wait_again(reads, read);
    } else if (status == K3HUF_PORT_OK) {
        release(reads, read);
    } else if (reads->given_up != K3HUF_PORT_OK || status == K3HUF_PORT_E_ABSENT ||
               status == K3HUF_PORT_E_NOT_PROVIDED) {
        give_up(reads, read, status);
    } else if (++read->attempts < reads->attempts_max) {
        reads->retries++;
        wait_again(reads, read);
    } else if (status == K3HUF_PORT_E_MEDIA && read->blocks > 1) {
        read->locating = true;
        read->end = read->first + read->blocks;
        read->blocks = 1;
        read->attempts = 0;
        reads->retries++;
        wait_again(reads, read);
    } else {
        /* A drive that leaves a read unanswered that often would do so to all that wait, one after the other. */
        if (status == K3HUF_PORT_E_TIMEOUT) { reads->given_up = status; }
        give_up(reads, read, status);
    }
}

static bool collect(struct k3huf_reads *reads) {
    struct k3huf_port_read done[K3HUF_INFLIGHT_READS];
    const uint32_t n = reads->port->storage_poll(reads->port->context, done, K3HUF_INFLIGHT_READS);
    for (uint32_t i = 0; i < n; i++) {
        /* A device that reports what is not outstanding is not believed. */
        if (done[i].tag < reads->tags && reads->read[done[i].tag].state == K3HUF_READ_OUT) {
            finish(reads, &reads->read[done[i].tag], done[i].status);
        }
    }
    return n > 0;
}

/* Cut the next read from the spans in the queue, as long as there are free ones. */
static void cut(struct k3huf_reads *reads) {
    const struct k3huf_port_limits *const limits = &reads->port->limits;
    const uint32_t most = limits->max_transfer_bytes / limits->lba_bytes;
    for (uint32_t tag = 0; tag < reads->tags; tag++) {
        struct k3huf_read *const read = &reads->read[tag];
        while (reads->queue_head != reads->queue_tail &&
               reads->queue[reads->queue_head % K3HUF_READS_SPANS]->submitted ==
                   reads->queue[reads->queue_head % K3HUF_READS_SPANS]->blocks) {
            reads->queue_head++;
        }
        if (reads->queue_head == reads->queue_tail) { return; }
        if (read->state != K3HUF_READ_FREE) { continue; }
        struct k3huf_read_span *const span = reads->queue[reads->queue_head % K3HUF_READS_SPANS];
        const uint32_t left = span->blocks - span->submitted;
        read->span = span;
        read->first = span->submitted;
        read->blocks = left < most ? left : most;
        read->attempts = 0;
        read->locating = false;
        span->submitted += read->blocks;
        span->outstanding++;
        reads->live++;
        wait_again(reads, read);
    }
}

static bool submit(struct k3huf_reads *reads) {
    const struct k3huf_port *const port = reads->port;
    bool any = false;
    for (uint32_t tag = 0; tag < reads->tags; tag++) {
        struct k3huf_read *const read = &reads->read[tag];
        if (read->state != K3HUF_READ_WAITING) { continue; }
        uint8_t *const to = read->span->buffer + (size_t)read->first * port->limits.lba_bytes;
        const enum k3huf_port_status status =
            reads->given_up != K3HUF_PORT_OK
                ? reads->given_up
                : port->storage_submit(port->context, read->span->lba + read->first, read->blocks, to, tag);
        if (status == K3HUF_PORT_BUSY) { break; }
        any = true;
        if (status == K3HUF_PORT_OK) {
            read->state = K3HUF_READ_OUT;
            read->since = port->ticks(port->context);
            reads->reads++;
            reads->blocks += read->blocks;
        } else {
            finish(reads, read, status);
        }
    }
    return any;
}

/* One read overdue, going out or coming back: reset the drive, and everything outstanding has failed once. */
static bool look_at_time(struct k3huf_reads *reads) {
    const struct k3huf_port *const port = reads->port;
    if (reads->live == 0) { return false; }
    const uint64_t now = port->ticks(port->context);
    bool overdue = false;
    for (uint32_t tag = 0; tag < reads->tags; tag++) {
        const struct k3huf_read *const read = &reads->read[tag];
        overdue = overdue || (read->state != K3HUF_READ_FREE && now - read->since > reads->timeout);
    }
    if (!overdue) { return false; }
    reset(reads);
    for (uint32_t tag = 0; tag < reads->tags; tag++) {
        if (reads->read[tag].state != K3HUF_READ_FREE) { finish(reads, &reads->read[tag], K3HUF_PORT_E_TIMEOUT); }
    }
    return true;
}

bool k3huf_reads_step(struct k3huf_reads *reads) {
    bool any = collect(reads);
    cut(reads);
    any = submit(reads) || any;
    return look_at_time(reads) || any;
}
