/* test_index.c - the block index: its functions, decoding of single blocks, and indexed runs through the decoder with
 * every way to chunk them. Each way to be malformed has its status and place, and nothing of a bad block is given out.
 */
#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "rng.h"
#include "samples.h"

#define LOG2 12u
#define BLOCK (2u << LOG2)          /* raw bytes of a block */
#define STRIPE (2u * BLOCK + 2001u) /* three blocks, the last one short and with an odd tail */
#define RAW_MAX (3u * STRIPE)
#define RUN_MAX (2u * RAW_MAX)
#define CANARY 0xB7u

static uint8_t raw[RAW_MAX], run[RUN_MAX], good[RUN_MAX], out[RAW_MAX], index_memory[256];
static size_t run_size, raw_size;
static uint8_t codelen[256];

/* Where the parts of a stripe are in `run`. */
struct layout {
    size_t header, coded, huf, plane, filler, pad;
    uint32_t raw_bytes;
};

static uint32_t get(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put(uint8_t *bytes, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(value >> (8u * i));
    }
}

static struct layout locate(unsigned stripe) {
    struct layout at = {.header = 288};
    for (unsigned i = 0;; i++) {
        at.raw_bytes = get(run + at.header + 4);
        at.huf = get(run + at.header + 8);
        at.pad = get(run + at.header + 12);
        at.coded = at.header + 16;
        at.plane = at.coded + at.huf;
        at.filler = at.plane + at.raw_bytes - at.raw_bytes / 2;
        if (i == stripe) { return at; }
        at.header = at.filler + at.pad;
    }
}

static struct k3huf_stripe_header header_of(const struct layout *at) {
    return (struct k3huf_stripe_header){at->raw_bytes, (uint32_t)at->huf, (uint32_t)at->pad};
}

/* Make `run` (and a copy in `good`) of `size` raw bytes with sample code `which`. */
static void build(unsigned which, size_t size, uint32_t stripe_bytes, unsigned log2, uint32_t filler) {
    const struct k3huf_reference_plan plan = {codelen, stripe_bytes, log2, filler};
    k3huf_sample_code(which, codelen);
    k3huf_sample_raw(codelen, which + size, stripe_bytes, raw, size);
    run_size = k3huf_reference_encode(&plan, raw, size, run, sizeof run);
    assert_true(run_size > 0);
    raw_size = size;
    memcpy(good, run, run_size);
}

/* The index's own CRC, after it was tampered with. */
static void fix_crc(const struct layout *at) {
    uint8_t *const index = run + at->filler;
    put(index + 12, 0);
    put(index + 12, k3huf_reference_crc32c(0, index, 16u + 8u * ((at->raw_bytes / 2u - 1u) / (BLOCK / 2u) + 1u)));
}

static struct k3huf_feed feed_in(unsigned mode, const char **name) {
    struct k3huf_feed feed = {.run = run,
                              .run_size = run_size,
                              .out = out,
                              .out_size = raw_size,
                              .expected = raw,
                              .index = index_memory,
                              .index_size = sizeof index_memory,
                              .seed = mode};
    *name = k3huf_feed_mode(&feed, mode);
    return feed;
}

static void decodes_in(unsigned mode) {
    const char *name;
    struct k3huf_feed feed = feed_in(mode, &name);
    k3huf_feed_run(&feed);
    if (feed.fault != NULL || feed.status != K3HUF_DONE || feed.produced != raw_size ||
        memcmp(out, raw, raw_size) != 0) {
        fail_msg("%s: %s, \"%s\", stripe %d, block %d, offset %u", name, feed.fault == NULL ? "wrong" : feed.fault,
                 k3huf_status_text(feed.status), (int)feed.place.stripe, (int)feed.place.block,
                 (unsigned)feed.place.offset);
    }
}

/* ---- the functions ---- */

static void sizes(void **state) {
    (void)state;
    static const struct {
        uint32_t raw, log2, blocks;
    } cases[] = {
        {0, 12, 0},         {1, 12, 0},           {2, 12, 1},           {3, 12, 1},
        {8191, 12, 1},      {8192, 12, 1},        {8193, 12, 1},        {8194, 12, 2},
        {16384, 12, 2},     {16386, 12, 3},       {67108864, 12, 8192}, {67108864, 20, 32},
        {67108863, 20, 32}, {67108864, 14, 2048}, {2097152, 20, 1},     {2097154, 20, 2},
    };
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        assert_int_equal(k3huf_index_blocks(cases[i].raw, cases[i].log2), cases[i].blocks);
        assert_int_equal(k3huf_index_bytes(cases[i].raw, cases[i].log2),
                         cases[i].blocks == 0 ? 0 : 16 + 8 * cases[i].blocks);
    }
}

