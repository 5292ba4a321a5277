/* json_print.c - see json_print.h. */
#include "json_print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static enum k3huf_exit no_memory(struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "out of memory for JSON output");
}

enum k3huf_exit k3huf_json_print(json_t *root, struct k3huf_fault *fault) {
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(8));
    json_decref(root);
    if (text == NULL) { return no_memory(fault); }
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

/* Bytes of the character that `text` begins with; 0: none. The library says what is one. */
static size_t character(const char *text) {
    for (size_t size = 1; size <= 4 && text[size - 1] != '\0'; size++) {
        json_t *one = json_stringn(text, size);
        json_decref(one);
        if (one != NULL) { return size; }
    }
    return 0;
}

json_t *k3huf_json_text(const char *text) {
    json_t *whole = json_string(text);
    char *copy = whole == NULL ? malloc(strlen(text) + 1) : NULL;
    if (copy == NULL) { return whole; }
    memcpy(copy, text, strlen(text) + 1);
    for (char *at = copy; *at != '\0';) {
        const size_t size = character(at);
        if (size == 0) { *at = '?'; }
        at += size == 0 ? 1 : size;
    }
    whole = json_string(copy);
    free(copy);
    return whole;
}

enum k3huf_exit k3huf_json_append(json_t *list, json_t *value, struct k3huf_fault *fault) {
    return json_array_append_new(list, value) == 0 ? K3HUF_EXIT_OK : no_memory(fault);
}
