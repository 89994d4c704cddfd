/* schedule_counts: what the scheduler has done, by name: for Python, and for the endpoint's metrics. */
#pragma once

#include <stddef.h>

#include "gil/schedule/schedule.h"

typedef struct {
    const char *name;
    uint64_t value;
} fl_schedule_count;

#define FL_SCHEDULE_COUNTS 11

/* Fills in all of them. None ever falls. */
static inline void fl_schedule_counts(const fl_schedule_state *state,
                                      fl_schedule_count into[FL_SCHEDULE_COUNTS])
{
    const fl_policy_counts *counts = &state->counts;
    const fl_schedule_count all[FL_SCHEDULE_COUNTS] = {
        {"acquisitions", counts->acquired},
        {"waits", counts->waited},
        {"forced_drops", counts->forced},
        {"direct_handovers", counts->direct_handovers},
        {"dropped_unclaimed", counts->dropped_unclaimed},
        {"requests", counts->asked},
        {"repeated_requests", counts->asked_again},
        {"woken_early", counts->woken_early},
        {"slices", counts->slices},
        {"spins", counts->spun},
        {"withdrawn", counts->revoked},
    };
    for (size_t i = 0; i < FL_SCHEDULE_COUNTS; i++) {
        into[i] = all[i];
    }
}
