/* fuzz_jobs.c - fuzz target: the job ring and the in-flight engine behind it (port/jobs.c, port/inflight.c,
 * port/reads.c) over the platform in memory. The input is a script of what a host and a drive may do, right or wrong:
 * sessions, jobs, cancels, bytes poked into control block and rings, faults of drive and window, damage to the run on
 * the drive.
 *
 * What must hold whatever the script: the port's contract (memory_port.h); no write to the window but into the device
 * area, the completion ring, and the destination of the job that runs; jobs that are well and left alone give the right
 * bytes; and at the end, after everything, a new session's good job succeeds. */
#include <stdlib.h>
#include <string.h>

#include "inflight.h"
#include "memory_port.h"
#include "mutate.h"
#include "reference.h"
#include "samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DRIVE_BYTES (256u << 10)
#define WINDOW_BYTES (256u << 10)
#define SQ 4096u
#define CQ 8192u
#define DESTINATION (64u << 10)
#define SLOT_BYTES 49152u /* a destination's; three of them */
#define RUNS 4u
#define STEPS_MAX 200000u /* of the last job: more is a hang */

static struct k3huf_inflight engine;
static struct k3huf_memory memory;
static struct k3huf_memory_host host;
static uint8_t drive[DRIVE_BYTES], good_drive[DRIVE_BYTES];
static _Alignas(64) uint8_t window[WINDOW_BYTES];
static enum k3huf_port_status (*memory_write)(void *, uint32_t, uint64_t, const void *, size_t);
static bool starting, tampered; /* the ring or the drive is no longer what the jobs below stand for */

static struct {
    size_t offset, size, raw_size;
    uint32_t crc; /* of its own bytes */
    uint8_t raw[SLOT_BYTES];
} runs[RUNS];

/* The script: bytes, and zeros once they are used up. */
struct script {
    const uint8_t *at, *end;
};

static uint8_t next(struct script *s) { return s->at < s->end ? *s->at++ : 0; }

static uint64_t number(struct script *s, unsigned n) {
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value |= (uint64_t)next(s) << (8u * i);
    }
    return value;
}

/* Indexed and not, of one stripe and of several, of one group and of more than there are slots. */
static void build_runs(void) {
    static const struct {
        unsigned code, log2;
        uint32_t raw, stripe;
    } plan[RUNS] = {{20, 12, 49152, 49152}, {7, 0, 5001, 2000}, {20, 12, 20001, 9000}, {0, 13, 33000, 33000}};
    struct k3huf_rng rng = {5};
    size_t at = 700;
    k3huf_rng_fill(&rng, good_drive, sizeof good_drive);
    for (unsigned i = 0; i < RUNS; i++) {
        uint8_t codelen[256];
        const struct k3huf_reference_plan how = {codelen, plan[i].stripe, plan[i].log2, i};
        k3huf_sample_code(plan[i].code, codelen);
        k3huf_sample_raw(codelen, i, plan[i].stripe, runs[i].raw, plan[i].raw);
        runs[i].offset = at;
        runs[i].raw_size = plan[i].raw;
        runs[i].size = k3huf_reference_encode(&how, runs[i].raw, plan[i].raw, good_drive + at, sizeof good_drive - at);
        runs[i].crc = k3huf_reference_crc32c(0, good_drive + at, runs[i].size);
        at += runs[i].size + 333u;
        if (runs[i].size == 0) { k3huf_fuzz_found("a run that does not fit the drive", NULL); }
    }
}

static bool within(uint64_t offset, size_t size, uint64_t begin, uint64_t bytes) {
    return offset >= begin && offset - begin <= bytes && size <= bytes - (offset - begin);
}

static bool apart(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    return a_size == 0 || a >= b + b_size || b >= a + a_size;
}

