/* status.c - a line of text for every status. May not format, allocate or print. */
#include "k3huf.h"

const char *k3huf_status_text(enum k3huf_status status) {
    switch (status) {
    case K3HUF_OK: return "no error";
    case K3HUF_WAIT: return "more input or output space is needed";
    case K3HUF_DONE: return "the whole run is decoded";
    case K3HUF_E_ARGUMENT: return "an argument is not what the call allows";
    case K3HUF_E_TRUNCATED: return "the input ends inside the run";
    case K3HUF_E_RUN_MAGIC: return "not a k3huf run: wrong magic";
    case K3HUF_E_RUN_VERSION: return "unknown run version";
    case K3HUF_E_RUN_STRIPES: return "the number of stripes cannot hold the run's raw bytes";
    case K3HUF_E_CODE_LENGTH: return "a code length is over 12 bits";
    case K3HUF_E_CODE_OVERFULL: return "the code lengths are over-full: Kraft sum above 1";
    case K3HUF_E_CODE_EMPTY: return "no symbol has a code";
    case K3HUF_E_STRIPE_MAGIC: return "wrong stripe magic";
    case K3HUF_E_STRIPE_RAW: return "the stripe's raw bytes are 0, over 64 MiB, or do not fit the run";
    case K3HUF_E_STRIPE_CODED: return "the coded plane's size is impossible for the stripe's symbols";
    case K3HUF_E_CODE_WORD: return "the coded plane holds bits that are no code";
    case K3HUF_E_CODED_SHORT: return "the coded plane ends before the last symbol";
    case K3HUF_E_CODED_LONG: return "the coded plane goes on after the last symbol";
    case K3HUF_E_INDEX_SIZE: return "the block index does not fit the filler";
    case K3HUF_E_INDEX_VERSION: return "unknown block index version";
    case K3HUF_E_INDEX_LOG2: return "the block index has a block size outside 2^12 to 2^20";
    case K3HUF_E_INDEX_FLAGS: return "the block index has unknown flags";
    case K3HUF_E_INDEX_COUNT: return "the block index has the wrong number of blocks";
    case K3HUF_E_INDEX_CRC: return "the block index's CRC-32C is wrong";
    case K3HUF_E_INDEX_OFFSET: return "the block index has an impossible bit offset";
    case K3HUF_E_INDEX_MEMORY: return "the block index is larger than the memory for it";
    case K3HUF_E_BLOCK_END: return "the block does not end where the index says";
    case K3HUF_E_BLOCK_CRC: return "the block's CRC-32C is wrong";
    case K3HUF_STATUS_COUNT: break;
    }
    return "unknown status";
}