static void a_good_index_is_read(void **state) {
    (void)state;
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        build(which, STRIPE, STRIPE, LOG2, which % 3 * 7);
        const struct layout at = locate(0);
        const struct k3huf_stripe_header header = header_of(&at);
        struct k3huf_index index;
        uint32_t bytes, bad, block;
        assert_status(k3huf_index_probe(run + at.filler, 16, &header, &bytes, &bad), K3HUF_OK);
        assert_int_equal(bytes, 16 + 3 * 8);
        assert_status(k3huf_index_read(run + at.filler, bytes, &header, &index, &bad, &block), K3HUF_OK);
        assert_int_equal(index.nblocks, 3);
        assert_int_equal(index.block_log2, LOG2);
        for (uint32_t b = 0; b < 3; b++) {
            const uint8_t *entry = run + at.filler + 16 + 8 * b;
            assert_ptr_equal(index.entries, run + at.filler + 16);
            assert_int_equal(k3huf_index_bit(&index, b), get(entry));
            assert_int_equal(k3huf_index_crc(&index, b), get(entry + 4));
        }
        /* What seal writes is what the reference wrote. */
        uint8_t sealed[16 + 3 * 8];
        memset(sealed, 0xEE, 16);
        memcpy(sealed + 16, run + at.filler + 16, sizeof sealed - 16);
        k3huf_index_seal(sealed, STRIPE, LOG2);
        assert_memory_equal(sealed, run + at.filler, sizeof sealed);
    }
}

/* A stripe that cannot have an index gets none: sealing it writes nothing. */
static void nothing_to_seal(void **state) {
    (void)state;
    for (uint32_t size = 0; size < 2; size++) {
        uint8_t sealed[16];
        memset(sealed, CANARY, sizeof sealed);
        k3huf_index_seal(sealed, size, LOG2);
        for (size_t i = 0; i < sizeof sealed; i++) {
            assert_int_equal(sealed[i], CANARY);
        }
    }
}

static void fillers_without_an_index(void **state) {
    (void)state;
    static const uint8_t magic[16] = {'K', '3', 'I', 'X'};
    struct k3huf_index index;
    uint32_t bytes = 7, bad, block;
    uint8_t filler[16];
    struct k3huf_stripe_header header = {1000, 100, 16};
    for (unsigned bit = 0; bit < 32; bit++) {
        memcpy(filler, magic, 16);
        filler[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        bytes = 7;
        assert_status(k3huf_index_probe(filler, 16, &header, &bytes, &bad), K3HUF_OK);
        assert_int_equal(bytes, 0);
        assert_status(k3huf_index_read(filler, 0, &header, &index, &bad, &block), K3HUF_WAIT);
    }
    /* A filler too small for the magic is plain, whatever it holds. */
    for (header.pad = 0; header.pad < 4; header.pad++) {
        bytes = 7;
        assert_status(k3huf_index_probe(magic, header.pad, &header, &bytes, &bad), K3HUF_OK);
        assert_int_equal(bytes, 0);
        assert_status(k3huf_index_read(magic, 0, &header, &index, &bad, &block), K3HUF_OK);
        assert_int_equal(index.nblocks, 0);
    }
    /* A stripe without odd bytes has no index. */
    header = (struct k3huf_stripe_header){1, 0, 16};
    bytes = 7;
    assert_status(k3huf_index_probe(magic, 16, &header, &bytes, &bad), K3HUF_OK);
    assert_int_equal(bytes, 0);
}

/* ---- single blocks ---- */

#define GUARD 16u
static struct k3huf_table table;
static struct k3huf_workspace workspace;
static uint8_t block_out[3][GUARD + BLOCK + GUARD];

/* Block `number` of stripe 0, its output between canaries in block_out. */
static struct k3huf_block block_of(uint32_t number) {
    const struct layout at = locate(0);
    const struct k3huf_stripe_header header = header_of(&at);
    struct k3huf_index index;
    struct k3huf_block block;
    uint32_t bad, none;
    assert_status(k3huf_index_read(run + at.filler, 40, &header, &index, &bad, &none), K3HUF_OK);
    k3huf_block_init(&block, &index, &header, number);
    block.coded = run + at.coded + block.begin / 8u;
    block.raw = run + at.plane + (size_t)number * (BLOCK / 2u);
    block.out = block_out[number] + GUARD;
    memset(block_out[number], CANARY, sizeof block_out[number]);
    return block;
}

static void check_block(uint32_t number, const struct k3huf_block *block, enum k3huf_status status) {
    static const uint8_t zeros[BLOCK];
    assert_status(block->status, status);
    assert_memory_equal(block_out[number] + GUARD, status == K3HUF_OK ? raw + number * BLOCK : zeros, block->raw_bytes);
    for (unsigned i = 0; i < GUARD; i++) {
        assert_int_equal(block_out[number][i], CANARY);
    }
    for (size_t i = GUARD + block->raw_bytes; i < sizeof block_out[number]; i++) {
        assert_int_equal(block_out[number][i], CANARY);
    }
}

static void single_blocks_decode(void **state) {
    (void)state;
    static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        build(which, STRIPE, STRIPE, LOG2, 0);
        assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
        for (size_t order = 0; order < UNIT_COUNT(orders); order++) {
            for (size_t n = 0; n <= 3; n++) {
                struct k3huf_block block[3];
                for (size_t i = 0; i < 3; i++) {
                    block[i] = block_of(orders[order][i]);
                }
                assert_status(k3huf_decode_blocks(&table, &workspace, block, n, true), K3HUF_OK);
                for (size_t i = 0; i < n; i++) {
                    check_block(orders[order][i], &block[i], K3HUF_OK);
                }
                for (size_t i = n; i < 3; i++) {
                    assert_int_equal(block[i].out[0], CANARY);
                }
            }
        }
    }
}

