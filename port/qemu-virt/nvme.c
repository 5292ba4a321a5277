/* nvme.c - the NVMe driver; nvme.h says what each call does. May not know what is read, nor for whom.
 *
 * What the controller and this core both look at (queues, PRP lists, identify data) is normal non-cacheable memory in
 * the section .dma: no cache maintenance, but barriers. Those are DMB OSHST between a store to it and the doorbell, and
 * DMB OSHLD between a completion's phase tag and the rest of it; the outer shareable domain holds the PCIe devices.
 */
#include "nvme.h"
#include "virt.h"

/* Registers as offsets in bytes (3.1). */
enum { CAP = 0x00, CC = 0x14, CSTS = 0x1c, AQA = 0x24, ASQ = 0x28, ACQ = 0x30, DOORBELLS = 0x1000 };

/* 3.1.1 */
#define CAP_MQES(cap) ((uint32_t)(cap)&0xffffu)          /* entries of a queue, less one */
#define CAP_TO(cap) ((uint32_t)((cap) >> 24) & 0xffu)    /* ready or not ready at the latest, in 500 ms */
#define CAP_DSTRD(cap) ((uint32_t)((cap) >> 32) & 0xfu)  /* doorbells are 4 << DSTRD bytes apart */
#define CAP_CSS_NVM(cap) (((cap) >> 37 & 1u) != 0)       /* has the NVM command set */
#define CAP_MPSMIN(cap) ((uint32_t)((cap) >> 48) & 0xfu) /* smallest memory page: 4096 << MPSMIN */
/* 3.1.5, 3.1.6 */
#define CC_ENABLE 1u
#define CC_SHUTDOWN (1u << 14)
#define CC_ENTRY_SIZES ((4u << 20) | (6u << 16)) /* completions of 16 bytes, submissions of 64 */
#define CSTS_READY 1u
#define CSTS_FATAL 2u
#define CSTS_SHUTDOWN_MASK (3u << 2)
#define CSTS_SHUTDOWN_DONE (2u << 2)
#define GONE 0xffffffffu /* what reads of a device that is not there give */

#define ADMIN_CREATE_SQ 0x01u
#define ADMIN_CREATE_CQ 0x05u
#define ADMIN_IDENTIFY 0x06u
#define ADMIN_SET_FEATURES 0x09u
#define NVM_READ 0x02u
#define FEATURE_QUEUES 0x07u
#define IDENTIFY_NAMESPACE 0u
#define IDENTIFY_CONTROLLER 1u
#define IDENTIFY_ACTIVE 2u
#define QUEUE_CONTIGUOUS 1u

#define ADMIN_ENTRIES 8u
#define IO_ENTRIES (NVME_DEPTH_MAX + 1u) /* a queue of n entries is full with n - 1 (4.1.2) */
#define SUBMISSION_WORDS 16u
#define COMPLETION_WORDS 4u
#define LIST_ENTRIES                                                                                                   \
    (NVME_TRANSFER_MAX / NVME_PAGE) /* a page in PRP1, the others here; 512 bytes, so no list crosses a page */

#define ADMIN_SECONDS 10u /* no admin command used here does more than look up tables */
#define SHUTDOWN_SECONDS 10u

static struct {
    volatile uint32_t admin_submissions[ADMIN_ENTRIES][SUBMISSION_WORDS] __attribute__((aligned(NVME_PAGE)));
    volatile uint32_t admin_completions[ADMIN_ENTRIES][COMPLETION_WORDS] __attribute__((aligned(NVME_PAGE)));
    volatile uint32_t io_submissions[IO_ENTRIES][SUBMISSION_WORDS] __attribute__((aligned(NVME_PAGE)));
    volatile uint32_t io_completions[IO_ENTRIES][COMPLETION_WORDS] __attribute__((aligned(NVME_PAGE)));
    volatile uint32_t identify[NVME_PAGE / 4u] __attribute__((aligned(NVME_PAGE)));
    volatile uint64_t list[NVME_DEPTH_MAX][LIST_ENTRIES] __attribute__((aligned(NVME_PAGE)));
} dma __attribute__((section(".dma"), aligned(NVME_PAGE)));

