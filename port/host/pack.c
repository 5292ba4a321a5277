/* pack.c - k3huf_host pack: histogram, code, stripes, and the check of what was written (pack.h).
 *
 * Two passes of a pipeline over the input. The first counts odd bytes. The second encodes: work turns one part of a
 * stripe into codes from bit 0 on, in memory of its own; take, in order, shifts them to where the part before ended.
 */
#include "pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "compare.h"
#include "dispatch.h"
#include "large.h"
#include "options.h"
#include "package_merge.h"
#include "pipeline.h"
#include "run_writer.h"

/* Raw bytes of a part; a whole number of blocks. */
#define PART_LOG2 19u

/* A part under way. */
struct part {
    uint32_t stripe;
    uint32_t at; /* its first raw byte in the stripe */
    uint32_t raw_bytes;
    uint8_t *memory; /* malloc'ed, and what is in it: */
    uint8_t *raw;
    struct k3huf_coded_part coded;
    uint64_t histogram[K3HUF_SYMBOLS];
    struct k3huf_fault fault;
};

/* Everything a pack under way holds. */
struct job {
    const struct k3huf_pack_options *options;
    const struct k3huf_isa *isa;
    struct k3huf_input input;
    struct k3huf_run_writer writer;
    struct k3huf_compare compare;
    struct k3huf_run_header header;
    struct k3huf_encoder encoder;
    uint64_t histogram[K3HUF_SYMBOLS];
    uint32_t part_bytes;
    struct part *part; /* malloc'ed, one a slot */
    uint32_t stripe;   /* of the next part to plan */
    uint32_t at;
    /* The stripe that parts are joined to. */
    uint8_t *packed; /* k3huf_large_new(): header, coded plane, raw plane, index */
    uint8_t *even;   /* in it: where the raw plane is gathered, behind the largest coded plane */
    uint8_t *index;
    uint32_t bits; /* of its coded plane */
};

static uint32_t stripe_bytes(const struct job *job, uint32_t stripe) {
    uint64_t left = job->header.raw_bytes - (uint64_t)stripe * job->options->stripe_bytes;
    return left < job->options->stripe_bytes ? (uint32_t)left : job->options->stripe_bytes;
}

static enum k3huf_exit changed(struct job *job, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, job->input.name, NULL, "changed while it was read");
}

/* Memory for one part; `largest` raw bytes. */
static bool new_part(struct part *part, uint32_t largest, uint32_t block_log2) {
    const size_t entries = block_log2 == 0 ? 0 : k3huf_index_bytes(largest, block_log2);
    const size_t even = k3huf_even_bytes(largest);
    part->memory = malloc(largest + k3huf_coded_bound(largest) + even + entries);
    if (part->memory == NULL) { return false; }
    part->raw = part->memory;
    part->coded.entries = block_log2 == 0 ? NULL : part->raw + largest;
    part->coded.even = part->raw + largest + entries;
    part->coded.coded = part->coded.even + even;
    return true;
}

/* Size the run, allocate for its largest stripe and for the parts under way. */
static enum k3huf_exit prepare(struct job *job, struct k3huf_fault *fault) {
    const uint64_t raw_bytes = job->input.size;
    const uint64_t nstripes = raw_bytes / job->options->stripe_bytes + (raw_bytes % job->options->stripe_bytes != 0);
    if (nstripes > UINT32_MAX) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input.name, NULL,
                               "--stripe-size %" PRIu32 " makes more stripes than a run can have",
                               job->options->stripe_bytes);
    }
    job->header.raw_bytes = raw_bytes;
    job->header.nstripes = (uint32_t)nstripes;
    if (nstripes == 0) { return K3HUF_EXIT_OK; }
    const uint32_t largest = stripe_bytes(job, 0);
    const unsigned slots = k3huf_pipeline_slots(job->options->threads);
    const uint32_t part_log2 = job->options->block_log2 + 1u > PART_LOG2 ? job->options->block_log2 + 1u : PART_LOG2;
    job->part_bytes = 1u << part_log2 < largest ? 1u << part_log2 : largest;
    job->packed = k3huf_large_new(k3huf_stripe_bound(largest, job->options->block_log2));
    job->part = calloc(slots, sizeof *job->part);
    bool good = job->packed != NULL && job->part != NULL;
    for (unsigned slot = 0; slot < slots && good; slot++) {
        good = new_part(&job->part[slot], job->part_bytes + 1u, job->options->block_log2);
    }
    if (!good) {
        return k3huf_fault_memory(fault, k3huf_stripe_bound(largest, job->options->block_log2) +
                                             (uint64_t)slots * 3u * job->part_bytes);
    }
    job->even = job->packed + K3HUF_STRIPE_HEADER_BYTES + k3huf_coded_bound(largest);
    job->index = job->even + k3huf_even_bytes(largest);
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------- parts ---- */