/* More blocks than lanes: one more than a whole number of groups. */
static void many_blocks_decode(void **state) {
    (void)state;
    static uint8_t many[2u * K3HUF_LANES + 1u][BLOCK];
    struct k3huf_block block[2u * K3HUF_LANES + 1u];
    build(13, STRIPE, STRIPE, LOG2, 0);
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    for (uint32_t bad = 0; bad <= 2u * K3HUF_LANES + 1u; bad++) {
        for (uint32_t i = 0; i < UNIT_COUNT(block); i++) {
            block[i] = block_of(i % 3);
            block[i].out = many[i];
            if (i == bad) { block[i].crc ^= 1u; }
        }
        assert_status(k3huf_decode_blocks(&table, &workspace, block, UNIT_COUNT(block), true),
                      bad < UNIT_COUNT(block) ? K3HUF_E_BLOCK_CRC : K3HUF_OK);
        for (uint32_t i = 0; i < UNIT_COUNT(block); i++) {
            static const uint8_t zeros[BLOCK];
            assert_status(block[i].status, i == bad ? K3HUF_E_BLOCK_CRC : K3HUF_OK);
            assert_memory_equal(many[i], i == bad ? zeros : raw + i % 3 * BLOCK, block[i].raw_bytes);
        }
    }
}

static void bad_blocks_are_zeroed(void **state) {
    (void)state;
    /* In this code twelve ones are none; the size is one whose codes do not end with a byte. */
    uint64_t bits = 0;
    for (uint32_t size = STRIPE; bits % 8u == 0; size -= 2) {
        struct k3huf_reference_code code;
        build(5, size, size, LOG2, 0);
        assert_null(k3huf_reference_code_build(&code, codelen));
        for (uint32_t i = 1; i < size; i += 2) {
            bits += code.length[raw[i]];
        }
    }
    assert_status(k3huf_table_build(&table, codelen), K3HUF_OK);
    const struct layout at = locate(0);
    for (uint32_t number = 0; number < 3; number++) {
        struct k3huf_block block = block_of(number);
        const uint32_t begin = block.begin, end = block.end;

        for (unsigned bit = 0; bit < 32; bit++) {
            block = block_of(number);
            block.crc ^= 1u << bit;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_BLOCK_CRC);
            check_block(number, &block, K3HUF_E_BLOCK_CRC);
        }
        assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, false), K3HUF_OK);
        check_block(number, &block, K3HUF_OK);

        if (number < 2) { /* one bit too early, one too late */
            block = block_of(number);
            block.end = end - 1u;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_BLOCK_END);
            check_block(number, &block, K3HUF_E_BLOCK_END);
            block = block_of(number);
            block.end = end + 1u;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_BLOCK_END);
            check_block(number, &block, K3HUF_E_BLOCK_END);
            assert_int_equal(block.bad_bit, end);
        } else { /* the plane a byte too short, a byte too long, and a bit set behind the last code */
            block = block_of(number);
            block.end = end - 8u;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_CODED_SHORT);
            check_block(number, &block, K3HUF_E_CODED_SHORT);
            block = block_of(number);
            block.end = end + 8u;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_CODED_LONG);
            check_block(number, &block, K3HUF_E_CODED_LONG);
            block = block_of(number);
            run[at.coded + end / 8u - 1u] |= 1u;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_CODED_LONG);
            check_block(number, &block, K3HUF_E_CODED_LONG);
            run[at.coded + end / 8u - 1u] &= 0xFEu;
        }

        if (number < 2) { /* its last symbol left over */
            block = block_of(number);
            block.raw_bytes -= 2;
            assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_BLOCK_END);
            check_block(number, &block, K3HUF_E_BLOCK_END);
        }

        /* No code at the block's first symbol. */
        memcpy(run, good, run_size);
        block = block_of(number);
        for (uint32_t bit = begin; bit < begin + 12u; bit++) {
            run[at.coded + bit / 8u] = (uint8_t)(run[at.coded + bit / 8u] | (0x80u >> (bit % 8u)));
        }
        assert_status(k3huf_decode_blocks(&table, &workspace, &block, 1, true), K3HUF_E_CODE_WORD);
        check_block(number, &block, K3HUF_E_CODE_WORD);
        assert_int_equal(block.bad_bit, begin);
        memcpy(run, good, run_size);
    }
}

/* ---- through the decoder ---- */

static void indexed_runs_decode(void **state) {
    (void)state;
    for (unsigned which = 0; which < K3HUF_SAMPLE_CODES; which++) {
        build(which, which % 2 == 0 ? 2u * STRIPE - 77u : STRIPE, STRIPE, LOG2, which % 4 * 5);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            if (mode < K3HUF_FEED_MODES_WHOLE || mode % 5 == which % 5) { decodes_in(mode); }
        }
    }
}

