/* unit.h - what every unit test includes: CMocka in the order of headers it needs, and the core's public header. */
#ifndef K3HUF_TEST_UNIT_H
#define K3HUF_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "k3huf.h"

#define UNIT_COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))

/* assert_int_equal on a status that says both by name. */
#define assert_status(GOT, WANTED)                                                                                     \
    do {                                                                                                               \
        const enum k3huf_status got_ = (GOT), wanted_ = (WANTED);                                                      \
        if (got_ != wanted_)                                                                                           \
            fail_msg("%s: status \"%s\" instead of \"%s\"", #GOT, k3huf_status_text(got_),                             \
                     k3huf_status_text(wanted_));                                                                      \
    } while (0)

#endif
