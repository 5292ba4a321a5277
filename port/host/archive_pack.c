/* archive_pack.c - see archive_pack.h. */
#include "archive_pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive_file.h"
#include "crc_join.h"
#include "dispatch.h"
#include "output.h"
#include "package_merge.h"

/* Entries are joined up to that many source bytes: a reader that wants one tensor then reads little of others. */
#define JOINED_RUN_MAX ((uint64_t)16 << 20)
#define JOINED_STORED_MAX ((uint64_t)1 << 20)
/* All zeros of at least that size are no bytes but an entry of zeros. */
#define ZEROS_MIN ((uint64_t)64 << 10)
#define CHUNK ((size_t)1 << 20)

/* A stretch of the source that is to become an entry. */
struct stretch {
    bool empty;
    bool is_float;
    struct k3huf_counts counts;
    uint64_t offset;
    uint64_t bytes;
    uint64_t bits;   /* floats only: of the odd bytes' codes, with a code for this stretch */
    uint64_t pages;  /* floats only: that it takes as an entry */
    uint32_t tensor; /* its first one */
    bool named;
};

struct job {
    struct k3huf_input *input;
    const struct k3huf_tensors *tensors;
    const struct k3huf_encode_options *options;
    struct k3huf_output output;
    struct k3huf_archive_entry *entry; /* malloc'ed */
    uint32_t nentries;
    uint32_t capacity;
    struct stretch pending;
    struct k3huf_archive_result *result;
    uint64_t histogram[K3HUF_SYMBOLS]; /* of all floats */
    uint8_t *toc;                      /* malloc'ed */
};

static uint64_t pages(uint64_t bytes) { return bytes / K3HUF_ARCHIVE_PAGE + (bytes % K3HUF_ARCHIVE_PAGE != 0); }

/* ---------------------------------------------------------------------------------------------------- sizes ---- */

static uint64_t code_bits(const uint64_t histogram[K3HUF_SYMBOLS], const uint8_t codelen[K3HUF_SYMBOLS]) {
    uint64_t bits = 0;
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        bits += histogram[symbol] * codelen[symbol];
    }
    return bits;
}

/* Size of a run, but for the coded planes' last bytes; and so that every run that is chosen by it is smaller. */
static uint64_t run_bytes(const struct job *job, uint64_t raw_bytes, uint64_t bits) {
    const uint64_t stripe = job->options->stripe_bytes;
    const uint64_t whole = raw_bytes / stripe;
    const uint32_t last = (uint32_t)(raw_bytes % stripe);
    const uint32_t log2 = job->options->block_log2;
    uint64_t size = K3HUF_RUN_HEADER_BYTES + (whole + 1) * (K3HUF_STRIPE_HEADER_BYTES + 1u) + bits / 8 + raw_bytes / 2 +
                    raw_bytes % 2;
    if (log2 != 0) {
        size += whole * k3huf_index_bytes((uint32_t)stripe, log2) + (last == 0 ? 0 : k3huf_index_bytes(last, log2));
    }
    return size;
}