/* Stripes whose size sits at a block's border, and small ones, in all modes. */
static void indexed_runs_of_all_sizes(void **state) {
    (void)state;
    static const uint32_t sizes_[] = {1, 2, 3, 4, 5, 100, 101, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 2, BLOCK + 3};
    for (size_t i = 0; i < UNIT_COUNT(sizes_); i++) {
        build(i % 2 == 0 ? 4 : 13, sizes_[i], 67108864, LOG2, (uint32_t)(i % 3));
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            decodes_in(mode);
        }
    }
    for (uint32_t stripe = 1; stripe < 12; stripe++) {
        build(13, 60, stripe, LOG2, stripe % 3);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            decodes_in(mode);
        }
    }
    for (unsigned log2 = 13; log2 <= 20; log2++) {
        build(4, RAW_MAX, 67108864, log2, 3);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
            decodes_in(mode);
        }
    }
}

/* One block more than there are lanes, whole: each bad one is found, and those before it come out, no other. */
static void more_blocks_than_lanes(void **state) {
    (void)state;
    const uint32_t blocks = K3HUF_LANES + 1u;
    build(13, K3HUF_LANES * BLOCK + 999u, 67108864, LOG2, 0);
    const struct layout at = locate(0);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
        decodes_in(mode);
        for (uint32_t bad = 0; bad < blocks; bad++) {
            const char *name;
            struct k3huf_feed feed = feed_in(mode, &name);
            run[at.plane + bad * (BLOCK / 2u) + 300u] ^= 1;
            k3huf_feed_run(&feed);
            if (feed.fault != NULL || feed.status != K3HUF_E_BLOCK_CRC || feed.place.block != bad ||
                feed.place.offset != at.coded + get(run + at.filler + 16 + 8 * bad) / 8u ||
                feed.produced != (feed.one_cursor ? 0 : bad * BLOCK)) {
                fail_msg("block %u, %s: %s; \"%s\" in block %d after %u bytes", (unsigned)bad, name,
                         feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status), (int)feed.place.block,
                         (unsigned)feed.produced);
            }
            memcpy(run, good, run_size);
        }
    }
}

/* Each block of a stripe whole or in pieces, in every combination: the coded cursor stands at the block's first byte
 * before each, and its bytes are given out after it. */
static void blocks_whole_and_in_pieces(void **state) {
    (void)state;
    static struct k3huf_decoder decoder;
    const struct k3huf_config config = {
        .index = index_memory, .index_size = sizeof index_memory, .workspace = &workspace};
    build(13, STRIPE, STRIPE, LOG2, 0);
    const struct layout at = locate(0);
    for (unsigned pieces = 0; pieces < 8; pieces++) {
        struct k3huf_need need;
        assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
        memset(out, 0, sizeof out);
        for (k3huf_decoder_need(&decoder, &need); need.part != K3HUF_PART_PLANES; k3huf_decoder_need(&decoder, &need)) {
            struct k3huf_io io = {.coded = run + need.coded_offset, .coded_size = (size_t)need.coded_bytes};
            assert_status(k3huf_decode(&decoder, &io), K3HUF_OK);
        }
        for (uint32_t block = 0; block < 3; block++) {
            const size_t begin = at.coded + get(run + at.filler + 16 + 8 * block) / 8u;
            const size_t bits = block == 2 ? at.huf * 8u : get(run + at.filler + 24 + 8 * block);
            const size_t size = block == 2 ? STRIPE - 2u * BLOCK : BLOCK, even = size - size / 2u;
            const size_t coded_end = at.coded + (bits + 7u) / 8u;
            const uint8_t *const raw_at = run + at.plane + block * (BLOCK / 2u);
            uint8_t *const to = out + block * BLOCK;
            k3huf_decoder_need(&decoder, &need);
            assert_int_equal(need.coded_offset, begin);
            assert_int_equal(need.raw_offset, raw_at - run);
            assert_int_equal(need.out_offset, to - out);
            assert_int_equal(need.out_bytes, size);
            const bool in_pieces = (pieces >> block & 1u) != 0;
            if (in_pieces) {
                struct k3huf_io io = {.coded = run + begin,
                                      .coded_size = coded_end - begin,
                                      .raw = raw_at,
                                      .raw_size = even / 3u,
                                      .out = to,
                                      .out_size = size};
                assert_status(k3huf_decode(&decoder, &io), K3HUF_OK);
                assert_ptr_equal(io.out, to); /* nothing is final yet */
                k3huf_decoder_need(&decoder, &need);
                assert_int_equal(need.raw_offset, raw_at + even / 3u - run);
                assert_int_equal(need.out_offset, to - out);
            }
            struct k3huf_io io = {.coded = run + need.coded_offset,
                                  .coded_size = coded_end - (size_t)need.coded_offset,
                                  .raw = run + need.raw_offset,
                                  .raw_size = (size_t)(raw_at + even - run) - (size_t)need.raw_offset,
                                  .out = to,
                                  .out_size = size};
            assert_status(k3huf_decode(&decoder, &io), block == 2 ? K3HUF_DONE : K3HUF_OK);
            assert_ptr_equal(io.out, to + size);
            assert_int_equal(io.raw_size, 0);
            assert_memory_equal(to, raw + block * BLOCK, size);
        }
    }
}

