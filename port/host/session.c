/* session.c - see session.h. */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define SQ K3HUF_CONTROL_BYTES
#define CQ (SQ + K3HUF_SESSION_ENTRIES * K3HUF_JOB_BYTES)
#define ANSWER_NS (SECOND / 4u) /* after this long without an answer the session number is written again */

uint64_t k3huf_session_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void nap(void) {
    const struct timespec t = {.tv_nsec = 100000};
    (void)nanosleep(&t, NULL);
}

static uint32_t device32(const struct k3huf_session *s, uint32_t field) {
    return k3huf_window_load(&s->window, K3HUF_DEVICE_AT + field);
}
static uint64_t device64(const struct k3huf_session *s, uint32_t field) {
    return (uint64_t)device32(s, field) | (uint64_t)device32(s, field + 4u) << 32;
}
static void host32(const struct k3huf_session *s, uint32_t field, uint32_t value) {
    k3huf_window_store(&s->window, field, value);
}
static void host64(const struct k3huf_session *s, uint32_t field, uint64_t value) {
    host32(s, field, (uint32_t)value);
    host32(s, field + 4u, (uint32_t)(value >> 32));
}

/* Whether firmware writes, or once wrote, to this window. Until then it may be any file that was named by mistake, and
 * not a byte of it is touched. */
static bool is_window(const struct k3huf_session *s) {
    return device32(s, K3HUF_DEVICE_MAGIC) == K3HUF_CONTROL_MAGIC &&
           device32(s, K3HUF_DEVICE_VERSION) == K3HUF_CONTROL_VERSION;
}

/* Write `number` as the session until the firmware has seen it; one that starts clears it. An answer that lies in the
 * window from of old is none: where `living` is set, the heartbeat must change as well. */
static bool ask(struct k3huf_session *s, uint32_t number, bool living) {
    const uint64_t began = k3huf_session_now();
    uint64_t asked = 0;
    for (;;) {
        const uint64_t now = k3huf_session_now();
        const bool there = is_window(s);
        if (there && asked != 0 && device32(s, K3HUF_DEVICE_SESSION) == number &&
            (!living || device32(s, K3HUF_DEVICE_HEARTBEAT) != s->heartbeat)) {
            return true;
        }
        if (now - began > s->timeout_ns) { return false; }
        if (there && (asked == 0 || now - asked > ANSWER_NS)) {
            host32(s, K3HUF_HOST_SESSION, number);
            asked = now;
        }
        nap();
    }
}

static void clear_rings(const struct k3huf_session *s) {
    for (uint32_t at = SQ; at < CQ + K3HUF_SESSION_ENTRIES * K3HUF_COMPLETION_BYTES; at += 4) {
        host32(s, at, 0);
    }
}

