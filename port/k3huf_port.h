/* k3huf_port.h - all that the in-flight engine (inflight.c) asks of a platform. A port fills in one struct k3huf_port
 * and calls k3huf_inflight_run() with it on core 0; it changes nothing else. This file holds declarations only.
 *
 * Cores are numbered 0 ... core_count - 1. Core 0 runs the engine's control loop and decodes as well; every other core
 * only decodes. So the storage hooks, window_read and core_start are called on core 0 alone; window_write,
 * window_flush, cache_clean, wait, signal and ticks are called on every core, at the same time.
 *
 * Memory model. The engine's own memory is Normal, Inner Shareable, Write-Back Cacheable on every core: cores hand work
 * to each other with C11 <stdatomic.h> alone, whose exclusives need such memory. The window may be anything
 * (Device-nGnRE, Normal Non-cacheable, behind a DMA engine): it is only touched by the window hooks. Storage writes
 * buffers behind the caches' back: the engine calls the cache hooks where a non-coherent device needs them. Where
 * devices snoop the caches, those hooks may do nothing.
 *
 * No hook may call into the engine, allocate, or block longer than it says here.
 */
#ifndef K3HUF_PORT_H
#define K3HUF_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum k3huf_port_status {
    K3HUF_PORT_OK = 0,
    K3HUF_PORT_BUSY,           /* not now: the engine asks again after other work; not an error */
    K3HUF_PORT_E_NOT_PROVIDED, /* the platform has no such part (port/template) */
    K3HUF_PORT_E_ARGUMENT,     /* a size, address or number the hook's declaration forbids */
    K3HUF_PORT_E_ABSENT,       /* no drive, or it is gone */
    K3HUF_PORT_E_MEDIA,        /* the drive could not read these blocks; reading again may help */
    K3HUF_PORT_E_DEVICE,       /* the drive or its controller failed in another way */
    K3HUF_PORT_E_TIMEOUT,      /* a device did not answer in its time */
    K3HUF_PORT_E_WINDOW,       /* host memory did not take or give the bytes */
    K3HUF_PORT_E_CORE,         /* a core that does not start */
    K3HUF_PORT_STATUS_COUNT
};

/* One line of English for a status, static, never NULL; lower case, no full stop. (port_status.c) */
const char *k3huf_port_status_text(enum k3huf_port_status status);

/* What the platform can do, as data. Filled in before the engine starts and constant from then on. */
struct k3huf_port_limits {
    uint32_t lba_bytes;          /* size of a logical block: 512, 1024, 2048 or 4096 */
    uint64_t lba_count;          /* logical blocks of the drive; 0: no drive, and every job is answered so */
    uint32_t max_transfer_bytes; /* the most one read may ask for; a multiple of lba_bytes */
    uint32_t buffer_align;       /* alignment of a read's buffer in bytes; lba_bytes is a multiple of it */
    uint32_t queue_depth;        /* reads that may be outstanding at a time, at least 1 */
    uint32_t core_count;         /* cores the engine may use, core 0 included, at least 1 */
    uint64_t window_bytes;       /* size of the window of host memory */
    uint64_t tick_hz;            /* ticks() per second, at least 1000 */
};

/* What became of a read. */
struct k3huf_port_read {
    uint32_t tag; /* as submitted */
    enum k3huf_port_status status;
};

/* What a secondary core is to run; it returns when the engine shuts down. */
typedef void k3huf_port_entry(void *argument, uint32_t core);

struct k3huf_port {
    void *context; /* the platform's own; the first argument of every hook */
    struct k3huf_port_limits limits;

    /* ---- storage; core 0 only ---- */

    /* Start reading `blocks` (at least 1, at most max_transfer_bytes / lba_bytes) logical blocks from `lba` on into
     * `buffer`, which is aligned to buffer_align. `tag` is below queue_depth and not in use by another outstanding
     * read, so that it may serve as the device's own command number. The engine leaves the buffer alone until the read
     * is reported by storage_poll() or storage_reset() was called. OK: it is under way. BUSY: the queue is full,
     * nothing was started. Anything else: it cannot be started; storage_poll() will not report it. Must not wait for
     * the device. */
    enum k3huf_port_status (*storage_submit)(void *context, uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag);

    /* Fetch up to `max` finished reads, in any order, each once; the number is returned. With a read reported OK all
     * of its bytes are in memory (a load after this call sees them once cache_invalidate() was called on them). Must
     * not wait. */
    uint32_t (*storage_poll)(void *context, struct k3huf_port_read *done, uint32_t max);

    /* A read was not reported in its time. Stop all outstanding reads for good (reset the controller and bring it up
     * again): after the call no buffer is written and no earlier tag is reported, whatever is returned. OK: reads can
     * be submitted again. May take as long as the device's specification allows a reset to take. */
    enum k3huf_port_status (*storage_reset)(void *context);

    /* ---- caches; any core ---- */

    /* Write back [address, address + size) so that a device that reads memory sees what this core stored. */
    void (*cache_clean)(void *context, const void *address, size_t size);

    /* Clean and drop [address, address + size) from the caches. Called before a read is submitted (so that no dirty
     * line is evicted over what the device writes) and after it is reported (so that lines fetched in between by
     * speculation are not used). Buffers begin and end on 4096-byte boundaries, so no line is shared. */
    void (*cache_invalidate)(void *context, void *address, size_t size);

    /* ---- the window of host memory; offsets and sizes are in bytes and inside window_bytes ---- */

    /* Copy from the window; core 0 only. An aligned read of 4 bytes is one access. Reads are done in the order of the
     * calls, and before window writes of later calls on this core. */
    enum k3huf_port_status (*window_read)(void *context, uint64_t offset, void *to, size_t size);

    /* Copy into the window; any core, never two cores to the same bytes at a time. An aligned write of 4 bytes is one
     * access; `from` and `size` have any alignment. It may still be under way when the call returns (a DMA engine): the
     * engine keeps `from` unchanged until window_flush() on the same core, and has called cache_clean() on it. BUSY:
     * nothing was started. */
    enum k3huf_port_status (*window_write)(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size);

    /* Wait until all window writes of this core are where the host sees them, before any write this core, or a core
     * it hands over to afterwards, makes. May wait for the DMA engine, with a time-out of its own. */
    enum k3huf_port_status (*window_flush)(void *context, uint32_t core);

    /* ---- cores ---- */

    /* Let core `core` (1 ... core_count - 1) run entry(argument, core) on a stack of its own, with memory as above
     * (MMU and caches on). Core 0 only; once for each core. A core that does not start is left out, and the engine
     * says so in a log line. */
    enum k3huf_port_status (*core_start)(void *context, uint32_t core, k3huf_port_entry *entry, void *argument);

    /* Nothing to do on core `core`: pause. Returns when signal() was called since this core's last wait() returned, at
     * the latest after about a millisecond, and may return at any time. (Armv8: WFE with the event stream on.) On core
     * 0 a finished read should end it, or the platform returns soon. */
    void (*wait)(void *context, uint32_t core);

    /* End the wait of all cores; what this core stored before is visible to a core that returns from wait() because
     * of it. (Armv8: DSB ISH, SEV.) */
    void (*signal)(void *context);

    /* ---- time and text ---- */

    /* Monotonic time in ticks, the same clock on every core. */
    uint64_t (*ticks)(void *context);

    /* Put out one line of text without line end; core 0 only. May drop it. */
    void (*log)(void *context, const char *line);
};

#ifdef __cplusplus
}
#endif

#endif
