/* reference.h - the independent witness of the tests: a decoder and an encoder of runs, written straight from
 * FORMAT.md, bit by bit, without a decode table, slow and plain on purpose.
 *
 * It must share no code, no constant and no header with the core or with the real encoder: where the two disagree, one
 * of them has misread the format. Single-threaded (it keeps no state between calls). */
#ifndef K3HUF_TEST_REFERENCE_H
#define K3HUF_TEST_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C, one bit at a time; start with 0. */
uint32_t k3huf_reference_crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The canonical code of 256 lengths, as FORMAT.md, The code, assigns it. */
struct k3huf_reference_code {
    uint8_t length[256];
    uint32_t word[256];   /* the code of each symbol, in its low `length` bits */
    unsigned longest;     /* 0: no symbol at all */
    uint32_t first[13];   /* first code of each length */
    uint32_t count[13];   /* codes of each length */
    uint8_t symbols[256]; /* symbols by length, then value */
    unsigned before[13];  /* codes shorter than each length */
};

/* NULL, or what is wrong with the lengths: a length over 12, or an over-full code space. */
const char *k3huf_reference_code_build(struct k3huf_reference_code *code, const uint8_t codelen[256]);

#define K3HUF_REFERENCE_NO_CODE (-1) /* no code begins with these bits, nor could it if more followed */
#define K3HUF_REFERENCE_NO_BITS (-2) /* the bits end inside a code */

/* The symbol whose code begins at `*bit` (0 = the most significant bit of coded[0]) of a plane of `bits` bits. *bit is
 * moved behind the code, or left alone when one of the two negative values is returned. */
int k3huf_reference_symbol(const struct k3huf_reference_code *code, const uint8_t *coded, uint64_t bits, uint64_t *bit);

/* Decode a whole run of `size` bytes into `out`. Returns NULL if every rule of FORMAT.md holds, else a sentence that
 * names the rule. `*raw_bytes` gets the decoded size, `*used` the bytes of the run; what follows it is not looked at.
 */
const char *k3huf_reference_decode(const uint8_t *run, size_t size, uint8_t *out, size_t out_size, size_t *raw_bytes,
                                   size_t *used);

/* What kind of run k3huf_reference_encode() writes. */
struct k3huf_reference_plan {
    const uint8_t *codelen; /* 256 lengths that give every odd byte of the input a code */
    uint32_t stripe_bytes;  /* raw bytes of every stripe but the last; any number, odd ones too */
    unsigned block_log2;    /* 0: no index */
    uint32_t filler;        /* filler bytes after each stripe, behind its index: 0x5A each */
};

/* Write the run of `raw`. Returns its size, or 0 if `capacity` is too small (or a symbol has no code). */
size_t k3huf_reference_encode(const struct k3huf_reference_plan *plan, const uint8_t *raw, size_t raw_size,
                              uint8_t *run, size_t capacity);

/* Append codes of `n` symbols to a plane of `*bit` bits; the bytes after that must be 0. Returns false when `capacity`
 * bytes are too few or a symbol has no code. */
int k3huf_reference_put(const struct k3huf_reference_code *code, const uint8_t *symbols, size_t n, uint8_t *coded,
                        size_t capacity, uint64_t *bit);

#endif
