/* posix_port.c - see posix_port.h. */
#include "posix_port.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static uint64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

/* ---- storage: one reader thread takes reads in order */

/* What the last block has of the file, and zeros behind it. A file that became shorter is a drive that cannot be read.
 */
static enum k3huf_port_status read_file(const struct k3huf_posix *p, const struct k3huf_posix_read *read) {
    const uint64_t begin = read->lba * p->config.lba_bytes;
    const uint64_t left = p->image_bytes - begin;
    const size_t all = (size_t)read->blocks * p->config.lba_bytes;
    const size_t size = all < left ? all : (size_t)left;
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(p->image, read->buffer + done, size - done, (off_t)(begin + done));
        if (n < 0 && errno == EINTR) { continue; }
        if (n <= 0) { return K3HUF_PORT_E_MEDIA; }
        done += (size_t)n;
    }
    memset(read->buffer + size, 0, all - size);
    return K3HUF_PORT_OK;
}

/* The fault that a read meets, if any: K3HUF_PORT_OK otherwise. Uses it up by one. */
static enum k3huf_port_status meet_fault(struct k3huf_posix *p, const struct k3huf_posix_read *read) {
    for (uint32_t i = 0; i < K3HUF_POSIX_FAULTS; i++) {
        struct k3huf_posix_fault *const fault = &p->config.fault[i];
        if (fault->times > 0 && read->lba < fault->lba + fault->count && fault->lba < read->lba + read->blocks) {
            fault->times -= fault->times != K3HUF_POSIX_FOR_EVER;
            return fault->status;
        }
    }
    return K3HUF_PORT_OK;
}

