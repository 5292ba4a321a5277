/* large.h - memory for large buffers, which is to cost little at first touch. */
#ifndef K3HUF_HOST_LARGE_H
#define K3HUF_HOST_LARGE_H

#include <stddef.h>
#include <stdint.h>

/* malloc(); where `size` is several MiB, in huge pages, if the system has them: touching 64 MiB for the first time in
 * pages of 4 KiB can take longer than decoding into it. Give it back with free(). */
uint8_t *k3huf_large_new(size_t size);

/* From now on keep freed memory for the next use, instead of giving it back to the system and faulting it in anew: an
 * archive has a few buffers of a MiB for every entry. Only for a whole program to decide. */
void k3huf_large_keep(void);

#endif
