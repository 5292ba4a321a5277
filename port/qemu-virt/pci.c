/* pci.c - enumeration and BAR assignment; pci.h says what each call does.
 *
 * Configuration space is device memory: every access here is an aligned word, and the core keeps their order.
 */
#include "pci.h"

#define SLOTS 32u
#define FUNCTIONS 8u
#define FUNCTION_BYTES 4096u
#define DEVICES_MAX 8u

/* ECAM is mapped by 2 MiB blocks, of which the root bus takes half a one (7.2.2). */
#define ECAM_MAPPED 0x200000u

/* Word offsets of the type 0 header (7.5.1). */
enum { IDENTITY = 0, COMMAND = 1, CLASS = 2, HEADER = 3, BAR = 4 };

#define IDENTITY_NONE 0xffffffffu
#define COMMAND_IO 1u
#define COMMAND_MEMORY 2u
#define COMMAND_MASTER 4u
#define COMMAND_NO_INTX 0x400u
#define COMMAND_BITS 0xffffu /* the status bits above are cleared by writing ones: write zeros */
#define HEADER_MULTIFUNCTION 0x800000u
#define HEADER_TYPE(word) (((word) >> 16) & 0x7fu)

/* Low bits of a BAR (7.5.1.2.1). */
#define BAR_IO 1u
#define BAR_TYPE(word) (((word) >> 1) & 3u)
#define BAR_TYPE_64 2u
#define BAR_ADDRESS 0xfffffff0u

static struct pci_device devices[DEVICES_MAX];
static uint32_t device_count;

static void set_command(const struct pci_device *device, uint32_t clear, uint32_t set) {
    device->config[COMMAND] = ((device->config[COMMAND] & COMMAND_BITS) & ~clear) | set;
    (void)device->config[COMMAND]; /* the write has arrived */
}

/* Sizes of all memory BARs: write ones, read back what sticks. Decoding is off meanwhile. */
static void size_bars(struct pci_device *device) {
    volatile uint32_t *config = device->config;
    for (uint32_t i = 0; i < PCI_BARS; ++i) {
        uint32_t old = config[BAR + i];
        config[BAR + i] = UINT32_MAX;
        uint32_t low = config[BAR + i];
        config[BAR + i] = old;
        if (low == 0 || (low & BAR_IO) != 0) { continue; }
        bool wide = BAR_TYPE(low) == BAR_TYPE_64 && i + 1u < PCI_BARS;
        uint64_t mask = UINT64_C(0xffffffff00000000) | (low & BAR_ADDRESS);
        if (wide) {
            config[BAR + i + 1u] = UINT32_MAX;
            mask = (uint64_t)config[BAR + i + 1u] << 32 | (low & BAR_ADDRESS);
            config[BAR + i + 1u] = 0;
            device->wide |= 1u << i;
        }
        device->bars |= 1u << i;
        device->bar_bytes[i] = ~mask + 1u;
        i += wide ? 1u : 0u;
    }
}

static void add(volatile uint32_t *config) {
    if (device_count == DEVICES_MAX || HEADER_TYPE(config[HEADER]) != 0) { return; }
    struct pci_device *device = &devices[device_count++];
    *device = (struct pci_device){
        .config = config, .identity = config[IDENTITY], .class_code = config[CLASS] >> 8, .bars = 0};
    set_command(device, COMMAND_IO | COMMAND_MEMORY | COMMAND_MASTER, 0);
    size_bars(device);
}

/* What a BAR takes of the window: pages of its own, as a mapping has one kind of memory. */
static uint64_t taken(uint64_t bytes) { return bytes < VIRT_PAGE ? VIRT_PAGE : bytes; }

static void assign(struct pci_device *device, uint32_t bar, uint64_t base) {
    device->bar_base[bar] = base;
    device->config[BAR + bar] = (uint32_t)base;
    if ((device->wide >> bar & 1u) != 0) { device->config[BAR + bar + 1u] = (uint32_t)(base >> 32); }
}

/* BARs are powers of two and lie at multiples of their size: the largest first, no hole ever comes up between them. */
static void assign_all(void) {
    uint64_t next = VIRT_PCI_MEMORY_BASE;
    for (uint64_t size = UINT64_C(1) << 31; size >= VIRT_PAGE; size >>= 1) {
        for (uint32_t i = 0; i < device_count; ++i) {
            for (uint32_t bar = 0; bar < PCI_BARS; ++bar) {
                if ((devices[i].bars >> bar & 1u) == 0 || taken(devices[i].bar_bytes[bar]) != size) { continue; }
                uint64_t base = (next + size - 1u) & ~(size - 1u);
                if (base < VIRT_PCI_MEMORY_END && size <= VIRT_PCI_MEMORY_END - base) {
                    assign(&devices[i], bar, base);
                    next = base + size;
                }
            }
        }
    }
}

uint32_t k3huf_pci_start(bool *mapped) {
    *mapped = k3huf_virt_map(VIRT_PCI_ECAM_BASE, ECAM_MAPPED, VIRT_DEVICE);
    if (!*mapped) { return 0; }
    for (uint32_t slot = 0; slot < SLOTS; ++slot) {
        for (uint32_t function = 0; function < FUNCTIONS; ++function) {
            uintptr_t at = VIRT_PCI_ECAM_BASE + (uintptr_t)(slot * FUNCTIONS + function) * FUNCTION_BYTES;
            volatile uint32_t *config = (volatile uint32_t *)at;
            if (config[IDENTITY] != IDENTITY_NONE) { add(config); }
            if (function == 0 && (config[IDENTITY] == IDENTITY_NONE || (config[HEADER] & HEADER_MULTIFUNCTION) == 0)) {
                break;
            }
        }
    }
    assign_all();
    return device_count;
}

const struct pci_device *k3huf_pci_by_identity(uint32_t identity) {
    for (uint32_t i = 0; i < device_count; ++i) {
        if (devices[i].identity == identity) { return &devices[i]; }
    }
    return NULL;
}

const struct pci_device *k3huf_pci_by_class(uint32_t class_code) {
    for (uint32_t i = 0; i < device_count; ++i) {
        if (devices[i].class_code == class_code) { return &devices[i]; }
    }
    return NULL;
}

volatile void *k3huf_pci_map(const struct pci_device *device, uint32_t bar, enum virt_memory kind) {
    if (bar >= PCI_BARS || device->bar_base[bar] == 0) { return NULL; }
    uintptr_t base = (uintptr_t)device->bar_base[bar];
    return k3huf_virt_map(base, (uintptr_t)taken(device->bar_bytes[bar]), kind) ? (volatile void *)base : NULL;
}

void k3huf_pci_enable(const struct pci_device *device) {
    set_command(device, 0, COMMAND_MEMORY | COMMAND_MASTER | COMMAND_NO_INTX);
}

void k3huf_pci_disable(const struct pci_device *device) { set_command(device, COMMAND_MEMORY | COMMAND_MASTER, 0); }
