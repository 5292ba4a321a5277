/* k3huf.h - the one public header of the k3huf core: decode version-1 runs of bf16 weights.
 *
 * The core is freestanding C11: no allocation, no libc, no I/O, no recursion, no mutable static data. Every object is
 * owned by the caller, who may place it anywhere. Nothing here needs an alignment beyond that of the C type. All
 * sizes are in bytes unless a name says otherwise. No call takes more than 2 KiB of stack, none calls itself. merge.c
 * uses vector registers where the compiler may.
 *
 * Memory must hold still: input spans must not change during a call, and an index must not change from the moment it
 * was checked until its stripe is done. Output spans are read back and may hold unverified bytes during a call, so they
 * must be private memory: a copy goes to the host afterwards, never the span itself.
 *
 * Bounds, not averages, belong into deadlines: a turn of the hot loop that gives up to thirty symbols gives a single
 * one where all codes have 12 bits, so hostile input can be many times slower.
 *
 * FORMAT.md beside this file says what the bytes of a run mean; section names in the comments below are its sections.
 *
 * Two ways to use it:
 *   - struct k3huf_decoder: a state machine for one run. It says which bytes it wants next
 *     (k3huf_decoder_need), takes any split of them (k3huf_decode) and never blocks.
 *   - the stateless parts it is made of (headers, table, lanes, blocks, merge, CRC), for firmware that schedules block
 *     groups over several cores itself. They are re-entrant: share the table read-only, give each core a workspace.
 */
#ifndef K3HUF_H
#define K3HUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define K3HUF_VERSION "0.1.0"

/* Fixed sizes and limits of the format (FORMAT.md). */
#define K3HUF_RUN_HEADER_BYTES 288u
#define K3HUF_STRIPE_HEADER_BYTES 16u
#define K3HUF_INDEX_HEADER_BYTES 16u
#define K3HUF_INDEX_ENTRY_BYTES 8u
#define K3HUF_STRIPE_RAW_MAX 67108864u
#define K3HUF_SYMBOLS 256u
#define K3HUF_CODE_LENGTH_MAX 12u
#define K3HUF_BLOCK_LOG2_MIN 12u
#define K3HUF_BLOCK_LOG2_MAX 20u
#define K3HUF_BLOCK_LOG2_DEFAULT 14u

/* ------------------------------------------------------------------------------------------------- status ---- */

/* What a call has to say. The first three are not errors. */
enum k3huf_status {
    K3HUF_OK = 0, /* done what was asked, or made progress */
    K3HUF_WAIT,   /* nothing can be done with the spans given: k3huf_decoder_need() says what would help */
    K3HUF_DONE,   /* the whole run is decoded */

    K3HUF_E_ARGUMENT,  /* the caller's mistake: what k3huf_decoder_init() forbids in a config */
    K3HUF_E_TRUNCATED, /* the input ends inside the run */

    K3HUF_E_RUN_MAGIC,     /* not a k3huf run */
    K3HUF_E_RUN_VERSION,   /* a version this decoder does not know */
    K3HUF_E_RUN_STRIPES,   /* a stripe count that cannot hold raw_bytes */
    K3HUF_E_CODE_LENGTH,   /* a code length over 12 */
    K3HUF_E_CODE_OVERFULL, /* Kraft sum over 1 */
    K3HUF_E_CODE_EMPTY,    /* no symbol has a code, yet there are symbols to decode */

    K3HUF_E_STRIPE_MAGIC, /* stripe magic is not run magic XOR stripe number */
    K3HUF_E_STRIPE_RAW,   /* stripe raw_bytes is 0, over 64 MiB, or does not fit the run's raw_bytes */
    K3HUF_E_STRIPE_CODED, /* stripe huf_bytes that no sequence of its symbols' codes can have */

    K3HUF_E_CODE_WORD,   /* bits that are no code (under-full code space) */
    K3HUF_E_CODED_SHORT, /* the coded plane ends before the last symbol */
    K3HUF_E_CODED_LONG,  /* bytes, or bits that are not 0, after the last symbol */

    K3HUF_E_INDEX_SIZE,    /* the index does not fit the filler that holds it */
    K3HUF_E_INDEX_VERSION, /* an index version this decoder does not know */
    K3HUF_E_INDEX_LOG2,    /* block_log2 outside 12 ... 20 */
    K3HUF_E_INDEX_FLAGS,   /* flags that are not 0 */
    K3HUF_E_INDEX_COUNT,   /* nblocks does not match the stripe */
    K3HUF_E_INDEX_CRC,     /* the index's own CRC-32C is wrong */
    K3HUF_E_INDEX_OFFSET,  /* a bit offset that goes back, points outside the plane or cannot hold its block */
    K3HUF_E_INDEX_MEMORY,  /* the index is larger than the memory the caller gave for it */

