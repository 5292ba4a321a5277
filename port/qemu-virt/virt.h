/* virt.h - the machine: QEMU's `virt` board and the AArch64 core on it, as the files of this port see it.
 *
 * Memory map, memory kinds, exit codes and counters; nothing that runs by itself. Addresses of RAM are not here but in
 * linker/qemu-virt.ld. Addresses of devices are those of QEMU's hw/arm/virt.c (its table base_memmap).
 */
#ifndef VIRT_H
#define VIRT_H

/* Devices of the board: interrupt controller, UART. The flash under them is left out, so that a NULL pointer faults. */
#define VIRT_DEVICES_BASE 0x08000000
#define VIRT_DEVICES_END 0x10000000

/* PCIe: the window for memory BARs below 4 GiB, and configuration space (ECAM, 1 MiB a bus). ECAM is the high one,
 * which QEMU's virt machine has unless it is started with highmem=off (then at 0x3f000000). The second window for BARs,
 * at 512 GiB, is not used. pci.c maps what it finds. */
#define VIRT_PCI_MEMORY_BASE 0x10000000
#define VIRT_PCI_MEMORY_END 0x3eff0000
#define VIRT_PCI_ECAM_BASE 0x4010000000

/* What one tree of translation tables covers: 512 GiB, in which PCIe's ECAM (at 256 GiB) lies too. */
#define VIRT_ADDRESS_BITS 39
#define VIRT_PAGE 4096
#define VIRT_TABLES 16 /* pages for translation tables, the root included */

/* Offsets in struct k3huf_virt_start. */
#define VIRT_START_TABLES 0
#define VIRT_START_FAULT_STACK 8
#define VIRT_START_STACK 16
#define VIRT_START_CORE 24
#define VIRT_START_ENTRY 32

/* Exit codes of an image beside main's own. */
#define VIRT_EXIT_FAULT 100  /* an exception, reported by k3huf_virt_fault() */
#define VIRT_EXIT_NESTED 101 /* an exception while one was being reported */
#define VIRT_EXIT_START 102  /* start-up could not make a machine to run main on */

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------------ memory ---- */

enum virt_memory {
    VIRT_TEXT,     /* normal write-back memory, read only, executable */
    VIRT_RODATA,   /* normal write-back memory, read only */
    VIRT_DATA,     /* normal write-back memory, read and write */
    VIRT_UNCACHED, /* normal non-cacheable memory, read and write: any size and alignment of access, stores gathered */
    VIRT_DEVICE    /* device-nGnRE, read and write */
};

/* Map `size` bytes at `base` to themselves. Both are multiples of VIRT_PAGE, and nothing of the range was mapped
 * before: a mapping never changes, so no stale translation can exist. One core at a time. false: a bad range, or no
 * table left; what was mapped until then stays. */
bool k3huf_virt_map(uintptr_t base, uintptr_t size, enum virt_memory kind);

/* Start-up's step before the MMU is on: the tables for the whole memory map. Returns their root, NULL as above. */
const uint64_t *k3huf_virt_map_all(void);

/* Cache maintenance for memory that a device reads or writes past the caches, by address to the point of coherency,
 * with the barriers that order it against what the device is told afterwards and what it wrote before.
 *
 * Clean: what was stored is in memory. Drop: cached copies are gone, and stores that were not cleaned are lost, those
 * of neighbours on the same line too. Both: gone, and nothing lost. */
void k3huf_virt_clean(const void *base, size_t size);
void k3huf_virt_drop(void *base, size_t size);
void k3huf_virt_clean_and_drop(void *base, size_t size);

/* ------------------------------------------------------------------------------------------- further cores ---- */

/* What start.S hands to a further core; the offsets are VIRT_START_... above. */
struct k3huf_virt_start {
    uint64_t tables; /* root of the translation tables */
    uint64_t fault_stack_top;
    uint64_t stack_top;
    uint64_t core;                /* argument of entry */
    void (*entry)(uint64_t core); /* C's first function on that core; it does not return */
};

/* Address of the first instruction of a further core, in start.S; its argument is a struct k3huf_virt_start. */
void k3huf_virt_core_entry(void);

/* ------------------------------------------------------------------------------------------- life and end ---- */

/* C's first function: called by start.S with MMU, caches and stack in place and BSS cleared; calls main. `level` is the
 * exception level that the machine started the image at. */
_Noreturn void k3huf_virt_main(uint64_t level);
uint64_t k3huf_virt_start_level(void);

/* End the image: what the console holds back goes out, then QEMU exits with `code` (0 ... 255). */
_Noreturn void k3huf_virt_exit(int code);

/* Where an exception ends: prints what happened and exits with VIRT_EXIT_FAULT. Called by start.S on its own stack. */
_Noreturn void k3huf_virt_fault(uint64_t vector, uint64_t esr, uint64_t elr, uint64_t far, uint64_t spsr, uint64_t sp,
                                uint64_t lr);

/* ---------------------------------------------------------------------------------------------- counters ---- */

/* The generic timer: counts at k3huf_virt_tick_hz() whatever the core's clock does. */
static inline uint64_t k3huf_virt_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}

static inline uint64_t k3huf_virt_tick_hz(void) {
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

/* Let event counter 0 of the core's PMU count retired instructions. false: it cannot (QEMU counts them with -icount
 * alone), and k3huf_virt_instructions() must not be called. */
bool k3huf_virt_instructions_start(void);

/* The counter: 32 bits that wrap, so take differences over spans of fewer than 2^32 instructions. */
static inline uint32_t k3huf_virt_instructions(void) {
    uint64_t count;
    __asm__ volatile("isb\n\tmrs %0, pmevcntr0_el0" : "=r"(count) : : "memory");
    return (uint32_t)count;
}

#endif
#endif