/* Blocks go side by side only as far as all three spans hold them: coded bytes, raw bytes, output, each short by one.
 */
static void spans_one_byte_short(void **state) {
    (void)state;
    static struct k3huf_decoder decoder;
    const struct k3huf_config config = {
        .index = index_memory, .index_size = sizeof index_memory, .workspace = &workspace};
    struct layout at = {0};
    for (uint32_t size = STRIPE; at.huf == 0 || get(run + at.filler + 32) % 8u != 1u; size -= 2) {
        build(13, size, size, LOG2, 0); /* until block 1 ends with the first bit of a byte */
        at = locate(0);
    }
    const size_t coded_end = (get(run + at.filler + 32) + 7u) / 8u;
    for (unsigned lacking = 0; lacking < 4; lacking++) {
        struct k3huf_need need;
        assert_status(k3huf_decoder_init(&decoder, &config), K3HUF_OK);
        for (k3huf_decoder_need(&decoder, &need); need.part != K3HUF_PART_PLANES; k3huf_decoder_need(&decoder, &need)) {
            struct k3huf_io io = {.coded = run + need.coded_offset, .coded_size = (size_t)need.coded_bytes};
            assert_status(k3huf_decode(&decoder, &io), K3HUF_OK);
        }
        struct k3huf_io io = {.coded = run + at.coded,
                              .coded_size = coded_end - (lacking == 1),
                              .raw = run + at.plane,
                              .raw_size = BLOCK - (lacking == 2),
                              .out = out,
                              .out_size = 2u * BLOCK - (lacking == 3)};
        assert_status(k3huf_decode(&decoder, &io), K3HUF_OK);
        assert_ptr_equal(io.out, out + (lacking == 0 ? 2u : 1u) * BLOCK);
        assert_memory_equal(out, raw, (lacking == 0 ? 2u : 1u) * BLOCK);
    }
}

/* The run must fail in stripe 1 in the same way in every mode: with `status`, in `block`, at an offset from `first` to
 * `last`. Stripe 0 comes out; of stripe 1, with two cursors, what lies before the bad block. */
static void fails(const char *what, enum k3huf_status status, uint32_t block, uint64_t first, uint64_t last) {
    static unsigned turn;
    turn++;
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
        if (mode >= K3HUF_FEED_MODES_WHOLE && (mode + turn) % 6 != 0) { continue; }
        const char *name;
        struct k3huf_feed feed = feed_in(mode, &name);
        k3huf_feed_run(&feed);
        const bool in_block = status == K3HUF_E_BLOCK_END || status == K3HUF_E_BLOCK_CRC;
        const size_t produced = STRIPE + (in_block && !feed.one_cursor ? block * BLOCK : 0);
        if (feed.fault != NULL || feed.status != status || feed.place.stripe != 1 || feed.place.block != block ||
            feed.place.offset < first || feed.place.offset > last || feed.produced != produced) {
            fail_msg("%s, %s: %s; \"%s\" instead of \"%s\"; stripe %d, block %d (%d), offset %u (%u to %u), %u bytes "
                     "(%u)",
                     what, name, feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status),
                     k3huf_status_text(status), (int)feed.place.stripe, (int)feed.place.block, (int)block,
                     (unsigned)feed.place.offset, (unsigned)first, (unsigned)last, (unsigned)feed.produced,
                     (unsigned)produced);
        }
        size_t raw_bytes, used;
        assert_non_null(k3huf_reference_decode(run, run_size, out, sizeof out, &raw_bytes, &used));
    }
    memcpy(run, good, run_size);
}

/* A malformed index: the parser and the decoder give the same status and place. */
static void malformed(const char *what, enum k3huf_status status, uint32_t bad, uint32_t block) {
    const struct layout at = locate(1);
    const struct k3huf_stripe_header header = header_of(&at);
    struct k3huf_index index;
    uint32_t got_bad = UINT32_MAX, got_block = UINT32_MAX - 1u;
    const enum k3huf_status got = k3huf_index_read(run + at.filler, 16 + 3 * 8, &header, &index, &got_bad, &got_block);
    if (got != status || got_bad != bad || got_block != block) {
        fail_msg("%s: \"%s\" at %u, block %d", what, k3huf_status_text(got), (unsigned)got_bad, (int)got_block);
    }
    fails(what, status, block, at.filler + bad, at.filler + bad);
}

