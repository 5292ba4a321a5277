/* status.c - a line of text for every status. May not format, allocate or print.
 *
 * The texts stand in one block of characters, not behind pointers: no relocation, wherever the code is linked.
 */
#include "k3huf.h"

#define TEXT_BYTES 72u

/* In the order of enum k3huf_status. */
static const char text[K3HUF_STATUS_COUNT][TEXT_BYTES] = {
    /* K3HUF_OK */ "no error",
    /* K3HUF_WAIT */ "more input or output space is needed",
    /* K3HUF_DONE */ "the whole run is decoded",
    /* K3HUF_E_ARGUMENT */ "an argument is not what the call allows",
    /* K3HUF_E_TRUNCATED */ "the input ends inside the run",
    /* K3HUF_E_RUN_MAGIC */ "not a k3huf run: wrong magic",
    /* K3HUF_E_RUN_VERSION */ "unknown run version",
    /* K3HUF_E_RUN_STRIPES */ "the number of stripes cannot hold the run's raw bytes",
    /* K3HUF_E_CODE_LENGTH */ "a code length is over 12 bits",
    /* K3HUF_E_CODE_OVERFULL */ "the code lengths are over-full: Kraft sum above 1",
    /* K3HUF_E_CODE_EMPTY */ "no symbol has a code",
    /* K3HUF_E_STRIPE_MAGIC */ "wrong stripe magic",
    /* K3HUF_E_STRIPE_RAW */ "the stripe's raw bytes are 0, over 64 MiB, or do not fit the run",
    /* K3HUF_E_STRIPE_CODED */ "the coded plane's size is impossible for the stripe's symbols",
    /* K3HUF_E_CODE_WORD */ "the coded plane holds bits that are no code",
    /* K3HUF_E_CODED_SHORT */ "the coded plane ends before the last symbol",
    /* K3HUF_E_CODED_LONG */ "the coded plane goes on after the last symbol",
    /* K3HUF_E_INDEX_SIZE */ "the block index does not fit the filler",
    /* K3HUF_E_INDEX_VERSION */ "unknown block index version",
    /* K3HUF_E_INDEX_LOG2 */ "the block index has a block size outside 2^12 to 2^20",
    /* K3HUF_E_INDEX_FLAGS */ "the block index has unknown flags",
    /* K3HUF_E_INDEX_COUNT */ "the block index has the wrong number of blocks",
    /* K3HUF_E_INDEX_CRC */ "the block index's CRC-32C is wrong",
    /* K3HUF_E_INDEX_OFFSET */ "the block index has an impossible bit offset",
    /* K3HUF_E_INDEX_MEMORY */ "the block index is larger than the memory for it",
    /* K3HUF_E_BLOCK_END */ "the block does not end where the index says",
    /* K3HUF_E_BLOCK_CRC */ "the block's CRC-32C is wrong",
    /* K3HUF_E_INDEX_ABSENT */ "the stripe has no block index, and one is required",
};

const char *k3huf_status_text(enum k3huf_status status) {
    return (uint32_t)status < K3HUF_STATUS_COUNT ? text[status] : "unknown status";
}