/* The plan of both passes: the next part of the input. */
static enum k3huf_plan plan(void *context, unsigned slot, uint64_t held, uint64_t *bytes) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    (void)held;
    (void)bytes;
    if (job->stripe == job->header.nstripes) { return K3HUF_PLAN_END; }
    const uint32_t left = stripe_bytes(job, job->stripe) - job->at;
    part->stripe = job->stripe;
    part->at = job->at;
    /* An unpaired last byte belongs to the last block, so it makes no part of its own. */
    part->raw_bytes = left <= job->part_bytes + 1u ? left : job->part_bytes;
    job->at += part->raw_bytes;
    if (part->raw_bytes == left) {
        job->at = 0;
        job->stripe++;
    }
    return K3HUF_PLAN_JOB;
}

static bool read_part(struct job *job, struct part *part) {
    size_t got = 0;
    const uint64_t offset = (uint64_t)part->stripe * job->options->stripe_bytes + part->at;
    part->fault.code = K3HUF_EXIT_OK;
    if (k3huf_input_read_at(&job->input, offset, part->raw, part->raw_bytes, &got, &part->fault) == K3HUF_EXIT_OK &&
        got != part->raw_bytes) {
        (void)changed(job, &part->fault);
    }
    return part->fault.code == K3HUF_EXIT_OK;
}

static enum k3huf_exit run_pass(struct job *job, void (*work)(void *, unsigned),
                                enum k3huf_exit (*take)(void *, unsigned, struct k3huf_fault *),
                                struct k3huf_fault *fault) {
    const struct k3huf_pipeline pipeline = {
        .threads = job->options->threads, .context = job, .plan = plan, .work = work, .take = take};
    job->stripe = 0;
    job->at = 0;
    return k3huf_pipeline_run(&pipeline, fault);
}

/* --------------------------------------------------------------------------------------------- first pass ---- */

static void count(void *context, unsigned slot) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    memset(part->histogram, 0, sizeof part->histogram);
    if (read_part(job, part)) { job->isa->histogram_odd(part->histogram, part->raw, part->raw_bytes); }
}

static enum k3huf_exit add_counts(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct job *job = context;
    const struct part *part = &job->part[slot];
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        job->histogram[symbol] += part->histogram[symbol];
    }
    if (part->fault.code != K3HUF_EXIT_OK) { *fault = part->fault; }
    return part->fault.code;
}

/* The histogram, and the code it gives. */
static enum k3huf_exit choose_code(struct job *job, struct k3huf_fault *fault) {
    enum k3huf_exit code = run_pass(job, count, add_counts, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (k3huf_code_lengths(job->histogram, job->options->max_code_length, job->header.codelen) != K3HUF_OK) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input.name, NULL,
                               "has more different odd bytes than codes of --max-code-length %" PRIu32 " bits can tell "
                               "apart",
                               job->options->max_code_length);
    }
    bool no_symbol = true;
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        no_symbol = no_symbol && job->histogram[symbol] == 0;
    }
    if (no_symbol && job->header.raw_bytes > 1) {
        /* Stripes of one byte have no symbols, but a reader may well take an empty code in such a run for damage. */
        job->header.codelen[0] = 1;
    }
    if (k3huf_encoder_init(&job->encoder, job->header.codelen) != K3HUF_OK) {
        return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, job->input.name, NULL, "the code made for it is not one");
    }
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------- second pass ---- */

static void encode(void *context, unsigned slot) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    if (read_part(job, part) && job->isa->encode_part(&job->encoder, part->raw, part->raw_bytes,
                                                      job->options->block_log2, &part->coded) != K3HUF_OK) {
        (void)changed(job, &part->fault); /* a byte that the first pass did not see */
    }
}

