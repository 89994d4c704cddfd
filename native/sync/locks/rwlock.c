/* See rwlock.h for what the word says. */
#include "sync/locks/rwlock.h"

/* What a mode is in the word. */
static uint64_t share(uint32_t mode)
{
    switch (mode) {
    case FL_RW_READ:
        return 1;
    case FL_RW_UPGRADE:
        return FL_RW_UPGRADABLE;
    case FL_RW_NONE:
        return 0;
    default:
        return FL_RW_WRITER;
    }
}

/* By how much the word grows as this is granted. */
static uint64_t gain(uint32_t wanted)
{
    return share(wanted) - (wanted == FL_RW_RAISE ? FL_RW_UPGRADABLE : 0);
}

static uint32_t readers(uint64_t word)
{
    return (uint32_t)word;
}

/* Whether a newcomer finds room; a queued waiter is not kept out by the others. */
static bool fits(uint64_t word, uint32_t wanted, bool queued)
{
    switch (wanted) {
    case FL_RW_READ:
        word &= queued ? FL_RW_WRITER | FL_RW_MOST : FL_RW_WRITER | FL_RW_BARRED | FL_RW_MOST;
        return word < FL_RW_MOST;
    case FL_RW_UPGRADE:
        return !(word & (FL_RW_WRITER | FL_RW_UPGRADABLE | (queued ? 0 : FL_RW_BARRED | FL_RW_QUEUED)));
    case FL_RW_RAISE:
        return readers(word) == 0;
    default:
        return (word & ~(queued ? FL_RW_QUEUED | FL_RW_BARRED : UINT64_C(0))) == 0;
    }
}

bool fl_rw_fits(uint64_t word, uint32_t wanted)
{
    return fits(word, wanted, false);
}

static void set_owner(fl_waitq *waitq, uint32_t wanted, uint64_t owner)
{
    if (wanted >= FL_RW_WRITE) {
        fl_store(&waitq->owner, owner, relaxed); /* read by its own thread, to know itself */
    }
}

/* Takes it if it fits, at the moment that it changes. */
static bool take(fl_waitq *waitq, uint32_t wanted, uint64_t owner, bool queued)
{
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    do {
        if (!fits(word, wanted, queued)) {
            return false;
        }
    } while (
        !fl_cas(&waitq->word, &word, word + gain(wanted), acquire, relaxed)); /* pairs with fl_rw_lower */
    set_owner(waitq, wanted, owner);
    return true;
}

bool fl_rw_try(fl_waitq *waitq, uint32_t wanted, uint64_t owner)
{
    fl_waitq_refresh(waitq);
    return take(waitq, wanted, owner, false);
}

/* Queue lock. The first from here on that waits to write. */
static fl_waiter *next_writer(fl_waiter *from)
{
    while (from != NULL && from->wanted != FL_RW_WRITE && from->wanted != FL_RW_RAISE) {
        from = from->next;
    }
    return from;
}

/* Queue lock. It is inside now, unless it does not fit. It is out of the queue, unless this says false. */
static bool admit(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    uint32_t wanted = waiter->wanted; /* a thread's waiter is gone once it is granted */
    if (!take(waitq, wanted, waiter->stake.holder, true)) {
        return false;
    }
    if (!fl_waitq_grant(waitq, waiter, wakes)) {
        set_owner(waitq, wanted, 0);
        fl_fetch_sub(&waitq->word, gain(wanted), release); /* pairs with take */
    }
    return true;
}

/* Queue lock. All waiting readers, and one waiter that may write next, in the order of waiting. */
static void admit_readers(fl_waitq *waitq, fl_wakes *wakes)
{
    fl_waiter *next;
    for (fl_waiter *waiter = waitq->head; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->wanted == FL_RW_READ || waiter->wanted == FL_RW_UPGRADE) {
            admit(waitq, waiter, wakes);
        }
    }
}

/* Queue lock. `readers_turn`: a writer has just left. */
static void serve_phase(fl_waitq *waitq, fl_wakes *wakes, bool readers_turn)
{
    fl_waiter *writer;
    while (
        !(fl_load(&waitq->word, relaxed) & FL_RW_WRITER)) { /* with waiters set under the queue lock only */
        writer = next_writer(waitq->head);
        if (writer == NULL || (readers_turn && writer->wanted != FL_RW_RAISE)) {
            admit_readers(waitq, wakes);
        }
        if (writer == NULL || !admit(waitq, writer, wakes)) {
            break;
        }
    }
    bool barred = next_writer(waitq->head) != NULL;
    uint64_t gone = (waitq->head == NULL ? FL_RW_QUEUED : 0) | (barred ? 0 : FL_RW_BARRED);
    fl_fetch_and(&waitq->word, ~gone, release); /* pairs with take */
}

static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    serve_phase(waitq, wakes, false);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    bool writes = waiter->wanted >= FL_RW_WRITE;
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    for (;;) {
        if (fits(word, waiter->wanted, false)) {
            if (take(waitq, waiter->wanted, waiter->stake.holder, false)) {
                return true;
            }
            word = fl_load(&waitq->word, relaxed); /* only a guess again */
        } else if (fl_cas(&waitq->word, &word, word | FL_RW_QUEUED | (writes ? FL_RW_BARRED : 0), relaxed,
                          relaxed)) {
            /* a release from now on comes through the queue lock, and finds the waiter */
            (waiter->wanted == FL_RW_RAISE ? fl_waitq_push_first : fl_waitq_push)(waitq, waiter);
            return false;
        }
    }
}

static void give_back(fl_waiter *waiter)
{
    bool raised = waiter->wanted == FL_RW_RAISE;
    fl_rw_lower(waiter->waitq, raised ? FL_RW_WRITE : (fl_rw_mode)waiter->wanted,
                raised ? FL_RW_UPGRADE : FL_RW_NONE);
}

/* There are no holders; those that have survived say so by fl_rw_survive. */
static void forked(fl_waitq *waitq)
{
    fl_store(&waitq->word, 0, relaxed); /* published with the generation, as the next */
    fl_store(&waitq->owner, 0, relaxed); /* published with it, too */
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    return fl_rw_try(waitq, wanted, stake.holder);
}

const fl_waitq_ops fl_rw_ops = {
    .attempt = attempt,
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
};

void fl_rw_lower(fl_waitq *waitq, fl_rw_mode from, fl_rw_mode to)
{
    fl_waitq_refresh(waitq);
    uint64_t less = share(from) - share(to);
    if (from == FL_RW_WRITE) {
        fl_store(&waitq->owner, 0, relaxed); /* before another can write */
    }
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    do {
        if (word & FL_RW_QUEUED) {
            fl_wakes wakes = {0};
            fl_waitq_lock_for_all(waitq, &wakes);
            fl_fetch_sub(&waitq->word, less, release); /* pairs with take */
            serve_phase(waitq, &wakes, from == FL_RW_WRITE);
            fl_waitq_unlock(waitq, &wakes);
            return;
        }
    } while (!fl_cas(&waitq->word, &word, word - less, release, relaxed)); /* pairs with take */
}

void fl_rw_survive(fl_waitq *waitq, fl_rw_mode mode)
{
    fl_waitq_refresh(waitq);
    fl_fetch_add(&waitq->word, share(mode), relaxed); /* alone in this process */
}
