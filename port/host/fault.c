/* fault.c - put a fault into words (fault.h). May not print or exit. */
#include "fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
