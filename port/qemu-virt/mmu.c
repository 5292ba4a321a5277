/* mmu.c - translation tables: what memory may be read, written, executed and cached.
 *
 * The one place for memory attributes. It runs first with the MMU off, where every access must be aligned and nothing
 * is cleared yet: the build compiles this file with -mstrict-align and without FP registers, and its only static data
 * lies in .tables, which it clears itself. Table formats: Arm Architecture Reference Manual (DDI 0487), VMSAv8-64,
 * 4 KiB granule, stage 1.
 */
#include "virt.h"

#define ENTRIES 512u
#define ROOT_SHIFT 30u /* a root entry covers 1 GiB, as 39 bits start at level 1 */
#define PAGE_SHIFT 12u
#define LEVEL_SHIFT 9u

#define ENTRY_VALID 1u
#define ENTRY_TABLE_OR_PAGE 2u /* a table above the last level, a page at the last level; a block without it */
#define ENTRY_ADDRESS UINT64_C(0x0000fffffffff000)

/* Lower and upper attributes. Index into MAIR_EL1 as start.S sets it: 0 normal write-back, 1 device-nGnRE, 2 normal
 * non-cacheable. */
#define ATTRIBUTE_DEVICE (UINT64_C(1) << 2)
#define ATTRIBUTE_UNCACHED (UINT64_C(2) << 2)
#define ATTRIBUTE_READ_ONLY (UINT64_C(2) << 6)
#define ATTRIBUTE_INNER_SHAREABLE (UINT64_C(3) << 8)
#define ATTRIBUTE_ACCESSED (UINT64_C(1) << 10)
#define ATTRIBUTE_NO_EXECUTE_EL1 (UINT64_C(1) << 53)
#define ATTRIBUTE_NO_EXECUTE_EL0 (UINT64_C(1) << 54)

/* The pages of all tables, the root first, and how many are in use. */
static struct {
    uint64_t page[VIRT_TABLES][ENTRIES];
    uint64_t used;
} tables __attribute__((section(".tables"), aligned(VIRT_PAGE)));

static uint64_t attributes(enum virt_memory kind) {
    uint64_t bits = ATTRIBUTE_ACCESSED | ATTRIBUTE_INNER_SHAREABLE | ATTRIBUTE_NO_EXECUTE_EL0;
    if (kind != VIRT_TEXT) { bits |= ATTRIBUTE_NO_EXECUTE_EL1; }
    if (kind == VIRT_TEXT || kind == VIRT_RODATA) { bits |= ATTRIBUTE_READ_ONLY; }
    if (kind == VIRT_DEVICE) { bits |= ATTRIBUTE_DEVICE; }
    if (kind == VIRT_UNCACHED) { bits |= ATTRIBUTE_UNCACHED; }
    return bits;
}

/* The tables are ordinary memory to C, but something else reads them: the core's table walker. */
static void store(volatile uint64_t *entry, uint64_t value) { *entry = value; }

static uint64_t *new_table(void) {
    if (tables.used == VIRT_TABLES) { return NULL; }
    uint64_t *table = tables.page[tables.used++];
    for (uint32_t i = 0; i < ENTRIES; ++i) {
        store(&table[i], 0);
    }
    return table;
}

/* Walk to the table below `entry`, made if there is none. NULL: a block is in the way, or no page is left. */
static uint64_t *table_below(uint64_t *entry) {
    if (*entry == 0) {
        uint64_t *table = new_table();
        if (table == NULL) { return NULL; }
        /* The walker must not see the entry before the table it points to is cleared. */
        __asm__ volatile("dsb ishst" : : : "memory");
        store(entry, (uintptr_t)table | ENTRY_VALID | ENTRY_TABLE_OR_PAGE);
        return table;
    }
    if ((*entry & ENTRY_TABLE_OR_PAGE) == 0) { return NULL; }
    return (uint64_t *)(uintptr_t)(*entry & ENTRY_ADDRESS);
}

/* Map one block or page at `at`, the largest that alignment and `left` allow. Returns its size, 0 on failure. */
static uintptr_t map_one(uintptr_t at, uintptr_t left, uint64_t bits) {
    uint64_t *table = tables.page[0];
    for (uint32_t shift = ROOT_SHIFT;; shift -= LEVEL_SHIFT) {
        uint64_t *entry = &table[(at >> shift) % ENTRIES];
        uintptr_t size = (uintptr_t)1 << shift;
        if (at % size == 0 && left >= size && *entry == 0) {
            store(entry, at | bits | ENTRY_VALID | (shift == PAGE_SHIFT ? ENTRY_TABLE_OR_PAGE : 0u));
            return size;
        }
        if (shift == PAGE_SHIFT) { return 0; }
        table = table_below(entry);
        if (table == NULL) { return 0; }
    }
}

bool k3huf_virt_map(uintptr_t base, uintptr_t size, enum virt_memory kind) {
    const uintptr_t end = (uintptr_t)1 << VIRT_ADDRESS_BITS;
    if (base % VIRT_PAGE != 0 || size % VIRT_PAGE != 0 || base > end || size > end - base) { return false; }
    uint64_t bits = attributes(kind);
    bool mapped = true;
    while (size > 0 && mapped) {
        uintptr_t done = map_one(base, size, bits);
        mapped = done != 0;
        base += done;
        size -= done;
    }
    /* New entries were invalid before, which no TLB keeps: making them visible to the walker is all. */
    __asm__ volatile("dsb ishst\n\tisb" : : : "memory");
    return mapped;
}

/* From linker/qemu-virt.ld. */
extern char __dtb_start[], __text_start[], __text_end[], __rodata_start[], __rodata_end[], __data_start[], __data_end[];
extern char __fault_stack_bottom[], __fault_stack_top[], __stack_bottom[], __ram_end[];

static bool map_span(const char *start, const char *end, enum virt_memory kind) {
    return k3huf_virt_map((uintptr_t)start, (uintptr_t)end - (uintptr_t)start, kind);
}

const uint64_t *k3huf_virt_map_all(void) {
    tables.used = 0;
    const uint64_t *root = new_table();
    bool mapped =
        k3huf_virt_map(VIRT_DEVICES_BASE, VIRT_DEVICES_END - VIRT_DEVICES_BASE, VIRT_DEVICE) &&
        map_span(__dtb_start, __text_start, VIRT_RODATA) && map_span(__text_start, __text_end, VIRT_TEXT) &&
        map_span(__rodata_start, __rodata_end, VIRT_RODATA) && map_span(__data_start, __data_end, VIRT_DATA) &&
        map_span(__fault_stack_bottom, __fault_stack_top, VIRT_DATA) && map_span(__stack_bottom, __ram_end, VIRT_DATA);
    return mapped ? root : NULL;
}
