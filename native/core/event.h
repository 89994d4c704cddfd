/* event: what many wait for until it has come. The word counts what is still to come; an event's flag is a
 * count of one, set at 0. Changes under the queue lock only, so that exactly those are woken who waited
 * when it came.
 */
#ifndef FL_CORE_EVENT_H
#define FL_CORE_EVENT_H

#include "core/cell.h"

extern const fl_kind fl_event_kind;

#define FL_COUNT_MOST 0x7fffffffu

static inline fl_cell *fl_count_new(uint32_t count)
{
    return fl_cell_new(&fl_event_kind, count, FL_COUNT_MOST, 0);
}

static inline uint32_t fl_count_value(fl_cell *cell)
{
    fl_cell_refresh(cell);
    return (uint32_t)fl_load(&cell->word, acquire); /* pairs with fl_count_down */
}

/* At 0 who waits at this moment is woken, even if it is counted up at once. False: there is not so much to
   come, or with fl_count_up too much, and nothing has changed. Neither blocks; as fl_sem_give, both may be
   called from anywhere. */
bool fl_count_down(fl_cell *cell, uint32_t by);
bool fl_count_up(fl_cell *cell, uint32_t by);

static inline fl_cell *fl_flag_new(void)
{
    return fl_count_new(1);
}

/* A gate: a flag that is never cleared. Setting it wakes few threads, and each that wakes a few more, before
   it wants the GIL: who opens it for n threads makes no n system calls. */
static inline fl_cell *fl_gate_new(void)
{
    return fl_cell_new(&fl_event_kind, 1, 1, FL_CELL_CHAIN);
}

#ifndef FL_CHAIN_WIDTH
#define FL_CHAIN_WIDTH 2
#endif

static inline bool fl_flag_is_set(fl_cell *cell)
{
    return fl_count_value(cell) == 0;
}

/* Wakes all that wait at this moment, whatever happens to the flag afterwards. Does not block; as
   fl_sem_give, may be called from anywhere. */
void fl_flag_set(fl_cell *cell);
void fl_flag_clear(fl_cell *cell);

#endif
