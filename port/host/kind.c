/* kind.c - see kind.h. May not write. */
#include "kind.h"

#include <string.h>

#include "archive_file.h"
#include "safetensors.h"

static const uint8_t run_magic[] = {'K', 'H', 'U', 'F'};

enum k3huf_exit k3huf_kind_of(struct k3huf_input *input, enum k3huf_kind *kind, struct k3huf_fault *fault) {
    uint8_t magic[sizeof run_magic];
    size_t got = 0;
    bool is = false;
    *kind = K3HUF_KIND_BYTES;
    enum k3huf_exit code = k3huf_input_read_at(input, 0, magic, sizeof magic, &got, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (got == sizeof magic && memcmp(magic, run_magic, sizeof magic) == 0) {
        *kind = K3HUF_KIND_RUN;
        return code;
    }
    code = k3huf_archive_recognise(input, &is, fault);
    if (is) {
        *kind = K3HUF_KIND_ARCHIVE;
    } else if (code == K3HUF_EXIT_OK) {
        code = k3huf_safetensors_recognise(input, &is, fault);
        if (is) { *kind = K3HUF_KIND_SAFETENSORS; }
    }
    return code;
}

enum k3huf_exit k3huf_kind_refuse(const struct k3huf_input *input, enum k3huf_kind kind, const char *takes,
                                  struct k3huf_fault *fault) {
    const char *what = "is a run";
    const char *way = "unpack gives its weights";
    if (kind == K3HUF_KIND_ARCHIVE) {
        what = "is an archive";
        way = "unpack --tensor NAME gives the weights of a tensor";
    } else if (kind == K3HUF_KIND_SAFETENSORS) {
        what = "is a model file";
        way = "pack it: unpack --tensor NAME then gives the weights of a tensor";
    }
    return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, input->name, NULL, "%s: %s (%s)", what, takes, way);
}
