/* json_print.h - print a JSON object on standard output, used by every command with --json; and print a name for
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

/* A string of any bytes: '?' for each that is no part of a character of UTF-8, which JSON cannot carry. NULL only where
 * memory was short. */
json_t *k3huf_json_text(const char *text);

/* Append `value` to `list`, and give up the caller's reference to it: none of a report's parts may be left out.
 * K3HUF_EXIT_INTERNAL where either is NULL. */
enum k3huf_exit k3huf_json_append(json_t *list, json_t *value, struct k3huf_fault *fault);

#endif
