/* See sequence.h. */
#include "sync/coordination/sequence.h"

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    (void)stake;
    return fl_sequence_seen(fl_sequence_word(waitq)) != wanted;
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&waitq->word, acquire); /* pairs with fl_sequence_advance */
    if (fl_sequence_seen(word) != waiter->wanted) {
        return true;
    }
    if (word & FL_SEQUENCE_CLOSED) {
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: no other thread reads it */
        return false;
    }
    fl_waitq_push(waitq, waiter);
    return false;
}

const fl_waitq_ops fl_sequence_ops = {
    .attempt = attempt,
    .enter = enter,
};

bool fl_sequence_advance(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    uint64_t word = fl_load(&waitq->word, relaxed); /* changes under the queue lock only */
    bool open = !(word & FL_SEQUENCE_CLOSED);
    if (open) {
        fl_store(&waitq->word, word + 1, release); /* pairs with fl_sequence_word */
        while (waitq->head != NULL) {
            fl_waitq_grant(waitq, waitq->head, &wakes);
        }
    }
    fl_waitq_unlock(waitq, &wakes);
    return open;
}

void fl_sequence_close(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    fl_fetch_or(&waitq->word, FL_SEQUENCE_CLOSED, release); /* pairs with fl_sequence_word */
    fl_waitq_refuse_all(waitq, NULL, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}
