/* See semaphore.h for what the word says. */
#include "sync/locks/semaphore.h"

#include "machine/clock.h"

static void set_owner(fl_waitq *waitq, uint64_t owner)
{
    if (waitq->flags & FL_WAITQ_OWNED) {
        fl_store(&waitq->owner, owner, relaxed); /* read by its own thread, or after a fork */
    }
}

/* Queue lock. Of a lock nothing is owed. */
static uint64_t owed(fl_waitq *waitq)
{
    return waitq->flags & FL_WAITQ_OWNED ? 0 : fl_sem_of(waitq)->debt;
}

/* Queue lock: whether no newcomer may pass the head. */
static bool reserve(fl_waitq *waitq)
{
    if (!(waitq->flags & FL_WAITQ_FAIR) && fl_clock_now() - waitq->head->since <= FL_PATIENCE_NS) {
        if (fl_load(&waitq->word, relaxed) & FL_SEM_RESERVED) { /* changes under the queue lock only */
            fl_fetch_and(&waitq->word, ~FL_SEM_RESERVED, relaxed);
        }
        return false;
    }
    fl_fetch_or(&waitq->word, FL_SEM_RESERVED, relaxed); /* the word itself is all that others look at */
    return true;
}

/* Queue lock. This one has got a lock. */
static void resume(fl_waitq *waitq, const fl_waiter *waiter)
{
    if (fl_load(&waiter->moved_from, relaxed) != NULL) { /* under the queue lock */
        fl_sem_of(waitq)->since = waiter->since;
        fl_fetch_or(&waitq->word, FL_SEM_RESUMED, relaxed); /* read by the holder */
    }
}

void fl_sem_serve(fl_waitq *waitq, fl_wakes *wakes)
{
    while (waitq->head != NULL) {
        fl_waiter *first = waitq->head;
        uint32_t wanted = first->wanted; /* a thread's waiter is gone once it is granted */
        bool reserved = reserve(waitq);
        uint64_t word = fl_load(&waitq->word, relaxed); /* what is given later is served then */
        if ((uint32_t)word < wanted && (word & FL_SEM_CLOSED)) {
            fl_waitq_refuse(waitq, first, wakes);
            continue;
        }
        if ((uint32_t)word < wanted) {
            return;
        }
        if (!reserved) {
            fl_waitq_wake(first, wakes);
            return;
        }
        first->offered = true;
        fl_fetch_sub(&waitq->word, wanted, acquire); /* pairs with fl_sem_give; it is reserved */
        set_owner(waitq, first->stake.holder);
        resume(waitq, first);
        if (!fl_waitq_grant(waitq, first, wakes)) {
            set_owner(waitq, 0);
            fl_fetch_add(&waitq->word, wanted, release); /* pairs with fl_sem_try */
        }
    }
    uint64_t flags = owed(waitq) ? FL_SEM_RESERVED : FL_SEM_QUEUED | FL_SEM_RESERVED;
    fl_fetch_and(&waitq->word, ~flags, release); /* pairs with fl_sem_try */
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    if (waiter->offered && waitq->flags & FL_WAITQ_OWNED) { /* by a thread of the parent process */
        waiter->offered = false;
        set_owner(waitq, 0);
        uint32_t free = (uint32_t)fl_load(&waitq->word, relaxed); /* the only thread of this child */
        fl_fetch_add(&waitq->word, waitq->limit - free, relaxed); /* the same */
    }
    if (fl_sem_try(waitq, waiter->wanted, waiter->stake.holder)) {
        return true;
    }
    /* a release from now on comes through the queue lock, and finds the waiter; what came before,
       fl_sem_serve finds, which is called if it is the head */
    uint64_t flags = FL_SEM_QUEUED | (waitq->flags & FL_WAITQ_FAIR ? FL_SEM_RESERVED : 0);
    uint64_t word = fl_fetch_or(&waitq->word, flags, relaxed);
    if ((uint32_t)word < waiter->wanted && (word & FL_SEM_CLOSED)) {
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: no other thread reads it */
        fl_sem_serve(waitq, wakes); /* which takes the flags off if there is no waiter */
        return false;
    }
    fl_waitq_push(waitq, waiter);
    return false;
}

