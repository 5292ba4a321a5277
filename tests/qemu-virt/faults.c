/* faults.c - an image that runs into the fault its argument names, to show that start-up's vectors report it.
 *
 * It returns 0 only if nothing happened, which is what the tests must see as a failure.
 */
#include "virt.h"

#include <stdio.h>
#include <string.h>

/* From linker/qemu-virt.ld. */
extern char __text_start[], __rodata_start[], __ram_end[];

static volatile uint32_t depth;

/* Deeper and deeper, 256 bytes or more at a time, and never a tail call. */
static uint32_t overflow(uint32_t n) { // NOLINT(misc-no-recursion): overflowing the stack is what it is for
    volatile uint8_t frame[256];
    frame[n % sizeof frame] = (uint8_t)n;
    depth = n;
    if (n == UINT32_MAX) { return 0; }
    return overflow(n + 1u) + frame[n % sizeof frame];
}

static void write_to(uintptr_t address) { *(volatile uint32_t *)address = 1; }

static void call(uintptr_t address) { ((void (*)(void))address)(); }

int main(int argc, char **argv) {
    static uint32_t data[1] = {0xd65f03c0}; /* the instruction RET */
    const char *what = argc == 2 ? argv[1] : "";
    printf("about to fault: %s\n", what);
    if (strcmp(what, "null") == 0) {
        write_to(0);
    } else if (strcmp(what, "unmapped") == 0) {
        write_to((uintptr_t)__ram_end);
    } else if (strcmp(what, "text") == 0) {
        write_to((uintptr_t)__text_start);
    } else if (strcmp(what, "rodata") == 0) {
        write_to((uintptr_t)__rodata_start);
    } else if (strcmp(what, "execute") == 0) {
        call((uintptr_t)data);
    } else if (strcmp(what, "overflow") == 0) {
        printf("%u\n", (unsigned)overflow(0));
    } else if (strcmp(what, "undefined") == 0) {
        __asm__ volatile("udf #0");
    } else if (strcmp(what, "nested") == 0) {
        /* Pull the fault stack away, then fault: the report itself must fault, and that must end too. */
        __asm__ volatile("msr spsel, #1\n\tmov sp, %0\n\tmsr spsel, #0\n\tudf #0" : : "r"(UINT64_C(0)) : "memory");
    }
    return 0;
}
