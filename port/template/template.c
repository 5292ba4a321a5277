/* template.c - where a port starts: every hook of k3huf_port.h, each answering "not provided". Copy this folder, give
 * it a start-up and a linker script (linker/qemu-virt.ld is one with comments), and replace hook after hook in the
 * order of port/PORTING.md. Needs no C library.
 *
 * Each stub leaves its name in `missing`, so that a debugger on the target shows how far the engine came.
 */
#include "template.h"

#include "inflight.h"

static enum k3huf_port_status not_provided(void *context, const char *hook) {
    struct k3huf_template *const platform = context;
    platform->missing = hook;
    return K3HUF_PORT_E_NOT_PROVIDED;
}

/* ---- storage */

static enum k3huf_port_status storage_submit(void *context, uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag) {
    (void)lba;
    (void)blocks;
    (void)buffer;
    (void)tag;
    return not_provided(context, "storage_submit");
}

static uint32_t storage_poll(void *context, struct k3huf_port_read *done, uint32_t max) {
    (void)done;
    (void)max;
    (void)not_provided(context, "storage_poll");
    return 0;
}

static enum k3huf_port_status storage_reset(void *context) { return not_provided(context, "storage_reset"); }

/* ---- caches */

static void cache_clean(void *context, const void *address, size_t size) {
    (void)address;
    (void)size;
    (void)not_provided(context, "cache_clean");
}

static void cache_invalidate(void *context, void *address, size_t size) {
    (void)address;
    (void)size;
    (void)not_provided(context, "cache_invalidate");
}

/* ---- the window of host memory */

static enum k3huf_port_status window_read(void *context, uint64_t offset, void *to, size_t size) {
    (void)offset;
    (void)to;
    (void)size;
    return not_provided(context, "window_read");
}

static enum k3huf_port_status window_write(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    (void)core;
    (void)offset;
    (void)from;
    (void)size;
    return not_provided(context, "window_write");
}

static enum k3huf_port_status window_flush(void *context, uint32_t core) {
    (void)core;
    return not_provided(context, "window_flush");
}

/* ---- cores */

static enum k3huf_port_status core_start(void *context, uint32_t core, k3huf_port_entry *entry, void *argument) {
    (void)core;
    (void)entry;
    (void)argument;
    return not_provided(context, "core_start");
}

static void wait_core(void *context, uint32_t core) {
    (void)core;
    (void)not_provided(context, "wait");
}

static void signal_cores(void *context) { (void)not_provided(context, "signal"); }

/* ---- time and text */

static uint64_t ticks(void *context) {
    (void)not_provided(context, "ticks");
    return 0;
}

static void log_line(void *context, const char *line) {
    (void)line;
    (void)not_provided(context, "log");
}

/* ---- all of it */

void k3huf_template_init(struct k3huf_template *platform) {
    static const struct k3huf_port hooks = {
        .storage_submit = storage_submit,
        .storage_poll = storage_poll,
        .storage_reset = storage_reset,
        .cache_clean = cache_clean,
        .cache_invalidate = cache_invalidate,
        .window_read = window_read,
        .window_write = window_write,
        .window_flush = window_flush,
        .core_start = core_start,
        .wait = wait_core,
        .signal = signal_cores,
        .ticks = ticks,
        .log = log_line,
        /* No limits yet: the engine refuses to start with K3HUF_PORT_E_ARGUMENT until they are filled in. */
    };
    platform->missing = NULL;
    platform->port = hooks;
    platform->port.context = platform;
}

enum k3huf_port_status k3huf_template_main(void) {
    static struct k3huf_template platform;
    static struct k3huf_inflight engine;
    static const struct k3huf_inflight_config config = K3HUF_INFLIGHT_DEFAULTS;
    k3huf_template_init(&platform);
    return k3huf_inflight_run(&engine, &platform.port, &config);
}