static bool retry(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    do {
        if ((uint32_t)word < waiter->wanted || (waitq->head != waiter && (word & FL_SEM_RESERVED))) {
            if (word & FL_SEM_CLOSED) {
                fl_sem_serve(waitq, wakes); /* what it was woken for is gone, and nothing comes */
            }
            return false;
        }
    } while (!fl_cas(&waitq->word, &word, word - waiter->wanted, acquire, relaxed)); /* fl_sem_give */
    set_owner(waitq, waiter->stake.holder);
    resume(waitq, waiter);
    fl_waitq_unlink(waitq, waiter);
    fl_sem_serve(waitq, wakes);
    return true;
}

static void give_back(fl_waiter *waiter)
{
    fl_sem_give(fl_load(&waiter->waitq, relaxed), waiter->wanted); /* which it does not move from any more */
}

/* A lock whose holder does not exist in this process is free. A semaphore does not know its holders. */
static void forked(fl_waitq *waitq)
{
    /* published with the generation, as the stores */
    uint64_t word = fl_load(&waitq->word, relaxed) & (UINT32_MAX | FL_SEM_CLOSED);
    uint64_t owner = fl_load(&waitq->owner, relaxed); /* published with it, too */
    if ((waitq->flags & FL_WAITQ_OWNED) && (fl_owner_place(owner) & ~1ull) != fl_fork_thread) {
        word = waitq->limit;
        fl_store(&waitq->owner, 0, relaxed); /* published with the generation */
    }
    fl_store(&waitq->word, word | (owed(waitq) ? FL_SEM_QUEUED : 0), relaxed); /* published with it, too */
}

/* Its holder's thread has ended: a lock that breaks is closed, of any other the first in line looks. */
static void orphaned(fl_waitq *waitq)
{
    if (waitq->flags & FL_WAITQ_BREAKS) {
        fl_sem_close(waitq);
    } else {
        fl_waitq_wake_head(waitq);
    }
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    return fl_sem_try(waitq, wanted, stake.holder);
}

const fl_waitq_ops fl_sem_ops = {
    .attempt = attempt,
    .enter = enter,
    .retry = retry,
    .serve = fl_sem_serve,
    .give_back = give_back,
    .forked = forked,
    .orphaned = orphaned,
};

fl_sem_result fl_sem_give_slow(fl_waitq *waitq, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    fl_sem_result result = FL_SEM_TOO_MANY;
    uint64_t debt = owed(waitq);
    uint32_t paid = debt < count ? (uint32_t)debt : count;
    count -= paid;
    if (waitq->head != NULL) {
        reserve(waitq); /* before others can see what is given */
    }
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    do {
        if ((uint64_t)(uint32_t)word + count > waitq->limit) {
            break;
        }
        uint64_t more = (word & ~FL_SEM_RESUMED) + count;
        if (fl_cas(&waitq->word, &word, more, release, relaxed)) { /* pairs with fl_sem_try */
            result = FL_SEM_OK;
        }
    } while (result != FL_SEM_OK);
    if (paid > 0 && result == FL_SEM_OK) {
        fl_sem_of(waitq)->debt = debt - paid;
    }
    fl_sem_serve(waitq, &wakes);
    fl_waitq_unlock(waitq, &wakes);
    return result;
}

uint64_t fl_sem_withdraw(fl_waitq *waitq, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    uint64_t flag;
    uint32_t taken;
    do {
        taken = (uint32_t)word < count ? (uint32_t)word : count;
        flag = taken < count ? FL_SEM_QUEUED : 0;
    } while (!fl_cas(&waitq->word, &word, (word - taken) | flag, acquire, relaxed)); /* fl_sem_give */
    uint64_t debt = fl_sem_of(waitq)->debt += count - taken;
    fl_waitq_unlock(waitq, &wakes);
    return debt;
}

void fl_sem_close(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock_for_all(waitq, &wakes);
    fl_fetch_or(&waitq->word, FL_SEM_CLOSED, release); /* pairs with fl_sem_closed */
    fl_sem_serve(waitq, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

void fl_sem_adopt(fl_waitq *waitq, fl_waiter *waiter)
{
    /* a release from now on comes through the queue lock */
    fl_fetch_or(&waitq->word, FL_SEM_QUEUED, relaxed);
    fl_waitq_push(waitq, waiter);
}
