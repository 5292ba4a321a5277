/* decode.c - the image k3huf_decode: decode runs read through semihosting and compare them with their originals.
 *
 *     k3huf_decode RUN ORIGINAL [RUN ORIGINAL]... [RUN]
 *
 * One line a run: raw and coded bytes, CRC-32C of the raw bytes, timer ticks and instructions spent inside the core
 * (not in reading). A last RUN without ORIGINAL is only decoded. The first failure ends it with a line that names file,
 * stripe, block and offset, and exit code 1; wrong arguments give 2. All memory is static; files are read in small
 * pieces through one cursor for each plane, the way firmware reads a drive.
 */
#include "k3huf.h"
#include "semihost.h"
#include "virt.h"

#include <inttypes.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE 2

#define CURSOR_BYTES 65536u
/* The largest block of an index, which must wait in the output until its CRC has passed. */
#define BLOCK_BYTES_MAX (2u << K3HUF_BLOCK_LOG2_MAX)
/* The largest index: a whole stripe in the smallest blocks. */
#define INDEX_BYTES_MAX                                                                                                \
    (K3HUF_INDEX_HEADER_BYTES + K3HUF_INDEX_ENTRY_BYTES * ((K3HUF_STRIPE_RAW_MAX / 2u) >> K3HUF_BLOCK_LOG2_MIN))

/* A window into a file: `size` bytes of it from `offset` on. */
struct cursor {
    uint64_t offset;
    size_t size;
    uint8_t bytes[CURSOR_BYTES];
};

struct file {
    const char *name;
    int64_t handle;
    uint64_t length;
};

static struct cursor coded, raw, expected;
static uint8_t output[BLOCK_BYTES_MAX];
static uint8_t index_memory[INDEX_BYTES_MAX];
static struct k3huf_workspace workspace;
static struct k3huf_decoder decoder;

static bool open_file(struct file *file, const char *name) {
    file->name = name;
    file->handle = k3huf_semihost_open(name, SEMIHOST_READ_BINARY);
    if (file->handle < 0) {
        printf("k3huf_decode: %s: cannot be opened\n", name);
        return false;
    }
    int64_t length = k3huf_semihost_length(file->handle);
    if (length < 0) {
        printf("k3huf_decode: %s: has no length\n", name);
        return false;
    }
    file->length = (uint64_t)length;
    return true;
}

/* Fill the window from `offset` on with as much as `wanted`, the window and the file allow. */
static bool load(struct cursor *cursor, const struct file *file, uint64_t offset, uint64_t wanted) {
    uint64_t left = offset < file->length ? file->length - offset : 0;
    uint64_t size = wanted < left ? wanted : left;
    size = size < CURSOR_BYTES ? size : CURSOR_BYTES;
    cursor->offset = offset;
    cursor->size = 0;
    if (size == 0) { return true; }
    if (!k3huf_semihost_seek(file->handle, offset) ||
        k3huf_semihost_read(file->handle, cursor->bytes, (size_t)size) != (int64_t)size) {
        printf("k3huf_decode: %s: offset %" PRIu64 ": cannot be read\n", file->name, offset);
        return false;
    }
    cursor->size = (size_t)size;
    return true;
}

/* The part of the window from `offset` on; empty where the window does not reach there. */
static const uint8_t *span(const struct cursor *cursor, uint64_t offset, size_t *size) {
    bool inside = offset >= cursor->offset && offset - cursor->offset <= cursor->size;
    size_t skip = inside ? (size_t)(offset - cursor->offset) : cursor->size;
    *size = cursor->size - skip;
    return cursor->bytes + skip;
}

/* Compare `size` decoded bytes, those at `offset` of the run, with the original. */
static bool compare(const struct file *original, uint64_t offset, const uint8_t *bytes, size_t size) {
    while (size > 0) {
        size_t count = 0;
        const uint8_t *want = span(&expected, offset, &count);
        if (count == 0) {
            if (!load(&expected, original, offset, CURSOR_BYTES)) { return false; }
            want = span(&expected, offset, &count);
            if (count == 0) {
                printf("k3huf_decode: %s: ends at %" PRIu64 ", the run goes on\n", original->name, original->length);
                return false;
            }
        }
        count = count < size ? count : size;
        for (size_t i = 0; i < count; ++i) {
            if (bytes[i] != want[i]) {
                printf("k3huf_decode: %s: offset %" PRIu64 ": expected 0x%02x, decoded 0x%02x\n", original->name,
                       offset + i, want[i], bytes[i]);
                return false;
            }
        }
        bytes += count;
        offset += count;
        size -= count;
    }
    return true;
}