/* All parts of a stripe are joined: move its pieces together, and write it. */
static enum k3huf_exit finish_stripe(struct job *job, uint32_t stripe, struct k3huf_fault *fault) {
    const uint32_t raw_bytes = stripe_bytes(job, stripe);
    const uint32_t log2 = job->options->block_log2;
    const struct k3huf_stripe_header header = {.raw_bytes = raw_bytes,
                                               .huf_bytes = (job->bits + 7u) / 8u,
                                               .pad = log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, log2)};
    uint8_t *end = job->packed;
    k3huf_stripe_header_write(&header, stripe, end);
    end += K3HUF_STRIPE_HEADER_BYTES + header.huf_bytes;
    memmove(end, job->even, k3huf_even_bytes(raw_bytes));
    end += k3huf_even_bytes(raw_bytes);
    if (header.pad > 0) {
        k3huf_index_seal(job->index, raw_bytes, log2);
        memmove(end, job->index, header.pad);
        end += header.pad;
    }
    job->bits = 0;
    return k3huf_run_writer_part(&job->writer, job->packed, (size_t)(end - job->packed), fault);
}

static enum k3huf_exit join(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct job *job = context;
    const struct part *part = &job->part[slot];
    const uint32_t log2 = job->options->block_log2;
    if (part->fault.code != K3HUF_EXIT_OK) {
        *fault = part->fault;
        return fault->code;
    }
    if (log2 != 0) {
        uint8_t *const entries = job->index + K3HUF_INDEX_HEADER_BYTES;
        const size_t before = part->at >> (log2 + 1u);
        k3huf_join_entries(entries + before * K3HUF_INDEX_ENTRY_BYTES, part->coded.entries,
                           k3huf_index_blocks(part->raw_bytes, log2), job->bits);
    }
    job->bits = k3huf_join_part(job->packed + K3HUF_STRIPE_HEADER_BYTES, job->bits, &part->coded);
    memcpy(job->even + part->at / 2u, part->coded.even, k3huf_even_bytes(part->raw_bytes));
    return part->at + part->raw_bytes == stripe_bytes(job, part->stripe) ? finish_stripe(job, part->stripe, fault)
                                                                         : K3HUF_EXIT_OK;
}

static enum k3huf_exit write_run(struct job *job, struct k3huf_fault *fault) {
    uint8_t header[K3HUF_RUN_HEADER_BYTES];
    k3huf_run_header_write(&job->header, header);
    enum k3huf_exit code = k3huf_run_writer_part(&job->writer, header, sizeof header, fault);
    return code == K3HUF_EXIT_OK ? run_pass(job, encode, join, fault) : code;
}

/* --------------------------------------------------------------------------------------------------- check ---- */

/* What is written has been decoded and compared with the input as far as it goes: is that all? */
static enum k3huf_exit check_run(struct job *job, struct k3huf_fault *fault) {
    enum k3huf_exit code = k3huf_run_writer_check(&job->writer, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_compare_end(&job->compare, fault); }
    /* A changed input is the likelier reason for a mismatch, so it is looked for even after one. */
    if (code == K3HUF_EXIT_OK || code == K3HUF_EXIT_MISMATCH) {
        enum k3huf_exit same = k3huf_input_unchanged(&job->input, fault);
        code = same != K3HUF_EXIT_OK ? same : code;
    }
    return code;
}

static enum k3huf_exit pack(struct job *job, struct k3huf_fault *fault) {
    enum k3huf_exit code = k3huf_input_slurp(&job->input, fault);
    if (code == K3HUF_EXIT_OK) { code = prepare(job, fault); }
    if (code == K3HUF_EXIT_OK) { code = choose_code(job, fault); }
    if (code == K3HUF_EXIT_OK) { code = write_run(job, fault); }
    if (code == K3HUF_EXIT_OK) { code = check_run(job, fault); }
    return code == K3HUF_EXIT_OK ? k3huf_output_commit(&job->writer.output, fault) : code;
}

enum k3huf_exit k3huf_pack(const char *in_name, const char *out_name, const struct k3huf_pack_options *options,
                           struct k3huf_pack_result *result, struct k3huf_fault *fault) {
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) { return k3huf_fault_memory(fault, sizeof *job); }
    job->options = options;
    job->isa = k3huf_isa();
    enum k3huf_exit code = k3huf_input_open(&job->input, in_name, fault);
    if (code != K3HUF_EXIT_OK) {
        free(job);
        return code;
    }
    code = k3huf_run_writer_open(&job->writer, out_name, options->force, options->threads, k3huf_compare_take,
                                 &job->compare, fault);
    if (code == K3HUF_EXIT_OK) {
        job->compare = (struct k3huf_compare){.original = &job->input, .name = job->writer.output.name};
        code = pack(job, fault);
        *result = (struct k3huf_pack_result){job->header.raw_bytes, job->writer.output.written, job->header.nstripes,
                                             job->writer.output.stream};
        k3huf_run_writer_close(&job->writer);
    }
    for (unsigned slot = 0; slot < k3huf_pipeline_slots(options->threads) && job->part != NULL; slot++) {
        free(job->part[slot].memory);
    }
    free(job->part);
    free(job->packed);
    k3huf_input_close(&job->input);
    free(job);
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

