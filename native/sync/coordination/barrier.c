/* See barrier.h. */
#include "sync/coordination/barrier.h"

static fl_barrier *barrier_of(fl_waitq *waitq)
{
    return (fl_barrier *)(void *)waitq;
}

/* Queue lock. */
static uint32_t last_of(fl_waitq *waitq)
{
    return FL_BARRIER_LAST | (barrier_of(waitq)->generation & FL_BARRIER_MOST);
}

/* Queue lock: all waiters are refused, and a last one that is busy is not the last any more. */
static void refuse_all(fl_waitq *waitq, uint64_t word, fl_wakes *wakes)
{
    fl_store(&waitq->word, word, relaxed); /* under the queue lock */
    barrier_of(waitq)->generation++;
    fl_waitq_refuse_all(waitq, NULL, wakes);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&waitq->word, relaxed); /* under the queue lock */
    if (word & FL_BARRIER_BROKEN) {
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: no other thread reads it */
        return false;
    }
    uint32_t arrived = (uint32_t)word;
    if (!(word & FL_BARRIER_ACTING) && arrived == waitq->limit - 1) {
        fl_store(&waitq->word, word | FL_BARRIER_ACTING, relaxed); /* under the queue lock */
        waiter->wanted = last_of(waitq);
        return true;
    }
    /* of those behind a last one that is busy, the first is the first of the next time */
    waiter->wanted = (arrived + (word & FL_BARRIER_ACTING ? 1 : 0)) % waitq->limit;
    fl_store(&waitq->word, word + 1, relaxed); /* under the queue lock */
    fl_waitq_push(waitq, waiter);
    return false;
}

/* After a waiter has left. */
static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    uint64_t word = fl_load(&waitq->word, relaxed); /* under the queue lock */
    uint32_t waiting = fl_load(&waitq->waiting, relaxed); /* as above */
    if (waiting < (uint32_t)word) {
        refuse_all(waitq, FL_BARRIER_BROKEN, wakes);
    }
}

static void give_back(fl_waiter *waiter)
{
    if (waiter->wanted & FL_BARRIER_LAST) {
        fl_barrier_break(waiter->waitq, waiter->wanted);
    }
}

/* No party has arrived, and a party that was the last is not the last any more. */
static void forked(fl_waitq *waitq)
{
    /* published with the generation of the wait queue, as the next */
    fl_store(&waitq->word, fl_load(&waitq->word, relaxed) & FL_BARRIER_BROKEN, relaxed);
    barrier_of(waitq)->generation++;
}

const fl_waitq_ops fl_barrier_ops = {
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
};

/* Queue lock: one that arrived while the last one was busy may be the next last one. */
static void choose_last(fl_waitq *waitq, fl_wakes *wakes)
{
    uint64_t word = fl_load(&waitq->word, relaxed); /* under the queue lock */
    if ((uint32_t)word < waitq->limit) {
        return;
    }
    fl_waiter *last = waitq->head;
    for (uint32_t i = 1; last != NULL && i < waitq->limit; i++) {
        last = last->next;
    }
    if (last != NULL) {
        last->wanted = last_of(waitq);
        fl_waitq_grant(waitq, last, wakes);
        fl_store(&waitq->word, (word - 1) | FL_BARRIER_ACTING, relaxed); /* under the queue lock */
    }
}

bool fl_barrier_trip(fl_waitq *waitq, uint32_t last)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    uint64_t word = fl_load(&waitq->word, relaxed); /* under the queue lock */
    bool tripped = last == last_of(waitq) && (word & FL_BARRIER_ACTING);
    if (tripped) {
        for (uint32_t i = 1; i < waitq->limit; i++) {
            fl_waitq_grant(waitq, waitq->head, &wakes);
        }
        fl_store(&waitq->word, (word & ~FL_BARRIER_ACTING) - (waitq->limit - 1), relaxed); /* queue lock */
        choose_last(waitq, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
    return tripped;
}

void fl_barrier_break(fl_waitq *waitq, uint32_t last)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    if (last == 0 || last == last_of(waitq)) {
        refuse_all(waitq, FL_BARRIER_BROKEN, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
}

void fl_barrier_reset(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    refuse_all(waitq, 0, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}
