/* archive.c - see archive.h. May not read, write or allocate. */
#include "archive.h"

#include "crc_join.h"

static const uint8_t magic[8] = {'K', '3', 'H', 'U', 'F', 'A', 'R', '\n'};

enum { AT_VERSION = 8, AT_PAGE_CRC = 12, AT_BYTES = 16, AT_TOC = 24, AT_TOC_BYTES = 32, AT_TOC_CRC = 40 };
enum { AT_NENTRIES = 44, AT_SOURCE_BYTES = 48, AT_SOURCE_CRC = 56, AT_KIND = 60, AT_NTENSORS = 64, AT_NDIMS = 68 };
enum { AT_MTIME = 72 };

static uint32_t load32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static uint64_t load64(const uint8_t *at) { return load32(at) | (uint64_t)load32(at + 4) << 32; }
static void store32(uint8_t *at, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8u * i));
    }
}
static void store64(uint8_t *at, uint64_t value) {
    store32(at, (uint32_t)value);
    store32(at + 4, (uint32_t)(value >> 32));
}

static bool bad(struct k3huf_archive_fault *fault, uint64_t offset, const char *text) {
    fault->offset = offset;
    fault->text = text;
    return false;
}

/* ---------------------------------------------------------------------------------------------- first page ---- */

bool k3huf_archive_magic(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < sizeof magic; i++) {
        if (i >= size || bytes[i] != magic[i]) { return false; }
    }
    return true;
}

static uint32_t page_crc(const uint8_t *bytes) {
    static const uint8_t zero[4] = {0};
    uint32_t crc = k3huf_crc32c(0, bytes, AT_PAGE_CRC);
    crc = k3huf_crc32c(crc, zero, sizeof zero);
    return k3huf_crc32c(crc, bytes + AT_PAGE_CRC + 4, K3HUF_ARCHIVE_PAGE - AT_PAGE_CRC - 4);
}

uint64_t k3huf_archive_names_at(const struct k3huf_archive_page *page) {
    return (uint64_t)page->nentries * K3HUF_ARCHIVE_ENTRY_BYTES +
           (uint64_t)page->ntensors * K3HUF_ARCHIVE_TENSOR_BYTES + (uint64_t)page->ndims * 8u;
}

uint64_t k3huf_archive_page_bytes(const uint8_t bytes[K3HUF_ARCHIVE_PAGE]) { return load64(bytes + AT_BYTES); }

bool k3huf_archive_page_read(const uint8_t bytes[K3HUF_ARCHIVE_PAGE], uint64_t file_bytes,
                             struct k3huf_archive_page *page, struct k3huf_archive_fault *fault) {
    if (!k3huf_archive_magic(bytes, K3HUF_ARCHIVE_PAGE)) { return bad(fault, 0, "not a k3huf archive"); }
    if (load32(bytes + AT_VERSION) != 1) { return bad(fault, AT_VERSION, "archive version is not 1"); }
    if (load32(bytes + AT_PAGE_CRC) != page_crc(bytes)) {
        return bad(fault, AT_PAGE_CRC, "the CRC-32C of the first page is wrong");
    }
    *page = (struct k3huf_archive_page){.archive_bytes = load64(bytes + AT_BYTES),
                                        .toc_offset = load64(bytes + AT_TOC),
                                        .toc_bytes = load64(bytes + AT_TOC_BYTES),
                                        .toc_crc = load32(bytes + AT_TOC_CRC),
                                        .nentries = load32(bytes + AT_NENTRIES),
                                        .source_bytes = load64(bytes + AT_SOURCE_BYTES),
                                        .source_crc = load32(bytes + AT_SOURCE_CRC),
                                        .source_kind = load32(bytes + AT_KIND),
                                        .ntensors = load32(bytes + AT_NTENSORS),
                                        .ndims = load32(bytes + AT_NDIMS),
                                        .source_mtime = (int64_t)load64(bytes + AT_MTIME)};
    if (page->archive_bytes > file_bytes) { return bad(fault, file_bytes, "the archive is cut short"); }
    if (page->archive_bytes < file_bytes) { return bad(fault, page->archive_bytes, "bytes after the archive's end"); }
    if (page->source_bytes > INT64_MAX) {
        return bad(fault, AT_SOURCE_BYTES, "the source is larger than any file can be");
    }
    if (page->toc_offset % K3HUF_ARCHIVE_PAGE != 0 || page->toc_offset < K3HUF_ARCHIVE_PAGE ||
        page->toc_offset > page->archive_bytes) {
        return bad(fault, AT_TOC, "the table of contents has an impossible place");
    }
    if (page->toc_bytes != page->archive_bytes - page->toc_offset || page->toc_bytes > K3HUF_ARCHIVE_TOC_MAX ||
        page->toc_bytes < k3huf_archive_names_at(page)) {
        return bad(fault, AT_TOC_BYTES, "the table of contents has an impossible size");
    }
    return true;
}

