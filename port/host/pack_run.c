/* pack_run.c - see pack.h: histogram, code, stripes, and the check of what was written. */
#include "pack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "compare.h"
#include "run_writer.h"

struct job {
    struct k3huf_run_writer writer;
    struct k3huf_compare compare;
    struct k3huf_progress *progress;
};

static enum k3huf_exit put(void *context, const uint8_t *part, size_t size, struct k3huf_fault *fault) {
    return k3huf_run_writer_part(context, part, size, fault);
}

static enum k3huf_exit take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct job *job = context;
    k3huf_progress_add(job->progress, piece->size);
    return k3huf_compare_take(&job->compare, piece, fault);
}

/* What is written has been decoded and compared with the input as far as it goes: is that all? */
static enum k3huf_exit check_run(struct job *job, struct k3huf_input *input, bool checked, struct k3huf_fault *fault) {
    struct k3huf_input written;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (checked) {
        code = k3huf_input_adopt(&written, job->writer.output.fd, job->writer.output.name, fault);
        if (code == K3HUF_EXIT_OK && written.size != job->writer.output.written) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, written.name, NULL,
                                   "has %" PRIu64 " bytes, where %" PRIu64 " were written", written.size,
                                   job->writer.output.written);
        }
    } else {
        code = k3huf_run_writer_check(&job->writer, fault);
        if (code == K3HUF_EXIT_OK) { code = k3huf_compare_end(&job->compare, fault); }
    }
    /* A changed input is the likelier reason for a mismatch, so it is looked for even after one. */
    if (code == K3HUF_EXIT_OK || code == K3HUF_EXIT_MISMATCH) {
        enum k3huf_exit same = k3huf_input_unchanged(input, fault);
        code = same != K3HUF_EXIT_OK ? same : code;
    }
    return code;
}

enum k3huf_exit k3huf_pack_run(struct k3huf_input *input, const char *out_name, bool force,
                               const struct k3huf_encode_options *options, struct k3huf_pack_result *result,
                               struct k3huf_fault *fault) {
    struct job job = {.progress = options->progress};
    struct k3huf_counts counts = {.stripe = NULL};
    struct k3huf_sink sink = {.put = put, .context = &job.writer};
    struct k3huf_encoded encoded = {.crc = 0};
    uint8_t codelen[K3HUF_SYMBOLS];
    /* An index that is to be written must be there when it is read; all bytes are compared in any case. */
    const struct k3huf_decoding how = {
        .threads = options->threads, .require_index = options->block_log2 != 0, .except_single_bytes = true};
    enum k3huf_exit code = k3huf_run_writer_open(&job.writer, out_name, force, how, take, &job, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    job.compare = (struct k3huf_compare){.original = input, .name = job.writer.output.name};
    if (!job.writer.output.stream) { sink.file = &job.writer.output; }
    code = k3huf_count(input, options, &counts, fault);
    if (code == K3HUF_EXIT_OK) {
        code = k3huf_choose_code(counts.histogram, input->size, options->max_code_length, input->name, codelen, fault);
    }
    if (code == K3HUF_EXIT_OK) { code = k3huf_encode_run(input, options, codelen, &counts, &sink, &encoded, fault); }
    if (code == K3HUF_EXIT_OK) { code = check_run(&job, input, encoded.checked, fault); }
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_commit(&job.writer.output, fault); }
    *result = (struct k3huf_pack_result){encoded.header.raw_bytes, job.writer.output.written, encoded.header.nstripes,
                                         job.writer.output.stream};
    free(counts.stripe);
    k3huf_run_writer_close(&job.writer);
    return code;
}
