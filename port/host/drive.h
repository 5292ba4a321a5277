/* drive.h - what lies on the drive behind a firmware, by name: runs and archives of an image's table of contents
 * (k3huf_image.h), archives at any byte, and the tensors in them. Names become places here, on the host: the firmware
 * is only asked to LIST and to COPY, and is told numbers. Tables are read once a session and checked in full.
 */
#ifndef K3HUF_HOST_DRIVE_H
#define K3HUF_HOST_DRIVE_H

#include "archive_list.h"
#include "session.h"

#define K3HUF_KIND_NONE 0u /* no job: there are no bytes, or all of them are zeros */

/* Something to bring from the drive: a job, but for its destination. Of an archive nothing is to go unchecked: of a
 * stored entry all is read, whatever is brought, since the entry's CRC is all that there is; so it is of a run without
 * block index. A part is only of a run whose block index has been found to be the one of the archive's entry. */
struct k3huf_wanted {
    char *name;         /* malloc'ed; whoever takes it frees it */
    uint32_t kind;      /* K3HUF_KIND_DECODE, _PART, _COPY or _NONE */
    uint64_t offset;    /* byte of the drive where the run, or what is copied, begins */
    uint64_t run_bytes; /* of it on the drive */
    uint64_t from;      /* of a part or copy: the first byte wanted, in the run's raw bytes or in what is copied */
    uint64_t brought;   /* bytes that arrive; of a run that is no archive's, at most */
    uint64_t skip;      /* of those, before the wanted ones */
    uint64_t bytes;     /* wanted */
    /* Of an archive's tensor. */
    bool of_archive;
    uint64_t entry_bytes; /* its entry's raw bytes, and their CRC-32C */
    uint32_t entry_crc;
    uint64_t source_at; /* the wanted bytes' place in the source, the file that was packed */
    uint64_t source_bytes;
    /* Why it cannot be brought, as a fault has it, and its code; NULL: it can. The drive's. */
    const char *refused;
    enum k3huf_exit refused_code;
};

/* Takes what was found. What it returns stops the search, unless it is K3HUF_EXIT_OK. */
typedef enum k3huf_exit k3huf_take_wanted(void *context, struct k3huf_wanted *wanted, struct k3huf_fault *fault);

/* What was found out of an entry that is a run (k3huf_archive_check_run). */
struct k3huf_drive_run {
    bool known;
    bool indexed;
    enum k3huf_exit code;
    char *text; /* malloc'ed, of the fault; NULL: it is sound */
};

/* An archive on the drive. */
struct k3huf_drive_archive {
    struct k3huf_drive *drive;
    char *name; /* malloc'ed */
    uint64_t offset;
    struct k3huf_input input; /* reads through the firmware */
    struct k3huf_archive archive;
    struct k3huf_drive_run *run; /* malloc'ed, one an entry */
};

struct k3huf_drive {
    struct k3huf_session *session;
    bool lost;      /* the firmware did not answer: nothing more is to be asked of it */
    uint8_t *table; /* malloc'ed; NULL: not asked for yet */
    uint32_t entries;
    struct k3huf_drive_archive **archive; /* malloc'ed, and each of them */
    uint32_t archives;
};

void k3huf_drive_init(struct k3huf_drive *drive, struct k3huf_session *session);
void k3huf_drive_free(struct k3huf_drive *drive);

/* Give what `word` names to `take`: NAME of a run, ARCHIVE (all tensors), ARCHIVE/TENSOR (the tensor of that name, or
 * else all that match it as a pattern of the shell); ARCHIVE may also be @OFFSET, a byte of the drive, and
 * @OFFSET:BYTES:RAW-BYTES is a run. K3HUF_EXIT_USAGE where there is no such thing; K3HUF_EXIT_CORRUPT and
 * K3HUF_EXIT_IO as the tables of contents have it. */
enum k3huf_exit k3huf_drive_find(struct k3huf_drive *drive, const char *word, k3huf_take_wanted *take, void *context,
                                 struct k3huf_fault *fault);

/* The same for every run and every tensor of the image. */
enum k3huf_exit k3huf_drive_all(struct k3huf_drive *drive, k3huf_take_wanted *take, void *context,
                                struct k3huf_fault *fault);

/* Print the image's table of contents, or, with a word that names one, an archive's tensors. */
enum k3huf_exit k3huf_drive_print(struct k3huf_drive *drive, const char *word, bool json, struct k3huf_fault *fault);

#endif
