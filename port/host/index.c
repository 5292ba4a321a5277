/* index.c - k3huf_host index: give an existing run a block index. Its planes and its header are copied, not encoded
 * again.
 *
 * The run is decoded once. Where each block begins follows from the code lengths of the symbols before it; its CRC is
 * that of its decoded bytes. Once a stripe is decoded it is written, with the index as its whole filler.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "dispatch.h"
#include "large.h"
#include "options.h"
#include "pipeline.h"
#include "run_writer.h"

struct job {
    uint32_t block_log2;
    const struct k3huf_isa *isa;
    struct k3huf_input input;
    struct k3huf_run_writer writer;
    uint8_t header_bytes[K3HUF_RUN_HEADER_BYTES];
    struct k3huf_run_header header;
    /* The stripe being decoded. */
    struct k3huf_stripe_header stripe;
    uint32_t nblocks;
    uint64_t offset; /* of it in the input */
    uint64_t done;   /* raw bytes of the stripes before it */
    uint32_t bits;   /* of its symbols so far */
    uint32_t crc;    /* of its current block so far */
    uint8_t *index;  /* malloc'ed */
    uint8_t *packed; /* k3huf_large_new(): what is written of it */
    size_t capacity;
    uint64_t blocks; /* in all */
};

static void store32(uint8_t *at, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8u * i));
    }
}

/* Read bytes that were there when the run was decoded. */
static enum k3huf_exit read_again(struct job *job, uint64_t offset, uint8_t *to, size_t size,
                                  struct k3huf_fault *fault) {
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_read_at(&job->input, offset, to, size, &got, fault);
    return code == K3HUF_EXIT_OK && got != size ? k3huf_input_changed(&job->input, offset + got, fault) : code;
}

