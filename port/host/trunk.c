/* trunk.c - see trunk.h. May not write. */
#include "trunk.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 4096u /* unless the description has another */

/* What is known while a description is read; number, offset and bytes are of the layer at hand. */
struct layer {
    const char *file;
    bool prefix; /* of tensors' names: the layer's number */
    uint64_t bin_bytes;
    uint64_t alignment;
    size_t number;
    uint64_t offset;
    uint64_t bytes;
};

static enum k3huf_exit wrong(const struct layer *layer, const char *tensor, const char *text,
                             struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, layer->file, NULL, "layer %zu%s%s: %s", layer->number,
                           tensor == NULL ? "" : ", tensor ", tensor == NULL ? "" : tensor, text);
}

/* The dtype in capitals, in place. */
static void capitals(json_t *tensor) {
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    char text[K3HUF_ARCHIVE_DTYPE_BYTES + 1] = {0};
    for (size_t i = 0; dtype != NULL && i < K3HUF_ARCHIVE_DTYPE_BYTES && dtype[i] != '\0'; i++) {
        text[i] = (char)toupper((unsigned char)dtype[i]);
    }
    const bool long_name = dtype != NULL && strlen(dtype) < sizeof text && strcmp(text, "BFLOAT16") == 0;
    if (dtype != NULL && (long_name || strlen(dtype) < sizeof text)) {
        (void)json_object_set_new(tensor, "dtype", json_string(long_name ? "BF16" : text));
    }
}

/* A tensor without shape is a row of as many values as its bytes hold. */
static void give_shape(json_t *tensor, uint64_t bytes) {
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    const unsigned bits = dtype == NULL ? 0 : k3huf_dtype_bits(dtype);
    const uint64_t values = bits == 0 ? 0 : bytes / bits * 8u + bytes % bits * 8u / bits;
    if (json_object_get(tensor, "shape") != NULL) { return; }
    json_t *shape = json_array();
    if (bits != 0) { (void)json_array_append_new(shape, json_integer((json_int_t)values)); }
    (void)json_object_set_new(tensor, "shape", shape);
}

static enum k3huf_exit add_tensor(struct k3huf_tensors *tensors, const struct layer *layer, const char *name,
                                  json_t *object, struct k3huf_fault *fault) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    if (!k3huf_json_size(json_object_get(object, "off"), &offset) ||
        !k3huf_json_size(json_object_get(object, "nbytes"), &bytes)) {
        return wrong(layer, name, "off or nbytes is not a whole number", fault);
    }
    if (offset > layer->bytes || bytes > layer->bytes - offset) {
        return wrong(layer, name, "lies outside its layer", fault);
    }
    const size_t size = 24 + strlen(name);
    char *full = malloc(size);
    if (full == NULL) { return k3huf_fault_memory(fault, size); }
    const int length = layer->prefix && name[0] != '\0' ? snprintf(full, size, "%zu.%s", layer->number, name)
                                                        : snprintf(full, size, "%s", name);
    capitals(object);
    give_shape(object, bytes);
    enum k3huf_exit code = k3huf_tensors_add(tensors, layer->file, layer->bin_bytes, full, (size_t)length, object,
                                             layer->offset + offset, bytes, fault);
    free(full);
    return code;
}

static enum k3huf_exit add_layer(struct k3huf_tensors *tensors, struct layer *layer, const json_t *object,
                                 struct k3huf_fault *fault) {
    json_t *list = json_object_get(object, "tensors");
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (!k3huf_json_size(json_object_get(object, "file_off"), &layer->offset) ||
        !k3huf_json_size(json_object_get(object, "nbytes"), &layer->bytes)) {
        return wrong(layer, NULL, "file_off or nbytes is not a whole number", fault);
    }
    if (layer->offset % layer->alignment != 0) { return wrong(layer, NULL, "file_off is not aligned", fault); }
    if (layer->offset > layer->bin_bytes || layer->bytes > layer->bin_bytes - layer->offset) {
        return wrong(layer, NULL, "lies beyond the end of trunk.bin", fault);
    }
    if (!json_is_object(list)) { return wrong(layer, NULL, "has no tensors", fault); }
    const char *name = NULL;
    json_t *tensor = NULL;
    json_object_foreach(list, name, tensor) {
        if (code != K3HUF_EXIT_OK) { break; }
        code = add_tensor(tensors, layer, name, tensor, fault);
    }
    return code;
}

/* Do two layers have a tensor of one name? */
static bool names_repeat(const json_t *layers) {
    json_t *names = json_object();
    bool repeat = false;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        json_t *list = json_object_get(json_array_get(layers, i), "tensors");
        const char *name = NULL;
        json_t *value = NULL;
        json_object_foreach(list, name, value) {
            repeat = repeat || json_object_get(names, name) != NULL;
            (void)json_object_set_new(names, name, json_null());
        }
    }
    json_decref(names);
    return repeat;
}

enum k3huf_exit k3huf_trunk_read(struct k3huf_input *json, uint64_t bin_bytes, struct k3huf_tensors *tensors,
                                 struct k3huf_fault *fault) {
    json_t *root = NULL;
    *tensors = (struct k3huf_tensors){.kind = K3HUF_SOURCE_TRUNK};
    enum k3huf_exit code =
        json->size > K3HUF_ARCHIVE_TOC_MAX
            ? k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, json->name, NULL, "is over %u bytes", K3HUF_ARCHIVE_TOC_MAX)
            : k3huf_json_read(json, 0, (size_t)json->size, "trunk", &root, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const json_t *layers = json_object_get(root, "layers");
    const json_t *align = json_object_get(root, "align");
    struct layer layer = {
        .file = json->name, .prefix = names_repeat(layers), .bin_bytes = bin_bytes, .alignment = ALIGNMENT};
    if (!json_is_array(layers)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, json->name, NULL, "has no list of layers");
    } else if (align != NULL && (!k3huf_json_size(align, &layer.alignment) || layer.alignment == 0)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, json->name, NULL, "align is not a whole number over 0");
    }
    for (size_t i = 0; i < json_array_size(layers) && code == K3HUF_EXIT_OK; i++) {
        const json_t *object = json_array_get(layers, i);
        layer.number = i;
        if (!json_is_null(object)) { code = add_layer(tensors, &layer, object, fault); }
    }
    json_decref(root);
    return code == K3HUF_EXIT_OK ? k3huf_tensors_finish(tensors, json->name, fault) : code;
}
