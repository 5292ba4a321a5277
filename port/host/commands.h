/* commands.h - the subcommands of k3huf_host. A new one: a file with its struct k3huf_command, a line here, and one in
 * main.c's table. */
#ifndef K3HUF_HOST_COMMANDS_H
#define K3HUF_HOST_COMMANDS_H

#include "fault.h"

struct k3huf_command {
    const char *name;
    const char *summary; /* one line for k3huf_host --help */
    const char *help;    /* printed by --help of the subcommand, ends with a line end */
    /* argv[0] is the subcommand's name. Prints its results; a failure is in the fault, unprinted. Returns
     * K3HUF_EXIT_OK with *help set where --help was asked for. */
    enum k3huf_exit (*run)(int argc, char **argv, bool *help, struct k3huf_fault *fault);
};

extern const struct k3huf_command k3huf_command_pack;
extern const struct k3huf_command k3huf_command_unpack;
extern const struct k3huf_command k3huf_command_verify;
extern const struct k3huf_command k3huf_command_inspect;
extern const struct k3huf_command k3huf_command_index;
extern const struct k3huf_command k3huf_command_bench;
extern const struct k3huf_command k3huf_command_plan;
extern const struct k3huf_command k3huf_command_image;
extern const struct k3huf_command k3huf_command_offload;
extern const struct k3huf_command k3huf_command_list;

#endif
