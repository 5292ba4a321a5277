/* soak.c - the in-flight engine on POSIX threads for as long as wanted: random jobs, faults of drive and window, short
 * reads, damaged runs, cancels, sessions that end with jobs under way, and numbers of cores; this program is the host.
 *
 *   soak SECONDS [SEED]
 *
 * Every outcome is asserted: a job completes once, with a status that what was done to it allows and at a place that
 * fits; what is in its destination is right, group by group, and as much of it as the completion says; nothing else in
 * the window changes; a session's end leaves no job behind; and everything ends. The first thing that is not so ends
 * the program with a line that names the seed and the round. Built for the thread sanitizer. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"
#include "inflight.h"
#include "posix_port.h"
#include "rng.h"

#define FILL 0x5Au
#define SQ 4096u
#define CQ (SQ + 32u * K3HUF_JOB_BYTES)
#define RINGS_END (CQ + 32u * K3HUF_COMPLETION_BYTES)
#define SLOTS 6u /* destinations */
#define SLOT_AT 65536u
#define SLOT_BYTES (SOAK_RAW_MAX + 16384u)
#define WINDOW_BYTES (SLOT_AT + SLOTS * SLOT_BYTES)
#define JOBS 64u          /* of a session under way */
#define WAIT_SECONDS 240u /* for anything: it is lost */
#define ATTEMPTS 4u

enum { MADE_DECODE, MADE_PART, MADE_LIST, MADE_CANCEL, MADE_REFUSED };

/* A job from submission to completion. */
struct work {
    bool open;
    int made;
    struct k3huf_job job;
    const struct soak_run *run; /* of a decode, part or copy job that is not refused */
    const uint8_t *want;        /* of a part or copy: what is to arrive */
    uint32_t slot;              /* SLOTS: none */
    uint32_t allowed[16], n;    /* statuses */
    bool cancelled;
};

static uint64_t seed, round_number;
static struct k3huf_rng rng;
static struct soak_drive drive;
static struct k3huf_inflight engine;
static struct k3huf_posix posix;
static char folder[32], image_name[48], window_name[48];
static pthread_t core0;
static enum k3huf_port_status ended;

static struct work works[JOBS];
static bool slot_used[SLOTS], attached;
static uint32_t session, sq_entries, cq_entries, put, taken, open_works;
static uint64_t next_id;

/* This batch's faults: the longest-lived one of the drive, and the window. */
static struct k3huf_posix_fault lasting; /* count 0: none */
static const struct soak_run *meeting;   /* a run that meets a fault of the drive, or NULL */
static uint64_t file_end;                /* the image file is this long now */
static atomic_bool window_dead;
static atomic_uint window_busy;
static bool core_fails[K3HUF_POSIX_CORES];
static enum k3huf_port_status (*real_write)(void *, uint32_t, uint64_t, const void *, size_t);
static enum k3huf_port_status (*real_start)(void *, uint32_t, k3huf_port_entry *, void *);

static struct {
    uint64_t rounds, cores[K3HUF_INFLIGHT_CORES + 1u], sessions, refused_sessions, jobs, cancels, found, abandoned;
    uint64_t bytes, read_faults, window_faults, cut_files, short_reads, left_by[5];
    uint64_t core[K3HUF_STATUS_COUNT], job[32];
} count;

static _Noreturn void found(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)fflush(stdout);
    (void)fprintf(stderr, "soak: seed %llu, round %llu: ", (unsigned long long)seed, (unsigned long long)round_number);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\n");
    va_end(arguments);
    _Exit(1);
}

static uint32_t below(uint32_t bound) { return k3huf_rng_below(&rng, bound); }
static bool chance(uint32_t one_in) { return below(one_in) == 0; }

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_a_little(void) {
    const struct timespec t = {.tv_nsec = 100000};
    (void)nanosleep(&t, NULL);
}

/* ---- what is put between engine and platform */

/* The file gives fewer bytes than asked for, and is interrupted. Called by the platform's reader alone. */
ssize_t __real_pread64(int fd, void *to, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off_t at) {
    static struct k3huf_rng own = {1};
    static uint64_t number;
    if (number++ % 8u == 7u) {
        errno = EINTR;
        return -1;
    }
    if (size > 1 && k3huf_rng_below(&own, 4) == 0) {
        size = 1u + k3huf_rng_below(&own, (uint32_t)size - 1u);
        count.short_reads++;
    }
    return __real_pread64(fd, to, size, at);
}

static enum k3huf_port_status write_window(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    if (offset >= SLOT_AT) {
        if (atomic_load(&window_dead)) { return K3HUF_PORT_E_WINDOW; }
        unsigned busy = atomic_load(&window_busy);
        while (busy > 0) {
            if (atomic_compare_exchange_weak(&window_busy, &busy, busy - 1u)) { return K3HUF_PORT_BUSY; }
        }
    }
    return real_write(context, core, offset, from, size);
}

static enum k3huf_port_status start_core(void *context, uint32_t core, k3huf_port_entry *entry, void *argument) {
    return core_fails[core] ? K3HUF_PORT_E_CORE : real_start(context, core, entry, argument);
}

/* ---- the window, as the host sees it */

static uint32_t load(uint64_t at) { return k3huf_window_load(&posix.window, at); }
static void store(uint64_t at, uint32_t value) { k3huf_window_store(&posix.window, at, value); }
static void store64(uint64_t at, uint64_t value) {
    store(at, (uint32_t)value);
    store(at + 4, (uint32_t)(value >> 32));
}
static uint32_t device(uint32_t field) { return load(K3HUF_DEVICE_AT + field); }