static void print_place(const struct file *run, enum k3huf_status status) {
    const struct k3huf_place *place = k3huf_where(&decoder);
    printf("k3huf_decode: %s: ", run->name);
    if (place->stripe != K3HUF_NO_STRIPE) { printf("stripe %" PRIu32 ", ", place->stripe); }
    if (place->block != K3HUF_NO_BLOCK) { printf("block %" PRIu32 ", ", place->block); }
    printf("offset %" PRIu64 ": %s\n", place->offset, k3huf_status_text(status));
}

struct totals {
    uint64_t raw_bytes;
    uint64_t ticks;
    uint64_t instructions;
    uint32_t crc;
};

/* Decode one run; `original` NULL: compare with nothing. */
static bool decode(const struct file *run, const struct file *original, bool count_instructions,
                   struct totals *totals) {
    const struct k3huf_config config = {
        .index = index_memory, .index_size = sizeof index_memory, .workspace = &workspace};
    enum k3huf_status status = k3huf_decoder_init(&decoder, &config);
    struct k3huf_io io = {.out = output, .out_size = sizeof output};
    coded.size = raw.size = expected.size = 0;

    while (status == K3HUF_OK || status == K3HUF_WAIT) {
        struct k3huf_need need;
        k3huf_decoder_need(&decoder, &need);
        io.coded = span(&coded, need.coded_offset, &io.coded_size);
        io.raw = span(&raw, need.raw_offset, &io.raw_size);
        if (status == K3HUF_WAIT || io.coded_size == 0) {
            if (!load(&coded, run, need.coded_offset, need.coded_bytes)) { return false; }
            io.coded = span(&coded, need.coded_offset, &io.coded_size);
        }
        if (status == K3HUF_WAIT || io.raw_size == 0) {
            if (!load(&raw, run, need.raw_offset, need.raw_bytes)) { return false; }
            io.raw = span(&raw, need.raw_offset, &io.raw_size);
        }
        bool loaded = status == K3HUF_WAIT;
        if (io.out_size < need.out_bytes) {
            /* What waits behind the finished bytes moves to the front with what room there is. */
            for (size_t i = 0; i < io.out_size; ++i) {
                output[i] = io.out[i];
            }
            io.out = output;
            io.out_size = sizeof output;
        }

        const uint8_t *made = io.out;
        uint32_t instructions = count_instructions ? k3huf_virt_instructions() : 0;
        uint64_t ticks = k3huf_virt_ticks();
        status = k3huf_decode(&decoder, &io);
        totals->ticks += k3huf_virt_ticks() - ticks;
        if (count_instructions) { totals->instructions += (uint32_t)(k3huf_virt_instructions() - instructions); }

        size_t size = (size_t)(io.out - made);
        if (original != NULL && !compare(original, need.out_offset, made, size)) { return false; }
        totals->crc = k3huf_crc32c(totals->crc, made, size);
        totals->raw_bytes += size;
        if (status == K3HUF_WAIT && loaded) { break; /* full windows were not enough: the file ends too early */ }
    }
    if (status == K3HUF_WAIT || status == K3HUF_DONE) { status = k3huf_finish(&decoder); }
    if (status != K3HUF_DONE) {
        print_place(run, status);
        return false;
    }
    if (original != NULL && totals->raw_bytes != original->length) {
        printf("k3huf_decode: %s: has %" PRIu64 " bytes, the run holds %" PRIu64 "\n", original->name, original->length,
               totals->raw_bytes);
        return false;
    }
    return true;
}

static bool decode_files(const char *run_name, const char *original_name, bool count_instructions) {
    struct file run;
    struct file original;
    if (!open_file(&run, run_name) || (original_name != NULL && !open_file(&original, original_name))) { return false; }
    struct totals totals = {0};
    if (!decode(&run, original_name != NULL ? &original : NULL, count_instructions, &totals)) { return false; }
    printf("%s: %" PRIu64 " bytes from %" PRIu64 ", CRC-32C %08" PRIx32 ", %s, %" PRIu64 " ticks of %" PRIu64 " Hz",
           run_name, totals.raw_bytes, run.length, totals.crc,
           original_name != NULL ? "as the original" : "not compared", totals.ticks, k3huf_virt_tick_hz());
    if (count_instructions) { printf(", %" PRIu64 " instructions", totals.instructions); }
    printf("\n");
    (void)k3huf_semihost_close(run.handle);
    if (original_name != NULL) { (void)k3huf_semihost_close(original.handle); }
    return true;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        printf("usage: k3huf_decode RUN ORIGINAL [RUN ORIGINAL]... [RUN]\n");
        return EXIT_USAGE;
    }
    bool count_instructions = k3huf_virt_instructions_start();
    for (int i = 1; i < argc; i += 2) {
        if (!decode_files(argv[i], i + 1 < argc ? argv[i + 1] : NULL, count_instructions)) { return EXIT_FAILED; }
    }
    return 0;
}
