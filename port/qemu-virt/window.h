/* window.h - the window of host memory: the shared memory of an ivshmem-plain device, as its BAR 2 shows it.
 *
 * It stands in for the outbound PCIe window through which the cores of a SmartNIC or DPU store into host memory, and is
 * treated as one: normal non-cacheable memory, stores as wide as the core has them, posted writes pushed by a read.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include "virt.h"

/* Vendor 0x1af4, device 0x1110: QEMU's docs/specs/ivshmem-spec. */
#define IVSHMEM_IDENTITY 0x11101af4u
#define IVSHMEM_MEMORY_BAR 2u

/* Copy `size` bytes out of or into the window. Accesses of 4 bytes that are aligned in the window are single ones. */
void k3huf_window_read(void *to, const volatile uint8_t *window, size_t size);
void k3huf_window_write(volatile uint8_t *window, const void *from, size_t size);

/* Return when all this core wrote into the window is in host memory; `window` is any aligned word of it. */
void k3huf_window_flush(const volatile uint8_t *window);

#endif