static void await_device(uint32_t field, uint32_t value) {
    const double until = seconds() + WAIT_SECONDS;
    while (device(field) != value) {
        if (seconds() > until) { found("device field %u stays %u instead of %u", field, device(field), value); }
        pause_a_little();
    }
}

static uint64_t slot_begin(uint32_t slot) { return SLOT_AT + (uint64_t)slot * SLOT_BYTES; }

static void check_fill(uint64_t begin, uint64_t end, const char *what) {
    static uint8_t fill[4096];
    if (fill[0] != FILL) { memset(fill, FILL, sizeof fill); }
    for (uint64_t at = begin; at < end;) {
        const size_t n = end - at < sizeof fill ? (size_t)(end - at) : sizeof fill;
        if (memcmp(posix.window.bytes + at, fill, n) != 0) {
            while (posix.window.bytes[at] == FILL) {
                at++;
            }
            found("%s: byte %llu of the window was written", what, (unsigned long long)at);
        }
        at += n;
    }
}

/* Nothing is under way and every destination is filled anew: all that no one may write is as it was. */
static void check_window(void) {
    check_fill(RINGS_END, WINDOW_BYTES, "between jobs");
    for (uint64_t at = K3HUF_DEVICE_AT + K3HUF_DEVICE_BYTES; at < K3HUF_CONTROL_BYTES; at++) {
        if (posix.window.bytes[at] != 0) { found("byte %u of the control block was written", (unsigned)at); }
    }
}

/* ---- what is in a destination */

/* `size` bytes at `at` that are to become `want` from the first on: how many are there, at least and at most (they may
 * be what was there before). */
static void written(const uint8_t *at, const uint8_t *want, size_t size, size_t *least, size_t *most) {
    *most = 0;
    *least = 0;
    if (memcmp(at, want, size) == 0) {
        *most = size;
    } else {
        while (at[*most] == want[*most]) {
            ++*most;
        }
    }
    for (size_t i = size; i > 0 && *least == 0; i--) {
        if (at[i - 1u] != FILL) { *least = i; }
    }
    if (*least > *most) { found("a destination has a wrong byte, 0x%02x instead of 0x%02x", at[*most], want[*most]); }
}

/* `size` bytes at `at` that become `want` in any order: how many are there, at least and at most. */
static void written_anyhow(const uint8_t *at, const uint8_t *want, size_t size, uint64_t *least, uint64_t *most) {
    for (size_t i = 0; i < size; i++) {
        if (at[i] != FILL && at[i] != want[i]) {
            found("a destination has a wrong byte, 0x%02x instead of 0x%02x", at[i], want[i]);
        }
        *least += at[i] != FILL;
        *most += at[i] == want[i];
    }
}

/* Check a decode job's destination group by group, and fill it again. */
static void check_destination(const struct work *w, uint64_t *least, uint64_t *most) {
    uint8_t *const to = posix.window.bytes + w->job.destination;
    const uint64_t slot = slot_begin(w->slot);
    uint64_t done = 0;
    size_t a, b;
    *least = 0;
    *most = 0;
    if (w->made == MADE_LIST) {
        done = drive.table_size < w->job.destination_bytes ? drive.table_size : w->job.destination_bytes;
        written(to, drive.image, (size_t)done, &a, &b);
        if (a > 0 && b < done) { found("a table of contents is there in part"); }
        *least = a;
        *most = b;
    }
    if (w->made == MADE_PART) {
        done = w->job.destination_bytes;
        written_anyhow(to, w->want, (size_t)done, least, most);
    }
    for (uint32_t s = 0; w->made == MADE_DECODE && w->run->raw_size <= w->job.destination_bytes && s < w->run->stripes;
         s++) {
        const uint64_t end = done + w->run->stripe_bytes[s];
        const uint64_t group = w->run->group_bytes[s] == 0 ? end - done : w->run->group_bytes[s];
        for (; done < end; done += group < end - done ? group : end - done) {
            const size_t size = (size_t)(group < end - done ? group : end - done);
            written(to + done, w->run->raw + done, size, &a, &b);
            if (w->run->group_bytes[s] != 0 && a > 0 && b < size) {
                found("%s: the group at byte %llu is there in part", w->run->name, (unsigned long long)done);
            }
            *least += a;
            *most += b;
        }
    }
    check_fill(slot, w->job.destination, "before a destination");
    check_fill(w->job.destination + done, slot + SLOT_BYTES, "behind what a job decodes");
    memset(to, FILL, (size_t)done);
}

/* ---- jobs */

static void allow(struct work *w, uint32_t status) { w->allowed[w->n++] = status; }

static bool allowed(const struct work *w, uint32_t status) {
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->allowed[i] == status) { return true; }
    }
    return false;
}

static void submit(const struct k3huf_job *job, uint32_t reserved) {
    uint8_t bytes[K3HUF_JOB_BYTES];
    const uint64_t at = SQ + put % sq_entries * K3HUF_JOB_BYTES;
    k3huf_job_put(bytes, job, k3huf_ring_phase(put, sq_entries));
    k3huf_put32(bytes + 56, reserved);
    for (uint32_t i = 0; i < K3HUF_JOB_BYTES; i += 4) { /* the phase word comes last */
        store(at + i, k3huf_get32(bytes + i));
    }
    put++;
}

