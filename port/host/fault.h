/* fault.h - what went wrong, as one line of text and an exit code of k3huf_host.
 *
 * Every host function that can fail takes a struct k3huf_fault, fills it in once and returns its code; main.c alone
 * prints it and leaves the program. Nothing here prints or exits.
 */
#ifndef K3HUF_HOST_FAULT_H
#define K3HUF_HOST_FAULT_H

#include "k3huf.h"

/* Exit codes of k3huf_host. `k3huf_host --help` lists them; programs rely on them. */
enum k3huf_exit {
    K3HUF_EXIT_OK = 0,
    K3HUF_EXIT_MISMATCH = 1, /* decoded bytes differ from the original */
    K3HUF_EXIT_USAGE = 2,    /* unknown option, missing argument, value out of range */
    K3HUF_EXIT_IO = 3,       /* a file cannot be opened, read, written, replaced; or it changed while it was read */
    K3HUF_EXIT_CORRUPT = 4,  /* the input is not a sound run: damaged, cut short, or with bytes after its end */
    K3HUF_EXIT_INTERNAL = 5  /* out of memory, or a defect of this program */
};

struct k3huf_fault {
    enum k3huf_exit code; /* K3HUF_EXIT_OK: nothing went wrong */
    char text[6144];      /* "FILE: stripe 3, block 17, offset 123456: what is wrong", without a line end */
};

/* `size` bytes of text that goes on: how many of them are whole characters of UTF-8, so that it can be cut there. */
size_t k3huf_text_whole(const char *text, size_t size);

/* Record a fault and return `code`. `file` and `place` may be NULL; `format` and what follows are as for printf. The
 * text is cut between characters where it does not fit, and control characters in it become '?', so that it stays one
 * line. */
enum k3huf_exit k3huf_fault_set(struct k3huf_fault *fault, enum k3huf_exit code, const char *file,
                                const struct k3huf_place *place, const char *format, ...);

/* The same for a failed system call: the text is `what` and what errno means. Code K3HUF_EXIT_IO. */
enum k3huf_exit k3huf_fault_errno(struct k3huf_fault *fault, const char *file, const char *what);

/* The same for memory that cannot be had. Code K3HUF_EXIT_INTERNAL. */
enum k3huf_exit k3huf_fault_memory(struct k3huf_fault *fault, uint64_t bytes);

#endif
