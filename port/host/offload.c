/* offload.c - k3huf_host offload: have runs and tensors of a drive brought into a window of this machine's memory by
 * the firmware behind it (session.h, drive.h), wait, compare, report. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "compare.h"
#include "crc_join.h"
#include "dispatch.h"
#include "drive.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

#define CHUNK ((size_t)64 << 10)
#define PAGE 4096u

/* One job, or bytes that need none, from the command line to its result. */
struct task {
    struct k3huf_wanted want;
    const char *original; /* NULL: not compared */
    uint64_t destination; /* in the window, of what is brought */
    bool done;
    uint32_t lap;     /* how often the window has been begun anew */
    uint64_t end;     /* of its room in the window; destination: it has none */
    bool overwritten; /* by a later one */
    bool wrong;       /* what the firmware brought, or would, is not what is wanted */
    char *why;        /* malloc'ed, then; NULL where memory is short */
    bool same;        /* compared, and no difference */
    struct k3huf_completion completion;
    uint64_t bytes; /* that are as wanted */
    uint32_t crc;   /* of them */
};

struct offload {
    const char *window;
    uint64_t create;
    uint64_t timeout_ms;
    uint32_t options; /* of each job */
    bool list, all, json, quiet, shutdown;
    struct k3huf_session session;
    struct k3huf_drive drive;
    struct task *task; /* malloc'ed */
    uint32_t tasks, capacity;
    const char *original; /* of the tasks being added */
    uint64_t free;        /* the window's first byte behind the last task's */
    uint32_t lap;
};

/* ---- which jobs */

/* A k3huf_take_wanted. */
static enum k3huf_exit add_task(void *context, struct k3huf_wanted *wanted, struct k3huf_fault *fault) {
    struct offload *o = context;
    if (o->json && !k3huf_json_holds(wanted->name, strlen(wanted->name))) {
        free(wanted->name);
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, o->window, NULL,
                               "a name on the drive is not UTF-8, and --json cannot tell it");
    }
    if (o->tasks == o->capacity) {
        const uint32_t capacity = o->capacity == 0 ? 64 : 2 * o->capacity;
        struct task *grown = realloc(o->task, capacity * sizeof *grown);
        if (grown == NULL) {
            free(wanted->name);
            return k3huf_fault_memory(fault, capacity * sizeof *grown);
        }
        o->task = grown;
        o->capacity = capacity;
    }
    o->task[o->tasks++] = (struct task){.want = *wanted, .original = o->original};
    return K3HUF_EXIT_OK;
}

/* What the drive has by a name, and =ORIGINAL behind it. Either may hold a '=': the longest name that there is counts.
 * Changes the argument. */
static enum k3huf_exit parse_task(struct offload *o, char *text, struct k3huf_fault *fault) {
    char *cut = text + strlen(text);
    o->original = NULL;
    for (;;) {
        const char kept = *cut;
        *cut = '\0';
        const enum k3huf_exit code = k3huf_drive_find(&o->drive, text, add_task, o, fault);
        char *equals = strrchr(text, '=');
        if (code != K3HUF_EXIT_USAGE || equals == NULL) { return code; }
        *cut = kept;
        cut = equals;
        o->original = equals + 1;
    }
}

