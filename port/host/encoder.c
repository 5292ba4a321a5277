/* encoder.c - histogram, canonical codes and the coded plane (encoder.h). No allocation, no I/O.
 *
 * The two loops that see every byte are k3huf_histogram_odd() and put_symbols(). The rest is once a block or less.
 */
#include "encoder.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------- histogram ---- */

/* Weights have a few symbols that make up most of the plane. With one table each count would wait for the store of
 * the one before it; neighbours therefore count in tables of their own. */
#define HISTOGRAM_TABLES 8u

void k3huf_histogram_odd(uint64_t histogram[K3HUF_SYMBOLS], const uint8_t *data, size_t size) {
    size_t symbols = size / 2;
    while (symbols > 0) {
        uint32_t count[HISTOGRAM_TABLES][K3HUF_SYMBOLS] = {{0}};
        size_t now = symbols < UINT32_MAX ? symbols : UINT32_MAX; /* so that no 32-bit count overflows */
        size_t i = 0;
        for (; now - i >= HISTOGRAM_TABLES; i += HISTOGRAM_TABLES) {
            for (unsigned t = 0; t < HISTOGRAM_TABLES; t++) {
                count[t][data[2 * (i + t) + 1]]++;
            }
        }
        for (; i < now; i++) {
            count[0][data[2 * i + 1]]++;
        }
        for (unsigned t = 0; t < HISTOGRAM_TABLES; t++) {
            for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
                histogram[symbol] += count[t][symbol];
            }
        }
        data += 2 * now;
        symbols -= now;
    }
}

/* -------------------------------------------------------------------------------------------------- codes ---- */

enum k3huf_status k3huf_encoder_init(struct k3huf_encoder *encoder, const uint8_t codelen[K3HUF_SYMBOLS]) {
    uint32_t code = 0;
    memcpy(encoder->codelen, codelen, K3HUF_SYMBOLS);
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        if (codelen[symbol] > K3HUF_CODE_LENGTH_MAX) { return K3HUF_E_CODE_LENGTH; }
        encoder->word[symbol] = K3HUF_ENCODER_ABSENT;
    }
    for (uint32_t length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            if (codelen[symbol] == length) { encoder->word[symbol] = code++ << 8 | length; }
        }
        if (code > (uint32_t)1 << length) { return K3HUF_E_CODE_OVERFULL; }
        code <<= 1;
    }
    return K3HUF_OK;
}

/* -------------------------------------------------------------------------------------------------- parts ---- */

#define WRITER_SLACK 8u /* put() stores 8 bytes at a time and may reach this far past the plane's end */

/* A position in the coded plane. The low `bits` bits of `window` are codes not yet stored for good; what is above
 * them is old and of no use. Between calls bits is below 8. */
struct writer {
    uint8_t *next;
    uint64_t window;
    uint32_t bits;
    uint32_t seen; /* all words used, ored: the sign of a symbol without a code stays in it */
};

static void put(struct writer *writer, uint64_t code, uint32_t length) {
    uint64_t window = writer->window << length | code;
    uint32_t bits = writer->bits + length;
    uint64_t aligned = window << (64u - bits);
    for (unsigned i = 0; i < 8; i++) {
        writer->next[i] = (uint8_t)(aligned >> (56u - 8u * i));
    }
    writer->next += bits / 8u;
    writer->bits = bits % 8u;
    writer->window = window;
}

/* The odd bytes of raw[0 ... 2 * symbols - 1]. Four codes are joined before they meet the window: 7 + 4 * 12 bits fit,
 * and only joining the four with what came before has to wait for it. */
static void put_symbols(struct writer *out, const uint32_t word[K3HUF_SYMBOLS], const uint8_t *raw, size_t symbols) {
    struct writer writer = *out; /* a local copy stays in registers although bytes are stored through a pointer */
    for (; symbols >= 4; symbols -= 4, raw += 8) {
        uint32_t a = word[raw[1]];
        uint32_t b = word[raw[3]];
        uint32_t c = word[raw[5]];
        uint32_t d = word[raw[7]];
        uint64_t ab = (uint64_t)(a >> 8) << (b & 15u) | b >> 8;
        uint64_t cd = (uint64_t)(c >> 8) << (d & 15u) | d >> 8;
        writer.seen |= a | b | c | d;
        put(&writer, ab << ((c + d) & 31u) | cd, (a + b + c + d) & 63u);
    }
    for (; symbols > 0; symbols--, raw += 2) {
        uint32_t a = word[raw[1]];
        writer.seen |= a;
        put(&writer, a >> 8, a & 15u);
    }
    *out = writer;
}

