/* platform.h - the platform that the soak runs on: the POSIX port with an engine in it, a drive of soak_drive's bytes,
 * and faults of drive, window and cores between the two. Knows nothing of jobs, but where their destinations begin. */
#ifndef K3HUF_TEST_SOAK_PLATFORM_H
#define K3HUF_TEST_SOAK_PLATFORM_H

#include "drive.h"
#include "posix_port.h"
#include "soak.h"
#include "window_host.h"

#define SOAK_FILL 0x5Au /* of all of the window that nobody has written */
#define SOAK_RING_ENTRIES 32u
#define SOAK_SQ 4096u
#define SOAK_CQ (SOAK_SQ + SOAK_RING_ENTRIES * K3HUF_JOB_BYTES)
#define SOAK_RINGS_END (SOAK_CQ + SOAK_RING_ENTRIES * K3HUF_COMPLETION_BYTES)
#define SOAK_SLOTS 6u /* destinations */
#define SOAK_SLOT_AT 65536u
#define SOAK_SLOT_BYTES (SOAK_RAW_MAX + 16384u)
#define SOAK_WINDOW_BYTES (SOAK_SLOT_AT + SOAK_SLOTS * SOAK_SLOT_BYTES)

extern struct soak_drive soak_drive;
extern struct k3huf_posix soak_posix;
extern struct k3huf_window_host soak_host;

/* The image and window files; false: errno says why. */
bool soak_files_write(void);
void soak_files_remove(void);

/* A platform by chance, with the engine on a thread of its own. Close it once the engine was told to stop. */
void soak_platform_open(const struct k3huf_inflight_config *config);
void soak_platform_close(void);

/* A word of the device area; wait for a value of it. */
uint32_t soak_device(uint32_t field);
void soak_await_device(uint32_t field, uint32_t value);

/* Bytes of the window that nobody may have written: between two places; all, where every destination is filled anew. */
void soak_check_fill(uint64_t begin, uint64_t end, const char *what);
void soak_check_window(void);

/* ---- faults; set and cleared while no job is under way */

/* `hang`: reads that are never answered may be among them, for which the engine's time-out is short. */
void soak_faults_set(bool hang);
void soak_faults_clear(void);

/* What is set: the drive's lasting fault (count 0: none), a run that meets a fault of the drive (or NULL), and whether
 * nothing can be written to destinations. */
const struct k3huf_posix_fault *soak_faults_lasting(void);
const struct soak_run *soak_faults_meeting(void);
bool soak_faults_window(void);

#endif
