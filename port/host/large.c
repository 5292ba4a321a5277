/* large.c - see large.h. */
#include "large.h"

#include <stdlib.h>
#include <sys/mman.h>
#ifdef __GLIBC__ /* stdlib.h has set it */
#include <malloc.h>
#endif

/* Of x86-64, and of AArch64 with 4 KiB pages; elsewhere a hint that does no harm. */
#define HUGE_PAGE ((size_t)2 << 20)
#define LEAST (2 * HUGE_PAGE)

uint8_t *k3huf_large_new(size_t size) {
    void *memory = NULL;
    if (size < LEAST) { return malloc(size); }
    if (posix_memalign(&memory, HUGE_PAGE, size) != 0) { return NULL; }
    (void)madvise(memory, size, MADV_HUGEPAGE); /* no such pages: nothing is lost */
    return memory;
}

void k3huf_large_keep(void) {
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, 1); /* so that what one thread frees is there for the others */
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}
