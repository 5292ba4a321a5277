/* posix_port.h - the platform "a POSIX system": a file is the drive, a mapped file the window, threads are the cores.
 * For tests at full speed, for sanitizers, and to try the host's side without a machine. It can slow reads down to a
 * given rate and let them fail.
 */
#ifndef K3HUF_POSIX_PORT_H
#define K3HUF_POSIX_PORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "k3huf_port.h"
#include "window.h"

#define K3HUF_POSIX_CORES 16u
#define K3HUF_POSIX_DEPTH 64u
#define K3HUF_POSIX_FAULTS 8u
#define K3HUF_POSIX_FOR_EVER UINT32_MAX

/* Reads that touch these logical blocks fail with `status`, `times` times. K3HUF_PORT_BUSY: they are never answered. */
struct k3huf_posix_fault {
    uint64_t lba, count;
    uint32_t times;
    enum k3huf_port_status status;
};

struct k3huf_posix_config {
    const char *image; /* NULL: no drive */
    const char *window;
    uint64_t window_create;         /* 0, or the size to give a window that does not exist */
    uint32_t cores;                 /* 1 ... K3HUF_POSIX_CORES */
    uint32_t lba_bytes;             /* 512 ... 4096 */
    uint32_t max_transfer_bytes;    /* of one read */
    uint32_t queue_depth;           /* 1 ... K3HUF_POSIX_DEPTH */
    double bytes_per_second;        /* of the drive; 0: as fast as the file is */
    double window_bytes_per_second; /* that each core can write to the window; 0: as fast as memory is */
    struct k3huf_posix_fault fault[K3HUF_POSIX_FAULTS]; /* those with count 0 are none */
    FILE *log;                                          /* NULL: log lines are dropped */
};

#define K3HUF_POSIX_DEFAULTS                                                                                           \
    { .cores = 1, .lba_bytes = 512, .max_transfer_bytes = 131072, .queue_depth = 32 }

struct k3huf_posix_read {
    uint64_t lba;
    uint32_t blocks;
    uint8_t *buffer;
    uint32_t tag;
    enum k3huf_port_status status;
    uint64_t since; /* ns */
};

struct k3huf_posix_core {
    struct k3huf_posix *platform;
    uint32_t number;
    bool started;
    pthread_t thread;
    k3huf_port_entry *entry;
    void *argument;
    uint64_t seen;    /* signals */
    uint64_t free_at; /* ns: when its paced path to the window is free again */
};

struct k3huf_posix {
    struct k3huf_port port; /* for the engine */
    struct k3huf_posix_config config;
    struct k3huf_window window;
    int image;
    uint64_t image_bytes; /* when it was opened; a last block that it does not fill has zeros behind its end */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t to_read, to_cores;
    pthread_t reader;
    bool closing, reading;
    uint64_t resets;
    uint64_t free_at; /* ns: when the paced drive is free again */
    struct k3huf_posix_read queue[K3HUF_POSIX_DEPTH], done[K3HUF_POSIX_DEPTH];
    uint32_t queued, finished;
    uint32_t outstanding; /* submitted and not polled, those that never answer included */
    uint64_t signals;
    uint32_t waiting; /* for to_cores */
    struct k3huf_posix_core core[K3HUF_POSIX_CORES];
};

/* Open files and start the reader. 0, or an errno value with *what naming the file. `posix` must stay in place. */
int k3huf_posix_open(struct k3huf_posix *posix, const struct k3huf_posix_config *config, const char **what);

/* End all threads (the engine's cores must have been let go: k3huf_inflight_finish()), close the files. */
void k3huf_posix_close(struct k3huf_posix *posix);

#endif
