/* json_print.c - see json_print.h. */
#include "json_print.h"

#include <stdio.h>
#include <stdlib.h>

enum k3huf_exit k3huf_json_print(json_t *root, struct k3huf_fault *fault) {
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(8));
    json_decref(root);
    if (text == NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "out of memory for JSON output");
    }
    printf("%s\n", text);
    free(text);
    return K3HUF_EXIT_OK;
}
