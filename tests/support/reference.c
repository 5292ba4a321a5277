/* reference.c - decoder and encoder of runs straight from FORMAT.md; see reference.h for what it may not share. */
#include "reference.h"

#include <stdbool.h>
#include <string.h>

uint32_t k3huf_reference_crc32c(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) {
            crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        }
    }
    return ~crc;
}

static uint64_t little(const uint8_t *bytes, unsigned n) {
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value |= (uint64_t)bytes[i] << (8u * i);
    }
    return value;
}

static void put_little(uint8_t *bytes, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

/* ---- the code ---- */

const char *k3huf_reference_code_build(struct k3huf_reference_code *code, const uint8_t codelen[256]) {
    memset(code, 0, sizeof *code);
    uint32_t space = 0; /* in units of 2^-12 */
    unsigned n = 0;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        if (codelen[symbol] > 12) { return "a code length over 12"; }
        code->length[symbol] = codelen[symbol];
        if (codelen[symbol] > 0) { space += 4096u >> codelen[symbol]; }
        if (codelen[symbol] > code->longest) { code->longest = codelen[symbol]; }
    }
    if (space > 4096) { return "an over-full code space"; }
    uint32_t next = 0; /* first[l] */
    for (unsigned length = 1; length <= 12; length++) {
        code->first[length] = next;
        code->before[length] = n;
        for (unsigned symbol = 0; symbol < 256; symbol++) {
            if (codelen[symbol] == length) {
                code->word[symbol] = next + code->count[length];
                code->count[length]++;
                code->symbols[n++] = (uint8_t)symbol;
            }
        }
        next = (next + code->count[length]) << 1;
    }
    return NULL;
}

/* Whether some code longer than `length` bits starts with the `length` bits of `word`. */
static bool begins_a_code(const struct k3huf_reference_code *code, uint32_t word, unsigned length) {
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        if (code->length[symbol] > length && code->word[symbol] >> (code->length[symbol] - length) == word) {
            return true;
        }
    }
    return false;
}

int k3huf_reference_symbol(const struct k3huf_reference_code *code, const uint8_t *coded, uint64_t bits,
                           uint64_t *bit) {
    uint32_t word = 0;
    uint64_t at = *bit;
    for (unsigned length = 1; length <= code->longest; length++, at++) {
        if (at >= bits) {
            return begins_a_code(code, word, length - 1) ? K3HUF_REFERENCE_NO_BITS : K3HUF_REFERENCE_NO_CODE;
        }
        word = (word << 1) | ((coded[at / 8] >> (7 - at % 8)) & 1u);
        if (word >= code->first[length] && word - code->first[length] < code->count[length]) {
            *bit = at + 1;
            return code->symbols[code->before[length] + word - code->first[length]];
        }
    }
    return K3HUF_REFERENCE_NO_CODE;
}

int k3huf_reference_put(const struct k3huf_reference_code *code, const uint8_t *symbols, size_t n, uint8_t *coded,
                        size_t capacity, uint64_t *bit) {
    for (size_t i = 0; i < n; i++) {
        unsigned length = code->length[symbols[i]];
        if (length == 0) { return false; }
        for (unsigned k = length; k-- > 0; ++*bit) {
            if (*bit / 8 >= capacity) { return false; }
            if (((code->word[symbols[i]] >> k) & 1u) != 0) {
                coded[*bit / 8] = (uint8_t)(coded[*bit / 8] | (0x80u >> (*bit % 8)));
            }
        }
    }
    return true;
}

/* ---- decoding ---- */

/* What is known of one stripe while its symbols are decoded. */
struct stripe {
    uint64_t raw, odd, even, huf, pad;
    const uint8_t *coded, *plane, *filler;
    bool indexed;
    uint64_t block_symbols, nblocks;
    const uint8_t *entries;
};

