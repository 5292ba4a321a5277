/* trunk.c - see trunk.h. May not write. */
#include "trunk.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER_ALIGNMENT 4096u

struct layer {
    const char *file;
    const char *name;
    uint64_t bin_bytes;
    uint64_t offset;
    uint64_t bytes;
};

static enum k3huf_exit wrong(const struct layer *layer, const char *tensor, const char *text,
                             struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, layer->file, NULL, "layer '%s'%s%s: %s", layer->name,
                           tensor == NULL ? "" : ", tensor ", tensor == NULL ? "" : tensor, text);
}

/* The dtype in capitals, in place. */
static void capitals(json_t *tensor) {
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    char text[K3HUF_ARCHIVE_DTYPE_BYTES + 1] = {0};
    for (size_t i = 0; dtype != NULL && i < K3HUF_ARCHIVE_DTYPE_BYTES && dtype[i] != '\0'; i++) {
        text[i] = (char)toupper((unsigned char)dtype[i]);
    }
    const bool long_name = strcmp(text, "BFLOAT16") == 0;
    if (dtype != NULL && (long_name || strlen(dtype) < sizeof text)) {
        (void)json_object_set_new(tensor, "dtype", json_string(long_name ? "BF16" : text));
    }
}

static enum k3huf_exit add_tensor(struct k3huf_tensors *tensors, const struct layer *layer, const char *name,
                                  json_t *object, struct k3huf_fault *fault) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    if (name == NULL) { return wrong(layer, NULL, "has a tensor without a name", fault); }
    if (!k3huf_json_size(json_object_get(object, "off"), &offset) ||
        !k3huf_json_size(json_object_get(object, "nbytes"), &bytes)) {
        return wrong(layer, name, "off or nbytes is not a whole number", fault);
    }
    if (offset > layer->bytes || bytes > layer->bytes - offset) {
        return wrong(layer, name, "lies outside its layer", fault);
    }
    const size_t size = strlen(layer->name) + 1 + strlen(name) + 1;
    char *full = malloc(size);
    if (full == NULL) { return k3huf_fault_memory(fault, size); }
    (void)snprintf(full, size, "%s.%s", layer->name, name);
    capitals(object);
    enum k3huf_exit code = k3huf_tensors_add(tensors, layer->file, layer->bin_bytes, full, size - 1, object,
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
    if (layer->offset % LAYER_ALIGNMENT != 0) { return wrong(layer, NULL, "file_off is no multiple of 4096", fault); }
    if (layer->offset > layer->bin_bytes || layer->bytes > layer->bin_bytes - layer->offset) {
        return wrong(layer, NULL, "lies beyond the end of trunk.bin", fault);
    }
    if (!json_is_array(list) && !json_is_object(list)) { return wrong(layer, NULL, "has no tensors", fault); }
    for (size_t i = 0; i < json_array_size(list) && code == K3HUF_EXIT_OK; i++) {
        json_t *tensor = json_array_get(list, i);
        code = add_tensor(tensors, layer, json_string_value(json_object_get(tensor, "name")), tensor, fault);
    }
    const char *name = NULL;
    json_t *tensor = NULL;
    json_object_foreach(list, name, tensor) {
        if (code != K3HUF_EXIT_OK) { break; }
        code = add_tensor(tensors, layer, name, tensor, fault);
    }
    return code;
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
    json_t *layers = json_object_get(root, "layers");
    struct layer layer = {.file = json->name, .bin_bytes = bin_bytes};
    if (!json_is_array(layers) && !json_is_object(layers)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, json->name, NULL, "has no layers");
    }
    for (size_t i = 0; i < json_array_size(layers) && code == K3HUF_EXIT_OK; i++) {
        char number[24];
        const char *name = json_string_value(json_object_get(json_array_get(layers, i), "name"));
        (void)snprintf(number, sizeof number, "%zu", i);
        layer.name = name == NULL ? number : name;
        code = add_layer(tensors, &layer, json_array_get(layers, i), fault);
    }
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(layers, name, value) {
        if (code != K3HUF_EXIT_OK) { break; }
        layer.name = name;
        code = add_layer(tensors, &layer, value, fault);
    }
    json_decref(root);
    return code == K3HUF_EXIT_OK ? k3huf_tensors_finish(tensors, json->name, fault) : code;
}
