/* table.c - every table of 256 code lengths, valid or not, into memory that holds nothing yet. */
#include "any.h"

void table(void) {
    struct k3huf_table *const built = (struct k3huf_table *)raw_bytes(sizeof(struct k3huf_table));
    const enum k3huf_status status = k3huf_table_build(built, any_bytes(K3HUF_SYMBOLS));
    //@ assert status: status == K3HUF_OK || status == K3HUF_E_CODE_LENGTH || status == K3HUF_E_CODE_OVERFULL;
    if (status != K3HUF_OK) { return; }
    //@ assert most: 1 <= built->most <= K3HUF_ENTRY_SYMBOLS;
    //@ assert ends: built->tail11 <= 4096 && built->tail12 <= 4096 && built->tail_end <= 4096;
    //@ assert entries: \initialized(built->entry + (0 .. K3HUF_TABLE_ENTRIES - 1));
}