/* A submission queue and its completion queue (4.1). */
struct queue {
    volatile uint32_t (*submissions)[SUBMISSION_WORDS];
    volatile uint32_t (*completions)[COMPLETION_WORDS];
    uint32_t number;
    uint32_t entries;
    uint32_t tail;  /* next submission */
    uint32_t head;  /* next completion */
    uint32_t phase; /* phase tag of a new completion at head */
    uint32_t outstanding;
};

static volatile uint8_t *base;
static uint64_t cap;
static struct queue admin, io;
static struct nvme_info drive;
static uint32_t namespace_id;
static bool dma_mapped;
static bool busy[NVME_DEPTH_MAX]; /* tags of outstanding reads */

/* ---------------------------------------------------------------------------------------------- registers ---- */

static uint32_t get32(uint32_t offset) { return *(volatile uint32_t *)(base + offset); }
static void set32(uint32_t offset, uint32_t value) { *(volatile uint32_t *)(base + offset) = value; }

/* As two words: not every controller takes a 64-bit access (3.1, register access). */
static uint64_t get64(uint32_t offset) { return get32(offset) | (uint64_t)get32(offset + 4u) << 32; }
static void set64(uint32_t offset, uint64_t value) {
    set32(offset, (uint32_t)value);
    set32(offset + 4u, (uint32_t)(value >> 32));
}

static void barrier_before_doorbell(void) { __asm__ volatile("dmb oshst" : : : "memory"); }
static void barrier_after_phase(void) { __asm__ volatile("dmb oshld" : : : "memory"); }

static uint64_t deadline(uint64_t halves_of_seconds) {
    return k3huf_virt_ticks() + halves_of_seconds * (k3huf_virt_tick_hz() / 2u);
}

/* Wait until CSTS under `mask` is `value`. */
static enum k3huf_port_status wait_status(uint32_t mask, uint32_t value, uint64_t halves_of_seconds) {
    uint64_t end = deadline(halves_of_seconds);
    for (;;) {
        uint32_t status = get32(CSTS);
        if (status == GONE) { return K3HUF_PORT_E_ABSENT; }
        if ((status & mask) == value) { return K3HUF_PORT_OK; }
        if ((status & CSTS_FATAL) != 0 && value != 0) {
            return K3HUF_PORT_E_DEVICE; /* it will not become ready; it can be disabled all the same */
        }
        if (k3huf_virt_ticks() > end) { return K3HUF_PORT_E_TIMEOUT; }
    }
}

/* ------------------------------------------------------------------------------------------------- queues ---- */

static void reset_queue(struct queue *queue, uint32_t number, volatile uint32_t (*submissions)[SUBMISSION_WORDS],
                        volatile uint32_t (*completions)[COMPLETION_WORDS], uint32_t entries) {
    *queue = (struct queue){
        .submissions = submissions, .completions = completions, .number = number, .entries = entries, .phase = 1};
    for (uint32_t i = 0; i < entries; ++i) {
        completions[i][3] = 0; /* the phase tag that is not new */
    }
}

static void ring(const struct queue *queue, bool completion, uint32_t value) {
    uint32_t doorbell = 2u * queue->number + (completion ? 1u : 0u);
    set32(DOORBELLS + doorbell * (4u << CAP_DSTRD(cap)), value); /* 3.1.24, 3.1.25 */
}

/* Words of a submission (4.2) that any command here sets. */
struct command {
    uint32_t opcode;
    uint32_t id;
    uint32_t namespace_id;
    uint64_t prp1, prp2;
    uint32_t word10, word11, word12;
};

static void submit(struct queue *queue, const struct command *command) {
    volatile uint32_t *words = queue->submissions[queue->tail];
    for (uint32_t i = 0; i < SUBMISSION_WORDS; ++i) {
        words[i] = 0;
    }
    words[0] = command->opcode | command->id << 16;
    words[1] = command->namespace_id;
    words[6] = (uint32_t)command->prp1;
    words[7] = (uint32_t)(command->prp1 >> 32);
    words[8] = (uint32_t)command->prp2;
    words[9] = (uint32_t)(command->prp2 >> 32);
    words[10] = command->word10;
    words[11] = command->word11;
    words[12] = command->word12;
    queue->tail = queue->tail + 1u == queue->entries ? 0 : queue->tail + 1u;
    ++queue->outstanding;
    barrier_before_doorbell();
    ring(queue, false, queue->tail);
}

