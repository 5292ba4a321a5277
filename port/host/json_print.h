/* json_print.h - print a JSON object on standard output. Used by every command with --json. And print a name for
 * people. */
#ifndef K3HUF_HOST_JSON_PRINT_H
#define K3HUF_HOST_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "fault.h"

/* Print `root`, and give up the caller's reference to it. NULL, or an object too large to print: K3HUF_EXIT_INTERNAL,
 * since only memory can have been short. Real numbers get 8 significant digits. */
enum k3huf_exit k3huf_json_print(json_t *root, struct k3huf_fault *fault);

/* Whether JSON, which is UTF-8, can hold a name. To be asked before anything is done: a report must not leave out what
 * it cannot name. */
bool k3huf_json_holds(const char *name, size_t size);

/* Print a name for people, with '?' for each control character in it: it may come from anywhere. */
void k3huf_print_name(FILE *to, const char *name, size_t size);

#endif
