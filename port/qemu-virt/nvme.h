/* nvme.h - a polled NVMe driver for reads: one controller, one namespace, one I/O queue pair.
 *
 * Section numbers here and in nvme.c are those of the NVM Express Base Specification, revision 1.4. All calls come from
 * one core. All memory is static and holds no data: reads go straight into the caller's buffers, whose cache lines are
 * the caller's care.
 */
#ifndef NVME_H
#define NVME_H

#include "k3huf_port.h"

#define NVME_CLASS 0x010802u /* PCI class code: mass storage, NVM, NVMe I/O controller */

/* The memory page that the controller is set to, and the alignment of a read's buffer (4.3). */
#define NVME_PAGE 4096u
#define NVME_BUFFER_ALIGN 4u

/* Limits of the memory below; the controller may have lower ones. */
#define NVME_DEPTH_MAX 63u
#define NVME_TRANSFER_MAX (64u * NVME_PAGE)

/* What the drive is, from Identify. */
struct nvme_info {
    char model[41]; /* without trailing spaces */
    uint32_t lba_bytes;
    uint64_t lba_count;
    uint32_t max_transfer_bytes;
    uint32_t queue_depth; /* reads that may be outstanding */
};

/* Bring the controller up whose registers are at `registers` (BAR 0, device memory, decoding and bus master on). The
 * memory of the queues gets mapped at the first call. OK, K3HUF_PORT_E_ABSENT (no registers, no namespace),
 * K3HUF_PORT_E_TIMEOUT, or K3HUF_PORT_E_DEVICE for a drive that this driver cannot use. Takes at most a few times
 * CAP.TO. */
enum k3huf_port_status k3huf_nvme_start(volatile void *registers, struct nvme_info *info);

/* storage_submit(), storage_poll() and storage_reset() of k3huf_port.h. */
enum k3huf_port_status k3huf_nvme_read(uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag);
uint32_t k3huf_nvme_poll(struct k3huf_port_read *done, uint32_t max);
enum k3huf_port_status k3huf_nvme_reset(void);

/* Orderly shutdown (7.6.2); nothing may be outstanding. */
enum k3huf_port_status k3huf_nvme_stop(void);

#endif
