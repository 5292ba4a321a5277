/* model_dir.c - see model_dir.h. */
#include "model_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive_file.h"
#include "json_print.h"
#include "output.h"
#include "tensors.h"

#define INDEX_NAME "model.safetensors.index.json"
#define MANIFEST_MAX ((uint64_t)64 << 20)

bool k3huf_is_directory(const char *name) {
    struct stat info;
    return stat(name, &info) == 0 && S_ISDIR(info.st_mode);
}

char *k3huf_path(const char *directory, const char *name, const char *suffix, struct k3huf_fault *fault) {
    const size_t size = strlen(directory) + 1 + strlen(name) + (suffix == NULL ? 0 : strlen(suffix)) + 1;
    char *path = malloc(size);
    if (path == NULL) {
        (void)k3huf_fault_memory(fault, size);
        return NULL;
    }
    (void)snprintf(path, size, "%s/%s%s", directory, name, suffix == NULL ? "" : suffix);
    return path;
}

/* A name that stays in its directory. */
static bool plain_name(const char *name) {
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int by_name(const void *a, const void *b) {
    const struct k3huf_model_file *x = a;
    const struct k3huf_model_file *y = b;
    return strcmp(x->name, y->name);
}

/* Add a name, which may be there already. */
static enum k3huf_exit add(struct k3huf_model *model, const char *name, struct k3huf_fault *fault) {
    if ((model->n & (model->n - 1u)) == 0) { /* full: the capacity is the next power of two */
        const size_t capacity = model->n == 0 ? 1 : 2 * (size_t)model->n;
        struct k3huf_model_file *grown = realloc(model->file, capacity * sizeof *grown);
        if (grown == NULL) { return k3huf_fault_memory(fault, capacity * sizeof *grown); }
        model->file = grown;
    }
    model->file[model->n] = (struct k3huf_model_file){.name = strdup(name)};
    if (model->file[model->n].name == NULL) { return k3huf_fault_memory(fault, strlen(name) + 1); }
    model->n++;
    return K3HUF_EXIT_OK;
}

/* Sort by name; the first of each stays. Returns how many went. */
static uint32_t settle(struct k3huf_model *model) {
    uint32_t kept = 0;
    if (model->n > 0) { qsort(model->file, model->n, sizeof *model->file, by_name); }
    for (uint32_t i = 0; i < model->n; i++) {
        if (kept > 0 && strcmp(model->file[kept - 1].name, model->file[i].name) == 0) {
            free(model->file[i].name);
        } else {
            model->file[kept++] = model->file[i];
        }
    }
    const uint32_t gone = model->n - kept;
    model->n = kept;
    return gone;
}

void k3huf_model_free(struct k3huf_model *model) {
    for (uint32_t i = 0; i < model->n; i++) {
        free(model->file[i].name);
    }
    free(model->file);
    *model = (struct k3huf_model){0};
}

static enum k3huf_exit read_json(const char *directory, const char *name, json_t **root, char **path,
                                 struct k3huf_fault *fault) {
    struct k3huf_input input;
    *root = NULL;
    *path = k3huf_path(directory, name, NULL, fault);
    if (*path == NULL) { return fault->code; }
    enum k3huf_exit code = k3huf_input_open(&input, *path, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (!input.seekable || input.size > MANIFEST_MAX) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, *path, NULL, "is not a file of at most 64 MiB");
    } else {
        code = k3huf_json_read(&input, 0, (size_t)input.size, "JSON", root, fault);
    }
    k3huf_input_close(&input);
    return code;
}

static enum k3huf_exit read_index(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    json_t *root = NULL;
    char *path = NULL;
    const char *tensor = NULL;
    json_t *shard = NULL;
    enum k3huf_exit code = read_json(directory, INDEX_NAME, &root, &path, fault);
    json_t *map = json_object_get(root, "weight_map");
    if (code == K3HUF_EXIT_OK && !json_is_object(map)) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "has no weight_map");
    }
    json_object_foreach(map, tensor, shard) {
        if (code != K3HUF_EXIT_OK) { break; }
        if (!json_is_string(shard) || !plain_name(json_string_value(shard))) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL,
                                   "weight_map, tensor '%s': '%s' is not the name of a file beside the index", tensor,
                                   json_is_string(shard) ? json_string_value(shard) : "");
        } else {
            code = add(model, json_string_value(shard), fault);
        }
    }
    if (code == K3HUF_EXIT_OK) { code = add(model, INDEX_NAME, fault); }
    json_decref(root);
    free(path);
    return code;
}