void k3huf_archive_page_write(const struct k3huf_archive_page *page, uint8_t bytes[K3HUF_ARCHIVE_PAGE]) {
    for (size_t i = 0; i < K3HUF_ARCHIVE_PAGE; i++) {
        bytes[i] = i < sizeof magic ? magic[i] : 0;
    }
    store32(bytes + AT_VERSION, 1);
    store64(bytes + AT_BYTES, page->archive_bytes);
    store64(bytes + AT_TOC, page->toc_offset);
    store64(bytes + AT_TOC_BYTES, page->toc_bytes);
    store32(bytes + AT_TOC_CRC, page->toc_crc);
    store32(bytes + AT_NENTRIES, page->nentries);
    store64(bytes + AT_SOURCE_BYTES, page->source_bytes);
    store32(bytes + AT_SOURCE_CRC, page->source_crc);
    store32(bytes + AT_KIND, page->source_kind);
    store32(bytes + AT_NTENSORS, page->ntensors);
    store32(bytes + AT_NDIMS, page->ndims);
    store64(bytes + AT_MTIME, (uint64_t)page->source_mtime);
    store32(bytes + AT_PAGE_CRC, page_crc(bytes));
}

/* --------------------------------------------------------------------------------------- table of contents ---- */

void k3huf_archive_entry_read(const uint8_t *toc, uint32_t number, struct k3huf_archive_entry *entry) {
    const uint8_t *at = toc + (size_t)number * K3HUF_ARCHIVE_ENTRY_BYTES;
    *entry = (struct k3huf_archive_entry){load64(at),      load64(at + 8),  load64(at + 16), load64(at + 24),
                                          load32(at + 32), load32(at + 36), load32(at + 40), load32(at + 44)};
}

void k3huf_archive_entry_write(uint8_t *toc, uint32_t number, const struct k3huf_archive_entry *entry) {
    uint8_t *at = toc + (size_t)number * K3HUF_ARCHIVE_ENTRY_BYTES;
    store64(at, entry->offset);
    store64(at + 8, entry->bytes);
    store64(at + 16, entry->source_offset);
    store64(at + 24, entry->raw_bytes);
    store32(at + 32, entry->raw_crc);
    store32(at + 36, entry->kind);
    store32(at + 40, entry->name_at);
    store32(at + 44, entry->name_bytes);
}

static uint64_t tensor_at(const struct k3huf_archive_page *page, uint32_t number) {
    return (uint64_t)page->nentries * K3HUF_ARCHIVE_ENTRY_BYTES + (uint64_t)number * K3HUF_ARCHIVE_TENSOR_BYTES;
}

static uint64_t dim_at(const struct k3huf_archive_page *page, uint32_t at) {
    return tensor_at(page, page->ntensors) + (uint64_t)at * 8u;
}

