/* drive.c - see drive.h. May not run jobs that decode. */
#include "drive.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_print.h"
#include "k3huf_image.h"

#define TABLE "(table of contents)"

void k3huf_drive_init(struct k3huf_drive *drive, struct k3huf_session *session) {
    *drive = (struct k3huf_drive){.session = session};
}

static void free_archive(struct k3huf_drive_archive *archive) {
    for (uint32_t i = 0; archive != NULL && archive->run != NULL && i < archive->archive.page.nentries; i++) {
        free(archive->run[i].text);
    }
    if (archive != NULL) {
        k3huf_archive_close(&archive->archive);
        free(archive->run);
        free(archive->name);
    }
    free(archive);
}

void k3huf_drive_free(struct k3huf_drive *drive) {
    for (uint32_t i = 0; i < drive->archives; i++) {
        free_archive(drive->archive[i]);
    }
    free(drive->archive);
    free(drive->table);
}

/* ---- reading through the firmware, by way of the window */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t drive_bytes(const struct k3huf_drive *drive) {
    return drive->session->device.lba_count * drive->session->device.lba_bytes;
}

/* Room for destinations. */
static uint64_t room(const struct k3huf_drive *drive) { return drive->session->window.size - K3HUF_SESSION_FREE; }

/* Run a job whose destination is the room's beginning, and wait. */
static enum k3huf_exit run_job(struct k3huf_drive *drive, const char *name, const struct k3huf_job *job,
                               struct k3huf_completion *completion, struct k3huf_fault *fault) {
    k3huf_session_submit(drive->session, job);
    const enum k3huf_exit code = k3huf_session_wait(drive->session, completion, fault);
    drive->lost = code != K3HUF_EXIT_OK;
    if (drive->lost) { return code; }
    return completion->status == 0 ? code : k3huf_session_job_fault(name, completion, fault);
}

static enum k3huf_exit cut_short(const struct k3huf_drive_archive *archive, uint64_t offset,
                                 struct k3huf_fault *fault) {
    return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, archive->name, NULL,
                           "offset %" PRIu64 ": the archive is cut short: the drive ends", offset);
}

/* A k3huf_input_get: `context` is an archive, whose bytes those are. */
static enum k3huf_exit copy(void *context, uint64_t offset, uint8_t *to, size_t size, struct k3huf_fault *fault) {
    const struct k3huf_drive_archive *archive = context;
    struct k3huf_drive *drive = archive->drive;
    const uint64_t end = drive_bytes(drive);
    if (archive->offset > end || offset > end - archive->offset || size > end - archive->offset - offset) {
        return cut_short(archive, offset, fault);
    }
    const uint32_t lba_bytes = drive->session->device.lba_bytes;
    while (size > 0) {
        const uint64_t now = least(size, room(drive));
        const uint64_t at = archive->offset + offset;
        const struct k3huf_job job = {.kind = K3HUF_KIND_COPY,
                                      .lba = at / lba_bytes,
                                      .offset = at % lba_bytes,
                                      .run_bytes = now,
                                      .destination = K3HUF_SESSION_FREE,
                                      .destination_bytes = now};
        struct k3huf_completion c;
        if (now == 0) {
            return k3huf_fault_set(fault, K3HUF_EXIT_IO, drive->session->name, NULL, "has no room for a table");
        }
        const enum k3huf_exit code = run_job(drive, archive->name, &job, &c, fault);
        if (code != K3HUF_EXIT_OK) { return code; }
        memcpy(to, drive->session->window.bytes + K3HUF_SESSION_FREE, (size_t)now);
        to += now;
        offset += now;
        size -= (size_t)now;
    }
    return K3HUF_EXIT_OK;
}

/* ---- the image's table of contents */

static const uint8_t *entry_at(const struct k3huf_drive *drive, uint32_t number) {
    return drive->table + K3HUF_IMAGE_HEAD_BYTES + number * K3HUF_IMAGE_ENTRY_BYTES;
}

static const char *entry_name(const uint8_t *entry) { return (const char *)entry + K3HUF_IMAGE_NAME; }

