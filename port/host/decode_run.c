/* decode_run.c - see decode_run.h.
 *
 *   plan   walk the stripes: check each header and index, cut them into groups of blocks, bring the bytes of those.
 *   work   decode a group.
 *   take   hand its blocks on, up to the first one that failed.
 *
 * A stripe without an index is one block, as long as the stripe. May not decode or parse: that is the core's.
 */
#include "decode_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crc_join.h"
#include "dispatch.h"
#include "large.h"
#include "pipeline.h"
#include "safetensors.h"

/* A group is closed once it has that much to decode and as many blocks for every lane; or that many blocks. */
#define GROUP_RAW_BYTES ((uint64_t)512 << 10)
#define GROUP_BLOCKS (16u * K3HUF_LANES)
/* Memory of all groups that are not yet taken, unless a single block needs more. */
#define HELD_BYTES ((uint64_t)1 << 30)
/* Memory that a group may keep beyond what it needs. */
#define KEPT_BYTES ((size_t)16 << 20)

/* Index of the largest stripe with the smallest blocks. */
#define INDEX_MAX                                                                                                      \
    (K3HUF_INDEX_HEADER_BYTES + K3HUF_INDEX_ENTRY_BYTES * (K3HUF_STRIPE_RAW_MAX / 2u >> K3HUF_BLOCK_LOG2_MIN))

/* Bytes of the run that a group needs. */
struct span {
    uint64_t offset; /* in the run */
    size_t size;
    size_t at; /* in the group's memory */
};

/* Where a block of a group is; what there is to know of it beside struct k3huf_block. */
struct where {
    uint32_t stripe;
    uint32_t block;         /* K3HUF_NO_BLOCK: the stripe has no index */
    uint64_t coded_plane;   /* offset in the run */
    uint64_t offset;        /* of its first byte in the decoded run */
    uint32_t stripe_offset; /* the same in the decoded stripe */
    unsigned span;          /* of its coded bytes; the next span holds its raw ones */
    size_t coded_at;        /* in that span */
    size_t raw_at;
    bool stripe_end;
};

struct group {
    struct k3huf_workspace workspace;
    unsigned blocks;
    unsigned spans;
    bool indexed;
    struct k3huf_block block[GROUP_BLOCKS];
    struct where where[GROUP_BLOCKS];
    struct span span[2 * GROUP_BLOCKS];
    size_t in_bytes;
    size_t out_bytes;
    uint8_t *memory; /* k3huf_large_new(): spans, then decoded bytes */
    size_t capacity;
    struct k3huf_fault fault; /* found behind its blocks; code K3HUF_EXIT_OK: none */
};

/* A run being decoded. The input is either `input`, or, where that is NULL, parts in memory. */
struct k3huf_run_driver {
    const char *name;
    unsigned threads;
    bool require_index;
    bool except_single_bytes;
    k3huf_take *take;
    void *context;
    const struct k3huf_isa *isa;
    struct group *group; /* malloc'ed, one a slot */

    struct k3huf_input *input;
    struct k3huf_input again; /* the same, for raw planes; only seekable inputs, while driven */
    /* What is in memory of a stream, or the part given; unused with a seekable input. */
    uint8_t *stream; /* malloc'ed */
    size_t stream_capacity;
    const uint8_t *window;
    size_t window_size;
    uint64_t window_offset; /* of window[0] in the run */

    /* Planning. */
    struct k3huf_table table;
    struct k3huf_run_header header;
    bool opened;   /* the run header is read */
    bool failed;   /* a fault is planned: nothing comes after it */
    uint64_t from; /* of the decoded run, what is wanted: 0, or a range of a seekable input */
    uint64_t to;
    uint32_t stripe; /* the current one, or the next one to open */
    uint64_t offset; /* of it in the run */
    uint64_t done;   /* raw bytes of the stripes before it */
    bool inside;     /* it is open: */
    struct k3huf_stripe_header stripe_header;
    struct k3huf_index index;
    uint32_t block; /* the next one to plan */
    struct k3huf_run_facts facts;
    uint8_t index_bytes[INDEX_MAX];
};

