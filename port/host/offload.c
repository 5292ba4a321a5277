/* offload.c - k3huf_host offload: have runs of a drive decoded into a window of this machine's memory by the firmware
 * behind it (session.h), wait, compare, report. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "input.h"
#include "json_print.h"
#include "k3huf_image.h"
#include "options.h"
#include "session.h"

#define CHUNK ((size_t)64 << 10)
#define PAGE 4096u

/* One job, from the command line to its result. */
struct task {
    char name[K3HUF_IMAGE_NAME_BYTES];
    const char *original; /* NULL: not compared */
    uint64_t offset;      /* byte of the drive */
    uint64_t run_bytes;
    uint64_t raw_bytes;
    uint64_t destination; /* in the window */
    bool done;
    bool same; /* compared, and no difference */
    struct k3huf_completion completion;
    uint32_t crc;
};

struct offload {
    const char *window;
    uint64_t create;
    uint64_t timeout_ms;
    uint32_t options; /* of each job */
    bool list, all, json, quiet, shutdown;
    struct k3huf_session session;
    uint8_t *table; /* malloc'ed; NULL: not asked for */
    uint32_t table_bytes;
    struct task *task; /* malloc'ed */
    uint32_t tasks;
};

/* ---- statuses as exit codes */

static enum k3huf_exit exit_of(uint32_t status) {
    if (status < K3HUF_STATUS_COUNT) { return K3HUF_EXIT_CORRUPT; }
    switch (status) {
    case K3HUF_JOB_E_SOURCE:
    case K3HUF_JOB_E_DESTINATION:
    case K3HUF_JOB_E_DESTINATION_SMALL: return K3HUF_EXIT_USAGE;
    case K3HUF_JOB_E_KIND:
    case K3HUF_JOB_E_OPTIONS:
    case K3HUF_JOB_E_OVERLAP: return K3HUF_EXIT_INTERNAL;
    default: return K3HUF_EXIT_IO;
    }
}

static enum k3huf_exit job_fault(const char *name, const struct k3huf_completion *c, struct k3huf_fault *fault) {
    const struct k3huf_place place = {c->stripe, c->block, c->offset};
    const char *text = k3huf_job_status_text(c->status);
    switch (c->status) { /* of the job, not of the drive */
    case K3HUF_JOB_E_KIND:
    case K3HUF_JOB_E_OPTIONS:
    case K3HUF_JOB_E_SOURCE:
    case K3HUF_JOB_E_DESTINATION:
    case K3HUF_JOB_E_OVERLAP:
    case K3HUF_JOB_E_CANCELLED:
    case K3HUF_JOB_E_TABLE:
    case K3HUF_JOB_E_ABSENT: return k3huf_fault_set(fault, exit_of(c->status), name, NULL, "%s", text);
    default: return k3huf_fault_set(fault, exit_of(c->status), name, &place, "%s (LBA %" PRIu64 ")", text, c->lba);
    }
}

/* ---- the table of contents */

static uint64_t drive_bytes(const struct offload *o) {
    return o->session.device.lba_count * o->session.device.lba_bytes;
}

/* Have the firmware read the table, and check it once more here. */
static enum k3huf_exit fetch_table(struct offload *o, struct k3huf_fault *fault) {
    struct k3huf_completion c;
    const uint64_t room = o->session.window.size - K3HUF_SESSION_FREE;
    const uint64_t drive = drive_bytes(o);
    const struct k3huf_job job = {.kind = K3HUF_KIND_LIST,
                                  .run_bytes = drive < K3HUF_IMAGE_BYTES_MAX ? drive : K3HUF_IMAGE_BYTES_MAX,
                                  .destination = K3HUF_SESSION_FREE,
                                  .destination_bytes = room < K3HUF_IMAGE_BYTES_MAX ? room : K3HUF_IMAGE_BYTES_MAX};
    k3huf_session_submit(&o->session, &job);
    enum k3huf_exit code = k3huf_session_wait(&o->session, &c, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (c.status != 0) { return job_fault("(table of contents)", &c, fault); }
    o->table = malloc(K3HUF_IMAGE_BYTES_MAX);
    if (o->table == NULL) { return k3huf_fault_memory(fault, K3HUF_IMAGE_BYTES_MAX); }
    const uint64_t size = c.bytes < job.destination_bytes ? c.bytes : job.destination_bytes;
    memcpy(o->table, o->session.window.bytes + K3HUF_SESSION_FREE, (size_t)size);
    o->table_bytes = size < K3HUF_IMAGE_HEAD_BYTES ? 0 : k3huf_image_table_bytes(o->table);
    if (o->table_bytes == 0 || o->table_bytes > size || !k3huf_image_table_sound(o->table, o->table_bytes)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, "(table of contents)", NULL,
                               "what the firmware listed is not sound");
    }
    return K3HUF_EXIT_OK;
}

