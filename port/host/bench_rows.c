/* bench_rows.c - the rows of bench (bench_rows.h). May not look at a clock or print.
 *
 * Every decoder's row does all that decoding takes, header to end: parse, build tables, decode, merge. Each thread has
 * a worker with memory of its own, nothing is shared but input and output. A new row: a pass function, a line in the
 * table, and a pair if its ratio to another row says something.
 */
#include "bench_rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "memory_run.h"
#include "original.h"

#define MOST_THREADS 2u
#define SIDE_BY_SIDE K3HUF_LANES /* stripes of the run whose stripes are decoded together: a lane each */
/* Blocks given to the core at once. In the cache any number does; from memory, blocks of one size that begin and end
 * together are the fastest, since lanes that take the next block one by one drift apart. */
#define GROUP_BLOCKS K3HUF_LANES

/* libzstd has no mode for entropy coding alone. What comes nearest with its stable parameters: 7-byte matches looked
 * for with a hash table of 64 entries, which bytes without structure hardly ever have; a target length of 0, because
 * its fast strategy stores literals uncoded otherwise; and one block (128 KiB) a frame, so that the merge finds the
 * plane in the cache. */
#define FRAME_BYTES 131072u
const char k3huf_bench_zstd_setting[] =
    "strategy fast, minMatch 7, hashLog 6, windowLog 17, targetLength 0, frames of 131072 bytes";

struct worker {
    struct k3huf_table table;
    struct k3huf_workspace workspace;
    struct k3huf_block block[GROUP_BLOCKS];
};

struct run {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

struct k3huf_bench {
    const struct k3huf_isa *isa;
    const uint8_t *raw;
    size_t raw_bytes;
    size_t odd;  /* bytes of the high plane */
    size_t even; /* and of the low one */
    struct run plain;
    struct run striped; /* plain, in stripes that are decoded together */
    struct run indexed;
    uint32_t stripe_bytes; /* of `striped` */
    struct k3huf_lane *lane;
    uint8_t *out; /* raw_bytes: what decoders make */
    struct run packed;
    struct k3huf_original original;
    struct k3huf_memory_decoder memory;
    struct worker worker[MOST_THREADS];

