/* main.c - k3huf_host: find the subcommand, print its fault, leave with its exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "dispatch.h"
#include "large.h"
#include "manual.h"
#include "version.h"

static const struct k3huf_command *const commands[] = {
    &k3huf_command_pack, &k3huf_command_unpack, &k3huf_command_verify, &k3huf_command_index, &k3huf_command_inspect,
    &k3huf_command_list, &k3huf_command_bench,  &k3huf_command_plan,   &k3huf_command_image, &k3huf_command_offload};
#define COMMANDS (sizeof commands / sizeof commands[0])

static const char general_help[] =
    "exit codes:\n"
    "  0  success\n"
    "  1  mismatch: decoded bytes differ from the original\n"
    "  2  usage: unknown option, missing argument, value out of range\n"
    "  3  I/O: a file cannot be opened, read, written or replaced, or changed while it was read\n"
    "  4  corrupt: not a sound run, archive or source, cut short, or with bytes after its end\n"
    "  5  internal: out of memory, or a defect of this program\n\n"
    "environment:\n"
    "  K3HUF_ISA  the instruction set to use, one that --version names: v3 or v2 (x86-64), crc (AArch64), baseline.\n"
    "             Without it the best that the processor has. What is written is the same with each\n";

static void print_help(FILE *to) {
    (void)fprintf(to, "usage: k3huf_host COMMAND [OPTIONS] ...\n"
                      "Pack bf16 weights into k3huf runs, losslessly, and decode them.\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        (void)fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fprintf(
        to, "\nk3huf_host COMMAND --help, or k3huf_host help COMMAND, says more. --version prints the version.\n\n%s",
        general_help);
}

/* What was printed counts only once it has left: a full disk behind standard output shows here. */
static enum k3huf_exit flush(struct k3huf_fault *fault) {
    errno = 0;
    bool bad = ferror(stdout) != 0;
    if (fflush(stdout) != 0 || bad) { return k3huf_fault_errno(fault, "(standard output)", "cannot be written"); }
    return K3HUF_EXIT_OK;
}

/* NULL: there is none of that name. */
static const struct k3huf_command *find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0) { return commands[i]; }
    }
    return NULL;
}

static enum k3huf_exit no_command(const char *name, struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "no such command: '%s' (see k3huf_host --help)", name);
}

/* k3huf_host help [COMMAND] */
static enum k3huf_exit help_command(int argc, char **argv, struct k3huf_fault *fault) {
    if (argc > 1) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "help: one command at a time, not '%s' too",
                               argv[1]);
    }
    if (argc == 0) {
        print_help(stdout);
        return K3HUF_EXIT_OK;
    }
    const struct k3huf_command *command = find(argv[0]);
    if (command == NULL) { return no_command(argv[0], fault); }
    (void)fputs(command->help, stdout);
    return K3HUF_EXIT_OK;
}

int main(int argc, char **argv) {
    static struct k3huf_fault fault;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    k3huf_large_keep();
    /* A reader that went away, or a file size limit, is a write error with a message, not a silent end. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);

    const char *name = argc > 1 ? argv[1] : NULL;
    if (name == NULL) {
        print_help(stderr);
        return K3HUF_EXIT_USAGE;
    }
    code = k3huf_isa_check(&fault);
    const struct k3huf_command *command = find(name);
    if (code != K3HUF_EXIT_OK) {
        command = NULL;
    } else if (command != NULL) {
        bool help = false;
        code = command->run(argc - 1, argv + 1, &help, &fault);
        if (help) { (void)fputs(command->help, stdout); }
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
    } else if (strcmp(name, "help") == 0) {
        code = help_command(argc - 2, argv + 2, &fault);
    } else if (strcmp(name, "--man") == 0) {
        k3huf_manual_print(commands, COMMANDS, general_help);
    } else if (strcmp(name, "--bash-completion") == 0) {
        k3huf_completion_print(commands, COMMANDS);
    } else if (strcmp(name, "--version") == 0) {
        printf("k3huf_host %s\ninstruction set: %s", k3huf_version, k3huf_isa()->name);
        for (unsigned i = 0; k3huf_isa_choice(i) != NULL; i++) {
            printf("%s%s", i == 0 ? " (K3HUF_ISA chooses another: " : ", ", k3huf_isa_choice(i)->name);
        }
        printf(")\n");
    } else {
        code = no_command(name, &fault);
    }
    if (code == K3HUF_EXIT_OK) { code = flush(&fault); }
    if (code != K3HUF_EXIT_OK) { (void)fprintf(stderr, "k3huf_host: %s\n", fault.text); }
    return (int)code;
}
