/* k3gen.c - writes bytes that look like real bf16 weights to standard output: k3gen SIZE SEED. For the system tests,
 * which want files of them; the bytes are those of the bench's generator. `k3gen histogram` prints the 256 counts that
 * they are drawn with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k3_histogram.h"

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "histogram") == 0) {
        for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
            (void)printf("%" PRIu64 "\n", k3huf_k3_histogram[symbol]);
        }
        return fflush(stdout) == 0 ? 0 : 3;
    }
    if (argc != 3) {
        (void)fputs("usage: k3gen SIZE SEED, k3gen histogram\n", stderr);
        return 2;
    }
    const size_t size = (size_t)strtoull(argv[1], NULL, 10);
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL) {
        (void)fputs("k3gen: out of memory\n", stderr);
        return 5;
    }
    k3huf_generate(data, size, strtoull(argv[2], NULL, 10), k3huf_k3_histogram);
    const size_t written = fwrite(data, 1, size, stdout);
    free(data);
    if (written != size || fflush(stdout) != 0) {
        (void)fputs("k3gen: cannot write\n", stderr);
        return 3;
    }
    return 0;
}