static void task_from_entry(struct task *task, const uint8_t *entry) {
    memcpy(task->name, entry + K3HUF_IMAGE_NAME, sizeof task->name);
    task->offset = k3huf_get64(entry + K3HUF_IMAGE_OFFSET);
    task->run_bytes = k3huf_get64(entry + K3HUF_IMAGE_RUN_BYTES);
    task->raw_bytes = k3huf_get64(entry + K3HUF_IMAGE_RAW_BYTES);
}

static uint32_t entries(const struct offload *o) {
    return (o->table_bytes - K3HUF_IMAGE_HEAD_BYTES) / K3HUF_IMAGE_ENTRY_BYTES;
}

static const uint8_t *entry(const struct offload *o, uint32_t number) {
    return o->table + K3HUF_IMAGE_HEAD_BYTES + number * K3HUF_IMAGE_ENTRY_BYTES;
}

static enum k3huf_exit print_table(const struct offload *o, struct k3huf_fault *fault) {
    json_t *runs = o->json ? json_array() : NULL;
    for (uint32_t i = 0; i < entries(o); i++) {
        struct task t;
        task_from_entry(&t, entry(o, i));
        if (o->json) {
            (void)json_array_append_new(runs, json_pack("{s:s, s:I, s:I, s:I}", "name", t.name, "offset",
                                                        (json_int_t)t.offset, "run_bytes", (json_int_t)t.run_bytes,
                                                        "raw_bytes", (json_int_t)t.raw_bytes));
        } else {
            printf("%s: byte %" PRIu64 ", %" PRIu64 " bytes, decode to %" PRIu64 "\n", t.name, t.offset, t.run_bytes,
                   t.raw_bytes);
        }
    }
    return o->json ? k3huf_json_print(json_pack("{s:o}", "runs", runs), fault) : K3HUF_EXIT_OK;
}

/* ---- which jobs */

/* "OFFSET:BYTES:RAW" behind an @. */
static enum k3huf_exit place_by_numbers(struct task *task, const char *text, struct k3huf_fault *fault) {
    if (sscanf(text, "@%19" SCNu64 ":%19" SCNu64 ":%19" SCNu64, &task->offset, &task->run_bytes, &task->raw_bytes) !=
        3) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "'%s' is not @OFFSET:BYTES:RAW-BYTES", text);
    }
    (void)snprintf(task->name, sizeof task->name, "%s", text);
    return K3HUF_EXIT_OK;
}

/* NAME or @OFFSET:BYTES:RAW, and =ORIGINAL behind it. Changes the argument. */
static enum k3huf_exit parse_task(struct offload *o, struct task *task, char *text, struct k3huf_fault *fault) {
    char *equals = strchr(text, '=');
    if (equals != NULL) {
        *equals = '\0';
        task->original = equals + 1;
    }
    if (*text == '@') { return place_by_numbers(task, text, fault); }
    for (uint32_t i = 0; i < entries(o); i++) {
        if (strcmp((const char *)entry(o, i) + K3HUF_IMAGE_NAME, text) == 0) {
            task_from_entry(task, entry(o, i));
            return K3HUF_EXIT_OK;
        }
    }
    return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "the drive has no run '%s' (--list shows them)", text);
}

static bool needs_table(const struct offload *o, char **words, uint32_t count) {
    bool named = o->list || o->all;
    for (uint32_t i = 0; i < count; i++) {
        named = named || words[i][0] != '@';
    }
    return named;
}

