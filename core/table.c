/* table.c - from code lengths to the decode table. May not look at coded bits.
 *
 * The canonical code (FORMAT.md, The code): codes are given shortest length first, within a length in byte-value
 * order. Left-aligned to 12 bits, the codes of length l are then the numbers below limit[l] that no shorter code
 * covers, and the symbols sorted by (length, value) stand in the order of their codes.
 */
#include "table.h"

_Static_assert(sizeof(((struct k3huf_table *)0)->entry) == K3HUF_TABLE_BYTES, "the decode table is 8 KiB");
_Static_assert(K3HUF_TABLE_ENTRIES == 1u << K3HUF_TABLE_BITS, "one entry a window");
_Static_assert(sizeof(struct k3huf_decoder) < 10240, "the decoder object stays under 10 KiB");
_Static_assert(sizeof(struct k3huf_workspace) <= 16384, "table and workspace fit a 32 KiB L1 data cache");

static enum k3huf_status build_canonical(struct k3huf_canonical *canonical, const uint8_t codelen[K3HUF_SYMBOLS]) {
    uint32_t sorted = 0; /* symbols placed so far */
    uint32_t code = 0;   /* next free code, left-aligned to 12 bits */
    canonical->limit[0] = 0;
    canonical->base[0] = 0;
    for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        if (codelen[symbol] > K3HUF_CODE_LENGTH_MAX) {
            return K3HUF_E_CODE_LENGTH;
        }
        canonical->sorted[symbol] = 0;
    }
    for (uint32_t length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        const uint32_t shift = K3HUF_CODE_LENGTH_MAX - length;
        canonical->base[length] = (uint16_t)(sorted - (code >> shift));
        for (uint32_t symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            if (codelen[symbol] == length) {
                canonical->sorted[sorted] = (uint8_t)symbol;
                sorted++;
                code += 1u << shift;
            }
        }
        if (code > 1u << K3HUF_CODE_LENGTH_MAX) {
            return K3HUF_E_CODE_OVERFULL;
        }
        canonical->limit[length] = (uint16_t)code;
    }
    return K3HUF_OK;
}

/* The entry of one window: as many whole codes as it holds, six at most. */
static uint64_t build_entry(const struct k3huf_canonical *canonical, uint32_t window) {
    uint64_t symbols = 0;
    uint32_t used = 0;
    uint32_t count = 0;
    while (count < K3HUF_ENTRY_SYMBOLS) {
        const uint32_t rest = (window << (K3HUF_CODE_LENGTH_MAX - K3HUF_TABLE_BITS + used)) & 0xfffu;
        uint8_t symbol = 0;
        const uint32_t length = k3huf_canonical_code(canonical, 1, rest, &symbol);
        if (length == 0 || used + length > K3HUF_TABLE_BITS) {
            break;
        }
        symbols |= (uint64_t)symbol << (8u * count);
        used += length;
        count++;
    }
    return (uint64_t)count << 56 | symbols << 8 | used;
}

enum k3huf_status k3huf_table_build(struct k3huf_table *table, const uint8_t codelen[K3HUF_SYMBOLS]) {
    const enum k3huf_status status = build_canonical(&table->canonical, codelen);
    if (status == K3HUF_OK) {
        for (uint32_t window = 0; window < K3HUF_TABLE_ENTRIES; window++) {
            table->entry[window] = build_entry(&table->canonical, window);
        }
    }
    return status;
}
