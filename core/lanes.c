/* lanes.c - the hot loop: several bit positions decoded side by side on one core. May not know about headers, stripes,
 * the index or blocks.
 *
 * One look-up costs a chain of shift, load, shift: the next look-up of the same lane has to wait for it. Lanes do not
 * wait for each other, so six of them fill the time. One lane's state in the loop is three words:
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
 *   - A look-up gives as many symbols as the fullest entry of the table holds, at most, and six whatever the code. A
 *     long code is one symbol and takes the place of a look-up. The store of a look-up is 8 bytes wide.
 *
 * From these, `turns_within` computes how many turns a lane can make without any test: that is the margin.
 *
 * Symbols go to a scratch area that stays in the first cache; once it is full they are merged with the raw plane into
 * the output. That would be a burst of misses with nothing to do meanwhile, so while the loop decodes it also asks for
 * the lines that the merge will touch, one a turn, and for the coded bytes some turns ahead.
 *
 * The last symbols of a span, too few for a turn, are decoded one look-up at a time by `careful_round`, which counts
 * every bit and symbol and never reads behind the end.
 */
#include "bytes.h"
#include "plane.h"
#include "table.h"

#define LOOKUPS 5u                             /* look-ups a turn */
#define TURN_BITS (LOOKUPS * K3HUF_TABLE_BITS) /* at most, a turn without a long code */
#define TURN_BYTES 7u                          /* coded bytes at most, a turn */
#define LOAD_BYTES 8u                          /* read at once */
#define STORE_SLACK 8u                         /* bytes written behind the last symbol, at most */
#define LEAST_TURNS 3u /* with fewer left, a lane finishes alone rather than hold up the others in short rounds */

#define CODED_AHEAD 256u /* bytes from the coded byte in use to the one asked for */

/* One lane's scratch. The lanes' areas must not lie a multiple of 4 KiB apart, or stores of one lane hold up those of
 * another that share the low 12 address bits. */
#define SCRATCH_BYTES (K3HUF_WORKSPACE_BYTES / K3HUF_LANES)
_Static_assert(K3HUF_WORKSPACE_BYTES % (8u * K3HUF_LANES) == 0, "each lane has the same, aligned scratch");
_Static_assert(SCRATCH_BYTES % 1024u != 0 && SCRATCH_BYTES > 2048u, "no 4 KiB aliasing");
_Static_assert(TURN_BITS <= 56u && TURN_BITS - K3HUF_TABLE_BITS + K3HUF_CODE_LENGTH_MAX <= 56u,
               "a refill holds a turn");

struct fast_lane {
    uint64_t window;
    const uint8_t *coded;
    uint8_t *out;
    const uint8_t *coded_end; /* of the lane's span */
    uint8_t *begin;           /* of its scratch */
    uint8_t *out_end;         /* where its scratch is full, or its last symbol out */
    const uint8_t *ahead;     /* memory that will be needed when the scratch is emptied */
};

/* Turns that `coded_size` coded bytes and room for `symbols` allow, whatever the bits say. */
K3HUF_INLINE size_t turns_within(const struct k3huf_table *table, size_t coded_size, size_t symbols) {
    if (coded_size < LOAD_BYTES) { return 0; }
    return k3huf_least((coded_size - LOAD_BYTES) / TURN_BYTES, symbols / (LOOKUPS * table->most));
}
static size_t turns_for(const struct k3huf_table *table, const struct k3huf_lane *lane) {
    return turns_within(table, lane->coded_size, lane->symbols);
}

K3HUF_INLINE uint64_t fill_window(const uint8_t *coded, uint64_t bit) { return (k3huf_load_be64(coded) | 1u) << bit; }

/* `n` lanes for `turns` turns, one at least; n is a constant where this is inlined. false: stopped early, in front of
 * bits that are no code. A lane's state is whole between any two look-ups, so stopping needs no care. */
