/* window_host.h - the host's side of the job protocol (port/PROTOCOL.md) in a mapped window, while an engine on threads
 * is at the other side. Checks nothing and waits for nothing: what must be there, and when, is for the test to say.
 * (Over a platform in memory: memory_port.h.) */
#ifndef K3HUF_TEST_WINDOW_HOST_H
#define K3HUF_TEST_WINDOW_HOST_H

#include <stdbool.h>

#include "k3huf_job.h"
#include "window.h"

struct k3huf_window_host {
    const struct k3huf_window *window;
    uint64_t sq, cq; /* offsets of the rings */
    uint32_t sq_entries, cq_entries;
    uint32_t session, put, taken;
};

/* A word of the device area. */
uint32_t k3huf_window_host_device(const struct k3huf_window_host *host, uint32_t field);

/* Clear the rings and fill in the host area, all but the session. */
void k3huf_window_host_prepare(struct k3huf_window_host *host);
/* Write the next session's number. */
void k3huf_window_host_begin(struct k3huf_window_host *host);

/* Put a job into the ring, which must have room; `wrong`: bits to flip in its last word but the phase, mostly 0. */
void k3huf_window_host_submit(struct k3huf_window_host *host, const struct k3huf_job *job, uint32_t wrong);
/* Is there a completion that was not taken? */
bool k3huf_window_host_ready(const struct k3huf_window_host *host);
/* Take the one that is ready. */
void k3huf_window_host_take(struct k3huf_window_host *host, struct k3huf_completion *completion);

#endif
