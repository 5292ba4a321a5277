/* plan.c - k3huf_host plan: does compression pay? The two ledgers, compressed bytes and drive on one side, decode rate
 * and cores on the other, always together.
 *
 *   R  raw bytes of FILE: one pass reads all of them     D  the drive's rate, bytes a second
 *   q  ratio: bytes of the run / R                        d  decode rate of one core, raw bytes a second
 *                                                         N  cores
 *
 *   seconds raw         R / D
 *   seconds drive       q R / D
 *   seconds decode      R / (N d)
 *   seconds compressed  max(drive, decode): the drive reads ahead while cores decode
 *   limit               drive where drive >= decode, else decode
 *   speed-up            raw / compressed
 *   break-even          N d = D: d = D / N a core, or ceil(D / d) cores; with less, raw is faster
 *   full gain           N d = D / q: ceil(D / (q d)) cores; more gain nothing, the speed-up is 1 / q
 *
 * With q >= 1 the run is no smaller, and there is neither break-even nor gain.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "input.h"
#include "json_print.h"
#include "kind.h"
#include "memory_run.h"
#include "options.h"
#include "timing.h"

#define SAMPLE_BYTES ((size_t)64 << 20) /* of a larger file this much is measured, */
#define PIECE_BYTES ((size_t)1 << 20)   /* in pieces of this size, evenly spaced over it */
#define TIMED_RUNS 7u
#define LEAST_SECONDS 0.02 /* of a timed run */
#define MOST_CORES 65536u
#define GIGA 1e9

struct options {
    const char *file;
    double drive; /* GB/s */
    uint64_t cores;
    double decode; /* GB/s of a core; 0: to be measured */
    bool json;
};

/* What is known of FILE. */
struct subject {
    bool is_run;
    bool indexed;
    uint64_t raw_bytes;
    double ratio;
    size_t sampled; /* raw bytes that the ratio of a raw file, and the decode rate, come from */
    /* A run of one stripe, cut out or made, to measure the decode rate on. */
    uint8_t *run;
    size_t run_bytes;
};

struct ledger {
    double raw;
    double drive;
    double decode;
    double compressed;
    double speed_up;
    bool drive_limits;
    double break_even;       /* GB/s of a core */
    double break_even_cores; /* 0: there is none */
    double full_cores;       /* 0: there is none */
};

/* ------------------------------------------------------------------------------------------------- subject ---- */

static enum k3huf_exit read_exactly(struct k3huf_input *input, uint64_t offset, uint8_t *to, size_t size,
                                    const struct k3huf_place *place, struct k3huf_fault *fault) {
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read_at(input, offset, to, size, &got, fault);
    if (code == K3HUF_EXIT_OK && got != size) {
        code =
            k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, place, "%s", k3huf_status_text(K3HUF_E_TRUNCATED));
    }
    return code;
}

static enum k3huf_exit corrupt(const struct k3huf_input *input, uint32_t stripe, uint64_t offset,
                               enum k3huf_status status, struct k3huf_fault *fault) {
    const struct k3huf_place place = {stripe, K3HUF_NO_BLOCK, offset};
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, &place, "%s", k3huf_status_text(status));
}

/* The run's first stripe as a run of its own, without the filler behind an index: there can be 4 GiB of it. */
static enum k3huf_exit cut_out(struct subject *subject, struct k3huf_input *input, struct k3huf_run_header header,
                               struct k3huf_stripe_header stripe, struct k3huf_fault *fault) {
    const uint32_t index_most = k3huf_index_bytes(stripe.raw_bytes, K3HUF_BLOCK_LOG2_MIN);
    const struct k3huf_place place = {0, K3HUF_NO_BLOCK, K3HUF_RUN_HEADER_BYTES};
    if (stripe.pad > index_most) { stripe.pad = index_most; }
    size_t stripe_bytes = (size_t)k3huf_stripe_bytes(&stripe);
    uint32_t index_bytes = 0;
    uint32_t bad = 0;
    subject->run_bytes = K3HUF_RUN_HEADER_BYTES + stripe_bytes;
    subject->run = malloc(subject->run_bytes);
    if (subject->run == NULL) { return k3huf_fault_memory(fault, subject->run_bytes); }
    header.raw_bytes = stripe.raw_bytes;
    header.nstripes = 1;
    k3huf_run_header_write(&header, subject->run);
    enum k3huf_exit code =
        read_exactly(input, K3HUF_RUN_HEADER_BYTES, subject->run + K3HUF_RUN_HEADER_BYTES, stripe_bytes, &place, fault);
    k3huf_stripe_header_write(&stripe, 0, subject->run + K3HUF_RUN_HEADER_BYTES);
    if (code == K3HUF_EXIT_OK) {
        subject->sampled = stripe.raw_bytes;
        /* What is wrong with an index shows when it is decoded. */
        (void)k3huf_index_probe(subject->run + subject->run_bytes - stripe.pad, stripe.pad, &stripe, &index_bytes,
                                &bad);
        subject->indexed = index_bytes != 0;
    }
    return code;
}

