/* encode_run.c - see encode_run.h.
 *
 * Two passes of a pipeline over the input. The first counts odd bytes. The second encodes: work turns one part of a
 * stripe into codes from bit 0 on, in memory of its own; take, in order, shifts them to where the part before ended.
 *
 * Where the planes of a stripe begin in the run depends on the size of its coded plane. Where the output is a file and
 * counting has said what that will be, parts go to their places as they come. Else a stripe is gathered in memory.
 */
#include "encode_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crc_join.h"
#include "dispatch.h"
#include "large.h"
#include "package_merge.h"
#include "pipeline.h"

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
    struct k3huf_counts counts; /* counting */
    uint32_t crc;               /* encoding */
    struct k3huf_fault fault;
};

/* Stripes from that size on go to a file in parts, if they are no more than that many. */
#define DIRECT_BYTES ((uint32_t)1 << 20)
#define DIRECT_STRIPES 4096u

/* Everything a pass under way holds. */
struct job {
    const struct k3huf_encode_options *options;
    const struct k3huf_isa *isa;
    struct k3huf_input *input;
    unsigned threads; /* no more than there are parts */
    struct k3huf_run_header header;
    uint32_t part_bytes;
    struct part *part; /* malloc'ed, one a slot */
    uint32_t stripe;   /* of the next part to plan */
    uint32_t at;
    /* Counting. */
    struct k3huf_counts *counts;
    /* Encoding: the stripe that parts are joined to. */
    struct k3huf_encoder encoder;
    const struct k3huf_sink *sink;
    uint32_t crc;     /* of all parts so far */
    uint32_t bits;    /* of its coded plane so far */
    uint8_t *packed;  /* k3huf_large_new(): header, coded plane, raw plane, index; NULL: parts go to the file: */
    uint8_t *even;    /* in packed: where the raw plane is gathered, behind the largest coded plane */
    uint8_t *index;   /* malloc'ed or in packed */
    uint8_t *shifted; /* malloc'ed: a part's codes where they belong in a byte; its first byte is the last one before */
    const struct k3huf_counts *sizes;
    struct k3huf_stripe_header place; /* of the stripe in the file */
    uint64_t begin;
};

/* Raw bytes before a stripe. A stripe of one byte cannot have an index: where a single byte would be left for the last
 * one, it gets two of the stripe before: two, so that even and odd bytes stay what they are. */
static uint64_t stripe_begin(const struct job *job, uint32_t stripe) {
    const uint64_t begin = (uint64_t)stripe * job->options->stripe_bytes;
    const uint64_t end = job->header.raw_bytes;
    if (begin >= end) { return end; }
    const bool moved = end - begin == 1 && stripe > 0 && job->options->block_log2 != 0 &&
                       job->options->stripe_bytes >= K3HUF_STRIPE_MOVED_MIN;
    return moved ? begin - 2u : begin;
}

static uint32_t stripe_bytes(const struct job *job, uint32_t stripe) {
    return (uint32_t)(stripe_begin(job, stripe + 1u) - stripe_begin(job, stripe));
}

/* Found in a part of the input, or behind it in its stripe. */
static enum k3huf_exit changed(const struct job *job, const struct part *part, struct k3huf_fault *fault) {
    return k3huf_input_changed(job->input, stripe_begin(job, part->stripe) + part->at, fault);
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

/* Memory for the stripe that parts are joined to, or for a part on its way to the file. */
static bool new_stripe(struct job *job) {
    const uint32_t largest = stripe_bytes(job, 0);
    const uint32_t log2 = job->options->block_log2;
    const struct k3huf_counts *sizes = job->sizes;
    if (job->sink->file != NULL && largest >= DIRECT_BYTES && (job->header.nstripes == 1 || sizes->stripe != NULL)) {
        job->shifted = malloc(1u + k3huf_coded_bound(job->part_bytes + 1u));
        job->index = malloc(log2 == 0 ? 1u : k3huf_index_bytes(largest, log2));
        return job->shifted != NULL && job->index != NULL;
    }
    job->packed = k3huf_large_new(k3huf_stripe_bound(largest, log2));
    if (job->packed == NULL) { return false; }
    job->even = job->packed + K3HUF_STRIPE_HEADER_BYTES + k3huf_coded_bound(largest);
    job->index = job->even + k3huf_even_bytes(largest);
    return true;
}

/* Size the run, allocate for the parts under way and, unless it is to be counted only, for its largest stripe. */
static enum k3huf_exit prepare(struct job *job, struct k3huf_fault *fault) {
    const uint64_t raw_bytes = job->input->size;
    const uint64_t nstripes = raw_bytes / job->options->stripe_bytes + (raw_bytes % job->options->stripe_bytes != 0);
    if (nstripes > UINT32_MAX) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input->name, NULL,
                               "--stripe-size %" PRIu32 " makes more stripes than a run can have",
                               job->options->stripe_bytes);
    }
    job->header.raw_bytes = raw_bytes;
    job->header.nstripes = (uint32_t)nstripes;
    if (nstripes == 0) { return K3HUF_EXIT_OK; }
    const bool counting = job->counts != NULL;
    const uint32_t largest = stripe_bytes(job, 0);
    const uint32_t part_log2 = job->options->block_log2 + 1u > PART_LOG2 ? job->options->block_log2 + 1u : PART_LOG2;
    job->part_bytes = 1u << part_log2 < largest ? 1u << part_log2 : largest;
    const uint64_t nparts = nstripes * (largest >> part_log2 == 0 ? 1u : largest >> part_log2);
    job->threads = nparts < job->options->threads ? (unsigned)nparts : job->options->threads;
    const unsigned slots = k3huf_pipeline_slots(job->threads);
    job->part = calloc(slots, sizeof *job->part);
    bool good = job->part != NULL;
    good = good && (counting || new_stripe(job));
    for (unsigned slot = 0; slot < slots && good; slot++) {
        good = new_part(&job->part[slot], job->part_bytes + 1u, job->options->block_log2);
    }
    if (!good) {
        return k3huf_fault_memory(fault, k3huf_stripe_bound(largest, job->options->block_log2) +
                                             (uint64_t)slots * 3u * job->part_bytes);
    }
    return K3HUF_EXIT_OK;
}

