/* bench.c - k3huf_host bench: rates in memory, beside memcpy, the original decoder and libzstd.
 *
 * All rows (bench_rows.h) work on the same bytes and are timed in turn, once each a run, so that a machine that gets
 * slower or faster meanwhile does so for all of them; a ratio is that of two rows of the same run. This file measures
 * and prints; it may not know what a row does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_rows.h"
#include "commands.h"
#include "input.h"
#include "json_print.h"
#include "k3_histogram.h"
#include "kind.h"
#include "options.h"
#include "timing.h"

#define DEFAULT_RUNS 11u
#define MOST_RUNS 1000u
#define MOST_BYTES ((uint64_t)4 << 30)
#define CACHE_BYTES ((uint64_t)4 << 20)
#define MEMORY_BYTES ((uint64_t)64 << 20)
#define SEED 1u
#define LEAST_SECONDS 0.02 /* of one timed run; a row that takes less is repeated in it */
#define MOST_PASSES 1000000.0

static const char made_name[] = "K3 histogram";

#define ALL_ISAS "all"

struct options {
    const char *file;            /* NULL: none */
    uint64_t size;               /* 0: the default ones */
    const struct k3huf_isa *isa; /* NULL: each that this processor can run */
    unsigned runs;
    bool cpu_time;
    bool json;
};

/* One set of bytes, measured. */
struct section {
    const char *data_name;
    const char *isa_name;
    size_t raw_bytes;
    struct k3huf_bench_sizes sizes;
    unsigned *passes;           /* for each row: passes of one timed run */
    struct k3huf_spread *rate;  /* for each row, GB/s of raw bf16 */
    struct k3huf_spread *ratio; /* for each pair */
};

/* ------------------------------------------------------------------------------------------------- measure ---- */

static enum k3huf_exit row_fault(const struct k3huf_bench_row *row, const char *what, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, NULL, NULL, "bench: %s: %s", row->text, what);
}

/* Seconds that `passes` passes of a row take. */
static bool time_row(struct k3huf_bench *bench, const struct k3huf_bench_row *row, unsigned passes, bool cpu_time,
                     double *seconds) {
    double begin = cpu_time ? k3huf_timing_cpu() : k3huf_timing_now();
    bool good = k3huf_bench_run(bench, row, passes);
    *seconds = cpu_time ? (k3huf_timing_cpu() - begin) / row->threads : k3huf_timing_now() - begin;
    *seconds += 1e-9; /* a clock's tick: never 0 */
    return good;
}

/* Every row once, checked; and once more to see how many passes a timed run needs. */
static enum k3huf_exit prepare(struct k3huf_bench *bench, bool cpu_time, unsigned *passes, struct k3huf_fault *fault) {
    for (size_t r = 0; r < k3huf_bench_row_count; r++) {
        const struct k3huf_bench_row *row = &k3huf_bench_rows[r];
        k3huf_bench_spoil(bench);
        if (!k3huf_bench_run(bench, row, 1)) { return row_fault(row, "failed", fault); }
        if (!row->check(bench)) { return row_fault(row, "made wrong bytes", fault); }
        double seconds = 0;
        if (!time_row(bench, row, 1, cpu_time, &seconds)) { return row_fault(row, "failed", fault); }
        double wanted = LEAST_SECONDS / seconds + 1.0;
        passes[r] = (unsigned)(wanted < MOST_PASSES ? wanted : MOST_PASSES);
    }
    return K3HUF_EXIT_OK;
}

static size_t row_number(const char *name) {
    size_t r = 0;
    while (r + 1 < k3huf_bench_row_count && strcmp(k3huf_bench_rows[r].name, name) != 0) {
        r++;
    }
    return r;
}

