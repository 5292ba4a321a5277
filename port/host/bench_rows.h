/* bench_rows.h - what bench measures: one row for each way to decode or pack the same bytes. */
#ifndef K3HUF_HOST_BENCH_ROWS_H
#define K3HUF_HOST_BENCH_ROWS_H

#include "dispatch.h"

/* Raw bytes, and all that the rows need made of them. */
struct k3huf_bench;

struct k3huf_bench_row {
    const char *name; /* short, for JSON and for pairs */
    const char *text;
    unsigned threads;
    /* Do thread `part`'s part (0 ... threads - 1) of all the bytes once. false: failed. */
    bool (*pass)(struct k3huf_bench *bench, unsigned part);
    /* What the row has made is right. */
    bool (*check)(const struct k3huf_bench *bench);
};

extern const struct k3huf_bench_row k3huf_bench_rows[];
extern const size_t k3huf_bench_row_count;

/* How much faster one row is than another. */
struct k3huf_bench_pair {
    const char *name;
    const char *of; /* rows */
    const char *to;
    const char *text;
};

extern const struct k3huf_bench_pair k3huf_bench_pairs[];
extern const size_t k3huf_bench_pair_count;

/* Get everything ready: runs of `raw`, libzstd's frames, memory. The rows use variant `isa`. `raw` must outlive it.
 * NULL: see the fault. */
struct k3huf_bench *k3huf_bench_new(const struct k3huf_isa *isa, const uint8_t *raw, size_t raw_bytes,
                                    struct k3huf_fault *fault);
void k3huf_bench_free(struct k3huf_bench *bench);

/* Do a row `passes` times over, on its threads. false: failed. */
bool k3huf_bench_run(struct k3huf_bench *bench, const struct k3huf_bench_row *row, unsigned passes);

/* Spoil what an earlier row has made, so that a check sees this row's work alone. */
void k3huf_bench_spoil(struct k3huf_bench *bench);

/* Sizes for the record. */
struct k3huf_bench_sizes {
    size_t run;          /* without an index */
    size_t indexed;      /* with one */
    size_t coded_planes; /* of the run */
    size_t zstd;         /* libzstd's frames of the odd bytes */
};
void k3huf_bench_sizes(const struct k3huf_bench *bench, struct k3huf_bench_sizes *sizes);

/* libzstd: its version, and how it is set up to do without matches. */
const char *k3huf_bench_zstd_version(void);
extern const char k3huf_bench_zstd_setting[];

#endif
