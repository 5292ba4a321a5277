/* bench.c - the image k3huf_bench: instructions that decoding takes on AArch64, counted, not timed.
 *
 *     k3huf_bench [MOST]
 *
 * Run it with -icount (port/qemu-virt/run --count): then the core's counter of retired instructions works, and counts
 * the same every time. The image makes bytes from the K3 weights' histogram, packs them with a block index, and counts
 * each part of decoding by itself and all of them together; every result is compared with the bytes it must be. One
 * line a part: instructions per raw byte of bf16, or per table. With MOST, thousandths of an instruction, the exit code
 * is 1 where lanes and merge without CRC take more per raw byte. Anything that fails gives 1 too, wrong arguments 2.
 *
 * What an instruction costs in time is the core's affair; tests/bench/mca estimates that for the hot loop.
 */
#include "encoder.h"
#include "k3_histogram.h"
#include "package_merge.h"
#include "virt.h"

#include <inttypes.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE 2

#define RAW_BYTES (21u * K3HUF_LANES * (2u << K3HUF_BLOCK_LOG2_DEFAULT)) /* whole groups of blocks: about 4 MB */
#define SYMBOLS (RAW_BYTES / 2u)
#define BLOCKS (SYMBOLS >> K3HUF_BLOCK_LOG2_DEFAULT)
#define STRIPE_BYTES (2u * RAW_BYTES) /* 12-bit codes, raw plane, index and slack fit */
#define TABLES 16u                    /* table builds that are counted together */
#define SEED 1u

static uint8_t raw[RAW_BYTES];
static uint8_t stripe_bytes[STRIPE_BYTES];
static uint8_t out[RAW_BYTES];
static uint8_t symbols[SYMBOLS];
static struct k3huf_encoder encoder;
static struct k3huf_table table;
static struct k3huf_workspace workspace;
static struct k3huf_block block[BLOCKS];
static struct k3huf_lane lane[BLOCKS];
static struct k3huf_run_header run = {.raw_bytes = RAW_BYTES, .nstripes = 1};
static struct k3huf_stripe_header stripe;
static struct k3huf_index blocks;
static const uint8_t *coded_plane;
static const uint8_t *raw_plane;

/* ------------------------------------------------------------------------------------------- preparations ---- */

static bool make_stripe(void) {
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    size_t size = 0;
    uint32_t bad = 0;
    uint32_t bad_block = 0;
    k3huf_generate(raw, sizeof raw, SEED, k3huf_k3_histogram);
    k3huf_histogram_odd(histogram, raw, sizeof raw);
    if (k3huf_stripe_bound(RAW_BYTES, K3HUF_BLOCK_LOG2_DEFAULT) > sizeof stripe_bytes ||
        k3huf_code_lengths(histogram, K3HUF_CODE_LENGTH_MAX, run.codelen) != K3HUF_OK ||
        k3huf_encoder_init(&encoder, run.codelen) != K3HUF_OK ||
        k3huf_encode_stripe(&encoder, 0, raw, RAW_BYTES, K3HUF_BLOCK_LOG2_DEFAULT, stripe_bytes, sizeof stripe_bytes,
                            &size) != K3HUF_OK ||
        k3huf_stripe_header_read(stripe_bytes, &run, 0, 0, &stripe, &bad) != K3HUF_OK) {
        return false;
    }
    coded_plane = stripe_bytes + K3HUF_STRIPE_HEADER_BYTES;
    raw_plane = coded_plane + stripe.huf_bytes;
    const uint8_t *filler = raw_plane + k3huf_even_bytes(stripe.raw_bytes);
    return k3huf_index_read(filler, stripe.pad, &stripe, &blocks, &bad, &bad_block) == K3HUF_OK &&
           blocks.nblocks == BLOCKS;
}

static void clear(uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = 0;
    }
}

static bool good_out(void) {
    for (size_t i = 0; i < RAW_BYTES; ++i) {
        if (out[i] != raw[i]) { return false; }
    }
    return true;
}