static enum k3huf_exit look_at_run(struct subject *subject, struct k3huf_input *input, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    struct k3huf_run_header header;
    struct k3huf_stripe_header first = {0};
    uint64_t offset = K3HUF_RUN_HEADER_BYTES;
    uint64_t raw_before = 0;
    uint32_t bad = 0;
    const struct k3huf_place front = {K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, 0};
    enum k3huf_exit code = read_exactly(input, 0, bytes, sizeof bytes, &front, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    enum k3huf_status status = k3huf_run_header_read(bytes, &header, &bad);
    if (status != K3HUF_OK) { return corrupt(input, K3HUF_NO_STRIPE, bad, status, fault); }
    for (uint32_t i = 0; i < header.nstripes; i++) {
        struct k3huf_stripe_header stripe;
        const struct k3huf_place place = {i, K3HUF_NO_BLOCK, offset};
        code = read_exactly(input, offset, bytes, K3HUF_STRIPE_HEADER_BYTES, &place, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        status = k3huf_stripe_header_read(bytes, &header, i, raw_before, &stripe, &bad);
        if (status != K3HUF_OK) { return corrupt(input, i, offset + bad, status, fault); }
        first = i == 0 ? stripe : first;
        raw_before += stripe.raw_bytes;
        offset += k3huf_stripe_bytes(&stripe);
    }
    if (offset > input->size) { return corrupt(input, header.nstripes - 1, input->size, K3HUF_E_TRUNCATED, fault); }
    subject->raw_bytes = header.raw_bytes;
    if (header.raw_bytes == 0) { return K3HUF_EXIT_OK; }
    subject->ratio = (double)offset / (double)header.raw_bytes;
    return cut_out(subject, input, header, first, fault);
}

/* Pack a raw file, or a sample of a large one. */
static enum k3huf_exit look_at_raw(struct subject *subject, struct k3huf_input *input, struct k3huf_fault *fault) {
    bool whole = input->size <= SAMPLE_BYTES;
    size_t pieces = whole ? 1 : SAMPLE_BYTES / PIECE_BYTES;
    size_t piece = whole ? (size_t)input->size : PIECE_BYTES;
    size_t capacity = k3huf_memory_bound(pieces * piece, K3HUF_STRIPE_RAW_MAX, K3HUF_BLOCK_LOG2_DEFAULT);
    subject->raw_bytes = input->size;
    if (input->size == 0) { return K3HUF_EXIT_OK; }
    subject->sampled = pieces * piece;
    uint8_t *raw = malloc(subject->sampled);
    subject->run = malloc(capacity);
    enum k3huf_exit code = raw == NULL || subject->run == NULL
                               ? k3huf_fault_memory(fault, subject->sampled + (uint64_t)capacity)
                               : K3HUF_EXIT_OK;
    for (size_t i = 0; i < pieces && code == K3HUF_EXIT_OK; i++) {
        uint64_t offset = whole ? 0 : (input->size - piece) / (pieces - 1) * i / 2 * 2; /* even: high bytes are odd */
        size_t got = 0;
        code = k3huf_input_read_at(input, offset, raw + i * piece, piece, &got, fault);
        if (code == K3HUF_EXIT_OK && got != piece) { code = k3huf_input_changed(input, offset + got, fault); }
    }
    if (code == K3HUF_EXIT_OK) {
        subject->run_bytes = k3huf_memory_pack(k3huf_isa(), raw, subject->sampled, K3HUF_STRIPE_RAW_MAX,
                                               K3HUF_BLOCK_LOG2_DEFAULT, subject->run);
        subject->ratio = (double)subject->run_bytes / (double)subject->sampled;
        subject->indexed = subject->sampled > 1;
        if (subject->run_bytes == 0) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, input->name, NULL, "cannot be packed");
        }
    }
    free(raw);
    return code;
}