static enum k3huf_exit open_stripe(struct job *job, uint32_t number, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES];
    uint32_t bad = 0;
    enum k3huf_exit code = read_again(job, job->offset, bytes, sizeof bytes, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (k3huf_stripe_header_read(bytes, &job->header, number, job->done, &job->stripe, &bad) != K3HUF_OK) {
        return k3huf_input_changed(&job->input, job->offset, fault);
    }
    job->nblocks = k3huf_index_blocks(job->stripe.raw_bytes, job->block_log2);
    job->bits = 0;
    job->crc = 0;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit write_stripe(struct job *job, uint32_t number, struct k3huf_fault *fault) {
    const struct k3huf_stripe_header *stripe = &job->stripe;
    const size_t planes = (size_t)stripe->huf_bytes + k3huf_even_bytes(stripe->raw_bytes);
    const struct k3huf_stripe_header header = {.raw_bytes = stripe->raw_bytes,
                                               .huf_bytes = stripe->huf_bytes,
                                               .pad = k3huf_index_bytes(stripe->raw_bytes, job->block_log2)};
    const size_t size = K3HUF_STRIPE_HEADER_BYTES + planes + header.pad;
    if (job->capacity < size) {
        free(job->packed);
        job->packed = k3huf_large_new(size);
        job->capacity = job->packed == NULL ? 0 : size;
        if (job->packed == NULL) { return k3huf_fault_memory(fault, size); }
    }
    uint8_t *const to = job->packed + K3HUF_STRIPE_HEADER_BYTES;
    k3huf_stripe_header_write(&header, number, job->packed);
    enum k3huf_exit code = read_again(job, job->offset + K3HUF_STRIPE_HEADER_BYTES, to, planes, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (header.pad > 0) {
        k3huf_index_seal(job->index, stripe->raw_bytes, job->block_log2);
        memcpy(to + planes, job->index, header.pad);
    }
    job->offset += k3huf_stripe_bytes(stripe);
    job->done += stripe->raw_bytes;
    job->blocks += job->nblocks;
    return k3huf_run_writer_part(&job->writer, job->packed, size, fault);
}

/* A k3huf_take: pieces of the run being indexed. Block by block, since a piece may hold the end of one and the
 * beginning of the next. */
static enum k3huf_exit add_piece(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct job *job = context;
    if (piece->stripe_offset == 0) {
        enum k3huf_exit code = open_stripe(job, piece->stripe, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    const uint8_t *const end = piece->data + piece->size;
    uint32_t at = (uint32_t)piece->stripe_offset;
    for (const uint8_t *data = piece->data; data < end && job->nblocks > 0;) {
        const uint32_t by_size = at >> (job->block_log2 + 1u);
        const uint32_t block = by_size < job->nblocks ? by_size : job->nblocks - 1u; /* a last unpaired byte */
        const uint32_t block_end =
            block + 1u == job->nblocks ? job->stripe.raw_bytes : (block + 1u) << (job->block_log2 + 1u);
        const size_t left = (size_t)(end - data);
        const size_t now = left < block_end - at ? left : block_end - at;
        uint8_t *const entry = job->index + K3HUF_INDEX_HEADER_BYTES + (size_t)block * K3HUF_INDEX_ENTRY_BYTES;
        if (at == block << (job->block_log2 + 1u)) {
            store32(entry, job->bits);
            job->crc = 0;
        }
        job->crc = job->isa->crc32c(job->crc, data, now);
        for (size_t i = 1; i < now; i += 2) {
            job->bits += job->header.codelen[data[i]];
        }
        store32(entry + 4, job->crc);
        at += (uint32_t)now;
        data += now;
    }
    return piece->stripe_end ? write_stripe(job, piece->stripe, fault) : K3HUF_EXIT_OK;
}

/* A k3huf_take for what was written: its blocks' CRCs are those of the decoded input, so decoding it is the check. */
static enum k3huf_exit count_piece(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    uint64_t *checked = context;
    (void)fault;
    *checked += piece->size;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit add_index(struct job *job, unsigned threads, const uint64_t *checked,
                                 struct k3huf_fault *fault) {
    struct k3huf_input *input = &job->input;
    uint32_t bad = 0;
    size_t got = 0;
    enum k3huf_exit code = k3huf_input_slurp(input, fault);
    if (code == K3HUF_EXIT_OK) {
        code = k3huf_input_read_at(input, 0, job->header_bytes, sizeof job->header_bytes, &got, fault);
    }
    /* Where the header is not one, decoding says what is wrong with it; nothing of it is written. */
    if (code == K3HUF_EXIT_OK && got == sizeof job->header_bytes &&
        k3huf_run_header_read(job->header_bytes, &job->header, &bad) == K3HUF_OK) {
        code = k3huf_run_writer_part(&job->writer, job->header_bytes, sizeof job->header_bytes, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        job->offset = K3HUF_RUN_HEADER_BYTES;
        code = k3huf_decode_run(input, (struct k3huf_decoding){.threads = threads}, add_piece, job, NULL, fault);
    }
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_unchanged(input, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_run_writer_check(&job->writer, fault); }
    if (code == K3HUF_EXIT_OK && *checked != job->header.raw_bytes) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, job->writer.output.name, NULL,
                               "%" PRIu64 " bytes came back of %" PRIu64, *checked, job->header.raw_bytes);
    }
    return code == K3HUF_EXIT_OK ? k3huf_output_commit(&job->writer.output, fault) : code;
}

static enum k3huf_exit index_run(const char *run_name, const char *out_name, uint32_t block_log2, unsigned threads,
                                 bool force, struct k3huf_fault *fault) {
    struct job job = {.block_log2 = block_log2, .isa = k3huf_isa()};
    uint64_t checked = 0;
    enum k3huf_exit code = k3huf_input_open(&job.input, run_name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_output_not_input(out_name, &job.input, fault);
    if (code == K3HUF_EXIT_OK) {
        const struct k3huf_decoding how = {.threads = threads, .require_index = true, .except_single_bytes = true};
        code = k3huf_run_writer_open(&job.writer, out_name, force, how, count_piece, &checked, fault);
    }
    if (code != K3HUF_EXIT_OK) {
        k3huf_input_close(&job.input);
        return code;
    }
    const size_t index_most = k3huf_index_bytes(K3HUF_STRIPE_RAW_MAX, block_log2);
    job.index = malloc(index_most);
    code = job.index == NULL ? k3huf_fault_memory(fault, index_most) : add_index(&job, threads, &checked, fault);
    if (code == K3HUF_EXIT_OK) {
        (void)fprintf(job.writer.output.stream ? stderr : stdout,
                      "%s: %" PRIu32 " stripe%s, %" PRIu64 " block%s indexed in %s, verified\n", job.input.name,
                      job.header.nstripes, job.header.nstripes == 1 ? "" : "s", job.blocks, job.blocks == 1 ? "" : "s",
                      job.writer.output.name);
    }
    k3huf_run_writer_close(&job.writer);
    free(job.index);
    free(job.packed);
    k3huf_input_close(&job.input);
    return code;
}

/* ------------------------------------------------------------------------------------------------- command ---- */

static enum k3huf_exit run_index(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    uint64_t block_log2 = K3HUF_BLOCK_LOG2_DEFAULT;
    unsigned threads = k3huf_pipeline_processors();
    bool force = false;
    const struct k3huf_option options[] = {
        {"block-log2", 0, K3HUF_OPTION_NUMBER, &block_log2, K3HUF_BLOCK_LOG2_MIN, K3HUF_BLOCK_LOG2_MAX},
        {"threads", 'T', K3HUF_OPTION_THREADS, &threads, 0, 0},
        {"force", 'f', K3HUF_OPTION_ON, &force, 0, 0},
        {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    code = k3huf_option_operands(argc, argv, 2, 2, fault);
    return code == K3HUF_EXIT_OK
               ? index_run(argv[optind], argv[optind + 1], (uint32_t)block_log2, threads, force, fault)
               : code;
}

const struct k3huf_command k3huf_command_index = {
    "index", "add a block index to a run that has none",
    "usage: k3huf_host index [OPTIONS] RUN OUT\n"
    "Decode RUN and write it again as OUT with a block index in every stripe. The run header and both planes of each\n"
    "stripe are copied as they are. The index is the whole filler of OUT: filler of RUN, which has no meaning, is "
    "left\n"
    "out, and an index that RUN has already is checked and replaced. OUT is decoded and checked before it gets its\n"
    "name. Either may be -: standard input, which is held in memory; standard output, where each stripe is checked\n"
    "before it is written.\n\n"
    "      --block-log2 N  blocks of 2^N symbols, 12 ... 20 (default 14)\n"
    "  -T, --threads N     use N threads (default: every processor)\n"
    "  -f, --force         replace OUT where it exists\n"
    "  -h, --help          print this\n",
    run_index};
