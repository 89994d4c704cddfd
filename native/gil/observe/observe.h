/* observe: counts what the hooks see, finds out who is to blame, and writes the log. */
#ifndef FL_GIL_OBSERVE_OBSERVE_H
#define FL_GIL_OBSERVE_OBSERVE_H

#include "gil/threads/gil.h"
#include "gil/hooks/hooks.h"

extern const fl_observer fl_observe;

/* From which length on a wait is looked at: its stacks are taken. UINT64_MAX: never. */
void fl_observe_threshold(uint64_t ns);

/* Adds to the copy of a seat's tally what is going on at this moment: a hold or a wait that has not ended; of
   the maxima, the part since `since`. Under the mutex. */
void fl_observe_present(const fl_gil *gil, const fl_seat *seat, uint64_t since, uint64_t now,
                        fl_tally *tally);

/* Puts what is kept back of a GIL into its ring. Under the mutex. */
void fl_observe_tell(fl_gil *gil);

#endif
