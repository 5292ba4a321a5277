/* console.c - standard output and error for picolibc's stdio, and the ways out of the image.
 *
 * All that this port takes from a C library is formatting (printf); this file is where the formatted characters go.
 * Standard output waits for the end of a line, standard error for nothing.
 */
#include "semihost.h"
#include "virt.h"

#include <stdio.h>
#include <unistd.h>

struct console {
    int64_t handle;
    bool open;
    uint32_t mode;
    size_t used;
    char line[256];
};

static struct console output = {.mode = SEMIHOST_WRITE};
static struct console error = {.mode = SEMIHOST_APPEND};

static int send(struct console *console) {
    if (!console->open) {
        console->handle = k3huf_semihost_open(SEMIHOST_CONSOLE, console->mode);
        console->open = true;
    }
    bool sent = console->used == 0 || k3huf_semihost_write(console->handle, console->line, console->used);
    console->used = 0;
    return sent ? 0 : EOF;
}

static int put(struct console *console, char c, bool now) {
    console->line[console->used++] = c;
    return now || console->used == sizeof console->line ? send(console) : 0;
}

static int put_output(char c, FILE *file) {
    (void)file;
    return put(&output, c, c == '\n');
}

static int flush_output(FILE *file) {
    (void)file;
    return send(&output);
}

static int put_error(char c, FILE *file) {
    (void)file;
    return put(&error, c, true);
}

static FILE output_file = FDEV_SETUP_STREAM(put_output, NULL, flush_output, _FDEV_SETUP_WRITE);
static FILE error_file = FDEV_SETUP_STREAM(put_error, NULL, NULL, _FDEV_SETUP_WRITE);

/* The names that picolibc's stdio.h declares. */
FILE *const stdout = &output_file;
FILE *const stderr = &error_file;

void k3huf_virt_exit(int code) {
    (void)send(&output);
    k3huf_semihost_exit(code);
}

/* What exit() and abort() of a C library end in. */
void _exit(int code) { k3huf_virt_exit(code); }