/* Take one completion (4.6): its command's id, and its status field without the phase tag. The caller rings. */
static bool take(struct queue *queue, uint32_t *id, uint32_t *status) {
    uint32_t word = queue->completions[queue->head][3];
    if ((word >> 16 & 1u) != queue->phase) { return false; }
    barrier_after_phase();
    *id = word & 0xffffu;
    *status = word >> 17;
    if (++queue->head == queue->entries) {
        queue->head = 0;
        queue->phase ^= 1u;
    }
    --queue->outstanding;
    return true;
}

/* 4.6.1: status code in bits 7 ... 0, its type in bits 10 ... 8. */
static enum k3huf_port_status decode_status(uint32_t status) {
    uint32_t code = status & 0xffu;
    switch (status >> 8 & 7u) {
    case 0: /* generic */
        switch (code) {
        case 0x00: return K3HUF_PORT_OK;
        case 0x02:                               /* invalid field */
        case 0x13:                               /* PRP offset invalid */
        case 0x80: return K3HUF_PORT_E_ARGUMENT; /* LBA out of range */
        case 0x0b: return K3HUF_PORT_E_ABSENT;   /* invalid namespace or format */
        default: return K3HUF_PORT_E_DEVICE;
        }
    case 2: return K3HUF_PORT_E_MEDIA; /* media and data integrity: unrecovered read error and its like */
    default: return K3HUF_PORT_E_DEVICE;
    }
}

/* One admin command, waited for. */
static enum k3huf_port_status admin_command(const struct command *command) {
    submit(&admin, command);
    uint64_t end = deadline(2u * ADMIN_SECONDS);
    uint32_t id;
    uint32_t status;
    while (!take(&admin, &id, &status)) {
        if (k3huf_virt_ticks() > end) { return K3HUF_PORT_E_TIMEOUT; }
    }
    ring(&admin, true, admin.head);
    return decode_status(status);
}

/* --------------------------------------------------------------------------------------------- life cycle ---- */

/* Lines of the queues' memory that a cache still holds from before must not come between (or be written back later). */
static bool map_dma(void) {
    if (!dma_mapped && k3huf_virt_map((uintptr_t)&dma, sizeof dma, VIRT_UNCACHED)) {
        k3huf_virt_drop(&dma, sizeof dma);
        dma_mapped = true;
    }
    return dma_mapped;
}

/* Not enabled means no access to memory any more, whatever was outstanding (7.3.2). */
static enum k3huf_port_status disable(void) {
    uint32_t configuration = get32(CC);
    if (configuration == GONE) { return K3HUF_PORT_E_ABSENT; }
    if ((configuration & CC_ENABLE) != 0) { set32(CC, configuration & ~CC_ENABLE); }
    return wait_status(CSTS_READY, 0, CAP_TO(cap) + 1u);
}

/* 7.6.1 */
static enum k3huf_port_status enable(void) {
    reset_queue(&admin, 0, dma.admin_submissions, dma.admin_completions, ADMIN_ENTRIES);
    set32(AQA, (ADMIN_ENTRIES - 1u) << 16 | (ADMIN_ENTRIES - 1u));
    set64(ASQ, (uintptr_t)dma.admin_submissions);
    set64(ACQ, (uintptr_t)dma.admin_completions);
    barrier_before_doorbell();
    set32(CC, CC_ENTRY_SIZES | CC_ENABLE);
    return wait_status(CSTS_READY, CSTS_READY, CAP_TO(cap) + 1u);
}

static enum k3huf_port_status identify(uint32_t what, uint32_t nsid) {
    const struct command command = {
        .opcode = ADMIN_IDENTIFY, .namespace_id = nsid, .prp1 = (uintptr_t)dma.identify, .word10 = what};
    return admin_command(&command);
}

static uint8_t identify_byte(uint32_t offset) { return (uint8_t)(dma.identify[offset / 4u] >> (8u * (offset % 4u))); }