/* Whether two entries have a byte of the drive in common. */
static bool overlap(const uint8_t *a, const uint8_t *b) {
    const uint64_t a_at = k3huf_get64(a + K3HUF_IMAGE_OFFSET);
    const uint64_t b_at = k3huf_get64(b + K3HUF_IMAGE_OFFSET);
    const uint64_t a_bytes = k3huf_get64(a + K3HUF_IMAGE_RUN_BYTES);
    const uint64_t b_bytes = k3huf_get64(b + K3HUF_IMAGE_RUN_BYTES);
    return a_bytes > 0 && b_bytes > 0 && (a_at <= b_at ? b_at - a_at < a_bytes : a_at - b_at < b_bytes);
}

/* A name stands for one thing. And entries have bytes of their own, so that what the tables of all archives take here
 * is bounded by what is on the drive. */
static enum k3huf_exit check_entries(const struct k3huf_drive *drive, struct k3huf_fault *fault) {
    for (uint32_t i = 0; i < drive->entries; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const uint8_t *a = entry_at(drive, j);
            const uint8_t *b = entry_at(drive, i);
            if (strcmp(entry_name(a), entry_name(b)) == 0) {
                return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, TABLE, NULL, "two entries have the name %s",
                                       entry_name(a));
            }
            if (overlap(a, b)) {
                return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, TABLE, NULL, "%s and %s overlap", entry_name(a),
                                       entry_name(b));
            }
        }
    }
    return K3HUF_EXIT_OK;
}

/* Have the firmware read the table, and check it once more here. */
static enum k3huf_exit fetch_table(struct k3huf_drive *drive, struct k3huf_fault *fault) {
    struct k3huf_completion c;
    const uint64_t most = least(room(drive), K3HUF_IMAGE_BYTES_MAX);
    const struct k3huf_job job = {.kind = K3HUF_KIND_LIST,
                                  .run_bytes = least(drive_bytes(drive), K3HUF_IMAGE_BYTES_MAX),
                                  .destination = K3HUF_SESSION_FREE,
                                  .destination_bytes = most};
    if (drive->table != NULL) { return K3HUF_EXIT_OK; }
    enum k3huf_exit code = run_job(drive, TABLE, &job, &c, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    uint8_t *table = malloc(K3HUF_IMAGE_BYTES_MAX);
    if (table == NULL) { return k3huf_fault_memory(fault, K3HUF_IMAGE_BYTES_MAX); }
    const uint64_t size = least(c.bytes, most);
    memcpy(table, drive->session->window.bytes + K3HUF_SESSION_FREE, (size_t)size);
    const uint32_t table_bytes = size < K3HUF_IMAGE_HEAD_BYTES ? 0 : k3huf_image_table_bytes(table);
    if (table_bytes == 0 || table_bytes > size || !k3huf_image_table_sound(table, table_bytes)) {
        free(table);
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, TABLE, NULL, "what the firmware listed is not sound");
    }
    drive->table = table;
    drive->entries = (table_bytes - K3HUF_IMAGE_HEAD_BYTES) / K3HUF_IMAGE_ENTRY_BYTES;
    code = check_entries(drive, fault);
    if (code != K3HUF_EXIT_OK) {
        free(drive->table);
        drive->table = NULL;
        drive->entries = 0;
    }
    return code;
}

static bool entry_is_archive(const uint8_t *entry) {
    return k3huf_get32(entry + K3HUF_IMAGE_KIND) == K3HUF_IMAGE_KIND_ARCHIVE;
}

/* The entry whose name is the first `size` bytes of `name`; NULL: there is none. */
static const uint8_t *entry_named(const struct k3huf_drive *drive, const char *name, size_t size) {
    for (uint32_t i = 0; i < drive->entries; i++) {
        const char *found = entry_name(entry_at(drive, i));
        if (strlen(found) == size && memcmp(found, name, size) == 0) { return entry_at(drive, i); }
    }
    return NULL;
}

static enum k3huf_exit give_run(const struct k3huf_wanted *run, const char *name, k3huf_take_wanted *take,
                                void *context, struct k3huf_fault *fault) {
    struct k3huf_wanted wanted = *run;
    wanted.kind = K3HUF_KIND_DECODE;
    wanted.brought = wanted.bytes;
    wanted.name = strdup(name);
    return wanted.name == NULL ? k3huf_fault_memory(fault, strlen(name)) : take(context, &wanted, fault);
}

