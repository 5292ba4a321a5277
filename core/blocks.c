/* blocks.c - the calls that give lanes.c its lanes: bare ones, and whole blocks of an indexed stripe, each checked
 * before it counts. May not read headers or the index's bytes: a caller fills in struct k3huf_block, by
 * k3huf_block_init() or by hand.
 */
#include "bytes.h"
#include "compiler.h"
#include "k3huf.h"
#include "plane.h"

void k3huf_lanes(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *lane,
                 size_t n) {
    k3huf_lane_groups(table, workspace, lane, sizeof *lane, n);
}

void k3huf_block_init(struct k3huf_block *block, const struct k3huf_index *index,
                      const struct k3huf_stripe_header *stripe, uint32_t number) {
    const uint32_t raw_per_block = 2u << index->block_log2;
    const uint32_t raw_begin = number * raw_per_block;
    block->last = number + 1u == index->nblocks;
    block->begin = k3huf_index_bit(index, number);
    block->end = block->last ? stripe->huf_bytes * 8u : k3huf_index_bit(index, number + 1u);
    block->raw_bytes = block->last ? stripe->raw_bytes - raw_begin : raw_per_block;
    block->crc = k3huf_index_crc(index, number);
    block->status = K3HUF_WAIT;
    block->bad_bit = block->begin;
}

static void lane_init(struct k3huf_lane *lane, const struct k3huf_block *block, bool check_crc) {
    lane->coded = block->coded;
    lane->coded_size = (block->end + 7u) / 8u - block->begin / 8u;
    lane->bit = block->begin & 7u;
    lane->crc = 0;
    lane->with_crc = check_crc;
    lane->status = K3HUF_WAIT;
    lane->raw = block->raw;
    lane->out = block->out;
    lane->symbols = k3huf_odd_bytes(block->raw_bytes);
}

/* The verdict on a block whose lane has run as far as it could. */
static enum k3huf_status check(struct k3huf_block *block, bool check_crc) {
    struct k3huf_lane *const lane = &block->lane;
    block->bad_bit = (block->begin & ~7u) + (uint32_t)(lane->coded - block->coded) * 8u + lane->bit;
    if (lane->status == K3HUF_E_CODE_WORD) { return K3HUF_E_CODE_WORD; }
    if (lane->status == K3HUF_WAIT) { return block->last ? K3HUF_E_CODED_SHORT : K3HUF_E_BLOCK_END; }
    if (!block->last && block->bad_bit != block->end) { return K3HUF_E_BLOCK_END; }
    if (block->last && !k3huf_plane_ends(lane->coded, lane->coded_size, lane->bit)) { return K3HUF_E_CODED_LONG; }
    if ((block->raw_bytes & 1u) != 0) { /* the stripe's last even byte has no partner */
        *lane->out = *lane->raw;
        lane->crc = k3huf_crc32c(lane->crc, lane->out, 1);
    }
    if (check_crc && lane->crc != block->crc) {
        block->bad_bit = block->begin;
        return K3HUF_E_BLOCK_CRC;
    }
    return K3HUF_OK;
}

enum k3huf_status k3huf_decode_blocks(const struct k3huf_table *table, struct k3huf_workspace *workspace,
                                      struct k3huf_block *block, size_t n, bool check_crc) {
    enum k3huf_status first = K3HUF_OK;
    for (size_t i = 0; i < n; i++) {
        lane_init(&block[i].lane, &block[i], check_crc);
    }
    if (n > 0) { k3huf_lane_groups(table, workspace, &block[0].lane, sizeof block[0], n); }
    for (size_t i = 0; i < n; i++) {
        block[i].status = check(&block[i], check_crc);
        if (block[i].status != K3HUF_OK) {
            k3huf_zero(block[i].out, block[i].raw_bytes);
            first = first == K3HUF_OK ? block[i].status : first;
        }
    }
    return first;
}