static enum k3huf_exit look_at(struct subject *subject, const char *file, struct k3huf_fault *fault) {
    struct k3huf_input input;
    enum k3huf_kind kind = K3HUF_KIND_BYTES;
    enum k3huf_exit code = k3huf_input_open(&input, file, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_input_slurp(&input, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_kind_of(&input, &kind, fault); }
    if (code == K3HUF_EXIT_OK) {
        subject->is_run = kind == K3HUF_KIND_RUN;
        code = subject->is_run            ? look_at_run(subject, &input, fault)
               : kind == K3HUF_KIND_BYTES ? look_at_raw(subject, &input, fault)
                                          : k3huf_kind_refuse(&input, kind, "plan takes bf16 weights or a run", fault);
    }
    if (code == K3HUF_EXIT_OK && subject->raw_bytes == 0) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_USAGE, file, NULL, "holds no weights");
    }
    k3huf_input_close(&input);
    return code;
}

/* ------------------------------------------------------------------------------------------------- measure ---- */

static enum k3huf_status decode_once(struct k3huf_memory_decoder *decoder, const struct subject *subject,
                                     uint8_t *out) {
    return k3huf_memory_decode(k3huf_isa(), decoder, subject->run, subject->run_bytes, out, subject->sampled);
}

/* Decode rate of one core in GB/s, with all checks that the run allows. Processor time: what other programs take of the
 * core now is not what it can do. */
static enum k3huf_exit measure(const struct subject *subject, const char *file, double *rate,
                               struct k3huf_fault *fault) {
    struct k3huf_memory_decoder *decoder = calloc(1, sizeof *decoder);
    uint8_t *out = malloc(subject->sampled);
    size_t index_size = k3huf_index_bytes(K3HUF_STRIPE_RAW_MAX, K3HUF_BLOCK_LOG2_MIN);
    uint8_t *index = malloc(index_size);
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (decoder == NULL || out == NULL || index == NULL) {
        code = k3huf_fault_memory(fault, subject->sampled + (uint64_t)index_size);
    } else {
        decoder->index = index;
        decoder->index_size = index_size;
        enum k3huf_status status = decode_once(decoder, subject, out);
        if (status != K3HUF_DONE) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file, k3huf_where(&decoder->decoder), "%s",
                                   k3huf_status_text(status));
        }
    }
    if (code == K3HUF_EXIT_OK) {
        double sample[TIMED_RUNS];
        for (unsigned i = 0; i < TIMED_RUNS; i++) {
            double passes = 0;
            double seconds = 0;
            double begin = k3huf_timing_cpu();
            do {
                (void)decode_once(decoder, subject, out);
                passes++;
                seconds = k3huf_timing_cpu() - begin;
            } while (seconds < LEAST_SECONDS);
            sample[i] = (double)subject->sampled * passes / seconds / GIGA;
        }
        *rate = k3huf_timing_spread(sample, TIMED_RUNS).median;
    }
    free(index);
    free(out);
    free(decoder);
    return code;
}

/* -------------------------------------------------------------------------------------------------- ledger ---- */

static void fill_ledger(struct ledger *ledger, const struct options *options, const struct subject *subject,
                        double decode) {
    double gigabytes = (double)subject->raw_bytes / GIGA;
    double cores = (double)options->cores;
    ledger->raw = gigabytes / options->drive;
    ledger->drive = subject->ratio * gigabytes / options->drive;
    ledger->decode = gigabytes / (cores * decode);
    ledger->drive_limits = ledger->drive >= ledger->decode;
    ledger->compressed = ledger->drive_limits ? ledger->drive : ledger->decode;
    ledger->speed_up = ledger->raw / ledger->compressed;
    ledger->break_even = options->drive / cores;
    ledger->break_even_cores = subject->ratio < 1 ? ceil(options->drive / decode) : 0;
    ledger->full_cores = subject->ratio < 1 ? ceil(options->drive / (subject->ratio * decode)) : 0;
}