static enum k3huf_exit attach(struct k3huf_session *s, struct k3huf_fault *fault) {
    s->heartbeat = device32(s, K3HUF_DEVICE_HEARTBEAT);
    /* First end whatever session there was, so that nobody looks at the rings while they are cleared. */
    if (!ask(s, 0, true)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "time-out: no firmware answers in this window");
    }
    clear_rings(s);
    host32(s, K3HUF_HOST_MAGIC, K3HUF_CONTROL_MAGIC);
    host32(s, K3HUF_HOST_VERSION, K3HUF_CONTROL_VERSION);
    host64(s, K3HUF_HOST_WINDOW, s->window.size);
    host64(s, K3HUF_HOST_SQ, SQ);
    host64(s, K3HUF_HOST_CQ, CQ);
    host32(s, K3HUF_HOST_SQ_ENTRIES, K3HUF_SESSION_ENTRIES);
    host32(s, K3HUF_HOST_CQ_ENTRIES, K3HUF_SESSION_ENTRIES);
    host32(s, K3HUF_HOST_CQ_TAKEN, 0);
    host32(s, K3HUF_HOST_REQUEST, K3HUF_REQUEST_NONE);
    for (uint32_t at = 52; at < K3HUF_HOST_BYTES; at += 4) {
        host32(s, at, 0);
    }
    /* Any number but the last one; two hosts at a time are not supported, two in a row are. */
    s->number = (uint32_t)k3huf_session_now() | 1u;
    if (!ask(s, s->number, false)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "time-out: the firmware does not take the session");
    }
    if (device32(s, K3HUF_DEVICE_STATE) != K3HUF_STATE_ATTACHED) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "the firmware refuses the session: %s",
                               k3huf_job_status_text(device32(s, K3HUF_DEVICE_STATUS)));
    }
    s->heartbeat = device32(s, K3HUF_DEVICE_HEARTBEAT);
    s->heartbeat_at = k3huf_session_now();
    s->device = (struct k3huf_device){.cores = device32(s, K3HUF_DEVICE_CORES),
                                      .lba_bytes = device32(s, K3HUF_DEVICE_LBA_BYTES),
                                      .group_bytes = device32(s, K3HUF_DEVICE_GROUP),
                                      .jobs = device32(s, K3HUF_DEVICE_JOBS),
                                      .tick_hz = device64(s, K3HUF_DEVICE_TICK_HZ),
                                      .lba_count = device64(s, K3HUF_DEVICE_LBA_COUNT)};
    if (s->device.lba_bytes == 0 || s->device.tick_hz == 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "the firmware says nothing sound about itself");
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_session_open(struct k3huf_session *session, const char *name, uint64_t create, double seconds,
                                   struct k3huf_fault *fault) {
    *session = (struct k3huf_session){.name = name, .timeout_ns = (uint64_t)(seconds * 1e9)};
    const int number = k3huf_window_open(&session->window, name, create);
    if (number == EINVAL) { return k3huf_fault_set(fault, K3HUF_EXIT_IO, name, NULL, "is too small for a window"); }
    if (number != 0) {
        errno = number;
        return k3huf_fault_errno(fault, name, "cannot be mapped");
    }
    if (session->window.size < K3HUF_SESSION_FREE) {
        k3huf_window_close(&session->window);
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, name, NULL, "is too small for a window");
    }
    const enum k3huf_exit code = attach(session, fault);
    if (code != K3HUF_EXIT_OK) { k3huf_session_close(session); }
    return code;
}

void k3huf_session_submit(struct k3huf_session *s, const struct k3huf_job *job) {
    uint8_t bytes[K3HUF_JOB_BYTES];
    const uint64_t at = SQ + s->put % K3HUF_SESSION_ENTRIES * K3HUF_JOB_BYTES;
    k3huf_job_put(bytes, job, k3huf_ring_phase(s->put, K3HUF_SESSION_ENTRIES));
    for (uint32_t i = 0; i < sizeof bytes; i += 4) { /* the phase word is the last */
        k3huf_window_store(&s->window, at + i, k3huf_get32(bytes + i));
    }
    if (s->put == s->taken) { s->waiting_since = k3huf_session_now(); }
    s->put++;
}

