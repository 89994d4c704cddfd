/* semaphore: permits that are taken and given, any number at a time. A lock is a semaphore with one permit
 * that knows its holder.
 *
 * The word: permits in the low half, and two flags that change under the queue lock only.
 *   QUEUED    there are waiters: releasing goes through the queue lock.
 *   RESERVED  no newcomer passes the queue: `fair`, or its head has waited for longer than FL_PATIENCE_NS.
 *             Released permits then gather until the head has all it wants, so that a waiter for many is not
 *             starved by waiters for one. With both flags the word changes under the queue lock only.
 *   CLOSED    no permit will come any more: a caller that finds too few is refused. Permits that are there,
 *             and those that are released all the same, can be taken.
 *   RESUMED   of a lock: its holder has come from a condition's wait, and has not released it since. If it
 *             waits there again it has waited in vain, and does so as of when it first began (`since`): so it
 *             is served before newcomers in the end, and they cannot starve it.
 * Without RESERVED a newcomer may take a released permit (barging): it is there at once, and the head is
 * woken to try. The holder that comes back in the same time slice does not wait for a switch of threads.
 *
 * Permits may be withdrawn, more than there are free: the rest is owed, and swallowed as it is given. The
 * debt changes under the queue lock, and keeps QUEUED set.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_SEM_MOST 0x7fffffffu
#define FL_SEM_QUEUED (UINT64_C(1) << 32)
#define FL_SEM_RESERVED (UINT64_C(1) << 33)
#define FL_SEM_CLOSED (UINT64_C(1) << 34)
#define FL_SEM_RESUMED (UINT64_C(1) << 35)

typedef struct {
    fl_waitq waitq;
    union {
        uint64_t debt;  /* queue lock: permits that were withdrawn and are not back yet */
        int64_t since;  /* of a lock (FL_WAITQ_OWNED), the holder's: when its wait began; see RESUMED */
    };
} fl_semaphore;

static inline fl_semaphore *fl_sem_of(fl_waitq *waitq)
{
    return (fl_semaphore *)(void *)waitq;
}

typedef enum {
    FL_SEM_OK,
    FL_SEM_TOO_MANY, /* more than the limit; nothing was given */
} fl_sem_result;

extern const fl_waitq_ops fl_sem_ops;

/* `value` permits now, at most `limit` ever (<= FL_SEM_MOST). */
static inline fl_waitq *fl_sem_new(uint32_t value, uint32_t limit, uint32_t flags)
{
    return fl_waitq_new_within(sizeof(fl_semaphore), &fl_sem_ops, value, limit, flags);
}

static inline uint32_t fl_sem_value(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return (uint32_t)fl_load(&waitq->word, relaxed); /* a figure to show */
}

static inline bool fl_sem_closed(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, acquire) & FL_SEM_CLOSED; /* pairs with fl_sem_close */
}

/* Takes what is there, without waiting. Any thread, attached or not. */
static inline bool fl_sem_try(fl_waitq *waitq, uint32_t wanted, uint64_t owner)
{
    fl_waitq_refresh(waitq);
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    do {
        if ((uint32_t)word < wanted || (word & FL_SEM_RESERVED)) {
            return false;
        }
    } while (!fl_cas(&waitq->word, &word, word - wanted, acquire, relaxed)); /* pairs with fl_sem_give */
    if (waitq->flags & FL_WAITQ_OWNED) {
        fl_store(&waitq->owner, owner, relaxed); /* read by this thread, or after a fork */
    }
    return true;
}

/* Gives permits where no waiter is queued. False: one is, or permits are owed; then fl_sem_give_slow. */
static inline bool fl_sem_give_at_once(fl_waitq *waitq, uint32_t count, fl_sem_result *result)
{
    fl_waitq_refresh(waitq);
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    if ((waitq->flags & FL_WAITQ_OWNED) && (uint32_t)word == 0) {
        fl_store(&waitq->owner, 0, relaxed); /* before another can be the holder */
    }
    *result = FL_SEM_OK;
    do {
        if (word & FL_SEM_QUEUED) {
            return false;
        }
        if ((uint64_t)(uint32_t)word + count > waitq->limit) {
            *result = FL_SEM_TOO_MANY;
            return true;
        }
    } while (!fl_cas(&waitq->word, &word, (word & ~FL_SEM_RESUMED) + count, release,
                     relaxed)); /* pairs with fl_sem_try */
    return true;
}

fl_sem_result fl_sem_give_slow(fl_waitq *waitq, uint32_t count);

/* Gives permits. Does not block, and may be called from a signal handler of Python, a destructor, and without
   the GIL. */
static inline fl_sem_result fl_sem_give(fl_waitq *waitq, uint32_t count)
{
    fl_sem_result result;
    return fl_sem_give_at_once(waitq, count, &result) ? result : fl_sem_give_slow(waitq, count);
}

/* Not for locks. Takes away `count` permits, those first that are free; returns how many are owed now. As
   fl_sem_give, does not block. */
uint64_t fl_sem_withdraw(fl_waitq *waitq, uint32_t count);

/* For ever. As fl_sem_give, does not block. */
void fl_sem_close(fl_waitq *waitq);

/* By a lock's holder that is about to wait for a condition: when the wait began which it has come from
   without a release; 0: it has not. */
static inline int64_t fl_sem_resumed(fl_waitq *waitq)
{
    return fl_load(&waitq->word, relaxed) & FL_SEM_RESUMED ? fl_sem_of(waitq)->since : 0; /* its own */
}

/* Queue lock. A condition's waiters come, one after another, to wait for a lock behind those that do; then
   they are served. */
void fl_sem_adopt(fl_waitq *waitq, fl_waiter *waiter);
void fl_sem_serve(fl_waitq *waitq, fl_wakes *wakes);
