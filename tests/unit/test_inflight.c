/* test_inflight.c - the in-flight engine over a platform in memory (memory_port.h): one core, virtual time, no luck.
 * Whatever the runs, places on the drive, orders of completion and faults are: the right bytes or the right status and
 * place, nothing written outside the destination, and the next good job succeeds. */
#include "unit.h"

#include "feeder.h"
#include "inflight.h"
#include "k3huf_image.h"
#include "memory_port.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"
#include "vectors.h"

#define RAW_MAX ((K3HUF_INFLIGHT_SLOTS + 4u) * K3HUF_INFLIGHT_GROUP_BYTES) /* more groups than the ring holds */
#define DRIVE_BYTES (RAW_MAX + (1u << 20))
#define WINDOW_BYTES (RAW_MAX + (1u << 20))
#define SMALL (256u << 10) /* a window for tests of many jobs */
#define SQ 4096u
#define CQ 8192u
#define ENTRIES 8u
#define DESTINATION (64u << 10)
#define PATTERN 0xA6u
#define GROUP K3HUF_INFLIGHT_GROUP_BYTES
#define WRAP (UINT64_C(1) << 32)
#define STEPS_MAX 4000000u /* a job that takes more hangs */

static struct k3huf_inflight engine;
static struct k3huf_memory memory;
static struct k3huf_memory_host host;
static uint8_t drive[DRIVE_BYTES], raw[RAW_MAX], expected_out[RAW_MAX], index_memory[1u << 17];
static _Alignas(64) uint8_t window[WINDOW_BYTES];
static size_t window_bytes; /* in use */
static struct k3huf_inflight_config config = K3HUF_INFLIGHT_DEFAULTS;

/* A run on the drive. */
struct placed {
    uint64_t offset; /* byte of the drive */
    size_t size;
    size_t raw_size;
    const uint8_t *raw;
};

static void platform_with(uint32_t lba_bytes, size_t bytes) {
    window_bytes = bytes;
    memset(window, PATTERN, sizeof window);
    memset(window, 0, SQ);
    k3huf_memory_init(&memory, drive, lba_bytes, DRIVE_BYTES / lba_bytes, window, bytes);
    host = (struct k3huf_memory_host){.memory = &memory};
}

static void platform(uint32_t lba_bytes) { platform_with(lba_bytes, WINDOW_BYTES); }

static void start(void) {
    assert_int_equal(k3huf_inflight_start(&engine, &memory.port, &config), K3HUF_PORT_OK);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
}

static void check_contract(void) {
    if (memory.fault != NULL) fail_msg("the engine broke the port's contract: %s", memory.fault);
}

static enum k3huf_inflight_step step(void) {
    const enum k3huf_inflight_step result = k3huf_inflight_step(&engine);
    check_contract();
    if (result == K3HUF_STEP_IDLE) memory.port.wait(&memory, 0);
    return result;
}

/* Run until the next completion. */
static struct k3huf_completion next_completion(void) {
    struct k3huf_completion completion;
    for (unsigned i = 0; i < STEPS_MAX; i++) {
        if (k3huf_memory_complete(&host, &completion)) return completion;
        (void)step();
    }
    fail_msg("no completion in time");
    return completion;
}

static struct k3huf_job decode_job(const struct placed *run, uint64_t id) {
    const uint32_t lba_bytes = memory.port.limits.lba_bytes;
    return (struct k3huf_job){.id = id,
                              .kind = K3HUF_KIND_DECODE,
                              .lba = run->offset / lba_bytes,
                              .offset = run->offset % lba_bytes,
                              .run_bytes = run->size,
                              .destination = DESTINATION,
                              .destination_bytes = run->raw_size};
}

static struct k3huf_job part_job(const struct placed *run, uint64_t from, uint64_t size) {
    struct k3huf_job job = decode_job(run, 78);
    job.kind = K3HUF_KIND_PART;
    job.from = from;
    job.destination_bytes = size;
    return job;
}

static struct k3huf_job copy_job(uint64_t offset, uint64_t size) {
    return (struct k3huf_job){.id = 79,
                              .kind = K3HUF_KIND_COPY,
                              .lba = offset / memory.port.limits.lba_bytes,
                              .offset = offset % memory.port.limits.lba_bytes,
                              .run_bytes = size,
                              .destination = DESTINATION,
                              .destination_bytes = size};
}

static void assert_job(const struct k3huf_completion *c, uint32_t status) {
    if (c->status != status)
        fail_msg("job %u: \"%s\" at stripe %u, block %u, offset %u, LBA %u instead of \"%s\"", (unsigned)c->id,
                 k3huf_job_status_text(c->status), c->stripe, c->block, (unsigned)c->offset, (unsigned)c->lba,
                 k3huf_job_status_text(status));
}

/* Bytes [begin, end) of the window hold the pattern. Most of the window is looked at after each job: eight by eight as
 * long as they do. */
static void assert_pattern(size_t begin, size_t end) {
    size_t at = begin;
    uint64_t good, eight;
    memset(&good, PATTERN, sizeof good);
    for (; at < end && end - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, window + at, sizeof eight);
        if (eight != good) break;
    }
    for (; at < end; at++) {
        if (window[at] != PATTERN) { fail_msg("byte %u of the window was written", (unsigned)at); }
    }
}

/* Every byte of the window but control block, rings and [begin, begin + size), which lies behind them or is empty. */
static void assert_untouched(size_t begin, size_t size) {
    const size_t behind = CQ + ENTRIES * K3HUF_COMPLETION_BYTES;
    assert_pattern(SQ + ENTRIES * K3HUF_JOB_BYTES, CQ);
    assert_pattern(behind, size > 0 ? begin : window_bytes);
    if (size > 0) assert_pattern(begin + size, window_bytes);
}

static struct k3huf_completion submit_and_wait(const struct k3huf_job *job) {
    k3huf_memory_submit(&host, job);
    const struct k3huf_completion completion = next_completion();
    assert_int_equal(completion.id, job->id);
    return completion;
}

/* Decode `run` and check every byte. */
static struct k3huf_completion decode_good(const struct placed *run) {
    const struct k3huf_job job = decode_job(run, 77);
    memset(window + DESTINATION, PATTERN, run->raw_size);
    const struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_int_equal(c.bytes, run->raw_size);
    assert_int_equal(c.stripe, K3HUF_JOB_NOWHERE);
    if (memcmp(window + DESTINATION, run->raw, run->raw_size) != 0) fail_msg("wrong bytes in the window");
    assert_untouched(DESTINATION, run->raw_size);
    memset(window + DESTINATION, PATTERN, run->raw_size);
    return c;
}

/* What place_run() made last, of two kinds: the tests ask for the same run again and again, and the reference encoder
 * goes bit by bit. */
static struct made {
    unsigned which, log2;
    uint32_t stripe_bytes, filler;
    size_t size, bytes; /* bytes 0: nothing */
    uint8_t raw[RAW_MAX], run[RAW_MAX + RAW_MAX / 2u];
} made[2];

static const struct made *make_run(unsigned which, size_t size, uint32_t stripe_bytes, unsigned log2, uint32_t filler) {
    static unsigned turn;
    for (unsigned i = 0; i < UNIT_COUNT(made); i++) {
        const struct made *const m = &made[i];
        if (m->bytes > 0 && m->which == which && m->size == size && m->stripe_bytes == stripe_bytes &&
            m->log2 == log2 && m->filler == filler)
            return m;
    }
    uint8_t codelen[256];
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, log2, filler};
    struct made *const m = &made[turn++ % UNIT_COUNT(made)];
    m->which = which;
    m->size = size;
    m->stripe_bytes = stripe_bytes;
    m->log2 = log2;
    m->filler = filler;
    k3huf_sample_code(which, codelen);
    k3huf_sample_raw(codelen, which + size, stripe_bytes, m->raw, size);
    m->bytes = k3huf_reference_encode(&plan, m->raw, size, m->run, sizeof m->run);
    assert_true(m->bytes > 0);
    return m;
}

/* Put a run of `size` raw bytes on the drive at byte `offset`. */
static struct placed place_run(unsigned which, size_t size, uint32_t stripe_bytes, unsigned log2, uint32_t filler,
                               uint64_t offset) {
    static bool filled;
    if (!filled) {
        struct k3huf_rng rng = {1};
        k3huf_rng_fill(&rng, drive, sizeof drive);
        filled = true;
    }
    const struct made *const m = make_run(which, size, stripe_bytes, log2, filler);
    assert_true(m->bytes <= sizeof drive - offset);
    memcpy(raw, m->raw, size);
    memcpy(drive + offset, m->run, m->bytes);
    return (struct placed){offset, m->bytes, size, raw};
}

static uint32_t get(const uint8_t *bytes) { return k3huf_get32(bytes); }

struct layout {
    size_t header, coded, plane, filler, end; /* in the run */
    uint32_t raw_bytes, huf;
};

static struct layout locate(const struct placed *run, unsigned stripe) {
    const uint8_t *const bytes = drive + run->offset;
    struct layout at = {.header = 288};
    for (unsigned i = 0;; i++) {
        at.raw_bytes = get(bytes + at.header + 4);
        at.huf = get(bytes + at.header + 8);
        at.coded = at.header + 16;
        at.plane = at.coded + at.huf;
        at.filler = at.plane + at.raw_bytes - at.raw_bytes / 2;
        at.end = at.filler + get(bytes + at.header + 12);
        if (i == stripe) return at;
        at.header = at.end;
    }
}

