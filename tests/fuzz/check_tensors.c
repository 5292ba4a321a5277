/* check_tensors.c - see check_tensors.h. */
#include "check_tensors.h"

#include <string.h>

#include "mutate.h"

/* Bits of a value, from the dtype's name: its first number says it. */
static unsigned bits(const char *dtype) {
    unsigned value = 0;
    if (strcmp(dtype, "BOOL") == 0) { return 8; }
    while (*dtype != 0 && (*dtype < '0' || *dtype > '9')) {
        dtype++;
    }
    for (; *dtype >= '0' && *dtype <= '9'; dtype++) {
        value = 10u * value + (unsigned)(*dtype - '0');
    }
    return value;
}

void k3huf_fuzz_check_tensors(const struct k3huf_tensors *tensors, uint64_t file_bytes, size_t text_bytes) {
    uint64_t end = 0, names = 0;
    for (uint32_t i = 0; i < tensors->n; i++) {
        const struct k3huf_tensor *const t = &tensors->tensor[i];
        if (t->offset < end || t->offset > file_bytes || t->bytes > file_bytes - t->offset) {
            k3huf_fuzz_found("a tensor's place", t->name);
        }
        end = t->offset + t->bytes;
        if (t->rank > tensors->ndims || t->dims_at > tensors->ndims - t->rank) {
            k3huf_fuzz_found("a tensor's dimensions", t->name);
        }
        /* bytes x 8 divided by each dimension leaves the value's bits. */
        uint64_t left = t->bytes;
        bool zero = false;
        uint64_t elements = 1;
        for (uint32_t d = 0; d < t->rank; d++) {
            const uint64_t dim = tensors->dims[t->dims_at + d];
            zero = zero || dim == 0;
            if (!zero && elements > UINT64_MAX / dim) { k3huf_fuzz_found("a shape beyond all numbers", t->name); }
            elements *= dim;
        }
        if (zero ? left != 0 : left % elements != 0 && bits(t->dtype) >= 8) {
            k3huf_fuzz_found("a tensor's size", t->name);
        }
        if (!zero && bits(t->dtype) >= 8 && left / elements * 8u != bits(t->dtype)) {
            k3huf_fuzz_found("a tensor's size for its dtype", t->name);
        }
        if (!zero && bits(t->dtype) < 8 && (elements > UINT64_MAX / 8u || elements * bits(t->dtype) != t->bytes * 8u)) {
            k3huf_fuzz_found("a tensor's size for its small dtype", t->name);
        }
        if (t->name_bytes == 0 || t->name[t->name_bytes] != 0 || strlen(t->name) != t->name_bytes) {
            k3huf_fuzz_found("a tensor's name", t->name);
        }
        names += t->name_bytes;
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(t->name, tensors->tensor[k].name) == 0) { k3huf_fuzz_found("one name twice", t->name); }
        }
    }
    if (names > UINT64_C(256) * text_bytes) { k3huf_fuzz_found("names larger than what they were made of", NULL); }
}
