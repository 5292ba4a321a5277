/* builtins.h - what the analyser cannot know of the compiler: the built-in functions that core/compiler.h uses, in
 * plain C. Put before every file by `run`. May not replace anything else: the analysed code is the core as it stands.
 */
#ifndef K3HUF_PROOF_BUILTINS_H
#define K3HUF_PROOF_BUILTINS_H

/*@ assigns \nothing; */
static inline unsigned long long k3huf_proof_swap(unsigned long long v) {
    v = (v & 0x00000000ffffffffull) << 32 | v >> 32;
    v = (v & 0x0000ffff0000ffffull) << 16 | (v >> 16 & 0x0000ffff0000ffffull);
    return (v & 0x00ff00ff00ff00ffull) << 8 | (v >> 8 & 0x00ff00ff00ff00ffull);
}

#define __builtin_bswap64(v) k3huf_proof_swap(v)
#define __builtin_prefetch(p, write, locality) (void)(p)

#endif
