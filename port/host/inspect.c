/* inspect.c - k3huf_host inspect: what is in a run, for people and, with --json, for programs. Writes no files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive_list.h"
#include "commands.h"
#include "decode_run.h"
#include "dispatch.h"
#include "json_print.h"
#include "model_dir.h"
#include "options.h"
#include "pipeline.h"

struct stripe_facts {
    uint64_t offset;
    struct k3huf_stripe_header header;
    uint32_t nblocks; /* 0: no index */
    uint32_t block_log2;
    uint32_t index_bytes;
};

struct facts {
    const char *name;
    uint64_t run_bytes;
    struct k3huf_run_header header;
    struct stripe_facts *stripe; /* malloc'ed, one for each */
    uint64_t histogram[K3HUF_SYMBOLS];
    /* Sums over all stripes. */
    uint64_t symbols;
    uint64_t even_bytes;
    uint64_t huf_bytes;
    uint64_t pad;
    uint64_t index_bytes;
    uint64_t blocks;
    uint32_t indexed;
    /* Computed from the histogram. */
    double entropy;   /* bits a symbol, order 0 */
    double code_bits; /* bits a symbol, the run's code */
};

/* ------------------------------------------------------------------------------------------------ gathering ---- */

/* A k3huf_take. */
static enum k3huf_exit count(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    (void)fault;
    k3huf_isa()->histogram_odd(context, piece->data, piece->size);
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit read_exactly(struct k3huf_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                    struct k3huf_fault *fault) {
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read_at(input, offset, buffer, size, &got, fault);
    return code == K3HUF_EXIT_OK && got != size ? k3huf_input_changed(input, offset + got, fault) : code;
}

/* The run has been decoded, so it is sound: a header that is not means that the file has changed since. */
static enum k3huf_exit changed(struct k3huf_input *input, const struct k3huf_place *place, enum k3huf_status status,
                               struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, place, "changed while it was read: %s",
                           k3huf_status_text(status));
}

