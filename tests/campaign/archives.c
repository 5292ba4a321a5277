/* archives.c - corruption campaign: seeded faults of storage in archives, through the host tool's own reader.
 *
 *   campaign_archives FAULTS [SEED]
 *
 * The archives are those that the tool makes of a safetensors file with 16-bit floats, stored tensors and zeros: runs
 * of several stripes and of one, with and without block index. Faults begin in each of an archive's parts in turn.
 * After each one three things are done: all is unpacked, all is verified, and a tensor or a stretch of the source is
 * unpacked. The tables count what came of it, by kind of fault and by part:
 *
 *   refused    the reader says that the archive is corrupt (or that there is no such tensor)
 *   exact      the right bytes: the fault hit bytes that are not looked at, or not needed for the part asked for
 *   undetected wrong bytes without a word; one is enough for exit code 1 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_file.h"
#include "archive_pack.h"
#include "faults.h"
#include "k3_histogram.h"
#include "safetensors.h"

#define SOURCE_MAX 400000u
#define ARCHIVE_MAX 500000u
#define HEADER_MAX 4096u
#define STRETCHES_MAX 1000u

enum part { PART_PAGE, PART_TABLE, PART_STORED, PART_HEADERS, PART_PLANES, PART_PADDING, PARTS };
static const char *const part_names[PARTS] = {"first page", "table", "stored", "run headers", "run planes", "padding"};

static const struct {
    uint32_t stripe_bytes, block_log2;
} shapes[] = {{67108864, 12}, {20000, 12}, {67108864, 0}, {30002, 0}, {9000, 13}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static uint8_t source[SOURCE_MAX], archive[ARCHIVE_MAX], damaged[ARCHIVE_MAX];
static size_t source_size, archive_size;

/* Where each part of the archive is; the ends of its entries and what is between. */
static struct {
    enum part part;
    size_t from, to;
} stretch[STRETCHES_MAX];
static size_t stretches;

static _Noreturn void give_up(const char *what, const char *why) {
    (void)fprintf(stderr, "campaign_archives: %s: %s\n", what, why);
    exit(2);
}

/* ------------------------------------------------------------------------------------------------- archives ---- */

static void build_source(void) {
    static const struct {
        const char *dtype;
        uint32_t bytes, rank;
        bool floats, zeros;
    } tensor[] = {{"BF16", 90000, 2, true, false}, {"F32", 6000, 1, false, false}, {"BF16", 3002, 1, true, false},
                  {"I32", 70000, 1, false, true},  {"BF16", 0, 1, false, false},   {"BF16", 65536, 1, true, false},
                  {"U8", 7001, 1, false, false},   {"BF16", 70002, 1, true, false}};
    struct k3huf_rng rng = {11};
    char header[HEADER_MAX];
    size_t at = 0, data = 0;
    at += (size_t)snprintf(header, sizeof header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < sizeof tensor / sizeof tensor[0]; i++) {
        const uint32_t size = strcmp(tensor[i].dtype, "U8") == 0 ? 1 : tensor[i].dtype[0] == 'B' ? 2 : 4;
        const uint32_t last = tensor[i].rank == 2 ? 100 : 1;
        at += (size_t)snprintf(
            header + at, sizeof header - at,
            ",\"layer.%zu.w\":{\"dtype\":\"%s\",\"shape\":[%" PRIu32 "%s],\"data_offsets\":[%zu,%zu]}", i,
            tensor[i].dtype, tensor[i].bytes / size / last, last == 1 ? "" : ",100", data, data + tensor[i].bytes);
        data += tensor[i].bytes;
    }
    at += (size_t)snprintf(header + at, sizeof header - at, "}");
    source_size = 8 + at + data;
    if (at >= sizeof header || source_size > sizeof source) { give_up("source", "too large"); }
    memset(source, 0, sizeof source);
    for (unsigned i = 0; i < 8; i++) {
        source[i] = (uint8_t)((uint64_t)at >> (8u * i));
    }
    memcpy(source + 8, header, at);
    uint8_t *to = source + 8 + at;
    for (size_t i = 0; i < sizeof tensor / sizeof tensor[0]; i++) {
        if (tensor[i].floats) {
            k3huf_generate(to, tensor[i].bytes, i + 1, k3huf_k3_histogram);
        } else if (!tensor[i].zeros) {
            k3huf_rng_fill(&rng, to, tensor[i].bytes);
        }
        to += tensor[i].bytes;
    }
}

