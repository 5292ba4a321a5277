/* timing.h - the clock of bench and plan, and what they say about repeated measurements. */
#ifndef K3HUF_HOST_TIMING_H
#define K3HUF_HOST_TIMING_H

#include <stddef.h>

/* Seconds of a clock that only goes forward, from an unknown start. */
double k3huf_timing_now(void);

/* Seconds that the threads of this program have run, all added up. */
double k3huf_timing_cpu(void);

struct k3huf_spread {
    double median;
    double least;
    double most;
};

/* Of `n` samples, 1 or more, which it sorts. */
struct k3huf_spread k3huf_timing_spread(double *sample, size_t n);

#endif
