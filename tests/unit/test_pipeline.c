/* test_pipeline.c - jobs on several threads: each is planned, worked on, taken and checked once, planned and taken in
 * order, and the first failure in that order ends all, whatever the threads do. No more of them work or check at a time
 * than asked for; where that is one, jobs are read ahead of it and taken behind it. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "pipeline.h"

#define JOBS 500u

struct job {
    unsigned number;
    unsigned worked;
    unsigned taken;
};

struct jobs {
    unsigned count;
    unsigned fails; /* the take of that job fails, and of all after it */
    unsigned wrong; /* the same of checks */
    uint64_t bytes; /* of each job */
    uint64_t limit; /* of bytes held */
    unsigned planned, taken;
    unsigned waits;
    bool planning;
    atomic_uint working;
    atomic_uint most_working;
    atomic_uint checked[JOBS];
    struct job slot[3 * K3HUF_THREADS_MAX];
};

static enum k3huf_plan plan(void *context, unsigned slot, uint64_t held, uint64_t *bytes) {
    struct jobs *jobs = context;
    assert_false(jobs->planning); /* a data race here is what the thread sanitizer would find */
    jobs->planning = true;
    enum k3huf_plan said = K3HUF_PLAN_JOB;
    if (jobs->planned == jobs->count) {
        said = K3HUF_PLAN_END;
    } else if (held > 0 && held + jobs->bytes > jobs->limit) {
        jobs->waits++;
        said = K3HUF_PLAN_WAIT;
    } else {
        jobs->slot[slot] = (struct job){.number = jobs->planned++};
        *bytes = jobs->bytes;
    }
    jobs->planning = false;
    return said;
}

/* Jobs of very different lengths, so that they finish out of order. */
static void keep_busy(struct jobs *jobs, unsigned rounds) {
    volatile unsigned counter = 0;
    const unsigned now = atomic_fetch_add(&jobs->working, 1) + 1;
    for (unsigned most = atomic_load(&jobs->most_working);
         most < now && !atomic_compare_exchange_weak(&jobs->most_working, &most, now);) {}
    for (unsigned i = 0; i < rounds; i++) {
        counter = counter + 1;
    }
    (void)atomic_fetch_sub(&jobs->working, 1);
}

static void work(void *context, unsigned slot) {
    struct jobs *jobs = context;
    struct job *job = &jobs->slot[slot];
    keep_busy(jobs, job->number * 7919u % 2000u);
    job->worked++;
}

static enum k3huf_exit take(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct jobs *jobs = context;
    struct job *job = &jobs->slot[slot];
    if (job->number != jobs->taken || job->worked != 1 || job->taken != 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "job %u, where %u was due", job->number,
                               jobs->taken);
    }
    jobs->taken++;
    job->taken++;
    return job->number < jobs->fails
               ? K3HUF_EXIT_OK
               : k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, NULL, NULL, "job %u failed", job->number);
}

static enum k3huf_exit check(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct jobs *jobs = context;
    const struct job *job = &jobs->slot[slot];
    const unsigned number = job->number;
    keep_busy(jobs, number * 6007u % 3000u);
    if (job->number != number || job->taken != 1 || atomic_fetch_add(&jobs->checked[number], 1) != 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "job %u, which is not to be checked", number);
    }
    return number < jobs->wrong ? K3HUF_EXIT_OK
                                : k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, NULL, NULL, "job %u is wrong", number);
}

/* How many were checked: the first ones, each once. */
static unsigned checked(const struct jobs *jobs) {
    unsigned n = 0;
    while (n < JOBS && atomic_load(&jobs->checked[n]) == 1) {
        n++;
    }
    for (unsigned i = n; i < JOBS; i++) {
        assert_int_equal(atomic_load(&jobs->checked[i]), 0);
    }
    return n;
}

static const unsigned thread_counts[] = {1, 2, 3, 7, 32};