/* The index of a stripe whose filler begins at `filler`. */
static enum k3huf_exit gather_index(struct k3huf_input *input, struct stripe_facts *stripe, uint32_t number,
                                    uint64_t filler, struct k3huf_fault *fault) {
    uint8_t front[K3HUF_INDEX_HEADER_BYTES];
    struct k3huf_place place = {number, K3HUF_NO_BLOCK, filler};
    struct k3huf_index index = {.nblocks = 0};
    const size_t front_size = stripe->header.pad < sizeof front ? stripe->header.pad : sizeof front;
    uint32_t bad = 0;
    enum k3huf_exit code = read_exactly(input, filler, front, front_size, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    enum k3huf_status status = k3huf_index_probe(front, front_size, &stripe->header, &stripe->index_bytes, &bad);
    if (status == K3HUF_OK && stripe->index_bytes > 0) {
        uint8_t *bytes = malloc(stripe->index_bytes);
        if (bytes == NULL) { return k3huf_fault_memory(fault, stripe->index_bytes); }
        code = read_exactly(input, filler, bytes, stripe->index_bytes, fault);
        if (code == K3HUF_EXIT_OK) {
            status = k3huf_index_read(bytes, stripe->index_bytes, &stripe->header, &index, &bad, &place.block);
        }
        free(bytes);
    }
    stripe->nblocks = index.nblocks;
    stripe->block_log2 = index.block_log2;
    return code == K3HUF_EXIT_OK && status != K3HUF_OK ? changed(input, &place, status, fault) : code;
}

static enum k3huf_exit gather_stripes(struct k3huf_input *input, struct facts *facts, struct k3huf_fault *fault) {
    uint64_t offset = K3HUF_RUN_HEADER_BYTES;
    uint64_t raw_before = 0;
    for (uint32_t i = 0; i < facts->header.nstripes; i++) {
        struct stripe_facts *stripe = &facts->stripe[i];
        struct k3huf_place place = {i, K3HUF_NO_BLOCK, offset};
        uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES];
        uint32_t bad = 0;
        enum k3huf_exit code = read_exactly(input, offset, bytes, sizeof bytes, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        enum k3huf_status status =
            k3huf_stripe_header_read(bytes, &facts->header, i, raw_before, &stripe->header, &bad);
        if (status != K3HUF_OK) { return changed(input, &place, status, fault); }
        stripe->offset = offset;
        offset += k3huf_stripe_bytes(&stripe->header);
        raw_before += stripe->header.raw_bytes;
        code = gather_index(input, stripe, i, offset - stripe->header.pad, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        facts->symbols += k3huf_odd_bytes(stripe->header.raw_bytes);
        facts->even_bytes += k3huf_even_bytes(stripe->header.raw_bytes);
        facts->huf_bytes += stripe->header.huf_bytes;
        facts->pad += stripe->header.pad;
        facts->index_bytes += stripe->index_bytes;
        facts->blocks += stripe->nblocks;
        facts->indexed += stripe->nblocks > 0;
    }
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit gather(struct k3huf_input *input, struct facts *facts, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    uint32_t bad = 0;
    facts->name = input->name;
    struct k3huf_run_facts run;
    const struct k3huf_decoding how = {.threads = k3huf_pipeline_processors()};
    enum k3huf_exit code = k3huf_decode_run(input, how, count, facts->histogram, &run, fault);
    facts->run_bytes = run.run_bytes;
    if (code == K3HUF_EXIT_OK) { code = read_exactly(input, 0, bytes, sizeof bytes, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    enum k3huf_status status = k3huf_run_header_read(bytes, &facts->header, &bad);
    if (status != K3HUF_OK) {
        struct k3huf_place place = {K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, bad};
        return changed(input, &place, status, fault);
    }
    facts->stripe = calloc(facts->header.nstripes == 0 ? 1 : facts->header.nstripes, sizeof facts->stripe[0]);
    if (facts->stripe == NULL) {
        return k3huf_fault_memory(fault, (uint64_t)facts->header.nstripes * sizeof facts->stripe[0]);
    }
    code = gather_stripes(input, facts, fault);
    if (code != K3HUF_EXIT_OK || facts->symbols == 0) { return code; }
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        if (facts->histogram[symbol] != 0) {
            double share = (double)facts->histogram[symbol] / (double)facts->symbols;
            facts->entropy -= share * log2(share);
            facts->code_bits += share * facts->header.codelen[symbol];
        }
    }
    return K3HUF_EXIT_OK;
}

/* Run size over raw size, and the least that this split into planes allows for a code of single symbols. */
static double ratio(const struct facts *facts) { return (double)facts->run_bytes / (double)facts->header.raw_bytes; }
static double bound(const struct facts *facts) {
    return ((double)facts->even_bytes + (double)facts->symbols * facts->entropy / 8.0) /
           (double)facts->header.raw_bytes;
}

/* ------------------------------------------------------------------------------------------------- for people ---- */

#define STRIPES_SHOWN 16u /* with more, all but the first and last are left out */

static void print_code(const struct facts *facts) {
    unsigned of_length[K3HUF_CODE_LENGTH_MAX + 1] = {0};
    printf("\ncode length in bits by byte value (. absent)\n     ");
    for (unsigned column = 0; column < 16; column++) {
        printf(" %2x", column);
    }
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        unsigned length = facts->header.codelen[symbol];
        of_length[length]++;
        if (symbol % 16 == 0) { printf("\n  %02x ", symbol); }
        if (length == 0) {
            printf("  .");
        } else {
            printf(" %2u", length);
        }
    }
    printf("\nsymbols of each length:");
    for (unsigned length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        if (of_length[length] != 0) { printf(" %u:%u", length, of_length[length]); }
    }
    printf("\n");
}

static void print_stripes(const struct facts *facts) {
    uint32_t n = facts->header.nstripes;
    printf("\n%10s %14s %12s %12s %12s %10s %8s %10s %8s\n", "stripe", "offset", "raw bytes", "coded plane",
           "raw plane", "filler", "index", "block_log2", "blocks");
    for (uint32_t i = 0; i < n; i++) {
        const struct stripe_facts *stripe = &facts->stripe[i];
        if (n > STRIPES_SHOWN && i == STRIPES_SHOWN - 1) {
            printf("%10s (%" PRIu32 " more)\n", "...", n - STRIPES_SHOWN);
            i = n - 2;
            continue;
        }
        printf("%10" PRIu32 " %14" PRIu64 " %12" PRIu32 " %12" PRIu32 " %12" PRIu32 " %10" PRIu32 " %8" PRIu32, i,
               stripe->offset, stripe->header.raw_bytes, stripe->header.huf_bytes,
               k3huf_even_bytes(stripe->header.raw_bytes), stripe->header.pad, stripe->index_bytes);
        if (stripe->nblocks == 0) {
            printf(" %10s %8s\n", "-", "-");
        } else {
            printf(" %10" PRIu32 " %8" PRIu32 "\n", stripe->block_log2, stripe->nblocks);
        }
    }
    printf("%10s %14s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10s %8" PRIu64 "\n", "all",
           "", facts->header.raw_bytes, facts->huf_bytes, facts->even_bytes, facts->pad, facts->index_bytes, "",
           facts->blocks);
}

static void print_facts(const struct facts *facts) {
    printf("%s: k3huf run, version 1\n", facts->name);
    printf("%-14s %" PRIu64 "\n", "raw bytes", facts->header.raw_bytes);
    printf("%-14s %" PRIu64 "\n", "run bytes", facts->run_bytes);
    if (facts->header.raw_bytes != 0) {
        printf("%-14s %.5f\n", "ratio", ratio(facts));
        printf("%-14s %.5f (order-0 entropy %.5f bits a symbol, this code %.5f)\n", "entropy bound", bound(facts),
               facts->entropy, facts->code_bits);
    }
    printf("%-14s %" PRIu32 "\n", "stripes", facts->header.nstripes);
    if (facts->indexed == 0) {
        printf("%-14s none\n", "block index");
    } else {
        printf("%-14s in %" PRIu32 " of %" PRIu32 " stripes, %" PRIu64 " blocks, %" PRIu64 " bytes\n", "block index",
               facts->indexed, facts->header.nstripes, facts->blocks, facts->index_bytes);
    }
    print_code(facts);
    print_stripes(facts);
}

/* ------------------------------------------------------------------------------------------------ for programs ---- */

static json_t *json_of_stripe(const struct stripe_facts *stripe) {
    json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "offset", (json_int_t)stripe->offset, "raw_bytes",
                               (json_int_t)stripe->header.raw_bytes, "huf_bytes", (json_int_t)stripe->header.huf_bytes,
                               "raw_plane_bytes", (json_int_t)k3huf_even_bytes(stripe->header.raw_bytes), "pad",
                               (json_int_t)stripe->header.pad, "indexed", stripe->nblocks != 0);
    if (stripe->nblocks != 0) {
        (void)json_object_set_new(object, "nblocks", json_integer(stripe->nblocks));
        (void)json_object_set_new(object, "block_log2", json_integer(stripe->block_log2));
        (void)json_object_set_new(object, "index_bytes", json_integer(stripe->index_bytes));
    }
    return object;
}

static enum k3huf_exit print_json(const struct facts *facts, struct k3huf_fault *fault) {
    json_t *codelen = json_array();
    json_t *stripes = json_array();
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        (void)json_array_append_new(codelen, json_integer(facts->header.codelen[symbol]));
    }
    for (uint32_t i = 0; i < facts->header.nstripes; i++) {
        (void)json_array_append_new(stripes, json_of_stripe(&facts->stripe[i]));
    }
    json_t *root = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "version", 1, "raw_bytes",
                             (json_int_t)facts->header.raw_bytes, "run_bytes", (json_int_t)facts->run_bytes, "nstripes",
                             (json_int_t)facts->header.nstripes, "huf_bytes", (json_int_t)facts->huf_bytes,
                             "raw_plane_bytes", (json_int_t)facts->even_bytes, "pad", (json_int_t)facts->pad,
                             "indexed_stripes", (json_int_t)facts->indexed, "blocks", (json_int_t)facts->blocks,
                             "index_bytes", (json_int_t)facts->index_bytes, "codelen", codelen, "stripes", stripes);
    if (root != NULL && facts->header.raw_bytes != 0) {
        (void)json_object_set_new(root, "ratio", json_real(ratio(facts)));
        (void)json_object_set_new(root, "entropy_bound", json_real(bound(facts)));
        (void)json_object_set_new(root, "entropy_bits", json_real(facts->entropy));
        (void)json_object_set_new(root, "code_bits", json_real(facts->code_bits));
    }
    (void)json_object_set_new(root, "file", k3huf_json_text(facts->name));
    return k3huf_json_print(root, fault);
}

