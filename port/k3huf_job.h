/* k3huf_job.h - the job protocol: what host and firmware put into the shared window of host memory, byte by byte, and
 * accessors for it. Used by the engine and by k3huf_host. May not do I/O; PROTOCOL.md says how the two sides use it.
 *
 * All numbers are little-endian and naturally aligned in their structure; structures lie at multiples of 64.
 */
#ifndef K3HUF_JOB_H
#define K3HUF_JOB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the control block: the window's first 4096 bytes ---- */

#define K3HUF_CONTROL_BYTES 4096u
#define K3HUF_CONTROL_MAGIC 0x4A48334Bu /* the bytes "K3HJ" */
#define K3HUF_CONTROL_VERSION 1u

/* Written by the host, 64 bytes from offset 0. */
#define K3HUF_HOST_BYTES 64u
#define K3HUF_HOST_MAGIC 0u       /* u32 */
#define K3HUF_HOST_VERSION 4u     /* u32 */
#define K3HUF_HOST_WINDOW 8u      /* u64, bytes of the window as the host sees it */
#define K3HUF_HOST_SQ 16u         /* u64, offset of the submission ring, a multiple of 64 */
#define K3HUF_HOST_CQ 24u         /* u64, offset of the completion ring, a multiple of 64 */
#define K3HUF_HOST_SQ_ENTRIES 32u /* u32, 1 ... K3HUF_RING_ENTRIES_MAX */
#define K3HUF_HOST_CQ_ENTRIES 36u /* u32, 1 ... K3HUF_RING_ENTRIES_MAX */
#define K3HUF_HOST_CQ_TAKEN 40u   /* u32, completions taken in this session, modulo 2^32 */
#define K3HUF_HOST_REQUEST 44u    /* u32, K3HUF_REQUEST_... */
#define K3HUF_HOST_SESSION 48u    /* u32, 0: no host; another number than last time: a new session. Written last */
                                  /* 52 ... 63: 0 */

#define K3HUF_REQUEST_NONE 0u
#define K3HUF_REQUEST_SHUTDOWN 1u /* cancel what runs, then stop the engine */

/* Written by the firmware, 64 bytes from offset 64. */
#define K3HUF_DEVICE_AT 64u
#define K3HUF_DEVICE_BYTES 64u
#define K3HUF_DEVICE_MAGIC 0u      /* u32, as the host's */
#define K3HUF_DEVICE_VERSION 4u    /* u32 */
#define K3HUF_DEVICE_STATE 8u      /* u32, K3HUF_STATE_... */
#define K3HUF_DEVICE_STATUS 12u    /* u32, job status of the session: why it was refused or closed */
#define K3HUF_DEVICE_SESSION 16u   /* u32, the session last seen. Written after STATE and STATUS */
#define K3HUF_DEVICE_SQ_TAKEN 20u  /* u32, jobs taken in this session, modulo 2^32 */
#define K3HUF_DEVICE_HEARTBEAT 24u /* u32, changes each 100 ms or sooner, but in a reset of the drive */
#define K3HUF_DEVICE_CORES 28u     /* u32, cores that decode */
#define K3HUF_DEVICE_TICK_HZ 32u   /* u64 */
#define K3HUF_DEVICE_LBA_COUNT 40u /* u64, 0: no drive */
#define K3HUF_DEVICE_LBA_BYTES 48u /* u32 */
#define K3HUF_DEVICE_GROUP 52u     /* u32, raw bytes of the largest block this firmware decodes */
#define K3HUF_DEVICE_JOBS 56u      /* u32, jobs it takes from the ring ahead of the one that runs */
#define K3HUF_DEVICE_PROGRESS 60u  /* u32, KiB of the running job in host memory, modulo 2^32; as old as HEARTBEAT */

#define K3HUF_STATE_READY 1u    /* no session */
#define K3HUF_STATE_ATTACHED 2u /* serving the session in SESSION */
#define K3HUF_STATE_STOPPED 3u  /* the engine has ended */

#define K3HUF_RING_ENTRIES_MAX 256u

