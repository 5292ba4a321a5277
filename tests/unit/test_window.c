/* test_window.c - the window as a mapped file (port/posix/window.c): its words are little-endian on every machine, and
 * a file that the machine cannot map whole is refused, not mapped in part. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "window.h"

#define CONTROL 4096u

static char name[] = "k3huf-window-XXXXXX";

static int make_file(void **state) {
    (void)state;
    const int fd = mkstemp(name);
    if (fd < 0 || close(fd) != 0) return -1;
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(name);
}

static void words_are_little_endian(void **state) {
    (void)state;
    struct k3huf_window window;
    assert_int_equal(truncate(name, CONTROL), 0);
    assert_int_equal(k3huf_window_open(&window, name, 0), 0);
    assert_true(window.size == CONTROL);
    static const uint8_t bytes[8] = {0x04, 0x03, 0x02, 0x01, 0xFE, 0x00, 0x00, 0x80};
    k3huf_window_store(&window, 64, 0x01020304u);
    memcpy(window.bytes + 68, bytes + 4, 4);
    assert_memory_equal(window.bytes + 64, bytes, sizeof bytes);
    assert_int_equal(k3huf_window_load(&window, 64), 0x01020304u);
    assert_int_equal(k3huf_window_load(&window, 68), 0x800000FEu);
    k3huf_window_close(&window);
    assert_null(window.bytes);
}

static void less_than_a_control_block(void **state) {
    (void)state;
    struct k3huf_window window;
    assert_int_equal(truncate(name, CONTROL - 1), 0);
    assert_int_equal(k3huf_window_open(&window, name, 0), EINVAL);
    assert_null(window.bytes);
}

/* 2^32 bytes and a control block: cut to 32 bits, that is a control block. */
static void more_than_can_be_mapped(void **state) {
    (void)state;
    struct k3huf_window window;
    const uint64_t size = (UINT64_C(1) << 32) + CONTROL;
    assert_int_equal(truncate(name, (off_t)size), 0);
    const int number = k3huf_window_open(&window, name, 0);
    if (SIZE_MAX < size) {
        assert_int_equal(number, EFBIG);
        assert_null(window.bytes);
        return;
    }
    assert_int_equal(number, 0);
    assert_true(window.size == size);
    k3huf_window_store(&window, size - 4u, 0x01020304u);
    assert_int_equal(k3huf_window_load(&window, size - 4u), 0x01020304u);
    assert_int_equal(k3huf_window_load(&window, CONTROL - 4u), 0);
    k3huf_window_close(&window);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_little_endian),
        cmocka_unit_test(less_than_a_control_block),
        cmocka_unit_test(more_than_can_be_mapped),
    };
    return cmocka_run_group_tests_name("window", tests, make_file, remove_file);
}
