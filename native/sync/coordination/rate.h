/* rate: permits that come by themselves, one after each interval, and at most `limit` of which gather.
 *
 * Prior art: the generic cell rate algorithm of ATM (ITU-T I.371, annex A, "virtual scheduling",
 * https://www.itu.int/rec/T-REC-I.371). It is a token bucket that is never filled: in place of tokens and the
 * time at which they were counted it keeps one date, at which the bucket would be full if no more
 * were taken. Taking n moves it n intervals on, from now on if it has passed, and is allowed if it is then no
 * more than `limit` intervals away. So there is one number to change, and one compare-and-swap changes it.
 *
 * The word is that date, in nanoseconds of the clock, and a flag:
 *   QUEUED   there are waiters: the word changes under the queue lock only, and no newcomer passes the queue.
 *
 * Permits are not released by a thread, so none wakes the waiters. Each sleeps until its date, as it is known
 * when it is queued, and then serves all that are due, in order, perhaps itself among them. A waiter whose
 * thread or loop is held up delays none behind it, and there is no thread that keeps time.
 *
 * A waiter's `look` is the date at which it looks next, and its stake what was ever wanted up to itself;
 * once it is granted, the word as that left it.
 *
 * Invariants, checked by the model (rate-* in native/tests/model/scenarios_rate.c):
 * 1. Of what was granted between two readings of the clock, the first n after it was t, there are at most
 *    `limit` and one for each interval between them. Every permit moves the date an interval on, it is never
 *    behind the reading that it is granted at, and never more than `limit` intervals ahead of it.
 * 2. When the queue lock is free the head looks at its date at the latest, or has been woken. A waiter
 *    that leaves makes the dates of those behind it earlier; they learn of it as they become the head.
 * 3. Grants are in the order of waiting.
 *
 * Rejected. Promising dates that cannot be taken back (a reservation): a waiter that gives up leaves a gap.
 * Waking only the head: a loop that is held up holds up all behind it. Granting what is late as of its date:
 * after a time in which the process stood still, all waiters would go at once.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_RATE_MOST 0x7fffffffu /* permits at once */
#define FL_RATE_LONGEST (INT64_C(1) << 60) /* `limit` intervals, in nanoseconds: 36 years */
#define FL_RATE_QUEUED (UINT64_C(1) << 63)

typedef struct {
    fl_waitq waitq;
    int64_t interval;           /* constant, 1 or more */
    uint64_t queued, settled;   /* queue lock: what the waiters want, and what those that left had wanted */
    fl_atomic(int64_t) standing; /* the time, where it does not go on by itself; else -1 */
} fl_rate;

/* `limit` permits are there. `interval` times `limit` is FL_RATE_LONGEST at most. */
fl_waitq *fl_rate_new(int64_t interval, uint32_t limit);

/* Takes permits without waiting, if there are no waiters. Any thread, attached or not. */
bool fl_rate_try(fl_waitq *waitq, uint32_t wanted);

/* How long a newcomer would wait for so many, behind all waiters; FL_FOREVER: longer than fits. */
int64_t fl_rate_delay(fl_waitq *waitq, uint32_t wanted);

/* How many could be taken at once, if there were no waiters. */
uint32_t fl_rate_available(fl_waitq *waitq);

/* When a waiter looks next, on the clock of fl_clock_now(); FL_FOREVER: it is woken. Before it enters its
   `look` is the latest date that it waits for, on this rate's clock: if its own is later it is refused. */
int64_t fl_rate_look(const fl_waiter *waiter);

/* Whether its time stands still, until fl_rate_set. */
static inline bool fl_rate_stands(fl_waitq *waitq)
{
    return fl_load(&((fl_rate *)(void *)waitq)->standing, relaxed) >= 0; /* never runs again */
}

/* The time of this rate's clock. */
int64_t fl_rate_now(fl_waitq *waitq);

/* From now on its time is this, and does not go on by itself; waiters that are due then are served. There are
   none, or it was called before. Any thread; does not block, and wakes. */
void fl_rate_set(fl_waitq *waitq, int64_t now);

/* The date of the first waiter; FL_FOREVER: there is none. */
int64_t fl_rate_next(fl_waitq *waitq);