/* ---- submission ring: one job, 64 bytes ---- */

#define K3HUF_JOB_BYTES 64u
#define K3HUF_JOB_ID 0u           /* u64, the host's own */
#define K3HUF_JOB_KIND 8u         /* u32, K3HUF_KIND_... */
#define K3HUF_JOB_OPTIONS 12u     /* u32, K3HUF_OPTION_... */
#define K3HUF_JOB_LBA 16u         /* u64, first logical block of the source; for CANCEL the id to cancel */
#define K3HUF_JOB_OFFSET 24u      /* u64, the run's first byte, counted from that block's; PART, COPY: see below */
#define K3HUF_JOB_RUN_BYTES 32u   /* u64, bytes of the run on the drive; none behind them is looked at */
#define K3HUF_JOB_DESTINATION 40u /* u64, offset in the window */
#define K3HUF_JOB_DESTINATION_BYTES 48u /* u64, at least the run's raw bytes; PART, COPY: the bytes wanted */
                                        /* u32 at 56: 0 */
#define K3HUF_JOB_PART_FROM 24u         /* u64, of PART and COPY: the first byte wanted */
#define K3HUF_JOB_PART_OFFSET 56u       /* u32, of PART and COPY: the source's first byte, counted from that block's */
#define K3HUF_JOB_PHASE 60u             /* u32, bit 0: phase, others 0. Written last */

#define K3HUF_KIND_DECODE 1u /* decode a run into the destination */
#define K3HUF_KIND_LIST 2u   /* copy the image's table of contents (k3huf_image.h) into the destination, if sound */
#define K3HUF_KIND_CANCEL 3u /* end a job early; it completes as cancelled, or as whatever it came to before */
#define K3HUF_KIND_PART 4u   /* decode some of a run's raw bytes, one behind the other, into the destination */
#define K3HUF_KIND_COPY 5u   /* copy some of RUN_BYTES bytes as they are; the completion has the CRC of them all */

#define K3HUF_OPTION_TRACE 1u         /* a log line for each block group handed to a core */
#define K3HUF_OPTION_REQUIRE_INDEX 2u /* decode nothing that has no checksum; no word on a COPY */

/* ---- completion ring: 128 bytes each ---- */

#define K3HUF_COMPLETION_BYTES 128u
#define K3HUF_COMPLETION_ID 0u          /* u64, the job's */
#define K3HUF_COMPLETION_STATUS 8u      /* u32, 0, enum k3huf_status, or enum k3huf_job_status */
#define K3HUF_COMPLETION_RETRIES 12u    /* u32, reads that failed and were tried again */
#define K3HUF_COMPLETION_STRIPE 16u     /* u32, place of the first error: stripe, or 2^32 - 1 */
#define K3HUF_COMPLETION_BLOCK 20u      /* u32, block of its index, or 2^32 - 1 */
#define K3HUF_COMPLETION_OFFSET 24u     /* u64, byte offset in the run */
#define K3HUF_COMPLETION_LBA 32u        /* u64, logical block of the drive */
#define K3HUF_COMPLETION_BYTES_DONE 40u /* u64, bytes written to the destination */
#define K3HUF_COMPLETION_TICKS 48u      /* u64, from the job's start to its end */
#define K3HUF_COMPLETION_STORAGE 56u    /* u64, ticks in which reads were outstanding and no core had work */
#define K3HUF_COMPLETION_DECODE 64u     /* u64, ticks spent decoding and checking, sum over cores */
#define K3HUF_COMPLETION_WRITE 72u      /* u64, ticks spent writing to the window, sum over cores */
#define K3HUF_COMPLETION_TICK_HZ 80u    /* u64 */
#define K3HUF_COMPLETION_READS 88u      /* u32, reads submitted */
#define K3HUF_COMPLETION_GROUPS 92u     /* u32, block groups decoded */
#define K3HUF_COMPLETION_AHEAD 96u /* u64, block groups with reads outstanding, summed at the start of decoding... */
#define K3HUF_COMPLETION_AHEAD_OF 104u /* u32, ...this many groups: those after which more were left to read */
#define K3HUF_COMPLETION_CRC 108u      /* u32, of a COPY: CRC-32C of all RUN_BYTES */
#define K3HUF_COMPLETION_READ 112u     /* u64, bytes read from the drive, in whole logical blocks */
                                       /* u32 at 120: 0 */
