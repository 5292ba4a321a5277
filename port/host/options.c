/* options.c - see options.h. */
#include "options.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "pipeline.h"

/* getopt_long() with its complaints as faults; an option whose val is a letter has that letter as its short form.
 * Returns the option's val, -1 after the last, or '?' with the fault set. */
static int next(int argc, char **argv, const struct option *options, struct k3huf_fault *fault) {
    char letters[1 + 2 * 2 * 26 + 1] = ":"; /* as getopt() has them: a colon behind those with an argument */
    size_t n = 1;
    for (const struct option *option = options; option->name != NULL && n < sizeof letters - 2; option++) {
        if (option->val < 256 && isalpha(option->val) != 0) {
            letters[n++] = (char)option->val;
            if (option->has_arg == required_argument) { letters[n++] = ':'; }
        }
    }
    letters[n] = '\0';
    opterr = 0;
    int value = getopt_long(argc, argv, letters, options, NULL);
    if (value == ':' || value == '?') {
        /* Of a letter amid others only optopt tells; of a long option only argv does, but optopt has its letter all the
         * same where it lacks its value or has one too many. */
        char letter[] = {'-', (char)optopt, '\0'};
        const bool known = value == ':' || (isalpha(optopt) != 0 && strchr(letters, optopt) != NULL);
        const bool is_long = known && strncmp(argv[optind - 1], "--", 2) == 0;
        bool is_letter = optopt > ' ' && optopt < 127 && !is_long;
        (void)k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "%s: %s: '%s' (see k3huf_host %s --help)", argv[0],
                              value == ':' ? "option needs a value" : "no such option, or not used like this",
                              is_letter ? letter : argv[optind - 1], argv[0]);
        return '?';
    }
    return value;
}

enum k3huf_exit k3huf_option_number(const char *text, const char *name, uint64_t least, uint64_t most, uint64_t *value,
                                    struct k3huf_fault *fault) {
    uint64_t number = 0;
    const char *c = text;
    bool good = isdigit((unsigned char)*c) != 0;
    for (; isdigit((unsigned char)*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        good = good && number <= (UINT64_MAX - digit) / 10;
        number = 10 * number + digit;
    }
    static const char suffixes[] = "KMG";
    if (*c != '\0') {
        const char *suffix = strchr(suffixes, toupper((unsigned char)*c));
        unsigned shift = suffix == NULL ? 0 : 10u * (unsigned)(suffix - suffixes + 1);
        good = good && suffix != NULL && c[1] == '\0' && number <= UINT64_MAX >> shift;
        number <<= shift;
    }
    if (!good || number < least || number > most) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "--%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, least, most,
                               text);
    }
    *value = number;
    return K3HUF_EXIT_OK;
}

/* The option has been given, with optarg where it takes an argument. */
static enum k3huf_exit take(const struct k3huf_option *option, struct k3huf_fault *fault) {
    uint64_t number = 0;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    switch (option->kind) {
    case K3HUF_OPTION_ON: *(bool *)option->value = true; break;
    case K3HUF_OPTION_OFF: *(bool *)option->value = false; break;
    case K3HUF_OPTION_TEXT: *(const char **)option->value = optarg; break;
    case K3HUF_OPTION_NUMBER:
        code = k3huf_option_number(optarg, option->name, option->least, option->most, option->value, fault);
        break;
    case K3HUF_OPTION_THREADS:
        code = k3huf_option_number(optarg, option->name, 1, K3HUF_THREADS_MAX, &number, fault);
        if (code == K3HUF_EXIT_OK) { *(unsigned *)option->value = (unsigned)number; }
        break;
    }
    return code;
}

enum k3huf_exit k3huf_options_take(int argc, char **argv, const struct k3huf_option *table, bool *help,
                                   struct k3huf_fault *fault) {
    enum { LETTERLESS = 256 }; /* what getopt_long() is to return for the option without a letter that is this far */
    struct option options[K3HUF_OPTIONS_MAX + 2] = {{0}};
    unsigned n = 0;
    for (; n < K3HUF_OPTIONS_MAX && table[n].name != NULL; n++) {
        const bool flag = table[n].kind == K3HUF_OPTION_ON || table[n].kind == K3HUF_OPTION_OFF;
        options[n] = (struct option){table[n].name, flag ? no_argument : required_argument, NULL,
                                     table[n].letter != 0 ? table[n].letter : LETTERLESS + (int)n};
    }
    options[n] = (struct option){"help", no_argument, NULL, 'h'};
    optind = 0;
    for (int value; (value = next(argc, argv, options, fault)) != -1;) {
        if (value == '?') { return K3HUF_EXIT_USAGE; }
        if (value == 'h') {
            *help = true;
            return K3HUF_EXIT_OK;
        }
        for (unsigned i = 0; i < n; i++) {
            if (options[i].val != value) { continue; }
            const enum k3huf_exit code = take(&table[i], fault);
            if (code != K3HUF_EXIT_OK) { return code; }
        }
    }
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_option_operands(int argc, char **argv, int least, int most, struct k3huf_fault *fault) {
    int operands = argc - optind;
    if (operands < least || operands > most) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "%s: too %s arguments (see k3huf_host %s --help)",
                               argv[0], operands < least ? "few" : "many", argv[0]);
    }
    return K3HUF_EXIT_OK;
}
