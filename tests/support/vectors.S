/* vectors.S - puts the files of tests/data into read-only data. The build gives the folder as an include path of the
 * assembler. Works with GNU as and clang, on x86-64 and AArch64. vectors.c makes the table. */

    .macro bytes label, file
    .balign 16
    .globl \label
\label:
    .incbin "\file"
    .globl \label\()_end
\label\()_end:
    .byte 0
    .endm

    .macro vector name
    bytes k3huf_run_\name, "\name\().k3h"
    bytes k3huf_raw_\name, "\name\().raw"
    .endm

    .section .rodata
    vector two_bytes
    vector three_bytes_odd_tail
    vector one_symbol
    vector two_symbols
    vector all_256_symbols
    vector special_values
    vector random_bytes_odd_length
    vector deep_tree_limit12
    vector k3_three_stripes
    vector k3_stripes_with_filler
    vector k3_histogram_256k
    vector real_weights_silero

    .section .note.GNU-stack, "", %progbits
