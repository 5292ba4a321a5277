/* jobs.c - see jobs.h. Freestanding. Every number that comes from the window is checked here, on a copy that is taken
 * once; nothing is looked at twice in shared memory. */
#include "jobs.h"

#include <stddef.h>

#define NOBODY 0u

/* ---- the window */

static bool window_get(const struct k3huf_jobs *jobs, uint64_t offset, void *to, size_t size) {
    return jobs->port->window_read(jobs->port->context, offset, to, size) == K3HUF_PORT_OK;
}

static bool window_put(const struct k3huf_jobs *jobs, uint64_t offset, const void *from, size_t size) {
    const struct k3huf_port *const port = jobs->port;
    const uint64_t begin = port->ticks(port->context);
    enum k3huf_port_status status = K3HUF_PORT_BUSY;
    port->cache_clean(port->context, from, size);
    while (status == K3HUF_PORT_BUSY && port->ticks(port->context) - begin <= jobs->host_timeout) {
        status = port->window_write(port->context, 0, offset, from, size);
    }
    return status == K3HUF_PORT_OK && port->window_flush(port->context, 0) == K3HUF_PORT_OK;
}

static bool window_put32(const struct k3huf_jobs *jobs, uint64_t offset, uint32_t value) {
    uint8_t bytes[4];
    k3huf_put32(bytes, value);
    return window_put(jobs, offset, bytes, sizeof bytes);
}

/* ---- the device area */

/* The status before the state: a host that sees its session closed asks why. */
static void tell_session(const struct k3huf_jobs *jobs, uint32_t status) {
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_STATUS, status);
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_STATE, jobs->state);
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_SQ_TAKEN, (uint32_t)jobs->sq_taken);
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_SESSION, jobs->session);
}

static void tell_device(const struct k3huf_jobs *jobs) {
    const struct k3huf_port_limits *const limits = &jobs->port->limits;
    uint8_t bytes[K3HUF_DEVICE_BYTES];
    for (uint32_t at = 0; at < sizeof bytes; at += 4) {
        k3huf_put32(bytes + at, 0);
    }
    k3huf_put32(bytes + K3HUF_DEVICE_VERSION, K3HUF_CONTROL_VERSION);
    k3huf_put32(bytes + K3HUF_DEVICE_STATE, jobs->state);
    k3huf_put32(bytes + K3HUF_DEVICE_CORES, jobs->cores);
    k3huf_put64(bytes + K3HUF_DEVICE_TICK_HZ, limits->tick_hz);
    k3huf_put64(bytes + K3HUF_DEVICE_LBA_COUNT, limits->lba_count);
    k3huf_put32(bytes + K3HUF_DEVICE_LBA_BYTES, limits->lba_bytes);
    k3huf_put32(bytes + K3HUF_DEVICE_GROUP, jobs->group_bytes);
    k3huf_put32(bytes + K3HUF_DEVICE_JOBS, K3HUF_INFLIGHT_JOBS - 1u);
    /* Word by word, for a host may be looking, and the magic last. */
    for (uint32_t at = 0; at < sizeof bytes; at += 4) {
        (void)window_put(jobs, K3HUF_DEVICE_AT + at, bytes + at, 4);
    }
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_MAGIC, K3HUF_CONTROL_MAGIC);
}

void k3huf_jobs_init(struct k3huf_jobs *jobs, const struct k3huf_port *port, uint32_t cores, uint32_t group_bytes,
                     uint64_t host_timeout) {
    jobs->port = port;
    jobs->cores = cores;
    jobs->group_bytes = group_bytes;
    jobs->host_timeout = host_timeout;
    jobs->heartbeat_period = port->limits.tick_hz / 20u;
    jobs->state = K3HUF_STATE_READY;
    jobs->session = NOBODY;
    jobs->shutdown = false;
    jobs->cancel = false;
    jobs->orphan = false;
    jobs->stuck = false;
    jobs->heartbeat_at = port->ticks(port->context);
    jobs->heartbeat = 0;
    jobs->progress = 0;
    jobs->order = 0;
    jobs->sq_taken = 0;
    jobs->cq_put = 0;
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        jobs->record[i].state = K3HUF_RECORD_FREE;
    }
    /* Jobs that an earlier firmware was given are not ours to run: a host that waits writes its session again. */
    (void)window_put32(jobs, K3HUF_HOST_SESSION, NOBODY);
    (void)window_put32(jobs, K3HUF_HOST_REQUEST, K3HUF_REQUEST_NONE);
    tell_device(jobs);
}

/* ---- sessions */

static bool inside(uint64_t offset, uint64_t size, uint64_t whole) { return offset <= whole && size <= whole - offset; }

/* Both spans lie inside the window, so that no sum wraps. */
static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    return a_size > 0 && b_size > 0 && a < b + b_size && b < a + a_size;
}

