/* soak.c - the in-flight engine on POSIX threads for as long as wanted: random jobs, faults of drive and window, short
 * reads, damaged runs, cancels, sessions that end with jobs under way, and numbers of cores; this program is the host.
 *
 *   soak SECONDS [SEED]
 *
 * Every outcome is asserted: a job completes once, with a status that what was done to it allows and at a place that
 * fits; what is in its destination is right, group by group, and as much of it as the completion says; nothing else in
 * the window changes; a session's end leaves no job behind; and everything ends. The first thing that is not so ends
 * the program with a line that names the seed and the round. Built for the thread sanitizer.
 *
 * Here are rounds and sessions; what a session does is in jobs.c, what it does it on in platform.c and drive.c. */
#include "soak.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs.h"

struct soak_counts soak_count;

static uint64_t seed, round_number;
static struct k3huf_rng rng;

_Noreturn void soak_found(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)fflush(stdout);
    (void)fprintf(stderr, "soak: seed %llu, round %llu: ", (unsigned long long)seed, (unsigned long long)round_number);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\n");
    va_end(arguments);
    _Exit(1);
}

uint32_t soak_below(uint32_t bound) { return k3huf_rng_below(&rng, bound); }
bool soak_chance(uint32_t one_in) { return soak_below(one_in) == 0; }

double soak_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void soak_pause(void) {
    const struct timespec t = {.tv_nsec = 100000};
    (void)nanosleep(&t, NULL);
}

static void store(uint64_t at, uint32_t value) { k3huf_window_store(&soak_posix.window, at, value); }

/* ---- sessions */

/* The host goes away; nothing of its jobs happens from here on. */
static void detach(void) {
    store(K3HUF_HOST_SESSION, 0);
    soak_await_device(K3HUF_DEVICE_SESSION, 0);
    soak_jobs_abandon(true);
    soak_jobs_end(); /* what is in the rings now is nobody's */
    soak_faults_clear();
    soak_check_window();
}

static void attach(void) {
    const bool wrong = soak_chance(16);
    soak_host.sq_entries = 1u + soak_below(soak_chance(3) ? 2u : SOAK_RING_ENTRIES);
    soak_host.cq_entries = 1u + soak_below(soak_chance(3) ? 2u : SOAK_RING_ENTRIES);
    k3huf_window_host_prepare(&soak_host);
    if (wrong) {
        static const uint32_t fields[] = {K3HUF_HOST_MAGIC,   K3HUF_HOST_VERSION,    K3HUF_HOST_WINDOW + 4u,
                                          K3HUF_HOST_SQ,      K3HUF_HOST_SQ + 4u,    K3HUF_HOST_CQ,
                                          K3HUF_HOST_CQ + 4u, K3HUF_HOST_SQ_ENTRIES, K3HUF_HOST_CQ_ENTRIES};
        const uint32_t field = fields[soak_below(9)];
        store(field, k3huf_window_load(&soak_posix.window, field) ^
                         (field == K3HUF_HOST_SQ || field == K3HUF_HOST_CQ ? 1u : 0x10000u));
    }
    k3huf_window_host_begin(&soak_host);
    soak_await_device(K3HUF_DEVICE_SESSION, soak_host.session);
    const uint32_t state = soak_device(K3HUF_DEVICE_STATE), status = soak_device(K3HUF_DEVICE_STATUS);
    if (state != (wrong ? K3HUF_STATE_READY : K3HUF_STATE_ATTACHED) || status != (wrong ? K3HUF_JOB_E_CONTROL : 0)) {
        soak_found("a %s session: state %u, status %u", wrong ? "wrong" : "right", state, status);
    }
    if (wrong) {
        soak_count.refused_sessions++;
        detach();
        attach();
    } else {
        soak_jobs_begin();
        soak_count.sessions++;
    }
}

static bool closed(void) { return soak_device(K3HUF_DEVICE_STATE) != K3HUF_STATE_ATTACHED; }

/* The session is to be closed by the firmware with `status`. */
static void await_closed(uint32_t status) {
    soak_await_device(K3HUF_DEVICE_STATE, K3HUF_STATE_READY);
    if (soak_device(K3HUF_DEVICE_STATUS) != status) {
        soak_found("a session was closed with status %u instead of %u", soak_device(K3HUF_DEVICE_STATUS), status);
    }
}

