/* kind.h - what a file is, by its contents: bare weights, or something that holds them in another way. For the commands
 * that take weights and nothing else. */
#ifndef K3HUF_HOST_KIND_H
#define K3HUF_HOST_KIND_H

#include "input.h"

enum k3huf_kind {
    K3HUF_KIND_BYTES, /* none of the others: taken as bf16 */
    K3HUF_KIND_RUN,
    K3HUF_KIND_ARCHIVE,
    K3HUF_KIND_SAFETENSORS, /* as k3huf_safetensors_recognise() has it */
};

/* What a seekable input begins as; whether it is sound is not looked at. */
enum k3huf_exit k3huf_kind_of(struct k3huf_input *input, enum k3huf_kind *kind, struct k3huf_fault *fault);

/* K3HUF_EXIT_USAGE: what the input is (not bytes), what is taken instead (`takes`), and how to come by it. */
enum k3huf_exit k3huf_kind_refuse(const struct k3huf_input *input, enum k3huf_kind kind, const char *takes,
                                  struct k3huf_fault *fault);

#endif