/* A sample code with many symbols and lengths, and one with a full, flat space. */
#define CODE_DEEP 20u
#define CODE_OTHER 7u

/* ------------------------------------------------------------------------------------------------ good jobs ---- */

static void runs_of_every_shape(void **state) {
    static const struct {
        size_t size;
        uint32_t stripe;
        unsigned log2;
        uint32_t filler;
    } shape[] = {{1, 1, 0, 0},
                 {1, 1, 12, 7},
                 {2, 2, 12, 0},
                 {3, 3, 0, 0},
                 {8192, 8192, 12, 0},
                 {8193, 8193, 12, 0},
                 {8194, 8194, 12, 5},
                 {262145, 262145, 12, 0},
                 {300001, 100000, 0, 0},
                 {300001, 65535, 13, 33},
                 {10000, 999, 12, 0},
                 {500000, 500000, 16, 0},
                 {500000, 262144, 14, 0},
                 {400001, 131073, 15, 1},
                 {5000, 5000, 20, 0},
                 {600000, 600000, 0, 4096}};
    static const uint32_t lba_sizes[] = {512, 4096};
    static const uint64_t offsets[] = {0, 4096, 65536 + 1, 1048576 - 1};
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(shape); i++) {
        for (size_t k = 0; k < UNIT_COUNT(lba_sizes); k++) {
            platform(lba_sizes[k]);
            memory.order = (enum k3huf_memory_order)((i + k) % 3u);
            memory.polls = 1u + (unsigned)i % 3u;
            memory.port.limits.max_transfer_bytes = i % 4u == 3 ? lba_sizes[k] : 65536;
            memory.port.limits.queue_depth = i % 5u == 4 ? 1u : 32u;
            start();
            for (size_t j = 0; j < UNIT_COUNT(offsets); j++) {
                const struct placed run = place_run((unsigned)(i + j) % 2u == 0 ? CODE_DEEP : CODE_OTHER, shape[i].size,
                                                    shape[i].stripe, shape[i].log2, shape[i].filler, offsets[j]);
                (void)decode_good(&run);
            }
        }
    }
}

static void every_sample_code(void **state) {
    (void)state;
    platform(512);
    start();
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        const struct placed run = place_run(which, 70001, 50000, which % 3u == 0 ? 0 : 12, 0, 512 * which + which);
        (void)decode_good(&run);
    }
}

static void golden_vectors(void **state) {
    (void)state;
    platform(512);
    memory.order = K3HUF_ORDER_RANDOM;
    start();
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        const struct k3huf_vector *const v = &k3huf_vectors[i];
        const struct placed run = {1000 + i, v->run_size, v->raw_size, v->raw};
        memcpy(drive + run.offset, v->run, v->run_size);
        (void)decode_good(&run);
    }
}

static void an_empty_run(void **state) {
    (void)state;
    platform(512);
    start();
    const struct k3huf_run_header header = {0};
    k3huf_run_header_write(&header, drive);
    const struct placed run = {0, K3HUF_RUN_HEADER_BYTES, 0, raw};
    (void)decode_good(&run);
}

/* Stripes with an index and without in one run: the magic of every other index is overwritten. */
static void mixed_stripes(void **state) {
    (void)state;
    platform(512);
    memory.order = K3HUF_ORDER_RANDOM;
    start();
    for (unsigned odd = 0; odd < 2; odd++) {
        const struct placed run = place_run(CODE_DEEP, 400003, 65536, 12, 0, 777);
        for (unsigned stripe = odd; stripe < 7; stripe += 2)
            memset(drive + run.offset + locate(&run, stripe).filler, 0, 4);
        const struct k3huf_completion c = decode_good(&run);
        assert_int_equal(c.groups, 3u + odd); /* of one stripe each; the plain ones have none */
    }
}

static void the_end_of_the_drive(void **state) {
    (void)state;
    platform(4096);
    start();
    struct placed run = place_run(CODE_DEEP, 100001, 100001, 12, 0, 0);
    memmove(drive + sizeof drive - run.size, drive, run.size);
    run.offset = sizeof drive - run.size;
    (void)decode_good(&run);
}

static void jobs_queue_up(void **state) {
    (void)state;
    platform(512);
    start();
    struct placed run = place_run(CODE_DEEP, 30001, 10000, 12, 0, 5);
    uint64_t submitted = 0;
    uint64_t completed = 0;
    while (completed < 50) {
        while (submitted < 50 && host.put - completed < ENTRIES) {
            struct k3huf_job job = decode_job(&run, submitted);
            job.destination = DESTINATION + submitted % 4u * 32768u;
            k3huf_memory_submit(&host, &job);
            submitted++;
        }
        const struct k3huf_completion c = next_completion();
        assert_job(&c, K3HUF_OK);
        assert_int_equal(c.id, completed);
        completed++;
    }
    for (unsigned i = 0; i < 4; i++)
        assert_memory_equal(window + DESTINATION + i * 32768u, raw, run.raw_size);
}

/* While groups are decoded, reads for more than one further group are outstanding. */
static void reads_go_ahead(void **state) {
    (void)state;
    platform(512);
    memory.polls = 4;
    start();
    const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 12, 0, 1);
    const struct k3huf_completion c = decode_good(&run);
    assert_int_equal(c.groups, RAW_MAX / K3HUF_INFLIGHT_GROUP_BYTES);
    assert_int_equal(c.ahead_of, c.groups - 1);
    assert_true(c.ahead > c.ahead_of);
    assert_true(memory.most_outstanding > 4);
    assert_true(c.ticks >= c.storage_ticks && c.storage_ticks > 0 && c.decode_ticks > 0 && c.write_ticks > 0);
    assert_int_equal(c.tick_hz, 1000000000);
}

/* With a drive and a window that take their time, a job takes as long as the slower one, and not a tenth longer. */
static void stages_overlap(void **state) {
    static const uint32_t ns[][2] = {{30000, 1}, {30000, 10000}, {30000, 0}, {10000, 20000}}; /* write 0: as reading */
    (void)state;
    for (size_t i = 0; i < 2 * UNIT_COUNT(ns); i++) {
        platform(512);
        start();
        const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 12, 0, 0);
        const size_t raw_bytes = i % 2u == 0 ? run.raw_size : run.size; /* decoded, or as they are */
        const uint32_t *const pair = ns[i / 2u];
        memory.read_ns = pair[0];
        memory.write_ns = pair[1] > 0 ? pair[1] : (uint32_t)((uint64_t)pair[0] * run.size / raw_bytes);
        const uint64_t reading = (uint64_t)run.size * memory.read_ns / 1024u;
        const uint64_t writing = (uint64_t)raw_bytes * memory.write_ns / 1024u;
        const uint64_t slower = reading > writing ? reading : writing;
        struct k3huf_job job = decode_job(&run, 1);
        if (i % 2u == 1) {
            job.kind = K3HUF_KIND_COPY;
            job.destination_bytes = run.size;
        }
        const struct k3huf_completion c = submit_and_wait(&job);
        assert_job(&c, K3HUF_OK);
        assert_int_equal(c.bytes, raw_bytes);
        if (c.ticks < slower || c.ticks > slower + slower / 10u)
            fail_msg("%u, %u ns a KiB, kind %u: %u us where the slower stage takes %u", (unsigned)memory.read_ns,
                     (unsigned)memory.write_ns, (unsigned)job.kind, (unsigned)(c.ticks / 1000u),
                     (unsigned)(slower / 1000u));
    }
}

static void trace_lines(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run =
        place_run(CODE_DEEP, 2 * K3HUF_INFLIGHT_GROUP_BYTES, 2 * K3HUF_INFLIGHT_GROUP_BYTES, 12, 0, 1);
    struct k3huf_job job = decode_job(&run, 1);
    const uint32_t before = memory.lines;
    job.options = K3HUF_OPTION_TRACE;
    const struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_int_equal(memory.lines - before, c.groups);
    char expected[64];
    const unsigned first = K3HUF_INFLIGHT_GROUP_BYTES / 8192u;
    (void)snprintf(expected, sizeof expected, "trace: stripe 0 blocks %u-%u core 0, groups being read ", first,
                   2u * first - 1u);
    assert_non_null(strstr(memory.last_line, expected));
}

/* --------------------------------------------------------------------------------------------- damaged runs ---- */

/* What the core's decoder says of the run as it is on the drive. */
static struct k3huf_feed oracle(const struct placed *run) {
    struct k3huf_feed feed = {.run = drive + run->offset,
                              .run_size = run->size,
                              .out = expected_out,
                              .out_size = run->raw_size,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .coded_chunks = K3HUF_CHUNKS_WHOLE,
                              .raw_chunks = K3HUF_CHUNKS_WHOLE,
                              .out_chunks = K3HUF_CHUNKS_WHOLE};
    k3huf_feed_run(&feed);
    return feed;
}

