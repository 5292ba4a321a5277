/* verify.c - k3huf_host verify: decode a run without writing, and compare it with its original. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "compare.h"
#include "options.h"
#include "pipeline.h"

static enum k3huf_exit verify(const char *run_name, const char *original_name, unsigned threads,
                              struct k3huf_fault *fault) {
    struct k3huf_input run;
    struct k3huf_input original;
    enum k3huf_exit code = k3huf_input_open(&run, run_name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    struct k3huf_compare compare = {.name = run.name};
    if (original_name != NULL) {
        code = k3huf_input_open(&original, original_name, fault);
        if (code != K3HUF_EXIT_OK) {
            k3huf_input_close(&run);
            return code;
        }
        compare.original = &original;
    }
    struct k3huf_run_facts facts;
    code = k3huf_decode_run(&run, threads, k3huf_compare_take, &compare, &facts, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_compare_end(&compare, fault); }
    if (code == K3HUF_EXIT_OK) {
        printf("%s: %" PRIu64 " bytes decode to %" PRIu64 "%s%s; block index in %" PRIu32 " of %" PRIu32
               " stripes, %" PRIu64 " block CRCs right\n",
               run.name, facts.run_bytes, compare.bytes, original_name == NULL ? "" : ", the same as ",
               original_name == NULL ? "" : original.name, facts.indexed, facts.nstripes, facts.blocks);
    }
    k3huf_input_close(&run);
    if (original_name != NULL) { k3huf_input_close(&original); }
    return code;
}

static enum k3huf_exit run_verify(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    static const struct option options[] = {
        {"threads", required_argument, NULL, 'T'}, {"help", no_argument, NULL, 'h'}, {0}};
    unsigned threads = k3huf_pipeline_processors();
    optind = 0;
    for (int option; (option = k3huf_option_next(argc, argv, options, fault)) != -1;) {
        enum k3huf_exit code = K3HUF_EXIT_OK;
        switch (option) {
        case 'T': code = k3huf_option_threads(optarg, &threads, fault); break;
        case 'h': *help = true; return K3HUF_EXIT_OK;
        default: return K3HUF_EXIT_USAGE;
        }
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    enum k3huf_exit code = k3huf_option_operands(argc, argv, 1, 2, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const char *original = argc - optind == 2 ? argv[optind + 1] : NULL;
    if (original != NULL && strcmp(argv[optind], "-") == 0 && strcmp(original, "-") == 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "verify: only one input can be standard input");
    }
    return verify(argv[optind], original, threads, fault);
}

const struct k3huf_command k3huf_command_verify = {
    "verify", "decode a run without writing, and compare it with its original",
    "usage: k3huf_host verify [OPTIONS] RUN [ORIGINAL]\n"
    "Decode RUN and check all of it, its block index and the CRC of every block included; with ORIGINAL compare byte "
    "by byte and name the first difference.\n"
    "Either may be - for standard input.\n\n"
    "  -T, --threads N  use N threads (default: every processor)\n"
    "  -h, --help       print this\n\n"
    "Exit code 0: sound (and the same); 1: differs from ORIGINAL; 4: RUN is corrupt.\n",
    run_verify};
