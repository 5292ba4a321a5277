/* memory_port.c - see memory_port.h. */
#include "memory_port.h"

#include <string.h>

static void fault(struct k3huf_memory *m, const char *text) {
    if (m->fault == NULL) m->fault = text;
}

/* ---- storage */

static bool in_flight(const struct k3huf_memory_read *read) { return read->used && !read->reported; }

static enum k3huf_port_status meet_fault(struct k3huf_memory *m, uint64_t lba, uint32_t blocks) {
    for (unsigned i = 0; i < K3HUF_MEMORY_FAULTS; i++) {
        struct k3huf_memory_fault *const f = &m->read_fault[i];
        if (f->times > 0 && lba < f->lba + f->count && f->lba < lba + blocks) {
            f->times -= f->times != K3HUF_MEMORY_FOR_EVER;
            return f->status;
        }
    }
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status storage_submit(void *context, uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag) {
    struct k3huf_memory *const m = context;
    const struct k3huf_port_limits *const limits = &m->port.limits;
    struct k3huf_memory_read *read = NULL;
    if (blocks == 0 || (uint64_t)blocks * limits->lba_bytes > limits->max_transfer_bytes)
        fault(m, "a read of no blocks, or of more than one transfer");
    if (lba >= limits->lba_count || blocks > limits->lba_count - lba) fault(m, "a read beyond the drive");
    if ((uintptr_t)buffer % limits->buffer_align != 0) fault(m, "an unaligned buffer");
    if (tag >= limits->queue_depth) fault(m, "a tag beyond the queue depth");
    if (m->fault != NULL) return K3HUF_PORT_E_ARGUMENT;
    uint32_t left = m->outstanding; /* to look at: the rest of the places is free, or reported */
    for (unsigned i = 0; i < K3HUF_MEMORY_READS && (left > 0 || read == NULL); i++) {
        if (in_flight(&m->read[i]) && left-- > 0 && m->read[i].tag == tag) fault(m, "a tag that is in use");
        if (!m->read[i].used && read == NULL) read = &m->read[i];
    }
    if (m->outstanding == limits->queue_depth || read == NULL) {
        fault(m, "more reads than the queue takes");
        return K3HUF_PORT_BUSY;
    }
    *read = (struct k3huf_memory_read){.used = true, .lba = lba, .blocks = blocks, .tag = tag, .buffer = buffer};
    read->order = m->order_next++;
    if (m->drive_free_at < m->time) m->drive_free_at = m->time;
    m->drive_free_at += (uint64_t)blocks * limits->lba_bytes * m->read_ns / 1024u;
    read->due = m->drive_free_at;
    read->status = meet_fault(m, lba, blocks);
    read->hangs = read->status == K3HUF_PORT_BUSY;
    m->hanging += read->hangs;
    m->submitted++;
    m->outstanding++;
    if (m->outstanding > m->most_outstanding) m->most_outstanding = m->outstanding;
    /* What the buffer holds until it is invalidated once more is anybody's guess. */
    memset(buffer, 0xEE, (size_t)blocks * limits->lba_bytes);
    return K3HUF_PORT_OK;
}

static struct k3huf_memory_read *choose(struct k3huf_memory *m) {
    struct k3huf_memory_read *chosen = NULL;
    unsigned n = 0;
    uint32_t left = m->outstanding - m->hanging;
    for (unsigned i = 0; i < K3HUF_MEMORY_READS && left > 0; i++) {
        struct k3huf_memory_read *const read = &m->read[i];
        if (!in_flight(read) || read->hangs) continue;
        left--;
        if (read->due > m->time) continue;
        n++;
        if (chosen == NULL || (m->order == K3HUF_ORDER_FIRST && read->order < chosen->order) ||
            (m->order == K3HUF_ORDER_LAST && read->order > chosen->order) ||
            (m->order == K3HUF_ORDER_RANDOM && k3huf_rng_below(&m->rng, n) == 0))
            chosen = read;
    }
    return chosen;
}

static uint32_t storage_poll(void *context, struct k3huf_port_read *done, uint32_t max) {
    struct k3huf_memory *const m = context;
    m->time += 1000;
    if (max == 0 || ++m->poll_count % m->polls != 0) return 0;
    struct k3huf_memory_read *const read = choose(m);
    if (read == NULL) return 0;
    done[0] = (struct k3huf_port_read){read->tag, read->status};
    m->outstanding--;
    read->reported = true;
    read->used = read->status == K3HUF_PORT_OK; /* only then bytes are still to show */
    return 1;
}

static enum k3huf_port_status storage_reset(void *context) {
    struct k3huf_memory *const m = context;
    m->resets++;
    for (unsigned i = 0; i < K3HUF_MEMORY_READS; i++) {
        if (!m->read[i].reported) m->read[i].used = false;
    }
    m->outstanding = 0;
    m->hanging = 0;
    m->drive_free_at = 0;
    return m->reset_fails ? K3HUF_PORT_E_DEVICE : K3HUF_PORT_OK;
}

/* ---- caches */

static void cache_clean(void *context, const void *address, size_t size) {
    struct k3huf_memory *const m = context;
    m->clean = address;
    m->clean_size = size;
}

static void cache_invalidate(void *context, void *address, size_t size) {
    struct k3huf_memory *const m = context;
    uint8_t *const begin = address;
    for (unsigned i = 0; i < K3HUF_MEMORY_READS; i++) {
        struct k3huf_memory_read *const read = &m->read[i];
        if (!read->used || !read->reported || read->buffer < begin || read->buffer >= begin + size) continue;
        memcpy(read->buffer, m->drive + read->lba * m->port.limits.lba_bytes,
               (size_t)read->blocks * m->port.limits.lba_bytes);
        read->used = false;
    }
}

/* ---- the window */

static enum k3huf_port_status window_read(void *context, uint64_t offset, void *to, size_t size) {
    struct k3huf_memory *const m = context;
    if (offset > m->window_size || size > m->window_size - offset) {
        fault(m, "a window read outside the window");
        return K3HUF_PORT_E_ARGUMENT;
    }
    memcpy(to, m->window + offset, size);
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status window_write(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    struct k3huf_memory *const m = context;
    if (core >= m->port.limits.core_count) fault(m, "a core that does not exist");
    if (offset > m->window_size || size > m->window_size - offset) {
        fault(m, "a window write outside the window");
        return K3HUF_PORT_E_ARGUMENT;
    }
    if (m->clean != from || m->clean_size < size)
        if (m->clean == NULL || (const uint8_t *)from < m->clean ||
            (const uint8_t *)from + size > m->clean + m->clean_size)
            fault(m, "a window write from memory that was not cleaned");
    if (m->window_busy > 0) {
        m->window_busy--;
        return K3HUF_PORT_BUSY;
    }
    if (m->window_fails && size > K3HUF_CONTROL_BYTES) return K3HUF_PORT_E_WINDOW;
    if (m->pending.size > 0) fault(m, "a second window write before the flush of the first");
    m->pending.offset = offset;
    m->pending.from = from;
    m->pending.size = size;
    m->time += (uint64_t)size * m->write_ns / 1024u;
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status window_flush(void *context, uint32_t core) {
    struct k3huf_memory *const m = context;
    (void)core;
    if (m->pending.size > 0) memcpy(m->window + m->pending.offset, m->pending.from, m->pending.size);
    m->pending.size = 0;
    return K3HUF_PORT_OK;
}

/* ---- cores, time, text */

static enum k3huf_port_status core_start(void *context, uint32_t core, k3huf_port_entry *entry, void *argument) {
    (void)context;
    (void)core;
    (void)entry;
    (void)argument;
    return K3HUF_PORT_E_CORE;
}

static void wait_core(void *context, uint32_t core) {
    struct k3huf_memory *const m = context;
    (void)core;
    /* As long as a wait may take where nothing can end it: no read comes back before the engine does something. */
    m->time += m->outstanding > 0 && m->outstanding == m->hanging ? 1000000 : 100000;
}

static void signal_cores(void *context) { (void)context; }

static uint64_t ticks(void *context) {
    struct k3huf_memory *const m = context;
    m->time += m->tick_step;
    return m->time;
}

static void log_line(void *context, const char *line) {
    struct k3huf_memory *const m = context;
    m->lines++;
    m->last_line[0] = '\0';
    strncat(m->last_line, line, sizeof m->last_line - 1);
}

void k3huf_memory_init(struct k3huf_memory *m, const uint8_t *drive, uint32_t lba_bytes, uint64_t lba_count,
                       uint8_t *window, uint64_t window_size) {
    memset(m, 0, sizeof *m);
    m->drive = drive;
    m->window = window;
    m->window_size = window_size;
    m->polls = 1;
    m->tick_step = 100;
    m->port = (struct k3huf_port){
        .context = m,
        .limits = {.lba_bytes = lba_bytes,
                   .lba_count = lba_count,
                   .max_transfer_bytes = 131072,
                   .buffer_align = lba_bytes, /* the most that a platform may ask for */
                   .queue_depth = 32,
                   .core_count = 1,
                   .window_bytes = window_size,
                   .tick_hz = 1000000000},
        .storage_submit = storage_submit,
        .storage_poll = storage_poll,
        .storage_reset = storage_reset,
        .cache_clean = cache_clean,
        .cache_invalidate = cache_invalidate,
        .window_read = window_read,
        .window_write = window_write,
        .window_flush = window_flush,
        .core_start = core_start,
        .wait = wait_core,
        .signal = signal_cores,
        .ticks = ticks,
        .log = log_line,
    };
}

/* ---- the host's side */

void k3huf_memory_attach(struct k3huf_memory_host *host, uint64_t sq, uint32_t sq_entries, uint64_t cq,
                         uint32_t cq_entries) {
    uint8_t *const window = host->memory->window;
    host->session++;
    host->sq = sq;
    host->sq_entries = sq_entries;
    host->cq = cq;
    host->cq_entries = cq_entries;
    host->put = 0;
    host->taken = 0;
    memset(window, 0, K3HUF_HOST_BYTES);
    memset(window + sq, 0, (size_t)sq_entries * K3HUF_JOB_BYTES);
    memset(window + cq, 0, (size_t)cq_entries * K3HUF_COMPLETION_BYTES);
    k3huf_put32(window + K3HUF_HOST_MAGIC, K3HUF_CONTROL_MAGIC);
    k3huf_put32(window + K3HUF_HOST_VERSION, K3HUF_CONTROL_VERSION);
    k3huf_put64(window + K3HUF_HOST_WINDOW, host->memory->window_size);
    k3huf_put64(window + K3HUF_HOST_SQ, sq);
    k3huf_put64(window + K3HUF_HOST_CQ, cq);
    k3huf_put32(window + K3HUF_HOST_SQ_ENTRIES, sq_entries);
    k3huf_put32(window + K3HUF_HOST_CQ_ENTRIES, cq_entries);
    k3huf_put32(window + K3HUF_HOST_SESSION, host->session);
}

void k3huf_memory_submit(struct k3huf_memory_host *host, const struct k3huf_job *job) {
    uint8_t *const at = host->memory->window + host->sq + host->put % host->sq_entries * K3HUF_JOB_BYTES;
    k3huf_job_put(at, job, k3huf_ring_phase(host->put, host->sq_entries));
    host->put++;
}

bool k3huf_memory_complete(struct k3huf_memory_host *host, struct k3huf_completion *completion) {
    uint8_t *const window = host->memory->window;
    const uint8_t *const at = window + host->cq + host->taken % host->cq_entries * K3HUF_COMPLETION_BYTES;
    if (k3huf_get32(at + K3HUF_COMPLETION_PHASE) != k3huf_ring_phase(host->taken, host->cq_entries)) return false;
    k3huf_completion_get(at, completion);
    host->taken++;
    k3huf_put32(window + K3HUF_HOST_CQ_TAKEN, (uint32_t)host->taken);
    return true;
}

uint32_t k3huf_memory_device(const struct k3huf_memory_host *host, uint32_t field) {
    return k3huf_get32(host->memory->window + K3HUF_DEVICE_AT + field);
}