/* Decode the run as it is, and hold the answer against the decoder's. */
static void agrees_with_decoder(const struct placed *run, const char *what, size_t at) {
    const struct k3huf_feed feed = oracle(run);
    const struct k3huf_job job = decode_job(run, 5);
    const struct k3huf_completion c = submit_and_wait(&job);
    if (feed.status == K3HUF_WAIT) { /* decodes to more than there is room for */
        assert_job(&c, K3HUF_JOB_E_DESTINATION_SMALL);
    } else if (feed.status == K3HUF_DONE) {
        assert_job(&c, K3HUF_OK);
        assert_int_equal(c.bytes, feed.produced);
        assert_memory_equal(window + DESTINATION, expected_out, feed.produced);
    } else if (feed.status == K3HUF_E_TRUNCATED) {
        assert_job(&c, K3HUF_E_TRUNCATED);
        assert_int_equal(c.stripe, feed.place.stripe);
        assert_int_equal(c.offset, run->size);
    } else {
        if (c.status != (uint32_t)feed.status && c.status != K3HUF_JOB_E_DESTINATION_SMALL)
            fail_msg("%s, byte %u: \"%s\" instead of \"%s\"", what, (unsigned)at, k3huf_job_status_text(c.status),
                     k3huf_status_text(feed.status));
        if (c.status == (uint32_t)feed.status &&
            (c.stripe != feed.place.stripe || c.block != feed.place.block || c.offset != feed.place.offset ||
             c.lba != (run->offset + c.offset) / memory.port.limits.lba_bytes))
            fail_msg("%s, byte %u, \"%s\": stripe %u block %u offset %u LBA %u instead of stripe %u block %u offset %u",
                     what, (unsigned)at, k3huf_job_status_text(c.status), c.stripe, c.block, (unsigned)c.offset,
                     (unsigned)c.lba, feed.place.stripe, feed.place.block, (unsigned)feed.place.offset);
    }
    assert_untouched(DESTINATION, run->raw_size);
    memset(window + DESTINATION, PATTERN, run->raw_size);
}

static void flipped_bits(void **state) {
    (void)state;
    struct k3huf_rng rng = {3};
    for (unsigned log2 = 0; log2 <= 12; log2 += 12) {
        platform_with(512, SMALL);
        memory.order = K3HUF_ORDER_RANDOM;
        start();
        const struct placed run = place_run(CODE_DEEP, 60001, 25000, log2, 9, 12345);
        for (unsigned i = 0; i < 1500; i++) {
            /* Headers and indexes first, byte by byte; then anywhere. */
            const struct layout stripe = locate(&run, i % 3u);
            size_t at = k3huf_rng_below(&rng, (uint32_t)run.size);
            if (i < 288)
                at = i;
            else if (i < 400)
                at = stripe.header + i % 16u;
            else if (i < 700)
                at = stripe.filler + k3huf_rng_below(&rng, (uint32_t)(stripe.end - stripe.filler));
            const uint8_t bit = (uint8_t)(1u << k3huf_rng_below(&rng, 8));
            drive[run.offset + at] ^= bit;
            agrees_with_decoder(&run, "a flipped bit", at);
            drive[run.offset + at] ^= bit;
        }
        (void)decode_good(&run);
    }
}

/* A group that fails is not written, and none of what it holds. */
static void nothing_unverified_is_written(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 4 * GROUP, 4 * GROUP, 12, 0, 3);
    const struct layout at = locate(&run, 0);
    const size_t symbol = GROUP / 2 + 5000; /* in the second block of the second group */
    drive[run.offset + at.plane + symbol] ^= 1u;
    const struct k3huf_job job = decode_job(&run, 1);
    const struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_E_BLOCK_CRC);
    assert_int_equal(c.stripe, 0);
    assert_int_equal(c.block, GROUP / 8192 + 1);
    for (unsigned i = 0; i < GROUP; i++)
        assert_int_equal(window[DESTINATION + GROUP + i], PATTERN);
    assert_memory_equal(window + DESTINATION, raw, GROUP);
    drive[run.offset + at.plane + symbol] ^= 1u;
    memset(window + DESTINATION, PATTERN, run.raw_size);
    (void)decode_good(&run);
}

/* Of several failures the first in the run is reported, whatever the order of reads. */
static void the_first_failure_counts(void **state) {
    (void)state;
    for (unsigned order = 0; order < 3; order++) {
        platform(512);
        memory.order = (enum k3huf_memory_order)order;
        start();
        const struct placed run = place_run(CODE_DEEP, 1000000, 500000, 12, 0, 0);
        const struct layout at = locate(&run, 0);
        drive[at.plane + 200000] ^= 1u;
        drive[at.plane + 100000] ^= 1u; /* block 24 */
        drive[locate(&run, 1).header] ^= 1u;
        const struct k3huf_job job = decode_job(&run, 1);
        const struct k3huf_completion c = submit_and_wait(&job);
        assert_job(&c, K3HUF_E_BLOCK_CRC);
        assert_int_equal(c.block, 24);
    }
}

static void cut_runs(void **state) {
    (void)state;
    struct k3huf_rng rng = {4};
    for (unsigned log2 = 0; log2 <= 12; log2 += 12) {
        platform_with(512, SMALL);
        start();
        const struct placed run = place_run(CODE_DEEP, 60001, 25000, log2, 9, 100);
        for (unsigned i = 0; i < 400; i++) {
            struct placed cut = run;
            const struct layout stripe = locate(&run, i % 3u);
            cut.size = i < 100   ? i * 3u
                       : i < 200 ? stripe.header + i - 100u
                       : i < 300 ? stripe.end - i % 40u
                                 : k3huf_rng_below(&rng, (uint32_t)run.size);
            agrees_with_decoder(&cut, "a cut", cut.size);
        }
        (void)decode_good(&run);
    }
}

static void random_bytes(void **state) {
    (void)state;
    platform_with(512, SMALL);
    start();
    const struct placed run = place_run(CODE_DEEP, 60001, 25000, 12, 0, 0);
    struct k3huf_rng rng = {9};
    for (unsigned i = 0; i < 300; i++) {
        /* A sound header and then nonsense, or nonsense in a few places. */
        const size_t at = i % 3u == 0 ? 288 + i : k3huf_rng_below(&rng, (uint32_t)run.size - 64);
        uint8_t kept[64];
        memcpy(kept, drive + at, sizeof kept);
        k3huf_rng_fill(&rng, drive + at, sizeof kept);
        agrees_with_decoder(&run, "random bytes", at);
        memcpy(drive + at, kept, sizeof kept);
    }
    (void)decode_good(&run);
}

static void blocks_too_large(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 300000, 300000, 17, 0, 0);
    const struct k3huf_job job = decode_job(&run, 1);
    const struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_BLOCK_SIZE);
    assert_int_equal(c.stripe, 0);
    assert_int_equal(c.block, 0);
    assert_int_equal(c.offset, locate(&run, 0).filler);
    assert_int_equal(c.bytes, 0);
    assert_untouched(0, 0);
}

static void an_index_can_be_required(void **state) {
    (void)state;
    platform(512);
    start();
    struct placed run = place_run(CODE_DEEP, 100001, 50000, 12, 0, 0);
    struct k3huf_job job = decode_job(&run, 1);
    job.options = K3HUF_OPTION_REQUIRE_INDEX;
    struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_NO_INDEX); /* the last stripe is of one byte and cannot have one */
    assert_int_equal(c.stripe, 2);
    run = place_run(CODE_DEEP, 100000, 50000, 12, 0, 0);
    job = decode_job(&run, 2);
    job.options = K3HUF_OPTION_REQUIRE_INDEX;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    memset(drive + locate(&run, 1).filler, 0, 4);
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_NO_INDEX);
    assert_int_equal(c.stripe, 1);
    assert_int_equal(c.offset, locate(&run, 1).filler);
}

/* ---------------------------------------------------------------------------------------------- drive faults ---- */

/* One unreadable logical block at byte `at` of the run: once, and for ever. */
static void unreadable(const struct placed *run, size_t at, uint32_t stripe, uint32_t block) {
    const uint32_t lba_bytes = memory.port.limits.lba_bytes;
    const uint64_t lba = (run->offset + at) / lba_bytes;
    memory.read_fault[0] = (struct k3huf_memory_fault){lba, 1, 1, K3HUF_PORT_E_MEDIA};
    const struct k3huf_completion once = decode_good(run);
    assert_int_equal(once.retries, 1);

    memory.read_fault[0].times = K3HUF_MEMORY_FOR_EVER;
    const struct k3huf_job job = decode_job(run, 2);
    const struct k3huf_completion c = submit_and_wait(&job);
    memory.read_fault[0].times = 0;
    assert_job(&c, K3HUF_JOB_E_READ);
    if (c.lba != lba || c.stripe != stripe || c.block != block)
        fail_msg("byte %u: LBA %u, stripe %u, block %u instead of %u, %u, %u", (unsigned)at, (unsigned)c.lba, c.stripe,
                 c.block, (unsigned)lba, stripe, block);
    /* The offset is the first byte of the part in that block. */
    assert_true(c.offset <= at && c.offset + lba_bytes > at);
    assert_true(c.retries >= config.read_attempts - 1);
    assert_untouched(DESTINATION, run->raw_size);
    memset(window + DESTINATION, PATTERN, run->raw_size);
    (void)decode_good(run);
}

