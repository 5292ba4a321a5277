/* encode_run.c - see encode_run.h.
 *
 * Two passes of a pipeline over the input. The first counts odd bytes. The second encodes: work turns one part of a
 * stripe into codes from bit 0 on, in memory of its own; take, in order, shifts them to where the part before ended.
 *
 * Where the planes of a stripe begin in the run depends on the size of its coded plane. Where the output is a file and
 * counting has said what that will be, parts go to their places as they come, and check reads them back while the bytes
 * that they were made of are still there. Else a stripe is gathered in memory.
 */
#include "encode_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check_part.h"
#include "crc_join.h"
#include "decode_run.h"
#include "large.h"
#include "package_merge.h"
#include "pipeline.h"

/* Raw bytes of a part, about: it is a whole number of blocks, and of groups that are decoded side by side if they fit.
 */
#define PART_BYTES ((uint32_t)1152 << 10)
/* With many threads, for the sake of memory. */
#define PART_BYTES_OF_MANY ((uint32_t)384 << 10)
#define MANY_THREADS 16u

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
    /* Checking. */
    struct k3huf_written_part written;
    struct k3huf_check_memory check;
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
    uint32_t block_log2; /* of the blocks that parts are made of, with an index or without */
    struct part *part;   /* malloc'ed, one a slot */
    unsigned slots;
    uint32_t stripe; /* of the next part to plan */
    uint32_t at;
    /* Counting. */
    struct k3huf_counts *counts;
    /* Encoding: the stripe that parts are joined to. */
    struct k3huf_encoder encoder;
    const struct k3huf_sink *sink;
    uint32_t crc;         /* of all parts so far */
    uint32_t entries_crc; /* the same of the entries of all indexes */
    uint32_t bits;        /* of its coded plane so far */
    uint8_t *packed;      /* k3huf_large_new(): header, coded plane, raw plane, index; NULL: parts go to the file: */
    uint8_t *even;        /* in packed: where the raw plane is gathered, behind the largest coded plane */
    uint8_t *index;       /* malloc'ed or in packed */
    uint8_t *shifted; /* malloc'ed: a part's codes where they belong in a byte; its first byte is the last one before */
    const struct k3huf_counts *sizes;
    /* Parts that go to the file. */
    bool direct;
    struct k3huf_stripe_place place; /* of the stripe */
    struct k3huf_input written;      /* the file */
    struct k3huf_part_files files;
    struct k3huf_table table;
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

/* Raw bytes of a part of a large stripe. */
static uint32_t part_bytes(uint32_t block_log2, unsigned threads) {
    const uint32_t most = threads > MANY_THREADS ? PART_BYTES_OF_MANY : PART_BYTES;
    const uint32_t block = 2u << block_log2;
    const uint32_t group = K3HUF_LANES * block;
    return block >= most ? block : most - most % (group <= most ? group : block);
}

/* Memory for one part. */
static bool new_part(const struct job *job, struct part *part) {
    const uint32_t largest = job->part_bytes + 1u;
    const uint32_t group = K3HUF_LANES * (2u << job->block_log2) + 1u;
    const size_t entries = k3huf_index_bytes(largest, job->block_log2);
    const size_t even = k3huf_even_bytes(largest);
    const size_t decoded = !job->direct ? 0 : group < largest ? group : largest;
    part->memory = malloc(largest + k3huf_coded_bound(largest) + even + entries + decoded);
    if (part->memory == NULL) { return false; }
    part->raw = part->memory;
    part->coded.entries = part->raw + largest;
    part->coded.even = part->coded.entries + entries;
    part->check.decoded = part->coded.even + even;
    part->coded.coded = part->check.decoded + decoded;
    return true;
}

