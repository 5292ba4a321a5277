/* test_status.c - every status has a text of its own. */
#include "unit.h"

static void texts_are_distinct(void **state) {
    (void)state;
    for (int a = 0; a < K3HUF_STATUS_COUNT; a++) {
        const char *text = k3huf_status_text((enum k3huf_status)a);
        assert_non_null(text);
        assert_true(strlen(text) > 1);
        assert_null(strchr(text, '\n'));
        assert_true(text[strlen(text) - 1] != '.');
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(text, k3huf_status_text((enum k3huf_status)b));
        }
    }
}

static void unknown_values_have_a_text(void **state) {
    (void)state;
    const int unknown[] = {K3HUF_STATUS_COUNT, K3HUF_STATUS_COUNT + 1, 127};
    for (size_t i = 0; i < UNIT_COUNT(unknown); i++) {
        assert_string_equal(k3huf_status_text((enum k3huf_status)unknown[i]), "unknown status");
    }
}

static void errors_are_the_statuses_after_done(void **state) {
    (void)state;
    assert_false(k3huf_is_error(K3HUF_OK));
    assert_false(k3huf_is_error(K3HUF_WAIT));
    assert_false(k3huf_is_error(K3HUF_DONE));
    for (int status = K3HUF_DONE + 1; status < K3HUF_STATUS_COUNT; status++) {
        assert_true(k3huf_is_error((enum k3huf_status)status));
    }
}

/* The texts stand in the order of the statuses: each says what its status is. */
static void texts_say_what_is_wrong(void **state) {
    static const struct {
        enum k3huf_status status;
        const char *words;
    } says[] = {
        {K3HUF_OK, "no error"},
        {K3HUF_WAIT, "more input"},
        {K3HUF_DONE, "whole run"},
        {K3HUF_E_ARGUMENT, "argument"},
        {K3HUF_E_TRUNCATED, "input ends"},
        {K3HUF_E_RUN_MAGIC, "not a k3huf run"},
        {K3HUF_E_RUN_VERSION, "run version"},
        {K3HUF_E_RUN_STRIPES, "number of stripes"},
        {K3HUF_E_CODE_LENGTH, "code length is over"},
        {K3HUF_E_CODE_OVERFULL, "over-full"},
        {K3HUF_E_CODE_EMPTY, "no symbol"},
        {K3HUF_E_STRIPE_MAGIC, "stripe magic"},
        {K3HUF_E_STRIPE_RAW, "stripe's raw bytes"},
        {K3HUF_E_STRIPE_CODED, "plane's size"},
        {K3HUF_E_CODE_WORD, "bits that are no code"},
        {K3HUF_E_CODED_SHORT, "ends before"},
        {K3HUF_E_CODED_LONG, "goes on after"},
        {K3HUF_E_INDEX_SIZE, "fit the filler"},
        {K3HUF_E_INDEX_VERSION, "index version"},
        {K3HUF_E_INDEX_LOG2, "block size"},
        {K3HUF_E_INDEX_FLAGS, "flags"},
        {K3HUF_E_INDEX_COUNT, "number of blocks"},
        {K3HUF_E_INDEX_CRC, "index's CRC"},
        {K3HUF_E_INDEX_OFFSET, "bit offset"},
        {K3HUF_E_INDEX_MEMORY, "memory for it"},
        {K3HUF_E_BLOCK_END, "does not end"},
        {K3HUF_E_BLOCK_CRC, "block's CRC"},
        {K3HUF_E_INDEX_ABSENT, "one is required"},
    };
    (void)state;
    assert_int_equal(sizeof says / sizeof says[0], K3HUF_STATUS_COUNT);
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        assert_int_equal(says[i].status, i);
        if (strstr(k3huf_status_text(says[i].status), says[i].words) == NULL) {
            fail_msg("status %u: %s", (unsigned)i, k3huf_status_text(says[i].status));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_distinct),
        cmocka_unit_test(texts_say_what_is_wrong),
        cmocka_unit_test(unknown_values_have_a_text),
        cmocka_unit_test(errors_are_the_statuses_after_done),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
