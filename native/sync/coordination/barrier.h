/* barrier: all parties wait until the last of them has arrived.
 *
 * * The word counts in its low half the parties that have arrived and are queued, and has two flags. It
 *   changes under the queue lock only. The last to arrive is not queued: it learns that it is the last
 *   (ACTING), may do something while the others wait, and lets them through by fl_barrier_trip. A party that
 *   arrives meanwhile is queued behind them, for the next time; if that makes up the number, it is woken as
 *   the last.
 *
 * * A waiter that leaves breaks it for all, whatever the reason: then fewer are queued than have arrived.
 *
 * * `generation` counts how often it was broken or reset, so that a last one that was busy meanwhile lets no
 *   waiter through.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_BARRIER_MOST 0x1fffffffu
#define FL_BARRIER_BROKEN (UINT64_C(1) << 32)
#define FL_BARRIER_ACTING (UINT64_C(1) << 33)

/* What a waiter's `wanted` says when its wait is over: its place among the parties from 0 on; or LAST, and by
   which generation. */
#define FL_BARRIER_LAST (1u << 31)

typedef struct {
    fl_waitq waitq;
    uint32_t generation; /* queue lock */
} fl_barrier;

extern const fl_waitq_ops fl_barrier_ops;

/* 1 to FL_BARRIER_MOST parties. */
static inline fl_waitq *fl_barrier_new(uint32_t parties)
{
    return fl_waitq_new_within(sizeof(fl_barrier), &fl_barrier_ops, 0, parties, 0);
}

static inline bool fl_barrier_broken(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, relaxed) & FL_BARRIER_BROKEN; /* a figure to show */
}

/* By the last, with its `wanted`: lets the others through. False: it was broken or reset meanwhile. None of
   the three blocks; as fl_sem_give, they may be called from anywhere. */
bool fl_barrier_trip(fl_waitq *waitq, uint32_t last);
/* Refuses the waiters, and arrivals until it is reset. Given the `wanted` of a last one, only if
   nothing has happened since. */
void fl_barrier_break(fl_waitq *waitq, uint32_t last);
/* Refuses the waiters; later arrivals wait as at a new barrier. */
void fl_barrier_reset(fl_waitq *waitq);