/* Memory for the stripe that parts are joined to, or for a part on its way to the file. */
static bool new_stripe(struct job *job) {
    const uint32_t largest = stripe_bytes(job, 0);
    const uint32_t log2 = job->options->block_log2;
    const struct k3huf_counts *sizes = job->sizes;
    if (job->sink->file != NULL && largest >= DIRECT_BYTES && (job->header.nstripes == 1 || sizes->stripe != NULL)) {
        job->direct = true;
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
    job->block_log2 = job->options->block_log2 != 0 ? job->options->block_log2 : K3HUF_BLOCK_LOG2_DEFAULT;
    job->part_bytes = part_bytes(job->block_log2, job->options->threads);
    const uint64_t nparts = nstripes * (largest / job->part_bytes == 0 ? 1u : largest / job->part_bytes);
    if (largest < job->part_bytes) { job->part_bytes = largest; }
    job->threads = nparts < job->options->threads ? (unsigned)nparts : job->options->threads;
    bool good = counting || new_stripe(job);
    const unsigned slots = k3huf_pipeline_slots(job->threads, job->direct);
    job->part = good ? calloc(slots, sizeof *job->part) : NULL;
    good = job->part != NULL;
    for (; job->slots < slots && good; job->slots++) {
        good = new_part(job, &job->part[job->slots]);
    }
    if (!good) {
        const uint64_t stripe = counting || job->direct ? 0 : k3huf_stripe_bound(largest, job->options->block_log2);
        return k3huf_fault_memory(fault, stripe + (uint64_t)slots * 4u * job->part_bytes);
    }
    return K3HUF_EXIT_OK;
}

static void release(struct job *job) {
    for (unsigned slot = 0; slot < job->slots; slot++) {
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
                                enum k3huf_exit (*check)(void *, unsigned, struct k3huf_fault *),
                                struct k3huf_fault *fault) {
    const struct k3huf_pipeline pipeline = {
        .threads = job->threads, .context = job, .plan = plan, .work = work, .take = take, .check = check};
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
        part->counts.crc = k3huf_crc32c_long(job->isa, 0, part->raw, part->raw_bytes);
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
    job->counts->crc = k3huf_crc32c_join(job->counts->crc, part->counts.crc, part->raw_bytes);
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
    if (code == K3HUF_EXIT_OK && job.header.nstripes > 0) { code = run_pass(&job, count, add_counts, NULL, fault); }
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
    const struct k3huf_index index = {.entries = context};
    return k3huf_index_crc(&index, (uint32_t)i);
}

/* CRC-32C of a part that is encoded: its blocks have it in pieces. */
static uint32_t part_crc(const struct job *job, const struct part *part) {
    const uint32_t n = k3huf_index_blocks(part->raw_bytes, job->block_log2);
    const uint64_t block = (uint64_t)2 << job->block_log2;
    return n == 0 ? k3huf_crc32c_long(job->isa, 0, part->raw, part->raw_bytes)
                  : k3huf_crc32c_join_all(entry_crc, part->coded.entries, n, block, part->raw_bytes - (n - 1) * block);
}

static void encode(void *context, unsigned slot) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    if (part->fault.code == K3HUF_EXIT_OK &&
        job->isa->encode_part(&job->encoder, part->raw, part->raw_bytes, job->block_log2, &part->coded) != K3HUF_OK) {
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
    job->place =
        (struct k3huf_stripe_place){.header = stripe_header(job, stripe_bytes(job, stripe), ((uint32_t)bits + 7u) / 8u),
                                    .stripe = stripe,
                                    .begin = file->written};
    k3huf_stripe_header_write(&job->place.header, stripe, bytes);
    enum k3huf_exit code = k3huf_output_room(file, k3huf_stripe_bytes(&job->place.header), fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_patch(file, job->place.begin, bytes, sizeof bytes, fault); }
    return code == K3HUF_EXIT_OK
               ? k3huf_written_check(&job->written, stripe, job->place.begin, bytes, sizeof bytes, fault)
               : code;
}

/* The codes and the even bytes of a part, to their places; behind the last part the index too. */
static enum k3huf_exit join_direct(struct job *job, struct part *part, struct k3huf_fault *fault) {
    struct k3huf_output *file = job->sink->file;
    enum k3huf_exit code = part->at == 0 ? begin_direct(job, part, fault) : K3HUF_EXIT_OK;
    if (code != K3HUF_EXIT_OK) { return code; }
    const struct k3huf_stripe_header *place = &job->place.header;
    const bool last = part->at + part->raw_bytes == place->raw_bytes;
    const uint64_t coded = job->place.begin + K3HUF_STRIPE_HEADER_BYTES;
    const uint64_t even = coded + place->huf_bytes;
    part->written = (struct k3huf_written_part){.place = job->place,
                                                .offset = stripe_begin(job, part->stripe) + part->at,
                                                .raw = part->raw,
                                                .at = part->at,
                                                .raw_bytes = part->raw_bytes,
                                                .entries = part->coded.entries,
                                                .block_log2 = job->block_log2,
                                                .indexed = job->options->block_log2 != 0,
                                                .begin = job->bits,
                                                .bits = part->coded.bits,
                                                .front = job->shifted[0],
                                                .coded = part->coded.coded,
                                                .even = part->coded.even};
    const uint32_t end = k3huf_join_part(job->shifted, job->bits % 8u, &part->coded);
    const uint32_t bits = job->bits + part->coded.bits;
    const uint32_t planned = place->huf_bytes;
    if ((bits + 7u) / 8u > planned || (last && (bits + 7u) / 8u < planned)) { return changed(job, part, fault); }
    /* The last byte too: the next part will write it again with its first bits. */
    code = k3huf_output_patch(file, coded + job->bits / 8u, job->shifted, (end + 7u) / 8u, fault);
    if (code == K3HUF_EXIT_OK) {
        code =
            k3huf_output_patch(file, even + part->at / 2u, part->coded.even, k3huf_even_bytes(part->raw_bytes), fault);
    }
    if (code == K3HUF_EXIT_OK && last && place->pad > 0) {
        const uint64_t index = even + k3huf_even_bytes(place->raw_bytes);
        k3huf_index_seal(job->index, place->raw_bytes, job->options->block_log2);
        code = k3huf_output_patch(file, index, job->index, place->pad, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_written_check(&job->written, part->stripe, index, job->index, place->pad, fault);
        }
    }
    job->shifted[0] = job->shifted[end / 8u];
    job->bits = last ? 0 : bits;
    return code == K3HUF_EXIT_OK ? k3huf_part_read_back(&job->files, &part->written, fault) : code;
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
    struct part *part = &job->part[slot];
    const uint32_t log2 = job->options->block_log2;
    if (part->fault.code != K3HUF_EXIT_OK) {
        *fault = part->fault;
        return fault->code;
    }
    const uint32_t blocks = k3huf_index_blocks(part->raw_bytes, job->block_log2);
    k3huf_join_entries(part->coded.entries, blocks, job->bits);
    if (log2 != 0) {
        const size_t before = part->at >> (log2 + 1u);
        const size_t bytes = (size_t)blocks * K3HUF_INDEX_ENTRY_BYTES;
        memcpy(job->index + K3HUF_INDEX_HEADER_BYTES + before * K3HUF_INDEX_ENTRY_BYTES, part->coded.entries, bytes);
        job->entries_crc = job->isa->crc32c(job->entries_crc, part->coded.entries, bytes);
    }
    job->crc = k3huf_crc32c_join(job->crc, part->crc, part->raw_bytes);
    k3huf_progress_add(job->options->progress, job->direct ? 2u * (uint64_t)part->raw_bytes : part->raw_bytes);
    return job->direct ? join_direct(job, part, fault) : gather(job, part, fault);
}

static enum k3huf_exit check(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct job *job = context;
    struct part *part = &job->part[slot];
    return k3huf_part_check(&job->files, &job->table, &part->written, &part->check, fault);
}

/* Read the run's header back. Parts are decoded by what it says. */
static enum k3huf_exit check_header(struct job *job, uint64_t begin, const uint8_t header[K3HUF_RUN_HEADER_BYTES],
                                    struct k3huf_fault *fault) {
    struct k3huf_run_header found;
    uint32_t bad = 0;
    const enum k3huf_exit code =
        k3huf_written_check(&job->written, K3HUF_NO_STRIPE, begin, header, K3HUF_RUN_HEADER_BYTES, fault);
    if (code == K3HUF_EXIT_OK && (k3huf_run_header_read(header, &found, &bad) != K3HUF_OK ||
                                  job->isa->table_build(&job->table, found.codelen) != K3HUF_OK)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, job->input->name, NULL, "the header made for it is not one");
    }
    return code;
}

/* All parts are checked, and so are headers and indexes as they were written. Can a reader that has nothing but the
 * file find its way through it, and to the same blocks? */
static enum k3huf_exit check_rest(struct job *job, uint64_t begin, const uint8_t header[K3HUF_RUN_HEADER_BYTES],
                                  struct k3huf_fault *fault) {
    struct k3huf_input run;
    struct k3huf_run_facts facts;
    k3huf_input_view(&run, &job->written, begin, job->sink->file->written - begin, job->written.name);
    enum k3huf_exit code =
        k3huf_written_check(&job->written, K3HUF_NO_STRIPE, begin, header, K3HUF_RUN_HEADER_BYTES, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_walk_run(&run, &facts, fault); }
    if (code == K3HUF_EXIT_OK && job->options->block_log2 != 0 && facts.entries_crc != job->entries_crc) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, job->written.name, NULL,
                               "read back, an index is not that of the blocks");
    }
    return code;
}