static bool ring_fits(const struct k3huf_jobs *jobs, uint64_t offset, uint32_t entries, uint32_t entry_bytes) {
    return entries >= 1u && entries <= K3HUF_RING_ENTRIES_MAX && offset % 64u == 0 && offset >= K3HUF_CONTROL_BYTES &&
           inside(offset, (uint64_t)entries * entry_bytes, jobs->window_bytes);
}

static bool control_good(struct k3huf_jobs *jobs, const uint8_t *host) {
    if (k3huf_get32(host + K3HUF_HOST_MAGIC) != K3HUF_CONTROL_MAGIC ||
        k3huf_get32(host + K3HUF_HOST_VERSION) != K3HUF_CONTROL_VERSION) {
        return false;
    }
    jobs->window_bytes = k3huf_get64(host + K3HUF_HOST_WINDOW);
    jobs->sq = k3huf_get64(host + K3HUF_HOST_SQ);
    jobs->cq = k3huf_get64(host + K3HUF_HOST_CQ);
    jobs->sq_entries = k3huf_get32(host + K3HUF_HOST_SQ_ENTRIES);
    jobs->cq_entries = k3huf_get32(host + K3HUF_HOST_CQ_ENTRIES);
    return jobs->window_bytes <= jobs->port->limits.window_bytes &&
           ring_fits(jobs, jobs->sq, jobs->sq_entries, K3HUF_JOB_BYTES) &&
           ring_fits(jobs, jobs->cq, jobs->cq_entries, K3HUF_COMPLETION_BYTES) &&
           !overlap(jobs->sq, (uint64_t)jobs->sq_entries * K3HUF_JOB_BYTES, jobs->cq,
                    (uint64_t)jobs->cq_entries * K3HUF_COMPLETION_BYTES);
}

/* Forget the session's jobs; the one that runs is told to end and its completion dropped. */
static void drop_jobs(struct k3huf_jobs *jobs) {
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        struct k3huf_record *const record = &jobs->record[i];
        if (record->state == K3HUF_RECORD_RUNNING) {
            jobs->cancel = true;
            jobs->orphan = true;
        } else {
            record->state = K3HUF_RECORD_FREE;
        }
    }
}

static void close_session(struct k3huf_jobs *jobs, uint32_t status) {
    drop_jobs(jobs);
    jobs->state = K3HUF_STATE_READY;
    tell_session(jobs, status);
}

static void open_session(struct k3huf_jobs *jobs, const uint8_t *host) {
    jobs->session = k3huf_get32(host + K3HUF_HOST_SESSION);
    jobs->sq_taken = 0;
    jobs->cq_put = 0;
    jobs->cq_taken = 0;
    jobs->stuck = false;
    jobs->state = K3HUF_STATE_READY;
    if (jobs->session == NOBODY) {
        tell_session(jobs, 0);
    } else if (!control_good(jobs, host)) {
        tell_session(jobs, K3HUF_JOB_E_CONTROL);
    } else {
        jobs->state = K3HUF_STATE_ATTACHED;
        tell_session(jobs, 0);
    }
}

/* ---- jobs */

static uint32_t check_source(const struct k3huf_jobs *jobs, const struct k3huf_job *job) {
    const struct k3huf_port_limits *const limits = &jobs->port->limits;
    if (limits->lba_count == 0) { return K3HUF_JOB_E_ABSENT; }
    if (job->lba >= limits->lba_count) { return K3HUF_JOB_E_SOURCE; }
    const uint64_t bytes = (limits->lba_count - job->lba) * limits->lba_bytes;
    return inside(job->offset, job->run_bytes, bytes) ? 0 : K3HUF_JOB_E_SOURCE;
}

static uint32_t check_destination(const struct k3huf_jobs *jobs, const struct k3huf_job *job) {
    if (!inside(job->destination, job->destination_bytes, jobs->window_bytes)) { return K3HUF_JOB_E_DESTINATION; }
    const bool bad =
        overlap(job->destination, job->destination_bytes, 0, K3HUF_CONTROL_BYTES) ||
        overlap(job->destination, job->destination_bytes, jobs->sq, (uint64_t)jobs->sq_entries * K3HUF_JOB_BYTES) ||
        overlap(job->destination, job->destination_bytes, jobs->cq,
                (uint64_t)jobs->cq_entries * K3HUF_COMPLETION_BYTES);
    return bad ? K3HUF_JOB_E_OVERLAP : 0;
}