static enum k3huf_exit collect_tasks(struct offload *o, char **words, uint32_t count, struct k3huf_fault *fault) {
    enum k3huf_exit code = o->all ? k3huf_drive_all(&o->drive, add_task, o, fault) : K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < count && code == K3HUF_EXIT_OK; i++) {
        code = parse_task(o, words[i], fault);
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

/* Compare what is in the window with all of a file. */
static enum k3huf_exit compare_run(const struct offload *o, const struct task *task, struct k3huf_input *original,
                                   struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    const uint8_t *found = o->session.window.bytes + task->destination;
    for (uint64_t at = 0; at < task->completion.bytes && code == K3HUF_EXIT_OK;) {
        uint8_t expected[CHUNK];
        size_t got = 0;
        const uint64_t left = task->completion.bytes - at;
        const size_t now = left < CHUNK ? (size_t)left : CHUNK;
        code = k3huf_input_read(original, expected, now, now, &got, fault);
        const size_t i = code == K3HUF_EXIT_OK ? k3huf_same_bytes(expected, found + at, got) : 0;
        if (code == K3HUF_EXIT_OK && i < got) {
            code = k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->want.name, NULL,
                                   "decoded offset %" PRIu64 ": differs from %s: expected 0x%02x, found 0x%02x", at + i,
                                   original->name, (unsigned)expected[i], (unsigned)found[at + i]);
        } else if (code == K3HUF_EXIT_OK && got < now) {
            code =
                k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->want.name, NULL,
                                "decoded offset %" PRIu64 ": %s ends here, the run goes on", at + got, original->name);
        }
        at += now;
    }
    uint8_t byte;
    size_t got = 0;
    if (code == K3HUF_EXIT_OK) { code = k3huf_input_read(original, &byte, 1, 1, &got, fault); }
    if (code == K3HUF_EXIT_OK && got != 0) {
        code = k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->want.name, NULL,
                               "decoded offset %" PRIu64 ": the run ends here, %s goes on", task->completion.bytes,
                               original->name);
    }
    return code;
}

/* Compare it with the tensor's place in the file that the archive was made of. */
static enum k3huf_exit compare_tensor(const struct offload *o, const struct task *task, struct k3huf_input *original,
                                      struct k3huf_fault *fault) {
    struct k3huf_source_compare compare = {.original = original, .name = task->want.name};
    enum k3huf_exit code = k3huf_input_slurp(original, fault);
    if (code == K3HUF_EXIT_OK && original->size != task->want.source_bytes) {
        return k3huf_fault_set(fault, K3HUF_EXIT_MISMATCH, task->want.name, NULL,
                               "%s has %" PRIu64 " bytes, the file that was packed had %" PRIu64, original->name,
                               original->size, task->want.source_bytes);
    }
    if (code != K3HUF_EXIT_OK) { return code; }
    return k3huf_source_compare(&compare, o->session.window.bytes + task->destination + task->want.skip, task->bytes,
                                task->want.source_at, fault);
}

/* What a task brought is in the window, as its completion tells: look at both. A fault where it is not all that is
 * wanted, and nothing else. */
