/* memory_run.c - see memory_run.h. */
#include "memory_run.h"

#include "package_merge.h"

static uint32_t piece(size_t left, uint32_t stripe_bytes) {
    return left < stripe_bytes ? (uint32_t)left : stripe_bytes;
}

size_t k3huf_memory_bound(size_t raw_bytes, uint32_t stripe_bytes, uint32_t block_log2) {
    size_t stripes = raw_bytes / stripe_bytes;
    return K3HUF_RUN_HEADER_BYTES + stripes * k3huf_stripe_bound(stripe_bytes, block_log2) +
           k3huf_stripe_bound((uint32_t)(raw_bytes % stripe_bytes), block_log2);
}

size_t k3huf_memory_pack(const struct k3huf_isa *isa, const uint8_t *raw, size_t raw_bytes, uint32_t stripe_bytes,
                         uint32_t block_log2, uint8_t *run) {
    struct k3huf_encoder encoder;
    struct k3huf_run_header header = {.raw_bytes = raw_bytes};
    uint64_t histogram[K3HUF_SYMBOLS] = {0};
    for (size_t done = 0; done < raw_bytes; done += stripe_bytes, header.nstripes++) {
        isa->histogram_odd(histogram, raw + done, piece(raw_bytes - done, stripe_bytes));
    }
    if (k3huf_code_lengths(histogram, K3HUF_CODE_LENGTH_MAX, header.codelen) != K3HUF_OK ||
        k3huf_encoder_init(&encoder, header.codelen) != K3HUF_OK) {
        return 0;
    }
    k3huf_run_header_write(&header, run);
    size_t capacity = k3huf_memory_bound(raw_bytes, stripe_bytes, block_log2);
    size_t size = K3HUF_RUN_HEADER_BYTES;
    for (uint32_t i = 0; i < header.nstripes; i++) {
        size_t done = (size_t)i * stripe_bytes;
        size_t stripe_size = 0;
        if (isa->encode_stripe(&encoder, i, raw + done, piece(raw_bytes - done, stripe_bytes), block_log2, run + size,
                               capacity - size, &stripe_size) != K3HUF_OK) {
            return 0;
        }
        size += stripe_size;
    }
    return size;
}

enum k3huf_status k3huf_memory_decode(const struct k3huf_isa *isa, struct k3huf_memory_decoder *memory,
                                      const uint8_t *run, size_t run_bytes, uint8_t *out, size_t raw_bytes) {
    struct k3huf_config config = {
        .index = memory->index, .index_size = memory->index_size, .workspace = &memory->workspace};
    enum k3huf_status status = isa->decoder_init(&memory->decoder, &config);
    while (status == K3HUF_OK) {
        struct k3huf_need need;
        isa->decoder_need(&memory->decoder, &need);
        if (need.out_offset > raw_bytes) { return K3HUF_E_ARGUMENT; }
        /* All that there is: the decoder uses what it can. A cursor that is not wanted stands at the end. */
        size_t coded = need.coded_offset < run_bytes ? (size_t)need.coded_offset : run_bytes;
        size_t raw = need.raw_offset < run_bytes ? (size_t)need.raw_offset : run_bytes;
        struct k3huf_io io = {.coded = run + coded,
                              .coded_size = run_bytes - coded,
                              .raw = run + raw,
                              .raw_size = run_bytes - raw,
                              .out = out + need.out_offset,
                              .out_size = raw_bytes - (size_t)need.out_offset};
        status = isa->decode(&memory->decoder, &io);
    }
    return status == K3HUF_WAIT ? K3HUF_E_TRUNCATED : status;
}