#define K3HUF_COMPLETION_PHASE 124u    /* u32, bit 0: phase. Written last */

#define K3HUF_JOB_NOWHERE UINT32_MAX

/* ---- statuses beyond those of the core ---- */

enum k3huf_job_status {
    K3HUF_JOB_E_CONTROL = 0x100,   /* the control block is not one: magic, version, ring sizes or places */
    K3HUF_JOB_E_RING,              /* a ring's bookkeeping is impossible; the session is closed */
    K3HUF_JOB_E_COMPLETIONS,       /* the host did not take completions in time; the session is closed */
    K3HUF_JOB_E_KIND,              /* unknown kind, or reserved bytes that are not 0 */
    K3HUF_JOB_E_OPTIONS,           /* unknown options */
    K3HUF_JOB_E_SOURCE,            /* the source is not wholly on the drive */
    K3HUF_JOB_E_DESTINATION,       /* the destination is not wholly in the window */
    K3HUF_JOB_E_OVERLAP,           /* the destination overlaps control block or rings */
    K3HUF_JOB_E_DESTINATION_SMALL, /* the destination cannot hold what the source says it decodes to */
    K3HUF_JOB_E_NOT_FOUND,         /* nothing to cancel under this id */
    K3HUF_JOB_E_CANCELLED,         /* ended by CANCEL, shutdown or the session's end */
    K3HUF_JOB_E_BLOCK_SIZE,        /* blocks of the index larger than this firmware's buffers */
    K3HUF_JOB_E_NO_INDEX,          /* REQUIRE_INDEX, and a stripe has none */
    K3HUF_JOB_E_TABLE,             /* LIST found no sound table of contents */
    K3HUF_JOB_E_ABSENT,            /* there is no drive */
    K3HUF_JOB_E_READ,              /* the drive cannot read a logical block */
    K3HUF_JOB_E_READ_TIMEOUT,      /* the drive did not answer in time */
    K3HUF_JOB_E_DRIVE,             /* the drive or its controller failed in another way */
    K3HUF_JOB_E_WINDOW,            /* host memory could not be written */
    K3HUF_JOB_E_PART,              /* PART, COPY: the source has no such bytes */
    K3HUF_JOB_STATUS_END
};

/* One line of English for a status of a completion: K3HUF_OK, a status of the core, or one of the above. Static, never
 * NULL. (job_status.c) */
const char *k3huf_job_status_text(uint32_t status);

/* ---- accessors ---- */

static inline uint32_t k3huf_get32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}
static inline uint64_t k3huf_get64(const uint8_t *bytes) {
    return (uint64_t)k3huf_get32(bytes) | (uint64_t)k3huf_get32(bytes + 4) << 32;
}
static inline void k3huf_put32(uint8_t *bytes, uint32_t value) {
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    bytes[2] = (uint8_t)(value >> 16);
    bytes[3] = (uint8_t)(value >> 24);
}
static inline void k3huf_put64(uint8_t *bytes, uint64_t value) {
    k3huf_put32(bytes, (uint32_t)value);
    k3huf_put32(bytes + 4, (uint32_t)(value >> 32));
}

/* The phase bit of the `n`th entry (counted from 0 without wrapping) put into a ring of `entries`: 1 on
 * the first pass, 0 on the second, and so on. Rings start as zeros. */
static inline uint32_t k3huf_ring_phase(uint64_t n, uint32_t entries) { return n / entries % 2u == 0 ? 1u : 0u; }

struct k3huf_job {
    uint64_t id;
    uint32_t kind;
    uint32_t options;
    uint64_t lba;
    uint64_t offset;
    uint64_t run_bytes;
    uint64_t destination;
    uint64_t destination_bytes;
    uint64_t from; /* of PART and COPY; others 0 */
};

