/* cache.c - cache maintenance by address; virt.h says what each call does. May not know who asks.
 *
 * Arm Architecture Reference Manual (DDI 0487), A64 cache maintenance instructions; DSB completes them.
 */
#include "virt.h"

static uintptr_t line_bytes(void) {
    uint64_t type;
    __asm__("mrs %0, ctr_el0" : "=r"(type));
    return (uintptr_t)4 << ((type >> 16) & 15u); /* DminLine: log2 of words in the smallest line */
}

/* One instruction for each line of the span. What is dropped may not come back by a load that was executed early, hence
 * a barrier before as well. */
#define EACH_LINE(operation, base, size)                                                                               \
    do {                                                                                                               \
        uintptr_t line = line_bytes();                                                                                 \
        uintptr_t end = (uintptr_t)(base) + (size);                                                                    \
        __asm__ volatile("dsb sy" : : : "memory");                                                                     \
        for (uintptr_t at = (uintptr_t)(base) & ~(line - 1u); at < end; at += line) {                                  \
            __asm__ volatile("dc " operation ", %0" : : "r"(at) : "memory");                                           \
        }                                                                                                              \
        __asm__ volatile("dsb sy" : : : "memory");                                                                     \
    } while (0)

void k3huf_virt_clean(const void *base, size_t size) { EACH_LINE("cvac", base, size); }
void k3huf_virt_drop(void *base, size_t size) { EACH_LINE("ivac", base, size); }
void k3huf_virt_clean_and_drop(void *base, size_t size) { EACH_LINE("civac", base, size); }
