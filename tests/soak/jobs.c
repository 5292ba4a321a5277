/* jobs.c - see jobs.h. */
#include "jobs.h"

#include <string.h>

#define JOBS 64u /* under way at most */

enum { MADE_DECODE, MADE_PART, MADE_LIST, MADE_CANCEL, MADE_REFUSED };

/* A job from submission to completion. */
struct work {
    bool open;
    int made;
    struct k3huf_job job;
    const struct soak_run *run; /* of a decode, part or copy job that is not refused */
    const uint8_t *want;        /* of a part or copy: what is to arrive */
    uint32_t slot;              /* SOAK_SLOTS: none */
    uint32_t allowed[16], n;    /* statuses */
    bool cancelled;
};

static struct work works[JOBS];
static bool slot_used[SOAK_SLOTS], attached;
static uint32_t open_works;
static uint64_t next_id;

static uint64_t slot_begin(uint32_t slot) { return SOAK_SLOT_AT + (uint64_t)slot * SOAK_SLOT_BYTES; }

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
        if (at[i - 1u] != SOAK_FILL) { *least = i; }
    }
    if (*least > *most) {
        soak_found("a destination has a wrong byte, 0x%02x instead of 0x%02x", at[*most], want[*most]);
    }
}

/* `size` bytes at `at` that become `want` in any order: how many are there, at least and at most. */
static void written_anyhow(const uint8_t *at, const uint8_t *want, size_t size, uint64_t *least, uint64_t *most) {
    for (size_t i = 0; i < size; i++) {
        if (at[i] != SOAK_FILL && at[i] != want[i]) {
            soak_found("a destination has a wrong byte, 0x%02x instead of 0x%02x", at[i], want[i]);
        }
        *least += at[i] != SOAK_FILL;
        *most += at[i] == want[i];
    }
}

/* Check a decode job's destination group by group, and fill it again. */
static void check_destination(const struct work *w, uint64_t *least, uint64_t *most) {
    uint8_t *const to = soak_posix.window.bytes + w->job.destination;
    const uint64_t slot = slot_begin(w->slot);
    uint64_t done = 0;
    size_t a, b;
    *least = 0;
    *most = 0;
    if (w->made == MADE_LIST) {
        done = soak_drive.table_size < w->job.destination_bytes ? soak_drive.table_size : w->job.destination_bytes;
        written(to, soak_drive.image, (size_t)done, &a, &b);
        if (a > 0 && b < done) { soak_found("a table of contents is there in part"); }
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
                soak_found("%s: the group at byte %llu is there in part", w->run->name, (unsigned long long)done);
            }
            *least += a;
            *most += b;
        }
    }
    soak_check_fill(slot, w->job.destination, "before a destination");
    soak_check_fill(w->job.destination + done, slot + SOAK_SLOT_BYTES, "behind what a job decodes");
    memset(to, SOAK_FILL, (size_t)done);
}

/* ---- jobs */

static void allow(struct work *w, uint32_t status) { w->allowed[w->n++] = status; }

/* What can be ended early may be, from now on. */
static void allow_cancel(struct work *w) {
    if (w->made != MADE_CANCEL && w->made != MADE_REFUSED && !w->cancelled) {
        w->cancelled = true;
        allow(w, K3HUF_JOB_E_CANCELLED);
    }
}

static bool allowed(const struct work *w, uint32_t status) {
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->allowed[i] == status) { return true; }
    }
    return false;
}

static void submit(const struct k3huf_job *job, uint32_t wrong) { k3huf_window_host_submit(&soak_host, job, wrong); }

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
    if (w->slot < SOAK_SLOTS) { slot_used[w->slot] = false; }
    w->open = false;
    open_works--;
}

static void count_status(uint32_t status) {
    if (status < K3HUF_STATUS_COUNT) {
        soak_count.core[status]++;
    } else if (status >= K3HUF_JOB_E_CONTROL && status < K3HUF_JOB_E_CONTROL + 32u) {
        soak_count.job[status - K3HUF_JOB_E_CONTROL]++;
    } else {
        soak_found("status %u is none", status);
    }
}

static void check_place(const struct work *w, const struct k3huf_completion *c) {
    const struct k3huf_posix_fault *const lasting = soak_faults_lasting();
    const bool fault = lasting->count > 0 && c->status >= K3HUF_JOB_E_ABSENT && c->status <= K3HUF_JOB_E_DRIVE;
    if (c->status == K3HUF_JOB_E_READ && fault && (c->lba < lasting->lba || c->lba - lasting->lba >= lasting->count)) {
        soak_found("a bad block at %llu is reported at %llu", (unsigned long long)lasting->lba,
                   (unsigned long long)c->lba);
    }
    if (w->run != NULL && w->run->status[0] != 0 && c->status == w->run->status[0] && c->stripe != w->run->bad_stripe) {
        soak_found("%s: reported in stripe %d", w->run->name, (int)c->stripe);
    }
}