void k3huf_archive_tensor_read(const struct k3huf_archive_page *page, const uint8_t *toc, uint32_t number,
                               struct k3huf_archive_tensor *tensor) {
    const uint8_t *at = toc + tensor_at(page, number);
    *tensor = (struct k3huf_archive_tensor){.source_offset = load64(at),
                                            .bytes = load64(at + 8),
                                            .entry = load32(at + 16),
                                            .name_at = load32(at + 20),
                                            .name_bytes = load32(at + 24),
                                            .rank = load32(at + 28),
                                            .dims_at = load32(at + 40)};
    for (unsigned i = 0; i < K3HUF_ARCHIVE_DTYPE_BYTES; i++) {
        tensor->dtype[i] = (char)at[32 + i];
    }
}

void k3huf_archive_tensor_write(const struct k3huf_archive_page *page, uint8_t *toc, uint32_t number,
                                const struct k3huf_archive_tensor *tensor) {
    uint8_t *at = toc + tensor_at(page, number);
    store64(at, tensor->source_offset);
    store64(at + 8, tensor->bytes);
    store32(at + 16, tensor->entry);
    store32(at + 20, tensor->name_at);
    store32(at + 24, tensor->name_bytes);
    store32(at + 28, tensor->rank);
    for (unsigned i = 0; i < K3HUF_ARCHIVE_DTYPE_BYTES; i++) {
        at[32 + i] = (uint8_t)tensor->dtype[i];
    }
    store32(at + 40, tensor->dims_at);
    store32(at + 44, 0);
}

uint64_t k3huf_archive_dim_read(const struct k3huf_archive_page *page, const uint8_t *toc, uint32_t at) {
    return load64(toc + dim_at(page, at));
}

void k3huf_archive_dim_write(const struct k3huf_archive_page *page, uint8_t *toc, uint32_t at, uint64_t value) {
    store64(toc + dim_at(page, at), value);
}

/* `end` is where the entry before ends in the archive, `source` in the source. */
static const char *entry_fault(const struct k3huf_archive_page *page, const struct k3huf_archive_entry *entry,
                               uint64_t end, uint64_t source) {
    const uint64_t names = page->toc_bytes - k3huf_archive_names_at(page);
    if (entry->kind > K3HUF_ENTRY_ZEROS) { return "an entry of unknown kind"; }
    if (entry->source_offset != source) { return "an entry does not begin where the one before ends in the source"; }
    if (entry->raw_bytes == 0 || entry->raw_bytes > page->source_bytes - source) {
        return "an entry has an impossible size in the source";
    }
    if ((uint64_t)entry->name_at + entry->name_bytes > names) { return "an entry's name lies outside the names"; }
    if (entry->kind == K3HUF_ENTRY_ZEROS) {
        if (entry->offset != 0 || entry->bytes != 0) { return "an entry of zeros has a place in the archive"; }
        return entry->raw_crc == k3huf_crc32c_zeros(entry->raw_bytes) ? NULL
                                                                      : "the CRC-32C of an entry of zeros is wrong";
    }
    if (entry->offset % K3HUF_ARCHIVE_PAGE != 0 || entry->offset < end || entry->offset > page->toc_offset ||
        entry->bytes > page->toc_offset - entry->offset) {
        return "an entry has an impossible place";
    }
    if (entry->kind == K3HUF_ENTRY_STORED && entry->bytes != entry->raw_bytes) {
        return "a stored entry's two sizes differ";
    }
    return NULL;
}

/* Is it 1 to 8 printable characters, and zeros? Whoever lists an archive prints it. */
static bool dtype_sound(const char *dtype) {
    size_t n = 0;
    while (dtype[n] > ' ' && dtype[n] <= '~') {
        n++;
    }
    for (size_t i = n; i < K3HUF_ARCHIVE_DTYPE_BYTES; i++) {
        if (dtype[i] != '\0') { return false; }
    }
    return n > 0;
}

