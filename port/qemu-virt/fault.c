/* fault.c - the report of an exception, and the image's end by it.
 *
 * May not rely on anything that the fault may have broken: no stdio, no heap, only the fault stack, constants and
 * semihosting's simplest call.
 */
#include "semihost.h"
#include "virt.h"

/* From linker/qemu-virt.ld. */
extern char __stack_guard[], __stack_bottom[], __core_stacks_start[], __core_stacks_end[];

static const char *const vector_name[4] = {"synchronous exception", "IRQ", "FIQ", "SError"};

static const char *const source_name[4] = {"on the main stack", "on the fault stack", "from AArch64 EL0",
                                           "from AArch32 EL0"};

/* Names of the exception classes, ESR_EL1.EC, that can come up here. */
static const char *class_name(uint64_t esr) {
    switch ((esr >> 26) & 0x3fu) {
    case 0x00: return "undefined instruction";
    case 0x07: return "FP or SIMD access trapped";
    case 0x0e: return "illegal execution state";
    case 0x15: return "SVC instruction";
    case 0x18: return "system register access trapped";
    case 0x19: return "SVE access trapped";
    case 0x21: return "instruction abort";
    case 0x22: return "PC alignment";
    case 0x25: return "data abort";
    case 0x26: return "SP alignment";
    case 0x2f: return "SError";
    case 0x3c: return "BRK instruction";
    default: return "another exception class";
    }
}

static void print_register(const char *name, uint64_t value) {
    char text[2 + 16 + 1] = "0x";
    for (uint32_t i = 0; i < 16; ++i) {
        text[2 + i] = "0123456789abcdef"[(value >> (60u - 4u * i)) & 15u];
    }
    text[18] = '\0';
    k3huf_semihost_write0(name);
    k3huf_semihost_write0(text);
}

static bool within(uint64_t address, const char *start, const char *end) {
    return address >= (uintptr_t)start && address < (uintptr_t)end;
}

void k3huf_virt_fault(uint64_t vector, uint64_t esr, uint64_t elr, uint64_t far, uint64_t spsr, uint64_t sp,
                      uint64_t lr) {
    k3huf_semihost_write0("fault: ");
    k3huf_semihost_write0(vector_name[vector & 3u]);
    k3huf_semihost_write0(" ");
    k3huf_semihost_write0(source_name[(vector >> 2) & 3u]);
    k3huf_semihost_write0(": ");
    k3huf_semihost_write0(class_name(esr));
    uint64_t exception_class = (esr >> 26) & 0x3fu;
    /* Of the further cores' memory nothing but the guard pages can fault. */
    if (exception_class == 0x25 &&
        (within(far, __stack_guard, __stack_bottom) || within(far, __core_stacks_start, __core_stacks_end))) {
        k3huf_semihost_write0(", stack overflow into the guard page");
    }
    print_register("\nfault: ESR ", esr);
    print_register(" ELR ", elr);
    print_register(" FAR ", far);
    print_register("\nfault: SPSR ", spsr);
    print_register(" SP ", sp);
    print_register(" LR ", lr);
    k3huf_semihost_write0("\n");
    k3huf_semihost_exit(VIRT_EXIT_FAULT);
}
