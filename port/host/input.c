/* input.c - see input.h. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define SLURP_FIRST ((size_t)1 << 20)
#define SECOND INT64_C(1000000000) /* in nanoseconds */

/* Look at what is open: set seekable, size and mtime. */
static enum k3huf_exit look(struct k3huf_input *input, struct k3huf_fault *fault) {
    struct stat info;
    if (fstat(input->fd, &info) != 0) { return k3huf_fault_errno(fault, input->name, "cannot be examined"); }
    if (S_ISDIR(info.st_mode)) { return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "is a directory"); }
    input->seekable = false;
    if (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode)) {
        off_t now = lseek(input->fd, 0, SEEK_CUR);
        off_t end = now == 0 ? lseek(input->fd, 0, SEEK_END) : -1;
        if (end >= 0) {
            input->seekable = true;
            input->size = (uint64_t)end;
        }
    }
    if (S_ISREG(info.st_mode)) {
        input->mtime = info.st_mtim;
        input->ctime = info.st_ctim;
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_input_open(struct k3huf_input *input, const char *name, struct k3huf_fault *fault) {
    bool standard = strcmp(name, "-") == 0;
    *input = (struct k3huf_input){.name = standard ? "(standard input)" : name, .fd = -1, .owns_fd = !standard};
    input->fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0) { return k3huf_fault_errno(fault, name, "cannot be opened"); }
    enum k3huf_exit code = look(input, fault);
    if (code != K3HUF_EXIT_OK) { k3huf_input_close(input); }
    return code;
}

enum k3huf_exit k3huf_input_adopt(struct k3huf_input *input, int fd, const char *name, struct k3huf_fault *fault) {
    *input = (struct k3huf_input){.name = name, .fd = fd};
    if (lseek(fd, 0, SEEK_SET) != 0) { return k3huf_fault_errno(fault, name, "cannot be read back"); }
    return look(input, fault);
}

void k3huf_input_by(struct k3huf_input *input, k3huf_input_get *get, void *context, uint64_t size, const char *name) {
    *input = (struct k3huf_input){
        .name = name, .fd = -1, .seekable = true, .size = size, .view = true, .get = get, .context = context};
}

void k3huf_input_view(struct k3huf_input *view, const struct k3huf_input *of, uint64_t offset, uint64_t size,
                      const char *name) {
    *view = *of;
    view->name = name;
    view->owns_fd = false;
    view->view = true;
    view->position = 0;
    view->base = of->base + offset;
    view->size = size;
}

void k3huf_input_again(struct k3huf_input *again, const struct k3huf_input *of) {
    k3huf_input_view(again, of, 0, of->size, of->name);
    if (of->fd >= 0 && of->memory == NULL) {
        char path[40];
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", of->fd);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            again->fd = fd;
            again->owns_fd = true;
        }
    }
}

void k3huf_input_close(struct k3huf_input *input) {
    if (input->owns_fd && input->fd >= 0) { (void)close(input->fd); }
    if (!input->view) { free(input->memory); }
    input->fd = -1;
    input->memory = NULL;
}

/* `offset` is in the file, of a view too: a view is named after the file, or says where in the file it begins. */
static enum k3huf_exit cannot_read(const struct k3huf_input *input, uint64_t offset, struct k3huf_fault *fault) {
    char what[80];
    (void)snprintf(what, sizeof what, "cannot be read at offset %" PRIu64 " of the file", offset);
    return k3huf_fault_errno(fault, input->name, what);
}

enum k3huf_exit k3huf_input_read_at(struct k3huf_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                    size_t *got, struct k3huf_fault *fault) {
    *got = 0;
    if (input->view) {
        size = offset >= input->size ? 0 : size < input->size - offset ? size : (size_t)(input->size - offset);
    }
    offset += input->base;
    if (input->get != NULL) {
        const enum k3huf_exit code =
            size == 0 ? K3HUF_EXIT_OK : input->get(input->context, offset, buffer, size, fault);
        *got = code == K3HUF_EXIT_OK ? size : 0;
        return code;
    }
    if (input->memory != NULL) {
        if (offset < input->base + input->size) {
            const uint64_t left = input->base + input->size - offset;
            *got = size < left ? size : (size_t)left;
            memcpy(buffer, input->memory + offset, *got);
        }
        return K3HUF_EXIT_OK;
    }
    while (*got < size && offset + *got <= INT64_MAX) {
        ssize_t n = pread(input->fd, buffer + *got, size - *got, (off_t)(offset + *got));
        if (n == 0) { break; }
        if (n > 0) {
            *got += (size_t)n;
        } else if (errno != EINTR) {
            return cannot_read(input, offset + *got, fault);
        }
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_input_read(struct k3huf_input *input, uint8_t *buffer, size_t least, size_t most, size_t *got,
                                 struct k3huf_fault *fault) {
    *got = 0;
    if (input->seekable) {
        enum k3huf_exit code = k3huf_input_read_at(input, input->position, buffer, most, got, fault);
        input->position += *got;
        return code;
    }
    while (*got < least) {
        ssize_t n = read(input->fd, buffer + *got, most - *got);
        if (n == 0) { break; }
        if (n > 0) {
            *got += (size_t)n;
        } else if (errno != EINTR) {
            return cannot_read(input, input->position + *got, fault);
        }
    }
    input->position += *got;
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_input_slurp(struct k3huf_input *input, struct k3huf_fault *fault) {
    if (input->seekable) { return K3HUF_EXIT_OK; }
    uint8_t *memory = NULL;
    size_t size = 0;
    size_t capacity = 0;
    for (;;) {
        if (size == capacity) {
            size_t larger = capacity == 0 ? SLURP_FIRST : 2 * capacity;
            uint8_t *grown = larger > capacity ? realloc(memory, larger) : NULL;
            if (grown == NULL) {
                free(memory);
                return k3huf_fault_memory(fault, larger);
            }
            memory = grown;
            capacity = larger;
        }
        size_t got = 0;
        enum k3huf_exit code = k3huf_input_read(input, memory + size, capacity - size, capacity - size, &got, fault);
        if (code != K3HUF_EXIT_OK) {
            free(memory);
            return code;
        }
        if (got == 0) { break; }
        size += got;
    }
    input->memory = memory;
    input->size = size;
    input->position = 0;
    input->seekable = true;
    return K3HUF_EXIT_OK;
}

static bool same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

enum k3huf_exit k3huf_input_unchanged(struct k3huf_input *input, struct k3huf_fault *fault) {
    struct stat info;
    if (input->memory != NULL || input->view) { return K3HUF_EXIT_OK; }
    if (fstat(input->fd, &info) != 0) { return k3huf_fault_errno(fault, input->name, "cannot be examined"); }
    if (S_ISREG(info.st_mode) && ((uint64_t)info.st_size != input->size || !same_time(info.st_mtim, input->mtime) ||
                                  !same_time(info.st_ctim, input->ctime))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "changed while it was read");
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_input_changed(const struct k3huf_input *input, uint64_t offset, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL,
                           "changed while it was read: found at offset %" PRIu64 " of the file", input->base + offset);
}

int64_t k3huf_nanoseconds(struct timespec time) {
    const int64_t seconds = time.tv_sec;
    if (seconds >= INT64_MAX / SECOND) { return INT64_MAX; }
    if (seconds <= INT64_MIN / SECOND) { return INT64_MIN; }
    return seconds * SECOND + time.tv_nsec;
}
