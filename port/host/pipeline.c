/* pipeline.c - see pipeline.h. May not know what the jobs are. */
#include "pipeline.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* With one thread at work: what is read ahead, and what is to be written. */
#define SLOTS_OF_ONE 6u
#define SLOTS_MAX (3u * K3HUF_THREADS_MAX)

#define NONE UINT64_MAX

/* Where the job in a slot is. */
enum stage { STAGE_READ, STAGE_WORKING, STAGE_DONE };

struct state {
    const struct k3huf_pipeline *pipeline;
    pthread_mutex_t lock;       /* of all that follows */
    pthread_cond_t helpers_due; /* there is something for one of them to do, or for none ever again */
    pthread_cond_t caller_due;
    pthread_t helper[K3HUF_THREADS_MAX];
    unsigned helpers;
    unsigned helpers_most;
    unsigned helpers_asleep;
    bool caller_sleeps;
    unsigned slots;
    unsigned free[SLOTS_MAX]; /* a stack: the slot last done with is used first, for its memory is at hand */
    unsigned free_count;
    unsigned order[SLOTS_MAX];   /* slot of job j at j % slots */
    enum stage stage[SLOTS_MAX]; /* by slot */
    uint64_t bytes[SLOTS_MAX];   /* by slot */
    uint64_t held;
    uint64_t planned; /* jobs */
    uint64_t begun;   /* work on them, in order */
    uint64_t taken;
    uint64_t checks;  /* begun, in order; without a check as many as are taken */
    uint64_t done;    /* jobs, in no order */
    unsigned working; /* threads, on checks too */
    bool planning;    /* a plan is under way */
    bool waiting;     /* the last plan said K3HUF_PLAN_WAIT, when `done` was waiting_at */
    uint64_t waiting_at;
    bool ended;                /* nothing is to be planned any more */
    uint64_t failed_job;       /* the first one; NONE: none has. Else nothing is to be worked on or taken either */
    struct k3huf_fault *fault; /* of that job */
};

unsigned k3huf_pipeline_slots(unsigned threads, bool check) {
    /* Twice the threads: while a result waits for its turn, its thread goes on; and as many for what is checked. */
    return threads == 1 ? SLOTS_OF_ONE : check ? 3 * threads : 2 * threads;
}

unsigned k3huf_pipeline_processors(void) {
    cpu_set_t set;
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > (long)K3HUF_THREADS_MAX ? K3HUF_THREADS_MAX : (unsigned)n;
}

/* What there is to do. */
static bool may_plan(const struct state *state) {
    return !state->planning && !state->ended && state->free_count > 0 &&
           !(state->waiting && state->waiting_at == state->done);
}

/* Little is read ahead: whoever worked now would leave the others to wait. */
static bool should_plan(const struct state *state) {
    return may_plan(state) && state->planned - state->begun < state->pipeline->threads;
}

static bool may_work(const struct state *state) {
    return state->working < state->pipeline->threads && state->begun < state->planned && state->failed_job == NONE &&
           state->stage[state->order[state->begun % state->slots]] == STAGE_READ;
}

static bool may_take(const struct state *state) {
    return state->taken < state->planned && state->failed_job == NONE &&
           state->stage[state->order[state->taken % state->slots]] == STAGE_DONE;
}

/* Also after a job has failed, those before it: one of them may be the first. */
static bool may_check(const struct state *state) {
    return state->checks < state->taken && state->working < state->pipeline->threads &&
           state->checks <= state->failed_job;
}

/* There is nothing more for any thread to begin. */
static bool all_begun(const struct state *state) {
    return state->failed_job <= state->checks || (state->ended && !state->planning && state->checks == state->planned);
}

static bool all_done(const struct state *state) { return all_begun(state) && !state->planning && state->working == 0; }

/* Whether the caller's thread works as the others do. Where one thread is asked for there are two, and it does so only
 * for want of anything else: it reads ahead and takes, which writes, while the other computes. */
static bool caller_works(const struct state *state) { return state->pipeline->threads > 1 || state->helpers == 0; }

