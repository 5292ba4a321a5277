/* start.S - from reset to C: entry at EL2 or EL1, translation on, exception vectors; the same for further cores.
 *
 * The one file that touches system registers of start-up. It places nothing (linker/qemu-virt.ld does) and decides no
 * memory attributes (mmu.c does). Register fields are those of the Arm Architecture Reference Manual (DDI 0487).
 *
 * C runs at EL1 on SP_EL0, so that every exception changes to SP_EL1, a stack of its own: an overflow of a stack into
 * its guard page can still be reported.
 */
#include "virt.h"

#define HCR_EL2_RW (1 << 31)          /* EL1 is AArch64 */
#define CNTHCTL_EL2_EL1 3             /* EL1 may read the physical counter and timer */
#define CPTR_EL2_NO_FP_TRAP 0x33ff    /* RES1 bits, TFP clear */
#define SPSR_EL1T_MASKED 0x3c4        /* EL1 on SP_EL0; debug, SError, IRQ, FIQ masked */
#define CPACR_EL1_FPEN (3 << 20)      /* FP and SIMD without traps */
#define SCTLR_EL1_RES1 0x30d00800     /* bits that are one, everything else off, little-endian */
#define SCTLR_EL1_ON 0x30d8180d       /* RES1, M, C, I, SA (stack alignment), WXN (no writable page executes) */
/* Index 0: normal write-back, 1: device-nGnRE, 2: normal non-cacheable; see mmu.c. */
#define MAIR_EL1_KINDS 0x4404ff
/* T0SZ; walks write-back cacheable and inner shareable; 4 KiB pages; TTBR1 off (EPD1). IPS is added at run time. */
#define TCR_EL1_BASE ((64 - VIRT_ADDRESS_BITS) | (1 << 8) | (1 << 10) | (3 << 12) | (1 << 23))

#define SEMIHOST_WRITE0 0x04
#define SEMIHOST_EXIT_EXTENDED 0x20

    .macro address register, symbol
    adrp \register, \symbol
    add \register, \register, :lo12:\symbol
    .endm

    /* Say one line and exit; needs no stack and no writable memory. */
    .macro die text, block
    address x1, \text
    mov w0, #SEMIHOST_WRITE0
    hlt #0xf000
    address x1, \block
    mov w0, #SEMIHOST_EXIT_EXTENDED
    hlt #0xf000
    b park
    .endm

    .section .text.start, "ax"
    .global _start
    .type _start, %function
_start:
    msr daifset, #15
    /* One core starts the image; the others wait until the port starts them. QEMU keeps them off (PSCI). */
    mrs x0, mpidr_el1
    mov x1, #0xffffff
    movk x1, #0xff, lsl #32
    tst x0, x1
    b.ne park
    mrs x20, CurrentEL
    bl enter_el1

    msr spsel, #1
    address x0, __fault_stack_top
    mov sp, x0
    msr spsel, #0
    address x0, __stack_top
    mov sp, x0
    mov x29, #0
    mov x30, #0

    /* What is written from here until the MMU is on lies between __early_start and __early_end: the tables and the
     * stacks. Cached lines of it that an earlier stage left would hide those writes later, or overwrite them when they
     * are evicted, so drop them, before the writes and after. */
    bl drop_early
    bl k3huf_virt_map_all
    cbz x0, map_failed
    mov x19, x0
    bl drop_early
    mov x0, x19
    bl mmu_on

    /* BSS is cleared through the cache, so that nothing has to be kept coherent by hand. */
    address x0, __bss_start
    address x1, __bss_end
2:  cmp x0, x1
    b.hs 3f
    stp xzr, xzr, [x0], #16
    b 2b
3:  msr daifclr, #4 /* report SErrors (external aborts) too */
    ubfx x0, x20, #2, #2 /* the exception level of the start */
    bl k3huf_virt_main
    b park

map_failed:
    die text_map, exit_start

park:
    wfe
    b park

/* A further core's first instruction, with MMU and caches off; x0 is what CPU_ON was given: the address of a struct
 * k3huf_virt_start (virt.h), which its writer has cleaned to the point of coherency. */
    .global k3huf_virt_core_entry
    .type k3huf_virt_core_entry, %function
