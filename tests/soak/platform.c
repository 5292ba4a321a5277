/* platform.c - see platform.h. */
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct soak_drive soak_drive;
struct k3huf_posix soak_posix;
struct k3huf_window_host soak_host = {.window = &soak_posix.window, .sq = SOAK_SQ, .cq = SOAK_CQ};

static struct k3huf_inflight engine;
static char folder[32], image_name[48], window_name[48];
static pthread_t core0;
static enum k3huf_port_status ended;

static struct k3huf_posix_fault lasting;
static const struct soak_run *meeting;
static uint64_t file_end; /* the image file is this long now */
static atomic_bool window_dead;
static atomic_uint window_busy;
static bool core_fails[K3HUF_POSIX_CORES];
static enum k3huf_port_status (*real_write)(void *, uint32_t, uint64_t, const void *, size_t);
static enum k3huf_port_status (*real_start)(void *, uint32_t, k3huf_port_entry *, void *);

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
        soak_count.short_reads++;
    }
    return __real_pread64(fd, to, size, at);
}

static enum k3huf_port_status write_window(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    if (offset >= SOAK_SLOT_AT) {
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

uint32_t soak_device(uint32_t field) { return k3huf_window_host_device(&soak_host, field); }

void soak_await_device(uint32_t field, uint32_t value) {
    const double until = soak_seconds() + SOAK_WAIT_SECONDS;
    while (soak_device(field) != value) {
        if (soak_seconds() > until) {
            soak_found("device field %u stays %u instead of %u", field, soak_device(field), value);
        }
        soak_pause();
    }
}

void soak_check_fill(uint64_t begin, uint64_t end, const char *what) {
    static uint8_t fill[4096];
    if (fill[0] != SOAK_FILL) { memset(fill, SOAK_FILL, sizeof fill); }
    for (uint64_t at = begin; at < end;) {
        const size_t n = end - at < sizeof fill ? (size_t)(end - at) : sizeof fill;
        if (memcmp(soak_posix.window.bytes + at, fill, n) != 0) {
            while (soak_posix.window.bytes[at] == SOAK_FILL) {
                at++;
            }
            soak_found("%s: byte %llu of the window was written", what, (unsigned long long)at);
        }
        at += n;
    }
}

/* Nothing is under way and every destination is filled anew: all that no one may write is as it was. */
void soak_check_window(void) {
    soak_check_fill(SOAK_RINGS_END, SOAK_WINDOW_BYTES, "between jobs");
    for (uint64_t at = K3HUF_DEVICE_AT + K3HUF_DEVICE_BYTES; at < K3HUF_CONTROL_BYTES; at++) {
        if (soak_posix.window.bytes[at] != 0) { soak_found("byte %u of the control block was written", (unsigned)at); }
    }
}

/* ---- faults */

static void set_file_end(uint64_t end) {
    const int fd = open(image_name, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && ftruncate(fd, (off_t)end) == 0;
    while (good && file_end < end) {
        const ssize_t n = pwrite(fd, soak_drive.image + file_end, (size_t)(end - file_end), (off_t)file_end);
        good = n > 0;
        file_end += good ? (uint64_t)n : 0;
    }
    if (!good || close(fd) != 0) { soak_found("%s: %s", image_name, strerror(errno)); }
    file_end = end;
}

void soak_faults_clear(void) {
    (void)pthread_mutex_lock(&soak_posix.lock);
    memset(soak_posix.config.fault, 0, sizeof soak_posix.config.fault);
    (void)pthread_mutex_unlock(&soak_posix.lock);
    lasting = (struct k3huf_posix_fault){0};
    meeting = NULL;
    atomic_store(&window_dead, false);
    atomic_store(&window_busy, 0);
    if (file_end != soak_drive.size) { set_file_end(soak_drive.size); }
}

static uint64_t any_block(void) {
    meeting = &soak_drive.run[soak_below(SOAK_RUNS)];
    return (meeting->at + soak_below((uint32_t)meeting->bytes)) / soak_posix.port.limits.lba_bytes;
}

/* Faults that a job must get over: fewer in all than a read has attempts. */
static void passing_faults(struct k3huf_posix_fault *fault, bool hang) {
    static const enum k3huf_port_status kinds[] = {K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_DEVICE, K3HUF_PORT_E_TIMEOUT};
    const uint32_t n = hang ? 1u : 1u + soak_below(SOAK_ATTEMPTS - 1u);
    for (uint32_t i = 0; i < n; i++) {
        fault[i] = (struct k3huf_posix_fault){any_block(), 1u + soak_below(300), 1,
                                              hang ? K3HUF_PORT_BUSY : kinds[soak_below(3)]};
    }
    soak_count.read_faults += n;
}

static void lasting_fault(bool hang) {
    static const enum k3huf_port_status kinds[] = {K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_MEDIA, K3HUF_PORT_E_DEVICE,
                                                   K3HUF_PORT_E_ABSENT};
    lasting = (struct k3huf_posix_fault){any_block(), 1u + soak_below(3), K3HUF_POSIX_FOR_EVER,
                                         hang ? K3HUF_PORT_BUSY : kinds[soak_below(4)]};
    soak_count.read_faults++;
}

void soak_faults_set(bool hang) {
    struct k3huf_posix_fault fault[K3HUF_POSIX_FAULTS] = {{0}};
    soak_faults_clear();
    switch (soak_below(10)) {
    case 0:
    case 1: lasting_fault(hang); break;
    case 2:
    case 3: passing_faults(fault, hang); break;
    case 4:
        atomic_store(&window_busy, 1u + soak_below(50));
        soak_count.window_faults++;
        break;
    case 5:
        atomic_store(&window_dead, true);
        soak_count.window_faults++;
        break;
    case 6: { /* the drive ends earlier than it said */
        const uint32_t lba_bytes = soak_posix.port.limits.lba_bytes;
        set_file_end(1u + soak_below((uint32_t)soak_drive.size));
        lasting = (struct k3huf_posix_fault){file_end / lba_bytes, UINT64_MAX / lba_bytes, K3HUF_POSIX_FOR_EVER,
                                             K3HUF_PORT_E_MEDIA};
        soak_count.cut_files++;
        return;
    }
    default: return;
    }
    fault[SOAK_ATTEMPTS] = lasting;
    (void)pthread_mutex_lock(&soak_posix.lock);
    memcpy(soak_posix.config.fault, fault, sizeof fault);
    (void)pthread_mutex_unlock(&soak_posix.lock);
}

const struct k3huf_posix_fault *soak_faults_lasting(void) { return &lasting; }
const struct soak_run *soak_faults_meeting(void) { return meeting; }
bool soak_faults_window(void) { return atomic_load(&window_dead); }

/* ---- open and close */

static void *run_engine(void *argument) {
    const struct k3huf_inflight_config *const config = argument;
    ended = k3huf_inflight_run(&engine, &soak_posix.port, config);
    return NULL;
}

void soak_platform_open(const struct k3huf_inflight_config *config) {
    struct k3huf_posix_config platform = K3HUF_POSIX_DEFAULTS;
    const char *what = NULL;
    uint32_t cores = 1;
    platform.image = image_name;
    platform.window = window_name;
    platform.cores = 1u + soak_below(K3HUF_INFLIGHT_CORES + 1u);
    platform.lba_bytes = 512u << soak_below(4);
    platform.max_transfer_bytes = platform.lba_bytes * (1u + soak_below(soak_chance(2) ? 4u : 64u));
    platform.queue_depth = 1u + soak_below(soak_chance(3) ? 3u : K3HUF_POSIX_DEPTH);
    platform.bytes_per_second = soak_chance(6) ? 50e6 + soak_below(200000000) : 0;
    platform.window_bytes_per_second = soak_chance(8) ? 50e6 + soak_below(200000000) : 0;
    const int number = k3huf_posix_open(&soak_posix, &platform, &what);
    if (number != 0) { soak_found("%s: %s", what, strerror(number)); }
    real_write = soak_posix.port.window_write;
    real_start = soak_posix.port.core_start;
    soak_posix.port.window_write = write_window;
    soak_posix.port.core_start = start_core;
    for (uint32_t i = 1; i < platform.cores; i++) {
        core_fails[i] = soak_chance(10);
        cores += !core_fails[i] && i < K3HUF_INFLIGHT_CORES;
    }
    memset(soak_posix.window.bytes, SOAK_FILL, SOAK_WINDOW_BYTES);
    memset(soak_posix.window.bytes, 0, K3HUF_CONTROL_BYTES);
    if (pthread_create(&core0, NULL, run_engine, (void *)(uintptr_t)config) != 0) { soak_found("no thread"); }
    soak_await_device(K3HUF_DEVICE_MAGIC, K3HUF_CONTROL_MAGIC);
    if (soak_device(K3HUF_DEVICE_CORES) != cores) {
        soak_found("%u cores instead of %u", soak_device(K3HUF_DEVICE_CORES), cores);
    }
    soak_count.cores[cores]++;
}

void soak_platform_close(void) {
    if (pthread_join(core0, NULL) != 0 || ended != K3HUF_PORT_OK) {
        soak_found("the engine ended with status %d", (int)ended);
    }
    k3huf_posix_close(&soak_posix);
}

bool soak_files_write(void) {
    const char *const temporary = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/soak-XXXXXX",
                   temporary != NULL && strlen(temporary) < 16 ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) { return false; }
    (void)snprintf(image_name, sizeof image_name, "%s/image", folder);
    (void)snprintf(window_name, sizeof window_name, "%s/window", folder);
    FILE *file = fopen(window_name, "wb");
    if (file == NULL || fclose(file) != 0 || truncate(window_name, SOAK_WINDOW_BYTES) != 0) { return false; }
    file = fopen(image_name, "wb");
    file_end = soak_drive.size;
    return file != NULL && fwrite(soak_drive.image, 1, (size_t)soak_drive.size, file) == soak_drive.size &&
           fclose(file) == 0;
}

void soak_files_remove(void) {
    (void)unlink(image_name);
    (void)unlink(window_name);
    (void)rmdir(folder);
}