static void unreadable_blocks(void **state) {
    static const uint32_t lba_sizes[] = {512, 4096};
    (void)state;
    for (size_t k = 0; k < UNIT_COUNT(lba_sizes); k++) {
        platform(lba_sizes[k]);
        start();
        const struct placed run = place_run(CODE_DEEP, 700001, 300000, 12, 2000, 10000 + 17);
        unreadable(&run, 0, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK);
        const struct layout at = locate(&run, 1);
        const struct k3huf_stripe_header header = {at.raw_bytes, at.huf, (uint32_t)(at.end - at.filler)};
        struct k3huf_index index;
        uint32_t bad, block;
        memcpy(index_memory, drive + run.offset + at.filler, at.end - at.filler);
        assert_int_equal(k3huf_index_read(index_memory, at.end - at.filler, &header, &index, &bad, &block), K3HUF_OK);
        /* Where a fault meets two parts, the one that the engine needs first counts; these are far from borders. */
        unreadable(&run, at.coded + k3huf_index_bit(&index, 7) / 8 + lba_sizes[k], 1, 7);
        unreadable(&run, at.coded + k3huf_index_bit(&index, 20) / 8 + lba_sizes[k], 1, 20);
        const size_t in_plane = at.plane + 9 * 4096 + 2048;
        const size_t from =
            in_plane - (size_t)(run.offset + in_plane) % lba_sizes[k]; /* the logical block's first byte */
        unreadable(&run, in_plane, 1, (uint32_t)((from - at.plane) / 4096));
        if (lba_sizes[k] == 512) {
            unreadable(&run, at.header, 1, K3HUF_NO_BLOCK);
            unreadable(&run, at.filler + 200, 1, K3HUF_NO_BLOCK);
        }
    }
}

static void unreadable_plain(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 700001, 300000, 0, 2000, 10000 + 17);
    const struct layout at = locate(&run, 1);
    unreadable(&run, 0, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK);
    unreadable(&run, at.header, 1, K3HUF_NO_BLOCK);
    unreadable(&run, at.coded + 70000, 1, K3HUF_NO_BLOCK);
    unreadable(&run, at.plane + 100000, 1, K3HUF_NO_BLOCK);
}

static void a_drive_that_does_not_answer(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 700000, 350000, 12, 0, 512);
    const uint64_t lba = (run.offset + locate(&run, 1).plane + 50000) / 512;
    memory.read_fault[0] = (struct k3huf_memory_fault){lba, 1, 1, K3HUF_PORT_BUSY};
    struct k3huf_completion c = decode_good(&run);
    assert_int_equal(memory.resets, 1);
    assert_true(c.retries >= 1);
    assert_true(c.ticks >= (uint64_t)config.read_timeout_ms * 1000000u);

    memory.read_fault[0].times = K3HUF_MEMORY_FOR_EVER;
    const struct k3huf_job job = decode_job(&run, 2);
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_READ_TIMEOUT);
    assert_int_equal(c.stripe, 1);
    assert_true(c.lba <= lba && c.lba + 256 > lba);
    assert_int_equal(memory.resets, 1 + config.read_attempts);
    assert_true(c.ticks < (uint64_t)config.read_timeout_ms * 1000000u * (config.read_attempts + 1));
    memory.read_fault[0].times = 0;
    memset(window + DESTINATION, PATTERN, run.raw_size);
    (void)decode_good(&run);

    /* A reset that fails ends the job at once; each further job tries one more. */
    memory.read_fault[0].times = 1;
    memory.reset_fails = true;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_READ_TIMEOUT);
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_DRIVE);
    memory.reset_fails = false;
    memset(window + DESTINATION, PATTERN, run.raw_size);
    (void)decode_good(&run);
}

static void a_drive_that_is_gone(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 700000, 350000, 12, 0, 512);
    const struct k3huf_job job = decode_job(&run, 2);
    memory.read_fault[0] = (struct k3huf_memory_fault){0, UINT32_MAX, K3HUF_MEMORY_FOR_EVER, K3HUF_PORT_E_ABSENT};
    struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_ABSENT);
    memory.read_fault[0].status = K3HUF_PORT_E_DEVICE;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_DRIVE);
    assert_int_equal(c.retries, config.read_attempts - 1);
    memory.read_fault[0].times = 0;
    (void)decode_good(&run);
    /* And one that was never there. */
    platform(512);
    memory.port.limits.lba_count = 0;
    start();
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_ABSENT);
    assert_int_equal(memory.submitted, 0);
}

/* A drive that stops in the middle of a job costs the attempts of one read, whatever waits behind that: read by read
 * each of hundreds would cost as much. The next job, on a drive that answers again, is good. */
static void a_drive_that_stops(void **state) {
    static const uint32_t drives[][2] = {{512, 32}, {4096, 1}, {131072, 32}}; /* transfer, queue depth */
    (void)state;
    for (size_t i = 0; i < UNIT_COUNT(drives); i++) {
        for (unsigned log2 = 0; log2 <= 12; log2 += 12) {
            const uint32_t transfer = drives[i][0];
            platform(512);
            memory.port.limits.max_transfer_bytes = transfer;
            memory.port.limits.queue_depth = drives[i][1];
            start();
            const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, log2, 0, 512);
            const struct k3huf_job jobs[] = {decode_job(&run, 1), part_job(&run, 1000, RAW_MAX - 1000),
                                             copy_job(run.offset, run.size)};
            /* To a copy an index makes no difference, and a part is read like the rest: once is enough. */
            for (size_t k = 0; k < (log2 == 0 ? 1 : UNIT_COUNT(jobs)); k++) {
                const uint64_t lba = (run.offset + 400000) / 512;
                memory.resets = 0;
                memory.read_fault[0] =
                    (struct k3huf_memory_fault){lba, UINT32_MAX, K3HUF_MEMORY_FOR_EVER, K3HUF_PORT_BUSY};
                const struct k3huf_completion c = submit_and_wait(&jobs[k]);
                assert_job(&c, K3HUF_JOB_E_READ_TIMEOUT);
                assert_true(c.lba + transfer / 512 > lba);
                assert_int_equal(memory.resets, config.read_attempts);
                assert_true(c.ticks < (uint64_t)config.read_timeout_ms * 1000000u * (config.read_attempts + 1));
                memory.read_fault[0].times = 0;
                memset(window + DESTINATION, PATTERN, RAW_MAX);
            }
            (void)decode_good(&run);
        }
    }
}

static void a_window_that_fails(void **state) {
    (void)state;
    platform(512);
    start();
    for (unsigned log2 = 0; log2 <= 12; log2 += 12) {
        const struct placed run = place_run(CODE_DEEP, 300000, 300000, log2, 0, 512);
        memory.window_busy = 1000;
        (void)decode_good(&run);
        assert_int_equal(memory.window_busy, 0);
        const struct k3huf_job job = decode_job(&run, 2);
        memory.window_fails = true;
        const struct k3huf_completion c = submit_and_wait(&job);
        memory.window_fails = false;
        assert_job(&c, K3HUF_JOB_E_WINDOW);
        assert_int_equal(c.stripe, 0);
        assert_int_equal(c.bytes, 0);
        (void)decode_good(&run);
    }
}

/* ---------------------------------------------------------------------------------------------- bad requests ---- */

static void bad_jobs(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    const struct k3huf_job good = decode_job(&run, 1);
    const uint64_t blocks = DRIVE_BYTES / 512;
    struct {
        struct k3huf_job job;
        uint32_t status;
    } bad[32];
    unsigned n = 0;
#define BAD(FIELD, VALUE, STATUS)                                                                                      \
    do {                                                                                                               \
        bad[n].job = good;                                                                                             \
        bad[n].job.FIELD = (VALUE);                                                                                    \
        bad[n++].status = (STATUS);                                                                                    \
    } while (0)
    BAD(kind, 0, K3HUF_JOB_E_KIND);
    BAD(kind, 6, K3HUF_JOB_E_KIND);
    BAD(kind, UINT32_MAX, K3HUF_JOB_E_KIND);
    BAD(options, 4, K3HUF_JOB_E_OPTIONS);
    BAD(options, 0x80000000u, K3HUF_JOB_E_OPTIONS);
    BAD(lba, blocks, K3HUF_JOB_E_SOURCE);
    BAD(lba, UINT64_MAX, K3HUF_JOB_E_SOURCE);
    BAD(lba, UINT64_MAX / 512 + 2, K3HUF_JOB_E_SOURCE); /* wraps to block 1 */
    BAD(lba, blocks - 1, K3HUF_JOB_E_SOURCE);
    BAD(offset, UINT64_MAX, K3HUF_JOB_E_SOURCE);
    BAD(offset, DRIVE_BYTES, K3HUF_JOB_E_SOURCE);
    BAD(offset, 0 - (uint64_t)512, K3HUF_JOB_E_SOURCE);
    BAD(run_bytes, UINT64_MAX, K3HUF_JOB_E_SOURCE);
    BAD(run_bytes, DRIVE_BYTES, K3HUF_JOB_E_SOURCE);
    BAD(run_bytes, 0, K3HUF_E_TRUNCATED);
    BAD(destination, 0, K3HUF_JOB_E_OVERLAP);
    BAD(destination, 4095, K3HUF_JOB_E_OVERLAP);
    BAD(destination, SQ + ENTRIES * K3HUF_JOB_BYTES - 1, K3HUF_JOB_E_OVERLAP);
    BAD(destination, CQ + ENTRIES * K3HUF_COMPLETION_BYTES - 1, K3HUF_JOB_E_OVERLAP);
    BAD(destination, WINDOW_BYTES - 29999, K3HUF_JOB_E_DESTINATION);
    BAD(destination, UINT64_MAX - 100, K3HUF_JOB_E_DESTINATION);
    BAD(destination_bytes, UINT64_MAX, K3HUF_JOB_E_DESTINATION);
    BAD(destination_bytes, 29999, K3HUF_JOB_E_DESTINATION_SMALL);
    BAD(destination_bytes, 0, K3HUF_JOB_E_DESTINATION_SMALL);
    /* Where sizes have 32 bits, each of these would be good if it was cut to one. */
    BAD(lba, good.lba + WRAP, K3HUF_JOB_E_SOURCE);
    BAD(offset, good.offset + WRAP, K3HUF_JOB_E_SOURCE);
    BAD(run_bytes, good.run_bytes + WRAP, K3HUF_JOB_E_SOURCE);
    BAD(destination, good.destination + WRAP, K3HUF_JOB_E_DESTINATION);
    BAD(destination_bytes, good.destination_bytes + WRAP, K3HUF_JOB_E_DESTINATION);
#undef BAD
    assert_true(n <= UNIT_COUNT(bad));
    for (unsigned i = 0; i < n; i++) {
        bad[i].job.id = i;
        const struct k3huf_completion c = submit_and_wait(&bad[i].job);
        assert_job(&c, bad[i].status);
        assert_int_equal(c.bytes, 0);
        assert_untouched(0, 0);
    }
    /* Reserved bytes. */
    k3huf_memory_submit(&host, &good);
    window[SQ + (host.put - 1) % ENTRIES * K3HUF_JOB_BYTES + 57] = 1;
    struct k3huf_completion c = next_completion();
    assert_job(&c, K3HUF_JOB_E_KIND);
    /* A run that says that it decodes to 2^32 bytes more than it does. */
    k3huf_put32(drive + run.offset + 12, 1);
    k3huf_put32(drive + run.offset + 16, 65); /* stripes enough for that */
    c = submit_and_wait(&good);
    assert_job(&c, K3HUF_JOB_E_DESTINATION_SMALL);
    assert_untouched(0, 0);
    k3huf_put32(drive + run.offset + 12, 0);
    k3huf_put32(drive + run.offset + 16, 1);
    /* The destination's last byte may be the window's. */
    struct k3huf_job job = good;
    job.destination = WINDOW_BYTES - 30000;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_memory_equal(window + job.destination, raw, 30000);
    assert_untouched(WINDOW_BYTES - 30000, 30000);
}

