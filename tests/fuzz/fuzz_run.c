/* fuzz_run.c - fuzz target: a run through struct k3huf_decoder, in the mode and chunking that its reserved bytes say,
 * held against the bit-by-bit reference decoder. Both must agree on whether it is good, on the class of what is wrong,
 * and on every byte; the feeder holds the decoder to its contract on the way. */
#include <stdlib.h>
#include <string.h>

#include "feeder.h"
#include "mutate.h"
#include "reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return k3huf_fuzz_mutate_run(data, size, max_size, seed);
}

#define INDEX_BYTES 4096u /* memory for an index, where it is not to be too small */

#define ONE(NAME) (UINT64_C(1) << K3HUF_E_##NAME)
#define SPAN(FIRST, LAST) ((ONE(LAST) << 1) - ONE(FIRST))

/* What the decoder looks at before the reference does: counts and sizes that cannot be. */
#define EARLY (ONE(RUN_STRIPES) | ONE(CODE_EMPTY) | ONE(STRIPE_RAW) | ONE(STRIPE_CODED))
#define PLANE SPAN(CODE_WORD, CODED_LONG)
#define INDEX (SPAN(INDEX_SIZE, BLOCK_CRC) & ~ONE(INDEX_MEMORY))

/* The statuses that are right where the reference names a rule. The order in which several broken rules of one stripe
 * are met is the decoder's own. */
static const struct {
    const char *rule;
    uint64_t statuses;
} rules[] = {
    {"a run shorter than its header", ONE(TRUNCATED)},
    {"not a run", ONE(RUN_MAGIC)},
    {"an unknown version", ONE(RUN_VERSION)},
    {"a code length over 12", ONE(CODE_LENGTH) | ONE(RUN_STRIPES)},
    {"an over-full code space", ONE(CODE_OVERFULL) | ONE(RUN_STRIPES)},
    {"an end inside a stripe header", ONE(TRUNCATED) | EARLY},
    {"a wrong stripe magic", ONE(STRIPE_MAGIC) | EARLY},
    {"a stripe size outside 1 ... 64 MiB", EARLY},
    {"stripes larger than the run", EARLY},
    {"an empty code", EARLY},
    {"an end inside a stripe", ONE(TRUNCATED) | EARLY | PLANE | INDEX},
    {"stripes smaller than the run", EARLY},
    {"a coded plane that ends before the last symbol", EARLY | PLANE | INDEX},
    {"bits that are no code", EARLY | PLANE | INDEX},
    {"bytes after the last symbol", EARLY | PLANE | INDEX},
    {"bits that are not 0 after the last symbol", EARLY | PLANE | INDEX},
    {"an index header cut short by the filler's end", EARLY | PLANE | ONE(INDEX_SIZE)},
    {"an unknown index version", EARLY | PLANE | ONE(INDEX_VERSION)},
    {"block_log2 outside 12 ... 20", EARLY | PLANE | ONE(INDEX_LOG2)},
    {"index flags", EARLY | PLANE | ONE(INDEX_FLAGS)},
    {"a block count that does not fit the stripe", EARLY | PLANE | ONE(INDEX_COUNT)},
    {"an index longer than the filler", EARLY | PLANE | ONE(INDEX_SIZE)},
    {"a wrong CRC of the index", EARLY | PLANE | ONE(INDEX_CRC)},
    {"a first offset that is not 0", EARLY | PLANE | ONE(INDEX_OFFSET)},
    {"an offset that goes back", EARLY | PLANE | ONE(INDEX_OFFSET)},
    {"a block that does not begin at its offset", EARLY | PLANE | ONE(INDEX_OFFSET) | ONE(BLOCK_END) | ONE(BLOCK_CRC)},
    {"a wrong CRC of a block", EARLY | ONE(BLOCK_CRC)},
};
#define INDEX_RULES_BEGIN 16u

static void compare(const struct k3huf_feed *feed, const char *wrong, const uint8_t *witness, size_t bytes) {
    /* With two cursors the last filler is not read: that it is there is for the caller to see. */
    const bool done = feed->status == K3HUF_DONE && feed->run_end <= feed->run_size;
    if (wrong == NULL) {
        if (!done) { k3huf_fuzz_found("a good run is refused", k3huf_status_text(feed->status)); }
        if (feed->produced != bytes || memcmp(feed->out, witness, bytes) != 0) {
            k3huf_fuzz_found("wrong bytes", NULL);
        }
        return;
    }
    size_t rule = 0;
    while (strcmp(rules[rule].rule, wrong) != 0) {
        if (++rule == sizeof rules / sizeof rules[0]) { k3huf_fuzz_found("a rule this file does not know", wrong); }
    }
    const bool index_rule = rule >= INDEX_RULES_BEGIN;
    if (index_rule && (feed->index == NULL || feed->skip_crc)) {
        return; /* not looked at, so the decoder went on where the reference stopped */
    }
    if (done) { k3huf_fuzz_found("a bad run is taken", wrong); }
    if (feed->status != K3HUF_DONE && ((rules[rule].statuses >> feed->status) & 1u) == 0) {
        k3huf_fuzz_found(wrong, k3huf_status_text(feed->status));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t control[K3HUF_FUZZ_CONTROL_BYTES] = {0};
    if (size >= K3HUF_RUN_HEADER_BYTES) { memcpy(control, data + K3HUF_FUZZ_CONTROL, sizeof control); }
    /* Half of a run's decoded bytes, at least, lie in it bare: what claims more is refused, or waits for room. */
    uint64_t claim = 0;
    for (unsigned i = 0; i < 8 && size >= K3HUF_RUN_HEADER_BYTES; i++) {
        claim |= (uint64_t)data[8 + i] << (8u * i);
    }
    const bool fits = claim <= 2u * (uint64_t)size;
    const size_t out_size = fits ? (size_t)claim : 2u * size;
    uint8_t *const out = malloc(out_size + 1u), *const witness = malloc(out_size + 1u);
    uint8_t *const index = malloc(INDEX_BYTES);
    if (out == NULL || witness == NULL || index == NULL) { abort(); }
    struct k3huf_feed feed = {.run = data, .run_size = size, .out = out, .out_size = out_size};
    /* Byte by byte only where that does not take seconds. */
    (void)k3huf_feed_mode(&feed, size > 6000u ? control[0] % 2u + (control[0] / 2u % 2u == 0 ? 0u : 16u)
                                              : control[0] % K3HUF_FEED_MODES);
    feed.skip_crc = (control[1] & 3u) == 3u;
    feed.seed = control[2];
    feed.require_index = (control[4] & 7u) == 7u && (control[1] & 12u) != 12u;
    if ((control[1] & 12u) != 12u) {
        feed.index = index;
        feed.index_size = (control[1] & 48u) == 48u ? 16u + control[3] % 64u : INDEX_BYTES;
    }
    k3huf_feed_run(&feed);
    if (feed.fault != NULL) { k3huf_fuzz_found("the decoder broke its contract", feed.fault); }
    size_t bytes, used;
    const char *const wrong = k3huf_reference_decode(data, size, witness, out_size, &bytes, &used);
    if (!fits) {
        if (feed.status == K3HUF_DONE) { k3huf_fuzz_found("more bytes than there can be", NULL); }
    } else if (feed.status != K3HUF_E_INDEX_MEMORY && feed.status != K3HUF_E_INDEX_ABSENT) {
        compare(&feed, wrong, witness, bytes);
        if (wrong == NULL && feed.run_end != used) { k3huf_fuzz_found("the run's end is elsewhere", NULL); }
    }
    free(out);
    free(witness);
    free(index);
    return 0;
}