static struct work *free_work(void) {
    for (uint32_t i = 0; i < JOBS; i++) {
        if (!works[i].open) { return &works[i]; }
    }
    return NULL;
}

static struct work *work_by_id(uint64_t id) {
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open && works[i].job.id == id) { return &works[i]; }
    }
    return NULL;
}

static void close_work(struct work *w) {
    if (w->slot < SLOTS) { slot_used[w->slot] = false; }
    w->open = false;
    open_works--;
}

static void count_status(uint32_t status) {
    if (status < K3HUF_STATUS_COUNT) {
        count.core[status]++;
    } else if (status >= K3HUF_JOB_E_CONTROL && status < K3HUF_JOB_E_CONTROL + 32u) {
        count.job[status - K3HUF_JOB_E_CONTROL]++;
    } else {
        found("status %u is none", status);
    }
}

static void check_place(const struct work *w, const struct k3huf_completion *c) {
    const bool fault = lasting.count > 0 && c->status >= K3HUF_JOB_E_ABSENT && c->status <= K3HUF_JOB_E_DRIVE;
    if (c->status == K3HUF_JOB_E_READ && fault && (c->lba < lasting.lba || c->lba - lasting.lba >= lasting.count)) {
        found("a bad block at %llu is reported at %llu", (unsigned long long)lasting.lba, (unsigned long long)c->lba);
    }
    if (w->run != NULL && w->run->status[0] != 0 && c->status == w->run->status[0] && c->stripe != w->run->bad_stripe) {
        found("%s: reported in stripe %d", w->run->name, (int)c->stripe);
    }
}

/* A completion is there: all that must hold of it. */
static void check_completion(const struct k3huf_completion *c) {
    struct work *const w = work_by_id(c->id);
    if (w == NULL) { found("a completion of id %llu, which waits for none", (unsigned long long)c->id); }
    const char *const name = w->run != NULL ? w->run->name : "no run";
    if (!allowed(w, c->status)) {
        found("%s, kind %u: \"%s\" at stripe %d, block %d, offset %llu, lba %llu, which nothing allows", name,
              w->job.kind, k3huf_job_status_text(c->status), (int)c->stripe, (int)c->block,
              (unsigned long long)c->offset, (unsigned long long)c->lba);
    }
    count_status(c->status);
    count.bytes += c->bytes;
    check_place(w, c);
    if (w->made == MADE_CANCEL) {
        struct work *const target = work_by_id(w->job.lba);
        if (c->status == K3HUF_JOB_E_NOT_FOUND && target != NULL) {
            found("a job is not found to be cancelled, and has not completed");
        }
        count.found += c->status == 0;
    }
    if (w->slot < SLOTS) {
        uint64_t least, most;
        check_destination(w, &least, &most);
        if (c->bytes < least || c->bytes > most) {
            found("%s: %llu bytes are said to be written, %llu are", name, (unsigned long long)c->bytes,
                  (unsigned long long)most);
        }
        const uint64_t whole = w->made == MADE_LIST   ? drive.table_size
                               : w->made == MADE_PART ? w->job.destination_bytes
                               : w->run != NULL       ? w->run->raw_size
                                                      : 0;
        if (c->status == 0 && c->bytes != whole) { found("%s: done with %u bytes", name, (unsigned)c->bytes); }
        if (c->status == 0 && w->job.kind == K3HUF_KIND_COPY &&
            c->crc != k3huf_crc32c(0, drive.image + w->run->at, (size_t)w->run->bytes)) {
            found("%s: copied with another CRC", name);
        }
    } else if (c->bytes != 0) {
        found("a job without destination wrote %llu bytes", (unsigned long long)c->bytes);
    }
    if (c->tick_hz != posix.port.limits.tick_hz) { found("ticks a second are %llu", (unsigned long long)c->tick_hz); }
    close_work(w);
}

static bool completion_ready(void) {
    return attached && load(CQ + taken % cq_entries * K3HUF_COMPLETION_BYTES + K3HUF_COMPLETION_PHASE) ==
                           k3huf_ring_phase(taken, cq_entries);
}

/* Take a completion, if there is one. */
static bool take(void) {
    struct k3huf_completion c;
    if (!completion_ready()) { return false; }
    k3huf_completion_get(posix.window.bytes + CQ + taken % cq_entries * K3HUF_COMPLETION_BYTES, &c);
    store(K3HUF_HOST_CQ_TAKEN, ++taken);
    check_completion(&c);
    return true;
}

static void await(bool (*done)(void), const char *what) {
    double until = seconds() + WAIT_SECONDS;
    while (!done()) {
        if (take()) {
            until = seconds() + WAIT_SECONDS;
        } else {
            if (seconds() > until) { found("%s: waited in vain, %u jobs under way", what, open_works); }
            pause_a_little();
        }
    }
}

static bool ring_has_room(void) { return put - device(K3HUF_DEVICE_SQ_TAKEN) < sq_entries; }
static bool slot_free(void) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!slot_used[i]) { return true; }
    }
    return false;
}
static bool work_free(void) { return free_work() != NULL; }
static bool none_open(void) { return open_works == 0; }
static bool stopped(void) { return device(K3HUF_DEVICE_STATE) == K3HUF_STATE_STOPPED; }

/* ---- what a job may come to */

static bool meets(const struct k3huf_job *job, uint64_t lba, uint64_t blocks) {
    const uint64_t size = posix.port.limits.lba_bytes, begin = job->lba * size + job->offset;
    return job->run_bytes > 0 && begin / size < lba + blocks && lba < (begin + job->run_bytes - 1u) / size + 1u;
}

