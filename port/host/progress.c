/* progress.c - see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json_print.h"

#define INTERVAL 0.1 /* seconds between two lines */
#define BAR 24u
#define NAME_SHOWN 28u

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show(struct k3huf_progress *progress, double at) {
    const double seconds = at - progress->begin;
    const double share = progress->total == 0 ? 1 : (double)progress->done / (double)progress->total;
    const double rate = seconds > 0 ? (double)progress->done / seconds : 0;
    const double left =
        rate > 0 && progress->done < progress->total ? (double)(progress->total - progress->done) / rate : 0;
    const unsigned filled = share >= 1 ? BAR : (unsigned)(share * BAR);
    const unsigned long whole = left > 359999 ? 359999 : (unsigned long)(left + 0.5);
    char bar[BAR + 1];
    memset(bar, '#', filled);
    memset(bar + filled, '.', BAR - filled);
    bar[BAR] = '\0';
    const char *slash = strrchr(progress->what, '/');
    const char *name = slash == NULL ? progress->what : slash + 1;
    (void)fputs("\r\033[K", stderr);
    k3huf_print_name(stderr, name, k3huf_text_whole(name, strnlen(name, NAME_SHOWN)));
    (void)fprintf(stderr, " [%s] %3.0f%% %7.1f MB/s %lu:%02lu:%02lu left", bar, 100 * (share > 1 ? 1 : share),
                  rate / 1e6, whole / 3600, whole / 60 % 60, whole % 60);
    (void)fflush(stderr);
    progress->shown = at;
}

void k3huf_progress_begin(struct k3huf_progress *progress, const char *what, uint64_t total, bool wanted) {
    *progress = (struct k3huf_progress){
        .on = wanted && isatty(STDERR_FILENO) == 1, .what = what, .total = total, .begin = now()};
    if (progress->on) { show(progress, progress->begin); }
}

void k3huf_progress_add(struct k3huf_progress *progress, uint64_t bytes) {
    if (progress == NULL || !progress->on) { return; }
    progress->done += bytes;
    const double at = now();
    if (at - progress->shown >= INTERVAL) { show(progress, at); }
}

void k3huf_progress_end(struct k3huf_progress *progress) {
    if (!progress->on) { return; }
    (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
    progress->on = false;
}
