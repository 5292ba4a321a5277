/* reads.h - storage reads of the in-flight engine: spans of logical blocks in, whole buffers or a failed block out.
 * Private to port/. Runs on core 0 alone. Knows nothing of runs and jobs.
 *
 * A span is cut into reads of what the drive takes at once. A read that fails is tried again a bounded number of times;
 * one of several blocks that still fails is then read block by block, so that the block at fault is known. A read that
 * is not answered in time costs a reset of the drive, and all outstanding reads an attempt. With the last attempt, or a
 * reset that fails, the drive is given up until the next job: what waits is not read.
 */
#ifndef K3HUF_READS_H
#define K3HUF_READS_H

#include "k3huf_port.h"

/* Reads outstanding at most; the drive's queue depth may be less. */
#ifndef K3HUF_INFLIGHT_READS
#define K3HUF_INFLIGHT_READS 32u
#endif

/* Spans that may wait to be read: as many as there are in the engine. */
#define K3HUF_READS_SPANS 64u

/* One stretch of the drive and the buffer it goes to. Its owner keeps it in place until k3huf_span_done(). */
struct k3huf_read_span {
    uint8_t *buffer; /* 4096-byte aligned, blocks x lba_bytes long */
    uint64_t lba;
    uint32_t blocks;
    uint32_t skip;   /* bytes of the buffer before those wanted */
    uint32_t size;   /* bytes wanted */
    uint64_t offset; /* where in the run those begin; the owner's */

    enum k3huf_port_status status; /* K3HUF_PORT_OK, or what ended it */
    uint64_t bad_lba;              /* the first block that could not be read */
    uint32_t submitted;            /* blocks handed to reads */
    uint32_t outstanding;          /* reads not finished */
};

enum k3huf_read_state { K3HUF_READ_FREE, K3HUF_READ_WAITING, K3HUF_READ_OUT };

struct k3huf_read {
    enum k3huf_read_state state;
    struct k3huf_read_span *span;
    uint32_t first; /* block of the span */
    uint32_t blocks;
    uint32_t attempts; /* that failed */
    bool locating;     /* going block by block, up to `end` */
    uint32_t end;
    uint64_t since; /* ticks when it came to wait or went out */
};

struct k3huf_reads {
    const struct k3huf_port *port;
    uint32_t attempts_max;
    uint64_t timeout;                /* ticks */
    uint32_t tags;                   /* reads of the array in use */
    enum k3huf_port_status given_up; /* the drive is, until the next job, and why; K3HUF_PORT_OK: it is not */
    struct k3huf_read read[K3HUF_INFLIGHT_READS];
    struct k3huf_read_span *queue[K3HUF_READS_SPANS]; /* spans not yet wholly handed to reads */
    uint32_t queue_head, queue_tail;
    uint32_t live;    /* reads that are not free */
    uint32_t reads;   /* counted: submitted */
    uint64_t blocks;  /* counted: logical blocks of those */
    uint32_t retries; /* counted: attempts beyond the first */
};

void k3huf_reads_init(struct k3huf_reads *reads, const struct k3huf_port *port, uint32_t attempts_max,
                      uint64_t timeout);

/* Before a job: bring a broken drive up again. false: it stays down. */
bool k3huf_reads_ready(struct k3huf_reads *reads);

/* Read a span: buffer, lba, blocks (at least 1) are set; all of it lies on the drive. */
void k3huf_reads_start(struct k3huf_reads *reads, struct k3huf_read_span *span);

/* Collect what is finished, submit what can be, look at time-outs. true: something was finished or submitted. */
bool k3huf_reads_step(struct k3huf_reads *reads);

/* Finished, one way or the other: nothing writes its buffer any more. On success the bytes can be read. */
static inline bool k3huf_span_done(const struct k3huf_read_span *span) {
    return span->submitted == span->blocks && span->outstanding == 0;
}

/* Nothing is outstanding or queued. */
static inline bool k3huf_reads_idle(const struct k3huf_reads *reads) {
    return reads->live == 0 && reads->queue_head == reads->queue_tail;
}

#endif
