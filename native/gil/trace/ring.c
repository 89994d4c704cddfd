#include "gil/trace/ring.h"

#include <stdlib.h>
#include <string.h>

fl_ring *fl_ring_new(uint64_t size)
{
    size_t bytes = sizeof(fl_ring) + size * sizeof(fl_event);
    fl_ring *ring = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (ring != NULL) {
        memset(ring, 0, sizeof *ring);
        ring->size = size;
    }
    return ring;
}

void fl_ring_free(fl_ring *ring)
{
    free(ring);
}

bool fl_ring_lost(const fl_ring *ring, fl_event *record)
{
    *record = (fl_event){
        .t = ring->lost_first,
        .value = ring->lost_last,
        .thread = (uint32_t)ring->lost,
        .other = (uint32_t)(ring->lost >> 32),
        .kind = FL_EVENT_LOST,
    };
    return ring->lost != 0;
}
