/* test_inflight_threads.c - the in-flight engine on POSIX threads: one core and several, a file as the drive, a mapped
 * file as the window, this program as the host. Built with the thread sanitizer as well. Shows that reads overlap
 * decoding: with paced stages a job takes as long as the slower one, not as long as both. What the machine does not
 * give these threads, since others are at work too, does not count. */
#include "unit.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "encoder.h"
#include "inflight.h"
#include "k3_histogram.h"
#include "package_merge.h"
#include "posix_port.h"
#include "window_host.h"

#define MIB (1u << 20)
#define RAW_MAX (24u * MIB)
#define WINDOW_BYTES (26u * MIB)
#define DESTINATION MIB
#define SQ 4096u
#define CQ 8192u
#define ENTRIES 16u
#define RUN_AT 1234567u /* byte of the drive */
#define PATTERN 0x5Au
#define WAIT_MS 60000u

static struct k3huf_inflight engine;
static struct k3huf_posix posix;
static struct k3huf_posix_config platform;
static char image_name[64], window_name[64];
static uint8_t *raw;
static struct k3huf_window_host host = {
    .window = &posix.window, .sq = SQ, .cq = CQ, .sq_entries = ENTRIES, .cq_entries = ENTRIES};
static pthread_t core0;
static enum k3huf_port_status ended;

static void *run_engine(void *argument) {
    const struct k3huf_inflight_config *const config = argument;
    ended = k3huf_inflight_run(&engine, &posix.port, config);
    return NULL;
}

static void pause_a_little(void) {
    const struct timespec t = {.tv_nsec = 200000};
    (void)nanosleep(&t, NULL);
}

static uint32_t device(uint32_t field) { return k3huf_window_host_device(&host, field); }

/* Wait for a word of the device area. */
static void await_device(uint32_t field, uint32_t value) {
    for (unsigned i = 0; device(field) != value; i++) {
        if (i > WAIT_MS * 5u) fail_msg("field %u is %u, not %u, for too long", field, device(field), value);
        pause_a_little();
    }
}

static void attach(void) {
    k3huf_window_store(&posix.window, K3HUF_HOST_SESSION, 0);
    await_device(K3HUF_DEVICE_SESSION, 0);
    k3huf_window_host_prepare(&host);
    k3huf_window_host_begin(&host);
    await_device(K3HUF_DEVICE_SESSION, host.session);
    assert_int_equal(device(K3HUF_DEVICE_STATE), K3HUF_STATE_ATTACHED);
}

static void open_platform(const struct k3huf_inflight_config *config) {
    const char *what = NULL;
    const int number = k3huf_posix_open(&posix, &platform, &what);
    if (number != 0) fail_msg("%s: %s", what, strerror(number));
    memset(posix.window.bytes, PATTERN, WINDOW_BYTES);
    memset(posix.window.bytes, 0, K3HUF_CONTROL_BYTES);
    assert_int_equal(pthread_create(&core0, NULL, run_engine, (void *)(uintptr_t)config), 0);
    await_device(K3HUF_DEVICE_MAGIC, K3HUF_CONTROL_MAGIC);
    attach();
}

static void close_platform(void) {
    k3huf_window_store(&posix.window, K3HUF_HOST_REQUEST, K3HUF_REQUEST_SHUTDOWN);
    await_device(K3HUF_DEVICE_STATE, K3HUF_STATE_STOPPED);
    assert_int_equal(pthread_join(core0, NULL), 0);
    assert_int_equal(ended, K3HUF_PORT_OK);
    k3huf_posix_close(&posix);
}

static void submit(const struct k3huf_job *job) { k3huf_window_host_submit(&host, job, 0); }

static struct k3huf_completion complete(void) {
    struct k3huf_completion c;
    for (unsigned i = 0; !k3huf_window_host_ready(&host); i++) {
        if (i > WAIT_MS * 5u) fail_msg("no completion for too long");
        pause_a_little();
    }
    k3huf_window_host_take(&host, &c);
    return c;
}

