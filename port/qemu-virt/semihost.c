/* semihost.c - semihosting calls as C functions; semihost.h says what each does. May not do anything else. */
#include "semihost.h"

enum operation {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0a,
    SYS_FLEN = 0x0c,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT_EXTENDED = 0x20
};

#define ADP_STOPPED_APPLICATION_EXIT 0x20026u

/* Operation in w0, parameter in x1, result in x0. The host reads and writes memory that the parameter points to. */
static int64_t call(enum operation operation, const void *parameter) {
    register uint64_t x0 __asm__("x0") = (uint64_t)operation;
    register uint64_t x1 __asm__("x1") = (uintptr_t)parameter;
    __asm__ volatile("hlt #0xf000" : "+r"(x0), "+r"(x1) : : "memory");
    return (int64_t)x0;
}

static size_t text_length(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') {
        ++length;
    }
    return length;
}

int64_t k3huf_semihost_open(const char *name, uint32_t mode) {
    const uint64_t block[3] = {(uintptr_t)name, mode, text_length(name)};
    return call(SYS_OPEN, block);
}

bool k3huf_semihost_close(int64_t handle) {
    const uint64_t block[1] = {(uint64_t)handle};
    return call(SYS_CLOSE, block) == 0;
}

int64_t k3huf_semihost_read(int64_t handle, void *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        const uint64_t block[3] = {(uint64_t)handle, (uintptr_t)data + done, size - done};
        int64_t missing = call(SYS_READ, block); /* the bytes that were not read */
        if (missing < 0 || (uint64_t)missing > size - done) { return -1; }
        if ((uint64_t)missing == size - done) { break; }
        done = size - (size_t)missing;
    }
    return (int64_t)done;
}

bool k3huf_semihost_write(int64_t handle, const void *data, size_t size) {
    const uint64_t block[3] = {(uint64_t)handle, (uintptr_t)data, size};
    return call(SYS_WRITE, block) == 0; /* the bytes that were not written */
}

bool k3huf_semihost_seek(int64_t handle, uint64_t offset) {
    const uint64_t block[2] = {(uint64_t)handle, offset};
    return call(SYS_SEEK, block) == 0;
}

int64_t k3huf_semihost_length(int64_t handle) {
    const uint64_t block[1] = {(uint64_t)handle};
    return call(SYS_FLEN, block);
}

void k3huf_semihost_write0(const char *text) { (void)call(SYS_WRITE0, text); }

bool k3huf_semihost_command_line(char *line, size_t size) {
    uint64_t block[2] = {(uintptr_t)line, size};
    return call(SYS_GET_CMDLINE, block) == 0;
}

void k3huf_semihost_exit(int code) {
    const uint64_t block[2] = {ADP_STOPPED_APPLICATION_EXIT, (uint64_t)(int64_t)code};
    for (;;) {
        (void)call(SYS_EXIT_EXTENDED, block);
    }
}