/* Every write of the engine passes here. */
static enum k3huf_port_status guarded_write(void *context, uint32_t core, uint64_t offset, const void *from,
                                            size_t size) {
    const struct k3huf_jobs *const jobs = &engine.jobs;
    const uint64_t sq_bytes = (uint64_t)jobs->sq_entries * K3HUF_JOB_BYTES;
    const uint64_t cq_bytes = (uint64_t)jobs->cq_entries * K3HUF_COMPLETION_BYTES;
    bool good = within(offset, size, K3HUF_DEVICE_AT, K3HUF_DEVICE_BYTES);
    good = good || (starting && size == 4 && (offset == K3HUF_HOST_SESSION || offset == K3HUF_HOST_REQUEST));
    if (jobs->state == K3HUF_STATE_ATTACHED && jobs->cq >= K3HUF_CONTROL_BYTES && size < K3HUF_COMPLETION_BYTES &&
        within(offset, size, jobs->cq, cq_bytes) && apart(offset, size, jobs->sq, sq_bytes)) {
        good = offset - jobs->cq - jobs->cq_put % jobs->cq_entries * K3HUF_COMPLETION_BYTES < K3HUF_COMPLETION_BYTES;
        if (!tampered && jobs->session == host.session && jobs->cq_put - host.taken >= host.cq_entries) {
            k3huf_fuzz_found("a completion over one that is not taken", NULL);
        }
    }
    if (!good && engine.record != NULL) {
        const struct k3huf_job *const job = &engine.record->job;
        good = within(offset, size, job->destination, job->destination_bytes) && offset >= K3HUF_CONTROL_BYTES &&
               apart(offset, size, jobs->sq, sq_bytes) && apart(offset, size, jobs->cq, cq_bytes);
    }
    if (!good) { k3huf_fuzz_found("a window write to where none may go", NULL); }
    return memory_write(context, core, offset, from, size);
}

static void start(struct script *s) {
    static const uint32_t lba_sizes[] = {512, 4096, 512, 1024};
    static const uint32_t depths[] = {32, 1, 2, 7};
    static const struct k3huf_inflight_config config = {
        .read_attempts = 2, .read_timeout_ms = 1000, .host_timeout_ms = 2000, .poll_us = 10};
    const uint8_t shape = next(s), pace = next(s);
    const uint32_t lba = lba_sizes[shape & 3u];
    memset(window, 0xA6, sizeof window);
    memset(window, 0, SQ);
    k3huf_memory_init(&memory, drive, lba, DRIVE_BYTES / lba, window, WINDOW_BYTES);
    host = (struct k3huf_memory_host){.memory = &memory};
    memory.order = (enum k3huf_memory_order)((shape >> 2) % 3u);
    memory.polls = 1u + (shape >> 4) % 4u;
    memory.port.limits.queue_depth = depths[pace & 3u];
    memory.port.limits.max_transfer_bytes = (pace & 4u) != 0 ? lba : 65536u;
    memory_write = memory.port.window_write;
    memory.port.window_write = guarded_write;
    starting = true;
    if (k3huf_inflight_start(&engine, &memory.port, &config) != K3HUF_PORT_OK) {
        k3huf_fuzz_found("the engine does not start", NULL);
    }
    starting = false;
}

/* One step; false: the engine has stopped. */
static bool step(void) {
    const enum k3huf_inflight_step result = k3huf_inflight_step(&engine);
    if (memory.fault != NULL) { k3huf_fuzz_found("the engine broke the port's contract", memory.fault); }
    if (result == K3HUF_STEP_IDLE) { memory.port.wait(&memory, 0); }
    return result != K3HUF_STEP_STOPPED;
}

static struct k3huf_job good_job(unsigned which, uint64_t id) {
    const uint32_t lba = memory.port.limits.lba_bytes;
    return (struct k3huf_job){.id = id,
                              .kind = K3HUF_KIND_DECODE,
                              .lba = runs[which].offset / lba,
                              .offset = runs[which].offset % lba,
                              .run_bytes = runs[which].size,
                              .destination = DESTINATION + (id % 3u) * (uint64_t)SLOT_BYTES,
                              .destination_bytes = SLOT_BYTES};
}

/* The good job under this id, as its low bits say: which run, and whether it is a part of it or copies some of its own
 * bytes, with borders from the rest of the id. */
