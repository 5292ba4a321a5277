/* window.h - the window as a file that host and firmware have mapped. Used by the POSIX platform, k3huf_host offload
 * and tests. Knows no layout.
 *
 * Words that tell the other side something are stored with release and loaded with acquire order; they are
 * little-endian in the window. Everything else is plain bytes.
 */
#ifndef K3HUF_POSIX_WINDOW_H
#define K3HUF_POSIX_WINDOW_H

#include <stdint.h>

struct k3huf_window {
    uint8_t *bytes; /* NULL: not open */
    uint64_t size;
    int fd;
};

/* Map the whole file `name`, or, where `create` is not 0, make it `create` bytes of zeros if it does not exist. 0, or
 * an errno value; EINVAL where it has less than one control block, EFBIG where it has more than a size_t can
 * say. */
int k3huf_window_open(struct k3huf_window *window, const char *name, uint64_t create);
void k3huf_window_close(struct k3huf_window *window);

/* `offset` is a multiple of 4. */
uint32_t k3huf_window_load(const struct k3huf_window *window, uint64_t offset);
void k3huf_window_store(const struct k3huf_window *window, uint64_t offset, uint32_t value);

#endif
