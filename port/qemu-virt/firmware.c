/* firmware.c - the product's image: the in-flight engine on this board's drive, cores and window of host memory.
 *
 *     k3huf_firmware [CORES [READ_TIMEOUT]]
 *
 * Serves the host's jobs on CORES cores (all that the port has stacks for, if not given) until the host asks for a
 * shutdown. A read that takes longer than READ_TIMEOUT milliseconds costs the drive a reset. The version first, one
 * line a job, a summary in the end. Exit code 0 after an orderly shutdown; 1 if a part did not start or did not stop; 2
 * for wrong arguments. Knows nothing of devices: platform.c does.
 */
#include "cores.h"
#include "inflight.h"
#include "platform.h"
#include "version.h"

#include <inttypes.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE 2

#define READ_TIMEOUT_MAX 60000u /* ms */

static struct k3huf_port port;
static struct k3huf_inflight engine;

static struct {
    uint64_t jobs, failed, bytes, ticks, storage_ticks, decode_ticks, write_ticks, reads, retries, ahead, ahead_of;
} total;

static void print_job(const struct k3huf_completion *job) {
    printf("job %" PRIu64 ": %s", job->id, job->status == 0 ? "done" : k3huf_job_status_text(job->status));
    if (job->stripe != K3HUF_JOB_NOWHERE) { printf(", stripe %" PRIu32, job->stripe); }
    if (job->block != K3HUF_JOB_NOWHERE) { printf(", block %" PRIu32, job->block); }
    if (job->status != 0) { printf(", offset %" PRIu64 ", LBA %" PRIu64, job->offset, job->lba); }
    printf(", %" PRIu64 " bytes, %" PRIu64 " ticks, %" PRIu32 " reads, %" PRIu32 " retries\n", job->bytes, job->ticks,
           job->reads, job->retries);
}

static void count_job(const struct k3huf_completion *job) {
    ++total.jobs;
    total.failed += job->status != 0 ? 1u : 0u;
    total.bytes += job->bytes;
    total.ticks += job->ticks;
    total.storage_ticks += job->storage_ticks;
    total.decode_ticks += job->decode_ticks;
    total.write_ticks += job->write_ticks;
    total.reads += job->reads;
    total.retries += job->retries;
    total.ahead += job->ahead;
    total.ahead_of += job->ahead_of;
}

/* Step until the host's shutdown; a job that a step ends leaves its completion in its record. */
static void serve(void) {
    enum k3huf_inflight_step step = K3HUF_STEP_BUSY;
    while (step != K3HUF_STEP_STOPPED) {
        const struct k3huf_record *running = engine.record;
        step = k3huf_inflight_step(&engine);
        if (running != NULL && engine.record != running) {
            print_job(&running->completion);
            count_job(&running->completion);
        }
        if (step == K3HUF_STEP_IDLE) { port.wait(port.context, 0); }
    }
}

static void print_summary(void) {
    printf("jobs: %" PRIu64 ", failed %" PRIu64 ", %" PRIu64 " bytes in %" PRIu64 " ticks of %" PRIu64 " Hz\n",
           total.jobs, total.failed, total.bytes, total.ticks, port.limits.tick_hz);
    printf("ticks: waiting for storage %" PRIu64 ", decoding %" PRIu64 ", writing %" PRIu64 "\n", total.storage_ticks,
           total.decode_ticks, total.write_ticks);
    printf("reads: %" PRIu64 ", tried again %" PRIu64 ", block groups ahead %" PRIu64 " in %" PRIu64 "\n", total.reads,
           total.retries, total.ahead, total.ahead_of);
    for (uint32_t core = 0; core < engine.cores; ++core) {
        printf("stack of core %" PRIu32 ": %" PRIu32 " of %" PRIu32 " bytes used\n", core, k3huf_core_stack_used(core),
               k3huf_core_stack_bytes(core));
    }
}

/* The ring's share of the engine's memory, as an absolute symbol of the image for port/qemu-virt/size-table. */
static void state_ring_bytes(void) {
    __asm__ volatile(".globl k3huf_ring_bytes\n\t.set k3huf_ring_bytes, %c0" : : "i"(K3HUF_INFLIGHT_RING_BYTES));
}

/* A decimal number from 1 to `most`. */
static bool parse(const char *text, uint32_t most, uint32_t *value) {
    *value = 0;
    while (*text >= '0' && *text <= '9' && *value <= most) {
        *value = *value * 10u + (uint32_t)(*text++ - '0');
    }
    return *text == '\0' && *value >= 1u && *value <= most;
}

int main(int argc, char **argv) {
    struct k3huf_inflight_config config = K3HUF_INFLIGHT_DEFAULTS;
    uint32_t cores = VIRT_CORES;
    state_ring_bytes();
    if (argc > 3 || (argc > 1 && !parse(argv[1], VIRT_CORES, &cores)) ||
        (argc > 2 && !parse(argv[2], READ_TIMEOUT_MAX, &config.read_timeout_ms))) {
        printf("usage: k3huf_firmware [CORES [READ_TIMEOUT]]\n");
        return EXIT_USAGE;
    }
    printf("k3huf_firmware %s\n", k3huf_version);
    if (!k3huf_platform_start(&port, cores)) { return EXIT_FAILED; }
    enum k3huf_port_status status = k3huf_inflight_start(&engine, &port, &config);
    if (status != K3HUF_PORT_OK) {
        printf("firmware: the engine does not start: %s\n", k3huf_port_status_text(status));
        return EXIT_FAILED;
    }
    serve();
    bool ended = k3huf_inflight_finish(&engine) && k3huf_cores_end();
    status = k3huf_platform_stop();
    print_summary();
    if (!ended || status != K3HUF_PORT_OK) {
        printf("firmware: %s\n", ended ? k3huf_port_status_text(status) : "a core does not end");
        return EXIT_FAILED;
    }
    return 0;
}
