/* template.h - the platform that is still to be written. */
#ifndef K3HUF_TEMPLATE_H
#define K3HUF_TEMPLATE_H

#include "k3huf_port.h"

struct k3huf_template {
    struct k3huf_port port; /* for the engine */
    const char *missing;    /* the last hook that was called and is not provided */
};

void k3huf_template_init(struct k3huf_template *platform);

/* For the start-up code of core 0, with a stack, the MMU and the caches on. Returns when the engine ends. */
enum k3huf_port_status k3huf_template_main(void);

#endif
