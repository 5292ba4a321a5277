/* merge.c - high and low plane into little-endian bf16. May not know about codes or blocks.
 *
 * Every step loads all it needs from both planes before it stores. That is what allows the in-place form: with
 * symbols >= out + n, a step that writes out[2i ... 2i + 2v) never touches symbols[i + v ...), because i + v <= n.
 */
#include "compiler.h"
#include "k3huf.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX2__)
#define STEP 32u
typedef __m256i vector;
#define LOAD(p) _mm256_permute4x64_epi64(_mm256_loadu_si256((const __m256i *)(p)), 0xd8)
#define STORE(p, low, high)                                                                                            \
    (_mm256_storeu_si256((__m256i *)(p), _mm256_unpacklo_epi8(low, high)),                                             \
     _mm256_storeu_si256((__m256i *)((p) + 32), _mm256_unpackhi_epi8(low, high)))
#elif defined(__SSE2__)
#define STEP 16u
typedef __m128i vector;
#define LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, low, high)                                                                                            \
    (_mm_storeu_si128((__m128i *)(p), _mm_unpacklo_epi8(low, high)),                                                   \
     _mm_storeu_si128((__m128i *)((p) + 16), _mm_unpackhi_epi8(low, high)))
#elif defined(__ARM_NEON)
#define STEP 16u
typedef uint8x16_t vector;
#define LOAD(p) vld1q_u8(p)
#define STORE(p, low, high) vst2q_u8((p), ((uint8x16x2_t){{(low), (high)}}))
#endif

void k3huf_merge(uint8_t *out, const uint8_t *raw, const uint8_t *symbols, size_t n) {
    size_t i = 0;
#if defined(STEP)
    if (n >= STEP) {
        /* The last step may overlap the one before it, so that no odd rest is left; its bytes are loaded first. */
        const vector last_raw = LOAD(raw + (n - STEP));
        const vector last_symbols = LOAD(symbols + (n - STEP));
        for (; i + STEP <= n; i += STEP) {
            const vector low = LOAD(raw + i);
            const vector high = LOAD(symbols + i);
            STORE(out + 2u * i, low, high);
        }
        STORE(out + 2u * (n - STEP), last_raw, last_symbols);
        return;
    }
#endif
    for (; i < n; i++) {
        const uint8_t low = raw[i];
        const uint8_t high = symbols[i];
        out[2u * i] = low;
        out[2u * i + 1u] = high;
    }
}
