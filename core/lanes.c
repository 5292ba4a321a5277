/* lanes.c - the hot loop: several bit positions decoded side by side on one core. May not know about headers, stripes
 * or the index; k3huf_decode_blocks() at the end is the one thing here that knows what a block is.
 *
 * One look-up costs a chain of shift, load, shift: the next look-up of the same lane has to wait for it. Lanes do not
 * wait for each other, so four of them fill the time. One lane's state in the loop is three words:
 *
 *   window   the next bits of its coded plane, first bit on top. Under the bits lies a single 1, the sentinel, and
 *            zeros: the count of trailing zeros is the number of bits used since `coded`, so no counter is kept.
 *   coded    the byte whose first bit was on top of the window before those bits were used
 *   out      where in the scratch area the next symbols go
 *
 * Invariants, for one turn of the loop (five look-ups and a refill a lane):
 *   - A refill loads 8 bytes, shifts out at most 7 used bits and gives up one for the sentinel: 56 bits are usable.
 *   - A look-up uses at most 10 bits, five at most 50. A code too long for the table (11 or 12 bits) is met with at
 *     most four look-ups used, since look-ups after it do nothing: 40 + 12 = 52. So 56 bits are enough for a turn, and
 *     with the 7 from before, `coded` moves at most (7 + 52) / 8 = 7 bytes.
 *   - A look-up gives at most 6 symbols, five at most 30, four and a long code 25. Its store is 8 bytes wide and the
 *     last one of a turn starts at most 24 symbols in: a turn writes at most 32 bytes from where it started.
 * From them, `turns_for` computes how many turns a lane can make without any test: that is the margin.
 *
 * The last symbols of a span, too few for a turn, are decoded one look-up at a time by `finish`, which counts every
 * bit and symbol and reads a zero-padded copy of the last bytes.
 */
#include "bytes.h"
#include "plane.h"
#include "table.h"

#define LOOKUPS 5u       /* look-ups a turn */
#define TURN_SYMBOLS 30u /* at most, a turn */
#define TURN_BYTES 7u    /* coded bytes at most, a turn */
#define LOAD_BYTES 8u    /* read at once */
#define STORE_SLACK 8u   /* bytes written behind the last symbol, at most */
#define LEAST_TURNS 2u   /* with fewer left, a lane finishes alone rather than hold up the others in short rounds */

/* One lane's scratch. The lanes' areas must not lie a multiple of 4 KiB apart, or stores of one lane hold up loads of
 * another that share the low 12 address bits. */
#define SCRATCH_BYTES (K3HUF_WORKSPACE_BYTES / K3HUF_LANES)
_Static_assert(K3HUF_WORKSPACE_BYTES % (8u * K3HUF_LANES) == 0, "each lane has the same, aligned scratch");
_Static_assert(SCRATCH_BYTES % 4096u > 256u && SCRATCH_BYTES % 4096u < 3840u + 128u, "no 4 KiB aliasing");
_Static_assert(LOOKUPS *K3HUF_TABLE_BITS <= 56u, "a refill holds a turn");
_Static_assert((LOOKUPS - 1u) * K3HUF_TABLE_BITS + K3HUF_CODE_LENGTH_MAX <= 56u,
               "a refill holds a turn and a long code");
_Static_assert(LOOKUPS *K3HUF_ENTRY_SYMBOLS <= TURN_SYMBOLS, "symbols of a turn");

struct fast_lane {
    uint64_t window;
    const uint8_t *coded;
    uint8_t *out;
    const uint8_t *coded_end; /* of the lane's span */
    uint8_t *begin;           /* of its scratch */
    uint8_t *out_end;         /* where its scratch is full, or its last symbol out */
};

/* Turns that a lane can make, whatever its bits say, before any of its spans or its scratch could be overrun. */
K3HUF_INLINE size_t turns_for(size_t coded_size, size_t symbols) {
    return coded_size < LOAD_BYTES ? 0 : k3huf_least((coded_size - LOAD_BYTES) / TURN_BYTES, symbols / TURN_SYMBOLS);
}

K3HUF_INLINE uint64_t fill_window(const uint8_t *coded, uint64_t bit) { return (k3huf_load_be64(coded) | 1u) << bit; }

/* `n` lanes for `turns` turns; n is a constant where this is inlined. false: stopped early, in a whole state, in front
 * of bits that are no code. */
