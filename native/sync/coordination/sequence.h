/* sequence: a number that only grows, and its waiters for the next one. Broadcasts and watched values are
 * kept beside it; a waiter says which number it has seen.
 *
 * The word is the number, with CLOSED above it; it changes under the queue lock only. Nothing is taken, so
 * nothing is given back. A waiter that has seen all, when it is closed, is refused.
 */
#pragma once

#include "sync/wait/waitq.h"

#define FL_SEQUENCE_CLOSED (UINT64_C(1) << 63)

extern const fl_waitq_ops fl_sequence_ops;

static inline fl_waitq *fl_sequence_new(void)
{
    return fl_waitq_new(&fl_sequence_ops, 0, 0, 0);
}

/* With FL_SEQUENCE_CLOSED. */
static inline uint64_t fl_sequence_word(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, acquire); /* pairs with fl_sequence_advance */
}

/* What a waiter wants that has seen this number. Of one that is behind by just 2**32 it says nothing new: it
   looks itself before it waits. */
static inline uint32_t fl_sequence_seen(uint64_t number)
{
    return (uint32_t)number;
}

/* Wakes all that wait. False: it is closed, and nothing has changed. Neither blocks; as fl_sem_give, both may
   be called from anywhere. */
bool fl_sequence_advance(fl_waitq *waitq);
void fl_sequence_close(fl_waitq *waitq);