static enum k3huf_exit collect_tasks(struct offload *o, char **words, uint32_t count, struct k3huf_fault *fault) {
    const uint32_t more = o->all ? entries(o) : 0;
    o->task = calloc((size_t)count + more + 1, sizeof *o->task);
    if (o->task == NULL) { return k3huf_fault_memory(fault, ((uint64_t)count + more + 1) * sizeof *o->task); }
    for (uint32_t i = 0; i < more; i++) {
        task_from_entry(&o->task[o->tasks++], entry(o, i));
    }
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < count && code == K3HUF_EXIT_OK; i++) {
        code = parse_task(o, &o->task[o->tasks++], words[i], fault);
    }
    return code;
}

/* ---- running them */

static void draw_bar(uint64_t done, uint64_t all) {
    char bar[41];
    const unsigned full = all == 0 ? 40u : (unsigned)(40u * done / all);
    for (unsigned i = 0; i < 40; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[40] = '\0';
    (void)fprintf(stderr, "\r[%s] %3u%%  %" PRIu64 " of %" PRIu64 " MiB", bar,
                  all == 0 ? 100u : (unsigned)(100u * done / all), done >> 20, all >> 20);
}

static void clear_bar(void) { (void)fprintf(stderr, "\r%75s\r", ""); }

/* Compare what is in the window with the task's original. */
static enum k3huf_exit compare(const struct offload *o, const struct task *task, struct k3huf_fault *fault) {
    struct k3huf_input original;
    enum k3huf_exit code = k3huf_input_open(&original, task->original, fault);
    const uint8_t *found = o->session.window.bytes + task->destination;
    if (code != K3HUF_EXIT_OK) { return code; }
    for (uint64_t at = 0; at < task->completion.bytes && code == K3HUF_EXIT_OK;) {
        uint8_t expected[CHUNK];
        size_t got = 0;
        const uint64_t left = task->completion.bytes - at;
        const size_t now = left < CHUNK ? (size_t)left : CHUNK;
        code = k3huf_input_read(&original, expected, now, now, &got, fault);
        size_t i = 0;
        while (code == K3HUF_EXIT_OK && i < got && expected[i] == found[at + i]) {
            i++;
        }
        if (code == K3HUF_EXIT_OK && i < got) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->name, NULL,
                                   "decoded offset %" PRIu64 ": differs from %s: expected 0x%02x, found 0x%02x", at + i,
                                   original.name, (unsigned)expected[i], (unsigned)found[at + i]);
        } else if (code == K3HUF_EXIT_OK && got < now) {
            code =
                k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->name, NULL,
                                "decoded offset %" PRIu64 ": %s ends here, the run goes on", at + got, original.name);
        }
        at += now;
    }
    uint8_t byte;
    size_t got = 0;
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_read(&original, &byte, 1, 1, &got, fault); }
    if (code == K3HUF_EXIT_OK && got != 0) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->name, NULL,
                               "decoded offset %" PRIu64 ": the run ends here, %s goes on", task->completion.bytes,
                               original.name);
    }
    k3huf_input_close(&original);
    return code;
}

/* A task's completion is there: look at it, and at what it left in the window. */
static enum k3huf_exit finish_task(struct offload *o, struct task *task, struct k3huf_fault *fault) {
    task->done = true;
    if (task->completion.status != 0) { return job_fault(task->name, &task->completion, fault); }
    if (task->completion.bytes > o->session.window.size - task->destination) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, task->name, NULL, "the firmware tells of more bytes than fit");
    }
    task->crc = k3huf_crc32c(0, o->session.window.bytes + task->destination, (size_t)task->completion.bytes);
    if (task->original == NULL) { return K3HUF_EXIT_OK; }
    const enum k3huf_exit code = compare(o, task, fault);
    task->same = code == K3HUF_EXIT_OK;
    return code;
}

