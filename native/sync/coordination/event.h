/* event: what many wait for until it has come. The word counts what is still to come; an event's flag is a
 * count of one, set at 0. Changes under the queue lock only, so that exactly the threads and tasks are
 * woken that waited when it came.
 */
#pragma once

#include "sync/wait/waitq.h"

extern const fl_waitq_ops fl_event_ops;

#define FL_COUNT_MOST 0x7fffffffu

static inline fl_waitq *fl_count_new(uint32_t count)
{
    return fl_waitq_new(&fl_event_ops, count, FL_COUNT_MOST, 0);
}

static inline uint32_t fl_count_value(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return (uint32_t)fl_load(&waitq->word, acquire); /* pairs with fl_count_down */
}

/* At 0 its waiters of this moment are woken, even if it is counted up at once. False: there is not so much to
   come, or with fl_count_up too much, and nothing has changed. Neither blocks; as fl_sem_give, both may be
   called from anywhere. */
bool fl_count_down(fl_waitq *waitq, uint32_t by);
bool fl_count_up(fl_waitq *waitq, uint32_t by);

static inline fl_waitq *fl_flag_new(void)
{
    return fl_count_new(1);
}

static inline bool fl_flag_is_set(fl_waitq *waitq)
{
    return fl_count_value(waitq) == 0;
}

/* Wakes all that wait at this moment, whatever happens to the flag afterwards. Does not block; as
   fl_sem_give, may be called from anywhere. */
void fl_flag_set(fl_waitq *waitq);
void fl_flag_clear(fl_waitq *waitq);