/* ---- runs in the image file */

static uint64_t make_image(size_t raw_size, uint32_t stripe_bytes, uint32_t block_log2) {
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    struct k3huf_run_header header = {.raw_bytes = raw_size};
    struct k3huf_encoder encoder;
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    uint64_t at = RUN_AT + K3HUF_RUN_HEADER_BYTES;
    FILE *const file = fopen(image_name, "wb");
    assert_non_null(file);
    for (size_t at_raw = 0; at_raw < raw_size; at_raw += stripe_bytes) {
        const size_t left = raw_size - at_raw;
        k3huf_histogram_odd(histogram, raw + at_raw, left < stripe_bytes ? left : stripe_bytes);
    }
    assert_int_equal(k3huf_code_lengths(histogram, 12, header.codelen), K3HUF_OK);
    assert_int_equal(k3huf_encoder_init(&encoder, header.codelen), K3HUF_OK);
    const size_t capacity = k3huf_stripe_bound(stripe_bytes, block_log2);
    uint8_t *const out = malloc(capacity);
    assert_non_null(out);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    for (size_t done = 0; done < raw_size; header.nstripes++) {
        const size_t left = raw_size - done;
        const uint32_t now = left < stripe_bytes ? (uint32_t)left : stripe_bytes;
        size_t size = 0;
        assert_int_equal(
            k3huf_encode_stripe(&encoder, header.nstripes, raw + done, now, block_log2, out, capacity, &size),
            K3HUF_OK);
        assert_int_equal(fwrite(out, 1, size, file), size);
        done += now;
        at += size;
    }
    k3huf_run_header_write(&header, bytes);
    assert_int_equal(fseek(file, RUN_AT, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(image_name, (off_t)((at + 4095) / 4096 * 4096)), 0);
    free(out);
    return at - RUN_AT;
}

static struct k3huf_job decode_job(uint64_t run_bytes, size_t raw_size, uint64_t id) {
    return (struct k3huf_job){.id = id,
                              .kind = K3HUF_KIND_DECODE,
                              .lba = RUN_AT / platform.lba_bytes,
                              .offset = RUN_AT % platform.lba_bytes,
                              .run_bytes = run_bytes,
                              .destination = DESTINATION,
                              .destination_bytes = raw_size};
}

static void assert_done(const struct k3huf_completion *c, uint64_t id, size_t raw_size) {
    if (c->status != 0)
        fail_msg("\"%s\" at stripe %u, block %u", k3huf_job_status_text(c->status), c->stripe, c->block);
    assert_int_equal(c->id, id);
    assert_int_equal(c->bytes, raw_size);
}

static void assert_window(uint64_t begin, size_t size) {
    const uint8_t *const bytes = posix.window.bytes;
    assert_true(memcmp(bytes + begin, raw, size) == 0);
    for (uint64_t i = CQ + ENTRIES * K3HUF_COMPLETION_BYTES; i < WINDOW_BYTES; i++)
        if ((i < begin || i >= begin + size) && bytes[i] != PATTERN)
            fail_msg("byte %u of the window was written", (unsigned)i);
}

static const struct k3huf_inflight_config usual = K3HUF_INFLIGHT_DEFAULTS;

static void defaults(uint32_t cores) {
    const struct k3huf_posix_config fresh = K3HUF_POSIX_DEFAULTS;
    platform = fresh;
    platform.image = image_name;
    platform.window = window_name;
    platform.cores = cores;
}

/* ---- tests */

static void every_number_of_cores(void **state) {
    (void)state;
    static const uint32_t log2s[] = {14, 12, 16, 0};
    for (size_t i = 0; i < UNIT_COUNT(log2s); i++) {
        const size_t raw_size = 3u * MIB + 4321u;
        const uint64_t run_bytes = make_image(raw_size, MIB + 1u, log2s[i]);
        for (uint32_t cores = 1; cores <= 4; cores *= 2) {
            defaults(cores);
            platform.lba_bytes = i % 2u == 0 ? 512 : 4096;
            open_platform(&usual);
            assert_int_equal(device(K3HUF_DEVICE_CORES), cores);
            for (unsigned job = 0; job < 6; job++) {
                const struct k3huf_job next = decode_job(run_bytes, raw_size, job);
                submit(&next);
            }
            for (unsigned job = 0; job < 6; job++) {
                const struct k3huf_completion c = complete();
                assert_done(&c, job, raw_size);
            }
            assert_window(DESTINATION, raw_size);
            close_platform();
        }
    }
}

static void faults(void **state) {
    (void)state;
    const size_t raw_size = 3u * MIB;
    const uint64_t run_bytes = make_image(raw_size, MIB, 14);
    /* Long enough for reads that are only late: there are four attempts, and the machine may have other work. */
    const struct k3huf_inflight_config quick = {
        .read_attempts = 4, .read_timeout_ms = 500, .host_timeout_ms = 5000, .poll_us = 100};
    const uint64_t bad = (RUN_AT + run_bytes / 2) / 512;
    for (unsigned i = 0; i < 4; i++) {
        defaults(4);
        platform.fault[0] = (struct k3huf_posix_fault){bad, 1, i % 2u == 0 ? 1 : K3HUF_POSIX_FOR_EVER,
                                                       i < 2 ? K3HUF_PORT_E_MEDIA : K3HUF_PORT_BUSY};
        open_platform(&quick);
        const struct k3huf_job job = decode_job(run_bytes, raw_size, 1);
        submit(&job);
        const struct k3huf_completion c = complete();
        assert_true(c.retries > 0);
        if (i % 2u == 0) {
            assert_done(&c, 1, raw_size);
            assert_window(DESTINATION, raw_size);
        } else {
            assert_int_equal(c.status, i == 1 ? K3HUF_JOB_E_READ : K3HUF_JOB_E_READ_TIMEOUT);
            assert_int_equal(c.stripe, 1);
            assert_true(i == 3 || c.lba == bad);
        }
        close_platform();
    }
}

static void cancel_and_go_on(void **state) {
    (void)state;
    const size_t raw_size = 4u * MIB;
    const uint64_t run_bytes = make_image(raw_size, MIB, 14);
    defaults(2);
    platform.bytes_per_second = 20e6;
    open_platform(&usual);
    for (uint64_t id = 1; id <= 10; id++) {
        struct k3huf_job job = decode_job(run_bytes, raw_size, id);
        submit(&job);
        if (id % 2u == 1) {
            job = (struct k3huf_job){.id = 100 + id, .kind = K3HUF_KIND_CANCEL, .lba = id};
            submit(&job);
        }
        unsigned left = id % 2u == 1 ? 2 : 1;
        while (left-- > 0) {
            const struct k3huf_completion c = complete();
            if (c.id > 100)
                assert_int_equal(c.status, 0);
            else if (id % 2u == 1)
                assert_int_equal(c.status, K3HUF_JOB_E_CANCELLED);
            else
                assert_done(&c, id, raw_size);
        }
    }
    assert_window(DESTINATION, raw_size);
    close_platform();
}

/* Seconds that all threads of this program waited for a processor, as Linux counts it; 0 where it does not. */
static double waited_for_processors(void) {
    double all = 0;
    DIR *const tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char name[64];
        unsigned long long waited = 0;
        (void)snprintf(name, sizeof name, "/proc/self/task/%.20s/schedstat", task->d_name);
        FILE *const file = fopen(name, "r");
        if (file == NULL) continue;
        if (fscanf(file, "%*u %llu", &waited) == 1) all += (double)waited * 1e-9;
        (void)fclose(file);
    }
    if (tasks != NULL) (void)closedir(tasks);
    return all;
}