enum { OPTION_CODE_LENGTH = 256, OPTION_STRIPE, OPTION_NO_INDEX, OPTION_BLOCK_LOG2 };

static enum k3huf_exit run_pack(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    static const struct option options[] = {{"max-code-length", required_argument, NULL, OPTION_CODE_LENGTH},
                                            {"stripe-size", required_argument, NULL, OPTION_STRIPE},
                                            {"no-index", no_argument, NULL, OPTION_NO_INDEX},
                                            {"block-log2", required_argument, NULL, OPTION_BLOCK_LOG2},
                                            {"threads", required_argument, NULL, 'T'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct k3huf_pack_options chosen = {.stripe_bytes = K3HUF_STRIPE_RAW_MAX,
                                        .max_code_length = K3HUF_CODE_LENGTH_MAX,
                                        .threads = k3huf_pipeline_processors()};
    bool index = true;
    uint64_t block_log2 = K3HUF_BLOCK_LOG2_DEFAULT;
    optind = 0;
    for (int option; (option = k3huf_option_next(argc, argv, options, fault)) != -1;) {
        enum k3huf_exit code = K3HUF_EXIT_OK;
        uint64_t number = 0;
        switch (option) {
        case OPTION_CODE_LENGTH:
            code = k3huf_option_number(optarg, "max-code-length", 1, K3HUF_CODE_LENGTH_MAX, &number, fault);
            chosen.max_code_length = (uint32_t)number;
            break;
        case OPTION_STRIPE:
            code = k3huf_option_number(optarg, "stripe-size", 1, K3HUF_STRIPE_RAW_MAX, &number, fault);
            chosen.stripe_bytes = (uint32_t)number;
            break;
        case OPTION_NO_INDEX: index = false; break;
        case OPTION_BLOCK_LOG2:
            code = k3huf_option_number(optarg, "block-log2", K3HUF_BLOCK_LOG2_MIN, K3HUF_BLOCK_LOG2_MAX, &block_log2,
                                       fault);
            break;
        case 'T': code = k3huf_option_threads(optarg, &chosen.threads, fault); break;
        case 'f': chosen.force = true; break;
        case 'h': *help = true; return K3HUF_EXIT_OK;
        default: return K3HUF_EXIT_USAGE;
        }
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    enum k3huf_exit code = k3huf_option_operands(argc, argv, 2, 2, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    chosen.block_log2 = index ? (uint32_t)block_log2 : 0;
    struct k3huf_pack_result result;
    code = k3huf_pack(argv[optind], argv[optind + 1], &chosen, &result, fault);
    if (code == K3HUF_EXIT_OK) {
        fprintf(result.stream ? stderr : stdout, "%s: %" PRIu64 " bytes packed to %" PRIu64, argv[optind],
                result.raw_bytes, result.run_bytes);
        if (result.raw_bytes != 0) {
            fprintf(result.stream ? stderr : stdout, ", ratio %.5f",
                    (double)result.run_bytes / (double)result.raw_bytes);
        }
        fprintf(result.stream ? stderr : stdout, ", %" PRIu32 " stripe%s, verified\n", result.nstripes,
                result.nstripes == 1 ? "" : "s");
    }
    return code;
}

const struct k3huf_command k3huf_command_pack = {
    "pack", "pack a file into a run, and check that it decodes",
    "usage: k3huf_host pack [OPTIONS] IN OUT\n"
    "Pack the bytes of IN, little-endian bf16 values, into the run OUT, decode it and compare it with IN. OUT appears\n"
    "complete and checked or not at all. Either may be -: standard input, standard output. An IN that is a pipe is "
    "held\n"
    "in memory. On standard output, a device or a FIFO each stripe is checked before it is written.\n\n"
    "      --max-code-length N  longest code in bits, 1 ... 12 (default 12)\n"
    "      --stripe-size BYTES  raw bytes of a stripe, 1 ... 64M, K and M may follow (default 64M); even and odd "
    "bytes\n"
    "                           are told apart from each stripe's first byte on\n"
    "      --no-index           write no block index: the exact original layout\n"
    "      --block-log2 N       its blocks have 2^N symbols, 12 ... 20 (default 14)\n"
    "  -T, --threads N          use N threads (default: every processor); OUT does not depend on it\n"
    "  -f, --force              replace OUT where it exists\n"
    "  -h, --help               print this\n",
    run_pack};