static enum k3huf_exit check_task(const struct offload *o, struct task *task, struct k3huf_fault *fault) {
    const struct k3huf_wanted *want = &task->want;
    const struct k3huf_completion *c = &task->completion;
    if (want->refused != NULL) { return k3huf_fault_set(fault, want->refused_code, NULL, NULL, "%s", want->refused); }
    if (want->of_archive && (c->status == K3HUF_JOB_E_DESTINATION_SMALL || c->status == K3HUF_JOB_E_PART ||
                             (c->status == 0 && c->bytes != want->brought))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, want->name, NULL,
                               "the run decodes to another size than the archive says");
    }
    if (c->status != 0) { return k3huf_session_job_fault(want->name, c, fault); }
    if (c->bytes > o->session.window.size - task->destination) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, want->name, NULL, "the firmware tells of more bytes than fit");
    }
    const uint8_t *brought = o->session.window.bytes + task->destination;
    const uint32_t crc = k3huf_crc32c_long(k3huf_isa(), 0, brought, (size_t)c->bytes);
    const bool whole = want->of_archive && want->kind != K3HUF_KIND_NONE && want->brought == want->entry_bytes;
    if ((whole && crc != want->entry_crc) || (want->kind == K3HUF_KIND_COPY && c->crc != want->entry_crc)) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, want->name, NULL,
                               "the bytes do not have the CRC-32C of the archive's entry");
    }
    task->bytes = want->of_archive ? want->bytes : c->bytes;
    task->crc =
        task->bytes == c->bytes ? crc : k3huf_crc32c_long(k3huf_isa(), 0, brought + want->skip, (size_t)task->bytes);
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit compare_task(const struct offload *o, struct task *task, struct k3huf_fault *fault) {
    struct k3huf_input original;
    enum k3huf_exit code = k3huf_input_open(&original, task->original, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    code = task->want.of_archive ? compare_tensor(o, task, &original, fault) : compare_run(o, task, &original, fault);
    k3huf_input_close(&original);
    task->same = code == K3HUF_EXIT_OK;
    return code;
}

static enum k3huf_exit finish_task(const struct offload *o, struct task *task, struct k3huf_fault *fault) {
    const enum k3huf_exit code = check_task(o, task, fault);
    task->done = true;
    if (code == K3HUF_EXIT_OK) { return task->original == NULL ? code : compare_task(o, task, fault); }
    task->wrong = task->completion.status == 0;
    if (task->wrong) { task->why = strdup(fault->text); }
    return code;
}

/* No job is made of zeros, or of what would not be what is wanted. */
static bool needs_no_job(const struct task *task) {
    return task->want.kind == K3HUF_KIND_NONE || task->want.refused != NULL;
}

static uint64_t room_for(const struct task *task) { return task->want.refused == NULL ? task->want.brought : 0; }

/* Bytes that are all zeros, or none, are put there without the firmware. */
static void put_zeros(struct offload *o, struct task *task, uint64_t room) {
    k3huf_completion_clear(&task->completion);
    task->completion.bytes = task->want.bytes;
    if (task->want.bytes > room) {
        task->completion.status = K3HUF_JOB_E_DESTINATION;
    } else if (task->want.bytes > 0) {
        memset(o->session.window.bytes + task->destination, 0, (size_t)task->want.bytes);
    }
}

/* Put as many tasks from `first` on into ring and window as both hold, or their zeros into the window: behind what is
 * there already, or from the beginning again where the first of them finds no room. Returns the first one that is
 * not. */
static uint32_t submit_batch(struct offload *o, uint32_t first) {
    const bool anew = room_for(&o->task[first]) > o->session.window.size - o->free;
    uint64_t at = anew ? K3HUF_SESSION_FREE : o->free;
    uint32_t i = first;
    for (; i < o->tasks && i - first < K3HUF_SESSION_ENTRIES; i++) {
        struct task *task = &o->task[i];
        const struct k3huf_wanted *want = &task->want;
        const uint32_t lba_bytes = o->session.device.lba_bytes;
        const uint64_t room = o->session.window.size - at;
        const uint64_t brought = room_for(task);
        if (brought > room && i > first) { break; }
        o->lap += anew && i == first && brought <= room;
        task->lap = o->lap;
        task->destination = at;
        task->end = brought <= room ? at + brought : at;
        /* A part of a run without index would come unchecked. */
        const uint32_t strict = want->kind == K3HUF_KIND_PART ? K3HUF_OPTION_REQUIRE_INDEX : 0;
        if (want->refused != NULL) {
            k3huf_completion_clear(&task->completion);
        } else if (want->kind == K3HUF_KIND_NONE) {
            put_zeros(o, task, room);
        } else {
            const struct k3huf_job job = {.id = i,
                                          .kind = want->kind,
                                          .options = o->options | strict,
                                          .lba = want->offset / lba_bytes,
                                          .offset = want->offset % lba_bytes,
                                          .run_bytes = want->run_bytes,
                                          .destination = at,
                                          .destination_bytes = want->brought,
                                          .from = want->from};
            k3huf_session_submit(&o->session, &job);
        }
        if (brought > room) { /* the firmware will say so */
            return i + 1;
        }
        const uint64_t taken = (brought + PAGE - 1) / PAGE * PAGE;
        at += taken < room ? taken : room;
        o->free = at;
    }
    return i;
}

/* The next result of tasks `begin` ... `end` - 1, or *task stays NULL: not yet. *zeros: those before it that need no
 * job have been looked at. */
static enum k3huf_exit next_result(struct offload *o, uint32_t begin, uint32_t end, uint32_t *zeros, struct task **task,
                                   struct k3huf_fault *fault) {
    struct k3huf_completion c;
    bool got = false;
    *task = NULL;
    while (*zeros < end && *task == NULL) {
        if (needs_no_job(&o->task[*zeros])) { *task = &o->task[*zeros]; }
        ++*zeros;
    }
    if (*task != NULL) { return K3HUF_EXIT_OK; }
    const enum k3huf_exit code = k3huf_session_poll(&o->session, &c, &got, fault);
    if (code != K3HUF_EXIT_OK || !got) { return code; }
    if (c.id < begin || c.id >= end || o->task[c.id].done || needs_no_job(&o->task[c.id])) {
        return k3huf_fault_set(fault, K3HUF_EXIT_IO, o->window, NULL, "a completion for no job of ours");
    }
    *task = &o->task[c.id];
    (*task)->completion = c;
    return K3HUF_EXIT_OK;
}

/* Each lap fills the window from its beginning up to where its last task ends. */
static void mark_overwritten(struct offload *o) {
    uint64_t lap_end = K3HUF_SESSION_FREE;   /* of the tasks looked at that are of one lap */
    uint64_t later_end = K3HUF_SESSION_FREE; /* of all laps behind that one */
    for (uint32_t i = o->tasks; i-- > 0;) {
        struct task *task = &o->task[i];
        if (i + 1 < o->tasks && task->lap != o->task[i + 1].lap) {
            later_end = lap_end > later_end ? lap_end : later_end;
            lap_end = K3HUF_SESSION_FREE;
        }
        lap_end = task->end > lap_end ? task->end : lap_end;
        task->overwritten = task->end > task->destination && task->destination < later_end;
    }
}

/* Run all tasks; a job that fails does not keep the others from running. The first fault counts. */
static enum k3huf_exit run_tasks(struct offload *o, struct k3huf_fault *fault) {
    const bool bar = !o->quiet && !o->json && isatty(STDERR_FILENO) == 1;
    enum k3huf_exit first_code = K3HUF_EXIT_OK;
    uint64_t all = 0;
    uint64_t done = 0;
    uint64_t drawn = 0;
    for (uint32_t i = 0; i < o->tasks; i++) {
        all += room_for(&o->task[i]);
    }
    for (uint32_t next = 0; next < o->tasks;) {
        const uint32_t begin = next;
        uint32_t zeros = begin;
        next = submit_batch(o, begin);
        for (uint32_t left = next - begin; left > 0;) {
            struct task *task = NULL;
            enum k3huf_exit code = next_result(o, begin, next, &zeros, &task, fault);
            if (code != K3HUF_EXIT_OK) {
                if (bar) { clear_bar(); }
                return code;
            }
            if (task != NULL) {
                static struct k3huf_fault own;
                code = finish_task(o, task, &own);
                if (code != K3HUF_EXIT_OK && first_code == K3HUF_EXIT_OK) {
                    first_code = code;
                    *fault = own;
                }
                done += room_for(task);
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

/* How a task's bytes come, by the kind of its job. */
static const char *const as[] = {
    [K3HUF_KIND_NONE] = "zeros", [K3HUF_KIND_DECODE] = "run", [K3HUF_KIND_PART] = "part", [K3HUF_KIND_COPY] = "copy"};

static bool holds(const char *text) { return text != NULL && k3huf_json_holds(text, strlen(text)); }

static json_t *task_json(const struct task *t) {
    const struct k3huf_completion *c = &t->completion;
    const double time = seconds(c, c->ticks);
    json_t *job =
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f}", "name",
                  t->want.name, "as", as[t->want.kind], "run_bytes", (json_int_t)t->want.run_bytes, "status",
                  t->wrong ? (json_int_t)-1 : (json_int_t)c->status, "text",
                  !t->wrong       ? k3huf_job_status_text(c->status)
                  : holds(t->why) ? t->why
                                  : "not what is wanted",
                  "bytes", (json_int_t)(c->status == 0 ? t->bytes : c->bytes), "seconds", time, "storage_wait_seconds",
                  seconds(c, c->storage_ticks), "decode_seconds", seconds(c, c->decode_ticks), "write_seconds",
                  seconds(c, c->write_ticks), "raw_gb_per_second", rate((double)c->bytes, time), "drive_gb_per_second",
                  rate((double)c->read, time), "bytes_read", (json_int_t)c->read, "reads", (json_int_t)c->reads,
                  "retries", (json_int_t)c->retries, "groups", (json_int_t)c->groups, "groups_read_ahead", ahead(c));
    if (c->status != 0) {
        if (c->stripe != K3HUF_JOB_NOWHERE) {
            (void)json_object_set_new(job, "stripe", json_integer((json_int_t)c->stripe));
        }
        if (c->block != K3HUF_JOB_NOWHERE) {
            (void)json_object_set_new(job, "block", json_integer((json_int_t)c->block));
        }
        (void)json_object_set_new(job, "offset", json_integer((json_int_t)c->offset));
        (void)json_object_set_new(job, "lba", json_integer((json_int_t)c->lba));
    } else if (!t->wrong) {
        (void)json_object_set_new(job, "crc32c", json_integer((json_int_t)t->crc));
        const uint64_t destination = t->destination + t->want.skip;
        if (t->overwritten) {
            (void)json_object_set_new(job, "overwritten", json_true());
        } else {
            (void)json_object_set_new(job, "destination", json_integer((json_int_t)destination));
        }
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
        if (!t->done || t->wrong || c->status != 0) { continue; }
        const double time = seconds(c, c->ticks);
        k3huf_print_name(stdout, t->want.name, strlen(t->want.name));
        if (t->want.kind == K3HUF_KIND_NONE) {
            printf(": %" PRIu64 " bytes that are all zeros", t->bytes);
        } else if (t->want.kind == K3HUF_KIND_COPY) {
            printf(": %" PRIu64 " bytes copied in %.4f s", t->bytes, time);
        } else {
            printf(": %s%" PRIu64 " bytes decoded to %" PRIu64 " in %.4f s",
                   t->want.kind == K3HUF_KIND_PART ? "part of a run of " : "", t->want.run_bytes, t->bytes, time);
        }
        printf("%s%s%s\n",
               !t->same             ? ""
               : t->want.of_archive ? ", the same as in "
                                    : ", the same as ",
               t->same ? t->original : "", t->overwritten ? ", overwritten since" : "");
        if (t->want.kind == K3HUF_KIND_NONE) { continue; }
        printf("  %.3f GB/s of weights from %.3f GB/s of drive; %" PRIu32 " cores; storage wait %.4f s, decode %.4f s, "
               "write %.4f s (sums over cores)\n",
               rate((double)c->bytes, time), rate((double)c->read, time), o->session.device.cores,
               seconds(c, c->storage_ticks), seconds(c, c->decode_ticks), seconds(c, c->write_ticks));
        printf("  %" PRIu32 " reads, %" PRIu32 " retries, %" PRIu32 " groups, %.2f groups being read while one was "
               "decoded\n",
               c->reads, c->retries, c->groups, ahead(c));
    }
}

/* ---- the command */

static enum k3huf_exit with_session(struct offload *o, char **words, uint32_t count, struct k3huf_fault *fault) {
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (o->list && count == 0) { code = k3huf_drive_print(&o->drive, NULL, o->json, fault); }
    for (uint32_t i = 0; o->list && i < count && code == K3HUF_EXIT_OK; i++) {
        code = k3huf_drive_print(&o->drive, words[i], o->json, fault);
    }
    if (code == K3HUF_EXIT_OK && !o->list) { code = collect_tasks(o, words, count, fault); }
    if (code == K3HUF_EXIT_OK && o->tasks > 0) {
        static struct k3huf_fault printing;
        code = run_tasks(o, fault);
        mark_overwritten(o);
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
    if (o->json && !k3huf_json_holds(o->window, strlen(o->window))) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, o->window, NULL,
                               "its name is not UTF-8, and --json cannot tell it");
    }
    enum k3huf_exit code = k3huf_session_open(&o->session, o->window, o->create, (double)o->timeout_ms / 1e3, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    k3huf_drive_init(&o->drive, &o->session);
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
    k3huf_drive_free(&o->drive);
    for (uint32_t i = 0; i < o->tasks; i++) {
        free(o->task[i].want.name);
        free(o->task[i].why);
    }
    free(o->task);
    return code;
}

static enum k3huf_exit run_offload(int argc, char **argv, bool *help, struct k3huf_fault *fault) {
    struct offload o = {.timeout_ms = 60000, .free = K3HUF_SESSION_FREE};
    bool trace = false;
    bool require_index = false;
    const struct k3huf_option options[] = {{"window", 0, K3HUF_OPTION_TEXT, &o.window, 0, 0},
                                           {"create", 0, K3HUF_OPTION_NUMBER, &o.create, K3HUF_SESSION_FREE, INT64_MAX},
                                           {"timeout", 0, K3HUF_OPTION_NUMBER, &o.timeout_ms, 1, 86400000},
                                           {"list", 0, K3HUF_OPTION_ON, &o.list, 0, 0},
                                           {"all", 0, K3HUF_OPTION_ON, &o.all, 0, 0},
                                           {"json", 0, K3HUF_OPTION_ON, &o.json, 0, 0},
                                           {"trace", 0, K3HUF_OPTION_ON, &trace, 0, 0},
                                           {"require-index", 0, K3HUF_OPTION_ON, &require_index, 0, 0},
                                           {"shutdown", 0, K3HUF_OPTION_ON, &o.shutdown, 0, 0},
                                           {"quiet", 'q', K3HUF_OPTION_ON, &o.quiet, 0, 0},
                                           {0}};
    enum k3huf_exit code = k3huf_options_take(argc, argv, options, help, fault);
    if (code != K3HUF_EXIT_OK || *help) { return code; }
    o.options = (trace ? K3HUF_OPTION_TRACE : 0) | (require_index ? K3HUF_OPTION_REQUIRE_INDEX : 0);
    const uint32_t words = (uint32_t)(argc - optind);
    if (o.window == NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "offload: --window FILE is needed");
    }
    if (o.list && o.all) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "offload: --list or --all, not both");
    }
    if (!o.list && !o.all && words == 0 && !o.shutdown) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "offload: no run named (--all takes every one, --list shows them)");
    }
    return offload(&o, argv + optind, words, fault);
}

