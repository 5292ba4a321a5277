/* fault.c - put a fault into words (fault.h). May not print or exit. */
#include "fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t k3huf_text_whole(const char *text, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const unsigned char c = (unsigned char)text[size - back];
        if (c >= 0xC0u) { return back < (c >= 0xF0u ? 4u : c >= 0xE0u ? 3u : 2u) ? size - back : size; }
        if (c < 0x80u) { break; }
    }
    return size;
}

/* Append to the text; what does not fit is cut. */
static void append(struct k3huf_fault *fault, const char *format, va_list arguments) {
    size_t used = strlen(fault->text);
    (void)vsnprintf(fault->text + used, sizeof fault->text - used, format, arguments);
}

static void say(struct k3huf_fault *fault, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(fault, format, arguments);
    va_end(arguments);
}

enum k3huf_exit k3huf_fault_set(struct k3huf_fault *fault, enum k3huf_exit code, const char *file,
                                const struct k3huf_place *place, const char *format, ...) {
    fault->code = code;
    fault->text[0] = '\0';
    if (file != NULL) { say(fault, "%s: ", file); }
    if (place != NULL) {
        if (place->stripe == K3HUF_NO_STRIPE) {
            say(fault, "run header, ");
        } else {
            say(fault, "stripe %" PRIu32 ", ", place->stripe);
        }
        if (place->block != K3HUF_NO_BLOCK) { say(fault, "block %" PRIu32 ", ", place->block); }
        say(fault, "offset %" PRIu64 ": ", place->offset);
    }
    va_list arguments;
    va_start(arguments, format);
    append(fault, format, arguments);
    va_end(arguments);
    if (strlen(fault->text) == sizeof fault->text - 1) { /* maybe cut */
        fault->text[k3huf_text_whole(fault->text, sizeof fault->text - 1)] = '\0';
    }
    for (char *c = fault->text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20u || *c == 0x7f) { *c = '?'; }
    }
    return code;
}

enum k3huf_exit k3huf_fault_errno(struct k3huf_fault *fault, const char *file, const char *what) {
    int number = errno;
    return k3huf_fault_set(fault, K3HUF_EXIT_IO, file, NULL, "%s: %s", what, strerror(number));
}

enum k3huf_exit k3huf_fault_memory(struct k3huf_fault *fault, uint64_t bytes) {
    return k3huf_fault_set(fault, K3HUF_EXIT_INTERNAL, NULL, NULL, "out of memory (%" PRIu64 " bytes asked for)",
                           bytes);
}
