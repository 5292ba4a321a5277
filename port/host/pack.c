/* pack.c - k3huf_host pack: histogram, code, stripes, and the check of what was written (pack.h). */
#include "pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "compare.h"
#include "encoder.h"
#include "options.h"
#include "output.h"
#include "package_merge.h"

/* Everything a pack under way holds. */
struct job {
    const struct k3huf_pack_options *options;
    struct k3huf_input input;
    struct k3huf_output output;
    struct k3huf_run_header header;
    struct k3huf_encoder encoder;
    uint8_t *raw;   /* one stripe, malloc'ed */
    uint8_t *coded; /* the same packed, malloc'ed */
    size_t raw_size;
    size_t coded_size;
    struct k3huf_compare compare;
    struct k3huf_run_driver *check; /* output streams only */
};

static uint32_t stripe_bytes(const struct job *job, uint32_t stripe) {
    uint64_t left = job->header.raw_bytes - (uint64_t)stripe * job->options->stripe_bytes;
    return left < job->options->stripe_bytes ? (uint32_t)left : job->options->stripe_bytes;
}

static enum k3huf_exit changed(struct job *job, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, job->input.name, NULL, "changed while it was read");
}

/* Read the raw bytes of a stripe. */
static enum k3huf_exit read_stripe(struct job *job, uint32_t stripe, struct k3huf_fault *fault) {
    size_t got = 0;
    uint32_t size = stripe_bytes(job, stripe);
    enum k3huf_exit code =
        k3huf_input_read_at(&job->input, (uint64_t)stripe * job->options->stripe_bytes, job->raw, size, &got, fault);
    return code == K3HUF_EXIT_OK && got != size ? changed(job, fault) : code;
}

/* Size the run, allocate for its largest stripe. */
static enum k3huf_exit prepare(struct job *job, struct k3huf_fault *fault) {
    uint64_t raw_bytes = job->input.size;
    uint64_t nstripes = raw_bytes / job->options->stripe_bytes + (raw_bytes % job->options->stripe_bytes != 0);
    if (nstripes > UINT32_MAX) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input.name, NULL,
                               "--stripe-size %" PRIu32 " makes more stripes than a run can have",
                               job->options->stripe_bytes);
    }
    job->header.raw_bytes = raw_bytes;
    job->header.nstripes = (uint32_t)nstripes;
    if (nstripes != 0) {
        uint32_t largest = stripe_bytes(job, 0);
        job->raw_size = largest;
        job->coded_size = k3huf_stripe_bound(largest, job->options->block_log2);
        job->raw = malloc(job->raw_size);
        job->coded = malloc(job->coded_size);
        if (job->raw == NULL || job->coded == NULL) {
            return k3huf_fault_memory(fault, (uint64_t)job->raw_size + job->coded_size);
        }
    }
    return K3HUF_EXIT_OK;
}

/* First pass: the histogram, and the code it gives. */
static enum k3huf_exit choose_code(struct job *job, struct k3huf_fault *fault) {
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    for (uint32_t stripe = 0; stripe < job->header.nstripes; stripe++) {
        enum k3huf_exit code = read_stripe(job, stripe, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        k3huf_histogram_odd(histogram, job->raw, stripe_bytes(job, stripe));
    }
    if (k3huf_code_lengths(histogram, job->options->max_code_length, job->header.codelen) != K3HUF_OK) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input.name, NULL,
                               "has more different odd bytes than codes of --max-code-length %" PRIu32 " bits can tell "
                               "apart",
                               job->options->max_code_length);
    }
    bool no_symbol = true;
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        no_symbol = no_symbol && histogram[symbol] == 0;
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

/* Write a part of the run: the run header, or a stripe. */
static enum k3huf_exit write_part(struct job *job, const uint8_t *part, size_t size, struct k3huf_fault *fault) {
    if (job->check != NULL) {
        enum k3huf_exit code = k3huf_run_driver_give(job->check, part, size, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
    }
    return k3huf_output_write(&job->output, part, size, fault);
}

/* Second pass. */
static enum k3huf_exit write_run(struct job *job, struct k3huf_fault *fault) {
    uint8_t header[K3HUF_RUN_HEADER_BYTES];
    k3huf_run_header_write(&job->header, header);
    enum k3huf_exit code = write_part(job, header, sizeof header, fault);
    for (uint32_t stripe = 0; stripe < job->header.nstripes && code == K3HUF_EXIT_OK; stripe++) {
        code = read_stripe(job, stripe, fault);
        if (code != K3HUF_EXIT_OK) {
            return code;
        }
        size_t size = 0;
        enum k3huf_status status = k3huf_encode_stripe(&job->encoder, stripe, job->raw, stripe_bytes(job, stripe),
                                                       job->options->block_log2, job->coded, job->coded_size, &size);
        if (status == K3HUF_E_CODE_WORD) {
            return changed(job, fault); /* a byte that the first pass did not see */
        }
        if (status != K3HUF_OK) {
            return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, job->input.name, NULL, "stripe %" PRIu32 ": %s", stripe,
                                   k3huf_status_text(status));
        }
        code = write_part(job, job->coded, size, fault);
    }
    return code;
}

