/* timing.c - see timing.h. */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

static double read_clock(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double k3huf_timing_now(void) { return read_clock(CLOCK_MONOTONIC); }
double k3huf_timing_cpu(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct k3huf_spread k3huf_timing_spread(double *sample, size_t n) {
    qsort(sample, n, sizeof *sample, by_value);
    return (struct k3huf_spread){(sample[n / 2] + sample[(n - 1) / 2]) / 2.0, sample[0], sample[n - 1]};
}