static enum k3huf_exit size_up(const struct job *job, struct stretch *stretch, struct k3huf_fault *fault) {
    uint8_t codelen[K3HUF_SYMBOLS];
    enum k3huf_exit code = k3huf_choose_code(stretch->counts.histogram, stretch->bytes, job->options->max_code_length,
                                             job->input->name, codelen, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    stretch->bits = code_bits(stretch->counts.histogram, codelen);
    const uint64_t run = run_bytes(job, stretch->bytes, stretch->bits);
    stretch->pages = pages(run < stretch->bytes ? run : stretch->bytes);
    return K3HUF_EXIT_OK;
}

/* -------------------------------------------------------------------------------------------------- writing ---- */

/* Fill up to the next page. */
static enum k3huf_exit align(struct job *job, struct k3huf_fault *fault) {
    static const uint8_t zeros[K3HUF_ARCHIVE_PAGE];
    const size_t over = (size_t)(job->output.written % K3HUF_ARCHIVE_PAGE);
    return over == 0 ? K3HUF_EXIT_OK : k3huf_output_write(&job->output, zeros, K3HUF_ARCHIVE_PAGE - over, fault);
}

static enum k3huf_exit put(void *context, const uint8_t *part, size_t size, struct k3huf_fault *fault) {
    return k3huf_output_write(context, part, size, fault);
}

static enum k3huf_exit store(struct job *job, struct k3huf_input *source, uint32_t *crc, struct k3huf_fault *fault) {
    const size_t most = source->size < CHUNK ? (size_t)source->size : CHUNK;
    uint8_t *chunk = malloc(most);
    enum k3huf_exit code = chunk == NULL ? k3huf_fault_memory(fault, most) : K3HUF_EXIT_OK;
    for (uint64_t done = 0; done < source->size && code == K3HUF_EXIT_OK;) {
        size_t got = 0;
        code = k3huf_input_read_at(source, done, chunk, most, &got, fault);
        if (code == K3HUF_EXIT_OK && got == 0) { code = k3huf_input_changed(source, done, fault); }
        if (code == K3HUF_EXIT_OK) {
            *crc = k3huf_crc32c_long(k3huf_isa(), *crc, chunk, got);
            code = k3huf_output_write(&job->output, chunk, got, fault);
        }
        done += got;
        k3huf_progress_add(job->options->progress, got);
    }
    free(chunk);
    return code;
}

static enum k3huf_exit check(struct job *job, const struct k3huf_archive_entry *entry, struct k3huf_fault *fault) {
    struct k3huf_input written;
    struct k3huf_source_compare compare = {.original = job->input, .name = job->output.name};
    written = (struct k3huf_input){
        .name = job->output.name, .fd = job->output.fd, .seekable = true, .size = job->output.written};
    const struct k3huf_decoding how = {
        .threads = job->options->threads, .require_index = job->options->block_log2 != 0, .except_single_bytes = true};
    return k3huf_archive_decode_entry(&written, entry, "", 0, how, k3huf_source_compare, &compare, fault);
}

static enum k3huf_exit write_entry(struct job *job, const struct stretch *stretch, struct k3huf_archive_entry *entry,
                                   bool *checked, struct k3huf_fault *fault) {
    struct k3huf_input source;
    const bool is_zeros = stretch->counts.zeros && stretch->bytes >= ZEROS_MIN;
    const bool is_run =
        !is_zeros && stretch->is_float && run_bytes(job, stretch->bytes, stretch->bits) < stretch->bytes;
    *entry = (struct k3huf_archive_entry){.source_offset = stretch->offset,
                                          .raw_bytes = stretch->bytes,
                                          .kind = is_zeros ? K3HUF_ENTRY_ZEROS
                                                  : is_run ? K3HUF_ENTRY_RUN
                                                           : K3HUF_ENTRY_STORED};
    *checked = is_zeros; /* counting has seen them all */
    if (is_zeros) {
        entry->raw_crc = k3huf_crc32c_zeros(entry->raw_bytes);
        k3huf_progress_add(job->options->progress, 2 * entry->raw_bytes);
        return K3HUF_EXIT_OK;
    }
    enum k3huf_exit code = align(job, fault);
    entry->offset = job->output.written;
    k3huf_input_view(&source, job->input, stretch->offset, stretch->bytes, job->input->name);
    if (code == K3HUF_EXIT_OK && is_run) {
        const struct k3huf_sink sink = {.put = put, .context = &job->output, .file = &job->output};
        struct k3huf_encoded encoded = {.crc = 0};
        uint8_t codelen[K3HUF_SYMBOLS];
        code = k3huf_choose_code(stretch->counts.histogram, stretch->bytes, job->options->max_code_length,
                                 job->input->name, codelen, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_encode_run(&source, job->options, codelen, &stretch->counts, &sink, &encoded, fault);
        }
        entry->raw_crc = encoded.crc;
        *checked = encoded.checked;
        job->result->runs++;
    } else if (code == K3HUF_EXIT_OK) {
        code = store(job, &source, &entry->raw_crc, fault);
    }
    entry->bytes = job->output.written - entry->offset;
    return code;
}

static void forget(struct stretch *stretch) {
    free(stretch->counts.stripe);
    stretch->counts.stripe = NULL;
}

/* What is pending becomes an entry. */
static enum k3huf_exit flush(struct job *job, struct k3huf_fault *fault) {
    struct stretch *stretch = &job->pending;
    struct k3huf_archive_entry entry;
    if (stretch->empty) { return K3HUF_EXIT_OK; }
    if (job->nentries == job->capacity) {
        const uint32_t capacity = job->capacity == 0 ? 64 : 2 * job->capacity;
        struct k3huf_archive_entry *grown = realloc(job->entry, capacity * sizeof *grown);
        if (grown == NULL) { return k3huf_fault_memory(fault, capacity * sizeof *grown); }
        job->entry = grown;
        job->capacity = capacity;
    }
    bool checked = false;
    enum k3huf_exit code = write_entry(job, stretch, &entry, &checked, fault);
    if (code == K3HUF_EXIT_OK && !checked) {
        code = check(job, &entry, fault);
        k3huf_progress_add(job->options->progress, entry.raw_bytes);
    }
    if (stretch->is_float) { job->result->coded_entries += stretch->bits; }
    /* Until the names are laid out, a tensor's number stands for its name. */
    entry.name_at = stretch->tensor;
    entry.name_bytes = stretch->named;
    job->entry[job->nentries++] = entry;
    stretch->empty = true;
    forget(stretch);
    return code;
}

/* Join `next` to what is pending, if that takes no more pages. */
static enum k3huf_exit join(struct job *job, const struct stretch *next, bool *joined, struct k3huf_fault *fault) {
    const struct stretch *pending = &job->pending;
    struct stretch both = *pending;
    *joined = false;
    if (pending->empty || pending->is_float != next->is_float) { return K3HUF_EXIT_OK; }
    both.bytes += next->bytes;
    both.counts.zeros = both.counts.zeros && next->counts.zeros;
    both.counts.crc = k3huf_crc32c_join(both.counts.crc, next->counts.crc, next->bytes);
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        both.counts.histogram[symbol] += next->counts.histogram[symbol];
    }
    if (both.bytes > (both.is_float ? JOINED_RUN_MAX : JOINED_STORED_MAX)) { return K3HUF_EXIT_OK; }
    if (both.is_float) {
        enum k3huf_exit code = size_up(job, &both, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        if (both.pages > pending->pages + next->pages) { return K3HUF_EXIT_OK; }
    } else if (!pending->named) {
        both.tensor = next->tensor;
        both.named = next->named;
    }
    both.counts.stripe = NULL;
    forget(&job->pending);
    job->pending = both;
    *joined = true;
    return K3HUF_EXIT_OK;
}

/* The next stretch of the source: bytes of a tensor, or (tensor K3HUF_ARCHIVE_NO_ENTRY) others. */
static enum k3huf_exit add(struct job *job, uint64_t offset, uint64_t bytes, uint32_t tensor,
                           struct k3huf_fault *fault) {
    struct stretch next = {.offset = offset, .bytes = bytes, .tensor = tensor};
    struct k3huf_input view;
    bool joined = false;
    if (bytes == 0) { return K3HUF_EXIT_OK; }
    k3huf_input_view(&view, job->input, offset, bytes, job->input->name);
    enum k3huf_exit code = k3huf_count(&view, job->options, &next.counts, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    next.named = tensor != K3HUF_ARCHIVE_NO_ENTRY;
    next.is_float = next.named && k3huf_dtype_is_float16(job->tensors->tensor[tensor].dtype);
    const bool zeros = next.counts.zeros && bytes >= ZEROS_MIN;
    if (zeros) {
        next.is_float = false;
    } else if (next.is_float) {
        code = size_up(job, &next, fault);
        job->result->float_tensors++;
        job->result->float_bytes += bytes;
        job->result->coded_tensors += next.bits;
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            job->histogram[symbol] += next.counts.histogram[symbol];
        }
    }
    const bool zeros_before = !job->pending.empty && job->pending.counts.zeros && job->pending.bytes >= ZEROS_MIN;
    if (code == K3HUF_EXIT_OK && !zeros && !zeros_before) { code = join(job, &next, &joined, fault); }
    if (code == K3HUF_EXIT_OK && !joined) {
        code = flush(job, fault);
        forget(&job->pending);
        job->pending = next;
    } else {
        forget(&next);
    }
    return code;
}

static enum k3huf_exit write_entries(struct job *job, struct k3huf_fault *fault) {
    uint64_t done = 0;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < job->tensors->n && code == K3HUF_EXIT_OK; i++) {
        const struct k3huf_tensor *tensor = &job->tensors->tensor[i];
        code = add(job, done, tensor->offset - done, K3HUF_ARCHIVE_NO_ENTRY, fault);
        if (code == K3HUF_EXIT_OK) { code = add(job, tensor->offset, tensor->bytes, i, fault); }
        done = tensor->offset + tensor->bytes;
    }
    if (code == K3HUF_EXIT_OK) { code = add(job, done, job->input->size - done, K3HUF_ARCHIVE_NO_ENTRY, fault); }
    return code == K3HUF_EXIT_OK ? flush(job, fault) : code;
}

