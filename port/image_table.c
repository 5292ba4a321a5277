/* image_table.c - see k3huf_image.h. Freestanding; may not do I/O. */
#include "k3huf_image.h"

#include "k3huf.h"
#include "k3huf_job.h"

uint32_t k3huf_image_table_bytes(const uint8_t *bytes) {
    const uint32_t entries = k3huf_get32(bytes + K3HUF_IMAGE_ENTRIES);
    if (k3huf_get32(bytes + K3HUF_IMAGE_MAGIC) != K3HUF_IMAGE_MAGIC_VALUE ||
        k3huf_get32(bytes + K3HUF_IMAGE_VERSION) != K3HUF_IMAGE_VERSION_VALUE || entries > K3HUF_IMAGE_ENTRIES_MAX) {
        return 0;
    }
    return K3HUF_IMAGE_HEAD_BYTES + entries * K3HUF_IMAGE_ENTRY_BYTES;
}

uint32_t k3huf_image_table_crc(const uint8_t *bytes, uint32_t size) {
    static const uint8_t zero[4] = {0};
    uint32_t crc = k3huf_crc32c(0, bytes, K3HUF_IMAGE_CRC);
    crc = k3huf_crc32c(crc, zero, sizeof zero);
    return k3huf_crc32c(crc, bytes + K3HUF_IMAGE_CRC + 4u, size - K3HUF_IMAGE_CRC - 4u);
}

bool k3huf_image_table_sound(const uint8_t *bytes, uint32_t size) {
    if (k3huf_get32(bytes + K3HUF_IMAGE_CRC) != k3huf_image_table_crc(bytes, size)) { return false; }
    for (uint32_t at = K3HUF_IMAGE_HEAD_BYTES; at < size; at += K3HUF_IMAGE_ENTRY_BYTES) {
        if (bytes[at + K3HUF_IMAGE_NAME] == 0 || bytes[at + K3HUF_IMAGE_ENTRY_BYTES - 1u] != 0 ||
            k3huf_get32(bytes + at + K3HUF_IMAGE_KIND) > K3HUF_IMAGE_KIND_ARCHIVE) {
            return false;
        }
    }
    return true;
}
