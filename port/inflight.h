/* inflight.h - the in-flight engine: runs go from storage through the decoder into host memory, block group by block
 * group, as jobs in a shared window ask for it (k3huf_job.h). Freestanding C11 over a struct k3huf_port.
 *
 * All memory is inside struct k3huf_inflight, which the caller places (static, as a rule); its size is set by the
 * constants below, which a build may define otherwise.
 */
#ifndef K3HUF_INFLIGHT_H
#define K3HUF_INFLIGHT_H

#include <stdatomic.h>

#include "jobs.h"
#include "k3huf.h"
#include "reads.h"

/* Cores that decode, core 0 included. More of the platform's are not used. */
#ifndef K3HUF_INFLIGHT_CORES
#define K3HUF_INFLIGHT_CORES 4u
#endif
/* Block groups between the start of their reads and host memory: the ring. Four for each core: one being decoded, one
 * that waits for core 0 while that decodes itself, two being read. */
#ifndef K3HUF_INFLIGHT_SLOTS
#define K3HUF_INFLIGHT_SLOTS 16u
#endif
/* Raw bytes of a block group; larger blocks are refused. A multiple of 8 KiB up to 2 MiB. A block of the default size
 * for each of the core's lanes: with fewer, or a few more, lanes run empty (six lanes: 6.5 GB/s a core with six
 * blocks, 3.8 with four, 4.5 with eight, on the machine where this was measured). */
#ifndef K3HUF_INFLIGHT_GROUP_BYTES
#define K3HUF_INFLIGHT_GROUP_BYTES (K3HUF_LANES * (2u << K3HUF_BLOCK_LOG2_DEFAULT))
#endif

#define K3HUF_INFLIGHT_ALIGN 4096u
#define K3HUF_INFLIGHT_ROUND(BYTES)                                                                                    \
    (((BYTES) + K3HUF_INFLIGHT_ALIGN - 1u) / K3HUF_INFLIGHT_ALIGN * K3HUF_INFLIGHT_ALIGN)
/* Symbols of a group, the bytes their codes can take (one more where they begin inside a byte, one for the clamp of a
 * block's end), and buffers for both planes: a logical block more, as neither end need be at the border of one. */
#define K3HUF_INFLIGHT_SYMBOLS (K3HUF_INFLIGHT_GROUP_BYTES / 2u)
#define K3HUF_INFLIGHT_CODED_SPAN (K3HUF_INFLIGHT_SYMBOLS / 8u * K3HUF_CODE_LENGTH_MAX + 2u)
#define K3HUF_INFLIGHT_CODED_BYTES (K3HUF_INFLIGHT_ROUND(K3HUF_INFLIGHT_CODED_SPAN) + K3HUF_INFLIGHT_ALIGN)
#define K3HUF_INFLIGHT_RAW_BYTES (K3HUF_INFLIGHT_ROUND(K3HUF_INFLIGHT_SYMBOLS + 1u) + K3HUF_INFLIGHT_ALIGN)
#define K3HUF_INFLIGHT_GROUP_BLOCKS (K3HUF_INFLIGHT_SYMBOLS >> K3HUF_BLOCK_LOG2_MIN)
/* The largest index, that of a stripe of 64 MiB with the smallest blocks. */
#define K3HUF_INFLIGHT_INDEX_SPAN                                                                                      \
    (K3HUF_INDEX_HEADER_BYTES + (K3HUF_STRIPE_RAW_MAX / 2u >> K3HUF_BLOCK_LOG2_MIN) * K3HUF_INDEX_ENTRY_BYTES)
#define K3HUF_INFLIGHT_INDEX_BYTES (K3HUF_INFLIGHT_ROUND(K3HUF_INFLIGHT_INDEX_SPAN) + K3HUF_INFLIGHT_ALIGN)

_Static_assert(K3HUF_INFLIGHT_GROUP_BYTES % (2u << K3HUF_BLOCK_LOG2_MIN) == 0 &&
                   K3HUF_INFLIGHT_GROUP_BYTES >= 2u << K3HUF_BLOCK_LOG2_MIN &&
                   K3HUF_INFLIGHT_GROUP_BYTES <= 2u << K3HUF_BLOCK_LOG2_MAX,
               "a group holds whole blocks of the smallest size, at least one");
