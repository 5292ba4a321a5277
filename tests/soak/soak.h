/* soak.h - what the parts of the soak have in common: chance, time, the one way to fail, and the counts that are
 * printed in the end. */
#ifndef K3HUF_TEST_SOAK_H
#define K3HUF_TEST_SOAK_H

#include "inflight.h"
#include "rng.h"

#define SOAK_WAIT_SECONDS 240u /* for anything: it is lost */
#define SOAK_ATTEMPTS 4u       /* of a read */

/* How a session ends: when all is done; with jobs under way; by the firmware, for a bad phase, for more completions
 * taken than there were, for none taken. */
enum soak_leaving { LEAVE_DONE, LEAVE_JOBS, LEAVE_PHASE, LEAVE_TAKEN, LEAVE_FULL, LEAVINGS };

extern struct soak_counts {
    uint64_t rounds, cores[K3HUF_INFLIGHT_CORES + 1u], sessions, refused_sessions, jobs, cancels, found, abandoned;
    uint64_t bytes, read_faults, window_faults, cut_files, short_reads, left_by[LEAVINGS];
    uint64_t core[K3HUF_STATUS_COUNT], job[32]; /* completions by status */
} soak_count;

/* Something is not as it must be: ends the program with a line that names seed and round. */
_Noreturn void soak_found(const char *format, ...);

/* The round's chance; of the main thread alone. */
uint32_t soak_below(uint32_t bound);
bool soak_chance(uint32_t one_in);

double soak_seconds(void); /* since anything */
void soak_pause(void);     /* for a moment */

#endif
