/* See rate.h. Every change of the word is by one compare-and-swap, or under the queue lock. It guards no
   other memory, and so all orders are relaxed. */
#include "sync/coordination/rate.h"

#include "machine/clock.h"

static fl_rate *rate_of(fl_waitq *waitq)
{
    return (fl_rate *)(void *)waitq;
}

static int64_t date_of(uint64_t word)
{
    return (int64_t)(word & ~FL_RATE_QUEUED);
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t now_of(fl_rate *rate)
{
    int64_t standing = fl_load(&rate->standing, relaxed); /* its writer serves the waiters afterwards */
    return standing >= 0 ? standing : fl_clock_now();
}

/* When the last of `sum` permits is there, none of which is yet, and all in order; FL_FOREVER: too late. */
static int64_t due(fl_rate *rate, int64_t full, uint64_t sum)
{
    int64_t wait;
    uint32_t limit = rate->waitq.limit;
    if (sum <= limit) {
        return full - (int64_t)(limit - sum) * rate->interval;
    }
    if (sum > INT64_MAX || __builtin_mul_overflow((int64_t)(sum - limit), rate->interval, &wait) ||
        wait > FL_RATE_LONGEST) {
        return FL_FOREVER;
    }
    return full + wait;
}

/* The word after so many were taken now; 0: they are not there. */
static uint64_t after(fl_rate *rate, uint64_t word, uint32_t wanted, int64_t now)
{
    int64_t full = later(date_of(word), now) + (int64_t)wanted * rate->interval;
    bool there = full - now <= (int64_t)rate->waitq.limit * rate->interval;
    return there ? (uint64_t)full | (word & FL_RATE_QUEUED) : 0;
}

static const fl_waitq_ops ops;

fl_waitq *fl_rate_new(int64_t interval, uint32_t limit)
{
    fl_waitq *waitq = fl_waitq_new_within(sizeof(fl_rate), &ops, 0, limit, FL_WAITQ_FAIR);
    if (waitq != NULL) {
        rate_of(waitq)->interval = interval;
        rate_of(waitq)->standing = -1;
    }
    return waitq;
}

bool fl_rate_try(fl_waitq *waitq, uint32_t wanted)
{
    fl_waitq_refresh(waitq);
    fl_rate *rate = rate_of(waitq);
    uint64_t word = fl_load(&waitq->word, relaxed), next; /* only a first guess */
    int64_t now = now_of(rate);
    do {
        if ((word & FL_RATE_QUEUED) || (next = after(rate, word, wanted, now)) == 0) {
            return false;
        }
    } while (!fl_cas(&waitq->word, &word, next, relaxed, relaxed));
    return true;
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    (void)stake;
    return fl_rate_try(waitq, wanted);
}

/* Queue lock. It is not in the queue any more. */
static void gone(fl_rate *rate, uint32_t wanted)
{
    rate->queued -= wanted;
    rate->settled += wanted;
}

/* Queue lock. The head looks in time, or is woken to. */
static void tell_head(fl_rate *rate, fl_wakes *wakes)
{
    fl_waitq *waitq = &rate->waitq;
    fl_waiter *head = waitq->head;
    if (head == NULL) {
        fl_fetch_and(&waitq->word, ~FL_RATE_QUEUED, relaxed);
    } else if (head->look > due(rate, date_of(fl_load(&waitq->word, relaxed)), head->wanted)) {
        fl_waitq_wake(head, wakes);
    }
}

/* Queue lock. When this one, which waits, looks next: at its date if it is the head, about then otherwise. */
static void set_look(fl_rate *rate, fl_waiter *waiter, int64_t now)
{
    uint64_t sum = waiter->wanted;
    if (rate->waitq.head != waiter) {
        /* too small if a waiter behind it has left */
        int64_t up_to = (int64_t)(waiter->stake.sum - rate->settled);
        sum = (uint64_t)later(up_to, (int64_t)(sum + rate->waitq.head->wanted));
    }
    waiter->look = due(rate, later(date_of(fl_load(&rate->waitq.word, relaxed)), now), sum);
}

/* Queue lock. Serves all that are due. True: this waiter, which is queued, was one, and is unlinked and not
   yet granted. */
static bool serve_due(fl_rate *rate, fl_waiter *self, int64_t now, fl_wakes *wakes)
{
    fl_waitq *waitq = &rate->waitq;
    bool taken = false;
    while (waitq->head != NULL) {
        fl_waiter *head = waitq->head;
        uint32_t wanted = head->wanted; /* a thread's waiter is gone once it is granted */
        uint64_t word = fl_load(&waitq->word, relaxed), next = after(rate, word, wanted, now);
        if (next == 0) {
            break;
        }
        fl_store(&waitq->word, next, relaxed);
        gone(rate, wanted);
        head->stake.word = next & ~FL_RATE_QUEUED;
        if (head == self) {
            fl_waitq_unlink(waitq, head);
            taken = true;
        } else {
            fl_waitq_grant(waitq, head, wakes);
        }
    }
    if (self != NULL && !taken) {
        set_look(rate, self, now);
    }
    tell_head(rate, wakes);
    return taken;
}

static void serve(fl_waitq *waitq, fl_wakes *wakes)
{
    if (wakes->left != NULL) {
        gone(rate_of(waitq), wakes->left->wanted);
        wakes->left = NULL;
    }
    tell_head(rate_of(waitq), wakes);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_rate *rate = rate_of(waitq);
    int64_t now = now_of(rate), latest = waiter->look;
    uint64_t word = fl_load(&waitq->word, relaxed), next; /* only a first guess */
    do {
        next = word & FL_RATE_QUEUED ? 0 : after(rate, word, waiter->wanted, now);
        if (next != 0) {
            if (fl_cas(&waitq->word, &word, next, relaxed, relaxed)) {
                return true;
            }
            continue;
        }
        if (due(rate, later(date_of(word), now), rate->queued + waiter->wanted) > latest) {
            fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: no other thread reads it */
            return false;
        }
    } while (next != 0 || !fl_cas(&waitq->word, &word, word | FL_RATE_QUEUED, relaxed, relaxed));
    rate->queued += waiter->wanted;
    waiter->stake.sum = rate->settled + rate->queued;
    fl_waitq_push(waitq, waiter);
    set_look(rate, waiter, now);
    return false;
}

static bool retry(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_rate *rate = rate_of(waitq);
    return serve_due(rate, waiter, now_of(rate), wakes);
}

/* What is given back unused counts as used, unless it was the last: a bucket that was given back to later
   could hold more than it may. */
static void give_back(fl_waiter *waiter)
{
    fl_waitq *waitq = waiter->waitq;
    fl_rate *rate = rate_of(waitq);
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    uint64_t word = fl_load(&waitq->word, relaxed); /* only a first guess */
    while ((word & ~FL_RATE_QUEUED) == waiter->stake.word &&
           !fl_cas(&waitq->word, &word, word - (uint64_t)waiter->wanted * (uint64_t)rate->interval, relaxed,
                   relaxed)) {
    }
    tell_head(rate, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

/* There are no waiters; what was taken stays taken. */
static void forked(fl_waitq *waitq)
{
    fl_fetch_and(&waitq->word, ~FL_RATE_QUEUED, relaxed); /* published with the generation */
    rate_of(waitq)->queued = rate_of(waitq)->settled = 0;
}

int64_t fl_rate_look(const fl_waiter *waiter)
{
    fl_rate *rate = rate_of(fl_load(&waiter->waitq, relaxed)); /* which it does not move from */
    return fl_load(&rate->standing, relaxed) >= 0 ? FL_FOREVER : waiter->look; /* never runs again */
}

static const fl_waitq_ops ops = {
    .attempt = attempt,
    .enter = enter,
    .retry = retry,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .look = fl_rate_look,
};

int64_t fl_rate_now(fl_waitq *waitq)
{
    return now_of(rate_of(waitq));
}

uint32_t fl_rate_available(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    fl_rate *rate = rate_of(waitq);
    int64_t ahead = date_of(fl_load(&waitq->word, relaxed)) - now_of(rate);
    int64_t used = ahead <= 0 ? 0 : (ahead + rate->interval - 1) / rate->interval;
    return used < waitq->limit ? waitq->limit - (uint32_t)used : 0;
}

int64_t fl_rate_delay(fl_waitq *waitq, uint32_t wanted)
{
    fl_wakes wakes = {0};
    fl_rate *rate = rate_of(waitq);
    fl_waitq_lock(waitq);
    int64_t now = now_of(rate), full = date_of(fl_load(&waitq->word, relaxed));
    int64_t date = due(rate, later(full, now), rate->queued + wanted);
    fl_waitq_unlock(waitq, &wakes);
    return date == FL_FOREVER ? FL_FOREVER : later(date - now, 0);
}

void fl_rate_set(fl_waitq *waitq, int64_t now)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_store(&rate_of(waitq)->standing, now, relaxed); /* a waiter that reads an older one is served here */
    serve_due(rate_of(waitq), NULL, now, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

int64_t fl_rate_next(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    int64_t date = FL_FOREVER;
    fl_waitq_lock(waitq);
    if (waitq->head != NULL) {
        date = due(rate_of(waitq), date_of(fl_load(&waitq->word, relaxed)), waitq->head->wanted);
    }
    fl_waitq_unlock(waitq, &wakes);
    return date;
}
