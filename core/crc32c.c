/* crc32c.c - CRC-32C (Castagnoli; RFC 3720, appendix B.4). May not know what the bytes are.
 *
 * With the Arm CRC extension or SSE4.2 the processor has an instruction for eight bytes. Each one waits three cycles
 * or so for the one before it, so the lanes' spans are taken side by side: six chains in the time of one.
 * Without either, four tables of 256 entries (slicing by four: Kounavis and Berry, 2005), made by the preprocessor
 * from the CRC of each single bit, because the CRC of a byte is the XOR of those of its bits.
 */
#include "compiler.h"
#include "k3huf.h"

#if defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

K3HUF_INLINE uint32_t crc_byte(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
K3HUF_INLINE uint32_t crc_eight(uint32_t crc, uint64_t bytes) { return __crc32cd(crc, bytes); }

#elif defined(__SSE4_2__) && defined(__x86_64__)
#include <nmmintrin.h>

K3HUF_INLINE uint32_t crc_byte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
K3HUF_INLINE uint32_t crc_eight(uint32_t crc, uint64_t bytes) { return (uint32_t)_mm_crc32_u64(crc, bytes); }

#else

/* BIT(s, b): the CRC register after bit b of a byte and then s zero bytes went through it. */
#define BIT(i, b, value) ((((i) >> (b)) & 1u) ? (value) : 0u)
#define BYTE0(i)                                                                                                       \
    (BIT(i, 0, 0xf26b8303u) ^ BIT(i, 1, 0xe13b70f7u) ^ BIT(i, 2, 0xc79a971fu) ^ BIT(i, 3, 0x8ad958cfu) ^               \
     BIT(i, 4, 0x105ec76fu) ^ BIT(i, 5, 0x20bd8edeu) ^ BIT(i, 6, 0x417b1dbcu) ^ BIT(i, 7, 0x82f63b78u))
#define BYTE1(i)                                                                                                       \
    (BIT(i, 0, 0x13a29877u) ^ BIT(i, 1, 0x274530eeu) ^ BIT(i, 2, 0x4e8a61dcu) ^ BIT(i, 3, 0x9d14c3b8u) ^               \
     BIT(i, 4, 0x3fc5f181u) ^ BIT(i, 5, 0x7f8be302u) ^ BIT(i, 6, 0xff17c604u) ^ BIT(i, 7, 0xfbc3faf9u))
#define BYTE2(i)                                                                                                       \
    (BIT(i, 0, 0xa541927eu) ^ BIT(i, 1, 0x4f6f520du) ^ BIT(i, 2, 0x9edea41au) ^ BIT(i, 3, 0x38513ec5u) ^               \
     BIT(i, 4, 0x70a27d8au) ^ BIT(i, 5, 0xe144fb14u) ^ BIT(i, 6, 0xc76580d9u) ^ BIT(i, 7, 0x8b277743u))
#define BYTE3(i)                                                                                                       \
    (BIT(i, 0, 0xdd45aab8u) ^ BIT(i, 1, 0xbf672381u) ^ BIT(i, 2, 0x7b2231f3u) ^ BIT(i, 3, 0xf64463e6u) ^               \
     BIT(i, 4, 0xe964b13du) ^ BIT(i, 5, 0xd725148bu) ^ BIT(i, 6, 0xaba65fe7u) ^ BIT(i, 7, 0x52a0c93fu))
#define ROW4(f, i) f(i), f((i) + 1u), f((i) + 2u), f((i) + 3u)
#define ROW16(f, i) ROW4(f, i), ROW4(f, (i) + 4u), ROW4(f, (i) + 8u), ROW4(f, (i) + 12u)
#define ROW64(f, i) ROW16(f, i), ROW16(f, (i) + 16u), ROW16(f, (i) + 32u), ROW16(f, (i) + 48u)
#define ROW256(f) ROW64(f, 0u), ROW64(f, 64u), ROW64(f, 128u), ROW64(f, 192u)

static const uint32_t crc_table[4][256] = {{ROW256(BYTE0)}, {ROW256(BYTE1)}, {ROW256(BYTE2)}, {ROW256(BYTE3)}};

K3HUF_INLINE uint32_t crc_byte(uint32_t crc, uint8_t byte) { return crc >> 8 ^ crc_table[0][(crc ^ byte) & 0xffu]; }
K3HUF_INLINE uint32_t crc_four(uint32_t crc) {
    return crc_table[3][crc & 0xffu] ^ crc_table[2][crc >> 8 & 0xffu] ^ crc_table[1][crc >> 16 & 0xffu] ^
           crc_table[0][crc >> 24];
}
K3HUF_INLINE uint32_t crc_eight(uint32_t crc, uint64_t bytes) {
    return crc_four(crc_four(crc ^ (uint32_t)bytes) ^ (uint32_t)(bytes >> 32));
}

#endif

/* One span by itself. The register holds the complement of the CRC of what has gone through it. */
K3HUF_COLD uint32_t crc_span(uint32_t crc, const uint8_t *data, size_t size) {
    uint32_t reg = ~crc;
    size_t i = 0;
    for (; i + 8u <= size; i += 8u) {
        reg = crc_eight(reg, k3huf_load_le64(data + i));
    }
    for (; i < size; i++) {
        reg = crc_byte(reg, data[i]);
    }
    return ~reg;
}

uint32_t k3huf_crc32c(uint32_t crc, const uint8_t *data, size_t size) { return crc_span(crc, data, size); }

void k3huf_crc32c_lanes(uint32_t *crc, const uint8_t *const *data, size_t size, uint32_t n) {
    size_t i = 0;
    if (n == K3HUF_LANES) {
        uint32_t reg[K3HUF_LANES];
        K3HUF_UNROLL for (uint32_t lane = 0; lane < K3HUF_LANES; lane++) { reg[lane] = ~crc[lane]; }
        for (; i + 8u <= size; i += 8u) {
            K3HUF_UNROLL
            for (uint32_t lane = 0; lane < K3HUF_LANES; lane++) {
                reg[lane] = crc_eight(reg[lane], k3huf_load_le64(data[lane] + i));
            }
        }
        K3HUF_UNROLL for (uint32_t lane = 0; lane < K3HUF_LANES; lane++) { crc[lane] = ~reg[lane]; }
    }
    for (uint32_t lane = 0; lane < n && i < size; lane++) {
        crc[lane] = crc_span(crc[lane], data[lane] + i, size - i);
    }
}
