/* jobs.h - the firmware's side of the job protocol: sessions, rings, checks, completions. Private to port/. Runs on
 * core 0 alone. Knows nothing of how a job is done. PROTOCOL.md says what the two sides do.
 */
#ifndef K3HUF_JOBS_H
#define K3HUF_JOBS_H

#include "k3huf_job.h"
#include "k3huf_port.h"

/* Jobs taken from the ring and not yet completed, at most. */
#ifndef K3HUF_INFLIGHT_JOBS
#define K3HUF_INFLIGHT_JOBS 16u
#endif

enum k3huf_record_state { K3HUF_RECORD_FREE, K3HUF_RECORD_QUEUED, K3HUF_RECORD_RUNNING, K3HUF_RECORD_DONE };

/* A job from the ring to its completion. */
struct k3huf_record {
    enum k3huf_record_state state;
    uint64_t order; /* of arrival while queued, of completion once done */
    struct k3huf_job job;
    struct k3huf_completion completion;
};

struct k3huf_jobs {
    const struct k3huf_port *port;
    uint32_t cores;
    uint32_t group_bytes;
    uint64_t host_timeout; /* ticks */
    uint64_t heartbeat_period;

    uint32_t state;   /* K3HUF_STATE_... */
    uint32_t session; /* last seen */
    bool shutdown;    /* asked for */
    bool cancel;      /* the running job is to end */
    bool orphan;      /* its session is over: nobody wants its completion */
    uint64_t window_bytes;
    uint64_t sq, cq; /* offsets of the rings */
    uint32_t sq_entries, cq_entries;
    uint64_t sq_taken, cq_put;
    uint32_t cq_taken;
    bool stuck; /* a completion finds no room */
    uint64_t stuck_since;
    uint64_t heartbeat_at;
    uint32_t heartbeat;
    uint32_t progress; /* KiB of the running job; whoever runs it keeps this up to date */
    uint64_t order;
    struct k3huf_record record[K3HUF_INFLIGHT_JOBS];
};

/* Publish the device area, and end a session that an earlier firmware left behind. `group_bytes` and `cores` are what
 * the device area tells the host. */
void k3huf_jobs_init(struct k3huf_jobs *jobs, const struct k3huf_port *port, uint32_t cores, uint32_t group_bytes,
                     uint64_t host_timeout);

/* Look at the window once: sessions, requests, new jobs; put out completions. true: something happened. */
bool k3huf_jobs_step(struct k3huf_jobs *jobs);

/* The next job to run, or NULL. At most one runs at a time. */
struct k3huf_record *k3huf_jobs_next(struct k3huf_jobs *jobs);

/* The running job has ended; its completion is filled in but for the id. */
void k3huf_jobs_done(struct k3huf_jobs *jobs, struct k3huf_record *record);

/* A shutdown was asked for and everything is answered: tell the host. true: stopped. */
bool k3huf_jobs_stop(struct k3huf_jobs *jobs);

#endif
