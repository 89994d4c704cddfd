/* observe: counts what the hooks report, finds the thread that each wait is due to, and writes the events. */
#pragma once

#include "gil/threads/gil.h"
#include "gil/hooks/hooks.h"

extern const fl_observer fl_observe;

/* The length from which on the stacks of a wait are sampled. UINT64_MAX: never. */
void fl_observe_threshold(uint64_t ns);

/* Adds the seat's present hold or wait to a copy of its tally; to the maxima, only its part after `since`.
   Under the mutex. */
void fl_observe_present(const fl_gil *gil, const fl_seat *seat, uint64_t since, uint64_t now,
                        fl_tally *tally);

/* Puts the take that is kept back into the GIL's ring. Under the mutex. */
void fl_observe_flush(fl_gil *gil);

/* The present thread, which has the GIL, begins to collect garbage, or has done so. */
void fl_observe_collection(bool begins, uint32_t generation);
