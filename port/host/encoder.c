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
        if (codelen[symbol] > K3HUF_CODE_LENGTH_MAX) {
            return K3HUF_E_CODE_LENGTH;
        }
        encoder->word[symbol] = K3HUF_ENCODER_ABSENT;
    }
    for (uint32_t length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            if (codelen[symbol] == length) {
                encoder->word[symbol] = code++ << 8 | length;
            }
        }
        if (code > (uint32_t)1 << length) {
            return K3HUF_E_CODE_OVERFULL;
        }
        code <<= 1;
    }
    return K3HUF_OK;
}

/* ------------------------------------------------------------------------------------------------- stripe ---- */

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

size_t k3huf_stripe_bound(uint32_t raw_bytes, uint32_t block_log2) {
    size_t odd = k3huf_odd_bytes(raw_bytes);
    size_t index = block_log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, block_log2);
    return K3HUF_STRIPE_HEADER_BYTES + (odd * K3HUF_CODE_LENGTH_MAX + 7u) / 8u + k3huf_even_bytes(raw_bytes) + index +
           WRITER_SLACK;
}

enum k3huf_status k3huf_encode_stripe(const struct k3huf_encoder *encoder, uint32_t stripe, const uint8_t *raw,
                                      uint32_t raw_bytes, uint32_t block_log2, uint8_t *out, size_t capacity,
                                      size_t *size) {
    if (raw_bytes == 0 || raw_bytes > K3HUF_STRIPE_RAW_MAX ||
        (block_log2 != 0 && (block_log2 < K3HUF_BLOCK_LOG2_MIN || block_log2 > K3HUF_BLOCK_LOG2_MAX)) ||
        capacity < k3huf_stripe_bound(raw_bytes, block_log2)) {
        return K3HUF_E_ARGUMENT;
    }
    size_t odd = k3huf_odd_bytes(raw_bytes);
    size_t even = k3huf_even_bytes(raw_bytes);
    size_t index_bytes = block_log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, block_log2);
    size_t block_symbols = index_bytes == 0 ? odd : (size_t)1 << block_log2;

    /* Where the index goes is known only after the coded plane: it is built at the end of `out` and moved. */
    uint8_t *index = out + capacity - index_bytes;
    uint8_t *entry = index + K3HUF_INDEX_HEADER_BYTES;
    uint8_t *coded = out + K3HUF_STRIPE_HEADER_BYTES;
    struct writer writer = {coded, 0, 0, 0};
    for (size_t done = 0; done < odd;) {
        bool last = odd - done <= block_symbols;
        size_t now = last ? odd - done : block_symbols;
        if (index_bytes != 0) {
            size_t block_bytes = last ? raw_bytes - 2 * done : 2 * now;
            store32(entry, (uint32_t)(writer.next - coded) * 8u + writer.bits);
            store32(entry + 4, k3huf_crc32c(0, raw + 2 * done, block_bytes));
            entry += K3HUF_INDEX_ENTRY_BYTES;
        }
        put_symbols(&writer, encoder->word, raw + 2 * done, now);
        done += now;
    }
    if (writer.seen >> 31 != 0) {
        return K3HUF_E_CODE_WORD;
    }
    /* The bits after the last code are 0 already: put() shifts zeros in behind them. */
    uint8_t *raw_plane = writer.next + (writer.bits != 0);
    for (size_t i = 0; i < even; i++) {
        raw_plane[i] = raw[2 * i];
    }
    uint8_t *filler = raw_plane + even;
    if (index_bytes != 0) {
        memmove(filler, index, index_bytes);
        k3huf_index_seal(filler, raw_bytes, block_log2);
    }
    struct k3huf_stripe_header header = {raw_bytes, (uint32_t)(raw_plane - coded), (uint32_t)index_bytes};
    k3huf_stripe_header_write(&header, stripe, out);
    *size = (size_t)(filler + index_bytes - out);
    return K3HUF_OK;
}