static enum k3huf_exit run(struct jobs *jobs, unsigned threads, bool checks, struct k3huf_fault *fault) {
    const struct k3huf_pipeline pipeline = {
        .threads = threads, .context = jobs, .plan = plan, .work = work, .take = take, .check = checks ? check : NULL};
    fault->code = K3HUF_EXIT_OK;
    fault->text[0] = '\0';
    const enum k3huf_exit code = k3huf_pipeline_run(&pipeline, fault);
    assert_int_equal(atomic_load(&jobs->working), 0);
    assert_true(atomic_load(&jobs->most_working) <= threads);
    return code;
}

static void every_job_once_and_in_order(void **state) {
    (void)state;
    for (size_t t = 0; t < UNIT_COUNT(thread_counts); t++) {
        for (unsigned count = 0; count <= JOBS; count = 2 * count + 1) {
            for (unsigned checks = 0; checks < 2; checks++) {
                struct jobs jobs = {.count = count, .fails = UINT32_MAX, .wrong = UINT32_MAX};
                struct k3huf_fault fault;
                assert_int_equal(run(&jobs, thread_counts[t], checks == 1, &fault), K3HUF_EXIT_OK);
                assert_string_equal(fault.text, "");
                assert_int_equal(jobs.planned, count);
                assert_int_equal(jobs.taken, count);
                assert_int_equal(checked(&jobs), checks == 1 ? count : 0);
            }
        }
    }
}

static void the_first_failure_wins(void **state) {
    (void)state;
    for (size_t t = 0; t < UNIT_COUNT(thread_counts); t++) {
        for (unsigned fails = 0; fails < JOBS; fails = 3 * fails + 1) {
            struct jobs jobs = {.count = JOBS, .fails = fails};
            struct k3huf_fault fault;
            char text[40];
            (void)snprintf(text, sizeof text, "job %u failed", fails);
            assert_int_equal(run(&jobs, thread_counts[t], false, &fault), K3HUF_EXIT_MISMATCH);
            assert_string_equal(fault.text, text);
            assert_int_equal(jobs.taken, fails + 1);
            assert_true(jobs.planned <= fails + 1 + k3huf_pipeline_slots(thread_counts[t], false));
        }
    }
}

/* What was written before a job that fails is still checked, all of it, and found wrong if it is: the same for any
 * number of threads. */
static void the_first_failure_wins_of_takes_and_checks(void **state) {
    (void)state;
    static const int apart[] = {-40, -3, -1, 0, 1, 2, 5, 40};
    for (size_t t = 0; t < UNIT_COUNT(thread_counts); t++) {
        for (unsigned fails = 0; fails < JOBS; fails = 3 * fails + 1) {
            for (size_t a = 0; a < UNIT_COUNT(apart); a++) {
                if ((int)fails + apart[a] < 0) { continue; }
                const unsigned wrong = (unsigned)((int)fails + apart[a]);
                struct jobs jobs = {.count = JOBS, .fails = fails, .wrong = wrong};
                struct k3huf_fault fault;
                char text[40];
                (void)snprintf(text, sizeof text, wrong < fails ? "job %u is wrong" : "job %u failed",
                               wrong < fails ? wrong : fails);
                assert_int_equal(run(&jobs, thread_counts[t], true, &fault), K3HUF_EXIT_MISMATCH);
                assert_string_equal(fault.text, text);
                assert_true(jobs.taken <= fails + 1);
                if (wrong < fails) {
                    assert_in_range(checked(&jobs), wrong + 1, jobs.taken);
                } else {
                    assert_int_equal(jobs.taken, fails + 1);
                    assert_int_equal(checked(&jobs), fails);
                }
            }
        }
    }
}

/* No more is held than there may be, and jobs larger than that come one at a time. */
static void memory_is_bounded(void **state) {
    (void)state;
    static const uint64_t limits[] = {1, 10, 25, 1000};
    for (size_t t = 0; t < UNIT_COUNT(thread_counts); t++) {
        for (size_t l = 0; l < UNIT_COUNT(limits); l++) {
            for (unsigned checks = 0; checks < 2; checks++) {
                struct jobs jobs = {
                    .count = JOBS, .fails = UINT32_MAX, .wrong = UINT32_MAX, .bytes = 10, .limit = limits[l]};
                struct k3huf_fault fault;
                assert_int_equal(run(&jobs, thread_counts[t], checks == 1, &fault), K3HUF_EXIT_OK);
                assert_int_equal(jobs.taken, JOBS);
                assert_true(jobs.waits <= 2 * JOBS + 4); /* no more often than there is a reason */
                assert_true(jobs.waits == 0 || limits[l] < 10 * k3huf_pipeline_slots(thread_counts[t], checks == 1));
            }
        }
    }
}

