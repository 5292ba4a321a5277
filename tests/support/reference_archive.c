/* reference_archive.c - see reference_archive.h. May not include a header of core or host tool. */
#include "reference_archive.h"

#include <string.h>

#include "reference.h"

#define TOC_MAX 268435456u
#define NO_ENTRY 0xFFFFFFFFu

static uint64_t get(const uint8_t *at, unsigned n) {
    uint64_t value = 0;
    for (unsigned i = n; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static void put(uint8_t *at, unsigned n, uint64_t value) {
    for (unsigned i = 0; i < n; i++) {
        at[i] = (uint8_t)(value >> (8u * i));
    }
}

/* Product of two polynomials modulo the CRC's, the coefficient of x^0 in the highest bit. */
static uint32_t times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) { product ^= b; }
        b = (b & 1u) != 0 ? b >> 1 ^ 0x82F63B78u : b >> 1;
    }
    return product;
}

/* x^(8 x size) */
static uint32_t shift(uint64_t size) {
    uint32_t power = 0x80000000u;
    for (uint32_t square = 0x80000000u >> 8; size != 0; size >>= 1) {
        if ((size & 1u) != 0) { power = times(power, square); }
        square = times(square, square);
    }
    return power;
}

uint32_t k3huf_reference_crc32c_join(uint32_t first, uint32_t second, uint64_t size) {
    return times(first, shift(size)) ^ second;
}

uint32_t k3huf_reference_crc32c_zeros(uint64_t size) { return ~times(~UINT32_C(0), shift(size)); }

const char *k3huf_reference_archive_parts(struct k3huf_reference_archive *archive, const uint8_t *bytes, size_t size) {
    if (size < K3HUF_REFERENCE_PAGE) { return "shorter than a page"; }
    archive->bytes = bytes;
    archive->toc_offset = get(bytes + 24, 8);
    archive->toc_bytes = get(bytes + 32, 8);
    archive->nentries = (uint32_t)get(bytes + 44, 4);
    archive->source_bytes = get(bytes + 48, 8);
    archive->ntensors = (uint32_t)get(bytes + 64, 4);
    archive->ndims = (uint32_t)get(bytes + 68, 4);
    const uint64_t fixed = (uint64_t)archive->nentries * K3HUF_REFERENCE_ENTRY +
                           (uint64_t)archive->ntensors * K3HUF_REFERENCE_TENSOR + (uint64_t)archive->ndims * 8u;
    if (archive->toc_offset > size || archive->toc_bytes != size - archive->toc_offset) { return "toc_bytes"; }
    if (archive->toc_bytes > TOC_MAX || archive->toc_bytes < fixed) { return "toc_bytes and its parts"; }
    archive->entries = bytes + archive->toc_offset;
    archive->tensors = archive->entries + (size_t)archive->nentries * K3HUF_REFERENCE_ENTRY;
    archive->dims = archive->tensors + (size_t)archive->ntensors * K3HUF_REFERENCE_TENSOR;
    archive->names = archive->dims + (size_t)archive->ndims * 8u;
    archive->names_bytes = archive->toc_bytes - fixed;
    return NULL;
}

struct k3huf_reference_entry k3huf_reference_archive_entry(const struct k3huf_reference_archive *archive,
                                                           uint32_t number) {
    const uint8_t *const at = archive->entries + (size_t)number * K3HUF_REFERENCE_ENTRY;
    return (struct k3huf_reference_entry){.offset = get(at, 8),
                                          .bytes = get(at + 8, 8),
                                          .source_offset = get(at + 16, 8),
                                          .raw_bytes = get(at + 24, 8),
                                          .raw_crc = (uint32_t)get(at + 32, 4),
                                          .kind = (uint32_t)get(at + 36, 4),
                                          .name = archive->names + get(at + 40, 4),
                                          .name_bytes = get(at + 44, 4)};
}

static uint32_t page_crc(const uint8_t *page) {
    static const uint8_t zero[4] = {0};
    const uint32_t crc = k3huf_reference_crc32c(k3huf_reference_crc32c(0, page, 12), zero, 4);
    return k3huf_reference_crc32c(crc, page + 16, K3HUF_REFERENCE_PAGE - 16);
}

static const char *entries_fault(const struct k3huf_reference_archive *archive) {
    uint64_t end = K3HUF_REFERENCE_PAGE, source = 0, names = 0;
    uint32_t crc = 0;
    for (uint32_t i = 0; i < archive->nentries; i++) {
        const struct k3huf_reference_entry e = k3huf_reference_archive_entry(archive, i);
        const uint64_t name_at = get(archive->entries + (size_t)i * K3HUF_REFERENCE_ENTRY + 40, 4);
        names += e.name_bytes;
        if (e.kind > 2) { return "entry kind"; }
        if (e.source_offset != source) { return "entry source_offset"; }
        if (e.raw_bytes == 0 || e.raw_bytes > archive->source_bytes - source) { return "entry raw_bytes"; }
        if (name_at + e.name_bytes > archive->names_bytes || names > archive->names_bytes) { return "entry name"; }
        if (e.kind == 2) {
            if (e.offset != 0 || e.bytes != 0 || e.raw_crc != k3huf_reference_crc32c_zeros(e.raw_bytes)) {
                return "entry of zeros";
            }
        } else {
            if (e.offset % K3HUF_REFERENCE_PAGE != 0 || e.offset < end) { return "entry offset"; }
            if (e.offset > archive->toc_offset || e.bytes > archive->toc_offset - e.offset) { return "entry bytes"; }
            if (e.kind == 0 && e.bytes != e.raw_bytes) { return "stored entry's bytes"; }
            end = e.offset + e.bytes;
        }
        source += e.raw_bytes;
        crc = k3huf_reference_crc32c_join(crc, e.raw_crc, e.raw_bytes);
    }
    if (source != archive->source_bytes) { return "source_bytes"; }
    return crc == get(archive->bytes + 56, 4) ? NULL : "source_crc";
}

