/* port_status.c - a line of text for every status of a platform. May not format, allocate or print. */
#include "k3huf_port.h"

const char *k3huf_port_status_text(enum k3huf_port_status status) {
    switch (status) {
    case K3HUF_PORT_OK: return "no error";
    case K3HUF_PORT_BUSY: return "busy";
    case K3HUF_PORT_E_NOT_PROVIDED: return "not provided";
    case K3HUF_PORT_E_ARGUMENT: return "an argument is not what the hook allows";
    case K3HUF_PORT_E_ABSENT: return "no drive";
    case K3HUF_PORT_E_MEDIA: return "the drive cannot read the blocks";
    case K3HUF_PORT_E_DEVICE: return "the drive or its controller failed";
    case K3HUF_PORT_E_TIMEOUT: return "a device did not answer in time";
    case K3HUF_PORT_E_WINDOW: return "host memory cannot be accessed";
    case K3HUF_PORT_E_CORE: return "a core does not start";
    case K3HUF_PORT_STATUS_COUNT: break;
    }
    return "unknown status";
}