K3HUF_INLINE bool fast_loop(const struct k3huf_table *table, struct fast_lane *fast, const uint32_t n, size_t turns) {
    uint64_t window[K3HUF_LANES];
    const uint8_t *coded[K3HUF_LANES];
    uint8_t *out[K3HUF_LANES];
    uint32_t length = K3HUF_CODE_LENGTH_MAX;
    size_t ahead = 0;
    K3HUF_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        window[i] = fast[i].window;
        coded[i] = fast[i].coded;
        out[i] = fast[i].out;
    }
    do {
        K3HUF_UNROLL
        for (uint32_t step = 0; step < LOOKUPS; step++) {
            K3HUF_UNROLL
            for (uint32_t i = 0; i < n; i++) {
                uint64_t next = window[i] >> (64u - K3HUF_TABLE_BITS);
                K3HUF_AS_IS(next);
                const uint64_t entry = table->entry[next];
                k3huf_store_le64(out[i], k3huf_entry_symbols(entry));
                window[i] <<= k3huf_entry_bits(entry);
                out[i] += k3huf_entry_count(entry);
                K3HUF_AS_IS(out[i]);
                if (step == LOOKUPS - 1u && K3HUF_UNLIKELY(entry == 0)) {
                    length = k3huf_long_code(table, (uint32_t)(window[i] >> 52), out[i]);
                    if (length == 0) { goto stop; }
                    out[i] += 1;
                    window[i] <<= length;
                }
            }
        }
        K3HUF_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t used = k3huf_ctz64(window[i]);
            coded[i] += used >> 3;
            window[i] = fill_window(coded[i], used & 7u);
            k3huf_prefetch(coded[i], CODED_AHEAD);
            k3huf_prefetch(fast[i].ahead, ahead);
        }
        ahead += K3HUF_LINE_BYTES;
    } while (--turns > 0);
stop:
    K3HUF_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        fast[i].window = window[i];
        fast[i].coded = coded[i];
        fast[i].out = out[i];
    }
    return length != 0;
}

/* The loop in its two widths. */
static bool all_lanes(const struct k3huf_table *table, struct fast_lane *fast, size_t turns) {
    return fast_loop(table, fast, K3HUF_LANES, turns);
}
static bool one_lane(const struct k3huf_table *table, struct fast_lane *fast, size_t turns) {
    return fast_loop(table, fast, 1, turns);
}

