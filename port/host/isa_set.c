/* isa_set.c - the functions of one instruction set variant as a table (dispatch.h). Compiled with every variant; where
 * that is not the baseline, the build renames each function of the core and the encoder, and the table itself. */
#include "dispatch.h"

const struct k3huf_isa k3huf_isa_set = {
    .name = K3HUF_ISA_NAME,
    .table_build = k3huf_table_build,
    .lanes = k3huf_lanes,
    .decode_blocks = k3huf_decode_blocks,
    .merge = k3huf_merge,
    .crc32c = k3huf_crc32c,
    .crc32c_lanes = k3huf_crc32c_lanes,
    .decoder_init = k3huf_decoder_init,
    .decoder_need = k3huf_decoder_need,
    .decode = k3huf_decode,
    .histogram_odd = k3huf_histogram_odd,
    .encode_part = k3huf_encode_part,
    .encode_stripe = k3huf_encode_stripe,
};