    uint8_t *low;  /* the planes by themselves */
    uint8_t *high; /* where rows that split the raw bytes put them */
    uint8_t *split_low;
    uint8_t *split_high;
    uint8_t *frames;
    size_t *frame_size;
    size_t frame_count;
    size_t frames_size;
    uint8_t plane[FRAME_BYTES];
    uint8_t *level1;
    size_t level1_size;
    size_t level1_capacity;
    ZSTD_DCtx *zstd_decoder;
    ZSTD_CCtx *zstd_encoder;
};

/* ------------------------------------------------------------------------------------------------- checks ---- */

static bool check_raw(const struct k3huf_bench *bench) { return memcmp(bench->out, bench->raw, bench->raw_bytes) == 0; }

static bool check_packed(const struct k3huf_bench *bench) {
    return bench->packed.size == bench->indexed.size &&
           memcmp(bench->packed.bytes, bench->indexed.bytes, bench->indexed.size) == 0;
}

static bool check_level1(const struct k3huf_bench *bench) {
    return ZSTD_decompressDCtx(bench->zstd_decoder, bench->out, bench->raw_bytes, bench->level1, bench->level1_size) ==
               bench->odd &&
           memcmp(bench->out, bench->high, bench->odd) == 0 && memcmp(bench->split_low, bench->low, bench->even) == 0;
}

void k3huf_bench_spoil(struct k3huf_bench *bench) {
    memset(bench->out, 0xA5, bench->raw_bytes);
    memset(bench->split_low, 0xA5, bench->even);
    memset(bench->packed.bytes, 0xA5, bench->packed.capacity);
    bench->packed.size = 0;
    bench->level1_size = 0;
}

/* -------------------------------------------------------------------------------------- walk over a run ---- */

struct walk {
    struct k3huf_run_header run;
    struct k3huf_stripe_header stripe;
    uint32_t number;
    uint64_t raw_done; /* in the stripes before this one */
    const uint8_t *at; /* this stripe's header */
    const uint8_t *coded;
    const uint8_t *raw;
    const uint8_t *filler;
};

static bool walk_begin(struct walk *walk, const struct run *run) {
    uint32_t bad = 0;
    *walk = (struct walk){.at = run->bytes + K3HUF_RUN_HEADER_BYTES};
    return k3huf_run_header_read(run->bytes, &walk->run, &bad) == K3HUF_OK;
}

static bool walk_more(const struct walk *walk) { return walk->number < walk->run.nstripes; }

static bool walk_stripe(struct walk *walk) {
    uint32_t bad = 0;
    if (k3huf_stripe_header_read(walk->at, &walk->run, walk->number, walk->raw_done, &walk->stripe, &bad) != K3HUF_OK) {
        return false;
    }
    walk->coded = walk->at + K3HUF_STRIPE_HEADER_BYTES;
    walk->raw = walk->coded + walk->stripe.huf_bytes;
    walk->filler = walk->raw + k3huf_even_bytes(walk->stripe.raw_bytes);
    return true;
}

static void walk_on(struct walk *walk) {
    walk->number++;
    walk->raw_done += walk->stripe.raw_bytes;
    walk->at += k3huf_stripe_bytes(&walk->stripe);
}

/* ------------------------------------------------------------------------------------------ passes: decode ---- */

static bool pass_memcpy(struct k3huf_bench *bench, unsigned part) {
    (void)part;
    memcpy(bench->out, bench->raw, bench->raw_bytes);
    return true;
}

static bool pass_original(struct k3huf_bench *bench, unsigned part) {
    struct walk walk;
    (void)part;
    if (!walk_begin(&walk, &bench->plain)) { return false; }
    k3huf_original_init(&bench->original, walk.run.codelen);
    for (; walk_more(&walk); walk_on(&walk)) {
        if (!walk_stripe(&walk) || !k3huf_original_decode(&bench->original, walk.coded, walk.stripe.huf_bytes, walk.raw,
                                                          bench->out + walk.raw_done, walk.stripe.raw_bytes)) {
            return false;
        }
    }
    return true;
}

static bool pass_zstd(struct k3huf_bench *bench, unsigned part) {
    const uint8_t *frame = bench->frames;
    size_t done = 0;
    (void)part;
    for (size_t i = 0; i < bench->frame_count; i++) {
        size_t size = ZSTD_decompressDCtx(bench->zstd_decoder, bench->plane, FRAME_BYTES, frame, bench->frame_size[i]);
        if (ZSTD_isError(size)) { return false; }
        bench->isa->merge(bench->out + 2 * done, bench->low + done, bench->plane, size);
        frame += bench->frame_size[i];
        done += size;
    }
    if (bench->even > bench->odd) { bench->out[bench->raw_bytes - 1] = bench->low[bench->even - 1]; }
    return done == bench->odd;
}

static bool pass_one_stripe(struct k3huf_bench *bench, unsigned part) {
    (void)part;
    return k3huf_memory_decode(bench->isa, &bench->memory, bench->plain.bytes, bench->plain.size, bench->out,
                               bench->raw_bytes) == K3HUF_DONE;
}

static bool pass_stripes(struct k3huf_bench *bench, unsigned part) {
    struct worker *worker = &bench->worker[part];
    struct walk walk;
    if (!walk_begin(&walk, &bench->striped) || bench->isa->table_build(&worker->table, walk.run.codelen) != K3HUF_OK) {
        return false;
    }
    for (; walk_more(&walk); walk_on(&walk)) {
        if (!walk_stripe(&walk)) { return false; }
        bench->lane[walk.number] = (struct k3huf_lane){.coded = walk.coded,
                                                       .coded_size = walk.stripe.huf_bytes,
                                                       .raw = walk.raw,
                                                       .out = bench->out + walk.raw_done,
                                                       .symbols = k3huf_odd_bytes(walk.stripe.raw_bytes)};
    }
    bench->isa->lanes(&worker->table, &worker->workspace, bench->lane, walk.run.nstripes);
    for (uint32_t i = 0; i < walk.run.nstripes; i++) {
        if (bench->lane[i].status != K3HUF_OK) { return false; }
    }
    if (bench->even > bench->odd) { /* only the last stripe can have an odd size */
        bench->out[bench->raw_bytes - 1] = *bench->lane[walk.run.nstripes - 1].raw;
    }
    return true;
}

/* Blocks `first` ... `last` - 1 of a stripe. */
static bool blocks(const struct k3huf_isa *isa, struct worker *worker, const struct walk *walk,
                   const struct k3huf_index *index, uint32_t first, uint32_t last, bool check_crc, uint8_t *out) {
    while (first < last) {
        uint32_t n = last - first < GROUP_BLOCKS ? last - first : GROUP_BLOCKS;
        for (uint32_t i = 0; i < n; i++) {
            struct k3huf_block *block = &worker->block[i];
            size_t symbols_before = (size_t)(first + i) << index->block_log2;
            k3huf_block_init(block, index, &walk->stripe, first + i);
            block->coded = walk->coded + block->begin / 8;
            block->raw = walk->raw + symbols_before;
            block->out = out + 2 * symbols_before;
        }
        if (isa->decode_blocks(&worker->table, &worker->workspace, worker->block, n, check_crc) != K3HUF_OK) {
            return false;
        }
        first += n;
    }
    return true;
}

static bool indexed(struct k3huf_bench *bench, unsigned part, unsigned parts, bool check_crc) {
    struct worker *worker = &bench->worker[part];
    struct walk walk;
    if (!walk_begin(&walk, &bench->indexed) || bench->isa->table_build(&worker->table, walk.run.codelen) != K3HUF_OK) {
        return false;
    }
    for (; walk_more(&walk); walk_on(&walk)) {
        struct k3huf_index index;
        uint32_t bad = 0;
        uint32_t bad_block = 0;
        if (!walk_stripe(&walk)) { return false; }
        uint8_t *out = bench->out + walk.raw_done;
        if (walk.stripe.raw_bytes == 1) { /* no symbol, hence no index */
            *out = *walk.raw;
            continue;
        }
        if (k3huf_index_read(walk.filler, walk.stripe.pad, &walk.stripe, &index, &bad, &bad_block) != K3HUF_OK ||
            !blocks(bench->isa, worker, &walk, &index, (uint32_t)((uint64_t)index.nblocks * part / parts),
                    (uint32_t)((uint64_t)index.nblocks * (part + 1) / parts), check_crc, out)) {
            return false;
        }
    }
    return true;
}

static bool pass_indexed(struct k3huf_bench *bench, unsigned part) { return indexed(bench, part, 1, false); }

static bool pass_indexed_crc(struct k3huf_bench *bench, unsigned part) { return indexed(bench, part, 1, true); }

static bool pass_indexed_2(struct k3huf_bench *bench, unsigned part) { return indexed(bench, part, 2, false); }

static bool pass_indexed_crc_2(struct k3huf_bench *bench, unsigned part) { return indexed(bench, part, 2, true); }

static bool pass_machine(struct k3huf_bench *bench, unsigned part) {
    (void)part;
    return k3huf_memory_decode(bench->isa, &bench->memory, bench->indexed.bytes, bench->indexed.size, bench->out,
                               bench->raw_bytes) == K3HUF_DONE;
}

/* -------------------------------------------------------------------------------------------- passes: pack ---- */

static bool pass_pack(struct k3huf_bench *bench, unsigned part) {
    (void)part;
    bench->packed.size = k3huf_memory_pack(bench->isa, bench->raw, bench->raw_bytes, K3HUF_STRIPE_RAW_MAX,
                                           K3HUF_BLOCK_LOG2_DEFAULT, bench->packed.bytes);
    return bench->packed.size != 0;
}

static void split(const struct k3huf_bench *bench, uint8_t *low, uint8_t *high) {
    for (size_t i = 0; i < bench->odd; i++) {
        low[i] = bench->raw[2 * i];
        high[i] = bench->raw[2 * i + 1];
    }
    if (bench->even > bench->odd) { low[bench->odd] = bench->raw[2 * bench->odd]; }
}

static bool pass_zstd_pack(struct k3huf_bench *bench, unsigned part) {
    (void)part;
    split(bench, bench->split_low, bench->split_high);
    bench->level1_size =
        ZSTD_compressCCtx(bench->zstd_encoder, bench->level1, bench->level1_capacity, bench->split_high, bench->odd, 1);
    return ZSTD_isError(bench->level1_size) == 0;
}

/* -------------------------------------------------------------------------------------------------- tables ---- */

const struct k3huf_bench_row k3huf_bench_rows[] = {
    {"memcpy", "memcpy", 1, pass_memcpy, check_raw},
    {"original", "original single-symbol decoder", 1, pass_original, check_raw},
    {"zstd", "libzstd, entropy only, and merge", 1, pass_zstd, check_raw},
    {"one_stripe", "one stripe, no index", 1, pass_one_stripe, check_raw},
    {"stripes", "a stripe for each lane, no index", 1, pass_stripes, check_raw},
    {"indexed", "indexed, CRC off", 1, pass_indexed, check_raw},
    {"indexed_crc", "indexed, CRC on", 1, pass_indexed_crc, check_raw},
    {"state_machine", "indexed, CRC on, state machine", 1, pass_machine, check_raw},
    {"indexed_2", "indexed, CRC off, two threads", 2, pass_indexed_2, check_raw},
    {"indexed_crc_2", "indexed, CRC on, two threads", 2, pass_indexed_crc_2, check_raw},
    {"pack", "pack, with index and CRC", 1, pass_pack, check_packed},
    {"zstd_pack", "split, and libzstd level 1", 1, pass_zstd_pack, check_level1},
};
const size_t k3huf_bench_row_count = sizeof k3huf_bench_rows / sizeof k3huf_bench_rows[0];

const struct k3huf_bench_pair k3huf_bench_pairs[] = {
    {"indexed_to_original", "indexed", "original", "indexed, CRC off : original"},
    {"indexed_to_zstd", "indexed", "zstd", "indexed, CRC off : libzstd"},
    {"indexed_to_memcpy", "indexed", "memcpy", "indexed, CRC off : memcpy"},
    {"crc_to_no_crc", "indexed_crc", "indexed", "CRC on : CRC off"},
    {"stripes_to_original", "stripes", "original", "a stripe for each lane : original"},
    {"one_stripe_to_original", "one_stripe", "original", "one stripe : original"},
    {"two_threads_to_one", "indexed_2", "indexed", "two threads : one, CRC off"},
    {"two_threads_to_one_crc", "indexed_crc_2", "indexed_crc", "two threads : one, CRC on"},
    {"pack_to_zstd", "pack", "zstd_pack", "pack : libzstd level 1"},
};
const size_t k3huf_bench_pair_count = sizeof k3huf_bench_pairs / sizeof k3huf_bench_pairs[0];

/* ------------------------------------------------------------------------------------------ ready and done ---- */

const char *k3huf_bench_zstd_version(void) { return ZSTD_versionString(); }

static bool make_run(const struct k3huf_bench *bench, struct run *run, uint32_t stripe_bytes, uint32_t block_log2) {
    run->capacity = k3huf_memory_bound(bench->raw_bytes, stripe_bytes, block_log2);
    run->bytes = malloc(run->capacity);
    run->size = run->bytes == NULL
                    ? 0
                    : k3huf_memory_pack(bench->isa, bench->raw, bench->raw_bytes, stripe_bytes, block_log2, run->bytes);
    return run->size != 0;
}

static bool make_frames(struct k3huf_bench *bench) {
    size_t capacity = ZSTD_compressBound(FRAME_BYTES);
    bench->frame_count = bench->odd / FRAME_BYTES + (bench->odd % FRAME_BYTES != 0);
    bench->frames = malloc(bench->frame_count * capacity + 1);
    bench->frame_size = calloc(bench->frame_count + 1, sizeof *bench->frame_size);
    ZSTD_CCtx *encoder = ZSTD_createCCtx();
    bool good = bench->frames != NULL && bench->frame_size != NULL && encoder != NULL;
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } setting[] = {{ZSTD_c_strategy, ZSTD_fast},
                   {ZSTD_c_minMatch, 7},
                   {ZSTD_c_hashLog, 6},
                   {ZSTD_c_windowLog, 17},
                   {ZSTD_c_targetLength, 0}};
    for (size_t i = 0; good && i < sizeof setting / sizeof setting[0]; i++) {
        good = ZSTD_isError(ZSTD_CCtx_setParameter(encoder, setting[i].parameter, setting[i].value)) == 0;
    }
    for (size_t i = 0; good && i < bench->frame_count; i++) {
        size_t left = bench->odd - i * FRAME_BYTES;
        size_t size = ZSTD_compress2(encoder, bench->frames + bench->frames_size, capacity,
                                     bench->high + i * FRAME_BYTES, left < FRAME_BYTES ? left : FRAME_BYTES);
        good = ZSTD_isError(size) == 0;
        if (good) {
            bench->frame_size[i] = size;
            bench->frames_size += size;
        }
    }
    (void)ZSTD_freeCCtx(encoder);
    return good;
}

