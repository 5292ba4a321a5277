/* unpack.c - k3huf_host unpack: decode a run into a file. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "decode_run.h"
#include "options.h"
#include "output.h"
#include "pipeline.h"

static enum k3huf_exit take(void *context, const struct k3huf_piece *piece, struct k3huf_fault *fault) {
    return k3huf_output_write(context, piece->data, piece->size, fault);
}

static enum k3huf_exit unpack(const char *run_name, const char *out_name, unsigned threads, bool force,
                              struct k3huf_fault *fault) {
    struct k3huf_input run;
    struct k3huf_output output;
    enum k3huf_exit code = k3huf_input_open(&run, run_name, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = k3huf_output_open(&output, out_name, force, fault);
    if (code != K3HUF_EXIT_OK) {
        k3huf_input_close(&run);
        return code;
    }
    struct k3huf_run_facts facts;
    code = k3huf_decode_run(&run, threads, take, &output, &facts, fault);
    if (code == K3HUF_EXIT_OK) { code = k3huf_output_commit(&output, fault); }
    if (code == K3HUF_EXIT_OK) {
        fprintf(output.stream ? stderr : stdout, "%s: %" PRIu64 " bytes decoded to %" PRIu64 " in %s\n", run.name,
                facts.run_bytes, output.written, output.name);
    }
    k3huf_output_discard(&output);
    k3huf_input_close(&run);
    return code;
}

static enum k3huf_exit run_unpack(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    static const struct option options[] = {{"threads", required_argument, NULL, 'T'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    unsigned threads = k3huf_pipeline_processors();
    bool force = false;
    optind = 0;
    for (int option; (option = k3huf_option_next(argc, argv, options, fault)) != -1;) {
        enum k3huf_exit code = K3HUF_EXIT_OK;
        switch (option) {
        case 'T': code = k3huf_option_threads(optarg, &threads, fault); break;
        case 'f': force = true; break;
        case 'h': *help = true; return K3HUF_EXIT_OK;
        default: return K3HUF_EXIT_USAGE;
        }
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    enum k3huf_exit code = k3huf_option_operands(argc, argv, 2, 2, fault);
    return code == K3HUF_EXIT_OK ? unpack(argv[optind], argv[optind + 1], threads, force, fault) : code;
}

const struct k3huf_command k3huf_command_unpack = {
    "unpack", "decode a run into a file",
    "usage: k3huf_host unpack [OPTIONS] RUN OUT\n"
    "Decode RUN into OUT. Either may be -: standard input, standard output. OUT appears complete or not at all;\n"
    "standard output, a device or a FIFO gets bytes as they are decoded.\n\n"
    "  -T, --threads N  use N threads (default: every processor)\n"
    "  -f, --force      replace OUT where it exists\n"
    "  -h, --help       print this\n",
    run_unpack};