static void release(struct job *job) {
    for (unsigned slot = 0; job->part != NULL && slot < k3huf_pipeline_slots(job->threads); slot++) {
        free(job->part[slot].memory);
    }
    free(job->part);
    free(job->shifted);
    if (job->packed == NULL) { free(job->index); }
    free(job->packed);
}

/* -------------------------------------------------------------------------------------------------- parts ---- */

static void read_part(struct job *job, struct part *part) {
    size_t got = 0;
    const uint64_t offset = stripe_begin(job, part->stripe) + part->at;
    part->fault.code = K3HUF_EXIT_OK;
    if (k3huf_input_read_at(job->input, offset, part->raw, part->raw_bytes, &got, &part->fault) == K3HUF_EXIT_OK &&
        got != part->raw_bytes) {
        (void)k3huf_input_changed(job->input, offset + got, &part->fault);
    }
}

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
    read_part(job, part);
    return K3HUF_PLAN_JOB;
}

static enum k3huf_exit run_pass(struct job *job, void (*work)(void *, unsigned),
                                enum k3huf_exit (*take)(void *, unsigned, struct k3huf_fault *),
                                struct k3huf_fault *fault) {
    const struct k3huf_pipeline pipeline = {
        .threads = job->threads, .context = job, .plan = plan, .work = work, .take = take};
    job->stripe = 0;
    job->at = 0;
    return k3huf_pipeline_run(&pipeline, fault);
}

/* --------------------------------------------------------------------------------------------- first pass ---- */

static bool all_zero(const uint8_t *data, size_t size) {
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

static void count(void *context, unsigned slot) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    memset(&part->counts, 0, sizeof part->counts);
    if (part->fault.code == K3HUF_EXIT_OK) {
        job->isa->histogram_odd(part->counts.histogram, part->raw, part->raw_bytes);
        part->counts.zeros = all_zero(part->raw, part->raw_bytes);
    }
}

static enum k3huf_exit add_counts(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct job *job = context;
    const struct part *part = &job->part[slot];
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        job->counts->histogram[symbol] += part->counts.histogram[symbol];
    }
    for (unsigned symbol = 0; job->counts->stripe != NULL && symbol < K3HUF_SYMBOLS; symbol++) {
        job->counts->stripe[part->stripe][symbol] += (uint32_t)part->counts.histogram[symbol];
    }
    job->counts->zeros = job->counts->zeros && part->counts.zeros;
    k3huf_progress_add(job->options->progress, part->raw_bytes);
    if (part->fault.code != K3HUF_EXIT_OK) { *fault = part->fault; }
    return part->fault.code;
}

enum k3huf_exit k3huf_count(struct k3huf_input *input, const struct k3huf_encode_options *options,
                            struct k3huf_counts *counts, struct k3huf_fault *fault) {
    struct job job = {.options = options, .isa = k3huf_isa(), .input = input, .counts = counts};
    *counts = (struct k3huf_counts){.zeros = true};
    enum k3huf_exit code = prepare(&job, fault);
    if (code == K3HUF_EXIT_OK && job.header.nstripes > 1 && job.header.nstripes <= DIRECT_STRIPES &&
        options->stripe_bytes >= DIRECT_BYTES) {
        counts->stripe = calloc(job.header.nstripes, sizeof *counts->stripe); /* NULL: it will take longer */
    }
    if (code == K3HUF_EXIT_OK && job.header.nstripes > 0) { code = run_pass(&job, count, add_counts, fault); }
    if (code != K3HUF_EXIT_OK) {
        free(counts->stripe);
        counts->stripe = NULL;
    }
    release(&job);
    return code;
}

