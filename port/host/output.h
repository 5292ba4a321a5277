/* output.h - one output: a new file that appears complete or not at all, or a stream.
 *
 * A file is written under a temporary name in its own folder and renamed when complete. It never replaces an existing
 * file unless told to. The temporary file is removed on failure and when SIGINT, SIGTERM or SIGHUP ends the program.
 * One file output can be open at a time.
 */
#ifndef K3HUF_HOST_OUTPUT_H
#define K3HUF_HOST_OUTPUT_H

#include "input.h"

struct k3huf_output {
    const char *name; /* for messages; the caller's */
    int fd;           /* -1: closed */
    bool stream;      /* standard output, or an existing device or FIFO: written to directly, cannot be read back */
    bool force;
    uint64_t written; /* bytes so far */
    uint64_t waiting; /* those of them that are in the system's cache, and not on their way to the disk */
    uint64_t begun;   /* they all lie behind here */
    bool in_memory;   /* its file system is nowhere else: there is no place on a disk to be found beforehand */
};

/* Open an output; "-" is standard output. Where `name` exists and is not a device or FIFO, K3HUF_EXIT_IO without
 * `force`; with it the file is replaced by k3huf_output_commit(). On a fault there is nothing to discard. */
enum k3huf_exit k3huf_output_open(struct k3huf_output *output, const char *name, bool force, struct k3huf_fault *fault);

/* Append all of `size` bytes. */
enum k3huf_exit k3huf_output_write(struct k3huf_output *output, const uint8_t *data, size_t size,
                                   struct k3huf_fault *fault);

/* Append `size` zero bytes: where the output is a file, without writing them. */
enum k3huf_exit k3huf_output_zeros(struct k3huf_output *output, uint64_t size, struct k3huf_fault *fault);

/* The output, a file, grows by `size` bytes that are zero until k3huf_output_patch() writes them. Unlike zeros that
 * stay they get their place on the disk at once, where the file system can do so. */
enum k3huf_exit k3huf_output_room(struct k3huf_output *output, uint64_t size, struct k3huf_fault *fault);

/* Write over `size` bytes at `offset` that were written before; not of a stream. */
enum k3huf_exit k3huf_output_patch(struct k3huf_output *output, uint64_t offset, const uint8_t *data, size_t size,
                                   struct k3huf_fault *fault);

/* The output is complete: bring it to the disk (a stream too, where that is one or a file), give the file its name, and
 * bring that to the disk too. Closes the output whatever happens; on a fault the temporary file is gone. Where only the
 * last step fails the file has its name. File systems that know no such step, and folders that may not be read, count
 * as done. */
enum k3huf_exit k3huf_output_commit(struct k3huf_output *output, struct k3huf_fault *fault);

/* Make a directory unless it is there, and bring its name to the disk: what is in it is not safe otherwise. */
enum k3huf_exit k3huf_output_directory(const char *name, struct k3huf_fault *fault);

/* K3HUF_EXIT_IO where `name` is the file (or block device) that `input` reads, by whatever name: as an output it would
 * be replaced or overwritten. To be asked before k3huf_output_open(). */
enum k3huf_exit k3huf_output_not_input(const char *name, const struct k3huf_input *input, struct k3huf_fault *fault);

/* Whether something of that name would be a stream as an output: "-", or what is there and no regular file. */
bool k3huf_output_is_stream(const char *name);

/* Remove `input`, a source that is packed and still open, by its name: only if that name is a regular file, this one,
 * and it is as it was when it was opened. Else K3HUF_EXIT_IO and it stays. */
enum k3huf_exit k3huf_output_remove(struct k3huf_input *input, struct k3huf_fault *fault);

/* Remove the temporary file and close. Does nothing after a commit. */
void k3huf_output_discard(struct k3huf_output *output);

#endif