/* Give `n` decoded symbols to a lane's output. */
static void emit(struct k3huf_lane *lane, const uint8_t *symbols, size_t n) {
    if (n == 0) { return; }
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

/* Run the fast loop over the first `n` lanes for as many turns as all of them can make before one fills its scratch or
 * comes to its end, and give what they decoded to their outputs. One goes alone; where there are more but not all, the
 * rest repeat the first one into scratch that nobody reads: that costs nothing that a narrower loop would save.
 * false: no lane moved, or there are bits that are no code. */
static bool fast_round(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *const *lane, uint32_t n) {
    const uint32_t width = n == 1u ? 1u : K3HUF_LANES;
    struct fast_lane fast[K3HUF_LANES];
    bool good = true;
    size_t moved = 0;
    for (uint32_t i = 0; i < width; i++) {
        const struct k3huf_lane *const from = lane[i < n ? i : 0];
        if (from->coded_size < LOAD_BYTES) { return false; }
        fast[i].window = fill_window(from->coded, from->bit);
        fast[i].coded = from->coded;
        fast[i].coded_end = from->coded + from->coded_size;
        fast[i].begin = scratch + i * SCRATCH_BYTES;
        fast[i].out = fast[i].begin;
        fast[i].out_end = fast[i].begin + k3huf_least(from->symbols, SCRATCH_BYTES - STORE_SLACK);
        fast[i].ahead = from->out;
    }
    while (good) {
        size_t turns = SIZE_MAX;
        for (uint32_t i = 0; i < width; i++) { /* repeated lanes too: what they read may change behind our back */
            turns = k3huf_least(turns, turns_within(table, (size_t)(fast[i].coded_end - fast[i].coded),
                                                    (size_t)(fast[i].out_end - fast[i].out)));
        }
        if (turns < LEAST_TURNS) { break; }
        good = n == 1u ? one_lane(table, fast, turns) : all_lanes(table, fast, turns);
        moved += turns;
        for (uint32_t i = 0; i < n; i++) {
            fast[i].ahead = lane[i]->raw;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t used = k3huf_ctz64(fast[i].window);
        lane[i]->coded = fast[i].coded + (used >> 3);
        lane[i]->coded_size = (size_t)(fast[i].coded_end - lane[i]->coded);
        lane[i]->bit = used & 7u;
        emit(lane[i], fast[i].begin, (size_t)(fast[i].out - fast[i].begin));
    }
    return good && moved > 0;
}

/* The CRC of the first `n` lanes, side by side while the bytes are in the first cache. `checked` is how far each lane's
 * output has gone into its CRC. */
static void crc_round(struct k3huf_lane *const *lane, uint32_t n, const uint8_t **checked) {
    uint32_t crc[K3HUF_LANES];
    size_t behind = SIZE_MAX;
    for (uint32_t i = 0; i < n; i++) {
        behind = lane[i]->with_crc ? k3huf_least(behind, (size_t)(lane[i]->out - checked[i])) : 0;
        crc[i] = lane[i]->crc;
    }
    behind &= ~(size_t)7u;
    if (behind > 0) {
        k3huf_crc32c_lanes(crc, checked, behind, n);
        for (uint32_t i = 0; i < n; i++) {
            lane[i]->crc = crc[i];
            checked[i] += behind;
        }
    }
}

/* The next 64 bits of a lane, zeros behind the end of its span. */
K3HUF_INLINE uint64_t careful_window(const struct k3huf_lane *lane) {
    uint64_t window = 0;
    if (lane->coded_size >= LOAD_BYTES) {
        window = k3huf_load_be64(lane->coded);
    } else {
        for (size_t i = 0; i < lane->coded_size; i++) {
            window |= (uint64_t)lane->coded[i] << (56u - 8u * i);
        }
    }
    return window << lane->bit;
}

/* One look-up at a time, up to the lane's last symbol or the end of its coded span or of the scratch. */
K3HUF_COLD void careful_round(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *lane) {
    const size_t most = k3huf_least(lane->symbols, SCRATCH_BYTES - STORE_SLACK);
    size_t have = 0;
    lane->status = K3HUF_OK;
    while (have < most) {
        const uint64_t left = lane->coded_size == 0 ? 0 : (uint64_t)lane->coded_size * 8u - lane->bit;
        const uint64_t window = careful_window(lane);
        const uint64_t entry = table->entry[window >> (64u - K3HUF_TABLE_BITS)];
        uint32_t bits = k3huf_entry_bits(entry);
        size_t count = (size_t)k3huf_entry_count(entry);
        k3huf_store_le64(scratch + have, k3huf_entry_symbols(entry));
        if (count == 0) { /* zeros behind the end never turn a code's beginning into no code: those are the highest */
            bits = k3huf_long_code(table, (uint32_t)(window >> 52), scratch + have);
            if (bits == 0) {
                lane->status = K3HUF_E_CODE_WORD;
                break;
            }
            count = 1;
        }
        if (bits > left || count > most - have) { /* the last few: as many of the entry's codes as there are */
            const size_t whole = k3huf_least(count, most - have);
            count = 0;
            bits = 0;
            while (count < whole && bits + table->length[scratch[have + count]] <= left) {
                bits += table->length[scratch[have + count]];
                count++;
            }
            if (count == 0) {
                lane->status = K3HUF_WAIT;
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
K3HUF_COLD void alone(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane *lane,
                      const uint8_t *checked) {
    while (fast_round(table, scratch, &lane, 1)) {}
    do {
        careful_round(table, scratch, lane);
    } while (lane->symbols > 0 && lane->status == K3HUF_OK);
    if (lane->with_crc && lane->out != checked) {
        lane->crc = k3huf_crc32c(lane->crc, checked, (size_t)(lane->out - checked));
    }
}

/* Run `n` lanes, K3HUF_LANES at most, to their ends. */
static void run_group(const struct k3huf_table *table, uint8_t *scratch, struct k3huf_lane **lane, uint32_t n) {
    const uint8_t *checked[K3HUF_LANES];
    for (uint32_t i = 0; i < n; i++) {
        checked[i] = lane[i]->out;
    }
    while (n > 0) {
        if (n > 1u && fast_round(table, scratch, lane, n)) {
            crc_round(lane, n, checked);
            continue;
        }
        /* The lane nearest its end goes on alone, and out of the way. */
        uint32_t nearest = 0;
        for (uint32_t i = 1; i < n; i++) {
            nearest = turns_for(table, lane[i]) < turns_for(table, lane[nearest]) ? i : nearest;
        }
        alone(table, scratch, lane[nearest], checked[nearest]);
        n--;
        lane[nearest] = lane[n];
        checked[nearest] = checked[n];
    }
}

void k3huf_lane_groups(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *first,
                       size_t stride, size_t n) {
    uint8_t *next = (uint8_t *)first;
    while (n > 0) {
        struct k3huf_lane *lane[K3HUF_LANES];
        const uint32_t group = (uint32_t)k3huf_least(n, K3HUF_LANES);
        for (uint32_t i = 0; i < group; i++, next += stride) {
            lane[i] = (struct k3huf_lane *)(void *)next;
        }
        run_group(table, (uint8_t *)workspace->scratch, lane, group);
        n -= group;
    }
}