static void malformed_indexes(void **state) {
    (void)state;
    build(13, 3u * STRIPE, STRIPE, LOG2, 5);
    const struct layout at = locate(1);
    uint8_t *const index = run + at.filler;

    static const uint16_t versions[] = {0, 2, 0x100, 0x101, 0xFFFF};
    for (size_t i = 0; i < UNIT_COUNT(versions); i++) {
        index[4] = (uint8_t)versions[i];
        index[5] = (uint8_t)(versions[i] >> 8);
        fix_crc(&at);
        malformed("version", K3HUF_E_INDEX_VERSION, 4, K3HUF_NO_BLOCK);
    }
    static const uint8_t log2s[] = {0, 11, 21, 31, 32, 64, 255};
    for (size_t i = 0; i < UNIT_COUNT(log2s); i++) {
        index[6] = log2s[i];
        fix_crc(&at);
        malformed("block_log2", K3HUF_E_INDEX_LOG2, 6, K3HUF_NO_BLOCK);
    }
    for (unsigned bit = 0; bit < 8; bit++) {
        index[7] = (uint8_t)(1u << bit);
        fix_crc(&at);
        malformed("flags", K3HUF_E_INDEX_FLAGS, 7, K3HUF_NO_BLOCK);
    }
    static const uint32_t counts[] = {0, 2, 4, 3 + 0x10000, 0x20000003, UINT32_MAX};
    for (size_t i = 0; i < UNIT_COUNT(counts); i++) {
        put(index + 8, counts[i]);
        fix_crc(&at);
        malformed("block count", K3HUF_E_INDEX_COUNT, 8, K3HUF_NO_BLOCK);
    }
    index[6] = 13; /* allowed, but then there are two blocks */
    fix_crc(&at);
    malformed("block count of another block_log2", K3HUF_E_INDEX_COUNT, 8, K3HUF_NO_BLOCK);

    for (unsigned bit = 0; bit < 32; bit += 5) {
        index[12 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
        malformed("index CRC", K3HUF_E_INDEX_CRC, 12, K3HUF_NO_BLOCK);
    }
    for (unsigned bit = 0; bit < 3 * 64; bit += 23) {
        index[16 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
        malformed("entry against the index CRC", K3HUF_E_INDEX_CRC, 12, K3HUF_NO_BLOCK);
    }
}

static void malformed_offsets(void **state) {
    (void)state;
    build(13, 3u * STRIPE, STRIPE, LOG2, 5);
    const struct layout at = locate(1);
    uint8_t *const index = run + at.filler;
    const uint32_t bits = (uint32_t)at.huf * 8u, second = get(index + 24), third = get(index + 32);

    const uint32_t firsts[] = {1, 8, UINT32_MAX};
    for (size_t i = 0; i < UNIT_COUNT(firsts); i++) {
        put(index + 16, firsts[i]);
        fix_crc(&at);
        malformed("first offset not 0", K3HUF_E_INDEX_OFFSET, 16, 0);
    }
    const uint32_t back[] = {0, 1, second - 1u};
    for (size_t i = 0; i < UNIT_COUNT(back); i++) {
        put(index + 32, back[i]);
        fix_crc(&at);
        malformed("offset that goes back", K3HUF_E_INDEX_OFFSET, 32, 2);
    }
    const uint32_t outside[] = {bits, bits + 1u, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < UNIT_COUNT(outside); i++) {
        put(index + 32, outside[i]);
        fix_crc(&at);
        malformed("offset outside the plane", K3HUF_E_INDEX_OFFSET, 32, 2);
    }
    /* Less than one bit a symbol away from the one before. */
    put(index + 24, (BLOCK / 2u) - 1u);
    fix_crc(&at);
    malformed("block without room", K3HUF_E_INDEX_OFFSET, 24, 1);
    put(index + 32, second);
    fix_crc(&at);
    malformed("empty block", K3HUF_E_INDEX_OFFSET, 32, 2);

    /* Plausible, but not where the blocks begin: found by decoding. */
    const struct {
        uint32_t entry, offset;
    } off[] = {{1, second + 1u}, {1, second - 1u}, {1, second + 8u},  {2, third + 1u}, {2, third - 1u},
               {2, third + 16u}, {2, bits - 1u},   {1, second - 24u}, {2, third - 24u}};
    for (size_t i = 0; i < UNIT_COUNT(off); i++) {
        const uint32_t truth = off[i].entry == 1 ? second : third;
        const uint32_t low = truth < off[i].offset ? truth : off[i].offset;
        put(index + 16 + 8 * off[i].entry, off[i].offset);
        fix_crc(&at);
        fails("offset off by some bits", K3HUF_E_BLOCK_END, off[i].entry - 1u, at.coded + low / 8u - 2u,
              at.coded + truth / 8u);
    }
}

static void wrong_block_crcs(void **state) {
    (void)state;
    build(13, 3u * STRIPE, STRIPE, LOG2, 5);
    const struct layout at = locate(1);
    for (uint32_t block = 0; block < 3; block++) {
        const uint64_t begin = at.coded + get(run + at.filler + 16 + 8 * block) / 8u;
        for (unsigned bit = 0; bit < 32; bit += 6) {
            run[at.filler + 20 + 8 * block + bit / 8] ^= (uint8_t)(1u << (bit % 8));
            fix_crc(&at);
            fails("block CRC", K3HUF_E_BLOCK_CRC, block, begin, begin);
        }
        /* The data, instead of its CRC. */
        const size_t bytes[] = {0, 1, BLOCK / 4u, 999};
        for (size_t i = 0; i < UNIT_COUNT(bytes); i++) {
            run[at.plane + block * (BLOCK / 2u) + bytes[i] % 1000u] ^= 0x10;
            fails("raw byte", K3HUF_E_BLOCK_CRC, block, begin, begin);
        }
    }
    run[at.filler - 1] ^= 1; /* the last even byte, which has no partner */
    fails("odd tail", K3HUF_E_BLOCK_CRC, 2, at.coded + get(run + at.filler + 32) / 8u,
          at.coded + get(run + at.filler + 32) / 8u);
}

/* Filler too small for what it begins: the index of a one-stripe run cut by its own pad. */
static void indexes_that_do_not_fit(void **state) {
    (void)state;
    build(13, STRIPE, STRIPE, LOG2, 0);
    const struct layout at = locate(0);
    for (uint32_t pad = 4; pad < 40; pad++) {
        put(run + at.header + 12, pad);
        run_size = at.filler + pad;
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode += mode < 4 ? 1 : 3) {
            const char *name;
            struct k3huf_feed feed = feed_in(mode, &name);
            k3huf_feed_run(&feed);
            const uint64_t bad = at.filler + (pad < 16 ? 0 : 8);
            if (feed.fault != NULL || feed.status != K3HUF_E_INDEX_SIZE || feed.place.stripe != 0 ||
                feed.place.block != K3HUF_NO_BLOCK || feed.place.offset != bad || feed.produced != 0) {
                fail_msg("pad %u, %s: %s; \"%s\" at %u instead of %u", (unsigned)pad, name,
                         feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status),
                         (unsigned)feed.place.offset, (unsigned)bad);
            }
        }
    }
}