k3huf_virt_core_entry:
    msr daifset, #15
    mov x19, x0
    bl enter_el1
    ldr x0, [x19, #VIRT_START_TABLES]
    bl mmu_on
    msr spsel, #1
    ldr x0, [x19, #VIRT_START_FAULT_STACK]
    mov sp, x0
    msr spsel, #0
    ldr x0, [x19, #VIRT_START_STACK]
    mov sp, x0
    mov x29, #0
    msr daifclr, #4
    ldr x0, [x19, #VIRT_START_CORE]
    ldr x1, [x19, #VIRT_START_ENTRY]
    blr x1
    b park

/* Return at EL1, with MMU and caches off, FP and SIMD on and the vectors in place. Changes x0, x1. */
enter_el1:
    mrs x0, CurrentEL
    cmp x0, #(2 << 2)
    b.lo at_el1
    b.eq at_el2
    die text_el3, exit_start

at_el2:
    /* EL1 gets an AArch64 machine that traps nothing to EL2. */
    mov x0, #HCR_EL2_RW
    msr hcr_el2, x0
    isb
    mrs x0, cnthctl_el2
    orr x0, x0, #CNTHCTL_EL2_EL1
    msr cnthctl_el2, x0
    msr cntvoff_el2, xzr
    mov x0, #CPTR_EL2_NO_FP_TRAP
    msr cptr_el2, x0
    msr hstr_el2, xzr
    mrs x0, midr_el1
    msr vpidr_el2, x0
    mrs x0, mpidr_el1
    msr vmpidr_el2, x0
    /* All PMU counters belong to EL1, if there is an architected PMU (PMUVer neither 0 nor 15). */
    mov x1, #0
    mrs x0, id_aa64dfr0_el1
    ubfx x0, x0, #8, #4
    cbz x0, 1f
    cmp x0, #15
    b.eq 1f
    mrs x1, pmcr_el0
    ubfx x1, x1, #11, #5
1:  msr mdcr_el2, x1
    ldr x0, =SCTLR_EL1_RES1
    msr sctlr_el1, x0
    mov x0, #SPSR_EL1T_MASKED
    msr spsr_el2, x0
    adr x0, at_el1
    msr elr_el2, x0
    eret

at_el1:
    /* MMU and caches are off now, whatever was before: data accesses are device accesses (aligned only), and go to
     * memory past any cache. */
    ldr x0, =SCTLR_EL1_RES1
    msr sctlr_el1, x0
    isb
    mov x0, #CPACR_EL1_FPEN
    msr cpacr_el1, x0
    address x0, vectors
    msr vbar_el1, x0
    msr tpidr_el1, xzr
    isb
    ret

/* Invalidate the data cache by address to the point of coherency, from __early_start to __early_end. Both are multiples
 * of the page, hence of any cache line. Changes x0 ... x3. */
drop_early:
    mrs x2, ctr_el0
    ubfx x2, x2, #16, #4 /* DminLine: log2 of words in the smallest line */
    mov x3, #4
    lsl x3, x3, x2
    address x0, __early_start
    address x1, __early_end
    dsb sy
4:  dc ivac, x0
    add x0, x0, x3
    cmp x0, x1
    b.lo 4b
    dsb sy
    ret

/* Turn on translation through the tables at x0, and the caches. Returns to the same address, as the map is the
 * identity. Changes x0 ... x3. */
mmu_on:
    ldr x1, =MAIR_EL1_KINDS
    msr mair_el1, x1
    ldr x1, =TCR_EL1_BASE
    mrs x2, id_aa64mmfr0_el1
    ubfx x2, x2, #0, #4 /* PARange; 48 bits are enough, and the larger values need other page sizes */
    mov x3, #5
    cmp x2, x3
    csel x2, x2, x3, ls
    orr x1, x1, x2, lsl #32
    msr tcr_el1, x1
    msr ttbr0_el1, x0
    isb
    tlbi vmalle1
    ic iallu
    dsb sy
    isb
    ldr x1, =SCTLR_EL1_ON
    msr sctlr_el1, x1
    isb
    ret

/* The vectors. None returns: an exception is a defect here, as no interrupt is ever enabled. x0 gets the vector's
 * number, 0 ... 15 in the order of the architecture's table. */
    .macro vector number
    .balign 128
    mov x0, #\number
    b exception
    .endm

    .balign 2048
vectors:
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vector \number
    .endr

    .balign 128
exception:
    /* TPIDR_EL1 says whether one is being reported already: then even the report is not to be trusted. */
    mrs x1, tpidr_el1
    cbnz x1, nested
    mov x1, #1
    msr tpidr_el1, x1
    mrs x1, esr_el1
    mrs x2, elr_el1
    mrs x3, far_el1
    mrs x4, spsr_el1
    mrs x5, sp_el0
    mov x6, x30
    mov x29, #0
    bl k3huf_virt_fault
    b park

nested:
    die text_nested, exit_nested

    .section .rodata.start, "a"
    /* Parameter blocks of SYS_EXIT_EXTENDED: ADP_Stopped_ApplicationExit and the exit code. */
    .balign 8
exit_start:
    .quad 0x20026, VIRT_EXIT_START
exit_nested:
    .quad 0x20026, VIRT_EXIT_NESTED
text_el3:
    .asciz "start-up: started at EL3, this image needs EL2 or EL1\n"
text_map:
    .asciz "start-up: no translation tables for this memory map\n"
text_nested:
    .asciz "fault: another exception while reporting one\n"
