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

static bool attempt(fl_waitq *waitq, uint32_t wanted, uint64_t owner)
{
    (void)wanted, (void)owner;
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
#if FL_MODEL_BREAK == 6
    if (fl_load(&waitq->word, relaxed) == FL_COMBINE_HELD) {
        fl_store(&waitq->word, 0, release);
        return true;
    }
#else
    uint64_t word = FL_COMBINE_HELD;
    if (fl_cas(&waitq->word, &word, 0, release, relaxed)) { /* pairs with fl_combine_try */
        return true;
    }
#endif
    fl_combine_lead(waitq);
    return false;
}

fl_waiter *fl_combine_next(fl_waitq *waitq, void (*keep)(void *request))
{
    if (fl_combine_let_go(waitq)) {
        return NULL;
    }
    fl_wakes wakes = {0};
    fl_waiter *claimed = NULL;
    fl_waitq_lock(waitq);
    while (waitq->head != NULL && claimed == NULL) {
        fl_waiter *first = waitq->head;
        uint32_t state = FL_WAITING;
        fl_waitq_unlink(waitq, first);
        if (fl_cas(&first->state, &state, FL_CLAIMED, acq_rel, acquire)) { /* pairs with fl_waitq_leave */
            claimed = first;
        }
    }
    if (claimed != NULL) {
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
    bool passed = false;
    fl_waitq_lock(waitq);
    fl_store(&waitq->owner, 0, relaxed); /* until the next holder runs: fl_combine_lead */
    while (waitq->head != NULL && !passed) {
        passed = fl_waitq_grant(waitq, waitq->head, &wakes);
    }
    if (passed) {
        serve(waitq, &wakes);
    } else {
        fl_store(&waitq->word, 0, release); /* pairs with fl_combine_try */
    }
    fl_waitq_unlock(waitq, &wakes);
}

fl_combine_result fl_combine_wait(fl_waiter *waiter)
{
    for (;;) {
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with a grant, and fl_combine_done */
        if (state == FL_GRANTED) {
            return FL_COMBINE_LEADS;
        }
        if (state == FL_DONE) {
            return FL_COMBINE_DONE;
        }
        if (fl_park(&waiter->state, state, waiter->look) != FL_PARK_WOKEN &&
            fl_waitq_leave(waiter, FL_CANCELLED)) {
            return FL_COMBINE_INTERRUPTED;
        }
    }
}

void fl_combine_forget(fl_waiter *waiter)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waiter->waitq);
    if (waiter->queued && waiter->generation == fl_fork_generation) {
        fl_waitq_unlink(waiter->waitq, waiter);
        serve(waiter->waitq, &wakes);
    }
    fl_waitq_unlock(waiter->waitq, &wakes);
}