/* A completion is there: all that must hold of it. */
static void check_completion(const struct k3huf_completion *c) {
    struct work *const w = work_by_id(c->id);
    if (w == NULL) { soak_found("a completion of id %llu, which waits for none", (unsigned long long)c->id); }
    const char *const name = w->run != NULL ? w->run->name : "no run";
    if (!allowed(w, c->status)) {
        soak_found("%s, kind %u: \"%s\" at stripe %d, block %d, offset %llu, lba %llu, which nothing allows", name,
                   w->job.kind, k3huf_job_status_text(c->status), (int)c->stripe, (int)c->block,
                   (unsigned long long)c->offset, (unsigned long long)c->lba);
    }
    count_status(c->status);
    soak_count.bytes += c->bytes;
    check_place(w, c);
    if (w->made == MADE_CANCEL) {
        struct work *const target = work_by_id(w->job.lba);
        if (c->status == K3HUF_JOB_E_NOT_FOUND && target != NULL) {
            soak_found("a job is not found to be cancelled, and has not completed");
        }
        soak_count.found += c->status == 0;
    }
    if (w->slot < SOAK_SLOTS) {
        uint64_t least, most;
        check_destination(w, &least, &most);
        if (c->bytes < least || c->bytes > most) {
            soak_found("%s: %llu bytes are said to be written, %llu are", name, (unsigned long long)c->bytes,
                       (unsigned long long)most);
        }
        const uint64_t whole = w->made == MADE_LIST   ? soak_drive.table_size
                               : w->made == MADE_PART ? w->job.destination_bytes
                               : w->run != NULL       ? w->run->raw_size
                                                      : 0;
        if (c->status == 0 && c->bytes != whole) { soak_found("%s: done with %u bytes", name, (unsigned)c->bytes); }
        if (c->status == 0 && w->job.kind == K3HUF_KIND_COPY &&
            c->crc != k3huf_crc32c(0, soak_drive.image + w->run->at, (size_t)w->run->bytes)) {
            soak_found("%s: copied with another CRC", name);
        }
    } else if (c->bytes != 0) {
        soak_found("a job without destination wrote %llu bytes", (unsigned long long)c->bytes);
    }
    if (c->tick_hz != soak_posix.port.limits.tick_hz) {
        soak_found("ticks a second are %llu", (unsigned long long)c->tick_hz);
    }
    close_work(w);
}

static bool completion_ready(void) { return attached && k3huf_window_host_ready(&soak_host); }

bool soak_jobs_take(void) {
    struct k3huf_completion c;
    if (!completion_ready()) { return false; }
    k3huf_window_host_take(&soak_host, &c);
    check_completion(&c);
    return true;
}

void soak_jobs_await(bool (*done)(void), const char *what) {
    double until = soak_seconds() + SOAK_WAIT_SECONDS;
    while (!done()) {
        if (soak_jobs_take()) {
            until = soak_seconds() + SOAK_WAIT_SECONDS;
        } else {
            if (soak_seconds() > until) { soak_found("%s: waited in vain, %u jobs under way", what, open_works); }
            soak_pause();
        }
    }
}

static bool work_free(void) { return free_work() != NULL; }

static bool slot_free(void) {
    for (uint32_t i = 0; i < SOAK_SLOTS; i++) {
        if (!slot_used[i]) { return true; }
    }
    return false;
}

bool soak_jobs_none_open(void) { return open_works == 0; }
bool soak_jobs_ring_has_room(void) { return soak_host.put - soak_device(K3HUF_DEVICE_SQ_TAKEN) < soak_host.sq_entries; }

/* ---- what a job may come to */

static bool meets(const struct k3huf_job *job, uint64_t lba, uint64_t blocks) {
    const uint64_t size = soak_posix.port.limits.lba_bytes, begin = job->lba * size + job->offset;
    return job->run_bytes > 0 && begin / size < lba + blocks && lba < (begin + job->run_bytes - 1u) / size + 1u;
}