/* Faults of this batch that a job meets: what it can come to instead of what it would. true: it must. */
static bool allow_faults(struct work *w, size_t raw_size) {
    bool must = false;
    if (lasting.count > 0 && meets(&w->job, lasting.lba, lasting.count)) {
        allow(w, lasting.status == K3HUF_PORT_E_MEDIA    ? K3HUF_JOB_E_READ
                 : lasting.status == K3HUF_PORT_E_ABSENT ? K3HUF_JOB_E_ABSENT
                 : lasting.status == K3HUF_PORT_BUSY     ? K3HUF_JOB_E_READ_TIMEOUT
                                                         : K3HUF_JOB_E_DRIVE);
        must = true;
    }
    if (atomic_load(&window_dead) && raw_size > 0) {
        allow(w, K3HUF_JOB_E_WINDOW);
        must = true;
    }
    return must;
}

static void expect_decode(struct work *w, bool cut, bool small) {
    const bool refused = w->run->plain && (w->job.options & K3HUF_OPTION_REQUIRE_INDEX) != 0;
    const bool must = allow_faults(w, w->run->raw_size);
    if (cut) { allow(w, K3HUF_E_TRUNCATED); }
    if (small) { allow(w, K3HUF_JOB_E_DESTINATION_SMALL); }
    if (refused) { allow(w, K3HUF_JOB_E_NO_INDEX); }
    if (w->run->status[0] == 0 && !must && !cut && !small && !refused) { allow(w, K3HUF_OK); }
    /* A destination that is too small is found out by the run header; so before it is only what is wrong there. */
    if (!small || w->run->bad_stripe == K3HUF_NO_STRIPE) {
        for (uint32_t i = 0; i < SOAK_STATUSES && w->run->status[i] != 0; i++) {
            allow(w, w->run->status[i]);
        }
    }
}

static struct work *open_work(int made) {
    await(work_free, "a free job");
    await(ring_has_room, "room in the submission ring");
    struct work *const w = free_work();
    *w = (struct work){.open = true, .made = made, .slot = SLOTS, .job = {.id = ++next_id}};
    open_works++;
    count.jobs++;
    return w;
}

static void give_slot(struct work *w, size_t least) {
    while (slot_used[w->slot = below(SLOTS)]) {}
    slot_used[w->slot] = true;
    const uint32_t room = SLOT_BYTES - 256u - (uint32_t)least;
    const uint32_t skip = 64u + below(chance(2) ? 4096u : 64u);
    w->job.destination = slot_begin(w->slot) + skip;
    w->job.destination_bytes = least + (chance(2) ? 0 : below(room - skip));
}

static void put_source(struct k3huf_job *job, uint64_t at, uint64_t bytes) {
    const uint32_t lba_bytes = posix.port.limits.lba_bytes;
    job->lba = at / lba_bytes;
    job->offset = at % lba_bytes;
    while (job->lba > 0 && chance(4)) { /* any block before will do */
        job->lba--;
        job->offset += lba_bytes;
    }
    job->run_bytes = bytes;
}

static void submit_decode(void) {
    await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_DECODE);
    w->run = meeting != NULL && chance(2) ? meeting : &drive.run[below(SOAK_RUNS)];
    const bool cut = chance(10), small = !cut && w->run->raw_size > 0 && chance(16);
    w->job.kind = K3HUF_KIND_DECODE;
    w->job.options = (chance(3) ? K3HUF_OPTION_REQUIRE_INDEX : 0) | (chance(8) ? K3HUF_OPTION_TRACE : 0);
    put_source(&w->job, w->run->at, w->run->bytes - (cut ? 1u + below((uint32_t)w->run->bytes) : 0));
    give_slot(w, w->run->raw_size);
    if (small) { w->job.destination_bytes = below((uint32_t)w->run->raw_size); }
    expect_decode(w, cut, small);
    submit(&w->job, 0);
}

/* Some of a sound run's raw bytes, or of its bytes as they are on the drive. */
static void submit_part(void) {
    await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_PART);
    while ((w->run = &drive.run[below(SOAK_RUNS)])->status[0] != 0) {}
    const bool copy = chance(2), beyond = chance(16);
    const size_t size = copy ? (size_t)w->run->bytes : w->run->raw_size;
    const uint32_t from = below((uint32_t)size + 1u);
    uint32_t wanted = below((uint32_t)size - from + 1u);
    if (wanted > SOAK_RAW_MAX) { wanted = SOAK_RAW_MAX; }
    w->job.kind = copy ? K3HUF_KIND_COPY : K3HUF_KIND_PART;
    w->job.options = chance(3) ? K3HUF_OPTION_REQUIRE_INDEX : 0;
    put_source(&w->job, w->run->at, w->run->bytes);
    give_slot(w, wanted);
    w->job.destination_bytes = wanted;
    w->job.from = beyond ? (uint64_t)size - wanted + 1u : from;
    w->want = (copy ? drive.image + w->run->at : w->run->raw) + from;
    /* A part may not come by a fault that its run has. */
    const bool must = !(copy && beyond) && allow_faults(w, wanted);
    if (beyond) {
        allow(w, K3HUF_JOB_E_PART);
    } else if (!copy || !must) {
        allow(w, K3HUF_OK);
    }
    if (!copy && w->run->plain && w->job.options != 0) { allow(w, K3HUF_JOB_E_NO_INDEX); }
    submit(&w->job, (uint32_t)w->job.offset);
}

