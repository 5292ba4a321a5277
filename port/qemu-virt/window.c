/* window.c - copying into and out of the window of host memory. May not know what is copied.
 *
 * Stores into the window are naturally aligned and never touch a byte beside those asked for, so that the code stays
 * right where the window is device memory; what they come from may lie anywhere.
 */
#include "window.h"

#define WIDE 64u /* bytes of one turn of the wide loop */
#define WIDE_ALIGN 16u

/* 64 bytes in four 16-byte registers: stores of whole PCIe write bursts, if the core gathers them. */
static void store_wide(volatile uint8_t *to, const uint8_t *from) {
    __asm__ volatile("ldp q0, q1, [%1]\n\t"
                     "ldp q2, q3, [%1, #32]\n\t"
                     "stp q0, q1, [%0]\n\t"
                     "stp q2, q3, [%0, #32]"
                     :
                     : "r"(to), "r"(from)
                     : "v0", "v1", "v2", "v3", "memory");
}

static uint32_t load_word(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

void k3huf_window_write(volatile uint8_t *window, const void *from, size_t size) {
    const uint8_t *bytes = from;
    while (size > 0) {
        uintptr_t at = (uintptr_t)window;
        size_t step = 1;
        if (at % WIDE_ALIGN == 0 && size >= WIDE) {
            store_wide(window, bytes);
            step = WIDE;
        } else if (at % 4u == 0 && size >= 4u) {
            *(volatile uint32_t *)at = load_word(bytes);
            step = 4;
        } else {
            *window = *bytes;
        }
        window += step;
        bytes += step;
        size -= step;
    }
}

void k3huf_window_read(void *to, const volatile uint8_t *window, size_t size) {
    uint8_t *bytes = to;
    while (size > 0) {
        uintptr_t at = (uintptr_t)window;
        size_t step = 1;
        if (at % 4u == 0 && size >= 4u) {
            uint32_t word = *(const volatile uint32_t *)at;
            for (uint32_t i = 0; i < 4; ++i) {
                bytes[i] = (uint8_t)(word >> (8u * i));
            }
            step = 4;
        } else {
            *bytes = *window;
        }
        window += step;
        bytes += step;
        size -= step;
    }
    /* Later accesses come after these. */
    __asm__ volatile("dmb osh" : : : "memory");
}

void k3huf_window_flush(const volatile uint8_t *window) {
    /* The barrier drains the core; the read pushes posted writes ahead of itself (PCI Express Base Specification 5.0,
     * 2.4.1), and the second barrier waits for its answer. */
    __asm__ volatile("dsb osh" : : : "memory");
    (void)*(const volatile uint32_t *)(uintptr_t)window;
    __asm__ volatile("dsb osh" : : : "memory");
}
