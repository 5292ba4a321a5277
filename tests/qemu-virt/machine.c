/* machine.c - an image that checks the port's platform hook by hook, with nothing of the engine in it.
 *
 *     machine drive FILE N   the drive holds what FILE does, read in many ways, up to N bytes at once; wrong reads are
 *                            refused
 *     machine bad LBA        reading this block gives K3HUF_PORT_E_MEDIA, the next block can be read
 *     machine window FILE    what the window hooks wrote and read is what FILE, the memory's backing, holds
 *     machine cores N        N cores start, wake each other, count together, and stay far from their stacks' ends
 *     machine overflow       the second core runs into its guard page
 */
#include "cores.h"
#include "k3huf_port.h"
#include "platform.h"
#include "semihost.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("machine: line %d: not so: %s\n", __LINE__, #condition);                                            \
            k3huf_virt_exit(1);                                                                                        \
        }                                                                                                              \
    } while (0)

#define BUFFERS 64u
#define BUFFER_BYTES 262144u

static struct k3huf_port port;
static uint8_t buffers[BUFFERS][BUFFER_BYTES] __attribute__((aligned(4096)));
static uint8_t expected[BUFFER_BYTES];

/* ------------------------------------------------------------------------------------------------- drive ---- */

static uint32_t lba_bytes(void) { return port.limits.lba_bytes; }

static enum k3huf_port_status submit(uint64_t lba, uint32_t blocks, uint32_t tag) {
    port.cache_invalidate(port.context, buffers[tag], BUFFER_BYTES);
    return port.storage_submit(port.context, lba, blocks, buffers[tag], tag);
}

/* Wait for one finished read, at most ten seconds. */
static struct k3huf_port_read finish(void) {
    struct k3huf_port_read done;
    uint64_t end = port.ticks(port.context) + 10u * port.limits.tick_hz;
    while (port.storage_poll(port.context, &done, 1) == 0) {
        CHECK(port.ticks(port.context) < end);
    }
    port.cache_invalidate(port.context, buffers[done.tag], BUFFER_BYTES);
    return done;
}

static void compare(int64_t file, uint64_t lba, uint32_t blocks, const uint8_t *bytes) {
    size_t size = (size_t)blocks * lba_bytes();
    CHECK(k3huf_semihost_seek(file, lba * lba_bytes()));
    CHECK(k3huf_semihost_read(file, expected, size) == (int64_t)size);
    CHECK(memcmp(expected, bytes, size) == 0);
}

static void read_one(int64_t file, uint64_t lba, uint32_t blocks, uint32_t tag) {
    memset(buffers[tag], 0x5a, BUFFER_BYTES);
    CHECK(submit(lba, blocks, tag) == K3HUF_PORT_OK);
    struct k3huf_port_read done = finish();
    CHECK(done.tag == tag && done.status == K3HUF_PORT_OK);
    compare(file, lba, blocks, buffers[tag]);
    for (size_t i = (size_t)blocks * lba_bytes(); i < BUFFER_BYTES; ++i) {
        CHECK(buffers[tag][i] == 0x5a);
    }
}

/* All tags at once, of different sizes and places; then each must come back once. */
static void read_full_queue(int64_t file, bool with_reset) {
    uint32_t depth = port.limits.queue_depth < BUFFERS ? port.limits.queue_depth : BUFFERS;
    uint64_t last = port.limits.lba_count - 16u;
    for (uint32_t tag = 0; tag < depth; ++tag) {
        CHECK(submit((tag * UINT64_C(977)) % last, 1u + tag % 4u, tag) == K3HUF_PORT_OK);
    }
    if (with_reset) {
        CHECK(port.storage_reset(port.context) == K3HUF_PORT_OK);
        struct k3huf_port_read none;
        CHECK(port.storage_poll(port.context, &none, 1) == 0);
        return;
    }
    bool seen[BUFFERS] = {false};
    for (uint32_t i = 0; i < depth; ++i) {
        struct k3huf_port_read done = finish();
        CHECK(done.status == K3HUF_PORT_OK && done.tag < depth && !seen[done.tag]);
        seen[done.tag] = true;
        compare(file, (done.tag * UINT64_C(977)) % last, 1u + done.tag % 4u, buffers[done.tag]);
    }
}

