/* platform.h - this board as a struct k3huf_port. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include "k3huf_port.h"

/* Bring up PCIe, the window, the drive and the means to start cores, and fill in `port`. One line through printf for
 * each part. `cores` is the most the engine may use. A machine without a drive is in order (lba_count 0); without a
 * window there is no one to work for, which is false. */
bool k3huf_platform_start(struct k3huf_port *port, uint32_t cores);

/* Shut the drive down in order. */
enum k3huf_port_status k3huf_platform_stop(void);

#endif
