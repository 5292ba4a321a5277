/* archive_list.h - what is in an archive, for people and for programs. Used by inspect and list. */
#ifndef K3HUF_HOST_ARCHIVE_LIST_H
#define K3HUF_HOST_ARCHIVE_LIST_H

#include "archive_file.h"

/* Print tensors, one a line (`tensors`), entries (`entries`), and totals by family of name (`families`); with `json`
 * all of it as one JSON object. Only the table of contents is read. */
struct k3huf_list_options {
    bool json;
    bool tensors;
    bool entries;
    bool families;
};
enum k3huf_exit k3huf_archive_print(const struct k3huf_archive *archive, const struct k3huf_list_options *options,
                                    struct k3huf_fault *fault);

/* The same of every archive that the manifest of a directory names, each below its name; with `json` one object each.
 * K3HUF_EXIT_IO where there is no manifest, or one of them is not there. */
enum k3huf_exit k3huf_archive_print_directory(const char *directory, const struct k3huf_list_options *options,
                                              struct k3huf_fault *fault);

#endif