/* Wake whom there is something to do for; `idle`: the thread that says so is about to sleep or to end. To wake a thread
 * costs a good part of a job. So a caller that does not work sleeps until half of the slots are done with or free,
 * unless nobody else has anything to do. */
static void wake(struct state *state, bool idle) {
    const unsigned half = state->slots / 2;
    const bool any = idle || caller_works(state) || all_begun(state);
    if (state->caller_sleeps && ((may_take(state) && (any || state->begun - state->taken > half)) ||
                                 (may_plan(state) && (any || state->free_count > half)) ||
                                 ((may_work(state) || may_check(state)) && caller_works(state)) || all_done(state))) {
        state->caller_sleeps = false;
        (void)pthread_cond_signal(&state->caller_due);
    }
    if (state->helpers_asleep > 0 && all_begun(state)) {
        (void)pthread_cond_broadcast(&state->helpers_due);
    } else if (state->helpers_asleep > 0 && (may_check(state) || may_work(state) || may_plan(state))) {
        (void)pthread_cond_signal(&state->helpers_due);
    }
}

static void *helper(void *argument);

/* One thread more, if there may be. Small stacks: a thread's memory is in its slots. */
static void start(struct state *state) {
    pthread_attr_t attributes;
    if (state->helpers >= state->helpers_most) { return; }
    bool good = pthread_attr_init(&attributes) == 0;
    if (good) {
        good = pthread_attr_setstacksize(&attributes, (size_t)512 << 10) == 0 &&
               pthread_create(&state->helper[state->helpers], &attributes, helper, state) == 0;
        (void)pthread_attr_destroy(&attributes);
    }
    if (good) {
        state->helpers++;
    } else {
        state->helpers_most = state->helpers;
    }
}

/* The lock is held before and after, not meanwhile. */
static void plan(struct state *state) {
    const unsigned at = --state->free_count;
    const unsigned slot = state->free[at];
    const uint64_t held = state->held;
    uint64_t bytes = 0;
    state->planning = true;
    state->waiting = false;
    state->waiting_at = state->done;
    (void)pthread_mutex_unlock(&state->lock);
    const enum k3huf_plan said = state->pipeline->plan(state->pipeline->context, slot, held, &bytes);
    (void)pthread_mutex_lock(&state->lock);
    state->planning = false;
    if (said == K3HUF_PLAN_JOB && !state->ended) {
        state->order[state->planned % state->slots] = slot;
        state->stage[slot] = STAGE_READ;
        state->bytes[slot] = bytes;
        state->held += bytes;
        state->planned++;
        if (state->pipeline->threads > 1 || state->planned > 1) { start(state); }
    } else {
        /* Back to where it was, below slots taken meanwhile: those have memory already, this one may have none yet. */
        memmove(state->free + at + 1, state->free + at, (state->free_count - at) * sizeof state->free[0]);
        state->free[at] = slot;
        state->free_count++;
        state->waiting = said == K3HUF_PLAN_WAIT;
        state->ended = state->ended || said == K3HUF_PLAN_END;
    }
    wake(state, false);
}

/* The lock is held before and after, not meanwhile. */
static void work(struct state *state) {
    const unsigned slot = state->order[state->begun % state->slots];
    state->begun++;
    state->working++;
    state->stage[slot] = STAGE_WORKING;
    (void)pthread_mutex_unlock(&state->lock);
    state->pipeline->work(state->pipeline->context, slot);
    (void)pthread_mutex_lock(&state->lock);
    state->working--;
    state->stage[slot] = STAGE_DONE;
    wake(state, false);
}

static void done_with(struct state *state, unsigned slot) {
    state->done++;
    state->held -= state->bytes[slot];
    state->free[state->free_count++] = slot;
}

static void fail(struct state *state, uint64_t job, enum k3huf_exit code, const struct k3huf_fault *fault) {
    if (job < state->failed_job) {
        state->failed_job = job;
        *state->fault = *fault;
        state->fault->code = code;
    }
    state->ended = true;
}

