/* main.c - the first C code of an image: thread pointer, arguments, main, exit. start.S has made the machine ready. */
#include "semihost.h"
#include "virt.h"

#include <stdio.h>

int main(int argc, char **argv);

/* From linker/qemu-virt.ld. */
extern char __tls_base[], __tls_offset[];

#define LINE_BYTES 16384u
#define ARGUMENTS_MAX 256u

static char line[LINE_BYTES];
static char *arguments[ARGUMENTS_MAX + 1u];

static uint64_t start_level;

uint64_t k3huf_virt_start_level(void) { return start_level; }

/* Cut the command line at its spaces, in place. Returns the number of arguments, or -1 for too many. */
static int split(char *text) {
    uint32_t count = 0;
    while (*text != '\0') {
        while (*text == ' ') {
            *text++ = '\0';
        }
        if (*text == '\0') { break; }
        if (count == ARGUMENTS_MAX) { return -1; }
        arguments[count++] = text;
        while (*text != '\0' && *text != ' ') {
            ++text;
        }
    }
    arguments[count] = NULL;
    return (int)count;
}

void k3huf_virt_main(uint64_t level) {
    start_level = level;
    /* The thread pointer for picolibc's errno; its block was loaded (.tdata) or cleared (.tbss) with the rest. */
    __asm__ volatile("msr tpidr_el0, %0" : : "r"((uintptr_t)__tls_base - (uintptr_t)__tls_offset));

    int argc = k3huf_semihost_command_line(line, sizeof line) ? split(line) : -1;
    if (argc < 0) {
        k3huf_semihost_write0("start-up: no command line, or one too long\n");
        k3huf_virt_exit(VIRT_EXIT_START);
    }
    k3huf_virt_exit(main(argc, arguments));
}
