/* See condition.h. */
#include "sync/coordination/condition.h"

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_waitq_push(waitq, waiter);
    return false;
}

/* Queue lock. Notifies the first so many that are not; how many there were. */
static uint32_t notify(fl_waitq *waitq, uint32_t most)
{
    uint32_t count = 0;
    for (fl_waiter *waiter = waitq->head; waiter != NULL && count < most; waiter = waiter->next) {
        count += !waiter->notified;
        waiter->notified = true;
    }
    fl_fetch_add(&waitq->word, count * FL_CONDITION_ONE, relaxed); /* under the queue lock, as all of this */
    return count;
}

/* Queue lock. What one that was notified, and left, does with that. */
static void hand_on(fl_waitq *waitq, const fl_waiter *left)
{
    /* pairs with fl_waitq_leave */
    if (fl_load(&left->state, acquire) != FL_TIMED_OUT && FL_MODEL_BREAK != 8) {
        notify(waitq, 1);
    }
}

/* Queue lock. Wakes the first that is notified, unless one is on its way. */
static void wake_first(fl_waitq *waitq, fl_wakes *wakes)
{
    while (waitq->head != NULL && waitq->head->notified &&
           !(fl_load(&waitq->word, relaxed) & FL_CONDITION_PASSING)) {
        fl_waiter *first = waitq->head;
        fl_fetch_sub(&waitq->word, FL_CONDITION_ONE, relaxed);
        if (fl_waitq_grant(waitq, first, wakes)) {
            fl_fetch_or(&waitq->word, FL_CONDITION_PASSING, relaxed);
        } else {
            hand_on(waitq, first); /* it is about to ask for the queue lock, and so is still there */
        }
    }
}

static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    const fl_waiter *left = wakes->left;
    wakes->left = NULL;
    if (left != NULL && left->notified) {
        fl_fetch_sub(&waitq->word, FL_CONDITION_ONE, relaxed);
        hand_on(waitq, left);
    }
    wake_first(waitq, wakes);
}

static void pass(fl_waitq *waitq, uint32_t more)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_fetch_and(&waitq->word, ~FL_CONDITION_PASSING, relaxed);
    notify(waitq, more);
    wake_first(waitq, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

void fl_condition_pass(fl_waitq *waitq)
{
#if FL_MODEL_BREAK != 48
    pass(waitq, 0);
#else
    (void)waitq;
#endif
}

static void give_back(fl_waiter *waiter)
{
    pass(waiter->waitq, FL_MODEL_BREAK != 8 ? 1 : 0);
}

/* There is no waiter, and none was woken. */
static void forked(fl_waitq *waitq)
{
    fl_store(&waitq->word, 0, relaxed); /* published with the generation */
}

const fl_waitq_ops fl_condition_ops = {
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
};

uint32_t fl_condition_give(fl_waitq *waitq, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    uint32_t given = notify(waitq, count);
    wake_first(waitq, &wakes);
    fl_waitq_unlock(waitq, &wakes);
    return given;
}

uint32_t fl_condition_waiting(fl_waitq *waitq)
{
    uint32_t waiting = fl_waitq_waiting(waitq);
    uint64_t notified = fl_load(&waitq->word, relaxed) / FL_CONDITION_ONE; /* a figure to show */
    return notified < waiting ? waiting - (uint32_t)notified : 0;
}