static void submit_list(void) {
    await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_LIST);
    w->job.kind = K3HUF_KIND_LIST;
    give_slot(w, drive.table_size);
    w->job.run_bytes = drive.table_size;
    const bool must = allow_faults(w, drive.table_size), small = !must && chance(8);
    if (small) { w->job.destination_bytes = below(drive.table_size); }
    if (!must) { allow(w, small ? (uint32_t)K3HUF_JOB_E_DESTINATION_SMALL : 0); }
    submit(&w->job, 0);
}

/* A job that is refused before it begins; one fault at a time. */
static void submit_refused(void) {
    struct work *const w = open_work(MADE_REFUSED);
    const uint64_t blocks = posix.port.limits.lba_count;
    struct k3huf_job *const job = &w->job;
    uint32_t reserved = 0;
    job->kind = 1u + below(2);
    job->run_bytes = 1;
    job->destination = SLOT_AT;
    job->destination_bytes = 1;
    switch (below(9)) {
    case 0:
        job->kind = chance(2) ? 0 : 6u + below(1000);
        allow(w, K3HUF_JOB_E_KIND);
        break;
    case 1:
        reserved = 1u << below(32);
        allow(w, K3HUF_JOB_E_KIND);
        break;
    case 2:
        job->options = 4u << below(30);
        allow(w, K3HUF_JOB_E_OPTIONS);
        break;
    case 3:
        job->lba = blocks + below(2);
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 4:
        job->run_bytes = UINT64_MAX - below(2);
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 5:
        job->offset = drive.size;
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 6:
        job->destination = WINDOW_BYTES;
        allow(w, K3HUF_JOB_E_DESTINATION);
        break;
    case 7:
        job->destination_bytes = UINT64_MAX - SLOT_AT + below(9);
        allow(w, K3HUF_JOB_E_DESTINATION);
        break;
    default:
        job->destination = chance(3) ? 64u : chance(2) ? SQ + below(K3HUF_JOB_BYTES) : CQ + 1u;
        allow(w, K3HUF_JOB_E_OVERLAP);
    }
    submit(job, reserved);
}

static void submit_cancel(void) {
    struct work *const w = open_work(MADE_CANCEL);
    w->job.kind = K3HUF_KIND_CANCEL;
    w->job.lba =
        next_id - 1u - below(4); /* one of the last, or one that has been, or a cancel, which cannot be found */
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open && works[i].job.id == w->job.lba && works[i].made != MADE_CANCEL &&
            works[i].made != MADE_REFUSED && !works[i].cancelled) {
            works[i].cancelled = true;
            allow(&works[i], K3HUF_JOB_E_CANCELLED);
        }
    }
    allow(w, 0);
    allow(w, K3HUF_JOB_E_NOT_FOUND);
    count.cancels++;
    submit(&w->job, 0);
}

static void submit_any(void) {
    const uint32_t kind = below(24);
    if (kind >= 20) {
        submit_part();
    } else if (kind < 13) {
        submit_decode();
    } else if (kind < 14) {
        submit_list();
    } else if (kind < 16) {
        submit_refused();
    } else {
        submit_cancel();
    }
}

/* ---- faults; only while no job is under way */

static void set_file_end(uint64_t end) {
    const int fd = open(image_name, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && ftruncate(fd, (off_t)end) == 0;
    while (good && file_end < end) {
        const ssize_t n = pwrite(fd, drive.image + file_end, (size_t)(end - file_end), (off_t)file_end);
        good = n > 0;
        file_end += good ? (uint64_t)n : 0;
    }
    if (!good || close(fd) != 0) { found("%s: %s", image_name, strerror(errno)); }
    file_end = end;
}

static void no_faults(void) {
    (void)pthread_mutex_lock(&posix.lock);
    memset(posix.config.fault, 0, sizeof posix.config.fault);
    (void)pthread_mutex_unlock(&posix.lock);
    lasting = (struct k3huf_posix_fault){0};
    meeting = NULL;
    atomic_store(&window_dead, false);
    atomic_store(&window_busy, 0);
    if (file_end != drive.size) { set_file_end(drive.size); }
}

static uint64_t any_block(void) {
    meeting = &drive.run[below(SOAK_RUNS)];
    return (meeting->at + below((uint32_t)meeting->bytes)) / posix.port.limits.lba_bytes;
}

/* Faults that a job must get over: fewer in all than a read has attempts. */
static void passing_faults(struct k3huf_posix_fault *fault, bool hang) {
    static const enum k3huf_port_status kinds[] = {K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_DEVICE, K3HUF_PORT_E_TIMEOUT};
    const uint32_t n = hang ? 1u : 1u + below(ATTEMPTS - 1u);
    for (uint32_t i = 0; i < n; i++) {
        fault[i] =
            (struct k3huf_posix_fault){any_block(), 1u + below(300), 1, hang ? K3HUF_PORT_BUSY : kinds[below(3)]};
    }
    count.read_faults += n;
}

static void lasting_fault(bool hang) {
    static const enum k3huf_port_status kinds[] = {K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_DEVICE,
                                                   K3HUF_PORT_E_ABSENT};
    lasting = (struct k3huf_posix_fault){any_block(), 1u + below(3), K3HUF_POSIX_FOR_EVER,
                                         hang ? K3HUF_PORT_BUSY : kinds[below(4)]};
    count.read_faults++;
}

/* `hang`: reads that are never answered may be among them, for which the engine's time-out is short. */
static void set_faults(bool hang) {
    struct k3huf_posix_fault fault[K3HUF_POSIX_FAULTS] = {{0}};
    no_faults();
    switch (below(10)) {
    case 0:
    case 1: lasting_fault(hang); break;
    case 2:
    case 3: passing_faults(fault, hang); break;
    case 4:
        atomic_store(&window_busy, 1u + below(50));
        count.window_faults++;
        break;
    case 5:
        atomic_store(&window_dead, true);
        count.window_faults++;
        break;
    case 6: { /* the drive ends earlier than it said */
        const uint32_t lba_bytes = posix.port.limits.lba_bytes;
        set_file_end(1u + below((uint32_t)drive.size));
        lasting = (struct k3huf_posix_fault){file_end / lba_bytes, UINT64_MAX / lba_bytes, K3HUF_POSIX_FOR_EVER,
                                             K3HUF_PORT_E_MEDIA};
        count.cut_files++;
        return;
    }
    default: return;
    }
    fault[ATTEMPTS] = lasting;
    (void)pthread_mutex_lock(&posix.lock);
    memcpy(posix.config.fault, fault, sizeof fault);
    (void)pthread_mutex_unlock(&posix.lock);
}

/* ---- sessions */

static void zero_rings(void) {
    for (uint64_t at = SQ; at < RINGS_END; at += 4) {
        store(at, 0);
    }
}

/* The host goes away; nothing of its jobs happens from here on. */
static void detach(void) {
    store(K3HUF_HOST_SESSION, 0);
    await_device(K3HUF_DEVICE_SESSION, 0);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct work *const w = &works[i];
        if (w->open) {
            uint64_t least, most;
            if (w->slot < SLOTS) { check_destination(w, &least, &most); }
            close_work(w);
            count.abandoned++;
        }
    }
    attached = false; /* what is in the rings now is nobody's */
    no_faults();
    check_window();
}