/* Faults of this batch that a job meets: what it can come to instead of what it would. true: it must. */
static bool allow_faults(struct work *w, size_t raw_size) {
    const struct k3huf_posix_fault *const lasting = soak_faults_lasting();
    bool must = false;
    if (lasting->count > 0 && meets(&w->job, lasting->lba, lasting->count)) {
        allow(w, lasting->status == K3HUF_PORT_E_MEDIA    ? K3HUF_JOB_E_READ
                 : lasting->status == K3HUF_PORT_E_ABSENT ? K3HUF_JOB_E_ABSENT
                 : lasting->status == K3HUF_PORT_BUSY     ? K3HUF_JOB_E_READ_TIMEOUT
                                                          : K3HUF_JOB_E_DRIVE);
        must = true;
    }
    if (soak_faults_window() && raw_size > 0) {
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

static void begin_work(struct work *w, int made) {
    *w = (struct work){.open = true, .made = made, .slot = SOAK_SLOTS, .job = {.id = ++next_id}};
    open_works++;
    soak_count.jobs++;
}

static struct work *open_work(int made) {
    soak_jobs_await(work_free, "a free job");
    soak_jobs_await(soak_jobs_ring_has_room, "room in the submission ring");
    struct work *const w = free_work();
    begin_work(w, made);
    return w;
}

static void give_slot(struct work *w, size_t least) {
    while (slot_used[w->slot = soak_below(SOAK_SLOTS)]) {}
    slot_used[w->slot] = true;
    const uint32_t room = SOAK_SLOT_BYTES - 256u - (uint32_t)least;
    const uint32_t skip = 64u + soak_below(soak_chance(2) ? 4096u : 64u);
    w->job.destination = slot_begin(w->slot) + skip;
    w->job.destination_bytes = least + (soak_chance(2) ? 0 : soak_below(room - skip));
}

static void put_source(struct k3huf_job *job, uint64_t at, uint64_t bytes) {
    const uint32_t lba_bytes = soak_posix.port.limits.lba_bytes;
    job->lba = at / lba_bytes;
    job->offset = at % lba_bytes;
    while (job->lba > 0 && soak_chance(4)) { /* any block before will do */
        job->lba--;
        job->offset += lba_bytes;
    }
    job->run_bytes = bytes;
}

static void submit_decode(void) {
    soak_jobs_await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_DECODE);
    w->run = soak_faults_meeting() != NULL && soak_chance(2) ? soak_faults_meeting()
                                                             : &soak_drive.run[soak_below(SOAK_RUNS)];
    const bool cut = soak_chance(10), small = !cut && w->run->raw_size > 0 && soak_chance(16);
    w->job.kind = K3HUF_KIND_DECODE;
    w->job.options = (soak_chance(3) ? K3HUF_OPTION_REQUIRE_INDEX : 0) | (soak_chance(8) ? K3HUF_OPTION_TRACE : 0);
    put_source(&w->job, w->run->at, w->run->bytes - (cut ? 1u + soak_below((uint32_t)w->run->bytes) : 0));
    give_slot(w, w->run->raw_size);
    if (small) { w->job.destination_bytes = soak_below((uint32_t)w->run->raw_size); }
    expect_decode(w, cut, small);
    submit(&w->job, 0);
}

/* Some of a sound run's raw bytes, or of its bytes as they are on the drive. */
static void submit_part(void) {
    soak_jobs_await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_PART);
    while ((w->run = &soak_drive.run[soak_below(SOAK_RUNS)])->status[0] != 0) {}
    const bool copy = soak_chance(2), beyond = soak_chance(16);
    const size_t size = copy ? (size_t)w->run->bytes : w->run->raw_size;
    const uint32_t from = soak_below((uint32_t)size + 1u);
    uint32_t wanted = soak_below((uint32_t)size - from + 1u);
    if (wanted > SOAK_RAW_MAX) { wanted = SOAK_RAW_MAX; }
    w->job.kind = copy ? K3HUF_KIND_COPY : K3HUF_KIND_PART;
    w->job.options = soak_chance(3) ? K3HUF_OPTION_REQUIRE_INDEX : 0;
    put_source(&w->job, w->run->at, w->run->bytes);
    give_slot(w, wanted);
    w->job.destination_bytes = wanted;
    w->job.from = beyond ? (uint64_t)size - wanted + 1u : from;
    w->want = (copy ? soak_drive.image + w->run->at : w->run->raw) + from;
    /* A part may not come by a fault that its run has. */
    const bool must = !(copy && beyond) && allow_faults(w, wanted);
    if (beyond) {
        allow(w, K3HUF_JOB_E_PART);
    } else if (!copy || !must) {
        allow(w, K3HUF_OK);
    }
    if (!copy && w->run->plain && w->job.options != 0) { allow(w, K3HUF_JOB_E_NO_INDEX); }
    submit(&w->job, 0);
}