    K3HUF_E_BLOCK_END, /* a block's last code does not end where the index says the next block begins */
    K3HUF_E_BLOCK_CRC, /* a block's raw bytes do not have the CRC-32C of the index */

    K3HUF_E_INDEX_ABSENT, /* a stripe without block index, where the caller requires one */

    K3HUF_STATUS_COUNT
};

/* One line of English for a status, static, never NULL; lower case, no full stop. */
const char *k3huf_status_text(enum k3huf_status status);

/* true for the statuses that end a run. */
static inline bool k3huf_is_error(enum k3huf_status status) { return status >= K3HUF_E_ARGUMENT; }

#define K3HUF_NO_STRIPE UINT32_MAX
#define K3HUF_NO_BLOCK UINT32_MAX

/* Where in a run something is wrong. */
struct k3huf_place {
    uint32_t stripe; /* K3HUF_NO_STRIPE: in the run header */
    uint32_t block;  /* K3HUF_NO_BLOCK: not in a block of the index */
    uint64_t offset; /* byte offset from the run's first byte */
};

/* ------------------------------------------------------------------------------------------------ headers ---- */

struct k3huf_run_header {
    uint64_t raw_bytes;
    uint32_t nstripes;
    uint8_t codelen[K3HUF_SYMBOLS]; /* code length of each byte value in bits, 0 = absent */
};

struct k3huf_stripe_header {
    uint32_t raw_bytes; /* 1 ... K3HUF_STRIPE_RAW_MAX */
    uint32_t huf_bytes; /* size of the coded plane */
    uint32_t pad;       /* size of the filler */
};

/* Read and check a run header (FORMAT.md, Run). `*bad` gets the offset of the field that is wrong. `out` holds
 * nothing to rely on unless K3HUF_OK is returned. */
enum k3huf_status k3huf_run_header_read(const uint8_t bytes[K3HUF_RUN_HEADER_BYTES], struct k3huf_run_header *out,
                                        uint32_t *bad);
void k3huf_run_header_write(const struct k3huf_run_header *header, uint8_t bytes[K3HUF_RUN_HEADER_BYTES]);

/* Read and check the header of stripe `stripe` of `run`; `raw_before` is the sum of raw_bytes of the stripes before
 * it. The run header must have passed k3huf_run_header_read(), `stripe` be below its nstripes and `raw_before` not
 * above its raw_bytes. */
enum k3huf_status k3huf_stripe_header_read(const uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES],
                                           const struct k3huf_run_header *run, uint32_t stripe, uint64_t raw_before,
                                           struct k3huf_stripe_header *out, uint32_t *bad);
void k3huf_stripe_header_write(const struct k3huf_stripe_header *header, uint32_t stripe,
                               uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES]);

/* Symbols of a stripe or block: its odd-offset bytes. Its even-offset bytes are the rest. */
static inline uint32_t k3huf_odd_bytes(uint32_t raw_bytes) { return raw_bytes / 2u; }
static inline uint32_t k3huf_even_bytes(uint32_t raw_bytes) { return raw_bytes - raw_bytes / 2u; }

/* Bytes of a stripe's header, planes and filler together. */
static inline uint64_t k3huf_stripe_bytes(const struct k3huf_stripe_header *stripe) {
    return (uint64_t)K3HUF_STRIPE_HEADER_BYTES + stripe->huf_bytes + k3huf_even_bytes(stripe->raw_bytes) + stripe->pad;
}

/* -------------------------------------------------------------------------------------------------- index ---- */

/* A checked block index (FORMAT.md, Block index); `entries` points into the bytes it was parsed from. */
struct k3huf_index {
    const uint8_t *entries; /* nblocks x 8 bytes, as stored */
    uint32_t nblocks;       /* 0: the filler holds no index */
    uint32_t block_log2;    /* symbols of a block = 2^block_log2 */
};

/* Blocks of a stripe, and bytes of its whole index (0 where there are no symbols). block_log2 is 12 ... 20. */
uint32_t k3huf_index_blocks(uint32_t raw_bytes, uint32_t block_log2);
uint32_t k3huf_index_bytes(uint32_t raw_bytes, uint32_t block_log2);