static void attach(void) {
    const bool wrong = chance(16);
    zero_rings();
    sq_entries = 1u + below(chance(3) ? 2u : 32u);
    cq_entries = 1u + below(chance(3) ? 2u : 32u);
    put = 0;
    taken = 0;
    store(K3HUF_HOST_MAGIC, K3HUF_CONTROL_MAGIC);
    store(K3HUF_HOST_VERSION, K3HUF_CONTROL_VERSION);
    store64(K3HUF_HOST_WINDOW, WINDOW_BYTES);
    store64(K3HUF_HOST_SQ, SQ);
    store64(K3HUF_HOST_CQ, CQ);
    store(K3HUF_HOST_SQ_ENTRIES, sq_entries);
    store(K3HUF_HOST_CQ_ENTRIES, cq_entries);
    store(K3HUF_HOST_CQ_TAKEN, 0);
    if (wrong) {
        static const uint32_t fields[] = {K3HUF_HOST_MAGIC,   K3HUF_HOST_VERSION,    K3HUF_HOST_WINDOW + 4u,
                                          K3HUF_HOST_SQ,      K3HUF_HOST_SQ + 4u,    K3HUF_HOST_CQ,
                                          K3HUF_HOST_CQ + 4u, K3HUF_HOST_SQ_ENTRIES, K3HUF_HOST_CQ_ENTRIES};
        const uint32_t field = fields[below(9)];
        store(field, load(field) ^ (field == K3HUF_HOST_SQ || field == K3HUF_HOST_CQ ? 1u : 0x10000u));
    }
    store(K3HUF_HOST_SESSION, ++session);
    await_device(K3HUF_DEVICE_SESSION, session);
    const uint32_t state = device(K3HUF_DEVICE_STATE), status = device(K3HUF_DEVICE_STATUS);
    if (state != (wrong ? K3HUF_STATE_READY : K3HUF_STATE_ATTACHED) || status != (wrong ? K3HUF_JOB_E_CONTROL : 0)) {
        found("a %s session: state %u, status %u", wrong ? "wrong" : "right", state, status);
    }
    if (wrong) {
        count.refused_sessions++;
        detach();
        attach();
    } else {
        attached = true;
        count.sessions++;
    }
}

static void no_more_completions(void) {
    if (completion_ready()) { found("a completion more than there were jobs"); }
}

/* The session is to be closed by the firmware with `status`. */
static void await_closed(uint32_t status) {
    await_device(K3HUF_DEVICE_STATE, K3HUF_STATE_READY);
    if (device(K3HUF_DEVICE_STATUS) != status) {
        found("a session was closed with status %u instead of %u", device(K3HUF_DEVICE_STATUS), status);
    }
}

enum leaving { LEAVE_DONE, LEAVE_JOBS, LEAVE_PHASE, LEAVE_TAKEN, LEAVE_FULL };

