/* bench.c - k3huf_host bench: rates of one core, in memory, beside the original decoder's.
 *
 * All rows work on the same bytes and are timed in turn, once each a repetition, so that a machine that gets slower or
 * faster meanwhile does so for all of them. A new row: a function and a line in the table below.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "encoder.h"
#include "input.h"
#include "json_print.h"
#include "k3_histogram.h"
#include "options.h"
#include "original.h"
#include "package_merge.h"

#define DEFAULT_RUNS 7u
#define MOST_RUNS 1000u
#define DEFAULT_BYTES ((uint64_t)64 << 20)
#define MOST_BYTES ((uint64_t)4 << 30)
#define SEED 1u

/* What the rows work on. */
struct bench {
    const char *data_name;
    uint8_t *raw;
    size_t raw_bytes;
    uint8_t *run; /* `raw` packed, without an index */
    size_t run_bytes;
    uint8_t *out; /* raw_bytes for a row that decodes; the row before has left it in any state */
    uint8_t *packed;
    size_t packed_capacity;
    struct k3huf_encoder encoder;
    struct k3huf_original original;
    struct k3huf_decoder decoder;
    struct k3huf_workspace workspace;
};

/* --------------------------------------------------------------------------------------------------- rows ---- */

static bool row_memcpy(struct bench *bench) {
    memcpy(bench->out, bench->raw, bench->raw_bytes);
    return true;
}

static bool row_original(struct bench *bench) {
    const uint8_t *at = bench->run;
    struct k3huf_run_header run;
    uint32_t bad = 0;
    if (k3huf_run_header_read(at, &run, &bad) != K3HUF_OK) {
        return false;
    }
    k3huf_original_init(&bench->original, run.codelen);
    at += K3HUF_RUN_HEADER_BYTES;
    uint64_t done = 0;
    for (uint32_t i = 0; i < run.nstripes; i++) {
        struct k3huf_stripe_header stripe;
        if (k3huf_stripe_header_read(at, &run, i, done, &stripe, &bad) != K3HUF_OK) {
            return false;
        }
        const uint8_t *coded = at + K3HUF_STRIPE_HEADER_BYTES;
        if (!k3huf_original_decode(&bench->original, coded, stripe.huf_bytes, coded + stripe.huf_bytes,
                                   bench->out + done, stripe.raw_bytes)) {
            return false;
        }
        at += k3huf_stripe_bytes(&stripe);
        done += stripe.raw_bytes;
    }
    return true;
}

/* The core's decoder as any caller uses it, header to end. */
static bool row_one_lane(struct bench *bench) {
    struct k3huf_config config = {.workspace = &bench->workspace};
    enum k3huf_status status = k3huf_decoder_init(&bench->decoder, &config);
    while (status == K3HUF_OK) {
        struct k3huf_need need;
        k3huf_decoder_need(&bench->decoder, &need);
        struct k3huf_io io = {.coded = bench->run + need.coded_offset,
                              .coded_size = (size_t)need.coded_bytes,
                              .raw = bench->run + need.raw_offset,
                              .raw_size = (size_t)need.raw_bytes,
                              .out = bench->out + need.out_offset,
                              .out_size = bench->raw_bytes - (size_t)need.out_offset};
        status = k3huf_decode(&bench->decoder, &io);
    }
    return status == K3HUF_DONE;
}

static bool pack(struct bench *bench, uint8_t *out, size_t capacity, uint32_t block_log2, size_t *size) {
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    struct k3huf_run_header header = {.raw_bytes = bench->raw_bytes};
    for (size_t done = 0; done < bench->raw_bytes; done += K3HUF_STRIPE_RAW_MAX, header.nstripes++) {
        size_t left = bench->raw_bytes - done;
        k3huf_histogram_odd(histogram, bench->raw + done, left < K3HUF_STRIPE_RAW_MAX ? left : K3HUF_STRIPE_RAW_MAX);
    }
    if (k3huf_code_lengths(histogram, K3HUF_CODE_LENGTH_MAX, header.codelen) != K3HUF_OK ||
        k3huf_encoder_init(&bench->encoder, header.codelen) != K3HUF_OK) {
        return false;
    }
    k3huf_run_header_write(&header, out);
    *size = K3HUF_RUN_HEADER_BYTES;
    for (uint32_t i = 0; i < header.nstripes; i++) {
        size_t done = (size_t)i * K3HUF_STRIPE_RAW_MAX;
        size_t left = bench->raw_bytes - done;
        size_t stripe_size = 0;
        if (k3huf_encode_stripe(&bench->encoder, i, bench->raw + done,
                                left < K3HUF_STRIPE_RAW_MAX ? (uint32_t)left : K3HUF_STRIPE_RAW_MAX, block_log2,
                                out + *size, capacity - *size, &stripe_size) != K3HUF_OK) {
            return false;
        }
        *size += stripe_size;
    }
    return true;
}