struct k3huf_bench *k3huf_bench_new(const struct k3huf_isa *isa, const uint8_t *raw, size_t raw_bytes,
                                    struct k3huf_fault *fault) {
    struct k3huf_bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) {
        (void)k3huf_fault_memory(fault, sizeof *bench);
        return NULL;
    }
    bench->isa = isa;
    bench->raw = raw;
    bench->raw_bytes = raw_bytes;
    bench->odd = raw_bytes / 2;
    bench->even = raw_bytes - bench->odd;
    /* Even sizes, so that no stripe but the last has a byte without a partner. */
    size_t share = (raw_bytes / SIDE_BY_SIDE + 2) / 2 * 2;
    bench->stripe_bytes = share < K3HUF_STRIPE_RAW_MAX ? (uint32_t)share : K3HUF_STRIPE_RAW_MAX;
    bench->lane = calloc(raw_bytes / bench->stripe_bytes + 1, sizeof *bench->lane);
    bench->out = malloc(raw_bytes);
    bench->low = malloc(bench->even);
    bench->split_low = malloc(bench->even);
    bench->high = malloc(bench->odd + 1);
    bench->split_high = malloc(bench->odd + 1);
    bench->level1_capacity = ZSTD_compressBound(bench->odd);
    bench->level1 = malloc(bench->level1_capacity);
    bench->zstd_decoder = ZSTD_createDCtx();
    bench->zstd_encoder = ZSTD_createCCtx();
    bench->memory.index_size = k3huf_index_bytes(K3HUF_STRIPE_RAW_MAX, K3HUF_BLOCK_LOG2_DEFAULT);
    bench->memory.index = malloc(bench->memory.index_size);
    bool good = bench->lane != NULL && bench->out != NULL && bench->low != NULL && bench->split_low != NULL &&
                bench->high != NULL && bench->split_high != NULL && bench->level1 != NULL &&
                bench->zstd_decoder != NULL && bench->zstd_encoder != NULL && bench->memory.index != NULL;
    if (good) {
        split(bench, bench->low, bench->high);
        good = make_run(bench, &bench->plain, K3HUF_STRIPE_RAW_MAX, 0) &&
               make_run(bench, &bench->striped, bench->stripe_bytes, 0) &&
               make_run(bench, &bench->indexed, K3HUF_STRIPE_RAW_MAX, K3HUF_BLOCK_LOG2_DEFAULT) &&
               make_run(bench, &bench->packed, K3HUF_STRIPE_RAW_MAX, K3HUF_BLOCK_LOG2_DEFAULT) && make_frames(bench);
    }
    if (!good) {
        k3huf_bench_free(bench);
        (void)k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "bench: out of memory");
        return NULL;
    }
    return bench;
}