#define PART_ID 0x200u
#define COPY_ID 0x400u
static struct k3huf_job good_job_of(uint64_t id) {
    struct k3huf_job job = good_job((unsigned)(id & 3u), id >> 16);
    job.id = id;
    if ((id & (PART_ID | COPY_ID)) != 0) {
        const uint64_t size = (id & PART_ID) != 0 ? runs[id & 3u].raw_size : runs[id & 3u].size;
        job.kind = (id & PART_ID) != 0 ? K3HUF_KIND_PART : K3HUF_KIND_COPY;
        job.from = (id >> 16) * 7919u % (size + 1u);
        job.destination_bytes = (id >> 16) * 104729u % (size - job.from + 1u) % (SLOT_BYTES + 1u);
    }
    return job;
}

static void check_part(const struct k3huf_completion *c, const struct k3huf_job *job) {
    const unsigned which = (unsigned)(c->id & 3u);
    const bool copy = job->kind == K3HUF_KIND_COPY;
    const uint8_t *const source = copy ? good_drive + runs[which].offset : runs[which].raw;
    if (c->bytes != job->destination_bytes ||
        memcmp(window + job->destination, source + job->from, (size_t)c->bytes) != 0) {
        k3huf_fuzz_found(copy ? "wrong bytes of a copy" : "wrong bytes of a part in the window", NULL);
    }
    if (c->crc != (copy ? runs[which].crc : 0)) { k3huf_fuzz_found("the CRC of what is copied", NULL); }
}

static void check_bytes(const struct k3huf_completion *c, unsigned which, uint64_t destination) {
    if (c->bytes != runs[which].raw_size || memcmp(window + destination, runs[which].raw, runs[which].raw_size) != 0) {
        k3huf_fuzz_found("wrong bytes in the window", NULL);
    }
}

/* Take a completion. A good job's bytes are looked at where nothing was tampered with and its destination is its own:
 * of the jobs of a destination it is the last one submitted. */
static bool take(uint64_t last_id) {
    struct k3huf_completion c;
    if (host.cq_entries == 0 || !k3huf_memory_complete(&host, &c)) { return false; }
    if (!tampered && c.status == K3HUF_OK && (c.id & 0x100u) == 0 && (c.id >> 16) + 3u > last_id >> 16) {
        const struct k3huf_job job = good_job_of(c.id);
        if (job.kind != K3HUF_KIND_DECODE) {
            check_part(&c, &job);
        } else {
            check_bytes(&c, (unsigned)(c.id & 3u), job.destination);
        }
    }
    return true;
}

static void attach(struct script *s) {
    static const uint32_t entries[] = {8, 1, 3, 2};
    const uint8_t how = next(s);
    k3huf_memory_attach(&host, SQ, entries[how & 3u], CQ, entries[(how >> 2) & 3u]);
}

static void submit(struct script *s, uint64_t *id) {
    const uint8_t how = next(s);
    if (host.sq_entries == 0) { return; }
    /* The id's low bits say what job it is; bit 8: not a good one. */
    *id += UINT64_C(1) << 16;
    struct k3huf_job job = good_job_of((*id & ~UINT64_C(0xFFFF)) | (how & 3u) |
                                       ((how & 0x88u) != 8u  ? 0u
                                        : (how & 0x40u) != 0 ? COPY_ID
                                                             : PART_ID));
    job.options = (how >> 2) & 1u;
    const uint8_t change = (uint8_t)(how >> 4);
    if (change >= 8u) { job.id |= 0x100u; }
    switch (change) {
    case 8: /* parts that may not be there, copies of them; and kinds that are none */
        job.kind = next(s) % 8u;
        job.from = number(s, 2);
        job.destination_bytes = number(s, 2) % SLOT_BYTES;
        break;
    case 9: job.options = next(s); break;
    case 10: job.lba = (how & 8u) != 0 ? number(s, 8) : number(s, 1); break;
    case 11: job.offset = number(s, 8); break;
    case 12: job.run_bytes = number(s, 3); break;
    case 13: /* over control block, rings and what lies between them, mostly */
        job.destination = (how & 8u) != 0 ? number(s, 8) : 64u * number(s, 1);
        job.destination_bytes = (how & 8u) != 0 ? job.destination_bytes : SLOT_BYTES + 4u * number(s, 2);
        break;
    case 14: job.destination_bytes = number(s, 8); break;
    case 15:
        job.kind = K3HUF_KIND_CANCEL;
        job.lba = (uint64_t)(*id - (UINT64_C(1) << 16) * (how & 1u)) | next(s);
        break;
    default: break;
    }
    tampered = tampered || change == 13 || change == 14; /* may lie over other destinations */
    k3huf_memory_submit(&host, &job);
}

