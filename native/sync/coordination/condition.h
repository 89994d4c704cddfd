/* condition: what a condition's waiters wait for. Nothing is kept: only present waiters are notified.
 *
 * A waiter with a lock to let go of must be queued before it does, and stay queued until it is notified or
 * gives up, signals or not; a notification that comes while a signal is handled must find it. So a thread's
 * waiter is allocated (fl_waitq_wait_in_place), and left behind by a thread that ends while it is attached.
 *
 * Every notified waiter needs the condition's lock next. Waking all of them at once would let them compete
 * for it: n wake-ups that find it taken, and, in a loop that shuffles what it wakes, any order. So they
 * are marked, which is the moment that they are notified, and stay asleep in the queue; one at a time is
 * woken, and wakes the next once it has the lock (fl_condition_pass). It is the effect of parking_lot's
 * unpark_requeue and of trio's repark; but the queue of the lock, which may be of any kind, is not touched.
 *
 * Invariants, checked by the model:
 * 1. The notified waiters of the queue are its first ones.
 * 2. While there are any, one that was woken is on its way to fl_condition_pass: the word says PASSING.
 * 3. A notified waiter that leaves for another reason than the time, before or after it was woken, notifies
 *    the next that is not. One whose time is over was notified first.
 */
#ifndef FL_SYNC_COORDINATION_CONDITION_H
#define FL_SYNC_COORDINATION_CONDITION_H

#include "sync/wait/waitq.h"

#define FL_CONDITION_PASSING UINT64_C(1)
#define FL_CONDITION_ONE UINT64_C(2) /* a waiter that is notified and was not yet woken */

extern const fl_waitq_ops fl_condition_ops;

static inline fl_waitq *fl_condition_new(void)
{
    return fl_waitq_new(&fl_condition_ops, 0, 0, 0);
}

/* Notifies the first `count` that wait; returns how many there were. One that is notified and does not resume
   notifies the next. Does not block; as fl_sem_give, may be called from anywhere. */
uint32_t fl_condition_give(fl_waitq *waitq, uint32_t count);

/* By one that was woken, once it has the lock, or will not get it. */
void fl_condition_pass(fl_waitq *waitq);

/* How many wait and are not notified: a figure to show. */
uint32_t fl_condition_waiting(fl_waitq *waitq);

#endif
