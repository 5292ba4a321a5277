/* cpu.h - what this processor can do: the host tool's one place for compiler extensions that ask it. Private to
 * dispatch.c. */
#ifndef K3HUF_HOST_CPU_H
#define K3HUF_HOST_CPU_H

#include <stdbool.h>

#if defined(__x86_64__)

/* What the build lets the compiler use in variants v2 and v3 (CMakeLists.txt), neither more nor less. */
static inline bool k3huf_cpu_v2(void) {
    return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}
static inline bool k3huf_cpu_v3(void) {
    return k3huf_cpu_v2() && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
           __builtin_cpu_supports("bmi2") != 0;
}

#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static inline bool k3huf_cpu_crc(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#endif

#endif
