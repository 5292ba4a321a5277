/* config.h - what CMocka's own build would have found out about picolibc on bare metal, and about Linux. Included by
 * cmocka.c alone. */
#ifndef K3HUF_CMOCKA_CONFIG_H
#define K3HUF_CMOCKA_CONFIG_H

#define HAVE_ASSERT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_MALLOC_H 1
#define HAVE_SIGNAL_H 1
#define HAVE_STDINT_H 1
#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_STDIO_H 1
#define HAVE_STDLIB_H 1
#define HAVE_TIME_H 1

#endif