static void faults(struct script *s) {
    const uint8_t which = next(s);
    struct k3huf_memory_fault *const f = &memory.read_fault[which % K3HUF_MEMORY_FAULTS];
    static const enum k3huf_port_status statuses[] = {K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_DEVICE, K3HUF_PORT_BUSY,
                                                      K3HUF_PORT_E_ABSENT};
    f->lba = next(s);
    f->count = 1u + next(s) % 64u;
    f->times = 1u + which / 16u % 4u;
    f->status = statuses[which / 4u % 4u];
}

static void run_script(struct script *s) {
    uint64_t id = 0;
    while (s->at < s->end) {
        const uint8_t what = next(s);
        switch (what % 16u) {
        case 0:
        case 1: attach(s); break;
        case 2:
        case 3:
        case 4: submit(s, &id); break;
        case 5:
        case 6:
        case 7:
            for (unsigned n = 1u << (what / 16u); n > 0; n--) {
                if (!step()) { return; }
            }
            break;
        case 8:
        case 9: (void)take(id); break;
        case 10: { /* a byte of the host's area */
            const uint8_t at = next(s);
            window[at % K3HUF_HOST_BYTES] = next(s);
            tampered = true;
            break;
        }
        case 11: { /* a byte of the rings */
            const uint16_t at = (uint16_t)number(s, 2);
            window[SQ + at % (CQ + 2048u - SQ)] = next(s);
            tampered = true;
            break;
        }
        case 12: faults(s); break;
        case 13:
            memory.window_busy = next(s);
            memory.window_fails = (what & 16u) != 0;
            memory.reset_fails = (what & 32u) != 0;
            break;
        case 14: { /* a byte of a run's headers, or of all of it */
            const unsigned which = what / 16u % RUNS;
            const uint32_t at = (uint32_t)number(s, 2);
            drive[runs[which].offset + at % (what >= 128u ? runs[which].size : 310u)] ^= next(s);
            tampered = true;
            break;
        }
        default: memory.time += UINT64_C(1) << (what / 16u * 2u + 4u); break;
        }
    }
}

/* The engine as the script left it, but a host and a drive that behave: one more job, and it must be right. */
static void end_well(void) {
    memset(memory.read_fault, 0, sizeof memory.read_fault);
    memory.window_busy = 0;
    memory.window_fails = false;
    memory.reset_fails = false;
    memcpy(drive, good_drive, sizeof drive);
    if (engine.jobs.shutdown) {
        for (unsigned i = 0; step(); i++) {
            (void)take(0);
            if (i == STEPS_MAX) { k3huf_fuzz_found("a shutdown does not end", NULL); }
        }
        return;
    }
    do {
        k3huf_memory_attach(&host, SQ, 8, CQ, 8);
    } while (host.session == engine.jobs.session || host.session == 0);
    const struct k3huf_job job = good_job(0, 1);
    struct k3huf_completion c;
    k3huf_memory_submit(&host, &job);
    for (unsigned i = 0; !k3huf_memory_complete(&host, &c); i++) {
        (void)step();
        if (i == STEPS_MAX) { k3huf_fuzz_found("the last job does not end", NULL); }
    }
    if (c.id != job.id || c.status != K3HUF_OK) { k3huf_fuzz_found("the last job", k3huf_job_status_text(c.status)); }
    check_bytes(&c, 0, job.destination);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct script s = {data, data + size};
    if (runs[0].size == 0) { build_runs(); }
    memcpy(drive, good_drive, sizeof drive);
    tampered = false;
    start(&s);
    run_script(&s);
    end_well();
    return 0;
}
