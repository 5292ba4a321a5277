/* test_file_order.c - files are read in order, whatever the number of threads, and each plane of a run by a descriptor
 * of its own, which the system's reading ahead depends on; what is written is on its way to the disk soon.
 *
 * The system's calls are watched: the linker wraps them (CMakeLists.txt). */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "decode_run.h"
#include "pack.h"
#include "rng.h"

#define IN "test_file_order.in"
#define OUT "test_file_order.out"
#define BYTES ((size_t)9 << 20)
#define STRIPE ((uint32_t)4 << 20)
#define CALLS_MAX 4096u

struct call {
    int fd;
    uint64_t offset;
    uint64_t size;
};

struct calls {
    bool watched;
    unsigned n;
    struct call call[CALLS_MAX];
};

static struct calls reads;
static struct calls syncs;
static uint8_t bytes[BYTES];

static void watch(struct calls *calls) {
    calls->n = 0;
    calls->watched = true;
}

static void record(struct calls *calls, int fd, off_t offset, size_t size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&lock);
    if (calls->watched && calls->n < CALLS_MAX) { calls->call[calls->n++] = (struct call){fd, (uint64_t)offset, size}; }
    (void)pthread_mutex_unlock(&lock);
}

ssize_t __real_pread64(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t offset);
int __real_sync_file_range(int fd, off_t offset, off_t size, unsigned flags);
int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags);

ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t offset) {
    record(&reads, fd, offset, size);
    return __real_pread64(fd, buffer, size, offset);
}

int __wrap_sync_file_range(int fd, off_t offset, off_t size, unsigned flags) {
    record(&syncs, fd, offset, (size_t)size);
    return __real_sync_file_range(fd, offset, size, flags);
}

static int enter(void **state) {
    static char folder[] = "test_file_order-XXXXXX";
    struct k3huf_rng rng = {1};
    (void)state;
    k3huf_rng_fill(&rng, bytes, BYTES);
    for (size_t i = 1; i < BYTES; i += 2) {
        bytes[i] &= 15u;
    }
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) { return -1; }
    const int fd = open(IN, O_WRONLY | O_CREAT | O_EXCL, 0666);
    return fd >= 0 && write(fd, bytes, BYTES) == (ssize_t)BYTES ? close(fd) : -1;
}

static int leave(void **state) {
    char folder[4096];
    (void)state;
    (void)unlink(IN);
    (void)unlink(OUT);
    return getcwd(folder, sizeof folder) != NULL && chdir("..") == 0 ? rmdir(folder) : -1;
}

static void pack_in(unsigned threads) {
    struct k3huf_input input;
    struct k3huf_fault fault;
    struct k3huf_pack_result result;
    const struct k3huf_encode_options options = {.stripe_bytes = STRIPE,
                                                 .max_code_length = K3HUF_CODE_LENGTH_MAX,
                                                 .block_log2 = K3HUF_BLOCK_LOG2_DEFAULT,
                                                 .threads = threads};
    assert_int_equal(k3huf_input_open(&input, IN, &fault), K3HUF_EXIT_OK);
    assert_int_equal(k3huf_pack_run(&input, OUT, true, &options, &result, &fault), K3HUF_EXIT_OK);
    assert_int_equal(result.raw_bytes, BYTES);
    k3huf_input_close(&input);
}

/* The file is read from its first byte to its last, `passes` times. */
static void in_order(const struct calls *calls, int fd, unsigned passes, uint64_t size) {
    uint64_t at = 0;
    unsigned done = 0;
    for (unsigned i = 0; i < calls->n; i++) {
        const struct call *call = &calls->call[i];
        if (call->fd == fd) {
            assert_int_equal(call->offset, at);
            at += call->size;
            if (at >= size) {
                at = 0;
                done++;
            }
        }
    }
    assert_int_equal(at, 0);
    assert_int_equal(done, passes);
}

static void pack_reads_in_order(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        watch(&reads);
        pack_in(threads);
        reads.watched = false;
        /* The source is the first to be opened and read: to count, to encode. */
        in_order(&reads, reads.call[0].fd, 2, BYTES);
    }
}

struct taken {
    uint64_t bytes;
};

static enum k3huf_exit take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    struct taken *taken = context;
    (void)fault;
    assert_int_equal(piece->offset, taken->bytes);
    assert_memory_equal(piece->data, bytes + piece->offset, piece->size);
    taken->bytes += piece->size;
    return K3HUF_EXIT_OK;
}

static void decode(unsigned threads) {
    struct k3huf_input input;
    struct k3huf_fault fault;
    struct taken taken = {0};
    const struct k3huf_decoding how = {.threads = threads, .require_index = true};
    assert_int_equal(k3huf_input_open(&input, OUT, &fault), K3HUF_EXIT_OK);
    assert_int_equal(k3huf_decode_run(&input, how, take, &taken, NULL, &fault), K3HUF_EXIT_OK);
    assert_int_equal(taken.bytes, BYTES);
    k3huf_input_close(&input);
}

