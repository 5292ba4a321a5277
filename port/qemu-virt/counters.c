/* counters.c - set up the core's performance counters; reading them is in virt.h.
 *
 * Arm Architecture Reference Manual (DDI 0487), Performance Monitors Extension.
 */
#include "virt.h"

#define EVENT_INST_RETIRED 0x08u
#define PMCR_ENABLE 1u
#define PMCR_RESET_EVENTS 2u

bool k3huf_virt_instructions_start(void) {
    uint64_t features;
    __asm__ volatile("mrs %0, id_aa64dfr0_el1" : "=r"(features));
    uint64_t version = (features >> 8) & 15u;
    if (version == 0 || version == 15) { return false; /* no PMU, or not the architecture's */ }
    uint64_t events;
    uint64_t control;
    __asm__ volatile("mrs %0, pmceid0_el0" : "=r"(events));
    __asm__ volatile("mrs %0, pmcr_el0" : "=r"(control));
    uint64_t counters = (control >> 11) & 31u;
    if (((events >> EVENT_INST_RETIRED) & 1u) == 0 || counters == 0) { return false; }
    __asm__ volatile("msr pmevtyper0_el0, %0\n\t" /* count the event at EL1 and EL0 */
                     "msr pmcntenset_el0, %1\n\t"
                     "msr pmcr_el0, %2\n\t"
                     "isb"
                     :
                     : "r"((uint64_t)EVENT_INST_RETIRED), "r"(UINT64_C(1)),
                       "r"((control | PMCR_ENABLE | PMCR_RESET_EVENTS))
                     : "memory");
    return true;
}