static const char *tensor_fault(const struct k3huf_archive_page *page, const uint8_t *toc,
                                const struct k3huf_archive_tensor *tensor, uint64_t least) {
    const uint64_t names = page->toc_bytes - k3huf_archive_names_at(page);
    if (tensor->source_offset < least) { return "a tensor comes before the one listed before it"; }
    if (tensor->source_offset > page->source_bytes || tensor->bytes > page->source_bytes - tensor->source_offset) {
        return "a tensor lies outside the source";
    }
    if (tensor->name_bytes == 0 || (uint64_t)tensor->name_at + tensor->name_bytes > names) {
        return "a tensor's name lies outside the names";
    }
    if (!dtype_sound(tensor->dtype)) { return "a tensor's dtype is not text"; }
    if ((uint64_t)tensor->dims_at + tensor->rank > page->ndims) {
        return "a tensor's shape lies outside the dimensions";
    }
    if (tensor->bytes == 0) {
        return tensor->entry == K3HUF_ARCHIVE_NO_ENTRY ? NULL : "a tensor without bytes has an entry";
    }
    if (tensor->entry >= page->nentries) { return "a tensor's entry does not exist"; }
    struct k3huf_archive_entry entry;
    k3huf_archive_entry_read(toc, tensor->entry, &entry);
    if (tensor->source_offset < entry.source_offset || tensor->source_offset - entry.source_offset > entry.raw_bytes ||
        tensor->bytes > entry.raw_bytes - (tensor->source_offset - entry.source_offset)) {
        return "a tensor lies outside its entry";
    }
    return NULL;
}

bool k3huf_archive_toc_check(const struct k3huf_archive_page *page, const uint8_t *toc,
                             struct k3huf_archive_fault *fault) {
    if (k3huf_crc32c(0, toc, (size_t)page->toc_bytes) != page->toc_crc) {
        return bad(fault, AT_TOC_CRC, "the CRC-32C of the table of contents is wrong");
    }
    const uint64_t all_names = page->toc_bytes - k3huf_archive_names_at(page);
    uint64_t end = K3HUF_ARCHIVE_PAGE;
    uint64_t source = 0;
    uint64_t names = 0;
    uint32_t crc = 0;
    for (uint32_t i = 0; i < page->nentries; i++) {
        struct k3huf_archive_entry entry;
        k3huf_archive_entry_read(toc, i, &entry);
        const char *text = entry_fault(page, &entry, end, source);
        names += entry.name_bytes;
        if (text == NULL && names > all_names) { text = "the entries' names are larger than all names"; }
        if (text != NULL) { return bad(fault, page->toc_offset + (uint64_t)i * K3HUF_ARCHIVE_ENTRY_BYTES, text); }
        if (entry.kind != K3HUF_ENTRY_ZEROS) { end = entry.offset + entry.bytes; }
        source += entry.raw_bytes;
        crc = k3huf_crc32c_join(crc, entry.raw_crc, entry.raw_bytes);
    }
    if (source != page->source_bytes) { return bad(fault, AT_SOURCE_BYTES, "the entries do not cover the source"); }
    if (crc != page->source_crc) {
        return bad(fault, AT_SOURCE_CRC, "the CRC-32C of the source is not that of its entries");
    }
    uint64_t least = 0;
    uint64_t dims = 0;
    names = 0;
    for (uint32_t i = 0; i < page->ntensors; i++) {
        struct k3huf_archive_tensor tensor;
        k3huf_archive_tensor_read(page, toc, i, &tensor);
        const char *text = tensor_fault(page, toc, &tensor, least);
        names += tensor.name_bytes;
        dims += tensor.rank;
        if (text == NULL && names > all_names) { text = "the tensors' names are larger than all names"; }
        if (text == NULL && dims > page->ndims) { text = "the tensors' shapes are larger than all dimensions"; }
        if (text != NULL) { return bad(fault, page->toc_offset + tensor_at(page, i), text); }
        least = tensor.source_offset;
    }
    for (uint32_t i = 0; i < page->ndims; i++) {
        if (k3huf_archive_dim_read(page, toc, i) > INT64_MAX) {
            return bad(fault, page->toc_offset + dim_at(page, i), "a dimension is over 2^63 - 1");
        }
    }
    return true;
}