static uint32_t session_status(void) {
    for (unsigned i = 0; i < 100; i++)
        (void)step();
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_SESSION), host.session);
    return k3huf_memory_device(&host, K3HUF_DEVICE_STATUS);
}

static void bad_control_blocks(void **state) {
    static const struct {
        uint32_t at, value;
    } bad[] = {{K3HUF_HOST_MAGIC, 0},
               {K3HUF_HOST_VERSION, 2},
               {K3HUF_HOST_WINDOW + 4, 1},
               {K3HUF_HOST_WINDOW, 4096},
               {K3HUF_HOST_SQ, 4064},
               {K3HUF_HOST_SQ, 0},
               {K3HUF_HOST_SQ, 4097},
               {K3HUF_HOST_SQ, SMALL - 64},
               {K3HUF_HOST_SQ + 4, UINT32_MAX},
               {K3HUF_HOST_SQ + 4, 1}, /* 2^32 too far */
               {K3HUF_HOST_CQ + 4, 1},
               {K3HUF_HOST_SQ, CQ},
               {K3HUF_HOST_CQ, SQ + 64},
               {K3HUF_HOST_CQ, SMALL},
               {K3HUF_HOST_SQ_ENTRIES, 0},
               {K3HUF_HOST_SQ_ENTRIES, 257},
               {K3HUF_HOST_SQ_ENTRIES, UINT32_MAX},
               {K3HUF_HOST_CQ_ENTRIES, 0},
               {K3HUF_HOST_CQ_ENTRIES, 0x04000000}};
    (void)state;
    platform_with(512, SMALL);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
        k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
        k3huf_put32(window + bad[i].at, bad[i].value);
        const struct k3huf_job job = decode_job(&run, 1);
        k3huf_memory_submit(&host, &job);
        if (session_status() != K3HUF_JOB_E_CONTROL) fail_msg("control block %u was taken", (unsigned)i);
        assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_READY);
        assert_untouched(0, 0);
    }
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    assert_int_equal(session_status(), 0);
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_ATTACHED);
    (void)decode_good(&run);
}

/* Rings and control block full of anything. */
static void garbage(void **state) {
    (void)state;
    struct k3huf_rng rng = {11};
    platform_with(512, SMALL);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    unsigned answered = 0;
    for (unsigned i = 0; i < 600; i++) {
        k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
        (void)session_status();
        k3huf_rng_fill(&rng, window + SQ, ENTRIES * K3HUF_JOB_BYTES);
        for (unsigned k = 0; k < ENTRIES && i % 4u != 0; k++) {
            uint8_t *const job = window + SQ + k * K3HUF_JOB_BYTES;
            k3huf_put32(job + K3HUF_JOB_PHASE, 1);
            k3huf_put32(job + K3HUF_JOB_KIND, 1 + k % 4u);
            k3huf_put32(job + K3HUF_JOB_OPTIONS, k % 4u);
            k3huf_put32(job + 56, 0);
            if (i % 4u == 2) { /* nearly right */
                k3huf_put64(job + K3HUF_JOB_LBA, k3huf_rng_below(&rng, 10000));
                k3huf_put64(job + K3HUF_JOB_OFFSET, k3huf_rng_below(&rng, 1000));
                k3huf_put64(job + K3HUF_JOB_RUN_BYTES, k3huf_rng_below(&rng, 100000));
                k3huf_put64(job + K3HUF_JOB_DESTINATION, SMALL - k3huf_rng_below(&rng, 100));
                k3huf_put64(job + K3HUF_JOB_DESTINATION_BYTES, k3huf_rng_below(&rng, 100));
            }
        }
        if (i % 8u == 7) k3huf_put32(window + K3HUF_HOST_CQ_TAKEN, (uint32_t)k3huf_rng_next(&rng));
        (void)session_status();
        struct k3huf_completion c;
        while (k3huf_memory_complete(&host, &c)) {
            assert_true(c.status != 0 || k3huf_get32(window + SQ + (host.taken - 1) * 64u + K3HUF_JOB_KIND) == 3);
            answered++;
        }
        assert_untouched(0, 0);
    }
    assert_true(answered > 600);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    (void)decode_good(&run);
}

static enum k3huf_port_status (*real_flush)(void *, uint32_t);
static bool closing, closed_without_reason;

/* A host may look after any flush: a session that is closed has its reason by then. */
static enum k3huf_port_status watched_flush(void *context, uint32_t core) {
    const enum k3huf_port_status status = real_flush(context, core);
    if (closing && k3huf_memory_device(&host, K3HUF_DEVICE_STATE) != K3HUF_STATE_ATTACHED &&
        k3huf_memory_device(&host, K3HUF_DEVICE_STATUS) != K3HUF_JOB_E_RING) {
        closed_without_reason = true;
    }
    return status;
}

static void closed_sessions_have_their_reason(void **state) {
    (void)state;
    platform_with(512, SMALL);
    real_flush = memory.port.window_flush;
    memory.port.window_flush = watched_flush;
    closed_without_reason = false;
    start();
    assert_int_equal(session_status(), 0);
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_ATTACHED);
    k3huf_put32(window + SQ + K3HUF_JOB_PHASE, 3);
    closing = true;
    assert_int_equal(session_status(), K3HUF_JOB_E_RING);
    closing = false;
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_READY);
    assert_false(closed_without_reason);
}

static void bad_bookkeeping(void **state) {
    (void)state;
    platform_with(512, SMALL);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    const struct k3huf_job job = decode_job(&run, 1);
    (void)session_status();
    k3huf_put32(window + K3HUF_HOST_CQ_TAKEN, 5); /* of none that were put out */
    k3huf_memory_submit(&host, &job);
    for (unsigned i = 0; i < 20000 && k3huf_memory_device(&host, K3HUF_DEVICE_STATUS) == 0; i++)
        (void)step();
    assert_int_equal(session_status(), K3HUF_JOB_E_RING);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    (void)session_status();
    k3huf_memory_submit(&host, &job);
    k3huf_put32(window + SQ + K3HUF_JOB_PHASE, 3);
    assert_int_equal(session_status(), K3HUF_JOB_E_RING);
    assert_untouched(DESTINATION, run.raw_size);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    (void)decode_good(&run);
}

/* ------------------------------------------------------------------------------- cancel, sessions, shutdown ---- */

static void run_until_busy_reading(void) {
    const uint32_t before = memory.submitted;
    while (memory.submitted < before + 10)
        (void)step();
}

static void cancelling(void **state) {
    (void)state;
    platform(512);
    memory.polls = 50;
    start();
    const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 12, 0, 512);
    struct k3huf_job job = decode_job(&run, 10);
    k3huf_memory_submit(&host, &job);
    job.id = 11;
    k3huf_memory_submit(&host, &job);
    run_until_busy_reading();
    struct k3huf_job stop = {.id = 20, .kind = K3HUF_KIND_CANCEL, .lba = 11};
    k3huf_memory_submit(&host, &stop);
    stop.id = 21;
    stop.lba = 10;
    k3huf_memory_submit(&host, &stop);
    stop.id = 22;
    stop.lba = 12;
    k3huf_memory_submit(&host, &stop);
    const uint32_t expected[][2] = {{11, K3HUF_JOB_E_CANCELLED},
                                    {20, K3HUF_OK},
                                    {21, K3HUF_OK},
                                    {22, K3HUF_JOB_E_NOT_FOUND},
                                    {10, K3HUF_JOB_E_CANCELLED}};
    for (size_t i = 0; i < UNIT_COUNT(expected); i++) {
        const struct k3huf_completion c = next_completion();
        assert_int_equal(c.id, expected[i][0]);
        assert_job(&c, expected[i][1]);
        if (c.id == 10) assert_true(c.bytes < RAW_MAX);
    }
    memory.polls = 1;
    memset(window + DESTINATION, PATTERN, RAW_MAX);
    (void)decode_good(&run);
}

