/* fuzz_model.c - fuzz target: the descriptions of models in JSON, by the input's first byte: trunk.json
 * (port/host/trunk.c), model.safetensors.index.json and the manifest of a packed directory (model_dir.c). The latter
 * two are read from a folder of their own, in which the files A, B and C are. What is let through names plain files
 * that are there, each once, and tensors as check_tensors.h has it; all else is refused as corrupt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_tensors.h"
#include "model_dir.h"
#include "mutate.h"
#include "numbers.h"
#include "trunk.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define BIN_BYTES 65536u

static const char *const texts[3][3] = {
    {"{\"layers\":[{\"file_off\":0,\"nbytes\":4096,\"tensors\":{\"w\":{\"off\":0,\"nbytes\":64,\"dtype\":\"bf16\","
     "\"shape\":[32]},\"s\":{\"off\":64,\"nbytes\":3,\"dtype\":\"F8_E4M3\"}}},null,{\"file_off\":8192,\"nbytes\":100,"
     "\"tensors\":{\"w\":{\"off\":0,\"nbytes\":8,\"dtype\":\"bfloat16\",\"shape\":[2,2]}}}]}",
     "{\"align\":512,\"layers\":[{\"file_off\":1024,\"nbytes\":60000,\"tensors\":{\"t\":{\"off\":16,\"nbytes\":0,"
     "\"dtype\":\"MX4\",\"shape\":[0]},\"u\":{\"off\":17,\"nbytes\":9,\"dtype\":\"I8R\"}}}]}",
     "{\"layers\":[]}"},
    {"{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"A\",\"b\":\"B\",\"c\":\"A\"}}", "{\"weight_map\":{}}",
     "{\"weight_map\":{\"x\":\"../A\",\"y\":\"C\"}}"},
    {"{\"k3huf_manifest\":1,\"trunk\":false,\"files\":[{\"source\":\"A\",\"archive\":\"A.k3a\",\"source_bytes\":5,"
     "\"source_mtime\":-7},{\"source\":\"B\",\"archive\":\"B.k3a\",\"source_bytes\":0,\"source_mtime\":0}]}",
     "{\"k3huf_manifest\":1,\"trunk\":true,\"files\":[]}", "{\"k3huf_manifest\":1,\"files\":[{\"source\":\"..\"}]}"},
};
static char folder[] = "/tmp/k3huf-fuzz-XXXXXX";

/* A file in the folder; good until the next call. */
static const char *path(const char *name) {
    static char text[512];
    (void)snprintf(text, sizeof text, "%s/%.400s", folder, name);
    return text;
}

static void write_file(const char *name, const uint8_t *data, size_t size) {
    FILE *const file = fopen(path(name), "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) { abort(); }
}

static void clean(void) {
    static const char *const names[] = {"A", "B", "C", "model.safetensors.index.json", "k3huf-manifest.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(path(names[i]));
    }
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    if (mkdtemp(folder) == NULL || atexit(clean) != 0) { return 1; }
    write_file("A", (const uint8_t *)"aaaaa", 5);
    write_file("B", (const uint8_t *)"", 0);
    write_file("C", (const uint8_t *)"c", 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    struct k3huf_rng rng = {seed ^ 0xD1Au};
    if (max_size < 600) { return size; }
    if (size < 9 || k3huf_rng_below(&rng, 50) == 0) {
        data[0] = (uint8_t)k3huf_rng_below(&rng, 3);
        size = 1;
    }
    return 1 + k3huf_fuzz_mutate_json(data + 1, size - 1, max_size - 1, seed, texts[data[0] % 3u], 3);
}

static void refused(enum k3huf_exit code, const struct k3huf_fault *fault) {
    if (code != K3HUF_EXIT_CORRUPT || fault->text[0] == 0) { k3huf_fuzz_found("a refusal", fault->text); }
}

static void read_trunk(const uint8_t *data, size_t size) {
    uint8_t *const own = malloc(size == 0 ? 1 : size);
    if (own == NULL) { abort(); }
    if (size > 0) { memcpy(own, data, size); }
    struct k3huf_input input = {.name = "trunk.json", .fd = -1, .seekable = true, .size = size, .memory = own};
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_tensors tensors;
    const enum k3huf_exit code = k3huf_trunk_read(&input, BIN_BYTES, &tensors, &fault);
    if (code == K3HUF_EXIT_OK) {
        k3huf_fuzz_check_tensors(&tensors, BIN_BYTES, size);
    } else {
        refused(code, &fault);
    }
    k3huf_tensors_free(&tensors);
    free(own);
}

static void read_directory(const uint8_t *data, size_t size, bool manifest) {
    struct k3huf_fault fault = {.code = K3HUF_EXIT_OK};
    struct k3huf_model model;
    const char *const name = manifest ? K3HUF_MANIFEST_NAME : "model.safetensors.index.json";
    write_file(name, data, size);
    const enum k3huf_exit code =
        manifest ? k3huf_manifest_read(folder, &model, &fault) : k3huf_model_read(folder, &model, &fault);
    if (code != K3HUF_EXIT_OK) { refused(code, &fault); }
    for (uint32_t i = 0; i < model.n && code == K3HUF_EXIT_OK; i++) {
        const char *const at = model.file[i].name;
        if (at[0] == 0 || strchr(at, '/') != NULL || strcmp(at, ".") == 0 || strcmp(at, "..") == 0) {
            k3huf_fuzz_found("a name that is not plain", at);
        }
        if (!manifest && (access(path(at), R_OK) != 0 || (i > 0 && strcmp(model.file[i - 1].name, at) >= 0))) {
            k3huf_fuzz_found("a file of the model", at);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(model.file[k].name, at) == 0) { k3huf_fuzz_found("a file twice", at); }
        }
    }
    k3huf_model_free(&model);
    (void)unlink(path(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) { return 0; }
    switch (data[0] % 3u) {
    case 0: read_trunk(data + 1, size - 1); break;
    case 1: read_directory(data + 1, size - 1, false); break;
    default: read_directory(data + 1, size - 1, true); break;
    }
    return 0;
}
