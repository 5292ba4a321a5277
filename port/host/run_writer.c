/* run_writer.c - see run_writer.h. */
#include "run_writer.h"

enum k3huf_exit k3huf_run_writer_open(struct k3huf_run_writer *writer, const char *name, bool force,
                                      struct k3huf_decoding how, k3huf_take *take, void *context,
                                      struct k3huf_fault *fault) {
    *writer = (struct k3huf_run_writer){.how = how, .take = take, .context = context};
    enum k3huf_exit code = k3huf_output_open(&writer->output, name, force, fault);
    if (code == K3HUF_EXIT_OK && writer->output.stream) {
        writer->check = k3huf_run_driver_new(writer->output.name, how, take, context, fault);
        if (writer->check == NULL) {
            k3huf_output_discard(&writer->output);
            code = fault->code;
        }
    }
    return code;
}

enum k3huf_exit k3huf_run_writer_part(struct k3huf_run_writer *writer, const uint8_t *part, size_t size,
                                      struct k3huf_fault *fault) {
    if (writer->check != NULL) {
        enum k3huf_exit code = k3huf_run_driver_give(writer->check, part, size, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    return k3huf_output_write(&writer->output, part, size, fault);
}

enum k3huf_exit k3huf_run_writer_check(struct k3huf_run_writer *writer, struct k3huf_fault *fault) {
    if (writer->check != NULL) { return k3huf_run_driver_finish(writer->check, fault); }
    struct k3huf_input written;
    enum k3huf_exit code = k3huf_input_adopt(&written, writer->output.fd, writer->output.name, fault);
    return code != K3HUF_EXIT_OK ? code
                                 : k3huf_decode_run(&written, writer->how, writer->take, writer->context, NULL, fault);
}

void k3huf_run_writer_close(struct k3huf_run_writer *writer) {
    k3huf_run_driver_free(writer->check);
    k3huf_output_discard(&writer->output);
}