K3HUF_INLINE bool fast_loop(const struct k3huf_table *table, struct fast_lane *fast, const uint32_t n, size_t turns) {
    uint64_t window[K3HUF_LANES];
    const uint8_t *coded[K3HUF_LANES];
    uint8_t *out[K3HUF_LANES];
    bool good = true;
    K3HUF_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        window[i] = fast[i].window;
        coded[i] = fast[i].coded;
        out[i] = fast[i].out;
    }
    for (; turns > 0 && good; turns--) {
        K3HUF_UNROLL
        for (uint32_t step = 0; step < LOOKUPS; step++) {
            K3HUF_UNROLL
            for (uint32_t i = 0; i < n; i++) {
                const uint64_t entry = table->entry[window[i] >> (64u - K3HUF_TABLE_BITS)];
                k3huf_store_le64(out[i], k3huf_entry_symbols(entry));
                window[i] <<= k3huf_entry_bits(entry);
                out[i] += k3huf_entry_count(entry);
                if (step == LOOKUPS - 1u && K3HUF_UNLIKELY(k3huf_entry_count(entry) == 0)) {
                    const uint32_t length = k3huf_canonical_code(&table->canonical, K3HUF_TABLE_BITS + 1u,
                                                                 (uint32_t)(window[i] >> 52), out[i]);
                    out[i] += length != 0;
                    window[i] <<= length;
                    good = good && length != 0;
                }
            }
        }
        K3HUF_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t used = k3huf_ctz64(window[i]);
            coded[i] += used >> 3;
            window[i] = fill_window(coded[i], used & 7u);
        }
    }
    K3HUF_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        fast[i].window = window[i];
        fast[i].coded = coded[i];
        fast[i].out = out[i];
    }
    return good;
}

/* Give `n` decoded symbols to a lane's output. */
static void emit(struct k3huf_lane *lane, const uint8_t *symbols, size_t n) {
    if (lane->raw == NULL) {
        k3huf_copy(lane->out, symbols, n);
        lane->out += n;
    } else {
        k3huf_merge(lane->out, lane->raw, symbols, n);
        lane->out += 2u * n;
        lane->raw += n;
    }
    lane->symbols -= n;
}

/* Run the fast loop over `n` lanes for as many turns as all of them can make before one fills its scratch or comes to
 * its end, and give what they decoded to their outputs. false: no lane moved, or there are bits that are no code. */
K3HUF_INLINE bool fast_round(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *const *lane,
                             const uint32_t n) {
    struct fast_lane fast[K3HUF_LANES];
    bool good = true;
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (lane[i]->coded_size < LOAD_BYTES) {
            return false;
        }
        fast[i].window = fill_window(lane[i]->coded, lane[i]->bit);
        fast[i].coded = lane[i]->coded;
        fast[i].coded_end = lane[i]->coded + lane[i]->coded_size;
        fast[i].begin = scratch + i * SCRATCH_BYTES;
        fast[i].out = fast[i].begin;
        fast[i].out_end = fast[i].begin + k3huf_least(lane[i]->symbols, SCRATCH_BYTES - STORE_SLACK);
    }
    while (good) {
        size_t turns = SIZE_MAX;
        for (uint32_t i = 0; i < n; i++) {
            turns = k3huf_least(
                turns, turns_for((size_t)(fast[i].coded_end - fast[i].coded), (size_t)(fast[i].out_end - fast[i].out)));
        }
        if (turns < LEAST_TURNS) {
            break;
        }
        good = fast_loop(table, fast, n, turns);
        sum += turns;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t used = k3huf_ctz64(fast[i].window);
        lane[i]->coded = fast[i].coded + (used >> 3);
        lane[i]->coded_size = (size_t)(fast[i].coded_end - lane[i]->coded);
        lane[i]->bit = used & 7u;
        emit(lane[i], fast[i].begin, (size_t)(fast[i].out - fast[i].begin));
    }
    return good && sum > 0;
}

/* The CRC of all lanes, four chains at once, while the bytes are in the first cache. `checked` is how far each lane's
 * output has gone into its CRC. */
