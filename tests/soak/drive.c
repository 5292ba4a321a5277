/* drive.c - see drive.h. */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "inflight.h"
#include "k3_histogram.h"
#include "k3huf_image.h"
#include "package_merge.h"
#include "rng.h"

static void must(bool good, const char *what) {
    if (!good) {
        (void)fprintf(stderr, "soak: %s\n", what);
        exit(2);
    }
}

/* Sound runs, each with more than one way through the engine. */
static const struct plan {
    const char *name;
    uint32_t raw, stripe, log2;
} plans[] = {
    {"no bytes", 0, 1, 14},
    {"one byte", 1, 1, 14},
    {"three bytes, indexed", 3, 3, 12},
    {"small, no index", 5001, 2001, 0},
    {"small blocks", 300001, 300001, 12},
    {"small blocks, stripes", 400000, 70001, 12},
    {"default blocks", SOAK_RAW_MAX, SOAK_RAW_MAX, 14},
    {"default blocks, stripes", 900001, 400001, 14},
    {"one block a group", 700000, 700000, 16},
    {"no index, chunks", 500003, 500003, 0},
    {"no index, stripes", 600000, 200001, 0},
    {"blocks too large", 600000, 600000, 17},
};
#define PLANS (sizeof plans / sizeof plans[0])

/* Damage to a copy of a run: a byte of it, changed or set, and what must come of that. */
enum where { RUN_HEADER, STRIPE_HEADER, CODED, RAW, INDEX };
static const struct damage {
    const char *name;
    uint32_t plan;
    enum where where;
    uint32_t at;
    uint8_t change;
    uint32_t status[SOAK_STATUSES];
} damages[] = {
    {"run magic", 4, RUN_HEADER, 0, 1, {K3HUF_E_RUN_MAGIC}},
    {"run version", 4, RUN_HEADER, 4, 2, {K3HUF_E_RUN_VERSION}},
    {"code length", 4, RUN_HEADER, 20, 0xF0, {K3HUF_E_CODE_LENGTH}},
    {"stripe magic", 5, STRIPE_HEADER, 0, 1, {K3HUF_E_STRIPE_MAGIC}},
    {"stripe's raw bytes", 6, STRIPE_HEADER, 6, 0xFF, {K3HUF_E_STRIPE_RAW}},
    {"coded plane's size", 6, STRIPE_HEADER, 11, 0x40, {K3HUF_E_STRIPE_CODED}},
    {"index CRC", 6, INDEX, 12, 1, {K3HUF_E_INDEX_CRC}},
    {"index version", 6, INDEX, 4, 1, {K3HUF_E_INDEX_VERSION}},
    {"index hidden", 5, INDEX, 0, 1, {0}},
    {"raw byte, first group", 6, RAW, 5, 1, {K3HUF_E_BLOCK_CRC}},
    {"raw byte, small blocks", 4, RAW, 100000, 1, {K3HUF_E_BLOCK_CRC}},
    {"raw byte, last block", 8, RAW, 349999, 1, {K3HUF_E_BLOCK_CRC}},
    {"raw byte, no index", 9, RAW, 77777, 1, {0}},
    {"coded byte",
     6,
     CODED,
     3333,
     0x10,
     {K3HUF_E_CODE_WORD, K3HUF_E_CODED_SHORT, K3HUF_E_CODED_LONG, K3HUF_E_BLOCK_END, K3HUF_E_BLOCK_CRC}},
};
#define DAMAGES (sizeof damages / sizeof damages[0])
_Static_assert(PLANS + DAMAGES == SOAK_RUNS, "every plan and every damage has its run");

