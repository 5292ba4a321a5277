/* table.h - the decode table's entry layout and the one-symbol look-up. Private to core/.
 *
 * An entry says what a 10-bit window of the coded plane holds: up to six whole codes.
 *   bits 0 ... 7    bits those codes use; in the low byte, so that a shift can take the entry itself as its amount
 *   bits 8 ... 55   their symbols, first one lowest: one 8-byte store of entry >> 8 writes all of them
 *   bits 56 ... 63  their count
 * Count 0 (the whole entry is 0): the window starts with a code longer than 10 bits, or with bits that are no code.
 * Such an entry uses no bits and advances no output, so every look-up after it finds it again: testing the last of a
 * group of look-ups is enough.
 */
#ifndef K3HUF_TABLE_H
#define K3HUF_TABLE_H

#include "compiler.h"
#include "k3huf.h"

K3HUF_INLINE uint64_t k3huf_entry_count(uint64_t entry) { return entry >> 56; }
K3HUF_INLINE uint64_t k3huf_entry_symbols(uint64_t entry) { return entry >> 8; }
K3HUF_INLINE uint32_t k3huf_entry_bits(uint64_t entry) { return (uint32_t)entry & 63u; }

/* The code of 11 or 12 bits at the top of a 12-bit window that begins with no shorter one: its length, 0 where the bits
 * are no code. */
K3HUF_COLD uint32_t k3huf_long_code(const struct k3huf_table *table, uint32_t window, uint8_t *symbol) {
    if (window < table->tail12) {
        *symbol = table->tail[(window - table->tail11) / 2u];
        return 11;
    }
    if (window < table->tail_end) {
        *symbol = table->tail[(uint32_t)(table->tail12 - table->tail11) / 2u + window - table->tail12];
        return 12;
    }
    return 0;
}

#endif
