/* tensors.c - see tensors.h. */
#include "tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a value, as the safetensors format has its dtypes (https://github.com/huggingface/safetensors, Dtype). */
static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {{"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
              {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},
              {"U32", 32},    {"F32", 32},    {"C64", 64}, {"F64", 64},    {"I64", 64},    {"U64", 64}};

unsigned k3huf_dtype_bits(const char *dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtype, dtypes[i].name) == 0) { return dtypes[i].bits; }
    }
    return 0;
}

bool k3huf_dtype_is_float16(const char *dtype) { return strcmp(dtype, "BF16") == 0 || strcmp(dtype, "F16") == 0; }

static bool printable(const char *text) {
    size_t n = 0;
    while (text[n] > ' ' && text[n] <= '~') {
        n++;
    }
    return n > 0 && text[n] == '\0';
}

bool k3huf_json_size(const json_t *value, uint64_t *number) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) { return false; }
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* Bits that the last shape, from dims_at on, takes in that dtype; false: more than 64 bits can say. */
static bool shape_bits(const struct k3huf_tensors *tensors, uint32_t dims_at, unsigned bits, uint64_t *product) {
    *product = bits;
    for (uint32_t i = dims_at; i < tensors->ndims; i++) {
        if (tensors->dims[i] == 0) {
            *product = 0;
            return true;
        }
    }
    for (uint32_t i = dims_at; i < tensors->ndims; i++) {
        if (*product > UINT64_MAX / tensors->dims[i]) { return false; }
        *product *= tensors->dims[i];
    }
    return true;
}

static bool grow(void **array, uint32_t n, uint32_t *capacity, size_t size) {
    if (n < *capacity) { return true; }
    const uint32_t larger = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(*array, larger * size);
    if (grown == NULL) { return false; }
    *array = grown;
    *capacity = larger;
    return true;
}

static enum k3huf_exit wrong(const char *file, const char *name, const char *text, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file, NULL, "tensor '%s': %s", name, text);
}

static enum k3huf_exit read_shape(struct k3huf_tensors *tensors, const char *file, const char *name,
                                  const json_t *shape, uint32_t *rank, struct k3huf_fault *fault) {
    if (!json_is_array(shape) || json_array_size(shape) > K3HUF_RANK_MAX) {
        return wrong(file, name, "shape is not a list of at most 64 numbers", fault);
    }
    *rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < *rank; i++) {
        if (!grow((void **)&tensors->dims, tensors->ndims, &tensors->dims_capacity, sizeof *tensors->dims)) {
            return k3huf_fault_memory(fault, (uint64_t)tensors->ndims * sizeof *tensors->dims);
        }
        if (!k3huf_json_size(json_array_get(shape, i), &tensors->dims[tensors->ndims++])) {
            return wrong(file, name, "shape has a dimension that is not a whole number", fault);
        }
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_tensors_add(struct k3huf_tensors *tensors, const char *file, uint64_t file_bytes,
                                  const char *name, size_t name_bytes, const json_t *object, uint64_t offset,
                                  uint64_t bytes, struct k3huf_fault *fault) {
    const char *dtype = json_string_value(json_object_get(object, "dtype"));
    const uint32_t dims_at = tensors->ndims;
    uint32_t rank = 0;
    uint64_t bits = 0;
    if (name_bytes == 0) { return wrong(file, name, "has an empty name", fault); }
    if (dtype == NULL || !printable(dtype)) { return wrong(file, name, "dtype is not a name", fault); }
    const unsigned value_bits = k3huf_dtype_bits(dtype);
    enum k3huf_exit code = read_shape(tensors, file, name, json_object_get(object, "shape"), &rank, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (!shape_bits(tensors, dims_at, value_bits, &bits)) {
        return wrong(file, name, "dtype and shape make more bytes than can be counted", fault);
    }
    if (value_bits != 0 && (bits % 8 != 0 || bits / 8 != bytes)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file, NULL,
                               "tensor '%s': has %" PRIu64 " bytes, but dtype and shape make %" PRIu64, name, bytes,
                               bits / 8 + (bits % 8 != 0));
    }
    if (offset > file_bytes || bytes > file_bytes - offset) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file, NULL,
                               "tensor '%s': offset %" PRIu64 ", %" PRIu64
                               " bytes: beyond the end of the file (%" PRIu64 " bytes)",
                               name, offset, bytes, file_bytes);
    }
    if (!grow((void **)&tensors->tensor, tensors->n, &tensors->capacity, sizeof *tensors->tensor)) {
        return k3huf_fault_memory(fault, (uint64_t)tensors->n * sizeof *tensors->tensor);
    }
    struct k3huf_tensor *tensor = &tensors->tensor[tensors->n];
    *tensor = (struct k3huf_tensor){.name = malloc(name_bytes + 1),
                                    .name_bytes = name_bytes,
                                    .offset = offset,
                                    .bytes = bytes,
                                    .rank = rank,
                                    .dims_at = dims_at};
    if (tensor->name == NULL) { return k3huf_fault_memory(fault, name_bytes + 1); }
    memcpy(tensor->name, name, name_bytes);
    tensor->name[name_bytes] = '\0';
    const size_t dtype_bytes = strlen(dtype);
    memcpy(tensor->dtype, dtype, dtype_bytes < sizeof tensor->dtype ? dtype_bytes : sizeof tensor->dtype - 1);
    tensors->n++;
    return K3HUF_EXIT_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct k3huf_tensor *x = a;
    const struct k3huf_tensor *y = b;
    if (x->offset != y->offset) { return x->offset < y->offset ? -1 : 1; }
    if (x->bytes != y->bytes) { return x->bytes < y->bytes ? -1 : 1; }
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    const struct k3huf_tensor *const *x = a;
    const struct k3huf_tensor *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