static enum k3huf_exit damage(const struct k3huf_run_driver *run, enum k3huf_status status, uint32_t stripe,
                              uint32_t block, uint64_t offset, struct k3huf_fault *fault) {
    const struct k3huf_place place = {stripe, block, offset};
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, &place, "%s", k3huf_status_text(status));
}

/* --------------------------------------------------------------------------------------------------- input ---- */

static bool seekable(const struct k3huf_run_driver *run) { return run->input != NULL && run->input->seekable; }

/* Read on in a stream until the window reaches `end` (an offset in the run), or the stream ends. */
static enum k3huf_exit stream_to(struct k3huf_run_driver *run, uint64_t end, struct k3huf_fault *fault) {
    while (run->input != NULL && !seekable(run) && run->window_offset + run->window_size < end) {
        const size_t wanted = (size_t)(end - run->window_offset);
        if (run->window_size == run->stream_capacity) {
            /* Grown as bytes come, and not as a header says that they will. */
            const size_t least = (size_t)1 << 20;
            const size_t twice = 2 * run->stream_capacity > least ? 2 * run->stream_capacity : least;
            const size_t capacity = run->stream_capacity < wanted && wanted < twice ? wanted : twice;
            uint8_t *grown = realloc(run->stream, capacity);
            if (grown == NULL) { return k3huf_fault_memory(fault, capacity); }
            run->stream = grown;
            run->stream_capacity = capacity;
            run->window = grown;
        }
        const size_t room = run->stream_capacity - run->window_size;
        const size_t missing = wanted - run->window_size;
        const size_t most = missing < room ? missing : room;
        size_t got = 0;
        enum k3huf_exit code = k3huf_input_read(run->input, run->stream + run->window_size, most, most, &got, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        run->window_size += got;
        if (got < most) { break; }
    }
    return K3HUF_EXIT_OK;
}

/* Read up to `size` bytes from `offset` on, which for a stream is in its window or right behind it. *got is less than
 * `size` only where the input ends. */
static enum k3huf_exit read_run(struct k3huf_run_driver *run, uint64_t offset, uint8_t *buffer, size_t size,
                                size_t *got, struct k3huf_fault *fault) {
    if (seekable(run)) { return k3huf_input_read_at(run->input, offset, buffer, size, got, fault); }
    enum k3huf_exit code = stream_to(run, offset + size, fault);
    const uint64_t end = run->window_offset + run->window_size;
    *got = 0;
    if (code == K3HUF_EXIT_OK && offset < end && size > 0) {
        *got = size < end - offset ? size : (size_t)(end - offset);
        memcpy(buffer, run->window + (offset - run->window_offset), *got);
    }
    return code;
}

/* The same for bytes that a run must have at this place. */
static enum k3huf_exit read_whole(struct k3huf_run_driver *run, uint64_t offset, uint8_t *buffer, size_t size,
                                  struct k3huf_fault *fault) {
    size_t got = 0;
    enum k3huf_exit code = read_run(run, offset, buffer, size, &got, fault);
    return code != K3HUF_EXIT_OK || got == size
               ? code
               : damage(run, K3HUF_E_TRUNCATED, run->opened ? run->stripe : K3HUF_NO_STRIPE, K3HUF_NO_BLOCK,
                        offset + got, fault);
}

/* What lies before `offset` is done with: leave it behind. The input must have it all. */
static enum k3huf_exit skip_to(struct k3huf_run_driver *run, uint64_t offset, struct k3huf_fault *fault) {
    if (seekable(run) && run->input->size < offset) {
        return damage(run, K3HUF_E_TRUNCATED, run->stripe, K3HUF_NO_BLOCK, run->input->size, fault);
    }
    while (!seekable(run) && run->window_offset < offset) {
        if (run->window_offset + run->window_size >= offset) {
            const size_t behind = (size_t)(offset - run->window_offset);
            run->window_size -= behind;
            if (run->input == NULL) {
                run->window += behind;
            } else {
                memmove(run->stream, run->stream + behind, run->window_size);
            }
            run->window_offset = offset;
            break;
        }
        /* Filler, which may be larger than one would like to hold. */
        run->window_offset += run->window_size;
        run->window_size = 0;
        const uint64_t left = offset - run->window_offset;
        const uint64_t piece = (uint64_t)1 << 20;
        enum k3huf_exit code = stream_to(run, run->window_offset + (left < piece ? left : piece), fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        if (run->window_size == 0) {
            return damage(run, K3HUF_E_TRUNCATED, run->stripe, K3HUF_NO_BLOCK, run->window_offset, fault);
        }
    }
    return K3HUF_EXIT_OK;
}

/* ------------------------------------------------------------------------------------------------ planning ---- */

/* Whether the whole input is a file to be packed rather than a run. */
static bool is_source(const struct k3huf_run_driver *run) {
    struct k3huf_fault ignored;
    bool is = false;
    return seekable(run) && !run->input->view &&
           k3huf_safetensors_recognise(run->input, &is, &ignored) == K3HUF_EXIT_OK && is;
}

static enum k3huf_exit open_run(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_RUN_HEADER_BYTES];
    uint32_t bad = 0;
    enum k3huf_exit code = read_whole(run, 0, bytes, sizeof bytes, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    enum k3huf_status status = k3huf_run_header_read(bytes, &run->header, &bad);
    if (status == K3HUF_OK) { status = run->isa->table_build(&run->table, run->header.codelen); }
    if (status == K3HUF_E_RUN_MAGIC && is_source(run)) {
        const struct k3huf_place place = {K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, bad};
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, &place, "%s (a safetensors file: pack it first)",
                               k3huf_status_text(status));
    }
    if (status != K3HUF_OK) { return damage(run, status, K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, bad, fault); }
    run->opened = true;
    run->offset = K3HUF_RUN_HEADER_BYTES;
    run->facts.nstripes = run->header.nstripes;
    run->facts.raw_bytes = run->header.raw_bytes;
    return skip_to(run, run->offset, fault);
}

static enum k3huf_exit read_index(struct k3huf_run_driver *run, uint64_t filler, struct k3huf_fault *fault) {
    const struct k3huf_stripe_header *stripe = &run->stripe_header;
    uint32_t bad = 0;
    uint32_t block = K3HUF_NO_BLOCK;
    uint32_t size = 0;
    const size_t front = stripe->pad < K3HUF_INDEX_HEADER_BYTES ? stripe->pad : K3HUF_INDEX_HEADER_BYTES;
    enum k3huf_exit code = read_whole(run, filler, run->index_bytes, front, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    enum k3huf_status status = k3huf_index_probe(run->index_bytes, front, stripe, &size, &bad);
    if (status == K3HUF_OK && size > 0) {
        code = read_whole(run, filler + front, run->index_bytes + front, size - front, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        status = k3huf_index_read(run->index_bytes, size, stripe, &run->index, &bad, &block);
    }
    if (status != K3HUF_OK) { return damage(run, status, run->stripe, block, filler + bad, fault); }
    run->facts.indexed += size > 0;
    run->facts.blocks += run->index.nblocks;
    return K3HUF_EXIT_OK;
}

/* Read the next stripe's header and index. */
static enum k3huf_exit open_stripe(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    uint8_t bytes[K3HUF_STRIPE_HEADER_BYTES];
    uint32_t bad = 0;
    enum k3huf_exit code = read_whole(run, run->offset, bytes, sizeof bytes, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    struct k3huf_stripe_header *stripe = &run->stripe_header;
    const enum k3huf_status status =
        k3huf_stripe_header_read(bytes, &run->header, run->stripe, run->done, stripe, &bad);
    if (status != K3HUF_OK) { return damage(run, status, run->stripe, K3HUF_NO_BLOCK, run->offset + bad, fault); }
    const uint64_t filler = run->offset + k3huf_stripe_bytes(stripe) - stripe->pad;
    code = stream_to(run, filler, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const uint64_t input_end = seekable(run) ? run->input->size : run->window_offset + run->window_size;
    if (input_end < filler) { return damage(run, K3HUF_E_TRUNCATED, run->stripe, K3HUF_NO_BLOCK, input_end, fault); }
    run->index = (struct k3huf_index){.nblocks = 0};
    run->block = 0;
    run->inside = true;
    code = read_index(run, filler, fault);
    if (code == K3HUF_EXIT_OK && run->from > run->done && run->index.nblocks > 0) {
        const uint64_t first = (run->from - run->done) >> (run->index.block_log2 + 1u);
        run->block = first < run->index.nblocks ? (uint32_t)first : run->index.nblocks - 1u;
    }
    return code;
}

/* The open stripe's last block is planned. */
static enum k3huf_exit close_stripe(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    run->inside = false;
    run->offset += k3huf_stripe_bytes(&run->stripe_header);
    run->done += run->stripe_header.raw_bytes;
    const enum k3huf_exit code = skip_to(run, run->offset, fault);
    run->stripe++;
    return code;
}

/* The open stripe's next block, as far as it is known without its bytes. */
static void next_block(const struct k3huf_run_driver *run, struct k3huf_block *block) {
    const struct k3huf_stripe_header *stripe = &run->stripe_header;
    if (run->index.nblocks > 0) {
        k3huf_block_init(block, &run->index, stripe, run->block);
    } else {
        *block = (struct k3huf_block){.end = stripe->huf_bytes * 8u, .raw_bytes = stripe->raw_bytes, .last = true};
    }
}

static size_t coded_bytes(const struct k3huf_block *block) { return (block->end + 7u) / 8u - block->begin / 8u; }

static uint64_t memory_for(const struct k3huf_block *block) {
    return (uint64_t)coded_bytes(block) + k3huf_even_bytes(block->raw_bytes) + block->raw_bytes;
}

/* Of the next block's first byte in the decoded run. */
static uint64_t block_offset(const struct k3huf_run_driver *run) {
    return run->done + ((uint64_t)run->block << (run->index.block_log2 + 1u));
}

static void add_block(struct k3huf_run_driver *run, struct group *group, const struct k3huf_block *block) {
    const bool indexed = run->index.nblocks > 0;
    const uint64_t coded_plane = run->offset + K3HUF_STRIPE_HEADER_BYTES;
    const uint64_t raw_plane = coded_plane + run->stripe_header.huf_bytes;
    const uint32_t stripe_offset = indexed ? run->block << (run->index.block_log2 + 1u) : 0;
    const uint64_t coded_offset = coded_plane + block->begin / 8u;
    const uint64_t raw_offset = raw_plane + stripe_offset / 2u;
    if (group->blocks == 0 || group->where[group->blocks - 1].stripe != run->stripe) {
        group->span[group->spans++] = (struct span){.offset = coded_offset};
        group->span[group->spans++] = (struct span){.offset = raw_offset};
    }
    struct span *const coded = &group->span[group->spans - 2];
    struct span *const raw = &group->span[group->spans - 1];
    group->block[group->blocks] = *block;
    group->where[group->blocks] = (struct where){.stripe = run->stripe,
                                                 .block = indexed ? run->block : K3HUF_NO_BLOCK,
                                                 .coded_plane = coded_plane,
                                                 .offset = run->done + stripe_offset,
                                                 .stripe_offset = stripe_offset,
                                                 .span = group->spans - 2,
                                                 .coded_at = (size_t)(coded_offset - coded->offset),
                                                 .raw_at = (size_t)(raw_offset - raw->offset),
                                                 .stripe_end = block->last};
    coded->size = (size_t)(coded_offset - coded->offset) + coded_bytes(block);
    raw->size = (size_t)(raw_offset - raw->offset) + k3huf_even_bytes(block->raw_bytes);
    group->out_bytes += block->raw_bytes;
    group->blocks++;
    group->indexed = indexed;
}

/* Lay the group's memory out. */
static enum k3huf_exit lay_out(struct group *group, struct k3huf_fault *fault) {
    for (unsigned i = 0; i < group->spans; i++) {
        group->span[i].at = group->in_bytes;
        group->in_bytes += group->span[i].size;
    }
    /* Rounded up, since groups differ a little: the first allocation then mostly is the last. */
    const size_t wanted = (group->in_bytes + group->out_bytes + 0xffffu) & ~(size_t)0xffffu;
    if (group->capacity < wanted || group->capacity - wanted > KEPT_BYTES) {
        free(group->memory);
        group->memory = k3huf_large_new(wanted);
        group->capacity = group->memory == NULL ? 0 : wanted;
        if (group->memory == NULL) { return k3huf_fault_memory(fault, wanted); }
    }
    size_t out = group->in_bytes;
    for (unsigned i = 0; i < group->blocks; i++) {
        const struct where *where = &group->where[i];
        group->block[i].coded = group->memory + group->span[where->span].at + where->coded_at;
        group->block[i].raw = group->memory + group->span[where->span + 1].at + where->raw_at;
        group->block[i].out = group->memory + out;
        out += group->block[i].raw_bytes;
    }
    return K3HUF_EXIT_OK;
}

/* Bring the group's bytes. The planes of a stripe lie apart, and each is read on: by a descriptor of its own. */
static enum k3huf_exit fill(struct k3huf_run_driver *run, struct group *group, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (unsigned i = 0; i < group->spans && code == K3HUF_EXIT_OK; i++) {
        const struct span *span = &group->span[i];
        uint8_t *to = group->memory + span->at;
        if (seekable(run)) {
            struct k3huf_input *input = i % 2 == 0 ? run->input : &run->again;
            size_t got = 0;
            code = k3huf_input_read_at(input, span->offset, to, span->size, &got, fault);
            if (code == K3HUF_EXIT_OK && got != span->size) {
                code = k3huf_input_changed(input, span->offset + got, fault);
            }
        } else {
            code = read_whole(run, span->offset, to, span->size, fault);
        }
    }
    return code;
}

static bool no_more_stripes(const struct k3huf_run_driver *run) {
    return run->stripe == run->header.nstripes || run->done >= run->to || (run->input == NULL && run->window_size == 0);
}

/* A group should have a multiple of that many blocks: one for each lane; fewer where whole stripes are blocks and
 * threads would go without. */
static uint32_t blocks_at_once(const struct k3huf_run_driver *run, const struct group *group) {
    const uint32_t stripes = run->header.nstripes - (group->blocks == 0 ? run->stripe : group->where[0].stripe);
    const uint32_t each = stripes / run->threads;
    return group->indexed || each >= K3HUF_LANES ? K3HUF_LANES : each == 0 ? 1 : each;
}

/* Be inside a stripe that is wanted. false: there is none for this group, or a fault, which is in the group then. */
static bool enter_stripe(struct k3huf_run_driver *run, struct group *group) {
    while (!run->inside) {
        if (no_more_stripes(run) || (group->blocks > 0 && !seekable(run))) { return false; }
        if (open_stripe(run, &group->fault) != K3HUF_EXIT_OK) { return false; }
        if (run->done + run->stripe_header.raw_bytes <= run->from) {
            if (close_stripe(run, &group->fault) != K3HUF_EXIT_OK) { return false; }
        } else if (run->require_index && run->index.nblocks == 0 &&
                   !(run->except_single_bytes && run->stripe_header.raw_bytes == 1)) {
            (void)damage(run, K3HUF_E_INDEX_ABSENT, run->stripe, K3HUF_NO_BLOCK,
                         run->offset + k3huf_stripe_bytes(&run->stripe_header) - run->stripe_header.pad, &group->fault);
            return false;
        }
    }
    return true;
}

/* Gather blocks until the group is full. A fault stays in the group, to be met once its blocks are taken. */
static enum k3huf_plan gather(struct k3huf_run_driver *run, struct group *group, uint64_t held, uint64_t *bytes) {
    const uint64_t share = HELD_BYTES / run->threads;
    while (group->blocks < GROUP_BLOCKS &&
           (group->blocks % blocks_at_once(run, group) != 0 || group->out_bytes < GROUP_RAW_BYTES)) {
        if (!enter_stripe(run, group)) { break; }
        struct k3huf_block block;
        next_block(run, &block);
        const uint64_t more = memory_for(&block);
        if (group->blocks == 0) {
            /* Of this group, in the end. */
            const uint64_t most = run->index.nblocks > 0 ? K3HUF_LANES * more + 2 * GROUP_RAW_BYTES
                                  : more > share         ? more
                                                         : share;
            if (held > 0 && held + most > HELD_BYTES) { return K3HUF_PLAN_WAIT; }
        } else if (group->indexed != (run->index.nblocks > 0) || *bytes + more > share) {
            break;
        }
        add_block(run, group, &block);
        *bytes += more;
        run->block++;
        if (block.last || block_offset(run) >= run->to) {
            if (!seekable(run)) { break; /* its bytes are in the window; close_stripe() would drop them */ }
            if (close_stripe(run, &group->fault) != K3HUF_EXIT_OK) { break; }
        }
    }
    if (group->blocks > 0) {
        struct k3huf_fault fault;
        const bool whole_stripe = !seekable(run) && group->block[group->blocks - 1].last;
        if (lay_out(group, &fault) != K3HUF_EXIT_OK || fill(run, group, &fault) != K3HUF_EXIT_OK) {
            group->blocks = 0;
            group->fault = fault; /* comes before what was found behind the blocks */
        } else if (whole_stripe) {
            (void)close_stripe(run, &group->fault);
        }
    }
    run->failed = group->fault.code != K3HUF_EXIT_OK;
    return group->blocks > 0 || run->failed ? K3HUF_PLAN_JOB : K3HUF_PLAN_END;
}

static enum k3huf_plan plan_group(void *context, unsigned slot, uint64_t held, uint64_t *bytes) {
    struct k3huf_run_driver *run = context;
    struct group *group = &run->group[slot];
    if (run->failed) { return K3HUF_PLAN_END; }
    group->blocks = 0;
    group->spans = 0;
    group->in_bytes = 0;
    group->out_bytes = 0;
    group->indexed = false;
    group->fault.code = K3HUF_EXIT_OK;
    return gather(run, group, held, bytes);
}

/* ------------------------------------------------------------------------------------------ work and take ---- */

static void work_group(void *context, unsigned slot) {
    struct k3huf_run_driver *run = context;
    struct group *group = &run->group[slot];
    (void)run->isa->decode_blocks(&run->table, &group->workspace, group->block, group->blocks, group->indexed);
}

static uint32_t block_crc(const void *context, size_t i) { return ((const struct k3huf_block *)context)[i].crc; }

uint32_t k3huf_piece_crc(const struct k3huf_piece *piece) {
    const struct k3huf_block *block = piece->block;
    const unsigned n = piece->nblocks;
    return n == 0 ? k3huf_crc32c_long(k3huf_isa(), 0, piece->data, piece->size)
                  : k3huf_crc32c_join_all(block_crc, block, n, block[0].raw_bytes, block[n - 1].raw_bytes);
}

/* Blocks i ... end - 1 of a group lie in one stripe, one behind the other: one piece. */
static enum k3huf_exit hand_on(struct k3huf_run_driver *run, const struct group *group, unsigned i, unsigned end,
                               struct k3huf_fault *fault) {
    const struct where *first = &group->where[i];
    struct k3huf_piece piece = {.data = group->block[i].out,
                                .offset = first->offset,
                                .stripe = first->stripe,
                                .stripe_offset = first->stripe_offset,
                                .stripe_end = group->where[end - 1].stripe_end,
                                .nblocks = group->indexed ? end - i : 0,
                                .block = &group->block[i]};
    for (; i < end; i++) {
        piece.size += group->block[i].raw_bytes;
    }
    return run->take(run->context, &piece, fault);
}

static enum k3huf_exit take_group(void *context, unsigned slot, struct k3huf_fault *fault) {
    struct k3huf_run_driver *run = context;
    const struct group *group = &run->group[slot];
    for (unsigned i = 0; i < group->blocks;) {
        unsigned end = i;
        while (end < group->blocks && group->where[end].stripe == group->where[i].stripe &&
               group->block[end].status == K3HUF_OK) {
            end++;
        }
        if (end == i) {
            const struct where *where = &group->where[i];
            return damage(run, group->block[i].status, where->stripe, where->block,
                          where->coded_plane + group->block[i].bad_bit / 8u, fault);
        }
        enum k3huf_exit code = hand_on(run, group, i, end, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        i = end;
    }
    if (group->fault.code != K3HUF_EXIT_OK) { *fault = group->fault; }
    return group->fault.code;
}

/* Decode until the run is done or what is given of it ends. */
static enum k3huf_exit drive(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    if (!run->opened) {
        enum k3huf_exit code = open_run(run, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    const struct k3huf_pipeline pipeline = {
        .threads = run->threads, .context = run, .plan = plan_group, .work = work_group, .take = take_group};
    if (seekable(run)) { k3huf_input_again(&run->again, run->input); }
    const enum k3huf_exit code = k3huf_pipeline_run(&pipeline, fault);
    if (seekable(run)) { k3huf_input_close(&run->again); }
    return code;
}

/* ------------------------------------------------------------------------------------------------- drivers ---- */

static struct k3huf_run_driver *run_new(const char *name, struct k3huf_input *input, struct k3huf_decoding how,
                                        k3huf_take *take, void *context, struct k3huf_fault *fault) {
    struct k3huf_run_driver *run = calloc(1, sizeof *run);
    const unsigned slots = k3huf_pipeline_slots(how.threads, false);
    if (run != NULL) { run->group = calloc(slots, sizeof *run->group); }
    if (run == NULL || run->group == NULL) {
        free(run);
        (void)k3huf_fault_memory(fault, sizeof *run + (uint64_t)slots * sizeof *run->group);
        return NULL;
    }
    run->name = name;
    run->threads = how.threads;
    run->require_index = how.require_index;
    run->except_single_bytes = how.except_single_bytes;
    run->take = take;
    run->context = context;
    run->isa = k3huf_isa();
    run->input = input;
    run->to = UINT64_MAX;
    return run;
}

void k3huf_run_driver_free(struct k3huf_run_driver *run) {
    if (run != NULL) {
        for (unsigned slot = 0; slot < k3huf_pipeline_slots(run->threads, false); slot++) {
            free(run->group[slot].memory);
        }
        free(run->group);
        free(run->stream);
        free(run);
    }
}

/* The run is decoded: the input must be all of it, and nothing else. */
static enum k3huf_exit check_end(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    const uint64_t end = run->offset;
    if (run->input->seekable) {
        return run->input->size > end
                   ? k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                                     "%" PRIu64 " bytes after the end of the run (offset %" PRIu64 ")",
                                     run->input->size - end, end)
                   : K3HUF_EXIT_OK;
    }
    uint8_t byte = 0;
    size_t got = 0;
    enum k3huf_exit code = read_run(run, end, &byte, 1, &got, fault);
    return code == K3HUF_EXIT_OK && got != 0
               ? k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                                 "bytes after the end of the run (offset %" PRIu64 ")", end)
               : code;
}

enum k3huf_exit k3huf_decode_run(struct k3huf_input *input, struct k3huf_decoding how, k3huf_take *take, void *context,
                                 struct k3huf_run_facts *facts, struct k3huf_fault *fault) {
    struct k3huf_run_driver *run = run_new(input->name, input, how, take, context, fault);
    if (run == NULL) { return fault->code; }
    enum k3huf_exit code = drive(run, fault);
    if (code == K3HUF_EXIT_OK) { code = check_end(run, fault); }
    if (facts != NULL) {
        *facts = run->facts;
        facts->run_bytes = run->offset;
    }
    k3huf_run_driver_free(run);
    return code;
}

static uint32_t index_crc(const void *context, size_t i) {
    const struct k3huf_run_driver *run = context;
    struct k3huf_block block;
    k3huf_block_init(&block, &run->index, &run->stripe_header, (uint32_t)i);
    return block.crc;
}

/* Join the open stripe's CRC, as its index has it, and its entries to those before. */
static void join_stripe(struct k3huf_run_driver *run) {
    if (run->index.nblocks > 0) {
        const uint64_t block_bytes = (uint64_t)2 << run->index.block_log2;
        const uint64_t last_bytes = run->stripe_header.raw_bytes - (run->index.nblocks - 1u) * block_bytes;
        const uint32_t crc = k3huf_crc32c_join_all(index_crc, run, run->index.nblocks, block_bytes, last_bytes);
        run->facts.crc = k3huf_crc32c_join(run->facts.crc, crc, run->stripe_header.raw_bytes);
        run->facts.entries_crc = run->isa->crc32c(run->facts.entries_crc, run->index.entries,
                                                  (size_t)run->index.nblocks * K3HUF_INDEX_ENTRY_BYTES);
    }
}

enum k3huf_exit k3huf_walk_run(struct k3huf_input *input, struct k3huf_run_facts *facts, struct k3huf_fault *fault) {
    struct k3huf_run_driver *run =
        run_new(input->name, input, (struct k3huf_decoding){.threads = 1}, NULL, NULL, fault);
    if (run == NULL) { return fault->code; }
    enum k3huf_exit code = open_run(run, fault);
    while (code == K3HUF_EXIT_OK && run->stripe < run->header.nstripes) {
        code = open_stripe(run, fault);
        if (code == K3HUF_EXIT_OK) {
            join_stripe(run);
            code = close_stripe(run, fault);
        }
    }
    if (code == K3HUF_EXIT_OK) { code = check_end(run, fault); }
    *facts = run->facts;
    facts->run_bytes = run->offset;
    k3huf_run_driver_free(run);
    return code;
}

enum k3huf_exit k3huf_decode_range(struct k3huf_input *input, struct k3huf_decoding how, uint64_t from, uint64_t to,
                                   k3huf_take *take, void *context, struct k3huf_fault *fault) {
    struct k3huf_run_facts facts;
    enum k3huf_exit code = how.walked ? K3HUF_EXIT_OK : k3huf_walk_run(input, &facts, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    struct k3huf_run_driver *run = run_new(input->name, input, how, take, context, fault);
    if (run == NULL) { return fault->code; }
    code = open_run(run, fault);
    if (code == K3HUF_EXIT_OK && (from > to || to > run->header.raw_bytes)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_USAGE, run->name, NULL,
                               "bytes %" PRIu64 " up to %" PRIu64 " are asked for, but it decodes to %" PRIu64, from,
                               to, run->header.raw_bytes);
    }
    run->from = from;
    run->to = to;
    if (code == K3HUF_EXIT_OK && from < to) { code = drive(run, fault); }
    k3huf_run_driver_free(run);
    return code;
}

struct k3huf_run_driver *k3huf_run_driver_new(const char *name, struct k3huf_decoding how, k3huf_take *take,
                                              void *context, struct k3huf_fault *fault) {
    return run_new(name, NULL, how, take, context, fault);
}

enum k3huf_exit k3huf_run_driver_give(struct k3huf_run_driver *run, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault) {
    run->window = part;
    run->window_size = size;
    run->window_offset = run->offset;
    enum k3huf_exit code = drive(run, fault);
    if (code == K3HUF_EXIT_OK && run->window_size != 0) {
        code =
            k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, run->name, NULL,
                            "%zu bytes after the end of the run (offset %" PRIu64 ")", run->window_size, run->offset);
    }
    return code;
}

enum k3huf_exit k3huf_run_driver_finish(struct k3huf_run_driver *run, struct k3huf_fault *fault) {
    if (!run->opened || run->stripe != run->header.nstripes) {
        return damage(run, K3HUF_E_TRUNCATED, run->opened ? run->stripe : K3HUF_NO_STRIPE, K3HUF_NO_BLOCK, run->offset,
                      fault);
    }
    return K3HUF_EXIT_OK;
}