static uint32_t get(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Encode `raw`; returns the size. */
static size_t encode(const struct plan *plan, const uint8_t *raw, uint8_t *run) {
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    struct k3huf_run_header header = {.raw_bytes = plan->raw};
    struct k3huf_encoder encoder;
    size_t at = K3HUF_RUN_HEADER_BYTES;
    for (uint32_t done = 0; done < plan->raw; done += plan->stripe) {
        const uint32_t left = plan->raw - done;
        k3huf_histogram_odd(histogram, raw + done, left < plan->stripe ? left : plan->stripe);
    }
    must(k3huf_code_lengths(histogram, 12, header.codelen) == K3HUF_OK, "no code");
    must(k3huf_encoder_init(&encoder, header.codelen) == K3HUF_OK, "no encoder");
    for (uint32_t done = 0; done < plan->raw; done += plan->stripe) {
        const uint32_t left = plan->raw - done;
        size_t size = 0;
        must(k3huf_encode_stripe(&encoder, header.nstripes++, raw + done, left < plan->stripe ? left : plan->stripe,
                                 plan->log2, run + at, k3huf_stripe_bound(plan->stripe, plan->log2), &size) == K3HUF_OK,
             "a stripe that cannot be encoded");
        at += size;
    }
    k3huf_run_header_write(&header, run);
    return at;
}

/* How many raw bytes go to host memory at once. */
static uint32_t group_bytes(const struct plan *plan, uint32_t stripe_bytes) {
    return plan->log2 == 0 || stripe_bytes < 2u ? 0 : K3HUF_INFLIGHT_SYMBOLS >> plan->log2 << plan->log2 << 1;
}

static void fill_run(struct soak_run *run, const struct plan *plan, const uint8_t *raw) {
    run->raw = malloc(plan->raw + 1u);
    must(run->raw != NULL, "no memory");
    memcpy(run->raw, raw, plan->raw);
    run->raw_size = plan->raw;
    run->stripes = 0;
    for (uint32_t done = 0; done < plan->raw; done += plan->stripe) {
        const uint32_t left = plan->raw - done;
        const uint32_t size = left < plan->stripe ? left : plan->stripe;
        must(run->stripes < SOAK_STRIPES, "too many stripes");
        run->stripe_bytes[run->stripes] = size;
        run->group_bytes[run->stripes] = group_bytes(plan, size);
        run->plain = run->plain || run->group_bytes[run->stripes] == 0;
        run->stripes++;
    }
    if (plan->log2 == 17) { run->status[0] = K3HUF_JOB_E_BLOCK_SIZE; }
}

static void put_damage(struct soak_run *run, const struct damage *damage, uint8_t *bytes) {
    const uint8_t *const stripe = bytes + K3HUF_RUN_HEADER_BYTES;
    const uint32_t raw_bytes = get(stripe + 4), coded = get(stripe + 8);
    const uint64_t begin[] = {0, 288, 304, 304u + coded, 304u + coded + (raw_bytes + 1u) / 2u};
    bytes[begin[damage->where] + damage->at] ^= damage->change;
    run->name = damage->name;
    memcpy(run->status, damage->status, sizeof run->status);
    run->bad_stripe = damage->where == RUN_HEADER ? K3HUF_NO_STRIPE : 0;
    if (damage->status[0] == 0 && damage->where == RAW) { run->raw[2u * damage->at] ^= damage->change; }
    if (damage->status[0] == 0 && damage->where == INDEX) {
        run->plain = true;
        run->group_bytes[0] = 0;
    }
}

static void put_table(struct soak_drive *drive) {
    uint8_t *const table = drive->image;
    k3huf_put32(table + K3HUF_IMAGE_MAGIC, K3HUF_IMAGE_MAGIC_VALUE);
    k3huf_put32(table + K3HUF_IMAGE_VERSION, K3HUF_IMAGE_VERSION_VALUE);
    k3huf_put32(table + K3HUF_IMAGE_LBA_BYTES, 512);
    k3huf_put32(table + K3HUF_IMAGE_ENTRIES, SOAK_RUNS);
    for (uint32_t i = 0; i < SOAK_RUNS; i++) {
        uint8_t *const entry = table + K3HUF_IMAGE_HEAD_BYTES + i * K3HUF_IMAGE_ENTRY_BYTES;
        k3huf_put64(entry + K3HUF_IMAGE_OFFSET, drive->run[i].at);
        k3huf_put64(entry + K3HUF_IMAGE_RUN_BYTES, drive->run[i].bytes);
        k3huf_put64(entry + K3HUF_IMAGE_RAW_BYTES, drive->run[i].raw_size);
        memcpy(entry + K3HUF_IMAGE_NAME, drive->run[i].name, strlen(drive->run[i].name));
    }
    k3huf_put32(table + K3HUF_IMAGE_CRC, k3huf_image_table_crc(table, drive->table_size));
}

void soak_drive_build(struct soak_drive *drive, uint64_t seed) {
    const size_t capacity = (SOAK_RUNS + 1u) * (SOAK_RAW_MAX + 65536u); /* the last one may be written behind */
    struct k3huf_rng rng = {seed};
    uint8_t *const raw = malloc(SOAK_RAW_MAX);
    drive->image = calloc(capacity, 1);
    must(raw != NULL && drive->image != NULL, "no memory");
    drive->table_size = K3HUF_IMAGE_HEAD_BYTES + SOAK_RUNS * K3HUF_IMAGE_ENTRY_BYTES;
    uint64_t at = drive->table_size;
    for (uint32_t i = 0; i < SOAK_RUNS; i++) {
        struct soak_run *const run = &drive->run[i];
        const struct plan *const plan = i < PLANS ? &plans[i] : &plans[damages[i - PLANS].plan];
        at += k3huf_rng_below(&rng, 9000); /* runs begin anywhere */
        k3huf_generate(raw, plan->raw, seed + i, k3huf_k3_histogram);
        *run = (struct soak_run){.name = plan->name, .at = at};
        run->bytes = encode(plan, raw, drive->image + at);
        fill_run(run, plan, raw);
        if (i >= PLANS) { put_damage(run, &damages[i - PLANS], drive->image + at); }
        at += run->bytes;
    }
    drive->size = (at + 4095u) / 4096u * 4096u;
    put_table(drive);
    free(raw);
}

void soak_drive_free(struct soak_drive *drive) {
    for (uint32_t i = 0; i < SOAK_RUNS; i++) {
        free(drive->run[i].raw);
    }
    free(drive->image);
}
