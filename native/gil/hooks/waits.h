/* waits: which threads wait for a GIL, and since when each has wanted it. Call these functions under the
 * mutex unless said otherwise. */
#pragma once

#include "gil/threads/gil.h"

/* Makes ready, when the clock is known; not under the mutex. */
void fl_waits_prepare(void);

/* The hooks are about to be put in: no wait counts from before. Any thread; under the mutex or not. */
void fl_waits_from_now_on(void);

/* The present thread, which does not have the GIL, joins the waiters; the observer gets a `want`. */
void fl_waits_begin(fl_gil *gil, fl_seat *seat);

/* The present thread no longer waits, for whatever reason. */
void fl_waits_end(fl_gil *gil, fl_seat *seat);

/* Since when the present thread has wanted the GIL; 0: since now. It may have had to wait for the mutex. If
   it was forced to drop the GIL, waited for another thread to take it, and comes back at once, it has
   wanted the GIL all the while. */
uint64_t fl_waits_wanted_since(fl_gil *gil, fl_seat *seat, uint64_t now);

/* The present thread was forced to drop the GIL just now. */
void fl_waits_forced_out(fl_gil *gil, fl_seat *seat);

/* A thread that was forced out wants the GIL again, or has ended. */
void fl_waits_come_back(fl_gil *gil, fl_seat *seat);

/* Notes in the seat what CPU time the present thread has used and how often it has let go of its core. */
void fl_waits_look_at_self(fl_seat *seat);