/* Figure "Identify Controller Data Structure" (5.15.2.2). */
static enum k3huf_port_status identify_controller(void) {
    enum k3huf_port_status status = identify(IDENTIFY_CONTROLLER, 0);
    if (status != K3HUF_PORT_OK) { return status; }
    uint32_t length = 40;
    for (uint32_t i = 0; i < length; ++i) {
        drive.model[i] = (char)identify_byte(24u + i);
    }
    while (length > 0 && drive.model[length - 1u] == ' ') {
        --length;
    }
    drive.model[length] = '\0';
    if ((identify_byte(512) & 0xfu) > 6u || (identify_byte(513) & 0xfu) > 4u) {
        return K3HUF_PORT_E_DEVICE; /* it asks for larger queue entries */
    }
    uint32_t mdts = identify_byte(77); /* log2 of its smallest pages; 0: any size */
    uint32_t transfer = NVME_TRANSFER_MAX;
    if (mdts != 0 && mdts < 20u && (NVME_PAGE << mdts) < transfer) { transfer = NVME_PAGE << mdts; }
    drive.max_transfer_bytes = transfer;
    return K3HUF_PORT_OK;
}

/* The first active namespace, and the figure "Identify Namespace Data Structure" (5.15.2.1). */
static enum k3huf_port_status identify_namespace(void) {
    enum k3huf_port_status status = identify(IDENTIFY_ACTIVE, 0);
    if (status != K3HUF_PORT_OK) { return status; }
    namespace_id = dma.identify[0];
    if (namespace_id == 0) { return K3HUF_PORT_E_ABSENT; }
    status = identify(IDENTIFY_NAMESPACE, namespace_id);
    if (status != K3HUF_PORT_OK) { return status; }
    drive.lba_count = dma.identify[0] | (uint64_t)dma.identify[1] << 32;
    uint32_t format = dma.identify[32u + (identify_byte(26) & 0xfu)];
    uint32_t lba_log2 = format >> 16 & 0xffu;
    if ((format & 0xffffu) != 0 || lba_log2 < 9u || lba_log2 > 12u) {
        return K3HUF_PORT_E_DEVICE; /* metadata beside the data, or blocks that the engine does not know */
    }
    drive.lba_bytes = 1u << lba_log2;
    return K3HUF_PORT_OK;
}

/* 5.21.1.7, 5.3, 5.4: one queue pair, without interrupts. */
static enum k3huf_port_status create_queues(void) {
    uint32_t entries = CAP_MQES(cap) + 1u < IO_ENTRIES ? CAP_MQES(cap) + 1u : IO_ENTRIES;
    drive.queue_depth = entries - 1u;
    reset_queue(&io, 1, dma.io_submissions, dma.io_completions, entries);
    for (uint32_t i = 0; i < NVME_DEPTH_MAX; ++i) {
        busy[i] = false;
    }
    const struct command commands[3] = {
        {.opcode = ADMIN_SET_FEATURES, .word10 = FEATURE_QUEUES},
        {.opcode = ADMIN_CREATE_CQ,
         .prp1 = (uintptr_t)dma.io_completions,
         .word10 = (entries - 1u) << 16 | io.number,
         .word11 = QUEUE_CONTIGUOUS},
        {.opcode = ADMIN_CREATE_SQ,
         .prp1 = (uintptr_t)dma.io_submissions,
         .word10 = (entries - 1u) << 16 | io.number,
         .word11 = io.number << 16 | QUEUE_CONTIGUOUS},
    };
    enum k3huf_port_status status = K3HUF_PORT_OK;
    for (uint32_t i = 0; i < 3 && status == K3HUF_PORT_OK; ++i) {
        status = admin_command(&commands[i]);
    }
    return status;
}

static bool same_drive(const struct nvme_info *a, const struct nvme_info *b) {
    return a->lba_bytes == b->lba_bytes && a->lba_count == b->lba_count &&
           a->max_transfer_bytes >= b->max_transfer_bytes && a->queue_depth >= b->queue_depth;
}

static enum k3huf_port_status bring_up(void) {
    enum k3huf_port_status status = disable();
    status = status == K3HUF_PORT_OK ? enable() : status;
    status = status == K3HUF_PORT_OK ? identify_controller() : status;
    status = status == K3HUF_PORT_OK ? identify_namespace() : status;
    return status == K3HUF_PORT_OK ? create_queues() : status;
}

