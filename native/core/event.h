/* event: a flag that many wait for. The word is 1 when it is set. */
#ifndef FL_CORE_EVENT_H
#define FL_CORE_EVENT_H

#include "core/cell.h"

extern const fl_kind fl_event_kind;

static inline fl_cell *fl_flag_new(void)
{
    return fl_cell_new(&fl_event_kind, 0, 1, 0);
}

/* A gate: a flag that is never cleared. Setting it wakes few threads, and each that wakes a few more, before
   it wants the GIL: who opens it for n threads makes no n system calls. */
static inline fl_cell *fl_gate_new(void)
{
    return fl_cell_new(&fl_event_kind, 0, 1, FL_CELL_CHAIN);
}

#ifndef FL_CHAIN_WIDTH
#define FL_CHAIN_WIDTH 2
#endif

static inline bool fl_flag_is_set(fl_cell *cell)
{
    fl_cell_refresh(cell);
    return fl_load(&cell->word, acquire) != 0; /* pairs with fl_flag_set */
}

/* Wakes all that wait at this moment, whatever happens to the flag afterwards. Does not block; as
   fl_sem_give, may be called from anywhere. */
void fl_flag_set(fl_cell *cell);
void fl_flag_clear(fl_cell *cell);

#endif