/* One job with the drive at `read_rate` and each core's path to the window at `write_rate` bytes a second. true: it
 * took the time of the slower stage, and no more than a tenth above it but for what its threads waited to run. */
static bool overlaps(uint32_t cores, uint64_t run_bytes, double read_rate, double write_rate) {
    defaults(cores);
    platform.bytes_per_second = read_rate;
    platform.window_bytes_per_second = write_rate;
    open_platform(&usual);
    const struct k3huf_job job = decode_job(run_bytes, RAW_MAX, 1);
    const double before = waited_for_processors();
    submit(&job);
    const struct k3huf_completion c = complete();
    const double waited = waited_for_processors() - before;
    assert_done(&c, 1, RAW_MAX);
    close_platform();
    const double reading = (double)run_bytes / read_rate;
    const double writing = write_rate > 0 ? RAW_MAX / write_rate / cores : 0;
    const double slower = reading > writing ? reading : writing;
    const double took = (double)c.ticks / (double)c.tick_hz;
    const double ahead = (double)c.ahead / (double)c.ahead_of;
    print_message("%u cores: reading %.3f s, cores %.3f s (decode %.3f, window %.3f), job %.3f s = %.3f of the slower; "
                  "%.2f groups ahead, storage wait %.3f s, threads waited %.3f s\n",
                  cores, reading, writing, (double)c.decode_ticks / 1e9 / cores, (double)c.write_ticks / 1e9 / cores,
                  took, took / slower, ahead, (double)c.storage_ticks / 1e9, waited);
    assert_true(took >= 0.99 * slower);
    if (reading >= writing) assert_true(ahead > 1.0);
#ifdef __SANITIZE_THREAD__ /* which makes the cores the slower stage by far */
    return true;
#else
    return took <= 1.1 * slower + waited;
#endif
}