/* ------------------------------------------------------------------------------------- reading ahead, writing behind
 */

/* A job that waits, in work or in take, until another one has been planned or begun: with steps that alternate it would
 * wait for ever. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned planned;
    unsigned work_begun;
    bool take_waits; /* else work does */
    bool missed;
    unsigned number[3 * K3HUF_THREADS_MAX];
};

static void wait_for(struct meeting *meeting, const unsigned *count, unsigned wanted) {
    struct timespec until;
    (void)timespec_get(&until, TIME_UTC);
    until.tv_sec += 20;
    (void)pthread_mutex_lock(&meeting->lock);
    while (*count < wanted && !meeting->missed) {
        meeting->missed = pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until) != 0;
    }
    (void)pthread_mutex_unlock(&meeting->lock);
}

static void count_up(struct meeting *meeting, unsigned *count) {
    (void)pthread_mutex_lock(&meeting->lock);
    ++*count;
    (void)pthread_cond_broadcast(&meeting->changed);
    (void)pthread_mutex_unlock(&meeting->lock);
}

static enum k3huf_plan meeting_plan(void *context, unsigned slot, uint64_t held, uint64_t *bytes) {
    struct meeting *meeting = context;
    (void)held;
    (void)bytes;
    if (meeting->planned == JOBS) { return K3HUF_PLAN_END; }
    meeting->number[slot] = meeting->planned;
    count_up(meeting, &meeting->planned);
    return K3HUF_PLAN_JOB;
}

/* The first job is the caller's own, since many a pipeline has no second one. */
static bool in_the_middle(const struct meeting *meeting, unsigned slot) {
    return meeting->number[slot] > 0 && meeting->number[slot] + 1 < JOBS;
}

static void meeting_work(void *context, unsigned slot) {
    struct meeting *meeting = context;
    count_up(meeting, &meeting->work_begun);
    if (!meeting->take_waits && in_the_middle(meeting, slot)) {
        wait_for(meeting, &meeting->planned, meeting->number[slot] + 2);
    }
}

static enum k3huf_exit meeting_take(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct meeting *meeting = context;
    (void)fault;
    if (meeting->take_waits && in_the_middle(meeting, slot)) {
        wait_for(meeting, &meeting->work_begun, meeting->number[slot] + 2);
    }
    return K3HUF_EXIT_OK;
}

static void one_thread_overlaps(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct meeting meeting = {.take_waits = i == 1};
        struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
        const struct k3huf_pipeline pipeline = {
            .threads = 1, .context = &meeting, .plan = meeting_plan, .work = meeting_work, .take = meeting_take};
        assert_int_equal(pthread_mutex_init(&meeting.lock, NULL), 0);
        assert_int_equal(pthread_cond_init(&meeting.changed, NULL), 0);
        assert_int_equal(k3huf_pipeline_run(&pipeline, &fault), K3HUF_EXIT_OK);
        assert_false(meeting.missed);
        assert_int_equal(meeting.work_begun, JOBS);
        (void)pthread_cond_destroy(&meeting.changed);
        (void)pthread_mutex_destroy(&meeting.lock);
    }
}

static void processors_can_be_counted(void **state) {
    (void)state;
    assert_true(k3huf_pipeline_processors() >= 1);
    assert_true(k3huf_pipeline_processors() <= K3HUF_THREADS_MAX);
    assert_true(k3huf_pipeline_slots(1, false) > 2); /* one read, one at work, one taken */
    assert_true(k3huf_pipeline_slots(1, true) > 3);  /* and one checked */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_once_and_in_order),
        cmocka_unit_test(the_first_failure_wins),
        cmocka_unit_test(the_first_failure_wins_of_takes_and_checks),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(one_thread_overlaps),
        cmocka_unit_test(processors_can_be_counted),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