/* Look at a filler's first bytes (`size` of them, at most 16 are read). *bytes gets the size of the whole index, 0
 * where the filler is plain. Checks all of the index header but the CRC. K3HUF_WAIT: `size` is too small to tell. */
enum k3huf_status k3huf_index_probe(const uint8_t *filler, size_t size, const struct k3huf_stripe_header *stripe,
                                    uint32_t *bytes, uint32_t *bad);

/* Check a whole index of `size` bytes, CRC and every offset included. `*bad` gets the byte offset in the filler of
 * what is wrong, `*block` the block it concerns or K3HUF_NO_BLOCK. `size` must be what k3huf_index_probe() said; with
 * less the answer is K3HUF_WAIT. `out` keeps pointing into `filler`, which must stay as it is. */
enum k3huf_status k3huf_index_read(const uint8_t *filler, size_t size, const struct k3huf_stripe_header *stripe,
                                   struct k3huf_index *out, uint32_t *bad, uint32_t *block);

/* Write an index header into `index` and its CRC over all of it; the nblocks entries must be in place behind it. */
void k3huf_index_seal(uint8_t *index, uint32_t raw_bytes, uint32_t block_log2);

/* Entry `block` of an index: first bit in the coded plane, and CRC-32C of the block's raw bytes. */
uint32_t k3huf_index_bit(const struct k3huf_index *index, uint32_t block);
uint32_t k3huf_index_crc(const struct k3huf_index *index, uint32_t block);

/* -------------------------------------------------------------------------------------------------- table ---- */

#define K3HUF_TABLE_BITS 10u
#define K3HUF_TABLE_ENTRIES 1024u
#define K3HUF_TABLE_BYTES 8192u
#define K3HUF_ENTRY_SYMBOLS 6u

/* The decode table: what the next 10 bits hold, up to six symbols at once, and a tail for the codes of 11 and 12 bits.
 * Those are the last ones of a canonical code: as 12-bit numbers, left-aligned, those of 11 bits begin at tail11, those
 * of 12 bits at tail12, and from tail_end on bits are no code. Built once a run, then read-only; any number of cores
 * may share it. */
struct k3huf_table {
    uint64_t entry[K3HUF_TABLE_ENTRIES];
    uint16_t tail11;
    uint16_t tail12;
    uint16_t tail_end;
    uint16_t most;                 /* symbols of the fullest entry, 1 at least */
    uint8_t tail[K3HUF_SYMBOLS];   /* symbols of the long codes, in the order of their codes */
    uint8_t length[K3HUF_SYMBOLS]; /* code length of each symbol, 0: none */
};

/* Build the table. Only the statuses of the code are returned: K3HUF_E_CODE_LENGTH, _OVERFULL. A code with no symbol
 * at all gives a table in which no bits are a code. */
enum k3huf_status k3huf_table_build(struct k3huf_table *table, const uint8_t codelen[K3HUF_SYMBOLS]);

/* -------------------------------------------------------------------------------------------------- lanes ---- */

#define K3HUF_LANES 6u /* independent bit positions decoded side by side on one core */
#define K3HUF_WORKSPACE_BYTES 15600u

/* Scratch memory for one core; contents need no initialisation and mean nothing between calls. */
struct k3huf_workspace {
    uint64_t scratch[K3HUF_WORKSPACE_BYTES / 8u];
};

/* One lane: a position in a coded plane, the raw bytes that go with it, and where the result goes. The caller fills
 * it in; k3huf_lanes() advances it past what it decoded, so that a lane can go on over further spans. */
struct k3huf_lane {
    const uint8_t *coded; /* the byte that holds the next code's first bit */
    size_t coded_size;    /* bytes readable at coded; none beyond is read */
    uint32_t bit;         /* bits of coded[0] already used, 0 ... 7 */
    uint32_t crc;         /* running CRC-32C (start with 0) of what went to out, if with_crc */
    bool with_crc;
    enum k3huf_status status; /* out: K3HUF_OK all symbols decoded; K3HUF_WAIT the coded span ends first;
                                 K3HUF_E_CODE_WORD at coded and bit */
    const uint8_t *raw;       /* one byte a symbol, from the raw plane; NULL: out gets bare symbols, one byte each */
    uint8_t *out;             /* gets 2 bytes a symbol: raw byte, symbol; none beyond is written */
    size_t symbols;           /* symbols to decode, with as many bytes at raw and twice as many at out */
};

/* Decode `n` lanes, any number, in groups of K3HUF_LANES side by side; so a multiple of that, of lanes of equal size,
 * is fastest. They may belong to one stripe or to different stripes of runs that share a code; their output spans must
 * not overlap. */