/* Take the next result. The lock is held before and after, not meanwhile. */
static void take(struct state *state) {
    const unsigned slot = state->order[state->taken % state->slots];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    (void)pthread_mutex_unlock(&state->lock);
    const enum k3huf_exit code = state->pipeline->take(state->pipeline->context, slot, &fault);
    (void)pthread_mutex_lock(&state->lock);
    if (code != K3HUF_EXIT_OK) {
        fail(state, state->taken, code, &fault);
    } else {
        state->taken++;
        if (state->pipeline->check == NULL) {
            state->checks++;
            done_with(state, slot);
        }
    }
    wake(state, false);
}

/* The lock is held before and after, not meanwhile. */
static void check(struct state *state) {
    const uint64_t job = state->checks++;
    const unsigned slot = state->order[job % state->slots];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    state->working++;
    (void)pthread_mutex_unlock(&state->lock);
    const enum k3huf_exit code = state->pipeline->check(state->pipeline->context, slot, &fault);
    (void)pthread_mutex_lock(&state->lock);
    state->working--;
    if (code != K3HUF_EXIT_OK) { fail(state, job, code, &fault); }
    done_with(state, slot);
    wake(state, false);
}

static void *helper(void *argument) {
    struct state *state = argument;
    (void)pthread_mutex_lock(&state->lock);
    while (!all_begun(state)) {
        if (may_check(state)) {
            check(state);
        } else if (caller_works(state) && should_plan(state)) {
            plan(state);
        } else if (may_work(state)) {
            work(state);
        } else if (may_plan(state)) {
            plan(state);
        } else {
            state->helpers_asleep++;
            wake(state, true);
            (void)pthread_cond_wait(&state->helpers_due, &state->lock);
            state->helpers_asleep--;
        }
    }
    wake(state, true);
    (void)pthread_mutex_unlock(&state->lock);
    return NULL;
}

enum k3huf_exit k3huf_pipeline_run(const struct k3huf_pipeline *pipeline, struct k3huf_fault *fault) {
    struct state state = {.pipeline = pipeline,
                          .failed_job = NONE,
                          .fault = fault,
                          .helpers_most = pipeline->threads == 1 ? 1 : pipeline->threads - 1,
                          .slots = k3huf_pipeline_slots(pipeline->threads, pipeline->check != NULL)};
    (void)pthread_mutex_init(&state.lock, NULL);
    (void)pthread_cond_init(&state.helpers_due, NULL);
    (void)pthread_cond_init(&state.caller_due, NULL);
    for (unsigned slot = state.slots; slot > 0; slot--) {
        state.free[state.free_count++] = slot - 1;
    }
    (void)pthread_mutex_lock(&state.lock);
    while (!all_done(&state)) {
        if (may_take(&state)) {
            take(&state);
        } else if (may_check(&state) && caller_works(&state)) {
            check(&state);
        } else if (should_plan(&state)) {
            plan(&state);
        } else if (may_work(&state) && caller_works(&state)) {
            work(&state);
        } else if (may_plan(&state)) {
            plan(&state);
        } else if (may_check(&state)) {
            check(&state);
        } else if (may_work(&state)) {
            work(&state); /* all is read, and the other thread has not come to it */
        } else {
            state.caller_sleeps = true;
            wake(&state, true);
            while (state.caller_sleeps) {
                (void)pthread_cond_wait(&state.caller_due, &state.lock);
            }
        }
    }
    wake(&state, true);
    const unsigned helpers = state.helpers;
    (void)pthread_mutex_unlock(&state.lock);
    for (unsigned i = 0; i < helpers; i++) {
        (void)pthread_join(state.helper[i], NULL);
    }
    (void)pthread_cond_destroy(&state.caller_due);
    (void)pthread_cond_destroy(&state.helpers_due);
    (void)pthread_mutex_destroy(&state.lock);
    return state.failed_job == NONE ? K3HUF_EXIT_OK : fault->code;
}
