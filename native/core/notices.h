/* notices: what a condition's waiters wait for. Nothing is kept: a notice goes to who waits at that moment.
 *
 * * Who waits with a lock to let go of must be queued before it does, and stay queued until it is notified
 * or gives up, signals or not; a notice that comes while a signal is handled must find it. So a thread's
 * waiter is allocated (fl_cell_wait_in_place), and left behind by a thread that ends while it is attached.
 */
#ifndef FL_CORE_NOTICES_H
#define FL_CORE_NOTICES_H

#include "core/cell.h"

extern const fl_kind fl_notices_kind;

static inline fl_cell *fl_notices_new(void)
{
    return fl_cell_new(&fl_notices_kind, 0, 0, 0);
}

/* Wakes the first `count` that wait; returns how many there were. One that is woken and does not resume
   wakes the next. Does not block; as fl_sem_give, may be called from anywhere. */
uint32_t fl_notices_give(fl_cell *cell, uint32_t count);

#endif
