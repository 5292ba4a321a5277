/* line.h - lines of text with numbers in them for the log of a platform, without a libc. Private to port/. */
#ifndef K3HUF_LINE_H
#define K3HUF_LINE_H

#include <stdint.h>

#define K3HUF_LINE_BYTES 160u

/* A line under way: what does not fit is cut off. Start with {0}. */
struct k3huf_line {
    uint32_t size;
    char text[K3HUF_LINE_BYTES]; /* ends with NUL at all times */
};

static inline void k3huf_line_text(struct k3huf_line *line, const char *text) {
    while (*text != '\0' && line->size + 1u < K3HUF_LINE_BYTES) {
        line->text[line->size++] = *text++;
    }
    line->text[line->size] = '\0';
}

static inline void k3huf_line_number(struct k3huf_line *line, uint64_t number) {
    char digits[21];
    uint32_t at = sizeof digits - 1u;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10u);
        number /= 10u;
    } while (number > 0);
    k3huf_line_text(line, digits + at);
}

#endif