static void submit_list(void) {
    soak_jobs_await(slot_free, "a free destination");
    struct work *const w = open_work(MADE_LIST);
    w->job.kind = K3HUF_KIND_LIST;
    give_slot(w, soak_drive.table_size);
    w->job.run_bytes = soak_drive.table_size;
    const bool must = allow_faults(w, soak_drive.table_size), small = !must && soak_chance(8);
    if (small) { w->job.destination_bytes = soak_below(soak_drive.table_size); }
    if (!must) { allow(w, small ? (uint32_t)K3HUF_JOB_E_DESTINATION_SMALL : 0); }
    submit(&w->job, 0);
}

/* A job that is refused before it begins; one fault at a time. */
static void submit_refused(void) {
    struct work *const w = open_work(MADE_REFUSED);
    const uint64_t blocks = soak_posix.port.limits.lba_count;
    struct k3huf_job *const job = &w->job;
    uint32_t wrong = 0;
    job->kind = 1u + soak_below(2);
    job->run_bytes = 1;
    job->destination = SOAK_SLOT_AT;
    job->destination_bytes = 1;
    switch (soak_below(9)) {
    case 0:
        job->kind = soak_chance(2) ? 0 : 6u + soak_below(1000);
        allow(w, K3HUF_JOB_E_KIND);
        break;
    case 1:
        wrong = 1u << soak_below(32);
        allow(w, K3HUF_JOB_E_KIND);
        break;
    case 2:
        job->options = 4u << soak_below(30);
        allow(w, K3HUF_JOB_E_OPTIONS);
        break;
    case 3:
        job->lba = blocks + soak_below(2);
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 4:
        job->run_bytes = UINT64_MAX - soak_below(2);
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 5:
        job->offset = soak_drive.size;
        allow(w, K3HUF_JOB_E_SOURCE);
        break;
    case 6:
        job->destination = SOAK_WINDOW_BYTES;
        allow(w, K3HUF_JOB_E_DESTINATION);
        break;
    case 7:
        job->destination_bytes = UINT64_MAX - SOAK_SLOT_AT + soak_below(9);
        allow(w, K3HUF_JOB_E_DESTINATION);
        break;
    default:
        job->destination = soak_chance(3) ? 64u : soak_chance(2) ? SOAK_SQ + soak_below(K3HUF_JOB_BYTES) : SOAK_CQ + 1u;
        allow(w, K3HUF_JOB_E_OVERLAP);
    }
    submit(job, wrong);
}

static void submit_cancel(void) {
    struct work *const w = open_work(MADE_CANCEL);
    w->job.kind = K3HUF_KIND_CANCEL;
    /* One of the last, or one that has been, or a cancel, which cannot be found. */
    w->job.lba = next_id - 1u - soak_below(4);
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open && works[i].job.id == w->job.lba) { allow_cancel(&works[i]); }
    }
    allow(w, 0);
    allow(w, K3HUF_JOB_E_NOT_FOUND);
    soak_count.cancels++;
    submit(&w->job, 0);
}

void soak_jobs_submit(void) {
    const uint32_t kind = soak_below(24);
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

void soak_jobs_submit_untaken(void) {
    const double until = soak_seconds() + SOAK_WAIT_SECONDS;
    while (!soak_jobs_ring_has_room() && soak_seconds() < until) {
        soak_pause();
    }
    struct work *const w = free_work();
    if (w == NULL) { soak_found("no room for jobs"); }
    begin_work(w, MADE_CANCEL);
    w->job.kind = K3HUF_KIND_CANCEL;
    allow(w, K3HUF_JOB_E_NOT_FOUND);
    submit(&w->job, 0);
}

/* ---- begin and end */

void soak_jobs_begin(void) { attached = true; }
void soak_jobs_end(void) { attached = false; }
uint32_t soak_jobs_open(void) { return open_works; }

void soak_jobs_no_more(void) {
    if (completion_ready()) { soak_found("a completion more than there were jobs"); }
}

void soak_jobs_allow_cancel(void) {
    for (uint32_t i = 0; i < JOBS; i++) {
        if (works[i].open) { allow_cancel(&works[i]); }
    }
}

void soak_jobs_abandon(bool taken) {
    for (uint32_t i = 0; i < JOBS; i++) {
        struct work *const w = &works[i];
        if (!w->open) { continue; }
        if (w->slot < SOAK_SLOTS) {
            uint64_t least, most;
            check_destination(w, &least, &most);
            if (!taken && least > 0) { soak_found("a job that was never taken wrote to its destination"); }
        }
        close_work(w);
        soak_count.abandoned++;
    }
}