static const char *find_index(struct stripe *stripe) {
    stripe->indexed = false;
    /* A stripe without odd bytes carries no index; whatever its filler holds is plain filler. */
    if (stripe->odd == 0 || stripe->pad < 4 || memcmp(stripe->filler, "K3IX", 4) != 0) { return NULL; }
    if (stripe->pad < 16) { return "an index header cut short by the filler's end"; }
    uint8_t header[16];
    memcpy(header, stripe->filler, 16);
    if (little(header + 4, 2) != 1) { return "an unknown index version"; }
    if (header[6] < 12 || header[6] > 20) { return "block_log2 outside 12 ... 20"; }
    if (header[7] != 0) { return "index flags"; }
    stripe->block_symbols = (uint64_t)1 << header[6];
    stripe->nblocks = (stripe->odd + stripe->block_symbols - 1) / stripe->block_symbols;
    if (little(header + 8, 4) != stripe->nblocks) { return "a block count that does not fit the stripe"; }
    if (stripe->pad < 16 + 8 * stripe->nblocks) { return "an index longer than the filler"; }
    memset(header + 12, 0, 4);
    uint32_t crc = k3huf_reference_crc32c(0, header, 16);
    crc = k3huf_reference_crc32c(crc, stripe->filler + 16, (size_t)(8 * stripe->nblocks));
    if (crc != little(stripe->filler + 12, 4)) { return "a wrong CRC of the index"; }
    stripe->entries = stripe->filler + 16;
    stripe->indexed = true;
    if (little(stripe->entries, 4) != 0) { return "a first offset that is not 0"; }
    for (uint64_t b = 1; b < stripe->nblocks; b++) {
        if (little(stripe->entries + 8 * b, 4) < little(stripe->entries + 8 * (b - 1), 4)) {
            return "an offset that goes back";
        }
    }
    return NULL;
}

static const char *decode_stripe(const struct k3huf_reference_code *code, struct stripe *stripe, uint8_t *out) {
    const char *wrong = find_index(stripe);
    if (wrong != NULL) { return wrong; }
    uint64_t bit = 0;
    for (uint64_t i = 0; i < stripe->odd; i++) {
        if (stripe->indexed && i % stripe->block_symbols == 0 &&
            little(stripe->entries + 8 * (i / stripe->block_symbols), 4) != bit) {
            return "a block that does not begin at its offset";
        }
        int symbol = k3huf_reference_symbol(code, stripe->coded, stripe->huf * 8, &bit);
        if (symbol == K3HUF_REFERENCE_NO_CODE) { return "bits that are no code"; }
        if (symbol == K3HUF_REFERENCE_NO_BITS) { return "a coded plane that ends before the last symbol"; }
        out[2 * i + 1] = (uint8_t)symbol;
    }
    if (stripe->huf != (bit + 7) / 8) { return "bytes after the last symbol"; }
    for (; bit < stripe->huf * 8; bit++) {
        if (((stripe->coded[bit / 8] >> (7 - bit % 8)) & 1u) != 0) {
            return "bits that are not 0 after the last symbol";
        }
    }
    for (uint64_t i = 0; i < stripe->even; i++) {
        out[2 * i] = stripe->plane[i];
    }
    for (uint64_t b = 0; stripe->indexed && b < stripe->nblocks; b++) {
        uint64_t begin = 2 * b * stripe->block_symbols;
        uint64_t end = b + 1 == stripe->nblocks ? stripe->raw : begin + 2 * stripe->block_symbols;
        if (k3huf_reference_crc32c(0, out + begin, (size_t)(end - begin)) != little(stripe->entries + 8 * b + 4, 4)) {
            return "a wrong CRC of a block";
        }
    }
    return NULL;
}

const char *k3huf_reference_decode(const uint8_t *run, size_t size, uint8_t *out, size_t out_size, size_t *raw_bytes,
                                   size_t *used) {
    *raw_bytes = 0;
    *used = 0;
    if (size < 288) { return "a run shorter than its header"; }
    if (memcmp(run, "KHUF", 4) != 0) { return "not a run"; }
    if (little(run + 4, 4) != 1) { return "an unknown version"; }
    uint64_t total = little(run + 8, 8);
    uint64_t nstripes = little(run + 16, 4);
    struct k3huf_reference_code code;
    const char *wrong = k3huf_reference_code_build(&code, run + 20);
    if (wrong != NULL) { return wrong; }
    if (total > out_size) { return "an output larger than the memory for it"; }
    uint64_t at = 288, done = 0;
    for (uint64_t i = 0; i < nstripes; i++) {
        if (size - at < 16) { return "an end inside a stripe header"; }
        const uint8_t *header = run + at;
        struct stripe stripe = {
            .raw = little(header + 4, 4), .huf = little(header + 8, 4), .pad = little(header + 12, 4)};
        if (little(header, 4) != (0x4655484Bu ^ (uint32_t)i)) { return "a wrong stripe magic"; }
        if (stripe.raw == 0 || stripe.raw > 67108864) { return "a stripe size outside 1 ... 64 MiB"; }
        if (stripe.raw > total - done) { return "stripes larger than the run"; }
        stripe.odd = stripe.raw / 2;
        stripe.even = stripe.raw - stripe.odd;
        if (stripe.odd > 0 && code.longest == 0) { return "an empty code"; }
        at += 16;
        if (size - at < stripe.huf + stripe.even + stripe.pad) { return "an end inside a stripe"; }
        stripe.coded = run + at;
        stripe.plane = stripe.coded + stripe.huf;
        stripe.filler = stripe.plane + stripe.even;
        wrong = decode_stripe(&code, &stripe, out + done);
        if (wrong != NULL) { return wrong; }
        at += stripe.huf + stripe.even + stripe.pad;
        done += stripe.raw;
    }
    if (done != total) { return "stripes smaller than the run"; }
    *raw_bytes = (size_t)done;
    *used = (size_t)at;
    return NULL;
}

