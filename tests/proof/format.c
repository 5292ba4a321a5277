/* format.c - every run header of 288 bytes; then, with every run header that passed, every stripe header of 16 bytes,
 * of every stripe of the run. And every header struct, written.
 */
#include "any.h"

void format(void) {
    struct k3huf_run_header run;
    struct k3huf_stripe_header stripe;
    uint32_t bad;
    if (k3huf_run_header_read(any_bytes(K3HUF_RUN_HEADER_BYTES), &run, &bad) != K3HUF_OK) {
        //@ assert place: bad < K3HUF_RUN_HEADER_BYTES;
        return;
    }
    //@ assert lengths: \forall integer i; 0 <= i < K3HUF_SYMBOLS ==> run.codelen[i] <= K3HUF_CODE_LENGTH_MAX;
    if (run.nstripes == 0) { return; }
    const uint32_t number = any32(0, run.nstripes - 1u);
    const uint64_t before = Frama_C_unsigned_long_long_interval(0, run.raw_bytes);
    if (k3huf_stripe_header_read(any_bytes(K3HUF_STRIPE_HEADER_BYTES), &run, number, before, &stripe, &bad) !=
        K3HUF_OK) {
        //@ assert stripe_place: bad < K3HUF_STRIPE_HEADER_BYTES;
        return;
    }
    //@ assert raw: 1 <= stripe.raw_bytes <= K3HUF_STRIPE_RAW_MAX;
    //@ assert coded: stripe.huf_bytes <= K3HUF_STRIPE_RAW_MAX / 2 * K3HUF_CODE_LENGTH_MAX / 8;
}

void format_write(void) {
    struct k3huf_run_header run;
    struct k3huf_stripe_header stripe;
    run.raw_bytes = any64();
    run.nstripes = any32(0, UINT32_MAX);
    Frama_C_make_unknown((char *)run.codelen, sizeof run.codelen);
    k3huf_run_header_write(&run, raw_bytes(K3HUF_RUN_HEADER_BYTES));
    stripe.raw_bytes = any32(0, UINT32_MAX);
    stripe.huf_bytes = any32(0, UINT32_MAX);
    stripe.pad = any32(0, UINT32_MAX);
    k3huf_stripe_header_write(&stripe, any32(0, UINT32_MAX), raw_bytes(K3HUF_STRIPE_HEADER_BYTES));
}
