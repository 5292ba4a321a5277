/* samples.c - see samples.h. */
#include "samples.h"

#include <string.h>

void k3huf_random_code(struct k3huf_rng *rng, unsigned n, unsigned depth, uint8_t codelen[256]) {
    uint8_t leaf[256] = {0};
    unsigned leaves = 1;
    if (n < 2) { leaf[0] = 1; }
    while (leaves < n) {
        /* Split a leaf: the newest one for an unequal tree, any one for a bushy tree. */
        unsigned i = k3huf_rng_below(rng, 100) < depth ? leaves - 1 : k3huf_rng_below(rng, leaves);
        while (leaf[i] == 12) {
            i = (i + 1) % leaves;
        }
        leaf[i]++;
        leaf[leaves++] = leaf[i];
    }
    uint8_t order[256];
    for (unsigned i = 0; i < 256; i++) {
        order[i] = (uint8_t)i;
    }
    for (unsigned i = 255; i > 0; i--) {
        const unsigned j = k3huf_rng_below(rng, i + 1);
        const uint8_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    memset(codelen, 0, 256);
    for (unsigned i = 0; i < leaves; i++) {
        codelen[order[i]] = leaf[i];
    }
}

const char *k3huf_sample_code(unsigned which, uint8_t codelen[256]) {
    struct k3huf_rng rng = {which};
    memset(codelen, 0, 256);
    switch (which) {
    case 0: codelen[0x3F] = 1; return "one symbol, under-full";
    case 1: codelen[0x00] = codelen[0xFF] = 1; return "two symbols";
    case 2: memset(codelen, 8, 256); return "flat, 256 symbols";
    case 3: memset(codelen, 12, 256); return "256 symbols of 12 bits, under-full";
    case 4:
        for (unsigned i = 0; i < 12; i++) {
            codelen[100 + i] = (uint8_t)(i + 1);
        }
        codelen[112] = 12;
        return "lengths 1 to 12, full";
    case 5:
        for (unsigned i = 0; i < 12; i++) {
            codelen[200 - 13 * i] = (uint8_t)(i + 1);
        }
        return "lengths 1 to 12, one code short of full";
    case 6: codelen[7] = 12; return "one symbol of 12 bits";
    case 7:
        codelen[255] = 11;
        codelen[0] = 11;
        codelen[1] = 12;
        return "only codes of 11 and 12 bits";
    case 8:
        codelen[10] = 2;
        codelen[20] = 3;
        codelen[30] = 12;
        return "under-full with a gap";
    case 9:
        codelen[77] = 10;
        codelen[78] = 10;
        codelen[79] = 1;
        return "under-full, 1 and 10 bits";
    case 10: /* 15 of length 4 and 16 of 8: full, all of them inside the table's window */
        memset(codelen + 40, 4, 15);
        memset(codelen + 90, 8, 16);
        return "4 and 8 bits, full";
    case 11: /* 240 of 8 bits and the rest 12: full with 256 symbols is 240 x 16 + 256 = 4096 units */
        memset(codelen, 8, 240);
        memset(codelen + 240, 12, 16);
        return "8 and 12 bits, 256 symbols, under-full";
    case 12:
        memset(codelen, 7, 127);
        memset(codelen + 128, 12, 32);
        return "7 and 12 bits, full";
    case 13: /* the shape of real weights: two groups of three short codes, long tails */
        codelen[0x3B] = codelen[0xBB] = 3;
        codelen[0x3C] = codelen[0x3D] = codelen[0xBC] = 2;
        return "real weights, full";
    default: {
        static const uint16_t n[] = {2, 3, 4, 5, 7, 11, 16, 30, 64, 128, 200, 256};
        k3huf_random_code(&rng, n[which - 14], which * 37 % 101, codelen);
        return "random full";
    }
    }
}

void k3huf_sample_symbols(const struct k3huf_reference_code *code, struct k3huf_rng *rng, uint8_t *symbols, size_t n) {
    for (size_t i = 0; i < n;) {
        uint8_t bits[2];
        uint64_t bit = 0;
        k3huf_rng_fill(rng, bits, sizeof bits);
        int symbol = k3huf_reference_symbol(code, bits, 16, &bit);
        if (symbol < 0) { /* bits that are no code: any symbol will do */
            symbol = code->symbols[k3huf_rng_below(rng, code->before[12] + code->count[12])];
        }
        symbols[i++] = (uint8_t)symbol;
    }
}

void k3huf_sample_raw(const uint8_t codelen[256], uint64_t seed, uint32_t stripe_bytes, uint8_t *raw, size_t size) {
    struct k3huf_rng rng = {seed};
    struct k3huf_reference_code code;
    (void)k3huf_reference_code_build(&code, codelen);
    for (size_t i = 0; i < size; i++) {
        if (i % stripe_bytes % 2 == 0) {
            raw[i] = (uint8_t)(k3huf_rng_next(&rng) >> 56);
        } else {
            k3huf_sample_symbols(&code, &rng, raw + i, 1);
        }
    }
}
