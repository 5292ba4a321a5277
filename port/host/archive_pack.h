/* archive_pack.h - one file to one archive.
 *
 * The file is cut at its tensors. Tensors of 16-bit floats become runs, neighbours one run where that takes no more
 * pages than one each; what does not shrink, and all else, is stored. Each entry is read back, decoded and compared
 * with the source while it is written or right behind (encode_run.h), when both are in the page cache: a tensor comes
 * from the drive once.
 */
#ifndef K3HUF_HOST_ARCHIVE_PACK_H
#define K3HUF_HOST_ARCHIVE_PACK_H

#include "encode_run.h"
#include "tensors.h"

/* What came of it. The planes' figures are over all tensors of 16-bit floats that are not all zeros. */
struct k3huf_archive_result {
    uint64_t source_bytes;
    uint64_t archive_bytes;
    uint32_t ntensors;
    uint32_t nentries;
    uint32_t runs;
    uint64_t float_bytes;   /* of those tensors */
    uint64_t coded_one;     /* bits of their odd bytes, with one code for all of them */
    uint64_t coded_tensors; /* with a code for each tensor */
    uint64_t coded_entries; /* with a code for each run, as written (or would be, where it is stored) */
    uint32_t float_tensors;
};

/* Make `out_name`, which must not be a stream: its first page is written last. It gets its name once all is decoded,
 * compared and on the disk. `tensors` as read from the input, or with n 0: all is stored. `stripe_bytes` in the options
 * must be even. The archive is the same for any number of threads. Memory as encode_run.h and decode_run.h have it, and
 * the table of contents. */
enum k3huf_exit k3huf_archive_pack(struct k3huf_input *input, const struct k3huf_tensors *tensors, const char *out_name,
                                   bool force, const struct k3huf_encode_options *options,
                                   struct k3huf_archive_result *result, struct k3huf_fault *fault);

#endif
