/* model_dir.h - directories: which files of a model belong together, and the manifest of those packed of it.
 *
 * A model is a directory with model.safetensors.index.json and the shards that it names, or with .safetensors files and
 * no index, or a packed trunk, trunk.bin and trunk.json. Other files are counted, no more.
 */
#ifndef K3HUF_HOST_MODEL_DIR_H
#define K3HUF_HOST_MODEL_DIR_H

#include "fault.h"

#define K3HUF_MANIFEST_NAME "k3huf-manifest.json"
#define K3HUF_ARCHIVE_SUFFIX ".k3a"

struct k3huf_model_file {
    char *name; /* malloc'ed; a plain file name */
    uint64_t bytes;
    int64_t mtime; /* nanoseconds since 1970 */
};

struct k3huf_model {
    struct k3huf_model_file *file; /* malloc'ed, sorted by name */
    uint32_t n;
    uint32_t others; /* other files in the directory, as k3huf_model_read() found it */
    bool trunk;
    bool indexed; /* an index named the files; as k3huf_model_read() found it */
};

/* Look into a directory. K3HUF_EXIT_CORRUPT: an index that names a file that is not there, or anything but plain file
 * names, a file and the name of its archive, or the manifest; K3HUF_EXIT_IO: no model, or it cannot be read. Free in
 * any case. */
enum k3huf_exit k3huf_model_read(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault);
void k3huf_model_free(struct k3huf_model *model);

/* The file of that name; NULL: the model has none. */
const struct k3huf_model_file *k3huf_model_find(const struct k3huf_model *model, const char *name);

/* K3HUF_EXIT_IO where an archive's name or the manifest's in `directory` is that of a file of another kind, one that
 * does not begin as an archive does, or holds no manifest: it is somebody's, and not to be replaced. */
enum k3huf_exit k3huf_model_keep_others(const char *directory, const struct k3huf_model *model,
                                        struct k3huf_fault *fault);

/* Write the manifest of `model` into `directory`, unless it is there with the same contents. */
enum k3huf_exit k3huf_manifest_write(const char *directory, const struct k3huf_model *model, struct k3huf_fault *fault);

/* Read it back. K3HUF_EXIT_IO where there is none, K3HUF_EXIT_CORRUPT where it is not sound. Free in any case. */
enum k3huf_exit k3huf_manifest_read(const char *directory, struct k3huf_model *model, struct k3huf_fault *fault);

/* Whether a file is in that state, its time as k3huf_nanoseconds() has it; and K3HUF_EXIT_MISMATCH where `archive`,
 * which was made of a file in that state, is not of the state that the manifest has. */
bool k3huf_model_file_is(const struct k3huf_model_file *file, uint64_t bytes, int64_t mtime);
enum k3huf_exit k3huf_manifest_check(const struct k3huf_model_file *file, const char *archive, uint64_t bytes,
                                     int64_t mtime, struct k3huf_fault *fault);

/* Whether something of that name is a directory; false also where there is nothing. */
bool k3huf_is_directory(const char *name);

/* "DIRECTORY/NAME" and, unless it is NULL, `suffix`; malloc'ed. NULL: out of memory; the fault says so. */
char *k3huf_path(const char *directory, const char *name, const char *suffix, struct k3huf_fault *fault);

#endif