static void sleep_until(uint64_t ns) {
    const struct timespec until = to_timespec(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
}

/* When something of the given rate that is busy until `free_at` has moved `bytes` asked for at `since`. */
static uint64_t moved_at(uint64_t free_at, uint64_t since, double bytes, double bytes_per_second) {
    return (free_at > since ? free_at : since) + (uint64_t)(bytes / bytes_per_second * 1e9);
}

/* Wait until the drive of the given rate would have delivered the read. */
static void pace(struct k3huf_posix *p, const struct k3huf_posix_read *read) {
    if (p->config.bytes_per_second <= 0) { return; }
    p->free_at =
        moved_at(p->free_at, read->since, (double)read->blocks * p->config.lba_bytes, p->config.bytes_per_second);
    const uint64_t until = p->free_at;
    (void)pthread_mutex_unlock(&p->lock);
    sleep_until(until);
    (void)pthread_mutex_lock(&p->lock);
}

/* End the wait of all cores, and of a reset. The lock is held. */
static void wake(struct k3huf_posix *p) {
    p->signals++;
    if (p->waiting > 0) { (void)pthread_cond_broadcast(&p->to_cores); }
}

static void *reader(void *argument) {
    struct k3huf_posix *const p = argument;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        if (p->queued == 0) {
            (void)pthread_cond_wait(&p->to_read, &p->lock);
            continue;
        }
        struct k3huf_posix_read read = p->queue[0];
        const uint64_t resets = p->resets;
        memmove(p->queue, p->queue + 1, --p->queued * sizeof p->queue[0]);
        read.status = meet_fault(p, &read);
        if (read.status == K3HUF_PORT_BUSY) { continue; /* never answered */ }
        p->reading = true;
        if (read.status == K3HUF_PORT_OK) {
            (void)pthread_mutex_unlock(&p->lock);
            read.status = read_file(p, &read);
            (void)pthread_mutex_lock(&p->lock);
        }
        pace(p, &read);
        p->reading = false;
        if (resets == p->resets) { p->done[p->finished++] = read; }
        wake(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static enum k3huf_port_status storage_submit(void *context, uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag) {
    struct k3huf_posix *const p = context;
    enum k3huf_port_status status = K3HUF_PORT_OK;
    const struct k3huf_port_limits *const limits = &p->port.limits;
    if (p->image < 0) { return K3HUF_PORT_E_ABSENT; }
    if (blocks == 0 || blocks > limits->max_transfer_bytes / limits->lba_bytes || lba >= limits->lba_count ||
        blocks > limits->lba_count - lba || tag >= limits->queue_depth) {
        return K3HUF_PORT_E_ARGUMENT;
    }
    (void)pthread_mutex_lock(&p->lock);
    if (p->outstanding == limits->queue_depth) {
        status = K3HUF_PORT_BUSY;
    } else {
        p->queue[p->queued++] = (struct k3huf_posix_read){lba, blocks, buffer, tag, K3HUF_PORT_OK, now_ns()};
        p->outstanding++;
        if (p->queued == 1) { /* otherwise the reader is at work */
            (void)pthread_cond_signal(&p->to_read);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return status;
}

static uint32_t storage_poll(void *context, struct k3huf_port_read *done, uint32_t max) {
    struct k3huf_posix *const p = context;
    (void)pthread_mutex_lock(&p->lock);
    const uint32_t n = p->finished < max ? p->finished : max;
    for (uint32_t i = 0; i < n; i++) {
        done[i] = (struct k3huf_port_read){p->done[i].tag, p->done[i].status};
    }
    memmove(p->done, p->done + n, (p->finished - n) * sizeof p->done[0]);
    p->finished -= n;
    p->outstanding -= n;
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

static enum k3huf_port_status storage_reset(void *context) {
    struct k3huf_posix *const p = context;
    if (p->image < 0) { return K3HUF_PORT_E_ABSENT; }
    (void)pthread_mutex_lock(&p->lock);
    p->resets++;
    p->queued = 0;
    p->finished = 0;
    p->outstanding = 0;
    p->waiting++;
    while (p->reading) { /* no buffer is written once this returns */
        (void)pthread_cond_wait(&p->to_cores, &p->lock);
    }
    p->waiting--;
    (void)pthread_mutex_unlock(&p->lock);
    return K3HUF_PORT_OK;
}

/* ---- caches: coherent here */

static void cache_clean(void *context, const void *address, size_t size) {
    (void)context;
    (void)address;
    (void)size;
}

static void cache_invalidate(void *context, void *address, size_t size) {
    (void)context;
    (void)address;
    (void)size;
}

/* ---- the window */

static bool in_window(const struct k3huf_posix *p, uint64_t offset, size_t size) {
    return offset <= p->window.size && size <= p->window.size - offset;
}

static enum k3huf_port_status window_read(void *context, uint64_t offset, void *to, size_t size) {
    const struct k3huf_posix *const p = context;
    if (!in_window(p, offset, size)) { return K3HUF_PORT_E_ARGUMENT; }
    if (size % 4u != 0 || offset % 4u != 0) {
        memcpy(to, p->window.bytes + offset, size);
        return K3HUF_PORT_OK;
    }
    /* Word by word: the host may write at the same time. */
    for (size_t at = 0; at < size; at += 4) {
        const uint32_t word = k3huf_window_load(&p->window, offset + at);
        const uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
        memcpy((uint8_t *)to + at, bytes, sizeof bytes);
    }
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status window_write(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    struct k3huf_posix *const p = context;
    const uint8_t *const bytes = from;
    if (!in_window(p, offset, size)) { return K3HUF_PORT_E_ARGUMENT; }
    if (size == 4 && offset % 4u == 0) {
        k3huf_window_store(&p->window, offset,
                           (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                               (uint32_t)bytes[3] << 24);
    } else {
        memcpy(p->window.bytes + offset, from, size);
    }
    if (p->config.window_bytes_per_second > 0) {
        uint64_t *const free_at = &p->core[core].free_at;
        *free_at = moved_at(*free_at, now_ns(), (double)size, p->config.window_bytes_per_second);
        sleep_until(*free_at);
    }
    return K3HUF_PORT_OK;
}

/* Stores are visible in order already: the word that tells of them is stored with release order. */
static enum k3huf_port_status window_flush(void *context, uint32_t core) {
    (void)context;
    (void)core;
    return K3HUF_PORT_OK;
}

/* ---- cores */

static void *core_main(void *argument) {
    struct k3huf_posix_core *const core = argument;
    core->entry(core->argument, core->number);
    return NULL;
}

static enum k3huf_port_status core_start(void *context, uint32_t number, k3huf_port_entry *entry, void *argument) {
    struct k3huf_posix *const p = context;
    struct k3huf_posix_core *const core = &p->core[number];
    core->entry = entry;
    core->argument = argument;
    core->started = pthread_create(&core->thread, NULL, core_main, core) == 0;
    return core->started ? K3HUF_PORT_OK : K3HUF_PORT_E_CORE;
}

static void wait_core(void *context, uint32_t core) {
    struct k3huf_posix *const p = context;
    (void)pthread_mutex_lock(&p->lock);
    if (p->core[core].seen == p->signals) {
        const struct timespec until = to_timespec(now_ns() + SECOND / 1000u);
        p->waiting++;
        (void)pthread_cond_timedwait(&p->to_cores, &p->lock, &until);
        p->waiting--;
    }
    p->core[core].seen = p->signals;
    (void)pthread_mutex_unlock(&p->lock);
}

static void signal_cores(void *context) {
    struct k3huf_posix *const p = context;
    (void)pthread_mutex_lock(&p->lock);
    wake(p);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- time and text */

static uint64_t ticks(void *context) {
    (void)context;
    return now_ns();
}

static void log_line(void *context, const char *line) {
    const struct k3huf_posix *const p = context;
    if (p->config.log != NULL) {
        (void)fprintf(p->config.log, "%s\n", line);
        (void)fflush(p->config.log);
    }
}

/* ---- open and close */

static int open_image(struct k3huf_posix *p) {
    struct stat info;
    if (p->config.image == NULL) { return 0; }
    p->image = open(p->config.image, O_RDONLY | O_CLOEXEC);
    if (p->image < 0 || fstat(p->image, &info) != 0) { return errno; }
    p->image_bytes = (uint64_t)info.st_size;
    p->port.limits.lba_count = p->image_bytes / p->config.lba_bytes + (p->image_bytes % p->config.lba_bytes != 0);
    return 0;
}

static void close_files(struct k3huf_posix *p) {
    if (p->image >= 0) { (void)close(p->image); }
    k3huf_window_close(&p->window);
}

int k3huf_posix_open(struct k3huf_posix *p, const struct k3huf_posix_config *config, const char **what) {
    memset(p, 0, sizeof *p);
    p->config = *config;
    p->image = -1;
    p->port = (struct k3huf_port){
        .context = p,
        .limits = {.lba_bytes = config->lba_bytes,
                   .max_transfer_bytes = config->max_transfer_bytes,
                   .buffer_align = 4,
                   .queue_depth = config->queue_depth,
                   .core_count = config->cores,
                   .tick_hz = SECOND},
        .storage_submit = storage_submit,
        .storage_poll = storage_poll,
        .storage_reset = storage_reset,
        .cache_clean = cache_clean,
        .cache_invalidate = cache_invalidate,
        .window_read = window_read,
        .window_write = window_write,
        .window_flush = window_flush,
        .core_start = core_start,
        .wait = wait_core,
        .signal = signal_cores,
        .ticks = ticks,
        .log = log_line,
    };
    *what = config->image;
    int number = open_image(p);
    if (number == 0) {
        *what = config->window;
        number = k3huf_window_open(&p->window, config->window, config->window_create);
        p->port.limits.window_bytes = p->window.size;
    }
    if (number != 0) {
        close_files(p);
        return number;
    }
    for (uint32_t i = 0; i < K3HUF_POSIX_CORES; i++) {
        p->core[i].platform = p;
        p->core[i].number = i;
    }
    pthread_condattr_t clock;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->to_read, &clock);
    (void)pthread_cond_init(&p->to_cores, &clock);
    (void)pthread_condattr_destroy(&clock);
    *what = "a thread";
    number = pthread_create(&p->reader, NULL, reader, p);
    if (number != 0) { close_files(p); }
    return number;
}

void k3huf_posix_close(struct k3huf_posix *p) {
    for (uint32_t i = 1; i < K3HUF_POSIX_CORES; i++) {
        if (p->core[i].started) { (void)pthread_join(p->core[i].thread, NULL); }
    }
    (void)pthread_mutex_lock(&p->lock);
    p->closing = true;
    (void)pthread_cond_broadcast(&p->to_read);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->reader, NULL);
    (void)pthread_cond_destroy(&p->to_read);
    (void)pthread_cond_destroy(&p->to_cores);
    (void)pthread_mutex_destroy(&p->lock);
    close_files(p);
}
