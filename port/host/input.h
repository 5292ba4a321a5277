/* input.h - one input: a file that can be read at any offset, a stream, a stream held in memory, or whatever a function
 * reads.
 *
 * Reading only. Short reads and interrupted calls are dealt with here; callers get all they ask for, or the end.
 */
#ifndef K3HUF_HOST_INPUT_H
#define K3HUF_HOST_INPUT_H

#include <time.h>

#include "fault.h"

/* Reads `size` bytes at `offset`: all of them, or it is a fault. */
typedef enum k3huf_exit k3huf_input_get(void *context, uint64_t offset, uint8_t *to, size_t size,
                                        struct k3huf_fault *fault);

struct k3huf_input {
    const char *name; /* for messages; the caller's */
    int fd;           /* -1: closed */
    bool owns_fd;
    bool seekable;         /* k3huf_input_read_at() works and `size` is known; else a stream */
    uint64_t size;         /* bytes, seekable inputs only */
    uint64_t position;     /* of k3huf_input_read() */
    uint64_t base;         /* of its first byte in the file or in memory: not 0 in a view */
    bool view;             /* a part of another input */
    struct timespec mtime; /* when it was opened; regular files only */
    struct timespec ctime; /* the same */
    uint8_t *memory;       /* all of a stream after k3huf_input_slurp(), else NULL */
    k3huf_input_get *get;  /* reads it, where there is no file; else NULL */
    void *context;         /* of `get` */
};

/* Open a file for reading; "-" is standard input. A regular file or block device is seekable (standard input too, where
 * it is one and stands at its start), anything else is a stream. K3HUF_EXIT_OK or K3HUF_EXIT_IO. On a fault there is
 * nothing to close. */
enum k3huf_exit k3huf_input_open(struct k3huf_input *input, const char *name, struct k3huf_fault *fault);

/* Read an open descriptor of a regular file; it stays the caller's and open. */
enum k3huf_exit k3huf_input_adopt(struct k3huf_input *input, int fd, const char *name, struct k3huf_fault *fault);

/* A seekable input of `size` bytes that a function reads; it needs no closing. `name` and `context` stay the caller's.
 */
void k3huf_input_by(struct k3huf_input *input, k3huf_input_get *get, void *context, uint64_t size, const char *name);

/* A view: bytes `offset` up to `offset + size` of a seekable input as an input of their own, `name` for messages. It is
 * good as long as that one is open, and needs no closing. They must lie inside it. */
void k3huf_input_view(struct k3huf_input *view, const struct k3huf_input *of, uint64_t offset, uint64_t size,
                      const char *name);

/* All of a seekable input once more, by a descriptor of its own, so that the system reads ahead at two places of a
 * file. Where there can be none (no /proc, or the file may not be opened), by the same one. To be closed. */
void k3huf_input_again(struct k3huf_input *again, const struct k3huf_input *of);

void k3huf_input_close(struct k3huf_input *input);

/* Read `size` bytes at `offset` of a seekable input. *got is less than `size` only where the input ends. */
enum k3huf_exit k3huf_input_read_at(struct k3huf_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                    size_t *got, struct k3huf_fault *fault);

/* Read the next bytes of any input in order: at least `least`, unless it ends, and at most `most`. Returns after as
 * few bytes as allowed where a stream has no more yet. */
enum k3huf_exit k3huf_input_read(struct k3huf_input *input, uint8_t *buffer, size_t least, size_t most, size_t *got,
                                 struct k3huf_fault *fault);

/* Read what is left of a stream into memory, which makes it seekable. Does nothing to a seekable input.
 * K3HUF_EXIT_INTERNAL where memory does not suffice. */
enum k3huf_exit k3huf_input_slurp(struct k3huf_input *input, struct k3huf_fault *fault);

/* K3HUF_EXIT_IO where a regular file has another size, time of modification or time of change (which nobody can set
 * back) than when it was opened. */
enum k3huf_exit k3huf_input_unchanged(struct k3huf_input *input, struct k3huf_fault *fault);

/* Record that a seekable input is not what it was, found at `offset` of it. K3HUF_EXIT_IO. */
enum k3huf_exit k3huf_input_changed(const struct k3huf_input *input, uint64_t offset, struct k3huf_fault *fault);

/* A time as nanoseconds since 1970; the first or the last that can be counted where it lies beyond (after April 2262).
 */
int64_t k3huf_nanoseconds(struct timespec time);

#endif
