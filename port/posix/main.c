/* main.c - k3huf_firmware_posix: the in-flight engine as a process, for k3huf_host offload to talk to without a
 * machine.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "inflight.h"
#include "posix_port.h"
#include "version.h"

static struct k3huf_inflight engine;
static struct k3huf_posix posix;
static volatile sig_atomic_t ended;

static void on_signal(int number) {
    (void)number;
    ended = 1;
}

static const char help[] =
    "usage: k3huf_firmware_posix --window FILE [--image FILE] [OPTIONS]\n"
    "Serve the jobs of a window file from a disk image, until the host asks for a shutdown.\n\n"
    "      --window FILE         the window of host memory\n"
    "      --window-bytes N      make it N bytes large where it does not exist\n"
    "      --image FILE          the drive; without it there is none. Zeros fill up its last block\n"
    "      --cores N             1 ... 16 (default 1; not more are used than the engine was built for)\n"
    "      --lba N               bytes of a logical block: 512, 1024, 2048, 4096 (default 512)\n"
    "      --max-transfer N      bytes of one read at most (default 131072)\n"
    "      --depth N             reads outstanding at most, 1 ... 64 (default 32)\n"
    "      --rate N              bytes a second that the drive delivers (default: no limit)\n"
    "      --window-rate N       bytes a second that each core can write to the window (default: no limit)\n"
    "      --fault LBA:COUNT:TIMES  reads of these blocks fail, TIMES times; 0: always. Up to 8 of them\n"
    "      --hang LBA:COUNT:TIMES   reads of these blocks are not answered\n"
    "      --read-timeout MS     (default 5000)\n"
    "      --host-timeout MS     (default 10000)\n"
    "      --memory              print the engine's static memory and leave\n"
    "      --version             print the version and the commit it was built from\n"
    "      --help                print this\n";

enum option_name {
    OPTION_WINDOW = 256,
    OPTION_WINDOW_BYTES,
    OPTION_IMAGE,
    OPTION_CORES,
    OPTION_LBA,
    OPTION_MAX_TRANSFER,
    OPTION_DEPTH,
    OPTION_RATE,
    OPTION_WINDOW_RATE,
    OPTION_FAULT,
    OPTION_HANG,
    OPTION_READ_TIMEOUT,
    OPTION_HOST_TIMEOUT,
    OPTION_MEMORY,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option options[] = {{"window", required_argument, NULL, OPTION_WINDOW},
                                        {"window-bytes", required_argument, NULL, OPTION_WINDOW_BYTES},
                                        {"image", required_argument, NULL, OPTION_IMAGE},
                                        {"cores", required_argument, NULL, OPTION_CORES},
                                        {"lba", required_argument, NULL, OPTION_LBA},
                                        {"max-transfer", required_argument, NULL, OPTION_MAX_TRANSFER},
                                        {"depth", required_argument, NULL, OPTION_DEPTH},
                                        {"rate", required_argument, NULL, OPTION_RATE},
                                        {"window-rate", required_argument, NULL, OPTION_WINDOW_RATE},
                                        {"fault", required_argument, NULL, OPTION_FAULT},
                                        {"hang", required_argument, NULL, OPTION_HANG},
                                        {"read-timeout", required_argument, NULL, OPTION_READ_TIMEOUT},
                                        {"host-timeout", required_argument, NULL, OPTION_HOST_TIMEOUT},
                                        {"memory", no_argument, NULL, OPTION_MEMORY},
                                        {"version", no_argument, NULL, OPTION_VERSION},
                                        {"help", no_argument, NULL, OPTION_HELP},
                                        {0}};

static int usage(const char *text, const char *word) {
    (void)fprintf(stderr, "k3huf_firmware_posix: %s: '%s' (see --help)\n", text, word);
    return 2;
}

/* `count` numbers with ':' between them. */
static bool numbers(const char *text, uint64_t *number, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        char *end = NULL;
        errno = 0;
        number[i] = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || errno != 0 || *end != (i + 1 < count ? ':' : '\0')) { return false; }
        text = end + 1;
    }
    return true;
}

static void print_memory(void) {
    (void)printf("in-flight engine: %u cores, %u slots, groups of %u bytes\n", K3HUF_INFLIGHT_CORES,
                 K3HUF_INFLIGHT_SLOTS, K3HUF_INFLIGHT_GROUP_BYTES);
    (void)printf("static memory %zu bytes: ring %zu, other %zu\n", sizeof engine, (size_t)K3HUF_INFLIGHT_RING_BYTES,
                 sizeof engine - K3HUF_INFLIGHT_RING_BYTES);
}