static void verdict(char *text, size_t size, const struct options *options, const struct subject *subject,
                    const struct ledger *ledger, double decode) {
    const char *s = options->cores == 1 ? "" : "s";
    const double share = 1 / ledger->speed_up; /* of the time raw; within 0.005 of 1, as printed, nothing is gained */
    if (subject->ratio >= 1) {
        (void)snprintf(text, size, "Compression does not pay: the run is not smaller than the weights.");
    } else if (share >= 1.005) {
        (void)snprintf(text, size,
                       "Compression does not pay: a pass takes %.2f times as long as raw, because %" PRIu64
                       " core%s decode%s %.2f GB/s and the drive reads %.2f; %.0f cores break even.",
                       share, options->cores, s, options->cores == 1 ? "s" : "", (double)options->cores * decode,
                       options->drive, ledger->break_even_cores);
    } else if (share >= 0.995 && ledger->drive_limits) {
        (void)snprintf(text, size,
                       "Compression breaks even: a pass takes as long as raw, and the drive is the limit: the run is "
                       "hardly smaller than the weights.");
    } else if (ledger->drive_limits) {
        (void)snprintf(
            text, size,
            "Compression pays: a pass takes %.2f of its time raw, and the drive is the limit; %.0f of %" PRIu64
            " core%s would do.",
            share, ledger->full_cores, options->cores, s);
    } else if (share < 0.995) {
        (void)snprintf(
            text, size,
            "Compression pays: a pass takes %.2f of its time raw, and decoding is the limit; with %.0f cores "
            "it would take %.2f.",
            share, ledger->full_cores, subject->ratio);
    } else {
        (void)snprintf(
            text, size,
            "Compression breaks even: a pass takes as long as raw, and decoding is the limit; with %.0f cores "
            "it would take %.2f of that.",
            ledger->full_cores, subject->ratio);
    }
}

static const char *rate_source(const struct options *options, const struct subject *subject) {
    return options->decode > 0 ? "given" : subject->indexed ? "measured here, with CRC" : "measured here, no index";
}

static void print_text(const struct options *options, const struct subject *subject, const struct ledger *ledger,
                       double decode, const char *sentence) {
    printf("%s: %s of %" PRIu64 " raw bytes, ratio %.5f", options->file, subject->is_run ? "run" : "weights",
           subject->raw_bytes, subject->ratio);
    if (!subject->is_run && subject->sampled < subject->raw_bytes) {
        printf(", measured on %zu of them", subject->sampled);
    }
    printf("\n%-28s %10.3f GB/s\n", "drive", options->drive);
    printf("%-28s %10.3f GB/s a core, %s; %" PRIu64 " core%s, %.3f GB/s\n", "decode", decode,
           rate_source(options, subject), options->cores, options->cores == 1 ? "" : "s",
           (double)options->cores * decode);
    printf("%-28s %10.6g s\n", "a pass raw", ledger->raw);
    printf("%-28s %10.6g s: drive %.6g s, decode %.6g s\n", "a pass compressed", ledger->compressed, ledger->drive,
           ledger->decode);
    printf("%-28s %10s\n", "limit", ledger->drive_limits ? "drive" : "decode");
    if (subject->ratio < 1) {
        printf("%-28s %10.3f GB/s on each of %" PRIu64 ", or %.0f cores as fast as these\n", "break-even",
               ledger->break_even, options->cores, ledger->break_even_cores);
        printf("%-28s %10.0f\n", "cores for the full gain", ledger->full_cores);
    }
    printf("%s\n", sentence);
}

static enum k3huf_exit print_json(const struct options *options, const struct subject *subject,
                                  const struct ledger *ledger, double decode, const char *sentence,
                                  struct k3huf_fault *fault) {
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:f, s:b, s:f, s:i, s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:s}", "kind",
                  subject->is_run ? "run" : "raw", "raw_bytes", (json_int_t)subject->raw_bytes, "sampled_bytes",
                  (json_int_t)subject->sampled, "ratio", subject->ratio, "indexed", (int)subject->indexed, "drive_gb_s",
                  options->drive, "cores", (int)options->cores, "decode_gb_s_per_core", decode, "decode_source",
                  options->decode > 0 ? "given" : "measured", "seconds_raw", ledger->raw, "seconds_drive",
                  ledger->drive, "seconds_decode", ledger->decode, "seconds_compressed", ledger->compressed, "speed_up",
                  ledger->speed_up, "limit", ledger->drive_limits ? "drive" : "decode", "verdict", sentence);
    (void)json_object_set_new(root, "file", k3huf_json_text(options->file));
    if (subject->ratio < 1) {
        (void)json_object_set_new(root, "break_even_gb_s_per_core", json_real(ledger->break_even));
        (void)json_object_set_new(root, "break_even_cores", json_integer((json_int_t)ledger->break_even_cores));
        (void)json_object_set_new(root, "full_gain_cores", json_integer((json_int_t)ledger->full_cores));
    }
    return k3huf_json_print(root, fault);
}

