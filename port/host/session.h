/* session.h - the host's side of the job protocol (k3huf_job.h, PROTOCOL.md): take over a window, put jobs in, take
 * completions out. Every wait has a time limit. Knows no files but the window, prints nothing.
 */
#ifndef K3HUF_HOST_SESSION_H
#define K3HUF_HOST_SESSION_H

#include "fault.h"
#include "k3huf_job.h"
#include "window.h"

#define K3HUF_SESSION_ENTRIES 64u /* of both rings */
/* The window's bytes from here on are free for destinations. */
#define K3HUF_SESSION_FREE                                                                                             \
    ((K3HUF_CONTROL_BYTES + K3HUF_SESSION_ENTRIES * (K3HUF_JOB_BYTES + K3HUF_COMPLETION_BYTES) + 4095u) / 4096u * 4096u)

/* What the firmware says of itself. */
struct k3huf_device {
    uint32_t cores, lba_bytes, group_bytes, jobs;
    uint64_t tick_hz, lba_count;
};

struct k3huf_session {
    const char *name; /* of the window, for messages */
    struct k3huf_window window;
    struct k3huf_device device;
    uint64_t timeout_ns;
    uint32_t number;
    uint64_t put, taken;
    uint32_t heartbeat;
    uint64_t heartbeat_at, waiting_since; /* ns */
};

/* Monotonic time in ns. */
uint64_t k3huf_session_now(void);

/* Map the window `name` (made `create` bytes large where it does not exist and `create` is not 0) and wait up to
 * `seconds` for the firmware to take the session; later waits have the same limit. Nothing is written to a window
 * before a firmware has. K3HUF_EXIT_IO on a fault, with nothing left open. */
enum k3huf_exit k3huf_session_open(struct k3huf_session *session, const char *name, uint64_t create, double seconds,
                                   struct k3huf_fault *fault);

/* Put one job into the ring. At most K3HUF_SESSION_ENTRIES jobs may be without completion. */
void k3huf_session_submit(struct k3huf_session *session, const struct k3huf_job *job);

/* Fetch a completion, if there is one (*got). K3HUF_EXIT_IO where the firmware closed the session, or none came within
 * the time limit since the last one, or since the first job was put in. */
enum k3huf_exit k3huf_session_poll(struct k3huf_session *session, struct k3huf_completion *completion, bool *got,
                                   struct k3huf_fault *fault);

/* Until the next completion comes, a short sleep between looks. */
enum k3huf_exit k3huf_session_wait(struct k3huf_session *session, struct k3huf_completion *completion,
                                   struct k3huf_fault *fault);

/* The fault of a job that failed: what, and where on the drive or in the run. */
enum k3huf_exit k3huf_session_job_fault(const char *name, const struct k3huf_completion *completion,
                                        struct k3huf_fault *fault);

/* KiB that the running job has in host memory. */
uint32_t k3huf_session_progress(const struct k3huf_session *session);

/* Ask the firmware to stop and wait until it says so. */
enum k3huf_exit k3huf_session_shutdown(struct k3huf_session *session, struct k3huf_fault *fault);

/* Give the session up (jobs that run are ended by the firmware) and unmap. */
void k3huf_session_close(struct k3huf_session *session);

#endif
