/* sizes.c - the sizes that the core promises, asserted for the target it is compiled for, and printed. */
#include "k3huf.h"

#include <stdio.h>

#define ENTRIES_BYTES sizeof(((struct k3huf_table *)0)->entry)

_Static_assert(ENTRIES_BYTES == 8192, "the decode table is 8 KiB");
_Static_assert(sizeof(struct k3huf_decoder) < 10240, "the decoder object stays under 10 KiB");
_Static_assert(sizeof(struct k3huf_workspace) <= 16384, "the workspace of one core is at most 16 KiB");
_Static_assert(sizeof(struct k3huf_table) + sizeof(struct k3huf_workspace) <= 32768,
               "table and workspace fit into an L1 data cache of 32 KiB");

int main(void) {
    printf("table entries %zu, table %zu, decoder %zu, workspace %zu bytes\n", ENTRIES_BYTES,
           sizeof(struct k3huf_table), sizeof(struct k3huf_decoder), sizeof(struct k3huf_workspace));
    return 0;
}
