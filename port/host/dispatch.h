/* dispatch.h - the core and the encoder, compiled for several instruction sets, and the best of them for this
 * processor.
 *
 * The variants do the same, byte for byte; only their speed differs. Objects may go from one to another: tables,
 * workspaces, decoders and encoders are the same. Headers, the index and the joints of the encoder are called directly.
 */
#ifndef K3HUF_HOST_DISPATCH_H
#define K3HUF_HOST_DISPATCH_H

#include "encoder.h"
#include "fault.h"

/* Functions of k3huf.h and encoder.h under their own names. */
struct k3huf_isa {
    const char *name;
    enum k3huf_status (*table_build)(struct k3huf_table *, const uint8_t[K3HUF_SYMBOLS]);
    void (*lanes)(const struct k3huf_table *, struct k3huf_workspace *, struct k3huf_lane *, size_t);
    enum k3huf_status (*decode_blocks)(const struct k3huf_table *, struct k3huf_workspace *, struct k3huf_block *,
                                       size_t, bool);
    void (*merge)(uint8_t *, const uint8_t *, const uint8_t *, size_t);
    uint32_t (*crc32c)(uint32_t, const uint8_t *, size_t);
    void (*crc32c_lanes)(uint32_t *, const uint8_t *const *, size_t, uint32_t);
    enum k3huf_status (*decoder_init)(struct k3huf_decoder *, const struct k3huf_config *);
    void (*decoder_need)(const struct k3huf_decoder *, struct k3huf_need *);
    enum k3huf_status (*decode)(struct k3huf_decoder *, struct k3huf_io *);
    void (*histogram_odd)(uint64_t[K3HUF_SYMBOLS], const uint8_t *, size_t);
    enum k3huf_status (*encode_part)(const struct k3huf_encoder *, const uint8_t *, uint32_t, uint32_t,
                                     struct k3huf_coded_part *);
    enum k3huf_status (*encode_stripe)(const struct k3huf_encoder *, uint32_t, const uint8_t *, uint32_t, uint32_t,
                                       uint8_t *, size_t, size_t *);
};

/* The variants that were built and that this processor can run, the best one first; NULL behind the last, which is
 * "baseline": what the compiler's flags give. "v2" is x86-64-v2 (SSE4.2), "v3" x86-64-v3 (AVX2, BMI2); "crc" has the
 * CRC instructions of AArch64. */
const struct k3huf_isa *k3huf_isa_choice(unsigned i);

/* The one to use: the best, or the one that the environment variable K3HUF_ISA names. */
const struct k3huf_isa *k3huf_isa(void);

/* K3HUF_EXIT_USAGE where K3HUF_ISA names none that can be used; k3huf_isa() would take no notice of it. */
enum k3huf_exit k3huf_isa_check(struct k3huf_fault *fault);

#endif
