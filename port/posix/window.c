/* window.c - see window.h. */
#include "window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "k3huf_job.h"

int k3huf_window_open(struct k3huf_window *window, const char *name, uint64_t create) {
    struct stat info;
    int number = 0;
    *window = (struct k3huf_window){.fd = -1};
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && create > 0) {
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        number = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)create);
    } else if (fd < 0) {
        number = errno;
    }
    if (number == 0 && fstat(fd, &info) != 0) { number = errno; }
    if (number == 0 && info.st_size < (off_t)K3HUF_CONTROL_BYTES) { number = EINVAL; }
    if (number == 0 && (off_t)(size_t)info.st_size != info.st_size) { number = EFBIG; /* more than can be mapped */ }
    if (number == 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (bytes == MAP_FAILED) {
            number = errno;
        } else {
            *window = (struct k3huf_window){.bytes = bytes, .size = (uint64_t)info.st_size, .fd = fd};
            return 0;
        }
    }
    if (fd >= 0) { (void)close(fd); }
    return number;
}

void k3huf_window_close(struct k3huf_window *window) {
    if (window->bytes != NULL) {
        (void)munmap(window->bytes, (size_t)window->size);
        (void)close(window->fd);
        window->bytes = NULL;
    }
}

static _Atomic uint32_t *word(const struct k3huf_window *window, uint64_t offset) {
    return (_Atomic uint32_t *)(void *)(window->bytes + offset);
}

/* As stored in memory <-> as a number. */
static uint32_t swap_if_needed(uint32_t value) {
    uint8_t bytes[4];
    for (unsigned i = 0; i < 4; i++) {
        bytes[i] = ((const uint8_t *)&value)[i];
    }
    return k3huf_get32(bytes);
}

uint32_t k3huf_window_load(const struct k3huf_window *window, uint64_t offset) {
    return swap_if_needed(atomic_load_explicit(word(window, offset), memory_order_acquire));
}

void k3huf_window_store(const struct k3huf_window *window, uint64_t offset, uint32_t value) {
    atomic_store_explicit(word(window, offset), swap_if_needed(value), memory_order_release);
}
