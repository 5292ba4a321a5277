/* data.S - the run and what it decodes to; RUN_FILE and RAW_FILE name them. */
    .section .note.GNU-stack, "", %progbits
    .section .rodata
    .globl run_begin, run_end, raw_begin, raw_end
run_begin: .incbin RUN_FILE
run_end:
raw_begin: .incbin RAW_FILE
raw_end:
