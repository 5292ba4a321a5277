/* pipeline.c - see pipeline.h. May not know what the jobs are. */
#include "pipeline.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_MAX (2u * K3HUF_THREADS_MAX)

struct state {
    const struct k3huf_pipeline *pipeline;
    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t changed; /* any of it */
    unsigned slots;
    unsigned free[SLOTS_MAX]; /* a stack: the slot last taken is used first, for its memory is at hand */
    unsigned free_count;
    unsigned order[SLOTS_MAX]; /* slot of job j at j % slots */
    bool done[SLOTS_MAX];      /* by slot: worked on */
    uint64_t bytes[SLOTS_MAX]; /* by slot */
    uint64_t held;
    uint64_t planned; /* jobs */
    uint64_t taken;
    bool planning; /* a plan is under way */
    bool waiting;  /* the last plan said K3HUF_PLAN_WAIT, when `taken` was waiting_at */
    uint64_t waiting_at;
    bool ended; /* nothing is to be planned any more */
};

unsigned k3huf_pipeline_slots(unsigned threads) {
    /* Twice the threads: while a result waits for its turn, its thread goes on. */
    return threads == 1 ? 1 : 2 * threads;
}

unsigned k3huf_pipeline_processors(void) {
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > (long)K3HUF_THREADS_MAX ? K3HUF_THREADS_MAX : (unsigned)n;
}

static bool may_plan(const struct state *state) {
    return !state->planning && !state->ended && state->free_count > 0 &&
           !(state->waiting && state->waiting_at == state->taken);
}

/* Plan a job; false: there was none. The lock is held before and after, not meanwhile. */
static bool plan(struct state *state, unsigned *slot) {
    const unsigned at = --state->free_count;
    const unsigned next = state->free[at];
    const uint64_t held = state->held;
    uint64_t bytes = 0;
    state->planning = true;
    state->waiting = false;
    state->waiting_at = state->taken;
    (void)pthread_mutex_unlock(&state->lock);
    const enum k3huf_plan said = state->pipeline->plan(state->pipeline->context, next, held, &bytes);
    (void)pthread_mutex_lock(&state->lock);
    state->planning = false;
    const bool job = said == K3HUF_PLAN_JOB && !state->ended;
    if (job) {
        state->order[state->planned % state->slots] = next;
        state->done[next] = false;
        state->bytes[next] = bytes;
        state->held += bytes;
        state->planned++;
        *slot = next;
    } else {
        /* Back to where it was, below slots taken meanwhile: those have memory already, this one may have none yet. */
        memmove(state->free + at + 1, state->free + at, (state->free_count - at) * sizeof state->free[0]);
        state->free[at] = next;
        state->free_count++;
        state->waiting = said == K3HUF_PLAN_WAIT;
        state->ended = state->ended || said == K3HUF_PLAN_END;
    }
    (void)pthread_cond_broadcast(&state->changed);
    return job;
}

static void work(struct state *state, unsigned slot) {
    (void)pthread_mutex_unlock(&state->lock);
    state->pipeline->work(state->pipeline->context, slot);
    (void)pthread_mutex_lock(&state->lock);
    state->done[slot] = true;
    (void)pthread_cond_broadcast(&state->changed);
}

static void *helper(void *argument) {
    struct state *state = argument;
    (void)pthread_mutex_lock(&state->lock);
    while (!state->ended) {
        unsigned slot = 0;
        if (!may_plan(state)) {
            (void)pthread_cond_wait(&state->changed, &state->lock);
        } else if (plan(state, &slot)) {
            work(state, slot);
        }
    }
    (void)pthread_mutex_unlock(&state->lock);
    return NULL;
}

/* Small stacks: a thread's memory is in its slots. */
static bool start(struct state *state, pthread_t *thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) { return false; }
    const bool good = pthread_attr_setstacksize(&attributes, (size_t)512 << 10) == 0 &&
                      pthread_create(thread, &attributes, helper, state) == 0;
    (void)pthread_attr_destroy(&attributes);
    return good;
}

/* Take the next result if it is there. The lock is held before and after, not meanwhile. */
static bool take(struct state *state, enum k3huf_exit *code, struct k3huf_fault *fault) {
    const unsigned slot = state->order[state->taken % state->slots];
    if (state->taken == state->planned || !state->done[slot]) { return false; }
    (void)pthread_mutex_unlock(&state->lock);
    *code = state->pipeline->take(state->pipeline->context, slot, fault);
    (void)pthread_mutex_lock(&state->lock);
    state->taken++;
    state->held -= state->bytes[slot];
    state->free[state->free_count++] = slot;
    state->ended = state->ended || *code != K3HUF_EXIT_OK;
    (void)pthread_cond_broadcast(&state->changed);
    return true;
}

enum k3huf_exit k3huf_pipeline_run(const struct k3huf_pipeline *pipeline, struct k3huf_fault *fault) {
    struct state state = {.pipeline = pipeline, .slots = k3huf_pipeline_slots(pipeline->threads)};
    pthread_t thread[K3HUF_THREADS_MAX];
    unsigned threads = 1; /* this one */
    unsigned most = pipeline->threads;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    (void)pthread_mutex_init(&state.lock, NULL);
    (void)pthread_cond_init(&state.changed, NULL);
    for (unsigned slot = state.slots; slot > 0; slot--) {
        state.free[state.free_count++] = slot - 1;
    }
    (void)pthread_mutex_lock(&state.lock);
    while (code == K3HUF_EXIT_OK && !(state.ended && !state.planning && state.taken == state.planned)) {
        unsigned slot = 0;
        if (take(&state, &code, fault)) { continue; }
        if (!may_plan(&state)) {
            (void)pthread_cond_wait(&state.changed, &state.lock);
        } else if (plan(&state, &slot)) {
            if (threads < most) {
                if (start(&state, &thread[threads])) {
                    threads++;
                } else {
                    most = threads;
                }
            }
            work(&state, slot);
        }
    }
    state.ended = true;
    (void)pthread_cond_broadcast(&state.changed);
    (void)pthread_mutex_unlock(&state.lock);
    while (threads > 1) {
        (void)pthread_join(thread[--threads], NULL);
    }
    (void)pthread_cond_destroy(&state.changed);
    (void)pthread_mutex_destroy(&state.lock);
    return code;
}