/* Entries of the work ring: a power of two, as its counters wrap. */
#define K3HUF_INFLIGHT_WORK 32u
_Static_assert(K3HUF_INFLIGHT_SLOTS >= 1u && K3HUF_INFLIGHT_SLOTS <= 28u, "the slots fit work ring and read queue");
_Static_assert(2u * K3HUF_INFLIGHT_SLOTS + 4u <= K3HUF_READS_SPANS, "every span of the engine fits the read queue");

struct k3huf_inflight_config {
    uint32_t read_attempts;   /* times a read is tried, at least 1 */
    uint32_t read_timeout_ms; /* before a read that is not answered costs a reset */
    uint32_t
        host_timeout_ms; /* before a host that takes no completions, or a window that takes no bytes, is given up */
    uint32_t poll_us;    /* how often the window is looked at while a job runs */
};

#define K3HUF_INFLIGHT_DEFAULTS                                                                                        \
    { .read_attempts = 4, .read_timeout_ms = 5000, .host_timeout_ms = 10000, .poll_us = 100 }

/* Where and why a job failed; the one nearest to the run's beginning counts. */
struct k3huf_failure {
    uint32_t status; /* 0: none */
    uint32_t stripe, block;
    uint64_t offset; /* in the run */
    uint64_t lba;
};

enum k3huf_group_state {
    K3HUF_GROUP_FREE,    /* core 0's */
    K3HUF_GROUP_READING, /* core 0's, its spans under way */
    K3HUF_GROUP_READY,   /* in the work ring, then of the core that took it */
    K3HUF_GROUP_FINISHED /* core 0's again, with results */
};

/* A slot of the ring: some consecutive blocks of a stripe. For a stripe without index, a chunk of each plane. */
struct k3huf_group {
    _Alignas(K3HUF_INFLIGHT_ALIGN) uint8_t coded_buffer[K3HUF_INFLIGHT_CODED_BYTES];
    _Alignas(K3HUF_INFLIGHT_ALIGN) uint8_t raw_buffer[K3HUF_INFLIGHT_RAW_BYTES];
    atomic_uint state;
    uint32_t stage;
    uint32_t first_block, blocks;
    struct k3huf_read_span coded, raw;
    bool steady;    /* more groups were left to read when its reads were started */
    uint32_t ahead; /* groups being read when decoding began */
    uint32_t status, bad_block, bad_bit;
    uint32_t bytes; /* written to host memory */
    uint32_t core;
    uint64_t decode_ticks, write_ticks;
};

enum k3huf_stage_state {
    K3HUF_STAGE_UNUSED,
    K3HUF_STAGE_HEADER, /* its header is being read */
    K3HUF_STAGE_INDEX,  /* its filler's beginning is being read */
    K3HUF_STAGE_INDEXED,
    K3HUF_STAGE_PLAIN,  /* no index: one lane, on core 0 */
    K3HUF_STAGE_COPY,   /* no stripe at all: bytes that are copied, on core 0 */
    K3HUF_STAGE_PASSED, /* a PART lies before or behind it: its header is all that is looked at */
    K3HUF_STAGE_FAILED
};

/* A stripe, from the reading of its header until its last group is done. Two of them: one whose groups are being read
 * and decoded, one that is being opened. */
struct k3huf_stage {
    _Alignas(K3HUF_INFLIGHT_ALIGN) uint8_t buffer[K3HUF_INFLIGHT_INDEX_BYTES];
    enum k3huf_stage_state state;
    uint32_t number;
    uint64_t offset;     /* of its header, in the run */
    uint64_t raw_before; /* raw bytes of the stripes before it */
    struct k3huf_read_span span;
    struct k3huf_stripe_header header;
    struct k3huf_index index;
    uint32_t next_block; /* the first whose reads are not started */
    uint32_t end_block;  /* one past the last that is wanted */
    uint32_t groups;     /* started and not done */
    struct k3huf_failure failure;
};

