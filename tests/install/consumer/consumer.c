/* consumer.c - decode the run named by the first argument, with the installed library, and write it to standard output.
 */
#include <k3huf.h>
#include <stdio.h>
#include <string.h>

static unsigned char run[1 << 20], out[1 << 20];
static struct k3huf_decoder decoder;
static struct k3huf_workspace workspace;
static unsigned char index_memory[1 << 16];

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) { return 2; }
    const size_t size = fread(run, 1, sizeof run, file);
    fclose(file);
    const struct k3huf_config config = {
        .workspace = &workspace, .index = index_memory, .index_size = sizeof index_memory};
    enum k3huf_status status = k3huf_decoder_init(&decoder, &config);
    size_t end = 0;
    while (status == K3HUF_OK) {
        struct k3huf_need need;
        k3huf_decoder_need(&decoder, &need);
        if (need.coded_offset > size || need.raw_offset > size) { return 3; }
        struct k3huf_io io = {.coded = run + need.coded_offset,
                              .coded_size = size - need.coded_offset,
                              .raw = run + need.raw_offset,
                              .raw_size = size - need.raw_offset,
                              .out = out + need.out_offset,
                              .out_size = sizeof out - need.out_offset};
        status = k3huf_decode(&decoder, &io);
        end = (size_t)(io.out - out);
    }
    fprintf(stderr, "%s\n", k3huf_status_text(status));
    return status == K3HUF_DONE && fwrite(out, 1, end, stdout) == end ? 0 : 1;
}