enum k3huf_exit k3huf_choose_code(const uint64_t histogram[K3HUF_SYMBOLS], uint64_t raw_bytes, uint32_t max_code_length,
                                  const char *name, uint8_t codelen[K3HUF_SYMBOLS], struct k3huf_fault *fault) {
    if (k3huf_code_lengths(histogram, max_code_length, codelen) != K3HUF_OK) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, name, NULL,
                               "has more different odd bytes than codes of --max-code-length %" PRIu32 " bits can tell "
                               "apart",
                               max_code_length);
    }
    bool no_symbol = true;
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        no_symbol = no_symbol && histogram[symbol] == 0;
    }
    if (no_symbol && raw_bytes > 1) {
        /* Stripes of one byte have no symbols, but a reader may well take an empty code in such a run for damage. */
        codelen[0] = 1;
    }
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------- second pass ---- */

static uint32_t entry_crc(const void *context, size_t i) {
    const uint8_t *crc = (const uint8_t *)context + i * K3HUF_INDEX_ENTRY_BYTES + 4;
    return (uint32_t)crc[0] | (uint32_t)crc[1] << 8 | (uint32_t)crc[2] << 16 | (uint32_t)crc[3] << 24;
}

/* CRC-32C of a part that is encoded: the index has it in pieces. */
static uint32_t part_crc(const struct job *job, const struct part *part) {
    const uint32_t log2 = job->options->block_log2;
    const uint32_t n = log2 == 0 ? 0 : k3huf_index_blocks(part->raw_bytes, log2);
    const uint64_t block = (uint64_t)2 << log2;
    return n == 0 ? k3huf_crc32c_long(job->isa, 0, part->raw, part->raw_bytes)
                  : k3huf_crc32c_join_all(entry_crc, part->coded.entries, n, block, part->raw_bytes - (n - 1) * block);
}

static void encode(void *context, unsigned slot) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    if (part->fault.code == K3HUF_EXIT_OK &&
        job->isa->encode_part(&job->encoder, part->raw, part->raw_bytes, job->options->block_log2, &part->coded) !=
            K3HUF_OK) {
        (void)changed(job, part, &part->fault); /* a byte that the first pass did not see */
    }
    if (part->fault.code == K3HUF_EXIT_OK) { part->crc = part_crc(job, part); }
}

/* Bits of the codes for what a histogram has counted. */
static uint64_t coded_bits(const struct job *job, uint32_t stripe) {
    const struct k3huf_counts *sizes = job->sizes;
    uint64_t bits = 0;
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        bits += (job->header.nstripes == 1 ? sizes->histogram[symbol] : sizes->stripe[stripe][symbol]) *
                job->header.codelen[symbol];
    }
    return bits;
}

static struct k3huf_stripe_header stripe_header(const struct job *job, uint32_t raw_bytes, uint32_t huf_bytes) {
    const uint32_t log2 = job->options->block_log2;
    return (struct k3huf_stripe_header){
        .raw_bytes = raw_bytes, .huf_bytes = huf_bytes, .pad = log2 == 0 ? 0 : k3huf_index_bytes(raw_bytes, log2)};
}

/* Make room for a stripe in the file, and write its header. */
static enum k3huf_exit begin_direct(struct job *job, const struct part *part, struct k3huf_fault *fault) {
    struct k3huf_output *file = job->sink->file;
    const uint32_t stripe = part->stripe;
    const uint64_t bits = coded_bits(job, stripe);
    uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES];
    if (bits > UINT32_MAX) { return changed(job, part, fault); } /* no stripe has as many symbols */
    job->place = stripe_header(job, stripe_bytes(job, stripe), ((uint32_t)bits + 7u) / 8u);
    job->begin = file->written;
    k3huf_stripe_header_write(&job->place, stripe, bytes);
    const enum k3huf_exit code = k3huf_output_zeros(file, k3huf_stripe_bytes(&job->place), fault);
    return code == K3HUF_EXIT_OK ? k3huf_output_patch(file, job->begin, bytes, sizeof bytes, fault) : code;
}