/* What a core has for itself. */
struct k3huf_core {
    _Alignas(K3HUF_INFLIGHT_ALIGN) uint8_t out[K3HUF_INFLIGHT_ROUND(K3HUF_INFLIGHT_GROUP_BYTES + 1u)];
    struct k3huf_workspace workspace;
    struct k3huf_block block[K3HUF_INFLIGHT_GROUP_BLOCKS];
};

/* A stripe without index under way, or bytes that are copied: then `coded` is what there is. Chunk n of a plane is in
 * slot n modulo the number of slots. */
struct k3huf_plain {
    struct k3huf_decoder decoder;
    bool begun;
    struct k3huf_plain_plane {
        uint64_t next, end;  /* the run's bytes not yet asked for */
        uint32_t head, tail; /* chunks used up, chunks asked for */
    } coded, raw;
    uint64_t produced; /* raw bytes of the stripe in host memory */
};

enum k3huf_job_phase { K3HUF_PHASE_IDLE, K3HUF_PHASE_LIST_HEAD, K3HUF_PHASE_LIST, K3HUF_PHASE_HEADER, K3HUF_PHASE_RUN };

struct k3huf_inflight {
    const struct k3huf_port *port;
    uint32_t cores; /* in use */
    atomic_uint stop;
    atomic_uint running; /* secondary cores in their loop */

    /* The work ring: slots that are ready. Core 0 puts in, every core takes out. */
    atomic_uint work_head, work_tail;
    atomic_uint work[K3HUF_INFLIGHT_WORK];
    atomic_uint reading; /* groups whose reads are outstanding */

    uint64_t window_timeout, poll_period, polled_at;
    struct k3huf_jobs jobs;
    struct k3huf_reads reads;

    /* The running job; core 0's, but for what cores read while they hold a group of it. */
    struct k3huf_record *record;
    enum k3huf_job_phase phase;
    bool ending; /* failed or cancelled: nothing new is begun */
    struct k3huf_failure failure;
    uint64_t base; /* byte of the drive where the run begins */
    struct k3huf_run_header run;
    struct k3huf_table table;
    uint64_t from, to;              /* the raw bytes of the run that the job wants */
    uint32_t stripes;               /* of the run; 0: none of them is needed */
    uint32_t open_next, issue_next; /* stripes */
    uint64_t open_offset, open_raw;
    uint64_t began, starved_at;
    bool starved;                   /* no work for any core, reads outstanding */
    struct k3huf_completion *tally; /* the record's */
    struct k3huf_plain plain;

    struct k3huf_stage stage[2];
    struct k3huf_group group[K3HUF_INFLIGHT_SLOTS];
    struct k3huf_core core[K3HUF_INFLIGHT_CORES];
};

/* Bytes of the ring alone. */
#define K3HUF_INFLIGHT_RING_BYTES (K3HUF_INFLIGHT_SLOTS * sizeof(struct k3huf_group))

/* Prepare the engine and start the secondary cores. K3HUF_PORT_E_ARGUMENT: limits the engine cannot work with.
 * `engine` and `port` must live until k3huf_inflight_finish() returned. */
enum k3huf_port_status k3huf_inflight_start(struct k3huf_inflight *engine, const struct k3huf_port *port,
                                            const struct k3huf_inflight_config *config);

enum k3huf_inflight_step { K3HUF_STEP_IDLE, K3HUF_STEP_BUSY, K3HUF_STEP_STOPPED };

/* One bounded piece of core 0's work. IDLE: there was nothing to do. STOPPED: a shutdown was asked for and is done. */
enum k3huf_inflight_step k3huf_inflight_step(struct k3huf_inflight *engine);

/* Let the secondary cores return, and wait for them; false: one did not within the host time-out. */
bool k3huf_inflight_finish(struct k3huf_inflight *engine);

/* All of it: start, step until the host asks for a shutdown, finish. For core 0 of a firmware. */
enum k3huf_port_status k3huf_inflight_run(struct k3huf_inflight *engine, const struct k3huf_port *port,
                                          const struct k3huf_inflight_config *config);

#endif