/* Jobs in batches; then the session ends in one way or another. `shut`: with the engine. */
static void run_session(bool hang, bool shut, enum leaving how) {
    attach();
    for (uint32_t batches = below(4); batches > 0; batches--) {
        set_faults(hang);
        /* Each read that is never answered takes its time. */
        for (uint32_t jobs = 1u + below(lasting.status == K3HUF_PORT_BUSY ? 3u : 12u); jobs > 0; jobs--) {
            submit_any();
            if (chance(3)) { (void)take(); }
        }
        await(none_open, "a batch");
        no_more_completions();
        no_faults();
        check_window();
    }
    if (how != LEAVE_DONE || shut) { /* some more jobs, which may be under way at the end */
        set_faults(hang);
        for (uint32_t jobs = below(9); jobs > 0; jobs--) {
            submit_any();
        }
    }
    count.left_by[how]++;
    if (how == LEAVE_PHASE) {
        await(ring_has_room, "room in the submission ring");
        store(SQ + put % sq_entries * K3HUF_JOB_BYTES + K3HUF_JOB_PHASE,
              k3huf_ring_phase(put, sq_entries) | 2u << below(31));
        while (device(K3HUF_DEVICE_STATE) == K3HUF_STATE_ATTACHED) { /* it may take a while to get there */
            (void)take();
            pause_a_little();
        }
        await_closed(K3HUF_JOB_E_RING);
    } else if (how == LEAVE_TAKEN) {
        await(none_open, "a session's end");
        store(K3HUF_HOST_CQ_TAKEN, taken + 1u + below(1000));
        struct k3huf_job job = {.id = ++next_id, .kind = K3HUF_KIND_CANCEL};
        submit(&job, 0); /* what was taken is looked at when there is something to put */
        await_closed(K3HUF_JOB_E_RING);
    }
}

/* A host that takes no completions: those that there is room for are there, and the session is closed. */
static void full_session(void) {
    attach();
    const uint32_t jobs = cq_entries + 1u + below(4);
    for (uint32_t i = 0; i < jobs; i++) {
        const double until = seconds() + WAIT_SECONDS;
        while (!ring_has_room() && seconds() < until) {
            pause_a_little();
        }
        if (!work_free()) { found("no room for jobs"); }
        struct work *const w = free_work();
        *w = (struct work){.open = true, .made = MADE_CANCEL, .slot = SLOTS};
        w->job = (struct k3huf_job){.id = ++next_id, .kind = K3HUF_KIND_CANCEL, .lba = 0};
        allow(w, K3HUF_JOB_E_NOT_FOUND);
        open_works++;
        count.jobs++;
        submit(&w->job, 0);
    }
    await_closed(K3HUF_JOB_E_COMPLETIONS);
    for (uint32_t i = 0; i < cq_entries; i++) {
        if (!take()) { found("a full completion ring holds %u of %u", i, cq_entries); }
    }
    no_more_completions();
    count.left_by[LEAVE_FULL]++;
    detach();
}

/* ---- rounds */

static void *run_engine(void *argument) {
    const struct k3huf_inflight_config *const config = argument;
    ended = k3huf_inflight_run(&engine, &posix.port, config);
    return NULL;
}

static void shut_down(void) {
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open && works[i].made != MADE_CANCEL && works[i].made != MADE_REFUSED && !works[i].cancelled) {
            works[i].cancelled = true;
            allow(&works[i], K3HUF_JOB_E_CANCELLED);
        }
    }
    const uint32_t jobs = put;
    store(K3HUF_HOST_REQUEST, K3HUF_REQUEST_SHUTDOWN);
    await(stopped, "a shutdown");
    while (take()) {}
    no_more_completions();
    /* Jobs that were taken from the ring have all completed. */
    const uint32_t left = jobs - device(K3HUF_DEVICE_SQ_TAKEN);
    if (open_works > left) { found("a shutdown lost %u jobs", open_works - left); }
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open) {
            uint64_t least, most;
            if (works[i].slot < SLOTS) {
                check_destination(&works[i], &least, &most);
                if (least > 0) { found("a job that was never taken wrote to its destination"); }
            }
            close_work(&works[i]);
            count.abandoned++;
        }
    }
}

static void open_platform(const struct k3huf_inflight_config *config) {
    struct k3huf_posix_config platform = K3HUF_POSIX_DEFAULTS;
    const char *what = NULL;
    uint32_t cores = 1;
    platform.image = image_name;
    platform.window = window_name;
    platform.cores = 1u + below(K3HUF_INFLIGHT_CORES + 1u);
    platform.lba_bytes = 512u << below(4);
    platform.max_transfer_bytes = platform.lba_bytes * (1u + below(chance(2) ? 4u : 64u));
    platform.queue_depth = 1u + below(chance(3) ? 3u : K3HUF_POSIX_DEPTH);
    platform.bytes_per_second = chance(6) ? 50e6 + below(200000000) : 0;
    platform.window_bytes_per_second = chance(8) ? 50e6 + below(200000000) : 0;
    const int number = k3huf_posix_open(&posix, &platform, &what);
    if (number != 0) { found("%s: %s", what, strerror(number)); }
    real_write = posix.port.window_write;
    real_start = posix.port.core_start;
    posix.port.window_write = write_window;
    posix.port.core_start = start_core;
    for (uint32_t i = 1; i < platform.cores; i++) {
        core_fails[i] = chance(10);
        cores += !core_fails[i] && i < K3HUF_INFLIGHT_CORES;
    }
    memset(posix.window.bytes, FILL, WINDOW_BYTES);
    memset(posix.window.bytes, 0, K3HUF_CONTROL_BYTES);
    if (pthread_create(&core0, NULL, run_engine, (void *)(uintptr_t)config) != 0) { found("no thread"); }
    await_device(K3HUF_DEVICE_MAGIC, K3HUF_CONTROL_MAGIC);
    if (device(K3HUF_DEVICE_CORES) != cores) { found("%u cores instead of %u", device(K3HUF_DEVICE_CORES), cores); }
    count.cores[cores]++;
}