enum k3huf_exit k3huf_session_poll(struct k3huf_session *s, struct k3huf_completion *completion, bool *got,
                                   struct k3huf_fault *fault) {
    const uint64_t at = CQ + s->taken % K3HUF_SESSION_ENTRIES * K3HUF_COMPLETION_BYTES;
    const uint32_t phase = k3huf_ring_phase(s->taken, K3HUF_SESSION_ENTRIES);
    const uint64_t now = k3huf_session_now();
    *got = k3huf_window_load(&s->window, at + K3HUF_COMPLETION_PHASE) == phase;
    if (*got) {
        k3huf_completion_get(s->window.bytes + at, completion);
        s->taken++;
        s->waiting_since = now;
        host32(s, K3HUF_HOST_CQ_TAKEN, (uint32_t)s->taken);
        return K3HUF_EXIT_OK;
    }
    const uint32_t heartbeat = device32(s, K3HUF_DEVICE_HEARTBEAT);
    if (heartbeat != s->heartbeat) {
        s->heartbeat = heartbeat;
        s->heartbeat_at = now;
    }
    if (device32(s, K3HUF_DEVICE_SESSION) != s->number || device32(s, K3HUF_DEVICE_STATE) != K3HUF_STATE_ATTACHED) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "the firmware closed the session: %s",
                               k3huf_job_status_text(device32(s, K3HUF_DEVICE_STATUS)));
    }
    if (now - s->waiting_since > s->timeout_ns) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL,
                               "time-out: no completion for %.1f s; the firmware's last sign of life was %.1f s ago",
                               (double)(now - s->waiting_since) / 1e9, (double)(now - s->heartbeat_at) / 1e9);
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_session_wait(struct k3huf_session *session, struct k3huf_completion *completion,
                                   struct k3huf_fault *fault) {
    for (;;) {
        bool got = false;
        const enum k3huf_exit code = k3huf_session_poll(session, completion, &got, fault);
        if (code != K3HUF_EXIT_OK || got) { return code; }
        nap();
    }
}

uint32_t k3huf_session_progress(const struct k3huf_session *session) {
    return device32(session, K3HUF_DEVICE_PROGRESS);
}

enum k3huf_exit k3huf_session_shutdown(struct k3huf_session *s, struct k3huf_fault *fault) {
    const uint64_t began = k3huf_session_now();
    host32(s, K3HUF_HOST_REQUEST, K3HUF_REQUEST_SHUTDOWN);
    while (device32(s, K3HUF_DEVICE_STATE) != K3HUF_STATE_STOPPED) {
        if (k3huf_session_now() - began > s->timeout_ns) {
            return k3huf_fault_set(fault, K3HUF_EXIT_IO, s->name, NULL, "time-out: the firmware does not stop");
        }
        nap();
    }
    return K3HUF_EXIT_OK;
}

void k3huf_session_close(struct k3huf_session *session) {
    if (session->window.bytes != NULL) {
        if (is_window(session)) { host32(session, K3HUF_HOST_SESSION, 0); }
        k3huf_window_close(&session->window);
    }
}

/* ---- statuses as exit codes */

static enum k3huf_exit exit_of(uint32_t status) {
    if (status < K3HUF_STATUS_COUNT) { return K3HUF_EXIT_CORRUPT; }
    switch (status) {
    case K3HUF_JOB_E_SOURCE:
    case K3HUF_JOB_E_DESTINATION:
    case K3HUF_JOB_E_DESTINATION_SMALL:
    case K3HUF_JOB_E_PART: return K3HUF_EXIT_USAGE;
    case K3HUF_JOB_E_NO_INDEX: return K3HUF_EXIT_CORRUPT;
    case K3HUF_JOB_E_KIND:
    case K3HUF_JOB_E_OPTIONS:
    case K3HUF_JOB_E_OVERLAP: return K3HUF_EXIT_INTERNAL;
    default: return K3HUF_EXIT_IO;
    }
}

enum k3huf_exit k3huf_session_job_fault(const char *name, const struct k3huf_completion *c, struct k3huf_fault *fault) {
    const struct k3huf_place place = {c->stripe, c->block, c->offset};
    const char *text = k3huf_job_status_text(c->status);
    switch (c->status) { /* of the job, not of the drive */
    case K3HUF_JOB_E_KIND:
    case K3HUF_JOB_E_OPTIONS:
    case K3HUF_JOB_E_SOURCE:
    case K3HUF_JOB_E_DESTINATION:
    case K3HUF_JOB_E_OVERLAP:
    case K3HUF_JOB_E_CANCELLED:
    case K3HUF_JOB_E_TABLE:
    case K3HUF_JOB_E_ABSENT: return k3huf_fault_set(fault, exit_of(c->status), name, NULL, "%s", text);
    default: return k3huf_fault_set(fault, exit_of(c->status), name, &place, "%s (LBA %" PRIu64 ")", text, c->lba);
    }
}