/* `rate` has a number for each row and run; `ratio` one for each run. */
static enum k3huf_exit measure(struct k3huf_bench *bench, const struct options *options, struct section *section,
                               double *rate, double *ratio, struct k3huf_fault *fault) {
    unsigned runs = options->runs;
    enum k3huf_exit code = prepare(bench, options->cpu_time, section->passes, fault);
    for (unsigned run = 0; run < runs && code == K3HUF_EXIT_OK; run++) {
        for (size_t r = 0; r < k3huf_bench_row_count; r++) {
            double seconds = 0;
            if (!time_row(bench, &k3huf_bench_rows[r], section->passes[r], options->cpu_time, &seconds)) {
                return row_fault(&k3huf_bench_rows[r], "failed", fault);
            }
            rate[r * runs + run] = 1e-9 * (double)section->raw_bytes * section->passes[r] / seconds;
        }
    }
    if (code != K3HUF_EXIT_OK) { return code; }
    for (size_t p = 0; p < k3huf_bench_pair_count; p++) {
        size_t of = row_number(k3huf_bench_pairs[p].of);
        size_t to = row_number(k3huf_bench_pairs[p].to);
        for (unsigned run = 0; run < runs; run++) {
            ratio[run] = rate[of * runs + run] / rate[to * runs + run];
        }
        section->ratio[p] = k3huf_timing_spread(ratio, runs);
    }
    for (size_t r = 0; r < k3huf_bench_row_count; r++) {
        section->rate[r] = k3huf_timing_spread(rate + r * runs, runs);
    }
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------- output ---- */

static double part(size_t bytes, size_t whole) { return (double)bytes / (double)whole; }

static void print_head(const struct options *options) {
    printf("k3huf %s; libzstd %s: %s\n", K3HUF_VERSION, k3huf_bench_zstd_version(), k3huf_bench_zstd_setting);
    printf("GB/s are 10^9 bytes of raw bf16 a second, %s; median, least and most of %u runs\n",
           options->cpu_time ? "processor time" : "time that passed", options->runs);
}

static void print_section(const struct section *section) {
    printf("\n%s: %zu bytes, instruction set %s; run %zu (ratio %.5f), indexed %zu (%.5f), libzstd's high plane %zu "
           "against %zu\n",
           section->data_name, section->raw_bytes, section->isa_name, section->sizes.run,
           part(section->sizes.run, section->raw_bytes), section->sizes.indexed,
           part(section->sizes.indexed, section->raw_bytes), section->sizes.zstd, section->sizes.coded_planes);
    printf("%-38s %8s %8s %8s %8s\n", "", "GB/s", "min", "max", "passes");
    for (size_t r = 0; r < k3huf_bench_row_count; r++) {
        printf("%-38s %8.3f %8.3f %8.3f %8u\n", k3huf_bench_rows[r].text, section->rate[r].median,
               section->rate[r].least, section->rate[r].most, section->passes[r]);
    }
    printf("%-38s %8s %8s %8s\n", "", "ratio", "min", "max");
    for (size_t p = 0; p < k3huf_bench_pair_count; p++) {
        printf("%-38s %8.3f %8.3f %8.3f\n", k3huf_bench_pairs[p].text, section->ratio[p].median,
               section->ratio[p].least, section->ratio[p].most);
    }
}

static json_t *json_spread(const struct k3huf_spread *spread) {
    return json_pack("{s:f, s:f, s:f}", "median", spread->median, "min", spread->least, "max", spread->most);
}

static json_t *json_section(const struct section *section) {
    json_t *rows = json_array();
    json_t *ratios = json_array();
    for (size_t r = 0; r < k3huf_bench_row_count; r++) {
        const struct k3huf_bench_row *row = &k3huf_bench_rows[r];
        (void)json_array_append_new(rows, json_pack("{s:s, s:s, s:i, s:i, s:o}", "name", row->name, "text", row->text,
                                                    "threads", (int)row->threads, "passes", (int)section->passes[r],
                                                    "gb_s", json_spread(&section->rate[r])));
    }
    for (size_t p = 0; p < k3huf_bench_pair_count; p++) {
        const struct k3huf_bench_pair *pair = &k3huf_bench_pairs[p];
        (void)json_array_append_new(ratios,
                                    json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", pair->name, "text", pair->text, "of",
                                              pair->of, "to", pair->to, "ratio", json_spread(&section->ratio[p])));
    }
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:o, s:o}", "isa", section->isa_name, "raw_bytes",
                  (json_int_t)section->raw_bytes, "run_bytes", (json_int_t)section->sizes.run, "indexed_bytes",
                  (json_int_t)section->sizes.indexed, "ratio", part(section->sizes.indexed, section->raw_bytes),
                  "coded_bytes", (json_int_t)section->sizes.coded_planes, "zstd_coded_bytes",
                  (json_int_t)section->sizes.zstd, "rows", rows, "ratios", ratios);
    (void)json_object_set_new(root, "data", k3huf_json_text(section->data_name));
    return root;
}

/* ------------------------------------------------------------------------------------------------ sections ---- */

