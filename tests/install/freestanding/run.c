/* run.c - decode a run that is part of the program, without a C library. Returns 0 if every byte is as it should be. */
#include <k3huf.h>

extern const uint8_t run_begin[], run_end[], raw_begin[], raw_end[];

static struct k3huf_decoder decoder;
static struct k3huf_workspace workspace;
static uint8_t index_memory[1 << 16];
static uint8_t out[1 << 20];

int run(void) {
    const size_t size = (size_t)(run_end - run_begin);
    const struct k3huf_config config = {
        .workspace = &workspace, .index = index_memory, .index_size = sizeof index_memory};
    enum k3huf_status status = k3huf_decoder_init(&decoder, &config);
    while (status == K3HUF_OK) {
        struct k3huf_need need;
        k3huf_decoder_need(&decoder, &need);
        if (need.coded_offset > size || need.raw_offset > size) { return 3; }
        struct k3huf_io io = {.coded = run_begin + need.coded_offset,
                              .coded_size = size - need.coded_offset,
                              .raw = run_begin + need.raw_offset,
                              .raw_size = size - need.raw_offset,
                              .out = out + need.out_offset,
                              .out_size = sizeof out - need.out_offset};
        status = k3huf_decode(&decoder, &io);
    }
    if (status != K3HUF_DONE) { return 4; }
    for (const uint8_t *raw = raw_begin; raw != raw_end; raw++) {
        if (out[raw - raw_begin] != *raw) { return 5; }
    }
    return 0;
}