static int serve(const struct k3huf_posix_config *config, const struct k3huf_inflight_config *settings) {
    const char *what = NULL;
    const int number = k3huf_posix_open(&posix, config, &what);
    if (number != 0) {
        (void)fprintf(stderr, "k3huf_firmware_posix: %s: cannot be opened: %s\n", what, strerror(number));
        return 3;
    }
    const enum k3huf_port_status status = k3huf_inflight_start(&engine, &posix.port, settings);
    if (status != K3HUF_PORT_OK) {
        (void)fprintf(stderr, "k3huf_firmware_posix: %s\n", k3huf_port_status_text(status));
        k3huf_posix_close(&posix);
        return 2;
    }
    enum k3huf_inflight_step step = K3HUF_STEP_IDLE;
    while (ended == 0 && step != K3HUF_STEP_STOPPED) {
        step = k3huf_inflight_step(&engine);
        if (step == K3HUF_STEP_IDLE) { posix.port.wait(posix.port.context, 0); }
    }
    if (!k3huf_inflight_finish(&engine)) {
        (void)fputs("k3huf_firmware_posix: a core does not end\n", stderr);
        return 5;
    }
    k3huf_posix_close(&posix);
    return 0;
}

int main(int argc, char **argv) {
    struct k3huf_posix_config config = K3HUF_POSIX_DEFAULTS;
    struct k3huf_inflight_config settings = K3HUF_INFLIGHT_DEFAULTS;
    unsigned faults = 0;
    config.log = stderr;
    for (int name; (name = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint64_t number[3] = {0};
        const bool words = name == OPTION_WINDOW || name == OPTION_IMAGE || name == OPTION_MEMORY ||
                           name == OPTION_VERSION || name == OPTION_HELP || name == '?';
        const bool triple = name == OPTION_FAULT || name == OPTION_HANG;
        const bool wide = triple || name == OPTION_WINDOW_BYTES || name == OPTION_RATE || name == OPTION_WINDOW_RATE;
        if (!words && !numbers(optarg, number, triple ? 3 : 1)) { return usage("not a number", optarg); }
        if ((!wide && number[0] > UINT32_MAX) || number[1] > UINT64_MAX - number[0] || number[2] > UINT32_MAX) {
            return usage("too large a number", optarg);
        }
        switch (name) {
        case OPTION_WINDOW: config.window = optarg; break;
        case OPTION_WINDOW_BYTES: config.window_create = number[0]; break;
        case OPTION_IMAGE: config.image = optarg; break;
        case OPTION_CORES: config.cores = (uint32_t)number[0]; break;
        case OPTION_LBA: config.lba_bytes = (uint32_t)number[0]; break;
        case OPTION_MAX_TRANSFER: config.max_transfer_bytes = (uint32_t)number[0]; break;
        case OPTION_DEPTH: config.queue_depth = (uint32_t)number[0]; break;
        case OPTION_RATE: config.bytes_per_second = (double)number[0]; break;
        case OPTION_WINDOW_RATE: config.window_bytes_per_second = (double)number[0]; break;
        case OPTION_FAULT:
        case OPTION_HANG:
            if (faults == K3HUF_POSIX_FAULTS) { return usage("too many faults", optarg); }
            config.fault[faults++] = (struct k3huf_posix_fault){
                number[0], number[1], number[2] == 0 ? K3HUF_POSIX_FOR_EVER : (uint32_t)number[2],
                name == OPTION_FAULT ? K3HUF_PORT_E_MEDIA : K3HUF_PORT_BUSY};
            break;
        case OPTION_READ_TIMEOUT: settings.read_timeout_ms = (uint32_t)number[0]; break;
        case OPTION_HOST_TIMEOUT: settings.host_timeout_ms = (uint32_t)number[0]; break;
        case OPTION_MEMORY: print_memory(); return 0;
        case OPTION_VERSION: (void)printf("k3huf_firmware_posix %s\n", k3huf_version); return 0;
        case OPTION_HELP: (void)fputs(help, stdout); return 0;
        default: return 2;
        }
    }
    if (config.window == NULL || optind != argc) {
        return usage("--window FILE is needed, and nothing besides options", argc > optind ? argv[optind] : "");
    }
    if (config.cores < 1 || config.cores > K3HUF_POSIX_CORES || config.queue_depth < 1 ||
        config.queue_depth > K3HUF_POSIX_DEPTH || config.lba_bytes == 0) {
        return usage("--cores, --depth or --lba is out of range", "");
    }
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return serve(&config, &settings);
}
