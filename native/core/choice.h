/* choice: one thread or task that waits in several cells at once, and takes from one of them.
 *
 * Each wait is a waiter of its own, in the queue of its cell; what they share is one word. Whoever grants to
 * (or refuses) one of them first wins the word for it, by one compare-and-swap under the queue lock, and only
 * then is it granted. To one whose word is won already nothing is granted: it is as one that has left, and
 * what was to be given goes to the next. So no loser ever has anything that would have to come back. There is
 * one exception: a waiter that takes by itself, nudged or as it enters, may have taken before it learns that
 * another was first; then it gives back, in its own thread.
 *
 * Who gives up, by a time-out, a cancellation or a signal, wins the word for nobody.
 *
 * Rejected. Taking the queue locks of all cells at once, in the order of their addresses, as Go's select
 * does, stops all of them for each. Granting to several and giving back all but one (aiologic and others have
 * it so for time-outs) lets a lock go round through those who do not want it.
 *
 * Invariant, checked by the model (select-*): of what is given to a choice, one thing is kept and nothing is
 * lost; and a choice sleeps only while nothing is there in any of its cells.
 */
#ifndef FL_CORE_CHOICE_H
#define FL_CORE_CHOICE_H

#include "core/cell.h"

/* States of the word; from FL_CHOICE_WON on, less that, the place of the waiter that has won. */
#define FL_CHOICE_OPEN 0u
#define FL_CHOICE_LOOK 1u /* one of the waiters is nudged */
#define FL_CHOICE_WON 2u
#define FL_CHOICE_NOBODY UINT32_MAX

typedef struct fl_choice {
    fl_atomic(uint32_t) word; /* a thread parks on it */
    uint32_t count;
    fl_waiter **waiters; /* each with its `choice` and `place`; outlive the choice's end */
} fl_choice;

/* False: another was first. */
static inline bool fl_choice_win(fl_choice *choice, uint32_t place)
{
    uint32_t word = fl_load(&choice->word, relaxed); /* only a first guess */
    do {
        if (word >= FL_CHOICE_WON) {
            return false;
        }
    } while (!fl_cas(&choice->word, &word, place + FL_CHOICE_WON, acq_rel, acquire)); /* with itself */
    return true;
}

static inline bool fl_choice_decided(fl_choice *choice)
{
    return fl_load(&choice->word, acquire) >= FL_CHOICE_WON; /* pairs with fl_choice_win */
}

/* Enters the cells one after another, from the place `first` on and round, until it is decided. */
void fl_choice_begin(fl_choice *choice, uint32_t first);

/* The thread's ending. Blocks, detached. FL_WAIT_GRANTED: it is decided; else the waiters are in their queues
   still. They are to be allocated (cell.h, invariant 3). */
fl_wait_result fl_choice_wait(fl_choice *choice, int64_t deadline, int64_t look);

/* Once. All waiters leave but the one that has won, whose place is returned: it is GRANTED or REFUSED, or if
   its loop is closed BROKEN. FL_CHOICE_NONE: nobody, and nobody will. */
uint32_t fl_choice_end(fl_choice *choice);
#define FL_CHOICE_NONE (FL_CHOICE_NOBODY - FL_CHOICE_WON)

#endif