static void crc_round(struct k3huf_lane *const *lane, const uint8_t **checked) {
    uint32_t crc[K3HUF_LANES];
    size_t behind = SIZE_MAX;
    for (uint32_t i = 0; i < K3HUF_LANES; i++) {
        behind = lane[i]->with_crc ? k3huf_least(behind, (size_t)(lane[i]->out - checked[i])) : 0;
        crc[i] = lane[i]->crc;
    }
    behind &= ~(size_t)7u;
    if (behind > 0) {
        k3huf_crc32c_lanes(crc, checked, behind, K3HUF_LANES);
        for (uint32_t i = 0; i < K3HUF_LANES; i++) {
            lane[i]->crc = crc[i];
            checked[i] += behind;
        }
    }
}

/* The next 64 bits of a lane, zeros behind the end of its span. */
static uint64_t careful_window(const struct k3huf_lane *lane) {
    uint64_t window = 0;
    for (size_t i = 0; i < k3huf_least(lane->coded_size, LOAD_BYTES); i++) {
        window |= (uint64_t)lane->coded[i] << (56u - 8u * i);
    }
    return window << lane->bit;
}

/* One look-up at a time, up to the lane's last symbol or the end of its coded span or of the scratch. */
static void careful_round(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *lane) {
    const size_t most = k3huf_least(lane->symbols, SCRATCH_BYTES - STORE_SLACK);
    size_t have = 0;
    lane->status = K3HUF_OK;
    while (have < most) {
        const uint64_t left = lane->coded_size == 0 ? 0 : (uint64_t)lane->coded_size * 8u - lane->bit;
        const uint64_t window = careful_window(lane);
        const uint64_t entry = table->entry[window >> (64u - K3HUF_TABLE_BITS)];
        uint32_t bits = k3huf_entry_bits(entry);
        uint32_t count = (uint32_t)k3huf_entry_count(entry);
        k3huf_store_le64(scratch + have, k3huf_entry_symbols(entry));
        if (count == 0 || bits > left || count > most - have) {
            /* A long code, or the last few: one code by itself. Zeros behind the end cannot turn the beginning of a
             * code into bits that are no code, because those are the highest numbers. */
            count = 1;
            bits = k3huf_canonical_code(&table->canonical, 1, (uint32_t)(window >> 52), scratch + have);
            if (bits == 0 || bits > left) {
                lane->status = bits == 0 ? K3HUF_E_CODE_WORD : K3HUF_WAIT;
                break;
            }
        }
        have += count;
        bits += lane->bit;
        lane->coded += bits >> 3;
        lane->coded_size -= bits >> 3;
        lane->bit = bits & 7u;
    }
    emit(lane, scratch, have);
}

/* Run one lane by itself as far as it goes. */
static void alone(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *lane, const uint8_t *checked) {
    while (fast_round(table, scratch, &lane, 1)) {
    }
    do {
        careful_round(table, scratch, lane);
    } while (lane->symbols > 0 && lane->status == K3HUF_OK);
    if (lane->with_crc) {
        lane->crc = k3huf_crc32c(lane->crc, checked, (size_t)(lane->out - checked));
    }
}

void k3huf_lane_queue(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *first,
                      size_t stride, size_t n) {
    uint8_t *const scratch = (uint8_t *)workspace->scratch;
    struct k3huf_lane *lane[K3HUF_LANES];
    const uint8_t *checked[K3HUF_LANES];
    uint8_t *next = (uint8_t *)first;
    uint32_t active = 0;
    while (n > 0 || active > 0) {
        for (; active < K3HUF_LANES && n > 0; active++, n--, next += stride) {
            lane[active] = (struct k3huf_lane *)(void *)next;
            checked[active] = lane[active]->out;
        }
        if (active == K3HUF_LANES && fast_round(table, scratch, lane, K3HUF_LANES)) {
            crc_round(lane, checked);
            continue;
        }
        /* The lane nearest its end makes room, alone; so do all, one by one, where too few are left. */
        uint32_t nearest = 0;
        for (uint32_t i = 1; i < active; i++) {
            nearest = lane[i]->symbols < lane[nearest]->symbols ? i : nearest;
        }
        alone(table, scratch, lane[nearest], checked[nearest]);
        active--;
        lane[nearest] = lane[active];
        checked[nearest] = checked[active];
    }
}

void k3huf_lanes(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *lane,
                 size_t n) {
    k3huf_lane_queue(table, workspace, lane, sizeof *lane, n);
}