/* Measure `raw` with one variant and print it, or append it to `list`. */
static enum k3huf_exit bench_isa(const struct options *options, const struct k3huf_isa *isa, const char *name,
                                 const uint8_t *raw, size_t raw_bytes, json_t *list, struct k3huf_fault *fault) {
    struct k3huf_bench *bench = k3huf_bench_new(isa, raw, raw_bytes, fault);
    if (bench == NULL) { return fault->code; }
    struct section section = {.data_name = name, .isa_name = isa->name, .raw_bytes = raw_bytes};
    k3huf_bench_sizes(bench, &section.sizes);
    section.passes = calloc(k3huf_bench_row_count, sizeof *section.passes);
    section.rate = calloc(k3huf_bench_row_count, sizeof *section.rate);
    section.ratio = calloc(k3huf_bench_pair_count, sizeof *section.ratio);
    double *rate = calloc(k3huf_bench_row_count * options->runs, sizeof *rate);
    double *ratio = calloc(options->runs, sizeof *ratio);
    enum k3huf_exit code =
        section.passes != NULL && section.rate != NULL && section.ratio != NULL && rate != NULL && ratio != NULL
            ? measure(bench, options, &section, rate, ratio, fault)
            : k3huf_fault_memory(fault, k3huf_bench_row_count * options->runs * sizeof *rate);
    k3huf_bench_free(bench);
    if (code == K3HUF_EXIT_OK) {
        if (list != NULL) {
            (void)json_array_append_new(list, json_section(&section));
        } else {
            print_section(&section);
        }
    }
    free(section.passes);
    free(section.rate);
    free(section.ratio);
    free(rate);
    free(ratio);
    return code;
}

static enum k3huf_exit bench_bytes(const struct options *options, const char *name, const uint8_t *raw,
                                   size_t raw_bytes, json_t *list, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    const struct k3huf_isa *isa = NULL;
    if (options->isa != NULL) { return bench_isa(options, options->isa, name, raw, raw_bytes, list, fault); }
    for (unsigned i = 0; code == K3HUF_EXIT_OK && (isa = k3huf_isa_choice(i)) != NULL; i++) {
        code = bench_isa(options, isa, name, raw, raw_bytes, list, fault);
    }
    return code;
}

static enum k3huf_exit bench_made(const struct options *options, uint64_t size, json_t *list,
                                  struct k3huf_fault *fault) {
    uint8_t *raw = malloc((size_t)size);
    if (raw == NULL) { return k3huf_fault_memory(fault, size); }
    k3huf_generate(raw, (size_t)size, SEED, k3huf_k3_histogram);
    enum k3huf_exit code = bench_bytes(options, made_name, raw, (size_t)size, list, fault);
    free(raw);
    return code;
}

/* The front of a file. */
static enum k3huf_exit bench_input(const struct options *options, struct k3huf_input *input, json_t *list,
                                   struct k3huf_fault *fault) {
    uint64_t most = options->size == 0 ? MEMORY_BYTES : options->size;
    size_t size = (size_t)(input->size < most ? input->size : most);
    if (size == 0) { return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, input->name, NULL, "is empty"); }
    uint8_t *raw = malloc(size);
    size_t got = 0;
    enum k3huf_exit code =
        raw == NULL ? k3huf_fault_memory(fault, size) : k3huf_input_read_at(input, 0, raw, size, &got, fault);
    if (code == K3HUF_EXIT_OK && got != size) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_IO, input->name, NULL, "changed while it was read");
    }
    if (code == K3HUF_EXIT_OK) { code = bench_bytes(options, input->name, raw, size, list, fault); }
    free(raw);
    return code;
}

/* Whether it is weights that can be measured. */
static enum k3huf_exit check_input(struct k3huf_input *input, struct k3huf_fault *fault) {
    enum k3huf_kind kind = K3HUF_KIND_BYTES;
    enum k3huf_exit code = k3huf_input_slurp(input, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_kind_of(input, &kind, fault); }
    return code == K3HUF_EXIT_OK && kind != K3HUF_KIND_BYTES
               ? k3huf_kind_refuse(input, kind, "bench takes bf16 weights", fault)
               : code;
}

