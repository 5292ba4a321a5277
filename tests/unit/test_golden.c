/* test_golden.c - runs of the prototype's pack-time encoder decode to their raw bytes, with every way to chunk them,
 * and the reference decoder agrees. */
#include "unit.h"

#include "feeder.h"
#include "reference.h"
#include "vectors.h"

static uint8_t out[K3HUF_VECTOR_RAW_MAX];
static uint8_t index_memory[64];

static void the_embedded_files_are_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        const struct k3huf_vector *v = &k3huf_vectors[i];
        assert_int_equal(v->run_end - v->run, v->run_size);
        assert_int_equal(v->raw_end - v->raw, v->raw_size);
        assert_true(v->raw_size <= K3HUF_VECTOR_RAW_MAX && v->run_size <= K3HUF_VECTOR_RUN_MAX);
    }
}

static void the_reference_decodes_them(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        const struct k3huf_vector *v = &k3huf_vectors[i];
        size_t raw_bytes, used;
        memset(out, K3HUF_FEED_FILL, sizeof out);
        const char *wrong = k3huf_reference_decode(v->run, v->run_size, out, sizeof out, &raw_bytes, &used);
        if (wrong != NULL) { fail_msg("%s: %s", v->name, wrong); }
        assert_int_equal(raw_bytes, v->raw_size);
        assert_int_equal(used, v->run_size);
        assert_memory_equal(out, v->raw, v->raw_size);
    }
}

/* Decode vector `v` in `mode`; what else is wrong with the decoder's manners is found by the feeder. */
static void decode(const struct k3huf_vector *v, unsigned mode, uint64_t seed) {
    struct k3huf_feed feed = {.run = v->run,
                              .run_size = v->run_size,
                              .out = out,
                              .out_size = v->raw_size,
                              .expected = v->raw,
                              .index = (seed & 1u) != 0 ? index_memory : NULL,
                              .index_size = (seed & 1u) != 0 ? sizeof index_memory : 0,
                              .seed = seed};
    const char *name = k3huf_feed_mode(&feed, mode);
    k3huf_feed_run(&feed);
    if (feed.fault != NULL || feed.status != K3HUF_DONE || feed.produced != v->raw_size ||
        memcmp(out, v->raw, v->raw_size) != 0) {
        fail_msg("%s, %s, seed %u: %s; \"%s\" at byte %u, %u bytes decoded", v->name, name, (unsigned)seed,
                 feed.fault == NULL ? "decoded wrongly" : feed.fault, k3huf_status_text(feed.status),
                 (unsigned)feed.place.offset, (unsigned)feed.produced);
    }
}

static void they_decode_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES_WHOLE; mode++) {
            for (uint64_t seed = 0; seed < 2; seed++) {
                decode(&k3huf_vectors[i], mode, seed);
            }
        }
    }
}

/* Byte by byte and in random pieces: small vectors with many seeds, large ones with fewer, to bound the time. */
static void they_decode_in_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < K3HUF_VECTORS; i++) {
        const uint64_t seeds = k3huf_vectors[i].raw_size <= 12000 ? 6 : 2;
        for (unsigned mode = K3HUF_FEED_MODES_WHOLE; mode < K3HUF_FEED_MODES; mode++) {
            for (uint64_t seed = 0; seed < seeds; seed++) {
                decode(&k3huf_vectors[i], mode, seed);
            }
        }
    }
}

/* Bytes behind the run are not the decoder's: it stops at the run's end and leaves them in the span. */
static void what_follows_a_run_is_left_alone(void **state) {
    (void)state;
    static uint8_t longer[2000];
    for (size_t i = 0; i < K3HUF_VECTORS && k3huf_vectors[i].run_size + 100 <= sizeof longer; i++) {
        const struct k3huf_vector *v = &k3huf_vectors[i];
        memcpy(longer, v->run, v->run_size);
        memset(longer + v->run_size, 0x4B, 100);
        for (unsigned mode = 0; mode < K3HUF_FEED_MODES; mode++) {
            struct k3huf_feed feed = {
                .run = longer, .run_size = v->run_size + 100, .out = out, .out_size = v->raw_size + 50, .seed = mode};
            const char *name = k3huf_feed_mode(&feed, mode);
            k3huf_feed_run(&feed);
            if (feed.fault != NULL || feed.status != K3HUF_DONE || feed.produced != v->raw_size) {
                fail_msg("%s, %s: %s", v->name, name, feed.fault == NULL ? "not done" : feed.fault);
            }
            assert_memory_equal(out, v->raw, v->raw_size);
            for (size_t k = 0; k < 50; k++) {
                assert_int_equal(out[v->raw_size + k], K3HUF_FEED_FILL);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_embedded_files_are_whole),
        cmocka_unit_test(the_reference_decodes_them),
        cmocka_unit_test(they_decode_whole),
        cmocka_unit_test(they_decode_in_pieces),
        cmocka_unit_test(what_follows_a_run_is_left_alone),
    };
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
