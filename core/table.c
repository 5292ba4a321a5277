/* table.c - from code lengths to the decode table. May not look at coded bits.
 *
 * The canonical code (FORMAT.md, The code): codes are given shortest length first, within a length in byte-value
 * order. So the codes of up to 10 bits fill the table from its first entry up, each 2^(10 - length) entries, and what
 * is left of the code space belongs to the longer ones.
 */
#include "bytes.h"
#include "table.h"

_Static_assert(sizeof(((struct k3huf_table *)0)->entry) == K3HUF_TABLE_BYTES, "the decode table is 8 KiB");
_Static_assert(K3HUF_TABLE_ENTRIES == 1u << K3HUF_TABLE_BITS, "one entry a window");
_Static_assert(sizeof(struct k3huf_decoder) < 10240, "the decoder object stays under 10 KiB");
_Static_assert(sizeof(struct k3huf_workspace) <= 16384, "table and workspace fit a 32 KiB L1 data cache");

#define CODE_SPACE (1u << K3HUF_CODE_LENGTH_MAX)
#define ENTRY_SPACE (CODE_SPACE / K3HUF_TABLE_ENTRIES) /* of the code space, for one entry */

static uint64_t make_entry(uint64_t symbols, uint32_t bits, uint32_t count) {
    return (uint64_t)count << 56 | symbols << 8 | bits;
}

/* All whole codes in a window. Every entry holds at least its own first symbol, whether it has been here or not. */
static uint64_t whole_codes(const struct k3huf_table *table, uint32_t window) {
    uint64_t symbols = 0;
    uint32_t used = 0;
    uint32_t count = 0;
    while (count < K3HUF_ENTRY_SYMBOLS) {
        const uint64_t next = table->entry[window << used & (K3HUF_TABLE_ENTRIES - 1u)];
        const uint64_t symbol = k3huf_entry_symbols(next) & 0xffu;
        if (next == 0 || used + table->length[symbol] > K3HUF_TABLE_BITS) { break; }
        symbols |= symbol << (8u * count);
        used += table->length[symbol];
        count++;
    }
    return make_entry(symbols, used, count);
}

/* Give the symbols of one code length their codes, from `code` on. Returns the next free one, left-aligned to 12 bits;
 * above CODE_SPACE where the code is over-full. */
static uint32_t place_length(struct k3huf_table *table, uint32_t length, uint32_t code, uint32_t *tail) {
    for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS && code <= CODE_SPACE; symbol++) {
        if (table->length[symbol] != length) { continue; }
        const uint32_t end = code + (CODE_SPACE >> length);
        if (length > K3HUF_TABLE_BITS) {
            table->tail[(*tail)++] = (uint8_t)symbol;
        } else if (end <= CODE_SPACE) {
            for (uint32_t i = code / ENTRY_SPACE; i < end / ENTRY_SPACE; i++) {
                table->entry[i] = make_entry(symbol, length, 1);
            }
        }
        code = end;
    }
    return code;
}

enum k3huf_status k3huf_table_build(struct k3huf_table *table, const uint8_t codelen[K3HUF_SYMBOLS]) {
    uint32_t end[K3HUF_CODE_LENGTH_MAX + 1u]; /* of the codes up to each length */
    uint32_t tail = 0;
    end[0] = 0;
    k3huf_zero((uint8_t *)table->entry, sizeof table->entry);
    for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        table->length[symbol] = codelen[symbol];
        if (codelen[symbol] > K3HUF_CODE_LENGTH_MAX) { return K3HUF_E_CODE_LENGTH; }
    }
    for (uint32_t length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        end[length] = place_length(table, length, end[length - 1u], &tail);
    }
    if (end[K3HUF_CODE_LENGTH_MAX] > CODE_SPACE) { return K3HUF_E_CODE_OVERFULL; }
    table->tail11 = (uint16_t)end[K3HUF_TABLE_BITS];
    table->tail12 = (uint16_t)end[K3HUF_TABLE_BITS + 1u];
    table->tail_end = (uint16_t)end[K3HUF_CODE_LENGTH_MAX];
    table->most = 1;
    for (uint32_t window = 0; window < end[K3HUF_TABLE_BITS] / ENTRY_SPACE; window++) {
        table->entry[window] = whole_codes(table, window);
        const uint16_t count = (uint16_t)k3huf_entry_count(table->entry[window]);
        if (count > table->most) { table->most = count; }
    }
    return K3HUF_OK;
}