/* The next name in a directory; NULL: no more. */
static enum k3huf_exit next(DIR *dir, const char *directory, struct dirent **found, struct k3huf_fault *fault) {
    errno = 0;
    *found = readdir(dir);
    return *found != NULL || errno == 0 ? K3HUF_EXIT_OK : k3huf_fault_errno(fault, directory, "cannot be read");
}

/* All .safetensors files of a directory. */
static enum k3huf_exit read_files(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    static const char suffix[] = ".safetensors";
    DIR *dir = opendir(directory);
    if (dir == NULL) { return k3huf_fault_errno(fault, directory, "cannot be read"); }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (struct dirent *found; (code = next(dir, directory, &found, fault)) == K3HUF_EXIT_OK && found != NULL;) {
        const size_t length = strlen(found->d_name);
        if (found->d_name[0] != '.' && length > sizeof suffix - 1 &&
            strcmp(found->d_name + length - (sizeof suffix - 1), suffix) == 0) {
            code = add(model, found->d_name, fault);
            if (code != K3HUF_EXIT_OK) { break; }
        }
    }
    (void)closedir(dir);
    if (code == K3HUF_EXIT_OK && model->n == 0) {
        code =
            k3huf_fault_set(fault, K3HUF_EXIT_IO, directory, NULL,
                            "is a directory without " INDEX_NAME ", .safetensors files, or trunk.bin and trunk.json");
    }
    return code;
}

/* Size and time of every file, which must be there. */
static enum k3huf_exit look(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    for (uint32_t i = 0; i < model->n; i++) {
        struct stat info;
        char *path = k3huf_path(directory, model->file[i].name, NULL, fault);
        if (path == NULL) { return fault->code; }
        const bool there = stat(path, &info) == 0;
        const bool good = there && S_ISREG(info.st_mode);
        if (!there && errno != ENOENT) {
            (void)k3huf_fault_errno(fault, path, "cannot be examined");
        } else if (!good) {
            (void)k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "%s",
                                  model->indexed ? "is named by the index but is not a file here" : "is not a file");
        }
        free(path);
        if (!good) { return fault->code; }
        model->file[i].bytes = (uint64_t)info.st_size;
        model->file[i].mtime = k3huf_nanoseconds(info.st_mtim);
    }
    return K3HUF_EXIT_OK;
}

/* Whether something has that name, a link to nowhere too. What cannot be told counts as there: whoever opens it then
 * says why it cannot be read, and nothing is left out in silence. */
static bool has(const char *directory, const char *name) {
    struct k3huf_fault fault;
    struct stat info;
    char *path = k3huf_path(directory, name, NULL, &fault);
    const bool there = path == NULL || lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
    free(path);
    return there;
}

static int is_named(const void *name, const void *file) {
    return strcmp(name, ((const struct k3huf_model_file *)file)->name);
}

const struct k3huf_model_file *k3huf_model_find(const struct k3huf_model *model, const char *name) {
    return model->n == 0 ? NULL : bsearch(name, model->file, model->n, sizeof *model->file, is_named);
}

/* No file may have the name that pack gives to another's archive, or to the manifest: packed where it lies, the model
 * would be overwritten. */
static enum k3huf_exit check_names(const char *directory, const struct k3huf_model *model, struct k3huf_fault *fault) {
    if (k3huf_model_find(model, K3HUF_MANIFEST_NAME) != NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, directory, NULL,
                               "the index names '" K3HUF_MANIFEST_NAME "', which is the manifest's name");
    }
    for (uint32_t i = 0; i < model->n; i++) {
        const size_t size = strlen(model->file[i].name) + sizeof K3HUF_ARCHIVE_SUFFIX;
        char *archive = malloc(size);
        if (archive == NULL) { return k3huf_fault_memory(fault, size); }
        (void)snprintf(archive, size, "%s%s", model->file[i].name, K3HUF_ARCHIVE_SUFFIX);
        const bool clash = k3huf_model_find(model, archive) != NULL;
        if (clash) {
            (void)k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, directory, NULL,
                                  "the index names '%s' and '%s', which is the name of its archive",
                                  model->file[i].name, archive);
        }
        free(archive);
        if (clash) { return fault->code; }
    }
    return K3HUF_EXIT_OK;
}

