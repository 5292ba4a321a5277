/* pci.h - find PCIe devices through ECAM, give their BARs addresses, map them.
 *
 * Section numbers are those of the PCI Express Base Specification, revision 5.0. Root bus alone: devices behind bridges
 * are not looked for, as this board has none unless asked. One core at a time.
 */
#ifndef PCI_H
#define PCI_H

#include "virt.h"

#define PCI_BARS 6u

struct pci_device {
    volatile uint32_t *config; /* its 4 KiB of configuration space */
    uint32_t identity;         /* vendor in the low half, device in the high half */
    uint32_t class_code;       /* base class, subclass, programming interface: 0x00CCSSPP */
    uint32_t bars; /* bit n: BAR n is a memory BAR of bar_bytes[n]; the upper half of a 64-bit one has none */
    uint32_t wide; /* bit n: BAR n has 64 bits */
    uint64_t bar_bytes[PCI_BARS];
    uint64_t bar_base[PCI_BARS]; /* 0: no room for it in the window */
};

/* Map configuration space, find the devices, size their memory BARs and give them addresses in the board's window.
 * Once. Returns the number of devices found; false in *mapped: no translation table was left. */
uint32_t k3huf_pci_start(bool *mapped);

/* The first device with all bits of `value` under `mask` in identity or class code; NULL: none. */
const struct pci_device *k3huf_pci_by_identity(uint32_t identity);
const struct pci_device *k3huf_pci_by_class(uint32_t class_code);

/* Map BAR `bar` as `kind`. NULL: no such BAR, it got no address, or no translation table is left. Once for each BAR. */
volatile void *k3huf_pci_map(const struct pci_device *device, uint32_t bar, enum virt_memory kind);

/* Let the device answer memory accesses and start its own (bus master); no INTx. */
void k3huf_pci_enable(const struct pci_device *device);

/* Take both from it again. */
void k3huf_pci_disable(const struct pci_device *device);

#endif
