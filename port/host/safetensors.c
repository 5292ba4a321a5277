/* safetensors.c - see safetensors.h. May not write. */
#include "safetensors.h"

#include <inttypes.h>
#include <string.h>

#define LENGTH_BYTES 8u

static uint64_t load64(const uint8_t *at) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++) {
        value |= (uint64_t)at[i] << (8u * i);
    }
    return value;
}

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name);
    const size_t m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

enum k3huf_exit k3huf_safetensors_recognise(struct k3huf_input *input, bool *is, struct k3huf_fault *fault) {
    uint8_t front[LENGTH_BYTES + 1];
    uint8_t back = 0;
    size_t got = 0;
    *is = ends_in(input->name, ".safetensors");
    if (*is) { return K3HUF_EXIT_OK; }
    enum k3huf_exit code = k3huf_input_read_at(input, 0, front, sizeof front, &got, fault);
    if (code != K3HUF_EXIT_OK || got != sizeof front || front[LENGTH_BYTES] != '{') { return code; }
    const uint64_t length = load64(front);
    if (length < 2 || length > K3HUF_SAFETENSORS_HEADER_MAX || length > input->size - LENGTH_BYTES) { return code; }
    code = k3huf_input_read_at(input, LENGTH_BYTES + length - 1, &back, 1, &got, fault);
    *is = code == K3HUF_EXIT_OK && got == 1 && (back == '}' || back == ' ');
    return code;
}

static enum k3huf_exit add(struct k3huf_tensors *tensors, const struct k3huf_input *input, uint64_t data,
                           const char *name, size_t name_bytes, const json_t *object, struct k3huf_fault *fault) {
    const json_t *offsets = json_object_get(object, "data_offsets");
    uint64_t begin = 0;
    uint64_t end = 0;
    if (json_array_size(offsets) != 2 || !k3huf_json_size(json_array_get(offsets, 0), &begin) ||
        !k3huf_json_size(json_array_get(offsets, 1), &end)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                               "tensor '%s': data_offsets is not a pair of whole numbers", name);
    }
    if (end < begin) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                               "tensor '%s': data_offsets go backward, from %" PRIu64 " to %" PRIu64, name, begin, end);
    }
    return k3huf_tensors_add(tensors, input->name, input->size, name, name_bytes, object, data + begin, end - begin,
                             fault);
}

/* The format has an object of strings there. */
static enum k3huf_exit check_metadata(const struct k3huf_input *input, json_t *metadata, struct k3huf_fault *fault) {
    bool good = json_is_object(metadata);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(metadata, name, value) { good = good && json_is_string(value); }
    return good ? K3HUF_EXIT_OK
                : k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                                  "__metadata__ is not an object of strings");
}

enum k3huf_exit k3huf_safetensors_read(struct k3huf_input *input, struct k3huf_tensors *tensors,
                                       struct k3huf_fault *fault) {
    uint8_t front[LENGTH_BYTES];
    size_t got = 0;
    *tensors = (struct k3huf_tensors){.kind = K3HUF_SOURCE_SAFETENSORS};
    enum k3huf_exit code = k3huf_input_read_at(input, 0, front, sizeof front, &got, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (got != sizeof front) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                               "offset 0: too short for a safetensors file");
    }
    const uint64_t length = load64(front);
    if (length > input->size - LENGTH_BYTES) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                               "offset 0: the header's length, %" PRIu64 ", is beyond the end of the file", length);
    }
    if (length > K3HUF_SAFETENSORS_HEADER_MAX) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, input->name, NULL,
                               "offset 0: the header's length, %" PRIu64 ", is over %u", length,
                               K3HUF_SAFETENSORS_HEADER_MAX);
    }
    json_t *root = NULL;
    code = k3huf_json_read(input, LENGTH_BYTES, (size_t)length, "safetensors header", &root, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const char *name = NULL;
    size_t name_bytes = 0;
    json_t *value = NULL;
    json_object_keylen_foreach(root, name, name_bytes, value) {
        if (code != K3HUF_EXIT_OK) { break; }
        if (strcmp(name, "__metadata__") == 0) {
            code = check_metadata(input, value, fault);
        } else {
            code = add(tensors, input, LENGTH_BYTES + length, name, name_bytes, value, fault);
        }
    }
    json_decref(root);
    return code == K3HUF_EXIT_OK ? k3huf_tensors_finish(tensors, input->name, fault) : code;
}
