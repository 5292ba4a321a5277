/* check_tensors.c - see check_tensors.h. */
#include "check_tensors.h"

#include <stdio.h>
#include <string.h>

#include "mutate.h"

/* Bits of a value: the first number in the name of a dtype that safetensors has. 0: another one, of any size. */
static unsigned bits(const char *dtype) {
    static const char known[] =
        " U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F4 F6_E2M3 F6_E3M2 I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 U64 ";
    char word[16] = {0};
    unsigned value = 0;
    if (strcmp(dtype, "BOOL") == 0) { return 8; }
    (void)snprintf(word, sizeof word, " %s ", dtype);
    if (strstr(known, word) == NULL) { return 0; }
    while (*dtype < '0' || *dtype > '9') {
        dtype++;
    }
    for (; *dtype >= '0' && *dtype <= '9'; dtype++) {
        value = 10u * value + (unsigned)(*dtype - '0');
    }
    return value;
}

/* Does that dtype times those dimensions make the tensor's bytes? */
static bool size_fits(const struct k3huf_tensor *t, const uint64_t *dims) {
    const unsigned value = bits(t->dtype);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (dims[d] == 0) { return value == 0 || t->bytes == 0; }
    }
    for (uint32_t d = 0; d < t->rank && value != 0; d++) {
        if (elements > UINT64_MAX / 64u / dims[d]) { return false; /* more than any file has */ }
        elements *= dims[d];
    }
    return value == 0 || elements * value == t->bytes * 8u;
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
        if (!size_fits(t, t->rank == 0 ? NULL : tensors->dims + t->dims_at)) {
            k3huf_fuzz_found("a tensor's size", t->name);
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