static enum k3huf_exit give_entry(const uint8_t *entry, k3huf_take_wanted *take, void *context,
                                  struct k3huf_fault *fault) {
    const struct k3huf_wanted run = {.offset = k3huf_get64(entry + K3HUF_IMAGE_OFFSET),
                                     .run_bytes = k3huf_get64(entry + K3HUF_IMAGE_RUN_BYTES),
                                     .bytes = k3huf_get64(entry + K3HUF_IMAGE_RAW_BYTES)};
    return give_run(&run, entry_name(entry), take, context, fault);
}

/* ---- archives */

/* The archive at byte `offset` of the drive, of `bytes` bytes (0: its first page says how many), from now on known as
 * `name`. */
static enum k3huf_exit open_archive(struct k3huf_drive *drive, const char *name, uint64_t offset, uint64_t bytes,
                                    struct k3huf_drive_archive **opened, struct k3huf_fault *fault) {
    for (uint32_t i = 0; i < drive->archives; i++) {
        *opened = drive->archive[i];
        if ((*opened)->offset == offset && strcmp((*opened)->name, name) == 0) { return K3HUF_EXIT_OK; }
    }
    struct k3huf_drive_archive *archive = calloc(1, sizeof *archive);
    struct k3huf_drive_archive **all = realloc(drive->archive, (drive->archives + (size_t)1) * sizeof(void *));
    if (all != NULL) { drive->archive = all; }
    if (archive != NULL) { archive->name = strdup(name); }
    if (archive == NULL || all == NULL || archive->name == NULL) {
        free_archive(archive);
        return k3huf_fault_memory(fault, sizeof *archive);
    }
    archive->drive = drive;
    archive->offset = offset;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (bytes == 0) {
        uint8_t page[K3HUF_ARCHIVE_PAGE] = {0};
        code = copy(archive, 0, page, sizeof page, fault);
        bytes = k3huf_archive_page_bytes(page);
        if (bytes < sizeof page) { bytes = sizeof page; /* what it is instead is said when it is opened */ }
    }
    if (code == K3HUF_EXIT_OK) {
        k3huf_input_by(&archive->input, copy, archive, bytes, archive->name);
        code = k3huf_archive_open(&archive->archive, &archive->input, fault);
    }
    if (code == K3HUF_EXIT_OK && archive->archive.page.archive_bytes > drive_bytes(drive) - offset) {
        code = cut_short(archive, drive_bytes(drive) - offset, fault);
    }
    if (code == K3HUF_EXIT_OK) {
        const uint32_t n = archive->archive.page.nentries;
        archive->run = calloc(n == 0 ? 1 : n, sizeof *archive->run);
        if (archive->run == NULL) { code = k3huf_fault_memory(fault, n * sizeof *archive->run); }
    }
    if (code != K3HUF_EXIT_OK) {
        free_archive(archive);
        return code;
    }
    drive->archive[drive->archives++] = archive;
    *opened = archive;
    return K3HUF_EXIT_OK;
}

static enum k3huf_exit open_entry(struct k3huf_drive *drive, const uint8_t *entry, struct k3huf_drive_archive **opened,
                                  struct k3huf_fault *fault) {
    const uint64_t bytes = k3huf_get64(entry + K3HUF_IMAGE_RUN_BYTES);
    if (bytes == 0) {
        return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, entry_name(entry), NULL, "an archive of 0 bytes");
    }
    return open_archive(drive, entry_name(entry), k3huf_get64(entry + K3HUF_IMAGE_OFFSET), bytes, opened, fault);
}

/* Find out, once, whether an entry's run is the one that the archive's table tells of. That it is not is for those who
 * want some of it; a fault here is one of the session. */