void k3huf_bench_free(struct k3huf_bench *bench) {
    free(bench->plain.bytes);
    free(bench->striped.bytes);
    free(bench->indexed.bytes);
    free(bench->packed.bytes);
    free(bench->lane);
    free(bench->out);
    free(bench->low);
    free(bench->high);
    free(bench->split_low);
    free(bench->split_high);
    free(bench->frames);
    free(bench->frame_size);
    free(bench->level1);
    free(bench->memory.index);
    (void)ZSTD_freeDCtx(bench->zstd_decoder);
    (void)ZSTD_freeCCtx(bench->zstd_encoder);
    free(bench);
}

void k3huf_bench_sizes(const struct k3huf_bench *bench, struct k3huf_bench_sizes *sizes) {
    *sizes = (struct k3huf_bench_sizes){
        .run = bench->plain.size, .indexed = bench->indexed.size, .zstd = bench->frames_size};
    struct walk walk;
    bool good = walk_begin(&walk, &bench->plain);
    for (; good && walk_more(&walk); walk_on(&walk)) {
        good = walk_stripe(&walk);
        sizes->coded_planes += walk.stripe.huf_bytes;
    }
}

/* ------------------------------------------------------------------------------------------------- threads ---- */

struct job {
    struct k3huf_bench *bench;
    const struct k3huf_bench_row *row;
    unsigned part;
    unsigned passes;
    bool good;
};

static void *do_job(void *argument) {
    struct job *job = argument;
    job->good = true;
    for (unsigned i = 0; i < job->passes && job->good; i++) {
        job->good = job->row->pass(job->bench, job->part);
    }
    return NULL;
}

bool k3huf_bench_run(struct k3huf_bench *bench, const struct k3huf_bench_row *row, unsigned passes) {
    struct job job[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    unsigned started = 1; /* this thread does part 0 */
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        job[i] = (struct job){bench, row, i, passes, false};
    }
    while (started < row->threads && pthread_create(&thread[started], NULL, do_job, &job[started]) == 0) {
        started++;
    }
    (void)do_job(&job[0]);
    for (unsigned i = 1; i < started; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    bool good = true;
    for (unsigned i = 0; i < row->threads; i++) {
        good = good && job[i].good;
    }
    return good;
}
