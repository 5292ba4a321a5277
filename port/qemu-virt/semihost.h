/* semihost.h - the calls to the debugger or emulator that runs the image: files of the machine it runs on, and exit.
 *
 * The interface is Arm's "Semihosting for AArch32 and AArch64", release 2.0; QEMU offers it with
 * `-semihosting-config enable=on,target=native`. Nothing here buffers, allocates or retries.
 */
#ifndef SEMIHOST_H
#define SEMIHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mode numbers of k3huf_semihost_open(), named after fopen()'s. */
#define SEMIHOST_READ_BINARY 1u
#define SEMIHOST_WRITE 4u
#define SEMIHOST_APPEND 8u

/* The name that opens the console: standard input to read, standard output to write, standard error to append. */
#define SEMIHOST_CONSOLE ":tt"

/* Open a file by its NUL-ended name on the host. Returns a handle of 0 or more, or -1. */
int64_t k3huf_semihost_open(const char *name, uint32_t mode);

/* Close a handle. false: it was not open, or the host could not write what it held back. */
bool k3huf_semihost_close(int64_t handle);

/* Read up to `size` bytes at the handle's position, which moves behind them. Returns the bytes read, fewer than `size`
 * only where the file ends; 0 at its end. -1: the host reports an error. */
int64_t k3huf_semihost_read(int64_t handle, void *data, size_t size);

/* Write `size` bytes. false: not all could be written. */
bool k3huf_semihost_write(int64_t handle, const void *data, size_t size);

/* Move a handle's position to `offset` bytes from the file's start. false: the host cannot. */
bool k3huf_semihost_seek(int64_t handle, uint64_t offset);

/* Length of the file in bytes, or -1. */
int64_t k3huf_semihost_length(int64_t handle);

/* Write a NUL-ended text to the console; works without any open handle. */
void k3huf_semihost_write0(const char *text);

/* Copy the command line, its arguments joined by spaces, into `line` with a NUL. false: it does not fit, or there is
 * none. */
bool k3huf_semihost_command_line(char *line, size_t size);

/* End the program; the host's exit code is `code`. */
_Noreturn void k3huf_semihost_exit(int code);

#endif