/* How many files of the directory are not the model's: those that `model` does not name. */
static enum k3huf_exit count_others(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    DIR *dir = opendir(directory);
    if (dir == NULL) { return k3huf_fault_errno(fault, directory, "cannot be read"); }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (struct dirent *found; (code = next(dir, directory, &found, fault)) == K3HUF_EXIT_OK && found != NULL;) {
        struct stat info;
        if (k3huf_model_find(model, found->d_name) == NULL && fstatat(dirfd(dir), found->d_name, &info, 0) == 0 &&
            S_ISREG(info.st_mode)) {
            model->others++;
        }
    }
    (void)closedir(dir);
    return code;
}

enum k3huf_exit k3huf_model_read(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    *model = (struct k3huf_model){0};
    if (has(directory, INDEX_NAME)) {
        model->indexed = true;
        code = read_index(directory, model, fault);
    } else if (has(directory, "trunk.json") && has(directory, "trunk.bin")) {
        model->trunk = true;
        code = add(model, "trunk.bin", fault);
        if (code == K3HUF_EXIT_OK) { code = add(model, "trunk.json", fault); }
    } else {
        code = read_files(directory, model, fault);
    }
    (void)settle(model);
    if (code == K3HUF_EXIT_OK) { code = check_names(directory, model, fault); }
    if (code == K3HUF_EXIT_OK) { code = look(directory, model, fault); }
    if (code == K3HUF_EXIT_OK) { code = count_others(directory, model, fault); }
    return code;
}

/* ---------------------------------------------------------------------------------------------- what is there ---- */

static enum k3huf_exit foreign(const char *path, const char *what, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, path, NULL, "exists already and is no %s (--force replaces it)", what);
}

/* Whether `path`, which is to be replaced, is an archive, sound or not; K3HUF_EXIT_OK also where nothing is there, or
 * no regular file: what becomes of those is output.h's to say. */
static enum k3huf_exit expect_archive(const char *path, struct k3huf_fault *fault) {
    struct k3huf_input input;
    struct stat info;
    bool is = false;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) { return K3HUF_EXIT_OK; }
    enum k3huf_exit code = k3huf_input_open(&input, path, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_archive_recognise(&input, &is, fault);
    k3huf_input_close(&input);
    return code == K3HUF_EXIT_OK && !is ? foreign(path, "archive", fault) : code;
}

static enum k3huf_exit expect_manifest(const char *directory, const char *path, struct k3huf_fault *fault) {
    json_t *root = NULL;
    char *again = NULL;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) { return K3HUF_EXIT_OK; }
    enum k3huf_exit code = read_json(directory, K3HUF_MANIFEST_NAME, &root, &again, fault);
    if (code == K3HUF_EXIT_CORRUPT || (code == K3HUF_EXIT_OK && json_object_get(root, "k3huf_manifest") == NULL)) {
        code = foreign(path, "manifest", fault);
    }
    json_decref(root);
    free(again);
    return code;
}

enum k3huf_exit k3huf_model_keep_others(const char *directory, const struct k3huf_model *model,
                                        struct k3huf_fault *fault) {
    char *path = k3huf_path(directory, K3HUF_MANIFEST_NAME, NULL, fault);
    enum k3huf_exit code = path == NULL ? fault->code : expect_manifest(directory, path, fault);
    free(path);
    for (uint32_t i = 0; i < model->n && code == K3HUF_EXIT_OK; i++) {
        path = k3huf_path(directory, model->file[i].name, K3HUF_ARCHIVE_SUFFIX, fault);
        code = path == NULL ? fault->code : expect_archive(path, fault);
        free(path);
    }
    return code;
}

/* -------------------------------------------------------------------------------------------------- manifest ---- */

static bool same_contents(const char *path, const char *text, size_t size) {
    struct k3huf_input input;
    struct k3huf_fault fault;
    bool same = false;
    if (k3huf_input_open(&input, path, &fault) != K3HUF_EXIT_OK) { return false; }
    uint8_t *bytes = malloc(size);
    size_t got = 0;
    if (bytes != NULL && input.seekable && input.size == size &&
        k3huf_input_read_at(&input, 0, bytes, size, &got, &fault) == K3HUF_EXIT_OK) {
        same = got == size && memcmp(bytes, text, size) == 0;
    }
    free(bytes);
    k3huf_input_close(&input);
    return same;
}