static void a_host_that_stops_taking_completions(void **state) {
    (void)state;
    platform(512);
    start();
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, 2);
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    const struct k3huf_job job = decode_job(&run, 1);
    for (unsigned i = 0; i < ENTRIES; i++)
        k3huf_memory_submit(&host, &job);
    for (unsigned i = 0; i < 5000; i++)
        (void)step();
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_ATTACHED);
    /* It was only slow: all of them are there. */
    for (unsigned i = 0; i < ENTRIES; i++) {
        const struct k3huf_completion c = next_completion();
        assert_job(&c, K3HUF_OK);
    }
    for (unsigned i = 0; i < 5; i++)
        k3huf_memory_submit(&host, &job);
    const uint64_t began = memory.time;
    while (k3huf_memory_device(&host, K3HUF_DEVICE_STATE) == K3HUF_STATE_ATTACHED)
        (void)step();
    assert_true(memory.time - began < (uint64_t)config.host_timeout_ms * 1000000u * 2u);
    assert_int_equal(session_status(), K3HUF_JOB_E_COMPLETIONS);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    memset(window + DESTINATION, PATTERN, run.raw_size);
    (void)decode_good(&run);
}

/* A new session ends the old one's job, and nothing of that job is written once the session has begun. */
static void a_session_in_the_middle_of_a_job(void **state) {
    (void)state;
    platform(512);
    memory.polls = 50;
    start();
    const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 12, 0, 512);
    const struct k3huf_job job = decode_job(&run, 10);
    k3huf_memory_submit(&host, &job);
    run_until_busy_reading();
    k3huf_put32(window + K3HUF_HOST_SESSION, 0);
    while (k3huf_memory_device(&host, K3HUF_DEVICE_SESSION) != 0)
        (void)step();
    memset(window + DESTINATION, PATTERN, RAW_MAX);
    memory.polls = 1;
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    assert_int_equal(session_status(), 0);
    assert_untouched(0, 0);
    struct k3huf_completion c;
    assert_false(k3huf_memory_complete(&host, &c));
    (void)decode_good(&run);
}

static void shutting_down(void **state) {
    (void)state;
    platform(512);
    memory.polls = 50;
    start();
    const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 12, 0, 512);
    struct k3huf_job job = decode_job(&run, 10);
    k3huf_memory_submit(&host, &job);
    job.id = 11;
    k3huf_memory_submit(&host, &job);
    run_until_busy_reading();
    k3huf_put32(window + K3HUF_HOST_REQUEST, K3HUF_REQUEST_SHUTDOWN);
    unsigned steps = 0;
    while (step() != K3HUF_STEP_STOPPED)
        assert_true(++steps < STEPS_MAX);
    for (unsigned i = 0; i < 2; i++) {
        struct k3huf_completion c;
        assert_true(k3huf_memory_complete(&host, &c));
        assert_int_equal(c.id, 11 - i);
        assert_job(&c, K3HUF_JOB_E_CANCELLED);
    }
    assert_int_equal(k3huf_memory_device(&host, K3HUF_DEVICE_STATE), K3HUF_STATE_STOPPED);
    assert_int_equal(memory.outstanding, 0);
    assert_true(k3huf_inflight_finish(&engine));
    /* What a dead host left is not run by the next firmware: it waits for a session of its own. */
    memset(window + DESTINATION, PATTERN, RAW_MAX);
    memory.polls = 1;
    k3huf_put32(window + K3HUF_HOST_REQUEST, K3HUF_REQUEST_NONE);
    assert_int_equal(k3huf_inflight_start(&engine, &memory.port, &config), K3HUF_PORT_OK);
    for (unsigned i = 0; i < 1000; i++)
        (void)step();
    assert_untouched(0, 0);
    k3huf_memory_attach(&host, SQ, ENTRIES, CQ, ENTRIES);
    (void)decode_good(&run);
}

static void impossible_limits(void **state) {
    (void)state;
    platform(512);
    const struct k3huf_port good = memory.port;
    for (unsigned i = 0; i < 14; i++) {
        struct k3huf_port_limits *const limits = &memory.port.limits;
        memory.port = good;
        switch (i) {
        case 0: limits->lba_bytes = 0; break;
        case 1: limits->lba_bytes = 520; break;
        case 2: limits->lba_bytes = 8192; break;
        case 3: limits->max_transfer_bytes = 0; break;
        case 4: limits->max_transfer_bytes = 700; break;
        case 5: limits->buffer_align = 8192; break;
        case 6: limits->queue_depth = 0; break;
        case 7: limits->core_count = 0; break;
        case 8: limits->window_bytes = 4095; break;
        case 9: limits->tick_hz = 999; break;
        case 10: limits->buffer_align = 1024; break; /* more than a logical block: a read can begin at any of them */
        case 11: limits->buffer_align = 0; break;
        case 12: limits->buffer_align = 3; break;
        default: limits->lba_count = UINT64_MAX; break;
        }
        assert_int_equal(k3huf_inflight_start(&engine, &memory.port, &config), K3HUF_PORT_E_ARGUMENT);
    }
    memory.port = good;
    memory.port.limits.core_count = 3; /* which do not start */
    start();
    assert_int_equal(engine.cores, 1);
    const struct placed run = place_run(CODE_DEEP, 300000, 300000, 12, 0, 512);
    (void)decode_good(&run);
}

/* ----------------------------------------------------------------------------------------- table of contents ---- */

static uint32_t make_table(uint32_t entries) {
    const uint32_t size = K3HUF_IMAGE_HEAD_BYTES + entries * K3HUF_IMAGE_ENTRY_BYTES;
    memset(drive, 0, size);
    k3huf_put32(drive + K3HUF_IMAGE_MAGIC, K3HUF_IMAGE_MAGIC_VALUE);
    k3huf_put32(drive + K3HUF_IMAGE_VERSION, K3HUF_IMAGE_VERSION_VALUE);
    k3huf_put32(drive + K3HUF_IMAGE_LBA_BYTES, 512);
    k3huf_put32(drive + K3HUF_IMAGE_ENTRIES, entries);
    for (uint32_t i = 0; i < entries; i++)
        drive[K3HUF_IMAGE_HEAD_BYTES + i * K3HUF_IMAGE_ENTRY_BYTES + K3HUF_IMAGE_NAME] = 'a';
    k3huf_put32(drive + K3HUF_IMAGE_CRC, k3huf_image_table_crc(drive, size));
    return size;
}

static void listing(void **state) {
    (void)state;
    platform(512);
    start();
    struct k3huf_job job = {.id = 1,
                            .kind = K3HUF_KIND_LIST,
                            .run_bytes = DRIVE_BYTES,
                            .destination = DESTINATION,
                            .destination_bytes = K3HUF_IMAGE_BYTES_MAX};
    static const uint32_t counts[] = {0, 1, 5, 100, K3HUF_IMAGE_ENTRIES_MAX};
    for (size_t i = 0; i < UNIT_COUNT(counts); i++) {
        const uint32_t size = make_table(counts[i]);
        struct k3huf_completion c = submit_and_wait(&job);
        assert_job(&c, K3HUF_OK);
        assert_int_equal(c.bytes, size);
        assert_memory_equal(window + DESTINATION, drive, size);
        assert_untouched(DESTINATION, size);
        memset(window + DESTINATION, PATTERN, size);

        job.destination_bytes = size - 1;
        c = submit_and_wait(&job);
        assert_job(&c, K3HUF_JOB_E_DESTINATION_SMALL);
        job.destination_bytes = K3HUF_IMAGE_BYTES_MAX;
        job.run_bytes = size - 1;
        c = submit_and_wait(&job);
        assert_job(&c, K3HUF_JOB_E_TABLE);
        job.run_bytes = DRIVE_BYTES;
        for (uint32_t at = 0; at < size; at += 1 + size / 200) {
            drive[at] ^= 1u;
            c = submit_and_wait(&job);
            assert_job(&c, K3HUF_JOB_E_TABLE);
            drive[at] ^= 1u;
        }
        memory.read_fault[0] =
            (struct k3huf_memory_fault){(size - 1) / 512, 1, K3HUF_MEMORY_FOR_EVER, K3HUF_PORT_E_MEDIA};
        c = submit_and_wait(&job);
        assert_job(&c, K3HUF_JOB_E_READ);
        assert_int_equal(c.lba, (size - 1) / 512);
        memory.read_fault[0].times = 0;
        assert_untouched(0, 0);
    }
}

/* The table is read twice, first for its size. Whenever the drive changes its mind: what comes is one table, or none.
 */