void k3huf_lanes(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *lane, size_t n);

/* One block of an indexed stripe, with all of its bytes at hand. */
struct k3huf_block {
    const uint8_t *coded;     /* the byte of the coded plane that holds bit `begin` */
    const uint8_t *raw;       /* the block's first even byte */
    uint8_t *out;             /* gets raw_bytes bytes */
    uint32_t begin;           /* first bit in the coded plane */
    uint32_t end;             /* one past the last bit; for the last block of a stripe huf_bytes x 8 */
    uint32_t raw_bytes;       /* of this block */
    uint32_t crc;             /* expected CRC-32C of its raw bytes */
    bool last;                /* the stripe's last block: ends within the last byte, with zero bits after it */
    enum k3huf_status status; /* out: K3HUF_OK, K3HUF_E_CODE_WORD, _CODED_SHORT, _CODED_LONG, _BLOCK_END, _BLOCK_CRC */
    uint32_t bad_bit;         /* out: where in the coded plane decoding stopped */
    struct k3huf_lane lane;   /* the decoder's own */
};

/* Fill in block `number` of a stripe for decoding. `coded`, `raw` and `out` point to the block's own first bytes:
 * byte begin / 8 of the coded plane, and byte number << block_log2 of the raw plane. `number` is below nblocks. */
void k3huf_block_init(struct k3huf_block *block, const struct k3huf_index *index,
                      const struct k3huf_stripe_header *stripe, uint32_t number);

/* Decode and check `n` blocks (any number; K3HUF_LANES at a time side by side). Reads (end + 7) / 8 - begin / 8 bytes
 * at coded and the block's even bytes at raw. Returns K3HUF_OK or the status of the first block that failed. The out
 * bytes of a block that failed are zeroed: nothing unverified stays. `check_crc` false skips the CRC alone. */
enum k3huf_status k3huf_decode_blocks(const struct k3huf_table *table, struct k3huf_workspace *workspace,
                                      struct k3huf_block *block, size_t n, bool check_crc);

/* ------------------------------------------------------------------------------------------ merge and CRC ---- */

/* out[2i] = raw[i], out[2i + 1] = symbols[i] for i < n. `symbols` may overlap out where it lies wholly behind what is
 * written before it is read: symbols >= out + n (the in-place form). `raw` must not overlap out. */
void k3huf_merge(uint8_t *out, const uint8_t *raw, const uint8_t *symbols, size_t n);

/* CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `size` bytes, going on from `crc`; start with 0. */
uint32_t k3huf_crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The same for `n` (1 ... K3HUF_LANES) spans of equal size side by side. */
void k3huf_crc32c_lanes(uint32_t *crc, const uint8_t *const *data, size_t size, uint32_t n);

/* ------------------------------------------------------------------------------------------------ decoder ---- */

/* What the decoder reads next. */
enum k3huf_part {
    K3HUF_PART_RUN_HEADER,
    K3HUF_PART_STRIPE_HEADER,
    K3HUF_PART_INDEX,  /* the filler's index: before the planes with two cursors, behind them with one */
    K3HUF_PART_PLANES, /* two cursors: both planes side by side */
    K3HUF_PART_CODED,  /* one cursor: the coded plane */
    K3HUF_PART_RAW,    /* one cursor: the raw plane */
    K3HUF_PART_FILLER, /* one cursor: the filler */
    K3HUF_PART_DONE,
    K3HUF_PART_ERROR
};

/* How a decoder is to work. Memory is the caller's and must live as long as the decoder. */
struct k3huf_config {
    /* false: two cursors, the input can be read at any offset. true: one cursor, the run comes in file order; then
     * `out` must hold a whole stripe, up to 64 MiB as the input says, or the answer is K3HUF_WAIT for ever. The index
     * is checked last with one cursor, so damage may be found with another status and place than with two. */
    bool one_cursor;
    /* Skip the CRC of each block (the index's own CRC is always checked). */
    bool skip_crc;
    /* Refuse a stripe that has no index, one of a single byte too, before any of it is given out. The index's magic is
     * all that tells it from plain filler: damage to that and to a plane together would otherwise pass unseen. So set
     * this wherever runs are known to be indexed. */
    bool require_index;
    /* Memory for one stripe's index, K3HUF_INDEX_HEADER_BYTES at least; k3huf_index_bytes() says how much a stripe
     * needs, and a larger index is K3HUF_E_INDEX_MEMORY. NULL: indexes are ignored, and with them the block CRCs;
     * not with require_index. */
    uint8_t *index;
    size_t index_size;
    /* Never NULL. */
    struct k3huf_workspace *workspace;
};