/* --------------------------------------------------------------------------------------- table of contents ---- */

/* Names and the table's other parts. An entry's name is that of a tensor, and not there twice. */
static enum k3huf_exit make_toc(struct job *job, struct k3huf_archive_page *page, struct k3huf_fault *fault) {
    const struct k3huf_tensors *tensors = job->tensors;
    page->nentries = job->nentries;
    page->ntensors = tensors->n;
    page->ndims = tensors->ndims;
    const uint64_t names = k3huf_archive_names_at(page);
    page->toc_bytes = names;
    for (uint32_t i = 0; i < tensors->n; i++) {
        page->toc_bytes += tensors->tensor[i].name_bytes;
    }
    if (page->toc_bytes > K3HUF_ARCHIVE_TOC_MAX) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->input->name, NULL,
                               "has too many tensors for one archive (a table of contents of %" PRIu64 " bytes)",
                               page->toc_bytes);
    }
    job->toc = malloc((size_t)page->toc_bytes + 1);
    if (job->toc == NULL) { return k3huf_fault_memory(fault, page->toc_bytes); }
    uint32_t name_at = 0;
    uint32_t entry = 0;
    for (uint32_t i = 0; i < tensors->n; i++) {
        const struct k3huf_tensor *tensor = &tensors->tensor[i];
        while (tensor->bytes > 0 && job->entry[entry].source_offset + job->entry[entry].raw_bytes <= tensor->offset) {
            entry++;
        }
        if (tensor->bytes > 0 && job->entry[entry].name_bytes == 1 && job->entry[entry].name_at == i) {
            struct k3huf_archive_entry named = job->entry[entry];
            named.name_at = name_at;
            named.name_bytes = (uint32_t)tensor->name_bytes;
            k3huf_archive_entry_write(job->toc, entry, &named);
        }
        struct k3huf_archive_tensor record = {.source_offset = tensor->offset,
                                              .bytes = tensor->bytes,
                                              .entry = tensor->bytes == 0 ? K3HUF_ARCHIVE_NO_ENTRY : entry,
                                              .name_at = name_at,
                                              .name_bytes = (uint32_t)tensor->name_bytes,
                                              .rank = tensor->rank,
                                              .dims_at = tensor->dims_at};
        memcpy(record.dtype, tensor->dtype, sizeof record.dtype);
        k3huf_archive_tensor_write(page, job->toc, i, &record);
        memcpy(job->toc + names + name_at, tensor->name, tensor->name_bytes);
        name_at += (uint32_t)tensor->name_bytes;
    }
    for (uint32_t i = 0; i < job->nentries; i++) {
        if (job->entry[i].name_bytes == 0) {
            job->entry[i].name_at = 0;
            k3huf_archive_entry_write(job->toc, i, &job->entry[i]);
        }
    }
    for (uint32_t i = 0; i < tensors->ndims; i++) {
        k3huf_archive_dim_write(page, job->toc, i, tensors->dims[i]);
    }
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit finish(struct job *job, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_ARCHIVE_PAGE];
    struct k3huf_archive_page page = {.source_bytes = job->input->size, .source_kind = (uint32_t)job->tensors->kind};
    enum k3huf_exit code = make_toc(job, &page, fault);
    if (code == K3HUF_EXIT_OK) { code = align(job, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    for (uint32_t i = 0; i < job->nentries; i++) {
        page.source_crc = k3huf_crc32c_join(page.source_crc, job->entry[i].raw_crc, job->entry[i].raw_bytes);
    }
    if (job->input->memory == NULL) { page.source_mtime = k3huf_nanoseconds(job->input->mtime); }
    page.toc_offset = job->output.written;
    page.archive_bytes = page.toc_offset + page.toc_bytes;
    page.toc_crc = k3huf_crc32c(0, job->toc, (size_t)page.toc_bytes);
    k3huf_archive_page_write(&page, bytes);
    code = k3huf_output_write(&job->output, job->toc, (size_t)page.toc_bytes, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_patch(&job->output, 0, bytes, sizeof bytes, fault); }
    if (code != K3HUF_EXIT_OK) { return code; }
    /* What a reader will see: the entries are checked, here is the rest. */
    struct k3huf_input written;
    struct k3huf_archive archive;
    code = k3huf_input_adopt(&written, job->output.fd, job->output.name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_archive_open(&archive, &written, fault);
    k3huf_archive_close(&archive);
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_unchanged(job->input, fault); }
    return code == K3HUF_EXIT_OK ? k3huf_output_commit(&job->output, fault) : code;
}

static enum k3huf_exit pack(struct job *job, struct k3huf_fault *fault) {
    static const uint8_t page[K3HUF_ARCHIVE_PAGE];
    struct k3huf_archive_result *result = job->result;
    if (job->output.stream) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, job->output.name, NULL,
                               "an archive cannot go to a stream: its first page is written last");
    }
    enum k3huf_exit code = k3huf_output_write(&job->output, page, sizeof page, fault);
    if (code == K3HUF_EXIT_OK) { code = write_entries(job, fault); }
    /* A changed input is the likelier reason for a mismatch. */
    if (code == K3HUF_EXIT_MISMATCH) {
        enum k3huf_exit same = k3huf_input_unchanged(job->input, fault);
        code = same != K3HUF_EXIT_OK ? same : code;
    }
    if (code == K3HUF_EXIT_OK) { code = finish(job, fault); }
    result->source_bytes = job->input->size;
    result->archive_bytes = job->output.written;
    result->ntensors = job->tensors->n;
    result->nentries = job->nentries;
    uint8_t codelen[K3HUF_SYMBOLS];
    if (k3huf_code_lengths(job->histogram, job->options->max_code_length, codelen) == K3HUF_OK) {
        result->coded_one = code_bits(job->histogram, codelen);
    }
    return code;
}

enum k3huf_exit k3huf_archive_pack(struct k3huf_input *input, const struct k3huf_tensors *tensors, const char *out_name,
                                   bool force, const struct k3huf_encode_options *options,
                                   struct k3huf_archive_result *result, struct k3huf_fault *fault) {
    struct job *job = calloc(1, sizeof *job);
    *result = (struct k3huf_archive_result){0};
    if (job == NULL) { return k3huf_fault_memory(fault, sizeof *job); }
    job->input = input;
    job->tensors = tensors;
    job->options = options;
    job->result = result;
    job->pending.empty = true;
    enum k3huf_exit code = k3huf_output_open(&job->output, out_name, force, fault);
    if (code == K3HUF_EXIT_OK) {
        code = pack(job, fault);
        k3huf_output_discard(&job->output);
    }
    forget(&job->pending);
    free(job->entry);
    free(job->toc);
    free(job);
    return code;
}