static uint32_t check(const struct k3huf_jobs *jobs, const struct k3huf_job *job, const uint8_t *bytes) {
    if (job->kind < K3HUF_KIND_DECODE || job->kind > K3HUF_KIND_COPY ||
        (!k3huf_job_is_part(job->kind) && k3huf_get32(bytes + K3HUF_JOB_PART_OFFSET) != 0)) {
        return K3HUF_JOB_E_KIND;
    }
    if ((job->options & ~(K3HUF_OPTION_TRACE | K3HUF_OPTION_REQUIRE_INDEX)) != 0) { return K3HUF_JOB_E_OPTIONS; }
    if (job->kind == K3HUF_KIND_CANCEL) { return 0; }
    const uint32_t status = check_source(jobs, job);
    return status != 0 ? status : check_destination(jobs, job);
}

static void complete(struct k3huf_jobs *jobs, struct k3huf_record *record) {
    record->completion.id = record->job.id;
    record->completion.tick_hz = jobs->port->limits.tick_hz;
    record->state = K3HUF_RECORD_DONE;
    record->order = jobs->order++;
}

/* Complete without having begun. */
static void answer(struct k3huf_jobs *jobs, struct k3huf_record *record, uint32_t status) {
    k3huf_completion_clear(&record->completion);
    record->completion.status = status;
    complete(jobs, record);
}

/* Jobs under `id` end: false where there are none. */
static bool cancel(struct k3huf_jobs *jobs, uint64_t id) {
    bool found = false;
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        struct k3huf_record *const record = &jobs->record[i];
        if (record->job.id != id) { continue; }
        if (record->state == K3HUF_RECORD_QUEUED) {
            answer(jobs, record, K3HUF_JOB_E_CANCELLED);
            found = true;
        } else if (record->state == K3HUF_RECORD_RUNNING && !jobs->orphan) {
            jobs->cancel = true;
            found = true;
        }
    }
    return found;
}

static struct k3huf_record *free_record(struct k3huf_jobs *jobs) {
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        if (jobs->record[i].state == K3HUF_RECORD_FREE) { return &jobs->record[i]; }
    }
    return NULL;
}

/* Take one job from the submission ring. */
static bool take_job(struct k3huf_jobs *jobs) {
    struct k3huf_record *const record = free_record(jobs);
    if (record == NULL) { return false; }
    const uint64_t at = jobs->sq + jobs->sq_taken % jobs->sq_entries * K3HUF_JOB_BYTES;
    const uint32_t phase = k3huf_ring_phase(jobs->sq_taken, jobs->sq_entries);
    uint8_t word[4];
    uint8_t bytes[K3HUF_JOB_BYTES];
    /* The phase word first: the job's other bytes are there once it has turned, and window reads keep their order. */
    if (!window_get(jobs, at + K3HUF_JOB_PHASE, word, sizeof word) || (k3huf_get32(word) & 1u) != phase ||
        !window_get(jobs, at, bytes, sizeof bytes)) {
        return false;
    }
    if (k3huf_get32(word) > 1u || k3huf_get32(bytes + K3HUF_JOB_PHASE) != phase) {
        close_session(jobs, K3HUF_JOB_E_RING);
        return true;
    }
    jobs->sq_taken++;
    (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_SQ_TAKEN, (uint32_t)jobs->sq_taken);
    k3huf_job_get(bytes, &record->job);
    record->order = jobs->order++;
    const uint32_t status = check(jobs, &record->job, bytes);
    if (status != 0) {
        answer(jobs, record, status);
    } else if (record->job.kind == K3HUF_KIND_CANCEL) {
        /* The record is still free here, so that a job cannot find itself. */
        answer(jobs, record, cancel(jobs, record->job.lba) ? 0 : K3HUF_JOB_E_NOT_FOUND);
    } else {
        record->state = K3HUF_RECORD_QUEUED;
    }
    return true;
}

/* The first of all records in `state`. */
static struct k3huf_record *first(struct k3huf_jobs *jobs, enum k3huf_record_state state) {
    struct k3huf_record *found = NULL;
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        struct k3huf_record *const record = &jobs->record[i];
        if (record->state == state && (found == NULL || record->order < found->order)) { found = record; }
    }
    return found;
}

/* ---- completions */

