/* cores.h - further cores: start, wait and wake, and how deep their stacks went.
 *
 * Cores are started by PSCI (Arm DEN 0022). Core n is the machine's core with affinity n, as QEMU numbers up to eight.
 */
#ifndef CORES_H
#define CORES_H

#include "virt.h"

/* Cores that this port has stacks for, the first one included. */
#ifndef VIRT_CORES
#define VIRT_CORES 4u
#endif

/* Learn how the machine takes PSCI calls, and let WFE end about a thousand times a second on this core. `level` as
 * k3huf_virt_main() got it: QEMU listens to HVC where EL1 came first and to SMC where EL2 did. */
void k3huf_cores_init(uint64_t level);

/* How many of VIRT_CORES the machine has. */
uint32_t k3huf_cores_present(void);

/* Let core `core` (1 ... VIRT_CORES - 1) run entry(argument, core) on its own stack, which is bounded by pages that are
 * not mapped; when entry returns, the core turns itself off. false: it did not come up in ten seconds, or no
 * translation table is left. First core only; once for each core. */
bool k3huf_core_start(uint32_t core, void (*entry)(void *argument, uint32_t core), void *argument);

/* Wait until every core that was started has ended, ten seconds at most. false: one has not. */
bool k3huf_cores_end(void);

/* Until k3huf_cores_signal() or about a millisecond has passed, or at any time earlier. */
void k3huf_core_wait(void);
void k3huf_cores_signal(void);

/* Bytes of a core's stack, and how many of them have been used so far; 0 used for a core that was not started. Call it
 * for the first core, or for cores that have ended. */
uint32_t k3huf_core_stack_bytes(uint32_t core);
uint32_t k3huf_core_stack_used(uint32_t core);

#endif
