/* cores.c - further cores by PSCI; cores.h says what each call does. May not know what the cores do. */
#include "cores.h"

/* Function identifiers and results of PSCI (DEN 0022E, 5.1 and 5.2). */
#define PSCI_CPU_ON 0xc4000003u
#define PSCI_CPU_OFF 0x84000002u
#define PSCI_AFFINITY_INFO 0xc4000004u
#define PSCI_SUCCESS 0

#define STACK_BYTES 32768u
#define FAULT_STACK_BYTES 4096u
#define WAIT_SECONDS 10u /* far more than any core needs, even an emulated one on a busy machine */

/* The stack of a core is filled with this before it starts; what still holds it was never used. */
#define PAINT UINT64_C(0x6b3368756673746b)

/* What a core has for itself, with pages that stay unmapped below each stack. */
struct core_memory {
    uint8_t fault_guard[VIRT_PAGE];
    uint8_t fault_stack[FAULT_STACK_BYTES];
    uint8_t guard[VIRT_PAGE];
    uint64_t stack[STACK_BYTES / 8u];
};

static struct core_memory memory[VIRT_CORES - 1u] __attribute__((section(".core_stacks"), aligned(VIRT_PAGE)));

struct core {
    void (*entry)(void *argument, uint32_t core);
    void *argument;
    bool running; /* written by the core itself, read by the first one */
};

static struct core cores[VIRT_CORES];
static struct k3huf_virt_start starts[VIRT_CORES];
static bool call_by_smc;

/* From linker/qemu-virt.ld: the first core's stack. */
extern uint64_t __stack_bottom[], __stack_top[];

static int64_t psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c) {
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a;
    register uint64_t x2 __asm__("x2") = b;
    register uint64_t x3 __asm__("x3") = c;
    /* SMCCC (DEN 0028): x4 ... x17 may change. */
    if (call_by_smc) {
        __asm__ volatile("smc #0"
                         : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                         :
                         : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                           "memory");
    } else {
        __asm__ volatile("hvc #0"
                         : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                         :
                         : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                           "memory");
    }
    return (int32_t)x0;
}

/* The event stream: an event at each change of the virtual counter's bit whose period is about a millisecond. A device
 * that writes memory wakes no core by itself. CNTKCTL_EL1: EVNTEN, EVNTI. */
static void start_event_stream(void) {
    uint64_t bit = 0;
    for (uint64_t ticks = k3huf_virt_tick_hz() / 1000u; ticks > 2u && bit < 15u; ticks >>= 1) {
        ++bit;
    }
    __asm__ volatile("msr cntkctl_el1, %0\n\tisb" : : "r"(bit << 4 | 1u << 2));
}

void k3huf_cores_init(uint64_t level) {
    call_by_smc = level == 2;
    start_event_stream();
    /* What this core has on its stack now lies above its stack pointer, which is in use; the rest is painted. */
    uint64_t *end = (uint64_t *)__builtin_frame_address(0) - 64;
    for (volatile uint64_t *at = __stack_bottom; at < (volatile uint64_t *)end; ++at) {
        *at = PAINT;
    }
}

uint32_t k3huf_cores_present(void) {
    uint32_t count = 1;
    while (count < VIRT_CORES && psci(PSCI_AFFINITY_INFO, count, 0, 0) >= 0) {
        ++count;
    }
    return count;
}

/* C's first function on a further core. */
static void core_main(uint64_t number) {
    struct core *core = &cores[number];
    start_event_stream();
    __atomic_store_n(&core->running, true, __ATOMIC_RELEASE);
    core->entry(core->argument, (uint32_t)number);
    __atomic_store_n(&core->running, false, __ATOMIC_RELEASE);
    k3huf_cores_signal();
    (void)psci(PSCI_CPU_OFF, 0, 0, 0);
    for (;;) {
        k3huf_core_wait();
    }
}

static bool prepare_memory(struct core_memory *own) {
    if (!k3huf_virt_map((uintptr_t)own->fault_stack, sizeof own->fault_stack, VIRT_DATA) ||
        !k3huf_virt_map((uintptr_t)own->stack, sizeof own->stack, VIRT_DATA)) {
        return false;
    }
    for (uint32_t i = 0; i < STACK_BYTES / 8u; ++i) {
        ((volatile uint64_t *)own->stack)[i] = PAINT;
    }
    return true;
}

static bool wait_running(uint32_t core, bool running) {
    uint64_t end = k3huf_virt_ticks() + WAIT_SECONDS * k3huf_virt_tick_hz();
    while (__atomic_load_n(&cores[core].running, __ATOMIC_ACQUIRE) != running) {
        if (k3huf_virt_ticks() > end) { return false; }
    }
    return true;
}

bool k3huf_core_start(uint32_t core, void (*entry)(void *argument, uint32_t core), void *argument) {
    if (core == 0 || core >= VIRT_CORES || cores[core].entry != NULL || !prepare_memory(&memory[core - 1u])) {
        return false;
    }
    struct core_memory *own = &memory[core - 1u];
    uint64_t tables;
    __asm__("mrs %0, ttbr0_el1" : "=r"(tables));
    cores[core] = (struct core){.entry = entry, .argument = argument};
    starts[core] = (struct k3huf_virt_start){.tables = tables,
                                             .fault_stack_top = (uintptr_t)own->fault_stack + sizeof own->fault_stack,
                                             .stack_top = (uintptr_t)own->stack + sizeof own->stack,
                                             .core = core,
                                             .entry = core_main};
    k3huf_virt_clean(&starts[core], sizeof starts[core]); /* it is read with the caches off */
    if (psci(PSCI_CPU_ON, core, (uintptr_t)k3huf_virt_core_entry, (uintptr_t)&starts[core]) != PSCI_SUCCESS) {
        return false;
    }
    return wait_running(core, true);
}

bool k3huf_cores_end(void) {
    bool ended = true;
    for (uint32_t core = 1; core < VIRT_CORES; ++core) {
        ended = wait_running(core, false) && ended;
    }
    return ended;
}

void k3huf_core_wait(void) { __asm__ volatile("wfe" : : : "memory"); }

void k3huf_cores_signal(void) { __asm__ volatile("dsb ish\n\tsev" : : : "memory"); }

static const uint64_t *stack_of(uint32_t core, uint32_t *words) {
    *words = core == 0 ? (uint32_t)(__stack_top - __stack_bottom) : STACK_BYTES / 8u;
    return core == 0 ? __stack_bottom : memory[core - 1u].stack;
}

uint32_t k3huf_core_stack_bytes(uint32_t core) {
    uint32_t words;
    (void)stack_of(core, &words);
    return words * 8u;
}

uint32_t k3huf_core_stack_used(uint32_t core) {
    if (core != 0 && cores[core].entry == NULL) { return 0; }
    uint32_t words;
    const volatile uint64_t *stack = stack_of(core, &words);
    uint32_t unused = 0;
    while (unused < words && stack[unused] == PAINT) {
        ++unused;
    }
    return (words - unused) * 8u;
}
