/* progress.h - one line on a terminal that says how far a long command is: share, rate and time left. Nothing on
 * anything but a terminal. Called on the main thread only. */
#ifndef K3HUF_HOST_PROGRESS_H
#define K3HUF_HOST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct k3huf_progress {
    bool on;
    const char *what; /* the caller's: a file's name */
    uint64_t total;   /* bytes of work */
    uint64_t done;
    double begin;
    double shown; /* when the line was last written */
};

/* Start: `wanted` is what the options say, and standard error must be a terminal. */
void k3huf_progress_begin(struct k3huf_progress *progress, const char *what, uint64_t total, bool wanted);

/* `bytes` more of the work are done. NULL does nothing. */
void k3huf_progress_add(struct k3huf_progress *progress, uint64_t bytes);

/* Take the line away. */
void k3huf_progress_end(struct k3huf_progress *progress);

#endif