/* Put as many tasks from `first` on into ring and window as both hold. Returns the first one that is not. */
static uint32_t submit_batch(struct offload *o, uint32_t first) {
    uint64_t at = K3HUF_SESSION_FREE;
    uint32_t i = first;
    for (; i < o->tasks && i - first < K3HUF_SESSION_ENTRIES; i++) {
        struct task *task = &o->task[i];
        const uint32_t lba_bytes = o->session.device.lba_bytes;
        const uint64_t room = o->session.window.size - at;
        if (task->raw_bytes > room && i > first) { break; }
        task->destination = at;
        const struct k3huf_job job = {.id = i,
                                      .kind = K3HUF_KIND_DECODE,
                                      .options = o->options,
                                      .lba = task->offset / lba_bytes,
                                      .offset = task->offset % lba_bytes,
                                      .run_bytes = task->run_bytes,
                                      .destination = at,
                                      .destination_bytes = task->raw_bytes};
        k3huf_session_submit(&o->session, &job);
        if (task->raw_bytes > room) { /* the firmware will say so */
            return i + 1;
        }
        const uint64_t taken = (task->raw_bytes + PAGE - 1) / PAGE * PAGE;
        at += taken < room ? taken : room;
    }
    return i;
}

/* Run all tasks; a job that fails does not keep the others from running. The first fault counts. */
static enum k3huf_exit run_tasks(struct offload *o, struct k3huf_fault *fault) {
    const bool bar = !o->quiet && !o->json && isatty(STDERR_FILENO) == 1;
    enum k3huf_exit first_code = K3HUF_EXIT_OK;
    uint64_t all = 0;
    uint64_t done = 0;
    uint64_t drawn = 0;
    for (uint32_t i = 0; i < o->tasks; i++) {
        all += o->task[i].raw_bytes;
    }
    for (uint32_t next = 0; next < o->tasks;) {
        const uint32_t begin = next;
        next = submit_batch(o, begin);
        for (uint32_t left = next - begin; left > 0;) {
            struct k3huf_completion c;
            bool got = false;
            enum k3huf_exit code = k3huf_session_poll(&o->session, &c, &got, fault);
            if (code == K3HUF_EXIT_OK && got && (c.id < begin || c.id >= next || o->task[c.id].done)) {
                code = k3huf_fault_set(fault, K3HUF_EXIT_IO, o->window, NULL, "a completion for no job of ours");
            }
            if (code != K3HUF_EXIT_OK) {
                if (bar) { clear_bar(); }
                return code;
            }
            if (got) {
                static struct k3huf_fault own;
                struct task *task = &o->task[c.id];
                task->completion = c;
                code = finish_task(o, task, &own);
                if (code != K3HUF_EXIT_OK && first_code == K3HUF_EXIT_OK) {
                    first_code = code;
                    *fault = own;
                }
                done += task->raw_bytes;
                left--;
            } else {
                (void)usleep(100);
            }
            if (bar && k3huf_session_now() - drawn > 100000000u) {
                drawn = k3huf_session_now();
                const uint64_t now = done + ((uint64_t)k3huf_session_progress(&o->session) << 10);
                draw_bar(now < all ? now : all, all);
            }
        }
    }
    if (bar) { clear_bar(); }
    return first_code;
}

/* ---- reports */

static double seconds(const struct k3huf_completion *c, uint64_t ticks) {
    return c->tick_hz == 0 ? 0 : (double)ticks / (double)c->tick_hz;
}

static double rate(double bytes, double time) { return time > 0 ? bytes / time / 1e9 : 0; }

static double ahead(const struct k3huf_completion *c) { return c->ahead_of == 0 ? 0 : (double)c->ahead / c->ahead_of; }