static bool good_symbols(void) {
    for (size_t i = 0; i < SYMBOLS; ++i) {
        if (symbols[i] != raw[2 * i + 1]) { return false; }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------- the parts ---- */

/* Each does one part. What it works on was made ready before; what is wrong shows in what it has made. */

static bool do_tables(void) {
    enum k3huf_status status = K3HUF_OK;
    for (uint32_t i = 0; i < TABLES && status == K3HUF_OK; ++i) {
        status = k3huf_table_build(&table, run.codelen);
    }
    return status == K3HUF_OK;
}

/* All blocks as lanes that give bare symbols. */
static bool do_lanes(void) {
    k3huf_lanes(&table, &workspace, lane, BLOCKS);
    return true;
}

static bool do_merge(void) {
    k3huf_merge(out, raw_plane, symbols, SYMBOLS);
    return true;
}

static uint32_t crcs[K3HUF_LANES];

static bool do_crc(void) {
    const uint8_t *span[K3HUF_LANES];
    for (uint32_t i = 0; i < K3HUF_LANES; ++i) {
        crcs[i] = 0;
        span[i] = raw + i * (RAW_BYTES / K3HUF_LANES);
    }
    k3huf_crc32c_lanes(crcs, span, RAW_BYTES / K3HUF_LANES, K3HUF_LANES);
    return true;
}

static bool do_blocks(void) { return k3huf_decode_blocks(&table, &workspace, block, BLOCKS, false) == K3HUF_OK; }

static bool do_blocks_crc(void) { return k3huf_decode_blocks(&table, &workspace, block, BLOCKS, true) == K3HUF_OK; }

/* The coded plane from end to end in one lane, as without an index. */
static bool do_one_lane(void) {
    k3huf_lanes(&table, &workspace, lane, 1);
    return true;
}

/* ------------------------------------------------------------------------------------- ready before, right after ----
 */

static void ready_lanes(void) {
    clear(symbols, sizeof symbols);
    for (uint32_t i = 0; i < BLOCKS; ++i) {
        uint32_t begin = k3huf_index_bit(&blocks, i);
        size_t before = (size_t)i << blocks.block_log2;
        size_t left = SYMBOLS - before;
        size_t whole = (size_t)1 << blocks.block_log2;
        lane[i] = (struct k3huf_lane){.coded = coded_plane + begin / 8u,
                                      .coded_size = stripe.huf_bytes - begin / 8u,
                                      .bit = begin % 8u,
                                      .out = symbols + before,
                                      .symbols = left < whole ? left : whole};
    }
}

static void ready_out(void) { clear(out, sizeof out); }

static void ready_blocks(void) {
    clear(out, sizeof out);
    for (uint32_t i = 0; i < BLOCKS; ++i) {
        size_t before = (size_t)i << blocks.block_log2;
        k3huf_block_init(&block[i], &blocks, &stripe, i);
        block[i].coded = coded_plane + block[i].begin / 8u;
        block[i].raw = raw_plane + before;
        block[i].out = out + 2u * before;
    }
}

static void ready_one_lane(void) {
    clear(out, sizeof out);
    lane[0] = (struct k3huf_lane){
        .coded = coded_plane, .coded_size = stripe.huf_bytes, .raw = raw_plane, .out = out, .symbols = SYMBOLS};
}

static void ready_nothing(void) {}

static bool good_table(void) { return table.entry[0] != 0; }

static bool good_crcs(void) {
    for (uint32_t i = 0; i < K3HUF_LANES; ++i) {
        if (crcs[i] != k3huf_crc32c(0, raw + i * (RAW_BYTES / K3HUF_LANES), RAW_BYTES / K3HUF_LANES)) { return false; }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- count ---- */

struct part {
    const char *name;
    void (*ready)(void);
    bool (*work)(void);
    bool (*good)(void);
    uint32_t per; /* what the count is divided by */
    const char *unit;
    bool limited; /* MOST is meant for this one */
};

static const struct part parts[] = {
    {"table build", ready_nothing, do_tables, good_table, TABLES, "table", false},
    {"lanes, bare symbols", ready_lanes, do_lanes, good_symbols, RAW_BYTES, "raw byte", false},
    {"merge", ready_out, do_merge, good_out, RAW_BYTES, "raw byte", false},
    {"CRC, lanes side by side", ready_nothing, do_crc, good_crcs, RAW_BYTES, "raw byte", false},
    {"lanes and merge, CRC off", ready_blocks, do_blocks, good_out, RAW_BYTES, "raw byte", true},
    {"lanes, merge and CRC", ready_blocks, do_blocks_crc, good_out, RAW_BYTES, "raw byte", false},
    {"one lane and merge", ready_one_lane, do_one_lane, good_out, RAW_BYTES, "raw byte", false},
};
#define PARTS (sizeof parts / sizeof parts[0])

/* `most` 0: no limit. */
static bool count(const struct part *part, uint32_t most) {
    part->ready();
    uint32_t before = k3huf_virt_instructions();
    bool good = part->work();
    uint32_t instructions = k3huf_virt_instructions() - before;
    uint64_t thousandths = (UINT64_C(1000) * instructions + part->per / 2u) / part->per;
    if (!good || !part->good()) {
        printf("k3huf_bench: %s: wrong result\n", part->name);
        return false;
    }
    printf("%-26s %6" PRIu64 ".%03" PRIu64 " instructions per %s\n", part->name, thousandths / 1000u,
           thousandths % 1000u, part->unit);
    if (part->limited && most != 0 && thousandths > most) {
        printf("k3huf_bench: %s: more than %" PRIu32 ".%03" PRIu32 "\n", part->name, most / 1000u, most % 1000u);
        return false;
    }
    return true;
}

/* A number from 1 to 999999, else 0. */
static uint32_t number(const char *text) {
    uint32_t value = 0;
    uint32_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 6u; ++digits) {
        value = 10u * value + (uint32_t)(text[digits] - '0');
    }
    return text[digits] == '\0' ? value : 0;
}

int main(int argc, char **argv) {
    uint32_t most = argc == 2 ? number(argv[1]) : 0;
    if (argc > 2 || (argc == 2 && most == 0)) {
        printf("usage: k3huf_bench [MOST]\n");
        return EXIT_USAGE;
    }
    if (!k3huf_virt_instructions_start()) {
        printf("k3huf_bench: no counter of instructions: run with -icount\n");
        return EXIT_FAILED;
    }
    if (!make_stripe()) {
        printf("k3huf_bench: the sample cannot be packed\n");
        return EXIT_FAILED;
    }
    printf("K3 histogram, %u raw bytes, coded plane %" PRIu32 " bytes, %u blocks\n", RAW_BYTES, stripe.huf_bytes,
           BLOCKS);
    bool good = true;
    for (size_t i = 0; i < PARTS; ++i) {
        good = count(&parts[i], most) && good;
    }
    return good ? 0 : EXIT_FAILED;
}