static enum k3huf_exit bench_all(const struct options *options, json_t *list, struct k3huf_fault *fault) {
    struct k3huf_input input = {.size = 0};
    enum k3huf_exit code = K3HUF_EXIT_OK;
    /* A file that cannot be used is known before minutes are spent. */
    if (options->file != NULL) {
        code = k3huf_input_open(&input, options->file, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        code = check_input(&input, fault);
        if (code != K3HUF_EXIT_OK) {
            k3huf_input_close(&input);
            return code;
        }
    }
    if (list == NULL) { print_head(options); }
    if (options->size != 0) {
        code = bench_made(options, options->size, list, fault);
    } else {
        code = bench_made(options, CACHE_BYTES, list, fault);
        code = code == K3HUF_EXIT_OK ? bench_made(options, MEMORY_BYTES, list, fault) : code;
    }
    if (options->file != NULL) {
        code = code == K3HUF_EXIT_OK ? bench_input(options, &input, list, fault) : code;
        k3huf_input_close(&input);
    }
    return code;
}

static enum k3huf_exit bench_json(const struct options *options, struct k3huf_fault *fault) {
    json_t *list = json_array();
    if (list == NULL) { return k3huf_json_print(NULL, fault); }
    enum k3huf_exit code = bench_all(options, list, fault);
    if (code != K3HUF_EXIT_OK) {
        json_decref(list);
        return code;
    }
    return k3huf_json_print(json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "version", K3HUF_VERSION, "time",
                                      options->cpu_time ? "cpu" : "wall", "zstd_version", k3huf_bench_zstd_version(),
                                      "zstd_setting", k3huf_bench_zstd_setting, "runs", (int)options->runs, "sections",
                                      list),
                            fault);
}

/* ------------------------------------------------------------------------------------------------- command ---- */

/* The variant to use, NULL for all of them. */
static enum k3huf_exit isa_option(const char *name, const struct k3huf_isa **isa, struct k3huf_fault *fault) {
    *isa = NULL;
    if (strcmp(name, ALL_ISAS) == 0) { return K3HUF_EXIT_OK; }
    for (unsigned i = 0; (*isa = k3huf_isa_choice(i)) != NULL && strcmp((*isa)->name, name) != 0; i++) {}
    if (*isa == NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "--isa must be " ALL_ISAS " or a variant that this processor can run, not '%s'", name);
    }
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit run_bench(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct options chosen = {.runs = DEFAULT_RUNS, .isa = k3huf_isa()};
    uint64_t runs = DEFAULT_RUNS;
    const char *isa = NULL;
    const struct k3huf_option options[] = {{"json", 0, K3HUF_OPTION_ON, &chosen.json, 0, 0},
                                           {"runs", 0, K3HUF_OPTION_NUMBER, &runs, 1, MOST_RUNS},
                                           {"size", 0, K3HUF_OPTION_NUMBER, &chosen.size, 1, MOST_BYTES},
                                           {"isa", 0, K3HUF_OPTION_TEXT, &isa, 0, 0},
                                           {"cpu-time", 0, K3HUF_OPTION_ON, &chosen.cpu_time, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    chosen.runs = (unsigned)runs;
    if (isa != NULL) { code = isa_option(isa, &chosen.isa, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_option_operands(argc, argv, 0, 1, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    chosen.file = argc > optind ? argv[optind] : NULL;
    return chosen.json ? bench_json(&chosen, fault) : bench_all(&chosen, NULL, fault);
}

const struct k3huf_command k3huf_command_bench = {
    "bench", "measure decode and pack rates beside memcpy, the original decoder and libzstd",
    "usage: k3huf_host bench [OPTIONS] [FILE]\n"
    "Measure in memory, in GB/s of raw bf16: memcpy; the original single-symbol decoder; libzstd, set up to do\n"
    "without matches, on the odd bytes, and the merge with the even ones; the k3huf decoder in each way it can work;\n"
    "packing, and libzstd's level 1 on the odd bytes. A row has all that decoding takes: headers, tables, planes. The\n"
    "bytes are made from the K3 weights' histogram, 4M (in the cache) and 64M (from memory); then comes the front of\n"
    "FILE, raw bf16 weights. Every row is checked once, then timed in turn with the others. A ratio is taken run by "
    "run.\n\n"
    "      --size BYTES  bytes to use, K, M or G may follow (default: 4M and 64M, of FILE 64M at most)\n"
    "      --isa NAME    instruction set variant to measure (default: the one that the other commands use), or all:\n"
    "                    each that this processor can run\n"
    "      --runs N      timed runs of each row, 1 ... 1000 (default 11)\n"
    "      --cpu-time    measure the time for which threads ran, not the time that passed: for a machine that others "
    "use\n"
    "                    too. Two threads then show nothing of how well they run side by side\n"
    "      --json        the same figures as one JSON object\n"
    "  -h, --help        print this\n",
    run_bench};