/* Whether jobs of this kind say which of the source's bytes are wanted. */
static inline int k3huf_job_is_part(uint32_t kind) { return kind == K3HUF_KIND_PART || kind == K3HUF_KIND_COPY; }

/* The offset of such a job is below 2^32: less than a logical block's bytes, as a rule. */
static inline void k3huf_job_put(uint8_t bytes[K3HUF_JOB_BYTES], const struct k3huf_job *job, uint32_t phase) {
    k3huf_put64(bytes + K3HUF_JOB_ID, job->id);
    k3huf_put32(bytes + K3HUF_JOB_KIND, job->kind);
    k3huf_put32(bytes + K3HUF_JOB_OPTIONS, job->options);
    k3huf_put64(bytes + K3HUF_JOB_LBA, job->lba);
    const int part = k3huf_job_is_part(job->kind);
    k3huf_put64(bytes + K3HUF_JOB_OFFSET, part ? job->from : job->offset);
    k3huf_put64(bytes + K3HUF_JOB_RUN_BYTES, job->run_bytes);
    k3huf_put64(bytes + K3HUF_JOB_DESTINATION, job->destination);
    k3huf_put64(bytes + K3HUF_JOB_DESTINATION_BYTES, job->destination_bytes);
    k3huf_put32(bytes + K3HUF_JOB_PART_OFFSET, part ? (uint32_t)job->offset : 0);
    k3huf_put32(bytes + K3HUF_JOB_PHASE, phase);
}
static inline void k3huf_job_get(const uint8_t bytes[K3HUF_JOB_BYTES], struct k3huf_job *job) {
    job->id = k3huf_get64(bytes + K3HUF_JOB_ID);
    job->kind = k3huf_get32(bytes + K3HUF_JOB_KIND);
    job->options = k3huf_get32(bytes + K3HUF_JOB_OPTIONS);
    job->lba = k3huf_get64(bytes + K3HUF_JOB_LBA);
    const int part = k3huf_job_is_part(job->kind);
    job->offset = part ? k3huf_get32(bytes + K3HUF_JOB_PART_OFFSET) : k3huf_get64(bytes + K3HUF_JOB_OFFSET);
    job->from = part ? k3huf_get64(bytes + K3HUF_JOB_PART_FROM) : 0;
    job->run_bytes = k3huf_get64(bytes + K3HUF_JOB_RUN_BYTES);
    job->destination = k3huf_get64(bytes + K3HUF_JOB_DESTINATION);
    job->destination_bytes = k3huf_get64(bytes + K3HUF_JOB_DESTINATION_BYTES);
}

struct k3huf_completion {
    uint64_t id;
    uint32_t status;
    uint32_t retries;
    uint32_t stripe;
    uint32_t block;
    uint64_t offset;
    uint64_t lba;
    uint64_t bytes;
    uint64_t ticks;
    uint64_t storage_ticks;
    uint64_t decode_ticks;
    uint64_t write_ticks;
    uint64_t tick_hz;
    uint32_t reads;
    uint32_t groups;
    uint64_t ahead;
    uint32_t ahead_of;
    uint32_t crc;
    uint64_t read;
};

/* All zero, nowhere. Field by field, so that no compiler asks for a memset. */
static inline void k3huf_completion_clear(struct k3huf_completion *c) {
    c->id = 0;
    c->status = 0;
    c->retries = 0;
    c->stripe = K3HUF_JOB_NOWHERE;
    c->block = K3HUF_JOB_NOWHERE;
    c->offset = 0;
    c->lba = 0;
    c->bytes = 0;
    c->ticks = 0;
    c->storage_ticks = 0;
    c->decode_ticks = 0;
    c->write_ticks = 0;
    c->tick_hz = 0;
    c->reads = 0;
    c->groups = 0;
    c->ahead = 0;
    c->ahead_of = 0;
    c->crc = 0;
    c->read = 0;
}