static enum k3huf_exit look_at_run(struct k3huf_drive_archive *from, uint32_t number,
                                   const struct k3huf_archive_entry *entry, struct k3huf_fault *fault) {
    struct k3huf_drive_run *run = &from->run[number];
    if (run->known) { return K3HUF_EXIT_OK; }
    char label[K3HUF_ENTRY_LABEL_BYTES];
    struct k3huf_input view;
    k3huf_archive_label(label, from->name, k3huf_archive_name(&from->archive, entry->name_at), entry->name_bytes,
                        entry->offset);
    k3huf_input_view(&view, &from->input, entry->offset, entry->bytes, label);
    run->code = k3huf_archive_check_run(&view, entry, &run->indexed, fault);
    if (from->drive->lost || run->code == K3HUF_EXIT_INTERNAL) { return run->code; }
    if (run->code != K3HUF_EXIT_OK) {
        run->text = strdup(fault->text);
        if (run->text == NULL) { return k3huf_fault_memory(fault, strlen(fault->text)); }
    }
    run->known = true;
    return K3HUF_EXIT_OK;
}

/* Some of a run: a part, if its blocks have CRCs and they are those of the entry; where it has none, all of it. */
static enum k3huf_exit want_part(struct k3huf_drive_archive *from, uint32_t number,
                                 const struct k3huf_archive_entry *entry, struct k3huf_wanted *wanted,
                                 struct k3huf_fault *fault) {
    const struct k3huf_drive_run *run = &from->run[number];
    const enum k3huf_exit code = look_at_run(from, number, entry, fault);
    wanted->kind = K3HUF_KIND_PART;
    wanted->refused = run->text;
    wanted->refused_code = run->code;
    if (code == K3HUF_EXIT_OK && run->text == NULL && !run->indexed) {
        wanted->kind = K3HUF_KIND_DECODE;
        wanted->brought = wanted->entry_bytes;
        wanted->skip = wanted->from;
        wanted->from = 0;
    }
    return code;
}

/* Where the tensor's bytes are: all of an entry, or some of it. */
static enum k3huf_exit give_tensor(struct k3huf_drive_archive *from, const struct k3huf_archive_tensor *tensor,
                                   k3huf_take_wanted *take, void *context, struct k3huf_fault *fault) {
    const struct k3huf_archive *archive = &from->archive;
    struct k3huf_wanted wanted = {.kind = K3HUF_KIND_NONE,
                                  .brought = tensor->bytes,
                                  .bytes = tensor->bytes,
                                  .of_archive = true,
                                  .source_at = tensor->source_offset,
                                  .source_bytes = archive->page.source_bytes};
    const size_t size = strlen(from->name) + 1 + tensor->name_bytes + 1;
    wanted.name = malloc(size);
    if (wanted.name == NULL) { return k3huf_fault_memory(fault, size); }
    (void)snprintf(wanted.name, size, "%s/%.*s", from->name, (int)tensor->name_bytes,
                   k3huf_archive_name(archive, tensor->name_at));
    enum k3huf_exit code = K3HUF_EXIT_OK;
    if (tensor->bytes > 0) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(archive->toc, tensor->entry, &entry);
        const uint64_t at = tensor->source_offset - entry.source_offset;
        wanted.offset = from->offset + entry.offset;
        wanted.run_bytes = entry.bytes;
        wanted.entry_bytes = entry.raw_bytes;
        wanted.entry_crc = entry.raw_crc;
        if (entry.kind == K3HUF_ENTRY_STORED) {
            wanted.kind = K3HUF_KIND_COPY;
            wanted.from = at;
        } else if (entry.kind == K3HUF_ENTRY_RUN) {
            wanted.kind = K3HUF_KIND_DECODE;
            wanted.from = at;
            if (tensor->bytes < entry.raw_bytes) { code = want_part(from, tensor->entry, &entry, &wanted, fault); }
        }
    }
    if (code != K3HUF_EXIT_OK) {
        free(wanted.name);
        return code;
    }
    return take(context, &wanted, fault);
}

/* Whether a tensor's name matches; a name is not ended by 0. NULL matches every one. */
static enum k3huf_exit matches(const struct k3huf_drive_archive *from, const struct k3huf_archive_tensor *tensor,
                               const char *pattern, bool *does, struct k3huf_fault *fault) {
    *does = true;
    if (pattern == NULL) { return K3HUF_EXIT_OK; }
    char *name = strndup(k3huf_archive_name(&from->archive, tensor->name_at), tensor->name_bytes);
    if (name == NULL) { return k3huf_fault_memory(fault, tensor->name_bytes); }
    *does = fnmatch(pattern, name, 0) == 0;
    free(name);
    return K3HUF_EXIT_OK;
}

