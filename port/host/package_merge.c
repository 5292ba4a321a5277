/* package_merge.c - optimal length-limited code lengths by package-merge (package_merge.h).
 *
 * For every code length from the limit up to 1 there is a list of items in order of weight: a leaf for each symbol, and
 * packages, each of two neighbours of the list before it. The cheapest 2n - 2 items of the last list hold the optimal
 * code: a symbol's length is how often its leaf occurs in them, packages opened. Leaves enter every list in the same
 * order, so it is enough to remember which items of a list are leaves: of k items taken from a list with p packages
 * among them, the first k - p symbols each get one more bit, and 2p items are taken from the list before.
 */
#include "package_merge.h"

#include <stdlib.h>
#include <string.h>

struct leaf {
    uint64_t weight;
    uint8_t symbol;
};

static int by_weight(const void *a, const void *b) {
    const struct leaf *x = a;
    const struct leaf *y = b;
    if (x->weight != y->weight) { return x->weight < y->weight ? -1 : 1; }
    return (int)x->symbol - (int)y->symbol;
}

static uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

enum k3huf_status k3huf_code_lengths(const uint64_t histogram[K3HUF_SYMBOLS], unsigned limit,
                                     uint8_t codelen[K3HUF_SYMBOLS]) {
    struct leaf leaf[K3HUF_SYMBOLS];
    size_t n = 0;
    memset(codelen, 0, K3HUF_SYMBOLS);
    for (unsigned symbol = 0; symbol < K3HUF_SYMBOLS; symbol++) {
        if (histogram[symbol] != 0) { leaf[n++] = (struct leaf){histogram[symbol], (uint8_t)symbol}; }
    }
    if (limit < 1 || limit > K3HUF_CODE_LENGTH_MAX || n > (size_t)1 << limit) { return K3HUF_E_ARGUMENT; }
    if (n <= 1) {
        if (n == 1) { codelen[leaf[0].symbol] = 1; }
        return K3HUF_OK;
    }
    qsort(leaf, n, sizeof leaf[0], by_weight);

    /* A list has at most n leaves and n - 1 packages. */
    bool is_leaf[K3HUF_CODE_LENGTH_MAX][2 * K3HUF_SYMBOLS];
    uint64_t weight[2][2 * K3HUF_SYMBOLS];
    size_t size = 0; /* of the list before: none before the first, so that one holds the leaves alone */
    for (unsigned list = 0; list < limit; list++) {
        const uint64_t *before = weight[(list + 1) % 2];
        uint64_t *now = weight[list % 2];
        size_t leaves = 0;
        size_t packages = 0;
        size_t items = 0;
        while (leaves < n || packages < size / 2) {
            bool take_leaf = leaves < n;
            uint64_t package = 0;
            if (packages < size / 2) {
                package = add(before[2 * packages], before[2 * packages + 1]);
                take_leaf = take_leaf && leaf[leaves].weight <= package;
            }
            now[items] = take_leaf ? leaf[leaves++].weight : package;
            packages += !take_leaf;
            is_leaf[list][items++] = take_leaf;
        }
        size = items;
    }

    size_t taken = 2 * n - 2;
    for (unsigned list = limit; list-- > 0 && taken > 0;) {
        size_t leaves = 0;
        for (size_t item = 0; item < taken; item++) {
            leaves += is_leaf[list][item];
        }
        for (size_t i = 0; i < leaves; i++) {
            codelen[leaf[i].symbol]++;
        }
        taken = 2 * (taken - leaves);
    }
    return K3HUF_OK;
}
