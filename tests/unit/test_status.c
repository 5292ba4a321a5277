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
        for (int b = 0; b < a; b++)
            assert_string_not_equal(text, k3huf_status_text((enum k3huf_status)b));
    }
}

static void unknown_values_have_a_text(void **state) {
    (void)state;
    const int unknown[] = {K3HUF_STATUS_COUNT, K3HUF_STATUS_COUNT + 1, 127};
    for (size_t i = 0; i < UNIT_COUNT(unknown); i++) {
        const char *text = k3huf_status_text((enum k3huf_status)unknown[i]);
        assert_non_null(text);
        assert_true(strlen(text) > 1);
        for (int known = 0; known < K3HUF_STATUS_COUNT; known++)
            assert_string_not_equal(text, k3huf_status_text((enum k3huf_status)known));
    }
}

static void errors_are_the_statuses_after_done(void **state) {
    (void)state;
    assert_false(k3huf_is_error(K3HUF_OK));
    assert_false(k3huf_is_error(K3HUF_WAIT));
    assert_false(k3huf_is_error(K3HUF_DONE));
    for (int status = K3HUF_DONE + 1; status < K3HUF_STATUS_COUNT; status++)
        assert_true(k3huf_is_error((enum k3huf_status)status));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_distinct),
        cmocka_unit_test(unknown_values_have_a_text),
        cmocka_unit_test(errors_are_the_statuses_after_done),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