/* The codes and the even bytes of a part, to their places; behind the last part the index too. */
static enum k3huf_exit join_direct(struct job *job, const struct part *part, struct k3huf_fault *fault) {
    struct k3huf_output *file = job->sink->file;
    enum k3huf_exit code = part->at == 0 ? begin_direct(job, part, fault) : K3HUF_EXIT_OK;
    if (code != K3HUF_EXIT_OK) { return code; }
    const struct k3huf_stripe_header *place = &job->place;
    const bool last = part->at + part->raw_bytes == place->raw_bytes;
    const uint64_t coded = job->begin + K3HUF_STRIPE_HEADER_BYTES;
    const uint64_t even = coded + place->huf_bytes;
    const uint32_t end = k3huf_join_part(job->shifted, job->bits % 8u, &part->coded);
    const uint32_t bits = job->bits + part->coded.bits;
    const uint32_t planned = place->huf_bytes;
    if ((bits + 7u) / 8u > planned || (last && (bits + 7u) / 8u < planned)) { return changed(job, part, fault); }
    const uint32_t whole = last ? (end + 7u) / 8u : end / 8u;
    code = k3huf_output_patch(file, coded + job->bits / 8u, job->shifted, whole, fault);
    if (code == K3HUF_EXIT_OK) {
        code =
            k3huf_output_patch(file, even + part->at / 2u, part->coded.even, k3huf_even_bytes(part->raw_bytes), fault);
    }
    if (code == K3HUF_EXIT_OK && last && place->pad > 0) {
        k3huf_index_seal(job->index, place->raw_bytes, job->options->block_log2);
        code = k3huf_output_patch(file, even + k3huf_even_bytes(place->raw_bytes), job->index, place->pad, fault);
    }
    job->shifted[0] = job->shifted[end / 8u];
    job->bits = last ? 0 : bits;
    return code;
}

/* All parts of a stripe are gathered: move its pieces together, and write it. */
static enum k3huf_exit finish_stripe(struct job *job, uint32_t stripe, struct k3huf_fault *fault) {
    const uint32_t raw_bytes = stripe_bytes(job, stripe);
    const struct k3huf_stripe_header header = stripe_header(job, raw_bytes, (job->bits + 7u) / 8u);
    uint8_t *end = job->packed;
    k3huf_stripe_header_write(&header, stripe, end);
    end += K3HUF_STRIPE_HEADER_BYTES + header.huf_bytes;
    memmove(end, job->even, k3huf_even_bytes(raw_bytes));
    end += k3huf_even_bytes(raw_bytes);
    if (header.pad > 0) {
        k3huf_index_seal(job->index, raw_bytes, job->options->block_log2);
        memmove(end, job->index, header.pad);
        end += header.pad;
    }
    job->bits = 0;
    return job->sink->put(job->sink->context, job->packed, (size_t)(end - job->packed), fault);
}

static enum k3huf_exit gather(struct job *job, const struct part *part, struct k3huf_fault *fault) {
    job->bits = k3huf_join_part(job->packed + K3HUF_STRIPE_HEADER_BYTES, job->bits, &part->coded);
    memcpy(job->even + part->at / 2u, part->coded.even, k3huf_even_bytes(part->raw_bytes));
    return part->at + part->raw_bytes == stripe_bytes(job, part->stripe) ? finish_stripe(job, part->stripe, fault)
                                                                         : K3HUF_EXIT_OK;
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
    job->crc = k3huf_crc32c_join(job->crc, part->crc, part->raw_bytes);
    k3huf_progress_add(job->options->progress, part->raw_bytes);
    return job->packed == NULL ? join_direct(job, part, fault) : gather(job, part, fault);
}

enum k3huf_exit k3huf_encode_run(struct k3huf_input *input, const struct k3huf_encode_options *options,
                                 const uint8_t codelen[K3HUF_SYMBOLS], const struct k3huf_counts *counts,
                                 const struct k3huf_sink *sink, struct k3huf_encoded *encoded,
                                 struct k3huf_fault *fault) {
    struct job job = {.options = options, .isa = k3huf_isa(), .input = input, .sizes = counts, .sink = sink};
    memcpy(job.header.codelen, codelen, K3HUF_SYMBOLS);
    enum k3huf_exit code = prepare(&job, fault);
    if (code == K3HUF_EXIT_OK && k3huf_encoder_init(&job.encoder, codelen) != K3HUF_OK) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, input->name, NULL, "the code made for it is not one");
    }
    if (code == K3HUF_EXIT_OK) {
        uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
        k3huf_run_header_write(&job.header, bytes);
        code = sink->put(sink->context, bytes, sizeof bytes, fault);
    }
    if (code == K3HUF_EXIT_OK && job.header.nstripes > 0) { code = run_pass(&job, encode, join, fault); }
    *encoded = (struct k3huf_encoded){job.header, job.crc};
    release(&job);
    return code;
}