static json_t *task_json(const struct task *t) {
    const struct k3huf_completion *c = &t->completion;
    const double time = seconds(c, c->ticks);
    json_t *job =
        json_pack("{s:s, s:I, s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f}", "name", t->name,
                  "run_bytes", (json_int_t)t->run_bytes, "status", (json_int_t)c->status, "text",
                  k3huf_job_status_text(c->status), "bytes", (json_int_t)c->bytes, "seconds", time,
                  "storage_wait_seconds", seconds(c, c->storage_ticks), "decode_seconds", seconds(c, c->decode_ticks),
                  "write_seconds", seconds(c, c->write_ticks), "raw_gb_per_second", rate((double)c->bytes, time),
                  "drive_gb_per_second", rate((double)t->run_bytes, time), "reads", (json_int_t)c->reads, "retries",
                  (json_int_t)c->retries, "groups", (json_int_t)c->groups, "groups_read_ahead", ahead(c));
    if (c->status != 0) {
        if (c->stripe != K3HUF_JOB_NOWHERE) {
            (void)json_object_set_new(job, "stripe", json_integer((json_int_t)c->stripe));
        }
        if (c->block != K3HUF_JOB_NOWHERE) {
            (void)json_object_set_new(job, "block", json_integer((json_int_t)c->block));
        }
        (void)json_object_set_new(job, "offset", json_integer((json_int_t)c->offset));
        (void)json_object_set_new(job, "lba", json_integer((json_int_t)c->lba));
    } else {
        (void)json_object_set_new(job, "crc32c", json_integer((json_int_t)t->crc));
        (void)json_object_set_new(job, "destination", json_integer((json_int_t)t->destination));
        if (t->original != NULL) { (void)json_object_set_new(job, "same", json_boolean(t->same)); }
    }
    return job;
}

static enum k3huf_exit report_json(const struct offload *o, struct k3huf_fault *fault) {
    const struct k3huf_device *d = &o->session.device;
    json_t *jobs = json_array();
    for (uint32_t i = 0; i < o->tasks; i++) {
        if (o->task[i].done) { (void)json_array_append_new(jobs, task_json(&o->task[i])); }
    }
    return k3huf_json_print(json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "window", o->window, "cores",
                                      (json_int_t)d->cores, "lba_bytes", (json_int_t)d->lba_bytes, "lba_count",
                                      (json_int_t)d->lba_count, "group_bytes", (json_int_t)d->group_bytes, "jobs",
                                      jobs),
                            fault);
}

static void report_text(const struct offload *o) {
    for (uint32_t i = 0; i < o->tasks; i++) {
        const struct task *t = &o->task[i];
        const struct k3huf_completion *c = &t->completion;
        if (!t->done || c->status != 0) { continue; }
        const double time = seconds(c, c->ticks);
        printf("%s: %" PRIu64 " bytes decoded to %" PRIu64 " in %.4f s%s%s\n", t->name, t->run_bytes, c->bytes, time,
               t->same ? ", the same as " : "", t->same ? t->original : "");
        printf("  %.3f GB/s of weights from %.3f GB/s of drive; %" PRIu32 " cores; storage wait %.4f s, decode %.4f s, "
               "write %.4f s (sums over cores)\n",
               rate((double)c->bytes, time), rate((double)t->run_bytes, time), o->session.device.cores,
               seconds(c, c->storage_ticks), seconds(c, c->decode_ticks), seconds(c, c->write_ticks));
        printf("  %" PRIu32 " reads, %" PRIu32 " retries, %" PRIu32 " groups, %.2f groups being read while one was "
               "decoded\n",
               c->reads, c->retries, c->groups, ahead(c));
    }
}

/* ---- the command */

static enum k3huf_exit with_session(struct offload *o, char **words, uint32_t count, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (needs_table(o, words, count)) { code = fetch_table(o, fault); }
    if (code == K3HUF_EXIT_OK && o->list) { code = print_table(o, fault); }
    if (code == K3HUF_EXIT_OK) { code = collect_tasks(o, words, count, fault); }
    if (code == K3HUF_EXIT_OK && o->tasks > 0) {
        static struct k3huf_fault printing;
        code = run_tasks(o, fault);
        if (o->json) {
            const enum k3huf_exit printed = report_json(o, &printing);
            if (code == K3HUF_EXIT_OK && printed != K3HUF_EXIT_OK) {
                *fault = printing;
                code = printed;
            }
        } else if (!o->quiet) {
            report_text(o);
        }
    }
    return code;
}

