/* waits: who waits for a GIL, and since when it has wanted it. What is here is called under the mutex
 * unless said otherwise. */
#ifndef FL_GIL_HOOKS_WAITS_H
#define FL_GIL_HOOKS_WAITS_H

#include "gil/threads/gil.h"

/* Makes ready, when the clock is known; not under the mutex. */
void fl_waits_prepare(void);

/* The present thread, which has not got the GIL, joins those who wait; the observer is told. */
void fl_waits_begin(fl_gil *gil, fl_seat *seat);

/* It waits no longer, whatever became of it. */
void fl_waits_end(fl_gil *gil, fl_seat *seat);

/* Since when the present thread has wanted the GIL, if not since now: 0. It may have had to wait for the
   mutex; and when it was forced to drop the GIL, waited for that to be made use of, if it had to, and comes
   back at once, it has wanted the GIL all the while. */
uint64_t fl_waits_wanted_since(fl_gil *gil, fl_seat *seat, uint64_t now);

/* The present thread was forced to drop the GIL just now. */
void fl_waits_forced_out(fl_gil *gil, fl_seat *seat);

/* A thread that was is back, or is no more. */
void fl_waits_come_back(fl_gil *gil, fl_seat *seat);

/* Notes in the seat what CPU time the present thread has used and how often it has let go of its core. */
void fl_waits_look_at_self(fl_seat *seat);

#endif