/* Jobs in batches; then the session ends in one way or another. `shut`: with the engine. */
static void run_session(bool hang, bool shut, enum soak_leaving how) {
    attach();
    for (uint32_t batches = soak_below(4); batches > 0; batches--) {
        soak_faults_set(hang);
        /* Each read that is never answered takes its time. */
        for (uint32_t jobs = 1u + soak_below(soak_faults_lasting()->status == K3HUF_PORT_BUSY ? 3u : 12u); jobs > 0;
             jobs--) {
            soak_jobs_submit();
            if (soak_chance(3)) { (void)soak_jobs_take(); }
        }
        soak_jobs_await(soak_jobs_none_open, "a batch");
        soak_jobs_no_more();
        soak_faults_clear();
        soak_check_window();
    }
    if (how != LEAVE_DONE || shut) { /* some more jobs, which may be under way at the end */
        soak_faults_set(hang);
        for (uint32_t jobs = soak_below(9); jobs > 0; jobs--) {
            soak_jobs_submit();
        }
    }
    soak_count.left_by[how]++;
    if (how == LEAVE_PHASE) {
        soak_jobs_await(soak_jobs_ring_has_room, "room in the submission ring");
        store(SOAK_SQ + soak_host.put % soak_host.sq_entries * K3HUF_JOB_BYTES + K3HUF_JOB_PHASE,
              k3huf_ring_phase(soak_host.put, soak_host.sq_entries) | 2u << soak_below(31));
        soak_jobs_await(closed, "the end of a session"); /* it may take a while to get there */
        await_closed(K3HUF_JOB_E_RING);
    } else if (how == LEAVE_TAKEN) {
        soak_jobs_await(soak_jobs_none_open, "a session's end");
        store(K3HUF_HOST_CQ_TAKEN, soak_host.taken + 1u + soak_below(1000));
        const struct k3huf_job job = {.kind = K3HUF_KIND_CANCEL};
        k3huf_window_host_submit(&soak_host, &job, 0); /* what was taken is looked at when there is something to put */
        await_closed(K3HUF_JOB_E_RING);
    }
}

/* A host that takes no completions: those that there is room for are there, and the session is closed. */
static void full_session(void) {
    attach();
    for (uint32_t jobs = soak_host.cq_entries + 1u + soak_below(4); jobs > 0; jobs--) {
        soak_jobs_submit_untaken();
    }
    await_closed(K3HUF_JOB_E_COMPLETIONS);
    for (uint32_t i = 0; i < soak_host.cq_entries; i++) {
        if (!soak_jobs_take()) { soak_found("a full completion ring holds %u of %u", i, soak_host.cq_entries); }
    }
    soak_jobs_no_more();
    soak_count.left_by[LEAVE_FULL]++;
    detach();
}

/* ---- rounds */

static bool stopped(void) { return soak_device(K3HUF_DEVICE_STATE) == K3HUF_STATE_STOPPED; }

static void shut_down(void) {
    soak_jobs_allow_cancel();
    const uint32_t jobs = soak_host.put;
    store(K3HUF_HOST_REQUEST, K3HUF_REQUEST_SHUTDOWN);
    soak_jobs_await(stopped, "a shutdown");
    while (soak_jobs_take()) {}
    soak_jobs_no_more();
    /* Jobs that were taken from the ring have all completed. */
    const uint32_t left = jobs - soak_device(K3HUF_DEVICE_SQ_TAKEN);
    if (soak_jobs_open() > left) { soak_found("a shutdown lost %u jobs", soak_jobs_open() - left); }
    soak_jobs_abandon(false);
}

static void run_round(void) {
    const bool hang = soak_chance(16), full = !hang && soak_chance(16);
    const struct k3huf_inflight_config config = {.read_attempts = SOAK_ATTEMPTS,
                                                 .read_timeout_ms = hang ? 1500u : 60000u,
                                                 .host_timeout_ms = full ? 1500u : 60000u,
                                                 .poll_us = soak_chance(2) ? 100u : soak_below(2000)};
    soak_platform_open(&config);
    for (uint32_t sessions = full ? 0 : 1u + soak_below(3); sessions > 0; sessions--) {
        const uint32_t draw = soak_below(10);
        const enum soak_leaving how = draw < 4   ? LEAVE_JOBS
                                      : draw < 5 ? LEAVE_PHASE
                                      : draw < 6 ? LEAVE_TAKEN
                                                 : LEAVE_DONE;
        const bool shut = sessions == 1 && (how == LEAVE_DONE || how == LEAVE_JOBS) && soak_chance(2);
        run_session(hang, shut, how);
        if (shut) { break; }
        detach();
    }
    if (full) { full_session(); }
    shut_down();
    soak_faults_clear();
    soak_check_window();
    soak_platform_close();
    soak_count.rounds++;
}

