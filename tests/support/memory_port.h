/* memory_port.h - a platform in memory for tests of the in-flight engine: one core, virtual time, every run the same.
 * Holds the engine to its contract in k3huf_port.h and says in `fault` how it broke it.
 *
 * Nothing is coherent here: what a read delivers shows in the buffer only by cache_invalidate() after it was reported,
 * and the window takes bytes from a buffer only at window_flush(), so that a forgotten call gives wrong bytes.
 */
#ifndef K3HUF_TEST_MEMORY_PORT_H
#define K3HUF_TEST_MEMORY_PORT_H

#include "k3huf_job.h"
#include "k3huf_port.h"
#include "rng.h"

#ifndef K3HUF_MEMORY_READS
#define K3HUF_MEMORY_READS 1024u
#endif
#define K3HUF_MEMORY_FAULTS 4u
#define K3HUF_MEMORY_FOR_EVER UINT32_MAX

enum k3huf_memory_order { K3HUF_ORDER_FIRST, K3HUF_ORDER_LAST, K3HUF_ORDER_RANDOM };

struct k3huf_memory_fault {
    uint64_t lba, count;
    uint32_t times;
    enum k3huf_port_status status; /* K3HUF_PORT_BUSY: never answered */
};

struct k3huf_memory_read {
    bool used;
    bool reported; /* and not yet invalidated */
    bool hangs;
    uint64_t lba, order, due; /* due: the time at which it is there */
    uint32_t blocks, tag;
    uint8_t *buffer;
    enum k3huf_port_status status;
};

struct k3huf_memory {
    struct k3huf_port port; /* limits may be changed before the engine starts */
    const uint8_t *drive;
    uint8_t *window;
    uint64_t window_size;

    /* What the test wants. */
    enum k3huf_memory_order order;
    uint32_t polls;             /* calls of storage_poll() for each read that comes back, at least 1 */
    uint32_t read_ns, write_ns; /* that the drive, one read after the other, and the window take for a KiB */
    struct k3huf_memory_fault read_fault[K3HUF_MEMORY_FAULTS];
    bool reset_fails;
    uint32_t window_busy; /* calls of window_write() that are refused first */
    bool window_fails;    /* window writes over 4096 bytes fail */
    uint64_t tick_step;   /* that ticks() moves on */

    /* What became of it. */
    const char *fault;
    char last_line[160];
    uint32_t lines, resets, most_outstanding, submitted;

    struct k3huf_rng rng;
    uint64_t time, order_next, drive_free_at;
    uint32_t outstanding, poll_count;
    uint32_t hanging; /* of the outstanding */
    struct k3huf_memory_read read[K3HUF_MEMORY_READS];
    struct {
        uint64_t offset;
        const uint8_t *from;
        size_t size;
    } pending; /* a window write before its flush */
    const uint8_t *clean;
    size_t clean_size;
};

/* A drive of `lba_count` blocks at `drive`, a window of `window_size` bytes at `window` (4-byte aligned). */
void k3huf_memory_init(struct k3huf_memory *memory, const uint8_t *drive, uint32_t lba_bytes, uint64_t lba_count,
                       uint8_t *window, uint64_t window_size);

/* ---- the host's side of the protocol */

struct k3huf_memory_host {
    struct k3huf_memory *memory;
    uint32_t session;
    uint64_t sq, cq;
    uint32_t sq_entries, cq_entries;
    uint64_t put, taken;
};

/* Clear control block and rings, and ask for a new session. */
void k3huf_memory_attach(struct k3huf_memory_host *host, uint64_t sq, uint32_t sq_entries, uint64_t cq,
                         uint32_t cq_entries);
void k3huf_memory_submit(struct k3huf_memory_host *host, const struct k3huf_job *job);
/* The next completion, if there is one. */
bool k3huf_memory_complete(struct k3huf_memory_host *host, struct k3huf_completion *completion);
uint32_t k3huf_memory_device(const struct k3huf_memory_host *host, uint32_t field);

#endif
