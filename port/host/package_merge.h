/* package_merge.h - optimal length-limited prefix code lengths. Pure computation: no memory is allocated. */
#ifndef K3HUF_HOST_PACKAGE_MERGE_H
#define K3HUF_HOST_PACKAGE_MERGE_H

#include "k3huf.h"

/* Code lengths that make sum(histogram[s] * codelen[s]) least among all prefix codes with no length over `limit`
 * (1 ... K3HUF_CODE_LENGTH_MAX). Method: package-merge, L. L. Larmore and D. S. Hirschberg, "A fast algorithm for
 * optimal length-limited Huffman codes", Journal of the ACM 37(3), 1990.
 *
 * codelen[s] is 0 where histogram[s] is 0. One present symbol gets length 1; with two or more the Kraft sum is exactly
 * 1. Equal weights: the lower byte value counts as the rarer one, so the result is a function of the histogram alone.
 * Sums over 2^64 - 1 saturate: the code stays complete and within its limit, but may then not be optimal (no file is
 * that large: weights adding up to less than 2^52 are exact).
 *
 * K3HUF_E_ARGUMENT: limit out of range, or more than 2^limit symbols present; codelen is then all 0. Else K3HUF_OK. */
enum k3huf_status k3huf_code_lengths(const uint64_t histogram[K3HUF_SYMBOLS], unsigned limit,
                                     uint8_t codelen[K3HUF_SYMBOLS]);

#endif