static void store32(uint8_t *at, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8u * i));
    }
}

static uint32_t load32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void even_bytes(uint8_t *even, const uint8_t *raw, size_t raw_bytes) {
    for (size_t i = 0; i < raw_bytes / 2; i++) {
        even[i] = raw[2 * i];
    }
    if (raw_bytes % 2 != 0) { even[raw_bytes / 2] = raw[raw_bytes - 1]; }
}

/* The CRCs of all entries of a part: of blocks of block_bytes bytes, as many side by side as lanes, and of a last one
 * that may be shorter, or longer by an unpaired byte. */
static void put_crcs(uint8_t *entry, const uint8_t *raw, size_t raw_bytes, size_t block_bytes) {
    while (raw_bytes >= 2 * block_bytes) {
        const uint8_t *spans[K3HUF_LANES];
        uint32_t crcs[K3HUF_LANES] = {0};
        const size_t whole = raw_bytes / block_bytes - 1u; /* without the last one */
        const uint32_t n = whole < K3HUF_LANES ? (uint32_t)whole : K3HUF_LANES;
        for (uint32_t i = 0; i < n; i++) {
            spans[i] = raw + i * block_bytes;
        }
        k3huf_crc32c_lanes(crcs, spans, block_bytes, n);
        for (uint32_t i = 0; i < n; i++, entry += K3HUF_INDEX_ENTRY_BYTES) {
            store32(entry + 4, crcs[i]);
        }
        raw += n * block_bytes;
        raw_bytes -= n * block_bytes;
    }
    const size_t first = raw_bytes > block_bytes + 1u ? block_bytes : raw_bytes;
    store32(entry + 4, k3huf_crc32c(0, raw, first));
    if (first < raw_bytes) {
        store32(entry + K3HUF_INDEX_ENTRY_BYTES + 4, k3huf_crc32c(0, raw + first, raw_bytes - first));
    }
}

size_t k3huf_coded_bound(uint32_t raw_bytes) {
    return ((size_t)k3huf_odd_bytes(raw_bytes) * K3HUF_CODE_LENGTH_MAX + 7u) / 8u + WRITER_SLACK;
}

enum k3huf_status k3huf_encode_part(const struct k3huf_encoder *encoder, const uint8_t *raw, uint32_t raw_bytes,
                                    uint32_t block_log2, struct k3huf_coded_part *part) {
    const size_t odd = k3huf_odd_bytes(raw_bytes);
    /* Without an index, still in pieces: the even bytes are taken while the first cache has them. */
    const size_t block_symbols = (size_t)1 << (block_log2 != 0 ? block_log2 : K3HUF_BLOCK_LOG2_DEFAULT);
    uint8_t *entry = odd == 0 ? NULL : part->entries;
    struct writer writer = {part->coded, 0, 0, 0};
    if (entry != NULL) { put_crcs(entry, raw, raw_bytes, 2 * block_symbols); }
    for (size_t done = 0; 2 * done < raw_bytes;) {
        const bool last = odd - done <= block_symbols;
        const size_t symbols = last ? odd - done : block_symbols;
        const size_t block_bytes = last ? raw_bytes - 2 * done : 2 * symbols;
        if (entry != NULL) {
            store32(entry, (uint32_t)(writer.next - part->coded) * 8u + writer.bits);
            entry += K3HUF_INDEX_ENTRY_BYTES;
        }
        put_symbols(&writer, encoder->word, raw + 2 * done, symbols);
        even_bytes(part->even + done, raw + 2 * done, block_bytes);
        if (last) { break; }
        done += symbols;
    }
    part->bits = (uint32_t)(writer.next - part->coded) * 8u + writer.bits;
    return writer.seen >> 31 != 0 ? K3HUF_E_CODE_WORD : K3HUF_OK;
}