static enum k3huf_exit offload(struct offload *o, char **words, uint32_t count, struct k3huf_fault *fault) {
    enum k3huf_exit code = k3huf_session_open(&o->session, o->window, o->create, (double)o->timeout_ms / 1e3, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = with_session(o, words, count, fault);
    if (o->shutdown) {
        static struct k3huf_fault stopping;
        const enum k3huf_exit stopped = k3huf_session_shutdown(&o->session, &stopping);
        if (code == K3HUF_EXIT_OK && stopped != K3HUF_EXIT_OK) {
            *fault = stopping;
            code = stopped;
        }
    }
    k3huf_session_close(&o->session);
    free(o->table);
    free(o->task);
    return code;
}

static enum k3huf_exit run_offload(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    enum { WINDOW = 256, CREATE, TIMEOUT, LIST, ALL, JSON, TRACE, REQUIRE_INDEX, SHUTDOWN };
    static const struct option options[] = {{"window", required_argument, NULL, WINDOW},
                                            {"create", required_argument, NULL, CREATE},
                                            {"timeout", required_argument, NULL, TIMEOUT},
                                            {"list", no_argument, NULL, LIST},
                                            {"all", no_argument, NULL, ALL},
                                            {"json", no_argument, NULL, JSON},
                                            {"trace", no_argument, NULL, TRACE},
                                            {"require-index", no_argument, NULL, REQUIRE_INDEX},
                                            {"shutdown", no_argument, NULL, SHUTDOWN},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct offload o = {.timeout_ms = 60000};
    enum k3huf_exit code = K3HUF_EXIT_OK;
    optind = 0;
    for (int option; (option = k3huf_option_next(argc, argv, options, fault)) != -1;) {
        switch (option) {
        case WINDOW: o.window = optarg; break;
        case CREATE:
            code = k3huf_option_number(optarg, "create", K3HUF_SESSION_FREE, INT64_MAX, &o.create, fault);
            break;
        case TIMEOUT: code = k3huf_option_number(optarg, "timeout", 1, 86400000, &o.timeout_ms, fault); break;
        case LIST: o.list = true; break;
        case ALL: o.all = true; break;
        case JSON: o.json = true; break;
        case TRACE: o.options |= K3HUF_OPTION_TRACE; break;
        case REQUIRE_INDEX: o.options |= K3HUF_OPTION_REQUIRE_INDEX; break;
        case SHUTDOWN: o.shutdown = true; break;
        case 'q': o.quiet = true; break;
        case 'h': *help = true; return K3HUF_EXIT_OK;
        default: return K3HUF_EXIT_USAGE;
        }
        if (code != K3HUF_EXIT_OK) { return code; }
    }
    const uint32_t words = (uint32_t)(argc - optind);
    if (o.window == NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "offload: --window FILE is needed");
    }
    if (o.list && (o.all || words > 0)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "offload: --list takes no runs");
    }
    if (!o.list && !o.all && words == 0 && !o.shutdown) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "offload: no run named (--all takes every one, --list shows them)");
    }
    return offload(&o, argv + optind, words, fault);
}

const struct k3huf_command k3huf_command_offload = {
    "offload", "have firmware decode runs into host memory",
    "usage: k3huf_host offload --window FILE [OPTIONS] RUN[=ORIGINAL]...\n"
    "Post a job for each RUN to the firmware behind the window FILE, wait for all of them, and compare each with its\n"
    "ORIGINAL where one is given. RUN is a name in the drive's table of contents (k3huf_host image), or\n"
    "@OFFSET:BYTES:RAW-BYTES for a run at a byte of the drive. Decoded weights stay in the window.\n\n"
    "      --window FILE    the memory that is shared with the firmware\n"
    "      --create N       make it N bytes large where it does not exist (K, M, G are understood)\n"
    "      --list           print the drive's table of contents\n"
    "      --all            every run of the table of contents\n"
    "      --timeout MS     longest wait for the firmware's answer, and for each completion (default 60000)\n"
    "      --require-index  refuse stripes without block index, which have no checksums\n"
    "      --trace          the firmware logs every block group\n"
    "      --shutdown       have the firmware stop in the end\n"
    "      --json           print results as JSON\n"
    "  -q, --quiet          print nothing but faults\n"
    "  -h, --help           print this\n",
    run_offload};
