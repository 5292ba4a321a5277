/* json_print.c - see json_print.h. */
#include "json_print.h"

#include <ctype.h>
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

bool k3huf_json_holds(const char *name, size_t size) {
    json_t *text = json_stringn(name, size);
    const bool holds = text != NULL;
    json_decref(text);
    return holds;
}

void k3huf_print_name(FILE *to, const char *name, size_t size) {
    for (size_t i = 0; i < size; i++) {
        (void)fputc(iscntrl((unsigned char)name[i]) ? '?' : name[i], to);
    }
}