static enum k3huf_exit plan(const struct options *options, struct k3huf_fault *fault) {
    struct subject subject = {0};
    double decode = options->decode;
    enum k3huf_exit code = look_at(&subject, options->file, fault);
    if (code == K3HUF_EXIT_OK && decode <= 0) { code = measure(&subject, options->file, &decode, fault); }
    free(subject.run);
    if (code == K3HUF_EXIT_OK) {
        struct ledger ledger;
        char sentence[512];
        fill_ledger(&ledger, options, &subject, decode);
        verdict(sentence, sizeof sentence, options, &subject, &ledger, decode);
        if (options->json) { return print_json(options, &subject, &ledger, decode, sentence, fault); }
        print_text(options, &subject, &ledger, decode, sentence);
    }
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

/* A rate in GB/s: a decimal number, digits and one point at most. */
static enum k3huf_exit rate_option(const char *text, const char *name, double *value, struct k3huf_fault *fault) {
    const double least = 0.001;
    const double most = 1e6;
    size_t digits = strspn(text, "0123456789.");
    char *end = NULL;
    double number = strtod(text, &end);
    if (digits == 0 || text[digits] != '\0' || *end != '\0' || !(number >= least && number <= most)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "--%s must be GB/s from %g to %.0f, not '%s'", name,
                               least, most, text);
    }
    *value = number;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit run_plan(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct options chosen = {0};
    const char *drive = NULL;
    const char *decode = NULL;
    const struct k3huf_option options[] = {{"drive", 0, K3HUF_OPTION_TEXT, &drive, 0, 0},
                                           {"cores", 0, K3HUF_OPTION_NUMBER, &chosen.cores, 1, MOST_CORES},
                                           {"decode", 0, K3HUF_OPTION_TEXT, &decode, 0, 0},
                                           {"json", 0, K3HUF_OPTION_ON, &chosen.json, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    if (drive != NULL) { code = rate_option(drive, "drive", &chosen.drive, fault); }
    if (code == K3HUF_EXIT_OK && decode != NULL) { code = rate_option(decode, "decode", &chosen.decode, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_option_operands(argc, argv, 1, 1, fault); }
    if (code == K3HUF_EXIT_OK && (chosen.drive <= 0 || chosen.cores == 0)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "plan: --drive and --cores are needed");
    }
    if (code != K3HUF_EXIT_OK) { return code; }
    chosen.file = argv[optind];
    return plan(&chosen, fault);
}

const struct k3huf_command k3huf_command_plan = {
    "plan", "reckon whether compression pays, for a drive and a number of cores",
    "usage: k3huf_host plan [OPTIONS] --drive GB/S --cores N FILE\n"
    "FILE is raw bf16 weights, which are packed in memory (of more than 64M a sample), or a run. Prints the time of a\n"
    "pass over all of it, raw and compressed, what limits it, what would break even, and a verdict. Model files and\n"
    "archives are refused: not all in them is coded.\n\n"
    "      --drive GB/S   what the drive reads, 10^9 bytes a second\n"
    "      --cores N      cores that decode\n"
    "      --decode GB/S  raw bytes that one of them decodes; measured on FILE, on this machine, if not given\n"
    "                     (a FILE of less than some MiB gives a low rate)\n"
    "      --json         the same figures as one JSON object\n"
    "  -h, --help         print this\n\n"
    "With R raw bytes, a run of q x R bytes, a drive of D and N cores of d raw bytes a second:\n"
    "  raw         R / D\n"
    "  compressed  the longer of drive, q R / D, and decode, R / (N d): both work at once\n"
    "  break-even  N d = D; with less, raw is faster\n"
    "  full gain   N d = D / q; more cores gain nothing\n",
    run_plan};