/* Without memory for the index it is skipped as filler, malformed or not; with too little, that is said: for any index
 * when the decoder is set up, for this one when it is met. Nothing is written behind the memory. */
static void memory_for_the_index(void **state) {
    (void)state;
    static uint8_t memory[64];
    build(13, STRIPE, STRIPE, LOG2, 9);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE + 2; mode++) {
        const char *name;
        for (size_t size = 0; size <= 41; size++) {
            struct k3huf_feed feed = feed_in(mode, &name);
            memset(memory, CANARY, sizeof memory);
            feed.index = size == 0 ? NULL : memory;
            feed.index_size = size;
            k3huf_feed_run(&feed);
            const enum k3huf_status status = size == 0 || size >= 40 ? K3HUF_DONE
                                             : size < 16             ? K3HUF_E_ARGUMENT
                                                                     : K3HUF_E_INDEX_MEMORY;
            if (feed.fault != NULL || feed.status != status) {
                fail_msg("%u bytes of memory, %s: %s; \"%s\" instead of \"%s\"", (unsigned)size, name,
                         feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status),
                         k3huf_status_text(status));
            }
            for (size_t i = size; i < sizeof memory; i++) {
                if (memory[i] != CANARY) {
                    fail_msg("%u bytes of memory, %s: byte %u was written", (unsigned)size, name, (unsigned)i);
                }
            }
        }
        run[locate(0).filler + 7] = 1; /* flags */
        struct k3huf_feed feed = feed_in(mode, &name);
        feed.index = NULL;
        feed.index_size = 0;
        k3huf_feed_run(&feed);
        assert_null(feed.fault);
        assert_status(feed.status, K3HUF_DONE);
        memcpy(run, good, run_size);
    }
}

/* Skipping the CRC skips no other check. */
static void skipped_crcs(void **state) {
    (void)state;
    build(13, STRIPE, STRIPE, LOG2, 0);
    const struct layout at = locate(0);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
        const char *name;
        struct k3huf_feed feed = feed_in(mode, &name);
        feed.skip_crc = true;
        run[at.filler + 20] ^= 1;
        fix_crc(&at);
        k3huf_feed_run(&feed);
        if (feed.fault != NULL || feed.status != K3HUF_DONE || memcmp(out, raw, raw_size) != 0) {
            fail_msg("%s: %s; \"%s\"", name, feed.fault == NULL ? "" : feed.fault, k3huf_status_text(feed.status));
        }
        run[at.filler + 20] ^= 1; /* now the index's own CRC is wrong */
        k3huf_feed_run(&feed);
        assert_status(feed.status, K3HUF_E_INDEX_CRC);
        put(run + at.filler + 24, get(run + at.filler + 24) + 1u);
        fix_crc(&at);
        k3huf_feed_run(&feed);
        if (feed.status != K3HUF_E_BLOCK_END) {
            fail_msg("%s: \"%s\" instead of a block's end", name, k3huf_status_text(feed.status));
        }
        memcpy(run, good, run_size);
    }
}

/* Damage to an index's magic hides it, and damage to a plane with it: where an index is required that is refused, in
 * every mode and before a byte is given out. */