/* The tensor of that name, or all that match it; NULL: all. */
static enum k3huf_exit give_tensors(struct k3huf_drive_archive *from, const char *name, k3huf_take_wanted *take,
                                    void *context, struct k3huf_fault *fault) {
    struct k3huf_archive_tensor tensor;
    if (name != NULL && k3huf_archive_find(&from->archive, name, &tensor)) {
        return give_tensor(from, &tensor, take, context, fault);
    }
    bool any = name == NULL;
    enum k3huf_exit code = K3HUF_EXIT_OK;
    for (uint32_t i = 0; i < from->archive.page.ntensors && code == K3HUF_EXIT_OK; i++) {
        k3huf_archive_tensor_read(&from->archive.page, from->archive.toc, i, &tensor);
        bool does = false;
        code = matches(from, &tensor, name, &does, fault);
        if (code == K3HUF_EXIT_OK && does) {
            any = true;
            code = give_tensor(from, &tensor, take, context, fault);
        }
    }
    if (code == K3HUF_EXIT_OK && !any) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, from->name, NULL, "has no tensor '%s' (--list %s shows them)",
                               name, from->name);
    }
    return code;
}

/* ---- words */

/* The decimal number at *text; *text moves behind it. */
static bool number(const char **text, uint64_t *value) {
    const char *at = *text;
    for (*value = 0; *at >= '0' && *at <= '9'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (*value > (UINT64_MAX - digit) / 10) { return false; }
        *value = 10 * *value + digit;
    }
    const bool any = at > *text;
    *text = at;
    return any;
}

/* @OFFSET, or @OFFSET/TENSOR: *tensor gets what is behind the slash, or NULL. */
static bool archive_by_number(const char *word, uint64_t *offset, const char **tensor) {
    const char *at = word + 1;
    if (!number(&at, offset) || (*at != '\0' && *at != '/')) { return false; }
    *tensor = *at == '/' ? at + 1 : NULL;
    return true;
}

static bool run_by_numbers(const char *word, struct k3huf_wanted *run) {
    const char *at = word + 1;
    return number(&at, &run->offset) && *at++ == ':' && number(&at, &run->run_bytes) && *at++ == ':' &&
           number(&at, &run->bytes) && *at == '\0';
}

/* The archive that `word` begins with; *archive stays NULL where it names a run, whose entry, if any, *run gets. */
static enum k3huf_exit find_archive(struct k3huf_drive *drive, const char *word, struct k3huf_drive_archive **archive,
                                    const char **tensor, const uint8_t **run, struct k3huf_fault *fault) {
    const size_t length = strcspn(word, "/");
    *archive = NULL;
    *tensor = NULL;
    *run = NULL;
    if (*word == '@') {
        uint64_t offset = 0;
        char name[32];
        if (!archive_by_number(word, &offset, tensor)) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                                   "'%s' is not @OFFSET:BYTES:RAW-BYTES, @OFFSET or @OFFSET/TENSOR", word);
        }
        if (offset >= drive_bytes(drive)) {
            return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "%s: the drive has %" PRIu64 " bytes", word,
                                   drive_bytes(drive));
        }
        (void)snprintf(name, sizeof name, "@%" PRIu64, offset);
        return open_archive(drive, name, offset, 0, archive, fault);
    }
    const enum k3huf_exit code = fetch_table(drive, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    const uint8_t *entry = entry_named(drive, word, length);
    if (entry == NULL || (!entry_is_archive(entry) && word[length] != '\0')) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "the drive has no run '%s' (--list shows them)",
                               word);
    }
    if (!entry_is_archive(entry)) {
        *run = entry;
        return K3HUF_EXIT_OK;
    }
    *tensor = word[length] == '/' ? word + length + 1 : NULL;
    return open_entry(drive, entry, archive, fault);
}

