/* options.h - command line options, and the numbers in them. Messages go into a fault; nothing is printed here. */
#ifndef K3HUF_HOST_OPTIONS_H
#define K3HUF_HOST_OPTIONS_H

#include <getopt.h>

#include "fault.h"

/* What an option does to *value. */
enum k3huf_option_kind {
    K3HUF_OPTION_ON,      /* bool: true */
    K3HUF_OPTION_OFF,     /* bool: false */
    K3HUF_OPTION_TEXT,    /* const char *: its argument */
    K3HUF_OPTION_NUMBER,  /* uint64_t: its argument, `least` ... `most`, as k3huf_option_number() has it */
    K3HUF_OPTION_THREADS, /* unsigned: the same, 1 ... K3HUF_THREADS_MAX */
};

/* An option of a command: --name, and where `letter` is not 0, that letter. Of one given twice the last counts. */
struct k3huf_option {
    const char *name;
    char letter;
    enum k3huf_option_kind kind;
    void *value;
    uint64_t least, most;
};

#define K3HUF_OPTIONS_MAX 24u

/* Take the options off a command line: those of the table, which ends with one without name, and -h and --help, which
 * sets *help and stops. argv[0] is the subcommand's name; the operands start at argv[optind] in the end.
 * K3HUF_EXIT_USAGE for what is in no table or out of range. */
enum k3huf_exit k3huf_options_take(int argc, char **argv, const struct k3huf_option *table, bool *help,
                                   struct k3huf_fault *fault);

/* A whole number `least` ... `most`; K, M or G behind it stand for 2^10, 2^20, 2^30. K3HUF_EXIT_USAGE otherwise;
 * `name` is the option's name for the message. */
enum k3huf_exit k3huf_option_number(const char *text, const char *name, uint64_t least, uint64_t most, uint64_t *value,
                                    struct k3huf_fault *fault);

/* K3HUF_EXIT_USAGE unless `least` ... `most` operands follow the options. */
enum k3huf_exit k3huf_option_operands(int argc, char **argv, int least, int most, struct k3huf_fault *fault);

#endif
