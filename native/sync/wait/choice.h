/* choice: one thread or task that waits in several wait queues at once, and takes from one of them.
 *
 * Each wait is a waiter of its own, in the queue of its wait queue; what they share is one word. The thread
 * that grants to (or refuses) one of them first wins the word for it, by one compare-and-swap under the queue
 * lock, and only then is it granted. To one whose word is won already nothing is granted: it is as one that
 * has left, and what was to be given goes to the next. So no loser ever has anything that would have to come
 * back. There is one exception: a waiter that takes by itself, woken or as it enters, may have taken before
 * it learns that another was first; then it gives back, in its own thread.
 *
 * A waiter that gives up, by a time-out, a cancellation or what a signal handler raises, takes the word for
 * none of them. While handlers run it keeps its places.
 *
 * A meeting (meeting.h) has two sides, and either may choose: then two words must be won in one instant. One
 * of them is the newcomer's, which is in no queue of this wait queue yet. So it claims its own word: none
 * else can win that meanwhile; one that tries waits for the few instructions until it is known whether the
 * other side could be won, too. If it could, the claim is a win; if the other has gone, the next is tried; if
 * there is none, the word is open again. Only one thread of the process has a claim at a time, by a mutex
 * that is taken within the queue lock: so a claim never waits for another, and two that choose each other in
 * one instant are one after the other, where the second finds that it has been won.
 *
 * Rejected. Taking the queue locks of all wait queues at once, in the order of their addresses, as Go's
 * select does, stops all of them for each. Granting to several and giving back all but one (aiologic and
 * others have it so for time-outs) passes a lock round waiters that do not want it. For meetings: claims
 * without a mutex, that give way to each other and try again (Reppy, Russo and Xiao, "Parallel Concurrent
 * ML", 2009, https://doi.org/10.1145/1596550.1596588), need an order to end, and spin under a lock that
 * others wait for.
 *
 * Invariant, checked by the model (select-*): of what is given to a choice, one thing is kept and nothing is
 * lost; and a choice sleeps only while nothing is there in any of its wait queues. Two that meet both choose
 * each other, or neither.
 */
#pragma once

#include "sync/wait/waitq.h"

/* States of the word; from FL_CHOICE_WON on, less that, the place of the waiter that has won. */
#define FL_CHOICE_OPEN 0u
#define FL_CHOICE_WOKEN 1u /* one of the waiters is woken */
#define FL_CHOICE_CLAIMED 2u /* its own side tries to meet another */
#define FL_CHOICE_WON 3u
#define FL_CHOICE_NO_WINNER UINT32_MAX

typedef struct fl_choice {
    fl_atomic(uint32_t) word; /* a thread parks on it */
    uint32_t count;
    fl_waiter **waiters; /* each with its `choice` and `place_in_choice`; outlive the choice's end */
} fl_choice;

/* False: another was first. Any thread, but not the one that has claimed something. */
bool fl_choice_win(fl_choice *choice, uint32_t place);

/* By the choice's own side, under the queue lock of a wait queue that it is about to enter. True: none wins
   it until fl_choice_decide, and nothing else is locked until then. False: it is decided. */
bool fl_choice_claim(fl_choice *choice);
void fl_choice_decide(fl_choice *choice, uint32_t place, bool won);

/* In a forked child, once. */
void fl_choice_forked(void);

/* By a thread that has woken one of its waiters, under the queue lock. */
void fl_choice_wake(fl_choice *choice);

static inline bool fl_choice_decided(fl_choice *choice)
{
    return fl_load(&choice->word, acquire) >= FL_CHOICE_WON; /* pairs with fl_choice_win */
}

/* Enters the wait queues one after another, from the place `first` on and round, until it is decided. */
void fl_choice_begin(fl_choice *choice, uint32_t first);

/* The thread's ending. Blocks, detached. FL_WAIT_GRANTED: it is decided; else the waiters are in their queues
   still. They are to be allocated (waitq.h, invariant 3). */
fl_wait_result fl_choice_wait(fl_choice *choice, int64_t deadline, int64_t look);

/* Once. All waiters leave but the one that has won, whose place is returned: it is GRANTED or REFUSED, or if
   its loop is closed BROKEN. FL_CHOICE_NONE: none has, and none will. */
uint32_t fl_choice_end(fl_choice *choice);
#define FL_CHOICE_NONE (FL_CHOICE_NO_WINNER - FL_CHOICE_WON)