enum k3huf_port_status k3huf_nvme_start(volatile void *registers, struct nvme_info *info) {
    base = registers;
    io.entries = 0;
    if (!map_dma()) { return K3HUF_PORT_E_DEVICE; }
    cap = get64(CAP);
    if (cap == UINT64_MAX) { return K3HUF_PORT_E_ABSENT; }
    if (!CAP_CSS_NVM(cap) || CAP_MPSMIN(cap) != 0 || CAP_MQES(cap) == 0) { return K3HUF_PORT_E_DEVICE; }
    enum k3huf_port_status status = bring_up();
    *info = drive;
    return status;
}

enum k3huf_port_status k3huf_nvme_reset(void) {
    const struct nvme_info before = drive;
    enum k3huf_port_status status = bring_up();
    if (status == K3HUF_PORT_OK && !same_drive(&drive, &before)) {
        status = K3HUF_PORT_E_DEVICE; /* not the drive whose limits were told */
    }
    if (status != K3HUF_PORT_OK) {
        io.entries = 0; /* takes no reads until a later reset succeeds */
        drive = before;
    }
    return status;
}

enum k3huf_port_status k3huf_nvme_stop(void) {
    io.entries = 0;
    set32(CC, (get32(CC) & ~(3u << 14)) | CC_SHUTDOWN);
    return wait_status(CSTS_SHUTDOWN_MASK, CSTS_SHUTDOWN_DONE, 2u * SHUTDOWN_SECONDS);
}

/* -------------------------------------------------------------------------------------------------- reads ---- */

/* PRP entries (4.3): the first may point into its page; then nothing, the second page, or the address of a list of all
 * further pages. */
static void describe(uint64_t buffer, uint32_t bytes, volatile uint64_t *list, struct command *command) {
    uint64_t first = buffer - buffer % NVME_PAGE;
    uint32_t pages = (uint32_t)((buffer + bytes - first + NVME_PAGE - 1u) / NVME_PAGE);
    command->prp1 = buffer;
    if (pages == 2) {
        command->prp2 = first + NVME_PAGE;
    } else if (pages > 2) {
        for (uint32_t i = 1; i < pages; ++i) {
            list[i - 1u] = first + (uint64_t)i * NVME_PAGE;
        }
        command->prp2 = (uintptr_t)list;
    }
}

enum k3huf_port_status k3huf_nvme_read(uint64_t lba, uint32_t blocks, void *buffer, uint32_t tag) {
    if (io.entries == 0) { return K3HUF_PORT_E_ABSENT; }
    if (blocks == 0 || blocks > drive.max_transfer_bytes / drive.lba_bytes ||
        (uintptr_t)buffer % NVME_BUFFER_ALIGN != 0 || tag >= drive.queue_depth || busy[tag] || lba >= drive.lba_count ||
        blocks > drive.lba_count - lba) {
        return K3HUF_PORT_E_ARGUMENT;
    }
    if (io.outstanding == drive.queue_depth) { return K3HUF_PORT_BUSY; }
    struct command command = {.opcode = NVM_READ,
                              .id = tag,
                              .namespace_id = namespace_id,
                              .word10 = (uint32_t)lba,
                              .word11 = (uint32_t)(lba >> 32),
                              .word12 = blocks - 1u}; /* 6.9 */
    describe((uintptr_t)buffer, blocks * drive.lba_bytes, dma.list[tag], &command);
    busy[tag] = true;
    submit(&io, &command);
    return K3HUF_PORT_OK;
}

uint32_t k3huf_nvme_poll(struct k3huf_port_read *done, uint32_t max) {
    uint32_t count = 0;
    uint32_t id;
    uint32_t status;
    bool taken = false;
    while (io.entries != 0 && count < max && take(&io, &id, &status)) {
        taken = true;
        if (id >= drive.queue_depth || !busy[id]) {
            continue; /* a completion of no read of ours: the reads it stands for time out, and a reset follows */
        }
        busy[id] = false;
        done[count++] = (struct k3huf_port_read){.tag = id, .status = decode_status(status)};
    }
    if (taken) { ring(&io, true, io.head); }
    return count;
}
