/* test_template.c - port/template answers "not provided" at every hook, and the engine does not start on it before its
 * limits are filled in. */
#include "unit.h"

#include "inflight.h"
#include "template.h"

static struct k3huf_template platform;
static struct k3huf_inflight engine;

static void entry(void *argument, uint32_t core) {
    (void)argument;
    (void)core;
}

#define assert_missing(CALL, NAME)                                                                                     \
    do {                                                                                                               \
        platform.missing = "";                                                                                         \
        assert_int_equal(CALL, K3HUF_PORT_E_NOT_PROVIDED);                                                             \
        assert_string_equal(platform.missing, NAME);                                                                   \
    } while (0)

#define assert_called(CALL, NAME)                                                                                      \
    do {                                                                                                               \
        platform.missing = "";                                                                                         \
        CALL;                                                                                                          \
        assert_string_equal(platform.missing, NAME);                                                                   \
    } while (0)

static void every_hook_is_missing(void **state) {
    const struct k3huf_port *const port = &platform.port;
    void *const context = platform.port.context;
    uint8_t byte = 0;
    (void)state;
    assert_missing(port->storage_submit(context, 0, 1, &byte, 0), "storage_submit");
    assert_called(assert_int_equal(port->storage_poll(context, NULL, 0), 0), "storage_poll");
    assert_missing(port->storage_reset(context), "storage_reset");
    assert_called(port->cache_clean(context, &byte, 1), "cache_clean");
    assert_called(port->cache_invalidate(context, &byte, 1), "cache_invalidate");
    assert_missing(port->window_read(context, 0, &byte, 1), "window_read");
    assert_missing(port->window_write(context, 0, 0, &byte, 1), "window_write");
    assert_missing(port->window_flush(context, 0), "window_flush");
    assert_missing(port->core_start(context, 1, entry, NULL), "core_start");
    assert_called(port->wait(context, 0), "wait");
    assert_called(port->signal(context), "signal");
    assert_called(assert_int_equal(port->ticks(context), 0), "ticks");
    assert_called(port->log(context, ""), "log");
    assert_string_equal(k3huf_port_status_text(K3HUF_PORT_E_NOT_PROVIDED), "not provided");
}

static void the_engine_wants_limits(void **state) {
    (void)state;
    assert_int_equal(k3huf_template_main(), K3HUF_PORT_E_ARGUMENT);
}

/* With limits but without hooks the engine comes up, finds no host, and stays in order. */
static void the_engine_steps_without_hooks(void **state) {
    const struct k3huf_inflight_config config = K3HUF_INFLIGHT_DEFAULTS;
    (void)state;
    platform.port.limits = (struct k3huf_port_limits){.lba_bytes = 512,
                                                      .max_transfer_bytes = 4096,
                                                      .buffer_align = 512,
                                                      .queue_depth = 1,
                                                      .core_count = 2,
                                                      .window_bytes = 65536,
                                                      .tick_hz = 1000000};
    assert_int_equal(k3huf_inflight_start(&engine, &platform.port, &config), K3HUF_PORT_OK);
    assert_int_equal(engine.cores, 1);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(k3huf_inflight_step(&engine), K3HUF_STEP_IDLE);
    assert_string_equal(platform.missing, "window_read");
    assert_true(k3huf_inflight_finish(&engine));
}

static int set_up(void **state) {
    (void)state;
    k3huf_template_init(&platform);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_hook_is_missing, set_up),
        cmocka_unit_test(the_engine_wants_limits),
        cmocka_unit_test_setup(the_engine_steps_without_hooks, set_up),
    };
    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