static void a_table_that_changes(void **state) {
    (void)state;
    unsigned done = 0, refused = 0;
    for (unsigned steps = 0; done == 0 || refused == 0; steps++) {
        assert_true(steps < 1000);
        platform(512);
        memory.polls = 50;
        start();
        (void)session_status();
        (void)make_table(0);
        const struct k3huf_job list = {.id = 1,
                                       .kind = K3HUF_KIND_LIST,
                                       .run_bytes = DRIVE_BYTES,
                                       .destination = DESTINATION,
                                       .destination_bytes = K3HUF_IMAGE_BYTES_MAX};
        k3huf_memory_submit(&host, &list);
        for (unsigned i = 0; i < steps; i++) {
            (void)step();
        }
        k3huf_put32(drive + K3HUF_IMAGE_ENTRIES, K3HUF_IMAGE_ENTRIES_MAX);
        k3huf_put32(drive + K3HUF_IMAGE_CRC, k3huf_image_table_crc(drive, K3HUF_IMAGE_HEAD_BYTES));
        const struct k3huf_completion c = next_completion();
        if (c.status == K3HUF_OK) {
            assert_int_equal(c.bytes, K3HUF_IMAGE_HEAD_BYTES);
            assert_int_equal(k3huf_image_table_bytes(window + DESTINATION), K3HUF_IMAGE_HEAD_BYTES);
            done++;
        } else {
            assert_job(&c, K3HUF_JOB_E_TABLE);
            assert_untouched(0, 0);
            refused++;
        }
    }
}

/* ------------------------------------------------------------------------------------ parts of runs, copies ---- */

/* Raw bytes `from` ... `from + size - 1` of the run arrive, and no others. */
static struct k3huf_completion part_good(const struct placed *run, size_t from, size_t size) {
    const struct k3huf_job job = part_job(run, from, size);
    const struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_int_equal(c.bytes, size);
    assert_int_equal(c.crc, 0);
    if (memcmp(window + DESTINATION, run->raw + from, size) != 0)
        fail_msg("wrong bytes of %u from %u on", (unsigned)size, (unsigned)from);
    assert_untouched(DESTINATION, size);
    memset(window + DESTINATION, PATTERN, size);
    return c;
}

/* Every pair of borders: of run, stripes, blocks and groups, and a byte to either side. */
static void parts_of_runs(void **state) {
    enum { STRIPE = GROUP + 8193 };
    static const size_t point[] = {0,
                                   1,
                                   8191,
                                   8192,
                                   GROUP - 1,
                                   GROUP + 1,
                                   STRIPE - 1,
                                   STRIPE,
                                   STRIPE + 1,
                                   STRIPE + GROUP + 8192,
                                   2 * STRIPE + 3,
                                   3 * STRIPE + 4096,
                                   3 * STRIPE + 4097};
    (void)state;
    for (unsigned shape = 0; shape < 4; shape++) {
        platform_with(shape % 2u == 0 ? 512 : 4096, DESTINATION + 3 * STRIPE + 8192);
        memory.order = K3HUF_ORDER_RANDOM;
        memory.polls = 1 + shape;
        start();
        const struct placed run = place_run(CODE_DEEP, 3 * STRIPE + 4097, STRIPE, shape == 1 ? 0 : 12, shape, 777);
        for (unsigned stripe = shape; shape > 1 && stripe < 4; stripe += 2) /* some of them without index */
            memset(drive + run.offset + locate(&run, stripe - 2).filler, 0, 4);
        for (size_t i = 0; i < UNIT_COUNT(point); i++)
            for (size_t k = i; k < UNIT_COUNT(point); k++)
                (void)part_good(&run, point[i], point[k] - point[i]);
        (void)decode_good(&run);
    }
}

static void parts_read_no_more_than_they_need(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, RAW_MAX, 1u << 20, 12, 0, 1);
    struct k3huf_completion c = part_good(&run, 2500000, 100);
    assert_int_equal(c.groups, 1);
    /* Header, three stripe headers, an index that may have 2 KiB, a block: 4 KiB of raw plane, 6 KiB of codes. */
    assert_true(c.read > 4096 && c.read <= 1024 + 3 * 1024 + 3072 + 5120 + 7168);
    assert_int_equal(c.read % 512, 0);
    c = part_good(&run, 2500000, 0);
    assert_int_equal(c.groups, 0);
    assert_true(c.read <= 1024);
    c = decode_good(&run);
    assert_true(c.read >= run.size);
    /* Of a stripe without index, all that comes before. */
    const struct placed plain = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, 0, 0, 1);
    c = part_good(&plain, 1000, 100);
    assert_true(c.read < plain.size);
}

/* Damage is found where it is in what is wanted, and only there. */
static void parts_of_damaged_runs(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 4 * GROUP, 2 * GROUP, 12, 0, 3);
    const struct layout at = locate(&run, 1);
    drive[run.offset + at.plane + 4096 * 2 + 5] ^= 1u; /* block 2 of the second stripe */
    (void)part_good(&run, 0, 2 * GROUP + 2 * 8192);
    (void)part_good(&run, 2 * GROUP + 3 * 8192, 2 * GROUP - 3 * 8192);
    const struct k3huf_job bad = part_job(&run, 2 * GROUP + 3 * 8192 - 1, 2);
    const struct k3huf_completion c = submit_and_wait(&bad);
    assert_job(&c, K3HUF_E_BLOCK_CRC);
    assert_int_equal(c.stripe, 1);
    assert_int_equal(c.block, 2);
    assert_int_equal(c.bytes, 0);
    assert_untouched(0, 0);
    drive[run.offset + at.plane + 4096 * 2 + 5] ^= 1u;
    /* A header is needed to find what lies behind it; an index is not. */
    const struct k3huf_job behind = part_job(&run, 3 * GROUP, 100);
    drive[run.offset + locate(&run, 0).header] ^= 1u;
    struct k3huf_completion found = submit_and_wait(&behind);
    assert_job(&found, K3HUF_E_STRIPE_MAGIC);
    assert_int_equal(found.stripe, 0);
    drive[run.offset + locate(&run, 0).header] ^= 1u;
    memset(drive + run.offset + locate(&run, 0).filler, 0, 4);
    (void)part_good(&run, 3 * GROUP, 100);
    struct k3huf_job strict = behind;
    strict.options = K3HUF_OPTION_REQUIRE_INDEX;
    found = submit_and_wait(&strict);
    assert_job(&found, K3HUF_OK);
    memset(window + DESTINATION, PATTERN, 100);
    strict.from = 100;
    found = submit_and_wait(&strict);
    assert_job(&found, K3HUF_JOB_E_NO_INDEX);
    assert_int_equal(found.stripe, 0);
    assert_untouched(0, 0);
}

/* A stripe that is a byte shorter by its header can leave all else in place, and would move what is behind it. */
static void parts_behind_a_false_size(void **state) {
    (void)state;
    platform(512);
    start();
    const size_t stripe = 2 * GROUP + 1002;
    const struct placed run = place_run(CODE_DEEP, 3 * stripe, (uint32_t)stripe, 12, 0, 3);
    for (unsigned damaged = 0; damaged < 3; damaged++) {
        uint8_t *const size = drive + run.offset + locate(&run, damaged).header + 4;
        for (size_t from = 5; from < 3 * stripe; from += stripe) {
            (void)part_good(&run, from, 100);
            *size ^= 3u; /* an odd number, with as many even bytes, as many blocks */
            const struct k3huf_job job = part_job(&run, from, 100);
            const struct k3huf_completion c = submit_and_wait(&job);
            assert_job(&c, K3HUF_E_STRIPE_RAW);
            assert_int_equal(c.stripe, 2); /* where the sum does not come out */
            memset(window + DESTINATION, PATTERN, 100);
            *size ^= 3u;
        }
    }
}

static void parts_that_are_not_there(void **state) {
    static const uint64_t bad[][2] = {
        {0, 30001}, {30000, 1}, {30001, 0}, {29999, 2}, {UINT64_MAX, 1}, {UINT64_MAX, 0}, {UINT64_MAX - 9, 30000}};
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
        const struct k3huf_job job = part_job(&run, bad[i][0], bad[i][1]);
        const struct k3huf_completion c = submit_and_wait(&job);
        assert_job(&c, K3HUF_JOB_E_PART);
        assert_int_equal(c.offset, 8);
        assert_int_equal(c.bytes, 0);
        assert_untouched(0, 0);
    }
    /* The run's place need not be given by its own logical block. */
    struct k3huf_job job = part_job(&run, 5, 100);
    job.lba = 0;
    job.offset = run.offset;
    struct k3huf_completion c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_memory_equal(window + DESTINATION, raw + 5, 100);
    memset(window + DESTINATION, PATTERN, 100);
    job.offset = UINT32_MAX;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_SOURCE);
    (void)part_good(&run, 0, 30000);
    (void)part_good(&run, 30000, 0);
}

