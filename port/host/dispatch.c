/* dispatch.c - see dispatch.h. A new variant: its flags in CMakeLists.txt, its test in cpu.h, its line here. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

static bool always(void) { return true; }

extern const struct k3huf_isa k3huf_isa_set;
#if defined(__x86_64__)
extern const struct k3huf_isa k3huf_isa_set_v2;
extern const struct k3huf_isa k3huf_isa_set_v3;
#elif defined(__aarch64__)
extern const struct k3huf_isa k3huf_isa_set_crc;
#endif

static const struct {
    const struct k3huf_isa *isa;
    bool (*usable)(void);
} variants[] = {
#if defined(__x86_64__)
    {&k3huf_isa_set_v3, k3huf_cpu_v3},
    {&k3huf_isa_set_v2, k3huf_cpu_v2},
#elif defined(__aarch64__)
    {&k3huf_isa_set_crc, k3huf_cpu_crc},
#endif
    {&k3huf_isa_set, always},
};
#define VARIANTS (sizeof variants / sizeof variants[0])

const struct k3huf_isa *k3huf_isa_choice(unsigned i) {
    for (size_t v = 0; v < VARIANTS; v++) {
        if (variants[v].usable() && i-- == 0) { return variants[v].isa; }
    }
    return NULL;
}

/* The one of that name, NULL where it is none of them or this processor cannot run it. */
static const struct k3huf_isa *named(const char *name) {
    const struct k3huf_isa *isa = NULL;
    for (unsigned i = 0; (isa = k3huf_isa_choice(i)) != NULL && strcmp(isa->name, name) != 0; i++) {}
    return isa;
}

const struct k3huf_isa *k3huf_isa(void) {
    const char *name = getenv("K3HUF_ISA");
    const struct k3huf_isa *isa = name == NULL ? NULL : named(name);
    return isa == NULL ? k3huf_isa_choice(0) : isa;
}

enum k3huf_exit k3huf_isa_check(struct k3huf_fault *fault) {
    const char *name = getenv("K3HUF_ISA");
    if (name != NULL && named(name) == NULL) {
        return k3huf_fault_set(fault, K3HUF_EXIT_USAGE, NULL, NULL,
                               "K3HUF_ISA is '%s', which is not built or needs another processor (see --version)",
                               name);
    }
    return K3HUF_EXIT_OK;
}