static void run_round(void) {
    const bool hang = chance(16), full = !hang && chance(16);
    const struct k3huf_inflight_config config = {.read_attempts = ATTEMPTS,
                                                 .read_timeout_ms = hang ? 1500u : 60000u,
                                                 .host_timeout_ms = full ? 1500u : 60000u,
                                                 .poll_us = chance(2) ? 100u : below(2000)};
    open_platform(&config);
    for (uint32_t sessions = full ? 0 : 1u + below(3); sessions > 0; sessions--) {
        const uint32_t draw = below(10);
        const enum leaving how = draw < 4 ? LEAVE_JOBS : draw < 5 ? LEAVE_PHASE : draw < 6 ? LEAVE_TAKEN : LEAVE_DONE;
        const bool shut = sessions == 1 && (how == LEAVE_DONE || how == LEAVE_JOBS) && chance(2);
        run_session(hang, shut, how);
        if (shut) { break; }
        detach();
    }
    if (full) { full_session(); }
    shut_down();
    no_faults();
    check_window();
    if (pthread_join(core0, NULL) != 0 || ended != K3HUF_PORT_OK) { found("the engine ended with status %d", ended); }
    k3huf_posix_close(&posix);
    count.rounds++;
}

static void print_counts(double took) {
    (void)printf("%llu rounds in %.0f s, seed %llu; cores", (unsigned long long)count.rounds, took,
                 (unsigned long long)seed);
    for (uint32_t i = 1; i <= K3HUF_INFLIGHT_CORES; i++) {
        (void)printf(" %u: %llu%s", i, (unsigned long long)count.cores[i], i < K3HUF_INFLIGHT_CORES ? "," : "\n");
    }
    const struct {
        const char *name;
        uint64_t n;
    } lines[] = {
        {"sessions", count.sessions},
        {"sessions refused", count.refused_sessions},
        {"left when all was done", count.left_by[LEAVE_DONE]},
        {"left with jobs under way", count.left_by[LEAVE_JOBS]},
        {"closed for a bad phase", count.left_by[LEAVE_PHASE]},
        {"closed for too many taken", count.left_by[LEAVE_TAKEN]},
        {"closed for none taken", count.left_by[LEAVE_FULL]},
        {"jobs", count.jobs},
        {"of them cancels", count.cancels},
        {"cancels that found their job", count.found},
        {"jobs that their session left", count.abandoned},
        {"bytes to the window", count.bytes},
        {"faults of reads", count.read_faults},
        {"files cut off", count.cut_files},
        {"reads that gave less", count.short_reads},
        {"faults of the window", count.window_faults},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        (void)printf("%12llu  %s\n", (unsigned long long)lines[i].n, lines[i].name);
    }
    (void)printf("completions by status\n");
    for (uint32_t i = 0; i < K3HUF_STATUS_COUNT; i++) {
        if (count.core[i] > 0) {
            (void)printf("%12llu  %s\n", (unsigned long long)count.core[i], k3huf_status_text((enum k3huf_status)i));
        }
    }
    for (uint32_t i = 0; i < 32; i++) {
        if (count.job[i] > 0) {
            (void)printf("%12llu  %s\n", (unsigned long long)count.job[i],
                         k3huf_job_status_text(K3HUF_JOB_E_CONTROL + i));
        }
    }
}

static bool write_files(void) {
    const char *const temporary = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/soak-XXXXXX",
                   temporary != NULL && strlen(temporary) < 16 ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) { return false; }
    (void)snprintf(image_name, sizeof image_name, "%s/image", folder);
    (void)snprintf(window_name, sizeof window_name, "%s/window", folder);
    FILE *file = fopen(window_name, "wb");
    if (file == NULL || fclose(file) != 0 || truncate(window_name, WINDOW_BYTES) != 0) { return false; }
    file = fopen(image_name, "wb");
    file_end = drive.size;
    return file != NULL && fwrite(drive.image, 1, (size_t)drive.size, file) == drive.size && fclose(file) == 0;
}

int main(int argc, char **argv) {
    const double limit = argc > 1 ? atof(argv[1]) : 0;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (limit <= 0) {
        (void)fprintf(stderr, "usage: soak SECONDS [SEED]\n");
        return 2;
    }
    soak_drive_build(&drive, seed);
    if (!write_files()) { found("%s: %s", folder, strerror(errno)); }
    const double began = seconds();
    while (seconds() - began < limit) {
        rng = (struct k3huf_rng){seed * 1000003u + ++round_number};
        run_round();
    }
    (void)unlink(image_name);
    (void)unlink(window_name);
    (void)rmdir(folder);
    print_counts(seconds() - began);
    uint64_t completions = 0;
    for (uint32_t i = 0; i < 32; i++) {
        completions += count.job[i] + (i < K3HUF_STATUS_COUNT ? count.core[i] : 0);
    }
#ifdef __SANITIZE_THREAD__
    const char *const tool = "soak, thread sanitizer";
#else
    const char *const tool = "soak";
#endif
    (void)printf("trust: %s | %.0f s of the transfer engine on 1 to %u cores: %llu jobs, %llu completions, %llu bytes, "
                 "%llu cancels, %llu faults, %llu sessions | none unexplained\n",
                 tool, seconds() - began, K3HUF_INFLIGHT_CORES, (unsigned long long)count.jobs,
                 (unsigned long long)completions, (unsigned long long)count.bytes, (unsigned long long)count.cancels,
                 (unsigned long long)(count.read_faults + count.cut_files + count.window_faults),
                 (unsigned long long)count.sessions);
    soak_drive_free(&drive);
    return 0;
}
