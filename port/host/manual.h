/* manual.h - the man page and the completion for bash, made of the help texts of the commands. The build runs
 * `k3huf_host --man` and `k3huf_host --bash-completion`. */
#ifndef K3HUF_HOST_MANUAL_H
#define K3HUF_HOST_MANUAL_H

#include "commands.h"

/* Print the man page, in the man macros of troff; `general` is what --help prints behind the list of commands. */
void k3huf_manual_print(const struct k3huf_command *const *commands, size_t n, const char *general);

/* Print the completion: commands, and each one's options as its help text has them. */
void k3huf_completion_print(const struct k3huf_command *const *commands, size_t n);

#endif