/* Headers and indexes are read where they are; what is larger is planes. */
static void planes_are_read_in_order(void **state) {
    (void)state;
    pack_in(1);
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        uint64_t end[2] = {0, 0};
        uint64_t planes = 0;
        int fd[2] = {-1, -1};
        watch(&reads);
        decode(threads);
        reads.watched = false;
        for (unsigned i = 0; i < reads.n; i++) {
            const struct call *call = &reads.call[i];
            if (call->size < (size_t)16 << 10) { continue; }
            const unsigned plane = fd[0] == -1 || fd[0] == call->fd ? 0 : 1;
            fd[plane] = call->fd;
            /* A block's codes begin in the byte where those before end. */
            assert_true(call->offset + 1 >= end[plane]);
            end[plane] = call->offset + call->size;
            planes += call->size;
        }
        assert_true(fd[1] != -1);
        assert_true(planes >= BYTES / 2 + BYTES / 4); /* the codes of 16 even odds take 4 bits or more */
    }
}

/* Where no descriptor is to be had, one serves both planes. */
static void one_descriptor_does(void **state) {
    (void)state;
    pack_in(1);
    struct rlimit before;
    struct k3huf_input input;
    struct k3huf_input again;
    struct k3huf_fault fault;
    struct taken taken = {0};
    const struct k3huf_decoding how = {.threads = 2, .require_index = true};
    assert_int_equal(k3huf_input_open(&input, OUT, &fault), K3HUF_EXIT_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {(rlim_t)input.fd + 1, before.rlim_max};
    k3huf_input_again(&again, &input);
    assert_int_not_equal(again.fd, input.fd);
    k3huf_input_close(&again);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    k3huf_input_again(&again, &input);
    const enum k3huf_exit code = k3huf_decode_run(&input, how, take, &taken, NULL, &fault);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, K3HUF_EXIT_OK);
    assert_int_equal(taken.bytes, BYTES);
    assert_int_equal(again.fd, input.fd);
    k3huf_input_close(&again);
    size_t got = 0;
    uint8_t magic[4];
    assert_int_equal(k3huf_input_read_at(&input, 0, magic, 4, &got, &fault), K3HUF_EXIT_OK);
    assert_int_equal(got, 4);
    k3huf_input_close(&input);
}

/* A stream that is held in memory stays so: its descriptor is not opened again, which would read on. */
static void memory_is_not_opened(void **state) {
    (void)state;
    const struct k3huf_input of = {.name = "memory", .fd = 0, .seekable = true, .size = BYTES, .memory = bytes};
    struct k3huf_input again;
    struct k3huf_fault fault;
    uint8_t got_bytes[16];
    size_t got = 0;
    k3huf_input_again(&again, &of);
    assert_int_equal(again.fd, 0);
    assert_false(again.owns_fd);
    assert_int_equal(k3huf_input_read_at(&again, 100, got_bytes, 16, &got, &fault), K3HUF_EXIT_OK);
    assert_int_equal(got, 16);
    assert_memory_equal(got_bytes, bytes + 100, 16);
    k3huf_input_close(&again);
}

/* Bytes are on their way to the disk in steps of few MiB, whether they come one behind the other or at several places,
 * and all but the last few of them: what is left for the end is little. */
static void writing_goes_on_behind(void **state) {
    (void)state;
    struct k3huf_output output;
    struct k3huf_fault fault;
    const size_t piece = (size_t)256 << 10;
    watch(&syncs);
    assert_int_equal(k3huf_output_open(&output, OUT, true, &fault), K3HUF_EXIT_OK);
    for (size_t at = 0; at < BYTES; at += piece) {
        assert_int_equal(k3huf_output_write(&output, bytes + at, piece, &fault), K3HUF_EXIT_OK);
    }
    assert_int_equal(syncs.n, 2);
    assert_int_equal(syncs.call[0].offset, 0);
    assert_int_equal(syncs.call[0].size, 4 << 20);
    assert_int_equal(syncs.call[1].offset, 4 << 20);
    assert_int_equal(syncs.call[1].size, 4 << 20);
    /* 1 MiB waits. Two places 8 MiB apart, 3 MiB each: room that was made behind belongs to what is brought. */
    assert_int_equal(k3huf_output_zeros(&output, 16u << 20, &fault), K3HUF_EXIT_OK);
    for (size_t at = 0; at < (size_t)3 << 20; at += piece) {
        assert_int_equal(k3huf_output_patch(&output, BYTES + at, bytes + at, piece, &fault), K3HUF_EXIT_OK);
        assert_int_equal(k3huf_output_patch(&output, BYTES + (8u << 20) + at, bytes, piece, &fault), K3HUF_EXIT_OK);
    }
    assert_int_equal(syncs.n, 3);
    assert_int_equal(syncs.call[2].offset, 8 << 20);
    assert_int_equal(syncs.call[2].size, 17 << 20);
    syncs.watched = false;
    assert_int_equal(k3huf_output_commit(&output, &fault), K3HUF_EXIT_OK);
}

/* pack's own parts are among them. */
static void parts_are_not_left_to_the_end(void **state) {
    (void)state;
    watch(&syncs);
    pack_in(2);
    syncs.watched = false;
    /* 9 MiB at 3/4 of their size, in steps of 4 MiB. */
    assert_int_equal(syncs.n, 1);
    assert_int_equal(syncs.call[0].offset, 0);
    assert_true(syncs.call[0].size >= (size_t)4 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_reads_in_order),    cmocka_unit_test(planes_are_read_in_order),
        cmocka_unit_test(one_descriptor_does),    cmocka_unit_test(memory_is_not_opened),
        cmocka_unit_test(writing_goes_on_behind), cmocka_unit_test(parts_are_not_left_to_the_end),
    };
    return cmocka_run_group_tests_name("file_order", tests, enter, leave);
}
