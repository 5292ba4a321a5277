/* pipeline.h - work on several threads, results in order. The one place of the host tool with threads and locks.
 *
 * A job goes through three steps, or four, each with a slot of its own memory:
 *   plan   says what the next job is, and reads its bytes. One call at a time, in order, on any thread.
 *   work   computes. On any thread, side by side with everything else, but on no more threads at a time than asked for.
 *          Begun in order.
 *   take   uses the result, and writes. In order, on the thread that called k3huf_pipeline_run().
 *   check  looks at what was written. On any thread, side by side with everything else, and together with work on no
 *          more threads than asked for. Begun in order.
 *
 * So what only plan touches, and what only take touches, needs no lock; and a file is read in order, which the system's
 * reading ahead depends on. Reading goes ahead and writing behind even where one thread is asked for: then there are
 * two.
 */
#ifndef K3HUF_HOST_PIPELINE_H
#define K3HUF_HOST_PIPELINE_H

#include "fault.h"

enum k3huf_plan {
    K3HUF_PLAN_END,  /* there are no more jobs */
    K3HUF_PLAN_WAIT, /* the next job needs more memory than may be held: ask again once a job is done with */
    K3HUF_PLAN_JOB   /* the slot holds a job */
};

struct k3huf_pipeline {
    unsigned threads; /* 1 ... K3HUF_THREADS_MAX that work at a time */
    void *context;
    /* Put the next job into slot `slot`, with all that work needs. `held` is the sum of *bytes of all jobs that are not
     * yet done with; *bytes is what this one adds to it. Not K3HUF_PLAN_WAIT where held is 0. */
    enum k3huf_plan (*plan)(void *context, unsigned slot, uint64_t held, uint64_t *bytes);
    void (*work)(void *context, unsigned slot);
    /* Any code but K3HUF_EXIT_OK, of either, ends the pipeline: it is that of the first job with one, whatever the
     * number of threads, and what it leaves in the fault is what k3huf_pipeline_run() returns. */
    enum k3huf_exit (*take)(void *context, unsigned slot, struct k3huf_fault *fault);
    enum k3huf_exit (*check)(void *context, unsigned slot, struct k3huf_fault *fault); /* NULL: there is none */
};

#define K3HUF_THREADS_MAX 256u

/* Slots that a pipeline of that many threads uses, with or without a check: 0 ... k3huf_pipeline_slots() - 1. */
unsigned k3huf_pipeline_slots(unsigned threads, bool check);

/* Processors that this program may run on, at most K3HUF_THREADS_MAX. */
unsigned k3huf_pipeline_processors(void);

/* Run until there are no more jobs, or one fails. Threads are started as jobs come, so that little work costs none;
 * where the system has no more threads to give, fewer do the work, and a single one does all in turn. All of them have
 * ended on return. */
enum k3huf_exit k3huf_pipeline_run(const struct k3huf_pipeline *pipeline, struct k3huf_fault *fault);

#endif