static void an_index_can_be_required(void **state) {
    (void)state;
    build(13, 2u * STRIPE, STRIPE, LOG2, 0);
    const struct layout at = locate(1);
    for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
        const char *name;
        struct k3huf_feed feed = feed_in(mode, &name);
        feed.require_index = true;
        k3huf_feed_run(&feed);
        if (feed.fault != NULL || feed.status != K3HUF_DONE) {
            fail_msg("%s, whole: \"%s\"", name, k3huf_status_text(feed.status));
        }
        run[at.filler - 1u] ^= 0x80u; /* the last raw byte, and the magic behind it */
        run[at.filler] ^= 0x01u;
        k3huf_feed_run(&feed);
        if (feed.fault != NULL || feed.status != K3HUF_E_INDEX_ABSENT || feed.produced != STRIPE ||
            feed.place.stripe != 1 || feed.place.block != K3HUF_NO_BLOCK || feed.place.offset != at.filler) {
            fail_msg("%s, hidden: %s; \"%s\" after %u bytes", name, feed.fault == NULL ? "" : feed.fault,
                     k3huf_status_text(feed.status), (unsigned)feed.produced);
        }
        memcpy(run, good, run_size);
    }
}

/* What cannot hold an index is refused at the stripe's header: no filler, or no symbol to index. */
static void stripes_that_cannot_have_one(void **state) {
    (void)state;
    static const uint32_t sizes_of[][2] = {{1, 0}, {1, 40}, {2, 0}, {2, 3}, {5000, 0}};
    for (size_t i = 0; i < UNIT_COUNT(sizes_of); i++) {
        build(13, sizes_of[i][0], STRIPE, 0, sizes_of[i][1]);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            const char *name;
            struct k3huf_feed feed = feed_in(mode, &name);
            feed.require_index = true;
            k3huf_feed_run(&feed);
            assert_null(feed.fault);
            assert_status(feed.status, K3HUF_E_INDEX_ABSENT);
            assert_int_equal(feed.produced, 0);
            assert_int_equal(feed.place.offset, locate(0).filler);
        }
    }
    const char *name;
    struct k3huf_feed feed = feed_in(0, &name);
    feed.require_index = true;
    feed.index = NULL;
    k3huf_feed_run(&feed);
    assert_status(feed.status, K3HUF_E_ARGUMENT);
}

/* Each thing that a config may not be; the decoder is in error from then on, and takes nothing. */
static void what_init_refuses(void **state) {
    (void)state;
    static struct k3huf_decoder decoder;
    static const uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    const struct {
        struct k3huf_config config;
        enum k3huf_status status;
    } cases[] = {
        {{.workspace = &workspace}, K3HUF_OK},
        {{.workspace = NULL}, K3HUF_E_ARGUMENT},
        {{.workspace = NULL, .index = index_memory, .index_size = 16}, K3HUF_E_ARGUMENT},
        {{.workspace = &workspace, .index = index_memory, .index_size = 16}, K3HUF_OK},
        {{.workspace = &workspace, .index = index_memory, .index_size = 15}, K3HUF_E_ARGUMENT},
        {{.workspace = &workspace, .index = index_memory, .index_size = 16, .require_index = true}, K3HUF_OK},
        {{.workspace = &workspace, .require_index = true, .index_size = 16}, K3HUF_E_ARGUMENT},
    };
    for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
        struct k3huf_io io = {.coded = bytes, .coded_size = 10};
        struct k3huf_need need;
        assert_status(k3huf_decoder_init(&decoder, &cases[i].config), cases[i].status);
        assert_int_equal(k3huf_where(&decoder)->stripe, K3HUF_NO_STRIPE);
        assert_int_equal(k3huf_where(&decoder)->block, K3HUF_NO_BLOCK);
        assert_int_equal(k3huf_where(&decoder)->offset, 0);
        k3huf_decoder_need(&decoder, &need);
        assert_int_equal(need.part, cases[i].status == K3HUF_OK ? K3HUF_PART_RUN_HEADER : K3HUF_PART_ERROR);
        assert_int_equal(need.coded_offset, 0);
        assert_int_equal(need.coded_bytes, cases[i].status == K3HUF_OK ? K3HUF_RUN_HEADER_BYTES : 0);
        assert_int_equal(need.raw_offset, 0);
        assert_int_equal(need.raw_bytes, 0);
        assert_int_equal(need.out_offset, 0);
        assert_int_equal(need.out_bytes, 0);
        assert_status(k3huf_decode(&decoder, &io), cases[i].status);
        assert_int_equal(io.coded_size, cases[i].status == K3HUF_OK ? 0 : 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(a_good_index_is_read),
        cmocka_unit_test(nothing_to_seal),
        cmocka_unit_test(fillers_without_an_index),
        cmocka_unit_test(single_blocks_decode),
        cmocka_unit_test(many_blocks_decode),
        cmocka_unit_test(bad_blocks_are_zeroed),
        cmocka_unit_test(indexed_runs_decode),
        cmocka_unit_test(indexed_runs_of_all_sizes),
        cmocka_unit_test(more_blocks_than_lanes),
        cmocka_unit_test(blocks_whole_and_in_pieces),
        cmocka_unit_test(spans_one_byte_short),
        cmocka_unit_test(malformed_indexes),
        cmocka_unit_test(malformed_offsets),
        cmocka_unit_test(wrong_block_crcs),
        cmocka_unit_test(indexes_that_do_not_fit),
        cmocka_unit_test(memory_for_the_index),
        cmocka_unit_test(skipped_crcs),
        cmocka_unit_test(an_index_can_be_required),
        cmocka_unit_test(stripes_that_cannot_have_one),
        cmocka_unit_test(what_init_refuses),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
