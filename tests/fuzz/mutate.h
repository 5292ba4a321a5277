/* mutate.h - makes runs for the fuzz targets that get deep: builds valid ones and changes them where it counts. Knows
 * the format through the reference alone (tests/support/reference.h), never through the core. */
#ifndef K3HUF_FUZZ_MUTATE_H
#define K3HUF_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* The run header's reserved bytes, which no reader looks at: the targets take from them how to decode, so that a run as
 * it is in a file is an input as well. */
#define K3HUF_FUZZ_CONTROL 276u
#define K3HUF_FUZZ_CONTROL_BYTES 12u

/* Change the run of `size` bytes at `data` into another of at most `max_size`; returns its size. Sometimes everything
 * is made anew, sometimes fields, code lengths, planes or index entries change, with or without the checksums fixed. */
size_t k3huf_fuzz_mutate_run(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* The same for an archive. Where to cut a range out of it (fuzz_archive.c) lies in reserved bytes of the first page. */
#define K3HUF_FUZZ_ARCHIVE_CONTROL 80u
size_t k3huf_fuzz_mutate_archive(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* The same for JSON text: numbers, strings and members change, go and come twice; where there is next to nothing, it
 * becomes one of the `n` texts. `data` need not end with 0. */
size_t k3huf_fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed, const char *const *texts,
                              size_t n);

/* A target found something: say it and abort, so that libFuzzer keeps the input. */
_Noreturn void k3huf_fuzz_found(const char *what, const char *detail);

#endif