/* ------------------------------------------------------------------------------------------------- joints ---- */

uint32_t k3huf_join_part(uint8_t *plane, uint32_t bits, const struct k3huf_coded_part *part) {
    const uint8_t *from = part->coded;
    uint8_t *to = plane + bits / 8u;
    const uint32_t shift = bits % 8u;
    const size_t size = ((size_t)part->bits + 7u) / 8u; /* bytes that hold the part's bits */
    if (size == 0) { return bits; }
    if (shift == 0) {
        memcpy(to, from, size);
        return bits + part->bits;
    }
    to[0] = (uint8_t)(to[0] | (uint32_t)from[0] >> shift); /* behind the bits in front */
    /* No byte waits for the one before, so that a compiler makes many at a time. */
    for (size_t i = 1; i < size; i++) {
        to[i] = (uint8_t)((uint32_t)from[i - 1u] << (8u - shift) | (uint32_t)from[i] >> shift);
    }
    if ((shift + part->bits + 7u) / 8u > size) { to[size] = (uint8_t)((uint32_t)from[size - 1u] << (8u - shift)); }
    return bits + part->bits;
}

void k3huf_join_entries(uint8_t *entries, uint32_t blocks, uint32_t bits) {
    for (size_t i = 0; i < (size_t)blocks * K3HUF_INDEX_ENTRY_BYTES; i += K3HUF_INDEX_ENTRY_BYTES) {
        store32(entries + i, load32(entries + i) + bits);
    }
}

/* ------------------------------------------------------------------------------------------- whole stripes ---- */

size_t k3huf_stripe_bound(uint32_t raw_bytes, uint32_t block_log2) {
    size_t index = block_log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, block_log2);
    return K3HUF_STRIPE_HEADER_BYTES + k3huf_coded_bound(raw_bytes) + k3huf_even_bytes(raw_bytes) + index;
}

enum k3huf_status k3huf_encode_stripe(const struct k3huf_encoder *encoder, uint32_t stripe, const uint8_t *raw,
                                      uint32_t raw_bytes, uint32_t block_log2, uint8_t *out, size_t capacity,
                                      size_t *size) {
    if (raw_bytes == 0 || raw_bytes > K3HUF_STRIPE_RAW_MAX ||
        (block_log2 != 0 && (block_log2 < K3HUF_BLOCK_LOG2_MIN || block_log2 > K3HUF_BLOCK_LOG2_MAX)) ||
        capacity < k3huf_stripe_bound(raw_bytes, block_log2)) {
        return K3HUF_E_ARGUMENT;
    }
    const size_t index_bytes = block_log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, block_log2);
    const size_t even = k3huf_even_bytes(raw_bytes);

    /* Where the raw plane and the index go is known only after the coded plane: they are built at the end of `out` and
     * moved. */
    uint8_t *const coded = out + K3HUF_STRIPE_HEADER_BYTES;
    uint8_t *const tail = out + capacity - even - index_bytes;
    uint8_t *const index = tail + even;
    struct k3huf_coded_part part = {
        .coded = coded, .even = tail, .entries = index_bytes == 0 ? NULL : index + K3HUF_INDEX_HEADER_BYTES};
    const enum k3huf_status status = k3huf_encode_part(encoder, raw, raw_bytes, block_log2, &part);
    if (status != K3HUF_OK) { return status; }
    if (index_bytes != 0) { k3huf_index_seal(index, raw_bytes, block_log2); }
    const size_t huf_bytes = ((size_t)part.bits + 7u) / 8u;
    memmove(coded + huf_bytes, tail, even + index_bytes);
    const struct k3huf_stripe_header header = {raw_bytes, (uint32_t)huf_bytes, (uint32_t)index_bytes};
    k3huf_stripe_header_write(&header, stripe, out);
    *size = K3HUF_STRIPE_HEADER_BYTES + huf_bytes + even + index_bytes;
    return K3HUF_OK;
}
