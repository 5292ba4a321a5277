/* table.c - every table of 256 code lengths, valid or not, into memory that holds nothing yet. */
#include "any.h"

void table(void) {
    struct k3huf_table *const built = (struct k3huf_table *)raw_bytes(sizeof(struct k3huf_table));
    const enum k3huf_status status = k3huf_table_build(built, any_bytes(K3HUF_SYMBOLS));
    //@ assert status: status == K3HUF_OK || status == K3HUF_E_CODE_LENGTH || status == K3HUF_E_CODE_OVERFULL;
    if (status != K3HUF_OK) { return; }
    //@ assert entries: \initialized(built->entry + (0 .. K3HUF_TABLE_ENTRIES - 1));
}

/* What table.acsl takes from here: the share of the code space that a code of each length has. */
void table_shift(void) {
    //@ loop unroll 12;
    for (uint32_t length = 1; length <= K3HUF_CODE_LENGTH_MAX; length++) {
        const uint32_t share = 4096u >> length;
        //@ assert share: 1 <= share <= 2048;
    }
}
