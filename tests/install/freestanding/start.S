/* start.S - where a program without a C library begins: call run(), and end with what it returned. Linux. */
    .section .note.GNU-stack, "", %progbits
    .text
    .globl _start
_start:
#if defined(__x86_64__)
    xor %ebp, %ebp
    and $-16, %rsp
    call run
    mov %eax, %edi
    mov $60, %eax               /* exit */
    syscall
#elif defined(__aarch64__)
    mov x29, #0
    bl run
    mov x8, #93                 /* exit */
    svc #0
#else
#error "no start for this processor"
#endif