static inline void k3huf_completion_put(uint8_t bytes[K3HUF_COMPLETION_BYTES], const struct k3huf_completion *c,
                                        uint32_t phase) {
    k3huf_put64(bytes + K3HUF_COMPLETION_ID, c->id);
    k3huf_put32(bytes + K3HUF_COMPLETION_STATUS, c->status);
    k3huf_put32(bytes + K3HUF_COMPLETION_RETRIES, c->retries);
    k3huf_put32(bytes + K3HUF_COMPLETION_STRIPE, c->stripe);
    k3huf_put32(bytes + K3HUF_COMPLETION_BLOCK, c->block);
    k3huf_put64(bytes + K3HUF_COMPLETION_OFFSET, c->offset);
    k3huf_put64(bytes + K3HUF_COMPLETION_LBA, c->lba);
    k3huf_put64(bytes + K3HUF_COMPLETION_BYTES_DONE, c->bytes);
    k3huf_put64(bytes + K3HUF_COMPLETION_TICKS, c->ticks);
    k3huf_put64(bytes + K3HUF_COMPLETION_STORAGE, c->storage_ticks);
    k3huf_put64(bytes + K3HUF_COMPLETION_DECODE, c->decode_ticks);
    k3huf_put64(bytes + K3HUF_COMPLETION_WRITE, c->write_ticks);
    k3huf_put64(bytes + K3HUF_COMPLETION_TICK_HZ, c->tick_hz);
    k3huf_put32(bytes + K3HUF_COMPLETION_READS, c->reads);
    k3huf_put32(bytes + K3HUF_COMPLETION_GROUPS, c->groups);
    k3huf_put64(bytes + K3HUF_COMPLETION_AHEAD, c->ahead);
    k3huf_put32(bytes + K3HUF_COMPLETION_AHEAD_OF, c->ahead_of);
    k3huf_put32(bytes + K3HUF_COMPLETION_CRC, c->crc);
    k3huf_put64(bytes + K3HUF_COMPLETION_READ, c->read);
    k3huf_put32(bytes + 120, 0);
    k3huf_put32(bytes + K3HUF_COMPLETION_PHASE, phase);
}
static inline void k3huf_completion_get(const uint8_t bytes[K3HUF_COMPLETION_BYTES], struct k3huf_completion *c) {
    c->id = k3huf_get64(bytes + K3HUF_COMPLETION_ID);
    c->status = k3huf_get32(bytes + K3HUF_COMPLETION_STATUS);
    c->retries = k3huf_get32(bytes + K3HUF_COMPLETION_RETRIES);
    c->stripe = k3huf_get32(bytes + K3HUF_COMPLETION_STRIPE);
    c->block = k3huf_get32(bytes + K3HUF_COMPLETION_BLOCK);
    c->offset = k3huf_get64(bytes + K3HUF_COMPLETION_OFFSET);
    c->lba = k3huf_get64(bytes + K3HUF_COMPLETION_LBA);
    c->bytes = k3huf_get64(bytes + K3HUF_COMPLETION_BYTES_DONE);
    c->ticks = k3huf_get64(bytes + K3HUF_COMPLETION_TICKS);
    c->storage_ticks = k3huf_get64(bytes + K3HUF_COMPLETION_STORAGE);
    c->decode_ticks = k3huf_get64(bytes + K3HUF_COMPLETION_DECODE);
    c->write_ticks = k3huf_get64(bytes + K3HUF_COMPLETION_WRITE);
    c->tick_hz = k3huf_get64(bytes + K3HUF_COMPLETION_TICK_HZ);
    c->reads = k3huf_get32(bytes + K3HUF_COMPLETION_READS);
    c->groups = k3huf_get32(bytes + K3HUF_COMPLETION_GROUPS);
    c->ahead = k3huf_get64(bytes + K3HUF_COMPLETION_AHEAD);
    c->ahead_of = k3huf_get32(bytes + K3HUF_COMPLETION_AHEAD_OF);
    c->crc = k3huf_get32(bytes + K3HUF_COMPLETION_CRC);
    c->read = k3huf_get64(bytes + K3HUF_COMPLETION_READ);
}

#ifdef __cplusplus
}
#endif

#endif
