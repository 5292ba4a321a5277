/* jobs.h - the jobs of the soak's session: made by chance, with all that each may come to, and held to it when they
 * complete. Knows nothing of how sessions begin and end. */
#ifndef K3HUF_TEST_SOAK_JOBS_H
#define K3HUF_TEST_SOAK_JOBS_H

#include "platform.h"

/* From here on completions are looked for; from here on they are nobody's. */
void soak_jobs_begin(void);
void soak_jobs_end(void);

/* Submit a job by chance; waits, and takes completions, where there is no room. */
void soak_jobs_submit(void);
/* Submit a cancel of nothing, and take no completion. */
void soak_jobs_submit_untaken(void);

/* Take a completion, if there is one, and check all that must hold of it. */
bool soak_jobs_take(void);
/* Take completions until `done`. */
void soak_jobs_await(bool (*done)(void), const char *what);
bool soak_jobs_none_open(void);
bool soak_jobs_ring_has_room(void);
void soak_jobs_no_more(void); /* there is no completion */

/* Every job may be cancelled from now on. */
void soak_jobs_allow_cancel(void);
uint32_t soak_jobs_open(void); /* how many are under way */
/* Those will not complete; check their destinations. `taken` false: no firmware ever had them. */
void soak_jobs_abandon(bool taken);

#endif