static bool row_pack(struct bench *bench) {
    size_t size = 0;
    return pack(bench, bench->packed, bench->packed_capacity, 0, &size) && size == bench->run_bytes;
}

struct row {
    const char *name;
    bool (*function)(struct bench *bench); /* false: failed */
    bool decodes;                          /* leaves the raw bytes in bench->out */
};

static const struct row rows[] = {
    {"memcpy", row_memcpy, true},
    {"original single-symbol decoder", row_original, true},
    {"k3huf, one lane, no index", row_one_lane, true},
    {"encoder with histogram, no index", row_pack, false},
};
#define ROWS (sizeof rows / sizeof rows[0])
#define ROW_ORIGINAL 1u /* the row others are compared with */

/* -------------------------------------------------------------------------------------------------- timing ---- */

static double now_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rates in GB/s of raw bf16. */
struct result {
    double median;
    double least;
    double most;
};

static enum k3huf_exit row_fault(const struct row *row, const char *what, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, NULL, NULL, "bench: %s: %s", row->name, what);
}

static enum k3huf_exit measure(struct bench *bench, unsigned runs, struct result result[ROWS],
                               struct k3huf_fault *fault) {
    double *rate = malloc(ROWS * runs * sizeof *rate);
    if (rate == NULL) {
        return k3huf_fault_memory(fault, ROWS * runs * sizeof *rate);
    }
    /* Once untimed: memory is touched, and the result is checked. */
    for (size_t r = 0; r < ROWS; r++) {
        memset(bench->out, 0xA5, bench->raw_bytes);
        if (!rows[r].function(bench)) {
            free(rate);
            return row_fault(&rows[r], "failed", fault);
        }
        if (rows[r].decodes && memcmp(bench->out, bench->raw, bench->raw_bytes) != 0) {
            free(rate);
            return row_fault(&rows[r], "decoded bytes are wrong", fault);
        }
    }
    for (unsigned run = 0; run < runs; run++) {
        for (size_t r = 0; r < ROWS; r++) {
            double begin = now_seconds();
            if (!rows[r].function(bench)) {
                free(rate);
                return row_fault(&rows[r], "failed", fault);
            }
            rate[r * runs + run] = 1e-9 * (double)bench->raw_bytes / (now_seconds() - begin);
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        double *of_row = rate + r * runs;
        qsort(of_row, runs, sizeof *rate, by_value);
        result[r].median = (of_row[runs / 2] + of_row[(runs - 1) / 2]) / 2.0;
        result[r].least = of_row[0];
        result[r].most = of_row[runs - 1];
    }
    free(rate);
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------- output ---- */

static void print_table(const struct bench *bench, unsigned runs, const struct result result[ROWS]) {
    printf("%s: %zu bytes, packed to %zu (ratio %.5f); %u runs, one thread\n", bench->data_name, bench->raw_bytes,
           bench->run_bytes, (double)bench->run_bytes / (double)bench->raw_bytes, runs);
    printf("%-34s %28s\n", "", "GB/s of raw bf16");
    printf("%-34s %8s %8s %8s %12s\n", "", "median", "min", "max", "x original");
    for (size_t r = 0; r < ROWS; r++) {
        printf("%-34s %8.3f %8.3f %8.3f %12.2f\n", rows[r].name, result[r].median, result[r].least, result[r].most,
               result[r].median / result[ROW_ORIGINAL].median);
    }
}

static enum k3huf_exit print_json(const struct bench *bench, unsigned runs, const struct result result[ROWS],
                                  struct k3huf_fault *fault) {
    json_t *list = json_array();
    for (size_t r = 0; r < ROWS; r++) {
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", rows[r].name, "gb_s_median",
                                              result[r].median, "gb_s_min", result[r].least, "gb_s_max", result[r].most,
                                              "ratio_to_original", result[r].median / result[ROW_ORIGINAL].median));
    }
    json_t *root = json_pack("{s:I, s:I, s:f, s:i, s:o}", "raw_bytes", (json_int_t)bench->raw_bytes, "run_bytes",
                             (json_int_t)bench->run_bytes, "ratio", (double)bench->run_bytes / (double)bench->raw_bytes,
                             "runs", (int)runs, "rows", list);
    /* Left out where the name holds bytes that are not UTF-8, which JSON cannot carry. */
    (void)json_object_set_new(root, "data", json_string(bench->data_name));
    return k3huf_json_print(root, fault);
}

/* ------------------------------------------------------------------------------------------------- command ---- */

