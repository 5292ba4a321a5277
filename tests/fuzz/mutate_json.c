/* mutate_json.c - JSON text for fuzz targets (mutate.h). Knows where numbers, strings and members are, not what they
 * mean. */
#include "mutate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

#define TOKENS_MAX 600u

/* A number, a string with its quotes, or one of { } [ ] : , by itself. */
struct token {
    size_t at, size;
};

static size_t scan(const uint8_t *data, size_t size, struct token tokens[TOKENS_MAX]) {
    size_t n = 0;
    for (size_t at = 0; at < size && n < TOKENS_MAX;) {
        size_t end = at + 1;
        if (data[at] == '"') {
            while (end < size && data[end] != '"') {
                end += data[end] == '\\' ? 2u : 1u;
            }
            end = end < size ? end + 1 : size;
        } else if (strchr("0123456789-", data[at]) != NULL && data[at] != 0) {
            while (end < size && data[end] != 0 && strchr("0123456789+-.eE", data[end]) != NULL) {
                end++;
            }
        }
        if (data[at] > ' ') { tokens[n++] = (struct token){at, end - at}; }
        at = end;
    }
    return n;
}

/* Put `n` bytes in the place of `remove` ones. `with` may lie in `data`. Nothing happens where there is no room. */
static size_t splice(uint8_t *data, size_t size, size_t max_size, struct token remove, const void *with, size_t n) {
    static uint8_t kept[4096];
    if (n > sizeof kept || size - remove.size + n > max_size) { return size; }
    if (n > 0) { memcpy(kept, with, n); }
    memmove(data + remove.at + n, data + remove.at + remove.size, size - remove.at - remove.size);
    if (n > 0) { memcpy(data + remove.at, kept, n); }
    return size - remove.size + n;
}

static bool is_number(const uint8_t *data, const struct token *token) {
    return (data[token->at] >= '0' && data[token->at] <= '9') || data[token->at] == '-';
}

static size_t change_number(struct k3huf_rng *rng, uint8_t *data, size_t size, size_t max_size, struct token token) {
    char text[32];
    uint64_t value = 0;
    for (size_t i = 0; i < token.size; i++) {
        value = value * 10u + (uint64_t)(data[token.at + i] & 15u);
    }
    const char *format = "%" PRIu64;
    switch (k3huf_rng_below(rng, 12)) {
    case 0: format = "-%" PRIu64; break;
    case 1: format = "%" PRIu64 "e2"; break;
    case 2: format = "%" PRIu64 ".5"; break;
    case 3: format = "\"%" PRIu64 "\""; break;
    case 4: value = value / 4096u * 4096u + 4096u; break;
    case 5: value *= 2; break;
    default: value = k3huf_fuzz_other(rng, value); break;
    }
    if (k3huf_rng_below(rng, 3) != 0) { value &= INT64_MAX; /* what the parser's integers hold */ }
    const int n = snprintf(text, sizeof text, format, value);
    return splice(data, size, max_size, token, text, (size_t)n);
}

/* The member or element that begins at token `i`: up to the next comma or end of what it is in. */
static struct token member(const uint8_t *data, const struct token *tokens, size_t n, size_t i) {
    const size_t begin = tokens[i].at;
    size_t end = begin + tokens[i].size;
    for (unsigned depth = 0; i < n; i++) {
        const uint8_t c = data[tokens[i].at];
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) { break; }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        end = tokens[i].at + tokens[i].size;
    }
    return (struct token){begin, end - begin};
}

static size_t change_once(struct k3huf_rng *rng, uint8_t *data, size_t size, size_t max_size) {
    static const char *const oddities[] = {
        "null",        "true",        "[]", "{}", "\"\"",  "\"\\u0000\"", "\"..\"", "[[[[",
        "\"\\ud800\"", "\"a/b\"",     "0",  "-0", "1E400", "{\"a\":",     ",",      "\"__metadata__\"",
        "}",           "\"\\u00e4\"", " "};
    static struct token tokens[TOKENS_MAX];
    const size_t n = scan(data, size, tokens);
    if (n == 0) { return size; }
    size_t i = k3huf_rng_below(rng, (uint32_t)n);
    const uint32_t what = k3huf_rng_below(rng, 10);
    if (what < 4) { /* the next number from here on */
        for (size_t k = 0; k < n; k++, i = (i + 1) % n) {
            if (is_number(data, &tokens[i])) { return change_number(rng, data, size, max_size, tokens[i]); }
        }
    }
    const size_t other = k3huf_rng_below(rng, (uint32_t)n);
    switch (what) {
    case 4: /* a token becomes another, of its own kind if there is one */
        for (size_t k = 0; k < n; k++) {
            const struct token *const from = &tokens[(other + k) % n];
            if (data[from->at] == data[tokens[i].at] && from != &tokens[i]) {
                return splice(data, size, max_size, tokens[i], data + from->at, from->size);
            }
        }
        return size;
    case 5: { /* a member comes once more */
        const struct token from = member(data, tokens, n, i);
        const struct token to = {tokens[i].at, 0};
        size = splice(data, size, max_size, to, ",", 1);
        return splice(data, size, max_size, to, data + from.at + 1, from.size);
    }
    case 6: { /* a member goes, and a comma with it */
        struct token gone = member(data, tokens, n, i);
        if (gone.at + gone.size < size && data[gone.at + gone.size] == ',') { gone.size++; }
        return splice(data, size, max_size, gone, NULL, 0);
    }
    case 7: {
        const char *const text = oddities[k3huf_rng_below(rng, sizeof oddities / sizeof oddities[0])];
        const struct token to = {tokens[i].at, k3huf_rng_below(rng, 3) == 0 ? 0 : tokens[i].size};
        return splice(data, size, max_size, to, text, strlen(text));
    }
    case 8: /* a member becomes another */ {
        const struct token from = member(data, tokens, n, other);
        return splice(data, size, max_size, member(data, tokens, n, i), data + from.at, from.size);
    }
    default:
        if (tokens[i].size > 2) { /* a letter of a string */
            data[tokens[i].at + 1 + k3huf_rng_below(rng, (uint32_t)tokens[i].size - 2u)] ^=
                (uint8_t)(1u << k3huf_rng_below(rng, 7));
        }
        return size;
    }
}

size_t k3huf_fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed, const char *const *texts,
                              size_t n) {
    struct k3huf_rng rng = {seed};
    if (size < 8 || k3huf_rng_below(&rng, 40) == 0) {
        const char *const text = texts[k3huf_rng_below(&rng, (uint32_t)n)];
        if (strlen(text) <= max_size) {
            size = strlen(text);
            memcpy(data, text, size);
        }
    }
    if (k3huf_rng_below(&rng, 6) == 0) { return LLVMFuzzerMutate(data, size, max_size); }
    for (uint32_t i = 1u + k3huf_rng_below(&rng, 3); i > 0; i--) {
        size = change_once(&rng, data, size, max_size);
    }
    return size;
}