static void print_counts(double took) {
    (void)printf("%llu rounds in %.0f s, seed %llu; cores", (unsigned long long)soak_count.rounds, took,
                 (unsigned long long)seed);
    for (uint32_t i = 1; i <= K3HUF_INFLIGHT_CORES; i++) {
        (void)printf(" %u: %llu%s", i, (unsigned long long)soak_count.cores[i], i < K3HUF_INFLIGHT_CORES ? "," : "\n");
    }
    const struct {
        const char *name;
        uint64_t n;
    } lines[] = {
        {"sessions", soak_count.sessions},
        {"sessions refused", soak_count.refused_sessions},
        {"left when all was done", soak_count.left_by[LEAVE_DONE]},
        {"left with jobs under way", soak_count.left_by[LEAVE_JOBS]},
        {"closed for a bad phase", soak_count.left_by[LEAVE_PHASE]},
        {"closed for too many taken", soak_count.left_by[LEAVE_TAKEN]},
        {"closed for none taken", soak_count.left_by[LEAVE_FULL]},
        {"jobs", soak_count.jobs},
        {"of them cancels", soak_count.cancels},
        {"cancels that found their job", soak_count.found},
        {"jobs that their session left", soak_count.abandoned},
        {"bytes to the window", soak_count.bytes},
        {"faults of reads", soak_count.read_faults},
        {"files cut off", soak_count.cut_files},
        {"reads that gave less", soak_count.short_reads},
        {"faults of the window", soak_count.window_faults},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        (void)printf("%12llu  %s\n", (unsigned long long)lines[i].n, lines[i].name);
    }
    (void)printf("completions by status\n");
    for (uint32_t i = 0; i < K3HUF_STATUS_COUNT; i++) {
        if (soak_count.core[i] > 0) {
            (void)printf("%12llu  %s\n", (unsigned long long)soak_count.core[i],
                         k3huf_status_text((enum k3huf_status)i));
        }
    }
    for (uint32_t i = 0; i < 32; i++) {
        if (soak_count.job[i] > 0) {
            (void)printf("%12llu  %s\n", (unsigned long long)soak_count.job[i],
                         k3huf_job_status_text(K3HUF_JOB_E_CONTROL + i));
        }
    }
}

int main(int argc, char **argv) {
    char *end = NULL, *seed_end = NULL;
    const double limit = argc > 1 ? strtod(argv[1], &end) : 0;
    seed = argc > 2 ? strtoull(argv[2], &seed_end, 10) : 1;
    if (!(limit > 0) || *end != '\0' || argc > 3 || (argc > 2 && (seed_end == argv[2] || *seed_end != '\0'))) {
        (void)fprintf(stderr, "usage: soak SECONDS [SEED]\n");
        return 2;
    }
    soak_drive_build(&soak_drive, seed);
    if (!soak_files_write()) { soak_found("files: %s", strerror(errno)); }
    const double began = soak_seconds();
    while (soak_seconds() - began < limit) {
        rng = (struct k3huf_rng){seed * 1000003u + ++round_number};
        run_round();
    }
    soak_files_remove();
    print_counts(soak_seconds() - began);
    uint64_t completions = 0;
    for (uint32_t i = 0; i < 32; i++) {
        completions += soak_count.job[i] + (i < K3HUF_STATUS_COUNT ? soak_count.core[i] : 0);
    }
    if (completions + soak_count.abandoned != soak_count.jobs) {
        soak_found("%llu jobs have gone", (unsigned long long)(soak_count.jobs - soak_count.abandoned - completions));
    }
#ifdef __SANITIZE_THREAD__
    const char *const tool = "soak, thread sanitizer";
#else
    const char *const tool = "soak";
#endif
    (void)printf("trust: %s | %.0f s of the transfer engine on 1 to %u cores: %llu jobs, %llu completions, %llu bytes, "
                 "%llu cancels, %llu faults, %llu sessions | none unexplained\n",
                 tool, soak_seconds() - began, K3HUF_INFLIGHT_CORES, (unsigned long long)soak_count.jobs,
                 (unsigned long long)completions, (unsigned long long)soak_count.bytes,
                 (unsigned long long)soak_count.cancels,
                 (unsigned long long)(soak_count.read_faults + soak_count.cut_files + soak_count.window_faults),
                 (unsigned long long)soak_count.sessions);
    soak_drive_free(&soak_drive);
    return 0;
}
