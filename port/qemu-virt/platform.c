/* platform.c - the hooks of k3huf_port.h over this board's drivers. The one file that knows both sides.
 *
 * The first core alone calls what pci.c, nvme.c and stdio have; window, caches, cores and ticks may be used by all.
 */
#include "platform.h"
#include "cores.h"
#include "nvme.h"
#include "pci.h"
#include "window.h"

#include <inttypes.h>
#include <stdio.h>

static const struct pci_device *drive; /* NULL: none that can be used */
static volatile uint8_t *window;
static uint64_t window_bytes;

/* ------------------------------------------------------------------------------------------------ storage ---- */

static enum k3huf_port_status storage_submit(void *context, uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag) {
    (void)context;
    return k3huf_nvme_read(lba, blocks, buffer, tag);
}

static uint32_t storage_poll(void *context, struct k3huf_port_read *done, uint32_t max) {
    (void)context;
    return k3huf_nvme_poll(done, max);
}

static enum k3huf_port_status storage_reset(void *context) {
    (void)context;
    if (drive == NULL) { return K3HUF_PORT_E_ABSENT; }
    /* No bus master, no access to memory: holds even for a controller that does not stop when told. */
    k3huf_pci_disable(drive);
    k3huf_pci_enable(drive);
    enum k3huf_port_status status = k3huf_nvme_reset();
    if (status != K3HUF_PORT_OK) { k3huf_pci_disable(drive); }
    return status;
}

/* ------------------------------------------------------------------------------------------------- caches ---- */

static void cache_clean(void *context, const void *address, size_t size) {
    (void)context;
    k3huf_virt_clean(address, size);
}

static void cache_invalidate(void *context, void *address, size_t size) {
    (void)context;
    k3huf_virt_clean_and_drop(address, size);
}

/* ------------------------------------------------------------------------------------------------- window ---- */

static bool inside_window(uint64_t offset, size_t size) {
    return offset <= window_bytes && size <= window_bytes - offset;
}

static enum k3huf_port_status window_read(void *context, uint64_t offset, void *to, size_t size) {
    (void)context;
    if (!inside_window(offset, size)) { return K3HUF_PORT_E_ARGUMENT; }
    k3huf_window_read(to, window + offset, size);
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status window_write(void *context, uint32_t core, uint64_t offset, const void *from,
                                           size_t size) {
    (void)context;
    (void)core;
    if (!inside_window(offset, size)) { return K3HUF_PORT_E_ARGUMENT; }
    k3huf_window_write(window + offset, from, size);
    return K3HUF_PORT_OK;
}

static enum k3huf_port_status window_flush(void *context, uint32_t core) {
    (void)context;
    (void)core;
    k3huf_window_flush(window);
    return K3HUF_PORT_OK;
}

/* -------------------------------------------------------------------------------------------------- cores ---- */

static enum k3huf_port_status core_start(void *context, uint32_t core, k3huf_port_entry *entry, void *argument) {
    (void)context;
    return k3huf_core_start(core, entry, argument) ? K3HUF_PORT_OK : K3HUF_PORT_E_CORE;
}

static void wait(void *context, uint32_t core) {
    (void)context;
    (void)core;
    k3huf_core_wait();
}

static void signal(void *context) {
    (void)context;
    k3huf_cores_signal();
}

/* ------------------------------------------------------------------------------------------- time and text ---- */

static uint64_t ticks(void *context) {
    (void)context;
    return k3huf_virt_ticks();
}

static void log_line(void *context, const char *line) {
    (void)context;
    printf("%s\n", line);
}

/* ------------------------------------------------------------------------------------------------ bring-up ---- */

static bool start_window(struct k3huf_port_limits *limits) {
    const struct pci_device *device = k3huf_pci_by_identity(IVSHMEM_IDENTITY);
    if (device == NULL) {
        printf("window: no ivshmem device\n");
        return false;
    }
    window = k3huf_pci_map(device, IVSHMEM_MEMORY_BAR, VIRT_UNCACHED);
    if (window == NULL) {
        printf("window: its %" PRIu64 " bytes do not fit the PCIe window below 4 GiB\n",
               device->bar_bytes[IVSHMEM_MEMORY_BAR]);
        return false;
    }
    k3huf_pci_enable(device);
    window_bytes = device->bar_bytes[IVSHMEM_MEMORY_BAR];
    limits->window_bytes = window_bytes;
    printf("window: %" PRIu64 " bytes of host memory at 0x%" PRIxPTR "\n", window_bytes, (uintptr_t)window);
    return true;
}

/* false: the device cannot be used; it is left disabled. */
static bool start_nvme(const struct pci_device *device, struct nvme_info *info) {
    volatile void *registers = k3huf_pci_map(device, 0, VIRT_DEVICE);
    if (registers == NULL) {
        printf("drive: its registers cannot be mapped\n");
        return false;
    }
    k3huf_pci_enable(device);
    enum k3huf_port_status status = k3huf_nvme_start(registers, info);
    if (status != K3HUF_PORT_OK) {
        printf("drive: cannot be used: %s\n", k3huf_port_status_text(status));
        k3huf_pci_disable(device);
    }
    return status == K3HUF_PORT_OK;
}

/* Where there is no drive that can be used, the limits say so and stay in order otherwise. */
static void start_drive(struct k3huf_port_limits *limits) {
    limits->lba_bytes = 512;
    limits->max_transfer_bytes = NVME_PAGE;
    limits->buffer_align = NVME_BUFFER_ALIGN;
    limits->queue_depth = 1;
    const struct pci_device *device = k3huf_pci_by_class(NVME_CLASS);
    struct nvme_info info;
    if (device == NULL) {
        printf("drive: none\n");
        return;
    }
    if (!start_nvme(device, &info)) { return; }
    drive = device;
    limits->lba_bytes = info.lba_bytes;
    limits->lba_count = info.lba_count;
    limits->max_transfer_bytes = info.max_transfer_bytes;
    limits->queue_depth = info.queue_depth;
    printf("drive: %s, %" PRIu64 " blocks of %" PRIu32 " bytes, up to %" PRIu32 " bytes a read, %" PRIu32
           " reads at a time\n",
           info.model, info.lba_count, info.lba_bytes, info.max_transfer_bytes, info.queue_depth);
}

bool k3huf_platform_start(struct k3huf_port *port, uint32_t cores) {
    *port = (struct k3huf_port){.storage_submit = storage_submit,
                                .storage_poll = storage_poll,
                                .storage_reset = storage_reset,
                                .cache_clean = cache_clean,
                                .cache_invalidate = cache_invalidate,
                                .window_read = window_read,
                                .window_write = window_write,
                                .window_flush = window_flush,
                                .core_start = core_start,
                                .wait = wait,
                                .signal = signal,
                                .ticks = ticks,
                                .log = log_line};
    k3huf_cores_init(k3huf_virt_start_level());
    uint32_t present = k3huf_cores_present();
    port->limits.core_count = cores < present ? cores : present;
    port->limits.tick_hz = k3huf_virt_tick_hz();
    bool mapped;
    uint32_t devices = k3huf_pci_start(&mapped);
    printf("cores: %" PRIu32 " of %" PRIu32 " in use; PCIe: %" PRIu32 " devices\n", port->limits.core_count, present,
           devices);
    if (!mapped || !start_window(&port->limits)) { return false; }
    start_drive(&port->limits);
    return true;
}

enum k3huf_port_status k3huf_platform_stop(void) { return drive == NULL ? K3HUF_PORT_OK : k3huf_nvme_stop(); }