/* Third pass: decode what is written and compare it with the input. */
static enum k3huf_exit check_run(struct job *job, struct k3huf_fault *fault) {
    enum k3huf_exit code;
    if (job->check != NULL) {
        code = k3huf_run_driver_finish(job->check, fault);
    } else {
        struct k3huf_input written;
        code = k3huf_input_adopt(&written, job->output.fd, job->output.name, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_decode_run(&written, k3huf_compare_take, &job->compare, NULL, fault);
        }
    }
    if (code == K3HUF_EXIT_OK) {
        code = k3huf_compare_end(&job->compare, fault);
    }
    /* A changed input is the likelier reason for a mismatch, so it is looked for even after one. */
    if (code == K3HUF_EXIT_OK || code == K3HUF_EXIT_MISMATCH) {
        enum k3huf_exit same = k3huf_input_unchanged(&job->input, fault);
        code = same != K3HUF_EXIT_OK ? same : code;
    }
    return code;
}

static enum k3huf_exit pack(struct job *job, struct k3huf_fault *fault) {
    enum k3huf_exit code = k3huf_input_slurp(&job->input, fault);
    if (code == K3HUF_EXIT_OK) {
        code = prepare(job, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        code = choose_code(job, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        job->compare = (struct k3huf_compare){.original = &job->input, .name = job->output.name};
        if (job->output.stream) {
            job->check = k3huf_run_driver_new(job->output.name, k3huf_compare_take, &job->compare, fault);
            code = job->check == NULL ? fault->code : K3HUF_EXIT_OK;
        }
    }
    if (code == K3HUF_EXIT_OK) {
        code = write_run(job, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        code = check_run(job, fault);
    }
    return code == K3HUF_EXIT_OK ? k3huf_output_commit(&job->output, fault) : code;
}

enum k3huf_exit k3huf_pack(const char *in_name, const char *out_name, const struct k3huf_pack_options *options,
                           struct k3huf_pack_result *result, struct k3huf_fault *fault) {
    struct job job = {.options = options};
    enum k3huf_exit code = k3huf_input_open(&job.input, in_name, fault);
    if (code != K3HUF_EXIT_OK) {
        return code;
    }
    code = k3huf_output_open(&job.output, out_name, options->force, fault);
    if (code == K3HUF_EXIT_OK) {
        code = pack(&job, fault);
        k3huf_output_discard(&job.output);
    }
    *result =
        (struct k3huf_pack_result){job.header.raw_bytes, job.output.written, job.header.nstripes, job.output.stream};
    k3huf_run_driver_free(job.check);
    free(job.raw);
    free(job.coded);
    k3huf_input_close(&job.input);
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

enum { OPTION_CODE_LENGTH = 256, OPTION_STRIPE, OPTION_INDEX, OPTION_NO_INDEX, OPTION_BLOCK_LOG2 };

static enum k3huf_exit run_pack(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    static const struct option options[] = {{"max-code-length", required_argument, NULL, OPTION_CODE_LENGTH},
                                            {"stripe-size", required_argument, NULL, OPTION_STRIPE},
                                            {"index", no_argument, NULL, OPTION_INDEX},
                                            {"no-index", no_argument, NULL, OPTION_NO_INDEX},
                                            {"block-log2", required_argument, NULL, OPTION_BLOCK_LOG2},
                                            {"force", no_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct k3huf_pack_options chosen = K3HUF_PACK_DEFAULTS;
    bool index = chosen.block_log2 != 0;
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
        case OPTION_INDEX:
            index = true;
            break;
        case OPTION_NO_INDEX:
            index = false;
            break;
        case OPTION_BLOCK_LOG2:
            code = k3huf_option_number(optarg, "block-log2", K3HUF_BLOCK_LOG2_MIN, K3HUF_BLOCK_LOG2_MAX, &block_log2,
                                       fault);
            index = true;
            break;
        case 'f':
            chosen.force = true;
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
    enum k3huf_exit code = k3huf_option_operands(argc, argv, 2, 2, fault);
    if (code != K3HUF_EXIT_OK) {
        return code;
    }
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
    "      --index              write the block index, --no-index: do not (default)\n"
    "      --block-log2 N       write it with blocks of 2^N symbols, 12 ... 20 (default 14)\n"
    "  -f, --force              replace OUT where it exists\n"
    "  -h, --help               print this\n",
    run_pack};
