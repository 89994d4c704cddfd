/* condition: what a condition's waiters wait for. Nothing is kept: only present waiters are notified.
 *
 * A waiter with a lock to let go of is queued before it does. To notify one is to move it, in its place in
 * the line, from this queue to that of the lock, which serves it as any waiter for the lock: the waiter
 * sleeps on, and wakes once, with the lock. It is what parking_lot's unpark_requeue, trio's repark and the
 * wait morphing of POSIX threads do. Since it began to wait long ago, it is served before newcomers, and
 * those that are notified take turns with those that notify.
 *
 * A waiter whose time is over leaves this queue, or has been moved first, and then waits for the lock without
 * a time: it was notified. One that is abandoned after it was moved, or granted the lock, passes its
 * notification on.
 *
 * Invariants, checked by the model (condition-*):
 * 1. A waiter is in one of the two queues, or in none once it has the lock or has left. It moves once, under
 *    the locks of both; this one's is taken first.
 * 2. Those that are notified have the lock in the order in which they began to wait.
 */
#pragma once

#include "sync/wait/waitq.h"

typedef struct {
    fl_waitq waitq;
    fl_waitq *lock; /* a semaphore with an owner (sync/locks/semaphore.h); outlives all waits here */
} fl_condition;

/* NULL: no memory. */
fl_waitq *fl_condition_new(fl_waitq *lock);

/* Notifies the first `count` that wait; returns how many there were. Does not block; as fl_sem_give, may be
   called from anywhere. */
uint32_t fl_condition_give(fl_waitq *waitq, uint32_t count);

/* Takes a waiter out of this queue. False: it has been notified. */
bool fl_condition_leave(fl_waiter *waiter);