/* What else takes a core for a while, another virtual machine say, is not counted: one of three tries must do. */
static void overlap(uint32_t cores, uint64_t run_bytes, double read_rate, double write_rate) {
    for (unsigned i = 0; i < 3; i++)
        if (overlaps(cores, run_bytes, read_rate, write_rate)) return;
    fail_msg("reading and decoding do not overlap");
}

static void stages_overlap(void **state) {
    (void)state;
    const uint64_t run_bytes = make_image(RAW_MAX, 8u * MIB, 14);
    /* The drive alone is slow; both are equally slow; the cores are slower. About 1.5 s each. */
    overlap(1, run_bytes, (double)run_bytes / 1.5, 0);
    overlap(2, run_bytes, (double)run_bytes / 1.5, RAW_MAX / 1.4 / 2);
    overlap(4, run_bytes, (double)run_bytes / 1.5, RAW_MAX / 1.2 / 4);
    overlap(2, run_bytes, (double)run_bytes / 1.0, RAW_MAX / 1.5 / 2);
}

static int set_up(void **state) {
    (void)state;
    const char *folder = getenv("TMPDIR");
    char name[48];
    (void)snprintf(name, sizeof name, "%s/k3huf-XXXXXX", folder != NULL && strlen(folder) < 32 ? folder : "/tmp");
    if (mkdtemp(name) == NULL) return -1;
    (void)snprintf(image_name, sizeof image_name, "%s/image", name);
    (void)snprintf(window_name, sizeof window_name, "%s/window", name);
    FILE *const file = fopen(window_name, "wb");
    raw = malloc(RAW_MAX);
    if (file == NULL || raw == NULL || fclose(file) != 0) return -1;
    k3huf_generate(raw, RAW_MAX, 1, k3huf_k3_histogram);
    return truncate(window_name, WINDOW_BYTES);
}

static int tear_down(void **state) {
    (void)state;
    (void)unlink(image_name);
    (void)unlink(window_name);
    *strrchr(window_name, '/') = '\0';
    free(raw);
    return rmdir(window_name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_cores),
        cmocka_unit_test(faults),
        cmocka_unit_test(cancel_and_go_on),
        cmocka_unit_test(stages_overlap),
    };
    return cmocka_run_group_tests_name("inflight_threads", tests, set_up, tear_down);
}