/* Put out one completion. */
static bool put_completion(struct k3huf_jobs *jobs) {
    struct k3huf_record *const record = first(jobs, K3HUF_RECORD_DONE);
    if (record == NULL) {
        jobs->stuck = false;
        return false;
    }
    const uint32_t held = (uint32_t)jobs->cq_put - jobs->cq_taken;
    if (held > jobs->cq_entries) {
        close_session(jobs, K3HUF_JOB_E_RING);
        return true;
    }
    const uint64_t now = jobs->port->ticks(jobs->port->context);
    if (held == jobs->cq_entries) {
        if (!jobs->stuck) {
            jobs->stuck = true;
            jobs->stuck_since = now;
        } else if (now - jobs->stuck_since > jobs->host_timeout) {
            close_session(jobs, K3HUF_JOB_E_COMPLETIONS);
            return true;
        }
        return false;
    }
    jobs->stuck = false;
    const uint64_t at = jobs->cq + jobs->cq_put % jobs->cq_entries * K3HUF_COMPLETION_BYTES;
    const uint32_t phase = k3huf_ring_phase(jobs->cq_put, jobs->cq_entries);
    uint8_t bytes[K3HUF_COMPLETION_BYTES];
    k3huf_completion_put(bytes, &record->completion, phase);
    if (!window_put(jobs, at, bytes, K3HUF_COMPLETION_PHASE) ||
        !window_put(jobs, at + K3HUF_COMPLETION_PHASE, bytes + K3HUF_COMPLETION_PHASE, 4)) {
        close_session(jobs, K3HUF_JOB_E_WINDOW);
        return true;
    }
    jobs->cq_put++;
    record->state = K3HUF_RECORD_FREE;
    return true;
}

/* ---- the public calls */

static void beat(struct k3huf_jobs *jobs) {
    const uint64_t now = jobs->port->ticks(jobs->port->context);
    if (now - jobs->heartbeat_at >= jobs->heartbeat_period) {
        jobs->heartbeat_at = now;
        (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_PROGRESS, jobs->progress);
        (void)window_put32(jobs, K3HUF_DEVICE_AT + K3HUF_DEVICE_HEARTBEAT, ++jobs->heartbeat);
    }
}

static void shut_down(struct k3huf_jobs *jobs) {
    jobs->shutdown = true;
    for (uint32_t i = 0; i < K3HUF_INFLIGHT_JOBS; i++) {
        struct k3huf_record *const record = &jobs->record[i];
        if (record->state == K3HUF_RECORD_QUEUED) { answer(jobs, record, K3HUF_JOB_E_CANCELLED); }
        jobs->cancel = jobs->cancel || record->state == K3HUF_RECORD_RUNNING;
    }
}

bool k3huf_jobs_step(struct k3huf_jobs *jobs) {
    uint8_t host[K3HUF_HOST_BYTES];
    uint8_t word[4];
    bool any = false;
    beat(jobs);
    /* The session word before the rest: it is written last. */
    if (!window_get(jobs, K3HUF_HOST_SESSION, word, sizeof word) || !window_get(jobs, 0, host, sizeof host)) {
        return false;
    }
    if (k3huf_get32(word) != k3huf_get32(host + K3HUF_HOST_SESSION)) { return true; /* being written: next time */ }
    if (k3huf_get32(host + K3HUF_HOST_SESSION) != jobs->session) {
        if (jobs->state == K3HUF_STATE_ATTACHED) { close_session(jobs, 0); }
        if (!jobs->orphan) { /* otherwise the old session's job still writes: first it ends */
            open_session(jobs, host);
        }
        return true;
    }
    if (k3huf_get32(host + K3HUF_HOST_REQUEST) == K3HUF_REQUEST_SHUTDOWN &&
        k3huf_get32(host + K3HUF_HOST_MAGIC) == K3HUF_CONTROL_MAGIC && !jobs->shutdown) {
        shut_down(jobs);
        any = true;
    }
    if (jobs->state != K3HUF_STATE_ATTACHED) { return any; }
    jobs->cq_taken = k3huf_get32(host + K3HUF_HOST_CQ_TAKEN);
    if (!jobs->shutdown) {
        while (jobs->state == K3HUF_STATE_ATTACHED && take_job(jobs)) {
            any = true;
        }
    }
    while (jobs->state == K3HUF_STATE_ATTACHED && put_completion(jobs)) {
        any = true;
    }
    return any;
}

struct k3huf_record *k3huf_jobs_next(struct k3huf_jobs *jobs) {
    struct k3huf_record *const record = jobs->shutdown ? NULL : first(jobs, K3HUF_RECORD_QUEUED);
    if (record != NULL) {
        record->state = K3HUF_RECORD_RUNNING;
        jobs->cancel = false;
        jobs->orphan = false;
    }
    return record;
}

void k3huf_jobs_done(struct k3huf_jobs *jobs, struct k3huf_record *record) {
    if (jobs->orphan) {
        record->state = K3HUF_RECORD_FREE;
    } else {
        complete(jobs, record);
    }
    jobs->cancel = false;
    jobs->orphan = false;
}

bool k3huf_jobs_stop(struct k3huf_jobs *jobs) {
    if (!jobs->shutdown || first(jobs, K3HUF_RECORD_RUNNING) != NULL ||
        (jobs->state == K3HUF_STATE_ATTACHED && first(jobs, K3HUF_RECORD_DONE) != NULL)) {
        return false;
    }
    jobs->state = K3HUF_STATE_STOPPED;
    tell_session(jobs, 0);
    return true;
}
