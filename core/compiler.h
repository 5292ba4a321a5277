/* compiler.h - the one place for compiler extensions and byte order in the core.
 *
 * Everything else in core/ is plain C11. This file may not hold any logic of the format. Private to core/.
 */
#ifndef K3HUF_COMPILER_H
#define K3HUF_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__GNUC__)
#error "GCC or Clang is needed; for another compiler, give this file its forms"
#endif

#define K3HUF_INLINE static inline __attribute__((always_inline))
/* Rare code: small and out of line where size counts most, in firmware; in line where speed does. */
#if defined(__aarch64__)
#define K3HUF_COLD __attribute__((cold, noinline, unused)) static
#else
#define K3HUF_COLD static inline
#endif
#define K3HUF_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Unroll the next loop wholly; its trip count is a small constant. */
#if defined(__clang__)
#define K3HUF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define K3HUF_UNROLL _Pragma("GCC unroll 16")
#endif

/* Keep the value of a variable in its register as it is. On AArch64 compilers otherwise split a scaled address or a
 * shifted addition in two and spend an instruction more on every look-up. */
#if defined(__aarch64__)
#define K3HUF_AS_IS(x) __asm__("" : "+r"(x))
#else
#define K3HUF_AS_IS(x) (void)0
#endif

/* Ask for the line at `p + ahead` in the second cache. Beyond the end of an object it does nothing. Arm cores find
 * streams by themselves, and there it would only add instructions to every turn. */
#define K3HUF_LINE_BYTES 64u
#if defined(__aarch64__)
#define k3huf_prefetch(p, ahead) (void)(ahead)
#else
K3HUF_INLINE void k3huf_prefetch(const uint8_t *p, size_t ahead) {
    __builtin_prefetch((const void *)((uintptr_t)p + ahead), 0, 2);
}
#endif

/* Any address, any type behind it: the compiler emits what the target allows (byte accesses with -mstrict-align). */
struct k3huf_any64 {
    uint64_t value;
} __attribute__((packed, may_alias));

K3HUF_INLINE uint64_t k3huf_load64(const uint8_t *p) { return ((const struct k3huf_any64 *)p)->value; }
K3HUF_INLINE void k3huf_store64(uint8_t *p, uint64_t v) { ((struct k3huf_any64 *)p)->value = v; }
/* Count of trailing zeros; v is not 0. */
K3HUF_INLINE uint32_t k3huf_ctz64(uint64_t v) { return (uint32_t)__builtin_ctzll(v); }
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define K3HUF_BIG_ENDIAN 1
#else
#define K3HUF_BIG_ENDIAN 0
#endif

/* Eight bytes as a big-endian number: the next 64 bits of a coded plane, first bit on top. */
K3HUF_INLINE uint64_t k3huf_load_be64(const uint8_t *p) {
    return K3HUF_BIG_ENDIAN ? k3huf_load64(p) : __builtin_bswap64(k3huf_load64(p));
}
/* Eight bytes as a little-endian number, and back. */
K3HUF_INLINE uint64_t k3huf_load_le64(const uint8_t *p) {
    return K3HUF_BIG_ENDIAN ? __builtin_bswap64(k3huf_load64(p)) : k3huf_load64(p);
}
K3HUF_INLINE void k3huf_store_le64(uint8_t *p, uint64_t v) {
    k3huf_store64(p, K3HUF_BIG_ENDIAN ? __builtin_bswap64(v) : v);
}
K3HUF_INLINE uint32_t k3huf_load_le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
K3HUF_INLINE void k3huf_store_le32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

#endif