/* ---- encoding ---- */

static uint64_t encode_stripe(const struct k3huf_reference_code *code, const struct k3huf_reference_plan *plan,
                              uint32_t number, const uint8_t *raw, uint32_t raw_bytes, uint8_t *out,
                              uint64_t capacity) {
    uint32_t odd = raw_bytes / 2, even = raw_bytes - odd;
    uint32_t block_symbols = plan->block_log2 == 0 ? UINT32_MAX : (uint32_t)1 << plan->block_log2;
    uint32_t nblocks = plan->block_log2 == 0 || odd == 0 ? 0 : (odd - 1) / block_symbols + 1;
    uint32_t index = nblocks == 0 ? 0 : 16 + 8 * nblocks;
    uint64_t fixed = 16 + (uint64_t)even + index + plan->filler;
    if (capacity < fixed) { return 0; }

    uint8_t *coded = out + 16;
    memset(out, 0, (size_t)capacity);
    uint64_t bit = 0;
    for (uint32_t i = 0; i < odd; i++) {
        if (!k3huf_reference_put(code, raw + 2 * (size_t)i + 1, 1, coded, (size_t)(capacity - fixed), &bit)) {
            return 0;
        }
    }
    uint32_t huf = (uint32_t)((bit + 7) / 8);
    put_little(out, 4, 0x4655484Bu ^ number);
    put_little(out + 4, 4, raw_bytes);
    put_little(out + 8, 4, huf);
    put_little(out + 12, 4, (uint64_t)index + plan->filler);

    uint8_t *plane = coded + huf;
    for (uint32_t i = 0; i < even; i++) {
        plane[i] = raw[2 * (size_t)i];
    }

    uint8_t *filler = plane + even;
    if (nblocks > 0) {
        memcpy(filler, "K3IX", 4);
        put_little(filler + 4, 2, 1);
        filler[6] = (uint8_t)plan->block_log2;
        put_little(filler + 8, 4, nblocks);
        bit = 0;
        for (uint32_t i = 0; i < odd; i++) {
            if (i % block_symbols == 0) { put_little(filler + 16 + 8 * (size_t)(i / block_symbols), 4, bit); }
            bit += code->length[raw[2 * (size_t)i + 1]];
        }
        for (uint32_t b = 0; b < nblocks; b++) {
            size_t begin = 2 * (size_t)b * block_symbols;
            size_t end = b + 1 == nblocks ? raw_bytes : begin + 2 * (size_t)block_symbols;
            put_little(filler + 16 + 8 * (size_t)b + 4, 4, k3huf_reference_crc32c(0, raw + begin, end - begin));
        }
        put_little(filler + 12, 4, k3huf_reference_crc32c(0, filler, index));
    }
    memset(filler + index, 0x5A, plan->filler);
    return fixed + huf;
}

size_t k3huf_reference_encode(const struct k3huf_reference_plan *plan, const uint8_t *raw, size_t raw_size,
                              uint8_t *run, size_t capacity) {
    struct k3huf_reference_code code;
    if (capacity < 288 || k3huf_reference_code_build(&code, plan->codelen) != NULL) { return 0; }
    uint64_t at = 288;
    uint32_t nstripes = 0;
    for (size_t done = 0; done < raw_size; nstripes++) {
        uint32_t raw_bytes = raw_size - done < plan->stripe_bytes ? (uint32_t)(raw_size - done) : plan->stripe_bytes;
        uint64_t size = encode_stripe(&code, plan, nstripes, raw + done, raw_bytes, run + at, capacity - at);
        if (size == 0) { return 0; }
        at += size;
        done += raw_bytes;
    }
    memset(run, 0, 288);
    memcpy(run, "KHUF", 4);
    put_little(run + 4, 4, 1);
    put_little(run + 8, 8, raw_size);
    put_little(run + 16, 4, nstripes);
    memcpy(run + 20, plan->codelen, 256);
    return (size_t)at;
}
