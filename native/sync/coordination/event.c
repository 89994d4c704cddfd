/* The smallest kind: nothing is taken, so nothing is given back. */
#include "sync/coordination/event.h"

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    (void)wanted, (void)stake;
    return fl_flag_is_set(waitq);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    if (fl_load(&waitq->word, acquire) == 0) { /* pairs with fl_count_down */
        return true;
    }
    fl_waitq_push(waitq, waiter);
    return false;
}

static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    while (waitq->head != NULL && fl_load(&waitq->word, relaxed) == 0) { /* queue lock only */
        fl_waitq_grant(waitq, waitq->head, wakes);
    }
}

const fl_waitq_ops fl_event_ops = {
    .attempt = attempt,
    .enter = enter,
    .serve = serve,
};

/* By the queue lock alone. */
static bool count(fl_waitq *waitq, uint64_t least, uint64_t most, uint64_t by)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    uint64_t word = fl_load(&waitq->word, relaxed); /* changes under the queue lock only */
    bool possible = word >= least && word <= most;
    if (possible) {
        fl_store(&waitq->word, word + by, release); /* pairs with fl_count_value */
        serve(waitq, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
    return possible;
}

bool fl_count_down(fl_waitq *waitq, uint32_t by)
{
    return count(waitq, by, UINT64_MAX, 0 - (uint64_t)by);
}

bool fl_count_up(fl_waitq *waitq, uint32_t by)
{
    return count(waitq, 0, waitq->limit - by, by);
}

void fl_flag_set(fl_waitq *waitq)
{
    if (!fl_flag_is_set(waitq)) {
        count(waitq, 1, 1, 0 - (uint64_t)1);
    }
}

void fl_flag_clear(fl_waitq *waitq)
{
    count(waitq, 0, 0, 1);
}