/* What the decoder can use next. Offsets are bytes from the run's first byte. They come from the input, which may lie:
 * a stripe's filler alone can put them 4 GiB ahead. The caller bounds them by what the run's place really holds. */
struct k3huf_need {
    enum k3huf_part part;
    uint64_t coded_offset; /* next byte wanted at the coded (or only) cursor; it may lie before the last one given */
    uint64_t coded_bytes;  /* bytes from there to the end of this part, of an index to the next step: 4, 16, all */
    uint64_t raw_offset;   /* the same for the raw plane's cursor; two cursors only */
    uint64_t raw_bytes;
    uint64_t out_offset; /* where the next output byte belongs in the decoded run */
    uint32_t out_bytes;  /* the least size of `out` with which any output can be made; 0: none is made next */
};

/* Spans for one call of k3huf_decode(), which advances each past what it used. */
struct k3huf_io {
    const uint8_t *coded; /* bytes of the run from need.coded_offset on */
    size_t coded_size;
    const uint8_t *raw; /* bytes of the run from need.raw_offset on; unused with one cursor */
    size_t raw_size;
    uint8_t *out; /* where decoded byte need.out_offset goes */
    size_t out_size;
};

/* The state machine for one run. Its fields are its own; only the size is the caller's business. */
struct k3huf_decoder {
    struct k3huf_table table;
    struct k3huf_config config;
    struct k3huf_run_header run;
    struct k3huf_stripe_header stripe;
    struct k3huf_index index;
    struct k3huf_block now; /* the current block; without an index the whole stripe */
    struct k3huf_place place;
    enum k3huf_status status;
    enum k3huf_part part;
    uint32_t stripe_number;
    uint64_t stripe_offset; /* of its header, in the run */
    uint64_t raw_done;      /* raw bytes of the stripes before this one */
    uint32_t coded_done;    /* bytes of the current part taken from the coded cursor */
    uint32_t symbols_left;  /* of the current block to decode */
    uint32_t given;         /* raw bytes of this stripe given out */
    uint32_t raw_used;      /* bytes of this stripe's raw plane used */
    uint32_t bit;           /* bits used of the first byte not yet done with */
    uint32_t block;         /* block being decoded, indexed stripes only */
    uint32_t crc;           /* running CRC-32C of that block, or of the index */
    uint32_t pending;       /* bytes in `out` that wait for their block's CRC, or for their stripe's end */
    uint32_t index_bytes;   /* size of the index in the filler, 0: none */
    uint32_t held;          /* bytes in hold */
    uint8_t hold[K3HUF_RUN_HEADER_BYTES]; /* a header that came in pieces, or coded bytes not yet used up */
};

/* Start a run. K3HUF_E_ARGUMENT where the config has no workspace, index memory below its least size, or none
 * though an index is required. */
enum k3huf_status k3huf_decoder_init(struct k3huf_decoder *decoder, const struct k3huf_config *config);

/* What to give next. Valid after init and after every call of k3huf_decode(). After K3HUF_DONE, need.coded_offset is
 * the size of the run with its last filler. With two cursors that filler may not have been read: compare with the
 * input. */
void k3huf_decoder_need(const struct k3huf_decoder *decoder, struct k3huf_need *need);

/* Do what the spans allow: work is bounded by their sizes. A call works on one part of the run, so that the next one
 * may want other offsets. Returns K3HUF_OK (some input was used), K3HUF_WAIT (none was: give more than last time),
 * K3HUF_DONE, or an error, which is final.
 *
 * Output: io->out is advanced over bytes that are final. Behind them, up to need.out_bytes more may hold bytes that
 * wait for their check; the next call must present the same memory there, with its contents. Without an index (two
 * cursors) nothing waits. On an error what waits is zeroed. */
enum k3huf_status k3huf_decode(struct k3huf_decoder *decoder, struct k3huf_io *io);

/* The input ends here: K3HUF_DONE after a whole run, else the decoder fails with K3HUF_E_TRUNCATED. It has no span to
 * zero: output bytes that wait for a check at that moment are the caller's to throw away. */
enum k3huf_status k3huf_finish(struct k3huf_decoder *decoder);

/* Where the error is; meaningful once an error was returned. */
const struct k3huf_place *k3huf_where(const struct k3huf_decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
