/* manual.c - see manual.h. */
#include "manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "version.h"

/* Text for troff, lines as they are: backslashes, hyphens that are to stay hyphens, and dots at a line's start. */
static void troff(const char *text) {
    bool line_start = true;
    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\'')) { (void)fputs("\\&", stdout); }
        if (*text == '\\') {
            (void)fputs("\\e", stdout);
        } else if (*text == '-') {
            (void)fputs("\\-", stdout);
        } else {
            putchar(*text);
        }
        line_start = *text == '\n';
    }
}

void k3huf_manual_print(const struct k3huf_command *const *commands, size_t n, const char *general) {
    printf(".TH K3HUF_HOST 1 \"\" \"k3huf %s\" \"User Commands\"\n", k3huf_version);
    printf(".SH NAME\nk3huf_host \\- pack bf16 weights losslessly, and decode them\n"
           ".SH SYNOPSIS\n.B k3huf_host\n.I COMMAND\n.RI [ OPTIONS ]\n.I ...\n.SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n.B %s\n", commands[i]->name);
        troff(commands[i]->summary);
        putchar('\n');
    }
    for (size_t i = 0; i < n; i++) {
        printf(".SH %s\n.nf\n", commands[i]->name);
        troff(commands[i]->help);
        printf(".fi\n");
    }
    printf(".SH EXIT STATUS AND ENVIRONMENT\n.nf\n");
    troff(general);
    printf(".fi\n");
}

/* Print the options in a help text: words that begin with a hyphen and a letter or two hyphens, each once. */
static void options_of(const char *help) {
    for (const char *at = help; *at != '\0'; at++) {
        const bool begins =
            *at == '-' && (at == help || at[-1] == ' ') &&
            (isalpha((unsigned char)at[1]) != 0 || (at[1] == '-' && isalpha((unsigned char)at[2]) != 0));
        if (!begins) { continue; }
        size_t size = 1;
        while (isalnum((unsigned char)at[size]) != 0 || at[size] == '-') {
            size++;
        }
        bool before = false;
        for (const char *look = help; look < at && !before; look++) {
            const char end = look[size];
            before = strncmp(look, at, size) == 0 && (look == help || look[-1] == ' ') &&
                     isalnum((unsigned char)end) == 0 && end != '-';
        }
        if (!before) { printf(" %.*s", (int)size, at); }
    }
}

void k3huf_completion_print(const struct k3huf_command *const *commands, size_t n) {
    printf("# bash completion for k3huf_host\n"
           "_k3huf_host() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < n; i++) {
        printf("%s ", commands[i]->name);
    }
    printf("help --help --version' -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < n; i++) {
        printf("    %s) words='", commands[i]->name);
        options_of(commands[i]->help);
        printf("' ;;\n");
    }
    printf("    esac\n"
           "    case $cur in\n"
           "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
           "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _k3huf_host k3huf_host\n");
}
