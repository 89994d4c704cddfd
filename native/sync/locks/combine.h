/* combine: a lock whose holder runs what the others came for.
 *
 * Prior art: flat combining (Hendler, Incze, Shavit and Tzafrir, SPAA 2010,
 * https://people.csail.mit.edu/shanir/publications/Flat%20Combining%20SPAA%2010.pdf) and the delegation of
 * ffwd (Roghanchi, Eriksson and Basu, SOSP 2017). Here the queue of requests is the wait queue's queue of
 * waiters.
 *
 * A caller that finds the lock held queues a waiter with a request. The holder, when its own section is over,
 * claims the waiters one after another, runs their requests in its own thread, and tells each when it is
 * done. So n sections need no n switches of threads: under a GIL each switch may cost a turn of every thread
 * that wants to run.
 *
 *     WAITING -> CLAIMED     by the holder, under the queue lock: from now on the request is run; its waiter
 *                            waits for that, signals or not (fl_waitq_wait, which ends with DONE as well)
 *     CLAIMED -> DONE        by the holder, when it has been run
 *     WAITING -> GRANTED     the lock itself is the waiter's, and its request is its own to run
 *     CLAIMED or DONE -> CANCELLED or BROKEN    task only: the result is not asked for any more
 *
 * The word: HELD, and QUEUED when there are waiters, which changes under the queue lock. No newcomer passes
 * the queue: as long as it has waiters, the lock is held.
 *
 * The holder uses a request only between fl_combine_next and fl_combine_done. `keep` is called under the
 * queue lock to count it, and fl_combine_forget takes that lock once: so a request may be dropped after it.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_COMBINE_HELD 1u
#define FL_COMBINE_QUEUED 2u

extern const fl_waitq_ops fl_combine_ops;

static inline fl_waitq *fl_combine_new(void)
{
    return fl_waitq_new(&fl_combine_ops, 0, 1, FL_WAITQ_OWNED);
}

/* Takes the lock for this thread if it is free. */
bool fl_combine_try(fl_waitq *waitq);

/* By the holder: the lock is this thread's. */
static inline void fl_combine_lead(fl_waitq *waitq)
{
    fl_store(&waitq->owner, fl_owner_thread(), relaxed); /* read by its own thread, or after a fork */
}

/* By the holder: releases the lock if there are no waiters. */
bool fl_combine_let_go(fl_waitq *waitq);

/* By the holder: the next whose request it is to run, with a reference if it is a task's; NULL: there is
   none, and the lock is not held any more. `keep` is called with the request under the queue lock. */
fl_waiter *fl_combine_next(fl_waitq *waitq, void (*keep)(void *request));

/* What the holder did for the waiter is visible to it, and it is woken. A thread's waiter may be gone
   afterwards. */
void fl_combine_done(fl_waiter *waiter);

/* By the holder: hands the lock over to the first waiter, which runs its own request; without waiters the
   lock is free. */
void fl_combine_pass(fl_waitq *waitq);

/* By the side of a task's waiter that is settled: afterwards no holder begins to use its request. */
void fl_combine_forget(fl_waiter *waiter);