static void build_archive(unsigned shape) {
    char name[64];
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_tensors tensors;
    struct k3huf_archive_result result;
    const struct k3huf_encode_options options = {.stripe_bytes = shapes[shape].stripe_bytes,
                                                 .max_code_length = K3HUF_CODE_LENGTH_MAX,
                                                 .block_log2 = shapes[shape].block_log2,
                                                 .threads = 1};
    struct k3huf_input input = {.name = "source", .fd = -1, .seekable = true, .size = source_size, .memory = source};
    (void)snprintf(name, sizeof name, "campaign_archives-%ld.k3a", (long)getpid());
    if (k3huf_safetensors_read(&input, &tensors, &fault) != K3HUF_EXIT_OK ||
        k3huf_archive_pack(&input, &tensors, name, true, &options, &result, &fault) != K3HUF_EXIT_OK) {
        give_up("pack", fault.text);
    }
    k3huf_tensors_free(&tensors);
    FILE *const file = fopen(name, "rb");
    archive_size = file == NULL ? 0 : fread(archive, 1, sizeof archive, file);
    if (file == NULL || fclose(file) != 0 || unlink(name) != 0 || archive_size != result.archive_bytes) {
        give_up(name, "cannot be read back");
    }
}

static void add_stretch(enum part part, size_t from, size_t to) {
    if (from == to) { return; }
    if (stretches == STRETCHES_MAX) { give_up("archive", "too many parts"); }
    stretch[stretches].part = part;
    stretch[stretches].from = from;
    stretch[stretches++].to = to;
}

static uint32_t number(size_t at) {
    return (uint32_t)archive[at] | (uint32_t)archive[at + 1] << 8 | (uint32_t)archive[at + 2] << 16 |
           (uint32_t)archive[at + 3] << 24;
}

static void map_archive(const struct k3huf_archive *good) {
    size_t end = K3HUF_ARCHIVE_PAGE;
    stretches = 0;
    add_stretch(PART_PAGE, 0, K3HUF_ARCHIVE_PAGE);
    for (uint32_t i = 0; i < good->page.nentries; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(good->toc, i, &entry);
        if (entry.kind == K3HUF_ENTRY_ZEROS) { continue; }
        size_t at = (size_t)entry.offset;
        add_stretch(PART_PADDING, end, at);
        end = at + (size_t)entry.bytes;
        if (entry.kind == K3HUF_ENTRY_STORED) {
            add_stretch(PART_STORED, at, end);
            continue;
        }
        add_stretch(PART_HEADERS, at, at + K3HUF_RUN_HEADER_BYTES);
        at += K3HUF_RUN_HEADER_BYTES;
        while (at < end) {
            const size_t planes = at + K3HUF_STRIPE_HEADER_BYTES;
            const size_t filler = planes + number(at + 8) + k3huf_even_bytes(number(at + 4));
            add_stretch(PART_HEADERS, at, planes);
            add_stretch(PART_PLANES, planes, filler);
            add_stretch(PART_HEADERS, filler, filler + number(at + 12)); /* the index */
            at = filler + number(at + 12);
        }
    }
    add_stretch(PART_PADDING, end, (size_t)good->page.toc_offset);
    add_stretch(PART_TABLE, (size_t)good->page.toc_offset, archive_size);
}

/* -------------------------------------------------------------------------------------------------- reading ---- */

struct watch {
    uint64_t at;
    bool wrong;
};

static enum k3huf_exit take(void *context, const uint8_t *data, uint64_t size, uint64_t offset,
                            struct k3huf_fault *fault) {
    static const uint8_t zeros[4096];
    struct watch *const watch = context;
    (void)fault;
    watch->wrong = watch->wrong || offset != watch->at || size > source_size - offset;
    watch->at += size;
    for (uint64_t done = 0; !watch->wrong && done < size;) {
        const size_t now = data != NULL                 ? (size_t)size
                           : size - done < sizeof zeros ? (size_t)(size - done)
                                                        : sizeof zeros;
        watch->wrong = memcmp(data != NULL ? data : zeros, source + offset + done, now) != 0;
        done += now;
    }
    return K3HUF_EXIT_OK;
}

enum outcome { REFUSED, EXACT, UNDETECTED };

/* Bytes `from` up to `to`, or those of the tensor of that name, which must be the same ones. */
static enum outcome unpack(struct k3huf_archive *opened, const char *name, uint64_t from, uint64_t to) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct watch watch = {.at = from};
    uint64_t begin = from, end = to;
    if (name != NULL) {
        struct k3huf_archive_tensor tensor;
        if (!k3huf_archive_find(opened, name, &tensor)) { return REFUSED; }
        begin = tensor.source_offset;
        end = begin + tensor.bytes;
    }
    const enum k3huf_exit code = k3huf_archive_decode(opened, begin, end, 1, NULL, take, &watch, &fault);
    if (code != K3HUF_EXIT_OK && code != K3HUF_EXIT_CORRUPT) { give_up("a refusal that is not of damage", fault.text); }
    if (code != K3HUF_EXIT_OK) { return REFUSED; }
    return !watch.wrong && watch.at == to && begin == from ? EXACT : UNDETECTED;
}

static void count(struct k3huf_count *counts, enum outcome outcome) {
    counts->faults++;
    counts->refused += outcome == REFUSED;
    counts->exact += outcome == EXACT;
    counts->undetected += outcome == UNDETECTED;
}

