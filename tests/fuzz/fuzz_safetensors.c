/* fuzz_safetensors.c - fuzz target: the header of a safetensors file (port/host/safetensors.c, tensors.c), in memory.
 * What is let through must tile the file, as check_tensors.h has it, and say what the JSON says; all else is refused as
 * corrupt. The input is the file; the length in front mostly is made to fit the header. */
#include <stdlib.h>
#include <string.h>

#include "check_tensors.h"
#include "mutate.h"
#include "numbers.h"
#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define LENGTH 8u

static const char *const texts[] = {
    "{}",
    "{\"w\":{\"dtype\":\"BF16\",\"shape\":[4,8],\"data_offsets\":[0,64]}}",
    "{\"__metadata__\":{\"format\":\"pt\",\"\\u00e4\":\"\"},\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":"
    "[64,68]},\"a\":{\"dtype\":\"BF16\",\"shape\":[2,16],\"data_offsets\":[0,64]}}",
    "{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]},\"y\":{\"dtype\":\"F4\",\"shape\":[2,3],"
    "\"data_offsets\":[3,6]},\"z\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[10,13]}}",
    "{\"e\":{\"dtype\":\"I64\",\"shape\":[0,9223372036854775807],\"data_offsets\":[8,8]},\"f\":{\"dtype\":\"C64\","
    "\"shape\":[1],\"data_offsets\":[0,8]},\"g\":{\"dtype\":\"BOOL\",\"shape\":[1,1,1],\"data_offsets\":[8,9]}}",
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    struct k3huf_rng rng = {seed ^ 0x5AFEu};
    if (max_size < LENGTH + 256) { return size; }
    const uint64_t length = size < LENGTH ? 0 : k3huf_fuzz_get(data, LENGTH);
    const bool fits = size >= LENGTH && length <= size - LENGTH;
    /* The header moves to the front, changes, and gets as much data behind it as there was, or a little less or more.
     */
    size_t rest = fits ? size - LENGTH - (size_t)length : 80;
    const size_t text = k3huf_fuzz_mutate_json(data + LENGTH, fits ? (size_t)length : 0, max_size - LENGTH - 80, seed,
                                               texts, sizeof texts / sizeof texts[0]);
    if (k3huf_rng_below(&rng, 6) == 0) { rest += k3huf_rng_below(&rng, 9) - (rest < 4 ? 0 : 4u); }
    if (rest > max_size - LENGTH - text) { rest = max_size - LENGTH - text; }
    memset(data + LENGTH + text, 'w', rest);
    const uint64_t now = k3huf_rng_below(&rng, 16) == 0 ? k3huf_fuzz_other(&rng, text) : text;
    k3huf_fuzz_put(data, LENGTH, now);
    return LENGTH + text + rest;
}

/* Each tensor is in the JSON, where it says so, and there are no others. */
static void compare(const struct k3huf_tensors *tensors, const uint8_t *data) {
    const uint64_t length = k3huf_fuzz_get(data, LENGTH);
    json_t *const root = json_loadb((const char *)data + LENGTH, (size_t)length, 0, NULL);
    if (root == NULL) { k3huf_fuzz_found("a header that is no JSON", NULL); }
    const size_t metadata = json_object_get(root, "__metadata__") == NULL ? 0 : 1;
    if (json_object_size(root) != tensors->n + metadata) { k3huf_fuzz_found("the number of tensors", NULL); }
    for (uint32_t i = 0; i < tensors->n; i++) {
        const struct k3huf_tensor *const t = &tensors->tensor[i];
        const json_t *const object = json_object_get(root, t->name);
        const json_t *const offsets = json_object_get(object, "data_offsets");
        const json_t *const shape = json_object_get(object, "shape");
        const uint64_t begin = t->offset - LENGTH - length;
        bool same =
            json_integer_value(json_array_get(offsets, 0)) == (json_int_t)begin &&
            json_integer_value(json_array_get(offsets, 1)) == (json_int_t)(begin + t->bytes) &&
            strncmp(json_string_value(json_object_get(object, "dtype")), t->dtype, K3HUF_ARCHIVE_DTYPE_BYTES) == 0 &&
            json_array_size(shape) == t->rank;
        for (uint32_t d = 0; d < t->rank && same; d++) {
            same = json_integer_value(json_array_get(shape, d)) == (json_int_t)tensors->dims[t->dims_at + d];
        }
        if (!same) { k3huf_fuzz_found("a tensor that is not the JSON's", t->name); }
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *const own = malloc(size == 0 ? 1 : size);
    if (own == NULL) { abort(); }
    if (size > 0) { memcpy(own, data, size); }
    struct k3huf_input input = {.name = "file", .fd = -1, .seekable = true, .size = size, .memory = own};
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_tensors tensors;
    bool is = false;
    if (k3huf_safetensors_recognise(&input, &is, &fault) != K3HUF_EXIT_OK) { k3huf_fuzz_found(fault.text, NULL); }
    const enum k3huf_exit code = k3huf_safetensors_read(&input, &tensors, &fault);
    if (code == K3HUF_EXIT_OK) {
        k3huf_fuzz_check_tensors(&tensors, size, size);
        compare(&tensors, own);
        /* By its contents alone it is known, unless JSON's white space is around the header. */
        const uint64_t length = k3huf_fuzz_get(own, LENGTH);
        if (!is && own[LENGTH] == '{' && own[LENGTH + length - 1] == '}') {
            k3huf_fuzz_found("a safetensors file that is not known as one", NULL);
        }
    } else if (code != K3HUF_EXIT_CORRUPT || strncmp(fault.text, "file: ", 6) != 0) {
        k3huf_fuzz_found("a refusal", fault.text);
    }
    k3huf_tensors_free(&tensors);
    free(own);
    return 0;
}