enum k3huf_exit k3huf_tensors_finish(struct k3huf_tensors *tensors, const char *file, struct k3huf_fault *fault) {
    if (tensors->n == 0) { return K3HUF_EXIT_OK; }
    qsort(tensors->tensor, tensors->n, sizeof *tensors->tensor, by_offset);
    for (uint32_t i = 1; i < tensors->n; i++) {
        const struct k3huf_tensor *before = &tensors->tensor[i - 1];
        const struct k3huf_tensor *tensor = &tensors->tensor[i];
        if (tensor->offset < before->offset + before->bytes) {
            return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, file, NULL,
                                   "tensor '%s': offset %" PRIu64 ": overlaps tensor '%s', which ends at %" PRIu64,
                                   tensor->name, tensor->offset, before->name, before->offset + before->bytes);
        }
    }
    struct k3huf_tensor **names = malloc(tensors->n * sizeof(struct k3huf_tensor *));
    if (names == NULL) { return k3huf_fault_memory(fault, tensors->n * sizeof(struct k3huf_tensor *)); }
    for (uint32_t i = 0; i < tensors->n; i++) {
        names[i] = &tensors->tensor[i];
    }
    qsort(names, tensors->n, sizeof(struct k3huf_tensor *), by_name);
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 1; i < tensors->n && code == K3HUF_EXIT_OK; i++) {
        if (strcmp(names[i - 1]->name, names[i]->name) == 0) {
            code = wrong(file, names[i]->name, "is there twice", fault);
        }
    }
    free(names);
    return code;
}

void k3huf_tensors_free(struct k3huf_tensors *tensors) {
    for (uint32_t i = 0; i < tensors->n; i++) {
        free(tensors->tensor[i].name);
    }
    free(tensors->tensor);
    free(tensors->dims);
    *tensors = (struct k3huf_tensors){.kind = K3HUF_SOURCE_BYTES};
}

enum k3huf_exit k3huf_json_read(struct k3huf_input *input, uint64_t offset, size_t size, const char *what,
                                json_t **object, struct k3huf_fault *fault) {
    char *text = malloc(size == 0 ? 1 : size);
    size_t got = 0;
    *object = NULL;
    if (text == NULL) { return k3huf_fault_memory(fault, size); }
    enum k3huf_exit code = k3huf_input_read_at(input, offset, (uint8_t *)text, size, &got, fault);
    if (code == K3HUF_EXIT_OK && got != size) { code = k3huf_input_changed(input, offset + got, fault); }
    if (code == K3HUF_EXIT_OK) {
        json_error_t error;
        *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
        if (*object == NULL) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL, "%s, offset %" PRIu64 ": %s", what,
                                   offset + (uint64_t)(error.position < 0 ? 0 : error.position), error.text);
        } else if (!json_is_object(*object)) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL, "%s: is not a JSON object", what);
        }
    }
    if (code != K3HUF_EXIT_OK) {
        json_decref(*object);
        *object = NULL;
    }
    free(text);
    return code;
}