static void test_drive(const char *name, uint32_t transfer) {
    int64_t file = k3huf_semihost_open(name, SEMIHOST_READ_BINARY);
    CHECK(file >= 0);
    CHECK(port.limits.lba_count * lba_bytes() == (uint64_t)k3huf_semihost_length(file));
    CHECK(port.limits.max_transfer_bytes == transfer);
    CHECK(port.limits.queue_depth > 1);
    uint64_t count = port.limits.lba_count;
    uint32_t most = port.limits.max_transfer_bytes / lba_bytes();

    /* One page, two, three, a whole list: each way to describe a buffer. */
    read_one(file, 0, 1, 0);
    read_one(file, 1, 8192u / lba_bytes(), 1);
    read_one(file, 3, 12288u / lba_bytes(), 2);
    read_one(file, 5, 8192u / lba_bytes() + 1u, 3);
    read_one(file, 7, most, port.limits.queue_depth - 1u);
    read_one(file, count - 1u, 1, 4);
    /* A buffer that begins inside a page: in each of the three ways as well. */
    for (uint32_t bytes = lba_bytes(); bytes <= transfer && bytes <= BUFFER_BYTES / 2u; bytes *= 2u) {
        for (uint32_t skip = 4; skip < 8192u; skip += 1020u) {
            memset(buffers[5], 0x5a, BUFFER_BYTES);
            port.cache_invalidate(port.context, buffers[5], BUFFER_BYTES);
            CHECK(port.storage_submit(port.context, 9, bytes / lba_bytes(), buffers[5] + skip, 5) == K3HUF_PORT_OK);
            CHECK(finish().status == K3HUF_PORT_OK);
            compare(file, 9, bytes / lba_bytes(), buffers[5] + skip);
            CHECK(buffers[5][skip - 1u] == 0x5a && buffers[5][skip + bytes] == 0x5a);
        }
    }
    /* Around both queues more than once, so that the phase tag changes. */
    for (uint32_t i = 0; i < 300u; ++i) {
        read_one(file, i % count, 1u + i % 3u, i % port.limits.queue_depth);
    }
    read_full_queue(file, false);
    read_full_queue(file, true);
    read_full_queue(file, false);

    CHECK(submit(0, 0, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(submit(0, most + 1u, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(submit(count, 1, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(submit(count - 1u, 2, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(submit(UINT64_MAX, 1, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.storage_submit(port.context, 0, 1, buffers[0], port.limits.queue_depth) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.storage_submit(port.context, 0, 1, buffers[0] + 2, 0) == K3HUF_PORT_E_ARGUMENT);
    read_one(file, 0, most, 0);
    CHECK(k3huf_platform_stop() == K3HUF_PORT_OK);
    CHECK(submit(0, 1, 0) == K3HUF_PORT_E_ABSENT);
    /* A reset brings it back. */
    CHECK(port.storage_reset(port.context) == K3HUF_PORT_OK);
    read_one(file, 2, most, 1);
}

static void test_bad(uint64_t lba) {
    for (uint32_t i = 0; i < 2; ++i) {
        CHECK(submit(lba, 1, 0) == K3HUF_PORT_OK);
        CHECK(finish().status == K3HUF_PORT_E_MEDIA);
        CHECK(submit(lba - 1u, 3, 1) == K3HUF_PORT_OK);
        CHECK(finish().status == K3HUF_PORT_E_MEDIA);
        CHECK(submit(lba + 1u, 1, 2) == K3HUF_PORT_OK);
        CHECK(finish().status == K3HUF_PORT_OK);
    }
}

static void test_absent(void) {
    CHECK(port.limits.lba_count == 0);
    CHECK(submit(0, 1, 0) == K3HUF_PORT_E_ABSENT);
    CHECK(port.storage_reset(port.context) == K3HUF_PORT_E_ABSENT);
    CHECK(k3huf_platform_stop() == K3HUF_PORT_OK);
}

/* ------------------------------------------------------------------------------------------------- window ---- */

/* Write spans of many alignments and lengths, and look at the whole span and what surrounds it in the file. */
static void test_window(const char *name) {
    static uint8_t model[4096], seen[4096];
    int64_t file = k3huf_semihost_open(name, SEMIHOST_READ_BINARY);
    CHECK(file >= 0);
    uint64_t length = (uint64_t)k3huf_semihost_length(file);
    CHECK(port.limits.window_bytes == length);
    for (uint64_t at = 0; at + sizeof model <= length; at += length - sizeof model) {
        CHECK(k3huf_semihost_seek(file, at) && k3huf_semihost_read(file, model, sizeof model) == sizeof model);
        for (uint32_t i = 0; i < 400u; ++i) {
            uint32_t begin = (i * 37u) % 700u;
            uint32_t size = (i * 53u) % 800u;
            memset(expected, (int)i, BUFFER_BYTES);
            expected[i % 7u] ^= 0xffu;
            memcpy(model + begin, expected + i % 5u, size);
            CHECK(port.window_write(port.context, 0, at + begin, expected + i % 5u, size) == K3HUF_PORT_OK);
            CHECK(port.window_flush(port.context, 0) == K3HUF_PORT_OK);
            CHECK(k3huf_semihost_seek(file, at) && k3huf_semihost_read(file, seen, sizeof seen) == sizeof seen);
            CHECK(memcmp(seen, model, sizeof seen) == 0);
            memset(seen, 0, sizeof seen);
            CHECK(port.window_read(port.context, at + begin, seen + i % 3u, size) == K3HUF_PORT_OK);
            CHECK(memcmp(seen + i % 3u, model + begin, size) == 0);
        }
    }
    CHECK(port.window_write(port.context, 0, length - 1u, model, 2) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.window_write(port.context, 0, length + 1u, model, 0) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.window_write(port.context, 0, UINT64_MAX, model, 2) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.window_read(port.context, length, seen, 1) == K3HUF_PORT_E_ARGUMENT);
    CHECK(port.window_write(port.context, 0, length, model, 0) == K3HUF_PORT_OK);
}

/* -------------------------------------------------------------------------------------------------- cores ---- */

#define TURNS 30u

static struct {
    atomic_uint turn; /* number of the core that may add next, times nothing: turn % cores */
    atomic_uint together;
    uint32_t cores;
} shared;

/* Cores take turns, each waiting for the one before; and count together without turns. */
static void take_turns(void *argument, uint32_t core) {
    CHECK(argument == &shared);
    for (uint32_t i = 0; i < TURNS; ++i) {
        atomic_fetch_add(&shared.together, 1u);
        while (atomic_load(&shared.turn) != i * shared.cores + core) {
            port.wait(port.context, core);
        }
        atomic_fetch_add(&shared.turn, 1u);
        port.signal(port.context);
    }
}

static void test_cores(uint32_t cores) {
    CHECK(port.limits.core_count == cores);
    shared.cores = cores;
    for (uint32_t core = 1; core < cores; ++core) {
        CHECK(port.core_start(port.context, core, take_turns, &shared) == K3HUF_PORT_OK);
    }
    CHECK(port.core_start(port.context, cores, take_turns, &shared) == K3HUF_PORT_E_CORE);
    take_turns(&shared, 0);
    CHECK(k3huf_cores_end());
    CHECK(atomic_load(&shared.turn) == TURNS * cores);
    CHECK(atomic_load(&shared.together) == TURNS * cores);
    for (uint32_t core = 0; core < cores; ++core) {
        uint32_t used = k3huf_core_stack_used(core);
        printf("stack of core %" PRIu32 ": %" PRIu32 " of %" PRIu32 " bytes used\n", core, used,
               k3huf_core_stack_bytes(core));
        CHECK(used > 0 && used < k3huf_core_stack_bytes(core) / 2u);
    }
}

static volatile uint32_t depth;

/* 256 bytes or more at a time, never a tail call. */
static uint32_t deeper(uint32_t n) { // NOLINT(misc-no-recursion): overflowing the stack is what it is for
    volatile uint8_t frame[256];
    frame[n % sizeof frame] = (uint8_t)n;
    depth = n;
    return n == UINT32_MAX ? 0 : deeper(n + 1u) + frame[n % sizeof frame];
}

static void overflow(void *argument, uint32_t core) {
    (void)argument;
    depth = deeper(core);
}

static void test_overflow(void) {
    CHECK(port.core_start(port.context, 1, overflow, NULL) == K3HUF_PORT_OK);
    (void)k3huf_cores_end();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const char *argument = argc > 2 ? argv[2] : "";
    CHECK(k3huf_platform_start(&port, VIRT_CORES));
    if (strcmp(what, "drive") == 0) {
        test_drive(argument, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
    } else if (strcmp(what, "bad") == 0) {
        test_bad(strtoul(argument, NULL, 10));
    } else if (strcmp(what, "absent") == 0) {
        test_absent();
    } else if (strcmp(what, "window") == 0) {
        test_window(argument);
    } else if (strcmp(what, "cores") == 0) {
        test_cores((uint32_t)strtoul(argument, NULL, 10));
    } else if (strcmp(what, "overflow") == 0) {
        test_overflow();
    } else {
        return 2;
    }
    printf("machine: %s is as it should be\n", what);
    return 0;
}