enum k3huf_exit k3huf_manifest_write(const char *directory, const struct k3huf_model *model,
                                     struct k3huf_fault *fault) {
    json_t *files = json_array();
    for (uint32_t i = 0; i < model->n; i++) {
        const struct k3huf_model_file *file = &model->file[i];
        json_t *object =
            json_pack("{s:s, s:s+, s:I, s:I}", "source", file->name, "archive", file->name, K3HUF_ARCHIVE_SUFFIX,
                      "source_bytes", (json_int_t)file->bytes, "source_mtime", (json_int_t)file->mtime);
        if (object == NULL) {
            json_decref(files);
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, file->name, NULL, "has a name that is not UTF-8");
        }
        const enum k3huf_exit code = k3huf_json_append(files, object, fault);
        if (code != K3HUF_EXIT_OK) {
            json_decref(files);
            return code;
        }
    }
    json_t *root = json_pack("{s:i, s:b, s:o}", "k3huf_manifest", 1, "trunk", (int)model->trunk, "files", files);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
    char *path = k3huf_path(directory, K3HUF_MANIFEST_NAME, NULL, fault);
    enum k3huf_exit code = path == NULL ? fault->code : text == NULL ? k3huf_fault_memory(fault, 0) : K3HUF_EXIT_OK;
    if (code == K3HUF_EXIT_OK && !same_contents(path, text, strlen(text))) {
        struct k3huf_output output;
        code = k3huf_output_open(&output, path, true, fault);
        if (code == K3HUF_EXIT_OK) {
            code = k3huf_output_write(&output, (const uint8_t *)text, strlen(text), fault);
            if (code == K3HUF_EXIT_OK) { code = k3huf_output_commit(&output, fault); }
            k3huf_output_discard(&output);
        }
    }
    free(path);
    free(text);
    json_decref(root);
    return code;
}

enum k3huf_exit k3huf_manifest_read(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault) {
    json_t *root = NULL;
    char *path = NULL;
    *model = (struct k3huf_model){0};
    if (!has(directory, K3HUF_MANIFEST_NAME)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, directory, NULL, "holds no " K3HUF_MANIFEST_NAME);
    }
    enum k3huf_exit code = read_json(directory, K3HUF_MANIFEST_NAME, &root, &path, fault);
    const json_t *files = json_object_get(root, "files");
    if (code == K3HUF_EXIT_OK &&
        (json_integer_value(json_object_get(root, "k3huf_manifest")) != 1 || !json_is_array(files))) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "is not a manifest, version 1");
    }
    model->trunk = json_is_true(json_object_get(root, "trunk"));
    for (size_t i = 0; i < json_array_size(files) && code == K3HUF_EXIT_OK; i++) {
        const json_t *file = json_array_get(files, i);
        const char *name = json_string_value(json_object_get(file, "source"));
        const json_t *mtime = json_object_get(file, "source_mtime");
        uint64_t bytes = 0;
        if (name == NULL || !plain_name(name) || !k3huf_json_size(json_object_get(file, "source_bytes"), &bytes) ||
            !json_is_integer(mtime)) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "file %zu is not described soundly", i);
        } else {
            code = add(model, name, fault);
            if (code == K3HUF_EXIT_OK) {
                model->file[model->n - 1].bytes = bytes;
                model->file[model->n - 1].mtime = json_integer_value(mtime);
            }
        }
    }
    if (settle(model) > 0 && code == K3HUF_EXIT_OK) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, path, NULL, "names a file twice");
    }
    json_decref(root);
    free(path);
    return code;
}

bool k3huf_model_file_is(const struct k3huf_model_file *file, uint64_t bytes, int64_t mtime) {
    return file->bytes == bytes && file->mtime == mtime;
}

enum k3huf_exit k3huf_manifest_check(const struct k3huf_model_file *file, const char *archive, uint64_t bytes,
                                     int64_t mtime, struct k3huf_fault *fault) {
    return k3huf_model_file_is(file, bytes, mtime)
               ? K3HUF_EXIT_OK
               : k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, archive, NULL,
                                 "was made of another state of %s than the manifest has", file->name);
}
