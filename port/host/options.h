/* options.h - command line options, and the numbers in them. Messages go into a fault; nothing is printed here. */
#ifndef K3HUF_HOST_OPTIONS_H
#define K3HUF_HOST_OPTIONS_H

#include <getopt.h>

#include "fault.h"

/* getopt_long() with its complaints as faults; an option whose val is a letter has that letter as its short form.
 * Returns the option's val, -1 after the last, or '?' with the fault set. As with getopt_long(), optarg is
 * the option's argument, and the operands start at argv[optind] in the end. argv[0] is the subcommand's name; set
 * optind to 0 before the first call. */
int k3huf_option_next(int argc, char **argv, const struct option *options, struct k3huf_fault *fault);

/* A whole number `least` ... `most`; K, M or G behind it stand for 2^10, 2^20, 2^30. K3HUF_EXIT_USAGE otherwise;
 * `name` is the option's name for the message. */
enum k3huf_exit k3huf_option_number(const char *text, const char *name, uint64_t least, uint64_t most, uint64_t *value,
                                    struct k3huf_fault *fault);

/* The argument of -T and --threads. */
enum k3huf_exit k3huf_option_threads(const char *text, unsigned *threads, struct k3huf_fault *fault);

/* K3HUF_EXIT_USAGE unless `least` ... `most` operands follow the options. */
enum k3huf_exit k3huf_option_operands(int argc, char **argv, int least, int most, struct k3huf_fault *fault);

#endif
