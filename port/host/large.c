/* large.c - see large.h. */
#include "large.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE                                                                                                      \
    ((size_t)2 << 20) /* of x86-64, and of AArch64 with 4 KiB pages; elsewhere a hint that does no harm                \
                       */
#define LEAST (2 * HUGE_PAGE)

uint8_t *k3huf_large_new(size_t size) {
    void *memory = NULL;
    if (size < LEAST) { return malloc(size); }
    if (posix_memalign(&memory, HUGE_PAGE, size) != 0) { return NULL; }
    (void)madvise(memory, size, MADV_HUGEPAGE); /* no such pages: nothing is lost */
    return memory;
}
