/* system.c - what CMocka and picolibc's malloc ask of an operating system, for bare-metal test images only.
 *
 * Memory comes from one static heap. There are no files and no signals: a wrong access ends in the port's fault
 * report, not in CMocka's handler. Product images do not link this.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define HEAP_BYTES ((ptrdiff_t)64 << 20)

/* Not cleared at start-up, which would take longer than most tests. */
static char heap[HEAP_BYTES] __attribute__((section(".noinit"), aligned(16)));
static ptrdiff_t heap_used;

static int no_input(FILE *file) {
    (void)file;
    return EOF;
}

static FILE input = FDEV_SETUP_STREAM(NULL, no_input, NULL, _FDEV_SETUP_READ);
FILE *const stdin = &input; /* the name that picolibc's stdio.h declares */

void *sbrk(ptrdiff_t size) {
    if (size > HEAP_BYTES - heap_used || size < -heap_used) {
        errno = ENOMEM;
        return (void *)-1; /* sbrk's way to say no */
    }
    void *old = heap + heap_used;
    heap_used += size;
    return old;
}

pid_t getpid(void) { return 1; }

/* raise() and abort() come here; the exit code is the one a shell shows for a signal. */
int kill(pid_t pid, int signal) {
    (void)pid;
    _exit(128 + signal);
}

int open(const char *name, int flags, ...) {
    (void)name, (void)flags;
    errno = ENOENT;
    return -1;
}

int close(int file) {
    (void)file;
    errno = EBADF;
    return -1;
}

ssize_t read(int file, void *data, size_t size) {
    (void)file, (void)data, (void)size;
    errno = EBADF;
    return -1;
}

ssize_t write(int file, const void *data, size_t size) {
    (void)file, (void)data, (void)size;
    errno = EBADF;
    return -1;
}

off_t lseek(int file, off_t offset, int whence) {
    (void)file, (void)offset, (void)whence;
    errno = EBADF;
    return -1;
}

int unlink(const char *name) {
    (void)name;
    errno = ENOENT;
    return -1;
}