struct tables {
    struct k3huf_count whole[KINDS], verified[KINDS], part[KINDS], by_part[PARTS];
};

static void one_fault(enum k3huf_fault_kind kind, size_t where, struct k3huf_rng *rng, const char *name, uint64_t from,
                      uint64_t to, struct tables *tables) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_archive opened;
    const size_t size =
        k3huf_put_fault(kind, rng, archive, archive_size, stretch[where].from, stretch[where].to, damaged);
    struct k3huf_input input = {.name = "archive", .fd = -1, .seekable = true, .size = size, .memory = damaged};
    enum outcome whole = REFUSED, verified = REFUSED, part = REFUSED;
    if (k3huf_archive_open(&opened, &input, &fault) == K3HUF_EXIT_OK) {
        whole = unpack(&opened, NULL, 0, source_size);
        part = unpack(&opened, name, from, to);
        /* What verify lets through must be what unpack makes right. */
        verified = k3huf_archive_verify(&opened, NULL, 1, NULL, &fault) != K3HUF_EXIT_OK ? REFUSED
                   : whole == EXACT                                                      ? EXACT
                                                                                         : UNDETECTED;
    }
    k3huf_archive_close(&opened);
    count(&tables->whole[kind], whole);
    count(&tables->verified[kind], verified);
    count(&tables->part[kind], part);
    count(&tables->by_part[stretch[where].part], part);
    if (whole == UNDETECTED || verified == UNDETECTED || part == UNDETECTED) {
        (void)printf("undetected: %s that begins in %s, bytes %zu to %zu, of an archive with stripes of %s\n",
                     k3huf_kind_names[kind], part_names[stretch[where].part], stretch[where].from, stretch[where].to,
                     name == NULL ? "a stretch asked for" : name);
    }
}

static void campaign(unsigned shape, uint64_t faults, struct k3huf_rng *rng, struct tables *tables) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_archive good;
    build_archive(shape);
    struct k3huf_input input = {.name = "archive", .fd = -1, .seekable = true, .size = archive_size, .memory = archive};
    if (k3huf_archive_open(&good, &input, &fault) != K3HUF_EXIT_OK) { give_up("good archive", fault.text); }
    map_archive(&good);
    for (uint64_t i = 0; i < faults; i++) {
        const enum k3huf_fault_kind kind = (enum k3huf_fault_kind)(i % KINDS);
        const enum part part = (enum part)(i / KINDS % PARTS);
        size_t where = k3huf_rng_below(rng, (uint32_t)stretches);
        while (stretch[where].part != part) {
            where = (where + 1) % stretches;
        }
        struct k3huf_archive_tensor tensor;
        char name[64] = "";
        k3huf_archive_tensor_read(&good.page, good.toc, k3huf_rng_below(rng, good.page.ntensors), &tensor);
        memcpy(name, k3huf_archive_name(&good, tensor.name_at), tensor.name_bytes);
        uint64_t from = tensor.source_offset, to = from + tensor.bytes;
        const bool stretch_of_it = k3huf_rng_below(rng, 2) == 0;
        if (stretch_of_it) {
            from = k3huf_rng_below(rng, (uint32_t)source_size);
            to = from + k3huf_rng_below(rng, 5000u);
            to = to < source_size ? to : source_size;
        }
        one_fault(kind, where, rng, stretch_of_it ? NULL : name, from, to, tables);
    }
    k3huf_archive_close(&good);
}

int main(int argc, char **argv) {
    static struct tables tables;
    char *end = NULL;
    const uint64_t faults = argc > 1 ? strtoull(argv[1], &end, 10) : 0;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc > 3 || faults == 0 || *end != '\0') {
        (void)fprintf(stderr, "usage: campaign_archives FAULTS [SEED]\n");
        return 2;
    }
    struct k3huf_rng rng = {seed};
    build_source();
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        campaign(shape, faults / SHAPES + (shape < faults % SHAPES), &rng, &tables);
    }
    const char *const *const kinds = k3huf_kind_names;
    const uint64_t whole = k3huf_print_counts("archives, all unpacked", seed, kinds, tables.whole, KINDS).undetected;
    const uint64_t verified = k3huf_print_counts("archives, verified", seed, kinds, tables.verified, KINDS).undetected;
    const uint64_t part = k3huf_print_counts("archives, a part unpacked", seed, kinds, tables.part, KINDS).undetected;
    (void)k3huf_print_counts("the same, by where the fault begins", seed, part_names, tables.by_part, PARTS);
    (void)printf(
        "trust: corruption of archives | %" PRIu64 " faults in page, table, stored bytes, runs and padding; all "
        "unpacked, verified, a part unpacked | %" PRIu64 ", %" PRIu64 ", %" PRIu64 " undetected, none allowed\n",
        faults, whole, verified, part);
    return whole + verified + part > 0 ? 1 : 0;
}