/* Raw bytes: all or the front of a file, or made up. */
static enum k3huf_exit get_raw(struct bench *bench, const char *file, uint64_t size, struct k3huf_fault *fault) {
    struct k3huf_input input = {.fd = -1};
    enum k3huf_exit code = K3HUF_EXIT_OK;
    bench->data_name = "made from the K3 histogram";
    if (file != NULL) {
        code = k3huf_input_open(&input, file, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_input_slurp(&input, fault);
        }
        if (code != K3HUF_EXIT_OK) {
            k3huf_input_close(&input);
            return code;
        }
        bench->data_name = input.name;
        size = size == 0 || input.size < size ? input.size : size;
        if (size == 0 || size > MOST_BYTES) {
            k3huf_input_close(&input);
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, file, NULL,
                                   size == 0 ? "is empty" : "is too large (--size)");
        }
    } else if (size == 0) {
        size = DEFAULT_BYTES;
    }
    bench->raw_bytes = (size_t)size;
    bench->raw = malloc(bench->raw_bytes);
    if (bench->raw == NULL) {
        code = k3huf_fault_memory(fault, size);
    } else if (file == NULL) {
        k3huf_generate(bench->raw, bench->raw_bytes, SEED, k3huf_k3_histogram);
    } else {
        size_t got = 0;
        code = k3huf_input_read_at(&input, 0, bench->raw, bench->raw_bytes, &got, fault);
        if (code == K3HUF_EXIT_OK && got != bench->raw_bytes) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_IO, file, NULL, "changed while it was read");
        }
    }
    if (file != NULL) {
        k3huf_input_close(&input);
    }
    return code;
}

static enum k3huf_exit bench_file(const char *file, uint64_t size, unsigned runs, bool json,
                                  struct k3huf_fault *fault) {
    struct bench *bench = calloc(1, sizeof *bench);
    struct result result[ROWS];
    if (bench == NULL) {
        return k3huf_fault_memory(fault, sizeof *bench);
    }
    enum k3huf_exit code = get_raw(bench, file, size, fault);
    if (code == K3HUF_EXIT_OK) {
        /* Stripe by stripe: every one may need its bound. */
        size_t stripes = bench->raw_bytes / K3HUF_STRIPE_RAW_MAX + 1;
        bench->packed_capacity = K3HUF_RUN_HEADER_BYTES + 2 * bench->raw_bytes + 64 * stripes;
        bench->run = malloc(bench->packed_capacity);
        bench->packed = malloc(bench->packed_capacity);
        bench->out = malloc(bench->raw_bytes);
        if (bench->run == NULL || bench->packed == NULL || bench->out == NULL) {
            code = k3huf_fault_memory(fault, 2 * (uint64_t)bench->packed_capacity + bench->raw_bytes);
        }
    }
    if (code == K3HUF_EXIT_OK && !pack(bench, bench->run, bench->packed_capacity, 0, &bench->run_bytes)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, file, NULL, "cannot be packed");
    }
    if (code == K3HUF_EXIT_OK) {
        code = measure(bench, runs, result, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        if (json) {
            code = print_json(bench, runs, result, fault);
        } else {
            print_table(bench, runs, result);
        }
    }
    free(bench->raw);
    free(bench->run);
    free(bench->packed);
    free(bench->out);
    free(bench);
    return code;
}

enum { OPTION_JSON = 256, OPTION_RUNS, OPTION_SIZE };

static enum k3huf_exit run_bench(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"runs", required_argument, NULL, OPTION_RUNS},
                                            {"size", required_argument, NULL, OPTION_SIZE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    bool json = false;
    uint64_t runs = DEFAULT_RUNS;
    uint64_t size = 0;
    optind = 0;
    for (int option; (option = k3huf_option_next(argc, argv, options, fault)) != -1;) {
        enum k3huf_exit code = K3HUF_EXIT_OK;
        switch (option) {
        case OPTION_JSON:
            json = true;
            break;
        case OPTION_RUNS:
            code = k3huf_option_number(optarg, "runs", 1, MOST_RUNS, &runs, fault);
            break;
        case OPTION_SIZE:
            code = k3huf_option_number(optarg, "size", 1, MOST_BYTES, &size, fault);
            break;
        case 'h':
            *help = true;
            return K3HUF_EXIT_OK;
        default:
            return K3HUF_EXIT_USAGE;
        }
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
    }
    enum k3huf_exit code = k3huf_option_operands(argc, argv, 0, 1, fault);
    return code == K3HUF_EXIT_OK ? bench_file(argc > optind ? argv[optind] : NULL, size, (unsigned)runs, json, fault)
                                 : code;
}

const struct k3huf_command k3huf_command_bench = {
    "bench", "measure decode and encode rates of one core",
    "usage: k3huf_host bench [OPTIONS] [FILE]\n"
    "Pack the bytes of FILE, or bytes made from the K3 weights' histogram, in memory and measure in GB/s of raw bf16:\n"
    "memcpy, the original single-symbol decoder, the k3huf decoder (one lane, no index), and the encoder. Every row "
    "is\n"
    "run once untimed and checked, then timed in turn with the others; median, min and max of the runs are shown.\n\n"
    "      --size BYTES  bytes to use, K, M or G may follow (default: all of FILE, or 64M)\n"
    "      --runs N      timed runs of each row, 1 ... 1000 (default 7)\n"
    "      --json        the same figures as one JSON object\n"
    "  -h, --help        print this\n",
    run_bench};