/* The input was read twice, and what was written is compared with the second reading: by its CRC, joined from those of
 * blocks in the index, the first was the same. */
static enum k3huf_exit check_source(const struct job *job, struct k3huf_fault *fault) {
    return job->crc == job->sizes->crc
               ? K3HUF_EXIT_OK
               : k3huf_fault_set(fault, K3HUF_EXIT_IO, job->input->name, NULL,
                                 "changed while it was read: from offset %" PRIu64 " of the file on, %" PRIu64
                                 " bytes had CRC-32C %08" PRIx32 ", and then %08" PRIx32,
                                 job->input->base, job->input->size, job->sizes->crc, job->crc);
}

enum k3huf_exit k3huf_encode_run(struct k3huf_input *input, const struct k3huf_encode_options *options,
                                 const uint8_t codelen[K3HUF_SYMBOLS], const struct k3huf_counts *counts,
                                 const struct k3huf_sink *sink, struct k3huf_encoded *encoded,
                                 struct k3huf_fault *fault) {
    struct job job = {.options = options, .isa = k3huf_isa(), .input = input, .sizes = counts, .sink = sink};
    uint8_t header[K3HUF_RUN_HEADER_BYTES];
    memcpy(job.header.codelen, codelen, K3HUF_SYMBOLS);
    enum k3huf_exit code = prepare(&job, fault);
    if (code == K3HUF_EXIT_OK && k3huf_encoder_init(&job.encoder, codelen) != K3HUF_OK) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, input->name, NULL, "the code made for it is not one");
    }
    const uint64_t begin = sink->file == NULL ? 0 : sink->file->written;
    if (code == K3HUF_EXIT_OK) {
        k3huf_run_header_write(&job.header, header);
        code = sink->put(sink->context, header, sizeof header, fault);
    }
    if (sink->file != NULL) {
        job.written = (struct k3huf_input){.name = sink->file->name, .fd = sink->file->fd, .seekable = true};
    }
    job.files = (struct k3huf_part_files){.isa = job.isa, .written = &job.written, .original = input};
    if (code == K3HUF_EXIT_OK && job.direct) { code = check_header(&job, begin, header, fault); }
    if (code == K3HUF_EXIT_OK && job.header.nstripes > 0) {
        code = run_pass(&job, encode, join, job.direct ? check : NULL, fault);
    }
    if (code == K3HUF_EXIT_OK && job.direct) { code = check_rest(&job, begin, header, fault); }
    if (code == K3HUF_EXIT_OK) { code = check_source(&job, fault); }
    *encoded = (struct k3huf_encoded){job.header, job.crc, job.direct};
    release(&job);
    return code;
}
