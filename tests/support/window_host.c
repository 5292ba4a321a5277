/* window_host.c - see window_host.h. */
#include "window_host.h"

static void clear(const struct k3huf_window_host *host, uint64_t at, uint64_t size) {
    for (uint64_t end = at + size; at < end; at += 4) {
        k3huf_window_store(host->window, at, 0);
    }
}

static void store64(const struct k3huf_window_host *host, uint64_t at, uint64_t value) {
    k3huf_window_store(host->window, at, (uint32_t)value);
    k3huf_window_store(host->window, at + 4, (uint32_t)(value >> 32));
}

uint32_t k3huf_window_host_device(const struct k3huf_window_host *host, uint32_t field) {
    return k3huf_window_load(host->window, K3HUF_DEVICE_AT + field);
}

void k3huf_window_host_prepare(struct k3huf_window_host *host) {
    const struct k3huf_window *const w = host->window;
    clear(host, host->sq, (uint64_t)host->sq_entries * K3HUF_JOB_BYTES);
    clear(host, host->cq, (uint64_t)host->cq_entries * K3HUF_COMPLETION_BYTES);
    host->put = 0;
    host->taken = 0;
    k3huf_window_store(w, K3HUF_HOST_MAGIC, K3HUF_CONTROL_MAGIC);
    k3huf_window_store(w, K3HUF_HOST_VERSION, K3HUF_CONTROL_VERSION);
    store64(host, K3HUF_HOST_WINDOW, w->size);
    store64(host, K3HUF_HOST_SQ, host->sq);
    store64(host, K3HUF_HOST_CQ, host->cq);
    k3huf_window_store(w, K3HUF_HOST_SQ_ENTRIES, host->sq_entries);
    k3huf_window_store(w, K3HUF_HOST_CQ_ENTRIES, host->cq_entries);
    k3huf_window_store(w, K3HUF_HOST_CQ_TAKEN, 0);
}

void k3huf_window_host_begin(struct k3huf_window_host *host) {
    k3huf_window_store(host->window, K3HUF_HOST_SESSION, ++host->session);
}

void k3huf_window_host_submit(struct k3huf_window_host *host, const struct k3huf_job *job, uint32_t wrong) {
    uint8_t bytes[K3HUF_JOB_BYTES];
    const uint64_t at = host->sq + (uint64_t)(host->put % host->sq_entries) * K3HUF_JOB_BYTES;
    k3huf_job_put(bytes, job, k3huf_ring_phase(host->put, host->sq_entries));
    k3huf_put32(bytes + K3HUF_JOB_PART_OFFSET, k3huf_get32(bytes + K3HUF_JOB_PART_OFFSET) ^ wrong);
    for (uint32_t i = 0; i < K3HUF_JOB_BYTES; i += 4) { /* the phase word comes last */
        k3huf_window_store(host->window, at + i, k3huf_get32(bytes + i));
    }
    host->put++;
}

static uint64_t completion_at(const struct k3huf_window_host *host) {
    return host->cq + (uint64_t)(host->taken % host->cq_entries) * K3HUF_COMPLETION_BYTES;
}

bool k3huf_window_host_ready(const struct k3huf_window_host *host) {
    return k3huf_window_load(host->window, completion_at(host) + K3HUF_COMPLETION_PHASE) ==
           k3huf_ring_phase(host->taken, host->cq_entries);
}

void k3huf_window_host_take(struct k3huf_window_host *host, struct k3huf_completion *completion) {
    k3huf_completion_get(host->window->bytes + completion_at(host), completion);
    k3huf_window_store(host->window, K3HUF_HOST_CQ_TAKEN, ++host->taken);
}
