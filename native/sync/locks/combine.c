/* See combine.h. */
#include "sync/locks/combine.h"

#include "sync/wait/mailbox.h"

bool fl_combine_try(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    uint64_t word = 0;
    if (!fl_cas(&waitq->word, &word, FL_COMBINE_HELD, acquire, relaxed)) { /* pairs with fl_combine_next */
        return false;
    }
    fl_combine_lead(waitq);
    return true;
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    (void)wanted, (void)stake;
    return fl_combine_try(waitq);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    for (;;) {
        if (!(word & FL_COMBINE_HELD)) {
            if (fl_cas(&waitq->word, &word, FL_COMBINE_HELD, acquire, relaxed)) { /* fl_combine_next */
                fl_combine_lead(waitq);
                return true;
            }
        } else if (fl_cas(&waitq->word, &word, word | FL_COMBINE_QUEUED, relaxed, relaxed)) {
            /* a release from now on comes through the queue lock, and finds the waiter */
            fl_waitq_push(waitq, waiter);
            return false;
        }
    }
}

/* A waiter has left. The holder sees to those that are still there. */
static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    (void)wakes;
    if (waitq->head == NULL && fl_load(&waitq->word, relaxed) & FL_COMBINE_QUEUED) { /* queue lock */
        fl_store(&waitq->word, FL_COMBINE_HELD, relaxed); /* so marked, it changes under the queue lock */
    }
}

static void give_back(fl_waiter *waiter)
{
    fl_combine_pass(waiter->waitq);
}

/* A holder that does not exist in this process holds nothing. */
static void forked(fl_waitq *waitq)
{
    bool mine = fl_load(&waitq->owner, relaxed) == fl_fork_thread; /* published with the generation */
    fl_store(&waitq->word, mine ? FL_COMBINE_HELD : 0, relaxed);   /* the same */
    fl_store(&waitq->owner, mine ? fl_fork_thread : 0, relaxed);   /* the same */
}

const fl_waitq_ops fl_combine_ops = {
    .attempt = attempt,
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
    .forget = fl_combine_forget,
};

bool fl_combine_let_go(fl_waitq *waitq)
{
    fl_store(&waitq->owner, 0, relaxed); /* before another can be the holder */
    uint64_t word = FL_COMBINE_HELD;
    if (fl_cas(&waitq->word, &word, 0, release, relaxed)) { /* pairs with fl_combine_try */
        return true;
    }
    fl_combine_lead(waitq);
    return false;
}

fl_waiter *fl_combine_next(fl_waitq *waitq, void (*keep)(void *request))
{
    if (fl_combine_let_go(waitq)) {
        return NULL;
    }
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_waiter *claimed = waitq->head;
    if (claimed != NULL) {
        fl_waitq_unlink(waitq, claimed);
        fl_store(&claimed->state, FL_CLAIMED, relaxed); /* published by the queue lock */
        serve(waitq, &wakes);
        keep(claimed->request);
        if (claimed->mailbox != NULL) {
            fl_waiter_ref(claimed);
        }
    } else {
        fl_store(&waitq->owner, 0, relaxed); /* before another can be the holder */
        fl_store(&waitq->word, 0, release); /* pairs with fl_combine_try */
    }
    fl_waitq_unlock(waitq, &wakes);
    return claimed;
}

void fl_combine_done(fl_waiter *waiter)
{
    fl_mailbox *mailbox = waiter->mailbox;
    uint32_t state = FL_CLAIMED;
    /* pairs with the waiter's look at its state: the result is seen after it */
    bool wanted = fl_cas(&waiter->state, &state, FL_DONE, acq_rel, acquire);
    if (mailbox == NULL) {
        fl_unpark(&waiter->state); /* its address only */
    } else if (wanted) {
        fl_mailbox_post(mailbox, waiter);
    } else {
        fl_waiter_unref(waiter);
    }
}

void fl_combine_pass(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_waiter *next = waitq->head;
    fl_store(&waitq->owner, next == NULL ? 0 : next->stake.holder, relaxed); /* before it can be the holder */
    if (next != NULL) {
        fl_waitq_grant(waitq, next, &wakes);
        serve(waitq, &wakes);
    } else {
        fl_store(&waitq->word, 0, release); /* pairs with fl_combine_try */
    }
    fl_waitq_unlock(waitq, &wakes);
}

void fl_combine_forget(fl_waiter *waiter)
{
    fl_wakes wakes = {0};
    fl_waitq *waitq = fl_waiter_lock(waiter);
    if (waiter->queued && waiter->generation == fl_fork_generation) {
        fl_waitq_unlink(waitq, waiter);
        serve(waitq, &wakes);
    }
    fl_waitq_unlock(waitq, &wakes);
}
