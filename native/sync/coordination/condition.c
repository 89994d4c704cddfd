/* See condition.h. */
#include "sync/coordination/condition.h"

#include "sync/locks/semaphore.h"

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_waitq_push(waitq, waiter);
    return false;
}

static void pass_on(fl_waitq *waitq)
{
    fl_condition_give(waitq, 1);
}

static const fl_waitq_ops ops = {.enter = enter, .pass_on = pass_on};

fl_waitq *fl_condition_new(fl_waitq *lock)
{
    fl_waitq *made = fl_waitq_new_within(sizeof(fl_condition), &ops, 0, 0, FL_WAITQ_TO_LOCK);
    if (made != NULL) {
        ((fl_condition *)(void *)made)->lock = lock;
    }
    return made;
}

/* Both queue locks. */
static void move(fl_waiter *waiter, fl_waitq *from, fl_waitq *to)
{
    fl_waitq_unlink(from, waiter);
    fl_store(&waiter->moved_from, from, relaxed); /* under the queue locks */
    fl_store(&waiter->request, waiter->request_moved, relaxed); /* the same */
    if (waiter->mailbox != NULL) { /* it is counted, and counts its queues; the caller has one of each */
        fl_waitq_ref(to);
    }
    fl_store(&waiter->waitq, to, release); /* pairs with fl_waiter_lock */
    fl_sem_adopt(to, waiter);
}

uint32_t fl_condition_give(fl_waitq *waitq, uint32_t count)
{
    fl_waitq *lock = ((fl_condition *)(void *)waitq)->lock;
    fl_wakes wakes = {0};
    uint32_t given = 0;
    fl_waitq_lock(waitq);
    if (waitq->head != NULL) {
        fl_waitq_lock(lock);
        for (; given < count && waitq->head != NULL; given++) {
            move(waitq->head, waitq, lock);
        }
        fl_sem_serve(lock, &wakes);
        if (lock->head != NULL && fl_waitq_orphaned(lock)) { /* one that has moved has not looked yet */
            fl_waitq_wake(lock->head, &wakes);
        }
        fl_mutex_unlock(&lock->lock);
    }
    fl_waitq_unlock(waitq, &wakes);
    return given;
}

bool fl_condition_leave(fl_waiter *waiter)
{
    fl_wakes none = {0};
    fl_waitq *waitq = fl_waiter_lock(waiter);
    bool leaves = fl_load(&waiter->moved_from, relaxed) == NULL; /* under the queue lock */
    if (leaves) {
        if (waiter->queued && waiter->generation == fl_fork_generation) { /* else in the parent process */
            fl_waitq_unlink(waitq, waiter);
            fl_store(&waiter->state, FL_CANCELLED, relaxed); /* published by the queue lock */
        } /* else it was broken, with its loop */
    }
    fl_waitq_unlock(waitq, &none);
    return leaves;
}