const struct k3huf_command k3huf_command_offload = {
    "offload", "have firmware decode runs and tensors into host memory",
    "usage: k3huf_host offload --window FILE [OPTIONS] WHAT[=ORIGINAL]...\n"
    "       k3huf_host offload --window FILE --list [ARCHIVE]\n"
    "Post a job for each WHAT to the firmware behind the window FILE, wait for all of them, and compare each with its\n"
    "ORIGINAL where one is given. WHAT is one of\n"
    "  RUN                      a run, by its name in the drive's table of contents (k3huf_host image)\n"
    "  ARCHIVE/TENSOR           a tensor of an archive of that table; * ? and [ ] in TENSOR stand for many, as in a\n"
    "                           shell, unless a tensor has just that name. ORIGINAL is the file that was packed\n"
    "  ARCHIVE                  every tensor of it\n"
    "  @OFFSET/TENSOR, @OFFSET  the same of an archive that begins at that byte of the drive, table or not\n"
    "  @OFFSET:BYTES:RAW-BYTES  a run at that byte of the drive\n"
    "What is brought stays in the window, one behind the other, as long as there is room; then it begins anew, and\n"
    "what was overwritten is marked. Nothing of an archive comes unchecked. A tensor that is some of a run is decoded\n"
    "alone, once the run's block index is found to be that of the archive's entry, by sizes and CRC; stored bytes and\n"
    "runs without index are read as a whole, for the CRC of their entry.\n\n"
    "      --window FILE    the memory that is shared with the firmware\n"
    "      --create N       make it N bytes large where it does not exist (K, M, G are understood)\n"
    "      --list           print the drive's table of contents, or the tensors of ARCHIVE\n"
    "      --all            every run of the table of contents, and every tensor of its archives\n"
    "      --timeout MS     longest wait for the firmware's answer, and for each completion (default 60000)\n"
    "      --require-index  refuse stripes without block index, which have no checksums\n"
    "      --trace          the firmware logs every block group\n"
    "      --shutdown       have the firmware stop in the end\n"
    "      --json           print results as JSON: one with a destination is there; status -1 is one that the host\n"
    "                       refuses, and text says why\n"
    "  -q, --quiet          print nothing but faults\n"
    "  -h, --help           print this\n",
    run_offload};