static const char *tensors_fault(const struct k3huf_reference_archive *archive) {
    uint64_t least = 0, names = 0, dims = 0;
    for (uint32_t i = 0; i < archive->ntensors; i++) {
        const uint8_t *const at = archive->tensors + (size_t)i * K3HUF_REFERENCE_TENSOR;
        const uint64_t offset = get(at, 8), bytes = get(at + 8, 8), entry = get(at + 16, 4);
        const uint64_t name_bytes = get(at + 24, 4), rank = get(at + 28, 4);
        names += name_bytes;
        dims += rank;
        if (offset < least) { return "tensor order"; }
        if (offset > archive->source_bytes || bytes > archive->source_bytes - offset) { return "tensor place"; }
        if (name_bytes == 0 || get(at + 20, 4) + name_bytes > archive->names_bytes || names > archive->names_bytes) {
            return "tensor name";
        }
        unsigned letters = 0, zeros = 0;
        for (unsigned k = 0; k < 8; k++) {
            letters += at[32 + k] >= 33 && at[32 + k] <= 126 && zeros == 0;
            zeros += at[32 + k] == 0;
        }
        if (letters == 0 || letters + zeros != 8) { return "tensor dtype"; }
        if (get(at + 40, 4) + rank > archive->ndims || dims > archive->ndims) { return "tensor shape"; }
        if (bytes == 0 ? entry != NO_ENTRY : entry >= archive->nentries) { return "tensor entry"; }
        if (bytes != 0) {
            const struct k3huf_reference_entry e = k3huf_reference_archive_entry(archive, (uint32_t)entry);
            if (offset < e.source_offset || offset - e.source_offset > e.raw_bytes ||
                bytes > e.raw_bytes - (offset - e.source_offset)) {
                return "tensor outside its entry";
            }
        }
        least = offset;
    }
    for (uint32_t i = 0; i < archive->ndims; i++) {
        if (archive->dims[(size_t)i * 8u + 7u] > 127) { return "dimension"; }
    }
    return NULL;
}

const char *k3huf_reference_archive_open(struct k3huf_reference_archive *archive, const uint8_t *bytes, size_t size) {
    if (size < K3HUF_REFERENCE_PAGE || memcmp(bytes, "K3HUFAR\n", 8) != 0) { return "magic"; }
    if (get(bytes + 8, 4) != 1) { return "version"; }
    if (get(bytes + 12, 4) != page_crc(bytes)) { return "page_crc"; }
    if (get(bytes + 16, 8) != size) { return "archive_bytes"; }
    const char *wrong = k3huf_reference_archive_parts(archive, bytes, size);
    if (wrong != NULL) { return wrong; }
    if (archive->source_bytes >> 63 != 0) { return "source_bytes beyond files"; }
    if (archive->toc_offset % K3HUF_REFERENCE_PAGE != 0 || archive->toc_offset < K3HUF_REFERENCE_PAGE) {
        return "toc_offset";
    }
    if (get(bytes + 40, 4) != k3huf_reference_crc32c(0, archive->entries, (size_t)archive->toc_bytes)) {
        return "toc_crc";
    }
    wrong = entries_fault(archive);
    return wrong != NULL ? wrong : tensors_fault(archive);
}

int k3huf_reference_archive_twins(const struct k3huf_reference_archive *archive) {
    for (uint32_t i = 0; i < archive->ntensors; i++) {
        const uint8_t *const a = archive->tensors + (size_t)i * K3HUF_REFERENCE_TENSOR;
        for (uint32_t k = 0; k < i; k++) {
            const uint8_t *const b = archive->tensors + (size_t)k * K3HUF_REFERENCE_TENSOR;
            if (get(a + 24, 4) == get(b + 24, 4) &&
                memcmp(archive->names + get(a + 20, 4), archive->names + get(b + 20, 4), get(a + 24, 4)) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

void k3huf_reference_archive_seal(uint8_t *bytes, size_t size) {
    struct k3huf_reference_archive archive;
    if (k3huf_reference_archive_parts(&archive, bytes, size) == NULL) {
        uint32_t crc = 0;
        for (uint32_t i = 0; i < archive.nentries; i++) {
            const struct k3huf_reference_entry e = k3huf_reference_archive_entry(&archive, i);
            crc = k3huf_reference_crc32c_join(crc, e.raw_crc, e.raw_bytes);
        }
        put(bytes + 56, 4, crc);
        put(bytes + 40, 4, k3huf_reference_crc32c(0, archive.entries, (size_t)archive.toc_bytes));
    }
    if (size >= K3HUF_REFERENCE_PAGE) { put(bytes + 12, 4, page_crc(bytes)); }
}
