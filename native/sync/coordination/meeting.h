/* meeting: a sender and a receiver come together, and what the sender has goes to the receiver in that
 * instant.
 *
 * Prior art: unbuffered channels of Hoare's CSP (1978, https://doi.org/10.1145/359576.359585) and Go;
 * SynchronousQueue of java.util.concurrent (Scherer, Lea and Scott, "Scalable Synchronous Queues", 2006,
 * https://doi.org/10.1145/1122971.1122994). As there, the queue holds one kind at a time: senders, or
 * receivers.
 *
 * * The object is passed in a `fl_handoff`, allocated by the sender. Each party has a place for one, which
 * its waiter's stake names; to meet is to swap the content of the two places, under the queue lock and before
 * the other one is woken, whose place may be gone by then. If the other chooses, and was decided elsewhere,
 * it is swapped back. So at any moment a handoff is in one place.
 *
 * * A sender cannot take back what it has sent, because the other party has gone on: its waiter is `final`,
 * and a cancellation comes too late for it. A receiver that will not take its handoff returns it: to the next
 * receiver, and if there is none to the list `returned`, in the order of meeting. From there it goes to the
 * next receiver that arrives, before all that was sent later.
 *
 * * The word counts meetings, and has CLOSED and EMPTIED; it changes under the queue lock only. Once it is
 * emptied, a handoff that is returned stays in its receiver's place, whose owner drops it.
 *
 * * One that chooses among several (choice.h) may come with either side, or with both: it does not meet
 * itself. Then those of both kinds are in the queue, and all of them are its own, or have gone.
 *
 * Rejected. Telling the sender only once the receiver has taken it: a task that waits would have to be asked
 * again each time that the other has meanwhile gone, and trying to send could not say whether it has.
 *
 * Invariants, checked by the model (meet-* in native/tests/model/scenarios_meet.c):
 * 1. When the queue lock is free, no waiter is queued that could meet another that is, or get what is listed,
 *    unless one of them is a choice that is decided.
 * 2. A handoff is in one place, and goes to one receiver, in the order of sending; a sender that does not
 * know that it is sent has it still.
 * 3. Each meets one other, and both are woken, or neither; also where one of them chooses, or both
 *    do.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_MEETING_CLOSED (UINT64_C(1) << 63)
#define FL_MEETING_EMPTIED (UINT64_C(1) << 62)

/* What a waiter wants. */
typedef enum { FL_MEET_SEND, FL_MEET_RECEIVE } fl_meeting_side;

typedef struct fl_handoff {
    void *object;
    struct fl_handoff *next; /* in the list of those that came back */
    uint64_t number;        /* of the meeting */
} fl_handoff;

typedef struct {
    fl_waitq waitq;
    fl_atomic(fl_handoff *) returned; /* queue lock; atomic because a fork may come between any two stores */
} fl_meeting;

/* A waiter's stake: where its handoff is, NULL for none, and where the other's will be. As long as it waits
   the place stays where it is. */
static inline fl_stake fl_meeting_place(fl_handoff **place)
{
    return (fl_stake){.place = place};
}

extern const fl_waitq_ops fl_meeting_ops;

static inline fl_waitq *fl_meeting_new(void)
{
    return fl_waitq_new_within(sizeof(fl_meeting), &fl_meeting_ops, 0, 0, 0);
}

static inline bool fl_meeting_closed(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, acquire) & FL_MEETING_CLOSED; /* pairs with fl_meeting_close */
}

/* Meets a waiter, if there is one. Does not block; any thread that may touch the handoff. */
bool fl_meeting_try(fl_waitq *waitq, fl_meeting_side side, fl_handoff **place);

/* For ever: waiters and newcomers are refused. What came back may still be received. As
   fl_sem_give, does not block. */
void fl_meeting_close(fl_waitq *waitq);

/* How many handoffs have come back, and how many wait on each side: figures to show. */
typedef struct {
    uint32_t listed, waiting[2];
} fl_meeting_figures;
fl_meeting_figures fl_meeting_count(fl_waitq *waitq);
/* For ever: takes all of them, linked by `next`, and no more are listed. */
fl_handoff *fl_meeting_clear(fl_waitq *waitq);
/* The first of them, for the collector: only while no other thread can use the wait queue. */
static inline fl_handoff *fl_meeting_list(fl_waitq *waitq)
{
    return fl_load(&((fl_meeting *)(void *)waitq)->returned, relaxed); /* see above */
}