enum k3huf_exit k3huf_drive_find(struct k3huf_drive *drive, const char *word, k3huf_take_wanted *take, void *context,
                                 struct k3huf_fault *fault) {
    struct k3huf_drive_archive *archive = NULL;
    struct k3huf_wanted run = {.offset = 0};
    const char *tensor = NULL;
    const uint8_t *entry = NULL;
    if (*word == '@' && run_by_numbers(word, &run)) { return give_run(&run, word, take, context, fault); }
    const enum k3huf_exit code = find_archive(drive, word, &archive, &tensor, &entry, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    return archive == NULL ? give_entry(entry, take, context, fault)
                           : give_tensors(archive, tensor, take, context, fault);
}

enum k3huf_exit k3huf_drive_all(struct k3huf_drive *drive, k3huf_take_wanted *take, void *context,
                                struct k3huf_fault *fault) {
    enum k3huf_exit code = fetch_table(drive, fault);
    for (uint32_t i = 0; i < drive->entries && code == K3HUF_EXIT_OK; i++) {
        struct k3huf_drive_archive *archive = NULL;
        if (!entry_is_archive(entry_at(drive, i))) {
            code = give_entry(entry_at(drive, i), take, context, fault);
            continue;
        }
        code = open_entry(drive, entry_at(drive, i), &archive, fault);
        if (code == K3HUF_EXIT_OK) { code = give_tensors(archive, NULL, take, context, fault); }
    }
    return code;
}

/* ---- printing */

static enum k3huf_exit print_table(const struct k3huf_drive *drive, bool json, struct k3huf_fault *fault) {
    for (uint32_t i = 0; json && i < drive->entries; i++) {
        const char *name = entry_name(entry_at(drive, i));
        if (!k3huf_json_holds(name, strlen(name))) {
            return k3huf_fault_set(fault, K3HUF_EXIT_CORRUPT, TABLE, NULL,
                                   "a name is not UTF-8, and --json cannot tell it");
        }
    }
    json_t *runs = json_array();
    json_t *archives = json_array();
    for (uint32_t i = 0; i < drive->entries; i++) {
        const uint8_t *entry = entry_at(drive, i);
        const uint64_t offset = k3huf_get64(entry + K3HUF_IMAGE_OFFSET);
        const uint64_t run_bytes = k3huf_get64(entry + K3HUF_IMAGE_RUN_BYTES);
        const uint64_t raw_bytes = k3huf_get64(entry + K3HUF_IMAGE_RAW_BYTES);
        const bool is_archive = entry_is_archive(entry);
        (void)json_array_append_new(is_archive ? archives : runs,
                                    json_pack("{s:s, s:I, s:I, s:I}", "name", entry_name(entry), "offset",
                                              (json_int_t)offset, is_archive ? "archive_bytes" : "run_bytes",
                                              (json_int_t)run_bytes, is_archive ? "source_bytes" : "raw_bytes",
                                              (json_int_t)raw_bytes));
        if (!json) {
            k3huf_print_name(stdout, entry_name(entry), strlen(entry_name(entry)));
            printf(": byte %" PRIu64 ", %s%" PRIu64 " bytes, decode to %" PRIu64 "\n", offset,
                   is_archive ? "an archive of " : "", run_bytes, raw_bytes);
        }
    }
    json_t *root = json_pack("{s:o, s:o}", "runs", runs, "archives", archives);
    if (json) { return k3huf_json_print(root, fault); }
    json_decref(root);
    return K3HUF_EXIT_OK;
}

enum k3huf_exit k3huf_drive_print(struct k3huf_drive *drive, const char *word, bool json, struct k3huf_fault *fault) {
    const struct k3huf_list_options options = {.tensors = true, .json = json};
    struct k3huf_drive_archive *archive = NULL;
    const char *tensor = NULL;
    const uint8_t *run = NULL;
    enum k3huf_exit code =
        word == NULL ? fetch_table(drive, fault) : find_archive(drive, word, &archive, &tensor, &run, fault);
    if (code != K3HUF_EXIT_OK) { return code; }
    if (word == NULL) { return print_table(drive, json, fault); }
    if (archive == NULL || tensor != NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL, "%s: is no archive, whose tensors could be listed",
                               word);
    }
    return k3huf_archive_print(&archive->archive, &options, fault);
}
