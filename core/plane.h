/* plane.h - what the files that decode a coded plane share. Private to core/; may not do more. */
#ifndef K3HUF_PLANE_H
#define K3HUF_PLANE_H

#include <stdbool.h>

#include "compiler.h"
#include "k3huf.h"

/* k3huf_lanes() for lanes that lie `stride` bytes apart inside larger objects. */
void k3huf_lane_groups(const struct k3huf_table *table, struct k3huf_workspace *workspace, struct k3huf_lane *first,
                       size_t stride, size_t n);

/* After a stripe's last code: `size` bytes of the plane are left at `coded`, `bit` bits of the first are used. True
 * where nothing but zero bits up to the end of that byte is left. */
K3HUF_INLINE bool k3huf_plane_ends(const uint8_t *coded, size_t size, uint32_t bit) {
    return bit == 0 ? size == 0 : size == 1 && (uint8_t)(coded[0] << bit) == 0;
}

#endif