/* ------------------------------------------------------------------------------------------------- command ---- */

static enum k3huf_exit inspect(const char *name, bool json, struct k3huf_fault *fault) {
    const struct k3huf_list_options options = {.json = json, .entries = true, .families = true};
    struct k3huf_input input;
    struct facts facts = {0};
    if (k3huf_is_directory(name)) { return k3huf_archive_print_directory(name, &options, fault); }
    enum k3huf_exit code = k3huf_input_open(&input, name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    bool is_archive = false;
    code = k3huf_input_slurp(&input, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_archive_recognise(&input, &is_archive, fault); }
    if (code == K3HUF_EXIT_OK && is_archive) {
        struct k3huf_archive archive;
        code = k3huf_archive_open(&archive, &input, fault);
        if (code == K3HUF_EXIT_OK) { code = k3huf_archive_print(&archive, &options, fault); }
        k3huf_archive_close(&archive);
        k3huf_input_close(&input);
        return code;
    }
    if (code == K3HUF_EXIT_OK) { code = gather(&input, &facts, fault); }
    if (code == K3HUF_EXIT_OK) {
        if (json) {
            code = print_json(&facts, fault);
        } else {
            print_facts(&facts);
        }
    }
    free(facts.stripe);
    k3huf_input_close(&input);
    return code;
}

static enum k3huf_exit run_inspect(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    bool json = false;
    const struct k3huf_option options[] = {{"json", 0, K3HUF_OPTION_ON, &json, 0, 0}, {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    code = k3huf_option_operands(argc, argv, 1, 1, fault);
    return code == K3HUF_EXIT_OK ? inspect(argv[optind], json, fault) : code;
}

const struct k3huf_command k3huf_command_inspect = {
    "inspect", "show what is in a run, an archive or a directory of archives",
    "usage: k3huf_host inspect [OPTIONS] FILE\n"
    "Of an archive, show its entries, and totals by family: tensors whose names differ in numbers only; of a\n"
    "directory, the same of each archive that its manifest names. Of a run:\n"
    "Decode it (- for standard input, which is held in memory) and show its header, code lengths, stripes, ratio "
    "(run\n"
    "bytes over raw bytes) and the order-0 entropy bound of that ratio.\n\n"
    "      --json   the same facts as one JSON object, a directory's one an archive\n"
    "  -h, --help   print this\n",
    run_inspect};