static void copies(void **state) {
    enum { LARGE = (K3HUF_INFLIGHT_SLOTS + 2u) * K3HUF_INFLIGHT_SYMBOLS + 3u }; /* more than the ring holds */
    static const uint32_t lba_sizes[] = {512, 4096};
    static const uint64_t offsets[] = {0, 511, 70001};
    static const uint64_t sizes[] = {0, 1, 512, 4097, K3HUF_INFLIGHT_SYMBOLS, K3HUF_INFLIGHT_SYMBOLS + 1, LARGE};
    (void)state;
    for (size_t k = 0; k < UNIT_COUNT(lba_sizes); k++) {
        platform_with(lba_sizes[k], DESTINATION + LARGE + 4096);
        memory.order = K3HUF_ORDER_RANDOM;
        memory.polls = 3;
        start();
        const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512); /* fills the drive */
        for (size_t i = 0; i < UNIT_COUNT(offsets) * UNIT_COUNT(sizes); i++) {
            const uint64_t offset = offsets[i % UNIT_COUNT(offsets)];
            const uint64_t size = sizes[i / UNIT_COUNT(offsets)];
            struct k3huf_job job = copy_job(offset, size);
            struct k3huf_completion c = submit_and_wait(&job);
            assert_job(&c, K3HUF_OK);
            assert_int_equal(c.bytes, size);
            assert_int_equal(c.crc, k3huf_crc32c(0, drive + offset, (size_t)size));
            assert_int_equal(c.groups, 0);
            assert_true(c.read >= size && c.read < size + 2 * lba_sizes[k]);
            if (memcmp(window + DESTINATION, drive + offset, (size_t)size) != 0) fail_msg("wrong bytes in the window");
            assert_untouched(DESTINATION, (size_t)size);
            memset(window + DESTINATION, PATTERN, (size_t)size);
            /* A part of the same: what is read and checked stays all of it. */
            job.from = size / 3u;
            job.destination_bytes = (size - job.from) / 2u;
            c = submit_and_wait(&job);
            assert_job(&c, K3HUF_OK);
            assert_int_equal(c.bytes, job.destination_bytes);
            assert_int_equal(c.crc, k3huf_crc32c(0, drive + offset, (size_t)size));
            assert_memory_equal(window + DESTINATION, drive + offset + job.from, (size_t)job.destination_bytes);
            assert_untouched(DESTINATION, (size_t)job.destination_bytes);
            memset(window + DESTINATION, PATTERN, (size_t)size);
        }
        assert_true(memory.most_outstanding > 4);
        (void)decode_good(&run);
    }
}

static void copies_that_fail(void **state) {
    (void)state;
    platform(512);
    start();
    const struct placed run = place_run(CODE_DEEP, 30000, 30000, 12, 0, 512);
    static const uint64_t bad[][2] = {{0, 500001}, {1, 500000}, {500001, 0}, {UINT64_MAX, 1}, {UINT64_MAX - 9, 500000}};
    struct k3huf_job job = copy_job(1000, 500000);
    struct k3huf_completion c;
    for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
        job.from = bad[i][0];
        job.destination_bytes = bad[i][1];
        c = submit_and_wait(&job);
        assert_job(&c, K3HUF_JOB_E_PART);
        assert_int_equal(c.bytes, 0);
        assert_untouched(0, 0);
    }
    job = copy_job(DRIVE_BYTES - 100, 101);
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_SOURCE);
    job = copy_job(1000, 500000);
    memory.read_fault[0] = (struct k3huf_memory_fault){700, 1, 1, K3HUF_PORT_E_MEDIA};
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_OK);
    assert_int_equal(c.retries, 1);
    assert_int_equal(c.crc, k3huf_crc32c(0, drive + 1000, 500000));
    memset(window + DESTINATION, PATTERN, 500000);
    memory.read_fault[0] = (struct k3huf_memory_fault){700, 1, K3HUF_MEMORY_FOR_EVER, K3HUF_PORT_E_MEDIA};
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_READ);
    assert_int_equal(c.lba, 700);
    assert_int_equal(c.offset, 700 * 512 - 1000);
    assert_int_equal(c.stripe, K3HUF_JOB_NOWHERE);
    assert_true(c.bytes <= c.offset && c.bytes > 0);
    assert_memory_equal(window + DESTINATION, drive + 1000, (size_t)c.bytes);
    assert_untouched(DESTINATION, (size_t)c.bytes);
    memset(window + DESTINATION, PATTERN, (size_t)c.bytes);
    memory.read_fault[0].times = 0;
    memory.window_fails = true;
    c = submit_and_wait(&job);
    assert_job(&c, K3HUF_JOB_E_WINDOW);
    assert_int_equal(c.bytes, 0);
    memory.window_fails = false;
    (void)decode_good(&run);
}

static void cancelling_parts_and_copies(void **state) {
    (void)state;
    platform(512);
    memory.polls = 50;
    start();
    for (unsigned log2 = 0; log2 <= 12; log2 += 12) {
        const struct placed run = place_run(CODE_DEEP, RAW_MAX, RAW_MAX, log2, 0, 512);
        const struct k3huf_job jobs[] = {part_job(&run, 8193, RAW_MAX - 8193), copy_job(run.offset, run.size)};
        for (size_t i = 0; i < UNIT_COUNT(jobs); i++) {
            k3huf_memory_submit(&host, &jobs[i]);
            run_until_busy_reading();
            const struct k3huf_job stop = {.id = 20, .kind = K3HUF_KIND_CANCEL, .lba = jobs[i].id};
            const struct k3huf_completion first = submit_and_wait(&stop);
            assert_job(&first, K3HUF_OK);
            const struct k3huf_completion c = next_completion();
            assert_int_equal(c.id, jobs[i].id);
            assert_job(&c, K3HUF_JOB_E_CANCELLED);
            assert_true(c.bytes < jobs[i].destination_bytes);
            assert_untouched(DESTINATION, (size_t)jobs[i].destination_bytes);
            memset(window + DESTINATION, PATTERN, RAW_MAX);
        }
        (void)decode_good(&run);
    }
}

/* Whenever the cancel comes: done with all of the table, or cancelled with none of it. */
static void cancelled_listing(void **state) {
    (void)state;
    unsigned cancelled = 0, done = 0;
    for (unsigned steps = 0; done == 0; steps++) {
        platform_with(512, SMALL);
        memory.polls = 10;
        start();
        const uint32_t size = make_table(100);
        const struct k3huf_job list = {
            .id = 1, .kind = K3HUF_KIND_LIST, .run_bytes = size, .destination = DESTINATION, .destination_bytes = size};
        const struct k3huf_job stop = {.id = 2, .kind = K3HUF_KIND_CANCEL, .lba = 1};
        (void)session_status();
        k3huf_memory_submit(&host, &list);
        for (unsigned i = 0; i < steps; i++) {
            (void)step();
        }
        k3huf_memory_submit(&host, &stop);
        for (unsigned i = 0; i < 2; i++) {
            const struct k3huf_completion c = next_completion();
            if (c.id == 2) {
                assert_true(c.status == K3HUF_OK || (c.status == K3HUF_JOB_E_NOT_FOUND && done == 1));
            } else if (c.status == K3HUF_OK) {
                assert_int_equal(c.bytes, size);
                assert_memory_equal(window + DESTINATION, drive, size);
                assert_untouched(DESTINATION, size);
                done++;
            } else {
                assert_job(&c, K3HUF_JOB_E_CANCELLED);
                assert_int_equal(c.bytes, 0);
                assert_int_equal(c.stripe, K3HUF_JOB_NOWHERE);
                assert_untouched(0, 0);
                cancelled++;
            }
        }
        assert_true(steps < 1000);
    }
    assert_true(cancelled > 1);
}

static void statuses_have_texts(void **state) {
    (void)state;
    for (uint32_t i = 0; i < K3HUF_JOB_STATUS_END; i++) {
        const bool known = i < K3HUF_STATUS_COUNT || i >= K3HUF_JOB_E_CONTROL;
        assert_int_equal(strcmp(k3huf_job_status_text(i), "unknown status") != 0, known);
    }
    assert_string_equal(k3huf_job_status_text(UINT32_MAX), "unknown status");
    for (unsigned i = 0; i < K3HUF_PORT_STATUS_COUNT; i++)
        assert_string_not_equal(k3huf_port_status_text((enum k3huf_port_status)i), "unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_every_shape),
        cmocka_unit_test(every_sample_code),
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(an_empty_run),
        cmocka_unit_test(mixed_stripes),
        cmocka_unit_test(the_end_of_the_drive),
        cmocka_unit_test(jobs_queue_up),
        cmocka_unit_test(reads_go_ahead),
        cmocka_unit_test(stages_overlap),
        cmocka_unit_test(trace_lines),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(nothing_unverified_is_written),
        cmocka_unit_test(the_first_failure_counts),
        cmocka_unit_test(cut_runs),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(blocks_too_large),
        cmocka_unit_test(an_index_can_be_required),
        cmocka_unit_test(unreadable_blocks),
        cmocka_unit_test(unreadable_plain),
        cmocka_unit_test(a_drive_that_does_not_answer),
        cmocka_unit_test(a_drive_that_is_gone),
        cmocka_unit_test(a_drive_that_stops),
        cmocka_unit_test(a_window_that_fails),
        cmocka_unit_test(bad_jobs),
        cmocka_unit_test(bad_control_blocks),
        cmocka_unit_test(garbage),
        cmocka_unit_test(closed_sessions_have_their_reason),
        cmocka_unit_test(bad_bookkeeping),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(a_host_that_stops_taking_completions),
        cmocka_unit_test(a_session_in_the_middle_of_a_job),
        cmocka_unit_test(shutting_down),
        cmocka_unit_test(impossible_limits),
        cmocka_unit_test(listing),
        cmocka_unit_test(a_table_that_changes),
        cmocka_unit_test(parts_of_runs),
        cmocka_unit_test(parts_read_no_more_than_they_need),
        cmocka_unit_test(parts_of_damaged_runs),
        cmocka_unit_test(parts_behind_a_false_size),
        cmocka_unit_test(parts_that_are_not_there),
        cmocka_unit_test(copies),
        cmocka_unit_test(copies_that_fail),
        cmocka_unit_test(cancelling_parts_and_copies),
        cmocka_unit_test(cancelled_listing),
        cmocka_unit_test(statuses_have_texts),
    };
    return cmocka_run_group_tests_name("inflight", tests, NULL, NULL);
}
