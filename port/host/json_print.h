/* json_print.h - print a JSON object on standard output. Used by every command with --json. */
#ifndef K3HUF_HOST_JSON_PRINT_H
#define K3HUF_HOST_JSON_PRINT_H

#include <jansson.h>

#include "fault.h"

/* Print `root`, and give up the caller's reference to it. NULL, or an object too large to print: K3HUF_EXIT_INTERNAL,
 * since only memory can have been short. Real numbers get 8 significant digits. */
enum k3huf_exit k3huf_json_print(json_t *root, struct k3huf_fault *fault);

#endif
