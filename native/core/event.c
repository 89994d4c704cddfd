/* The smallest kind: nothing is taken, so nothing is given back. */
#include "core/event.h"

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)wanted, (void)owner;
    return fl_flag_is_set(cell);
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    if (fl_load(&cell->word, acquire) == 0) { /* pairs with fl_count_down */
        return true;
    }
    fl_cell_push(cell, waiter);
    return false;
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    uint32_t most = cell->flags & FL_CELL_CHAIN ? FL_CHAIN_WIDTH : UINT32_MAX;
    while (cell->head != NULL && most > 0 && fl_load(&cell->word, relaxed) == 0) { /* queue lock only */
        bool thread = cell->head->port == NULL; /* a task may not run for long, and wakes nobody */
        most -= fl_cell_grant(cell, cell->head, wakes) && thread;
    }
}

const fl_kind fl_event_kind = {
    .attempt = attempt,
    .enter = enter,
    .serve = serve,
};

/* By the queue lock alone. */
static bool count(fl_cell *cell, uint64_t least, uint64_t most, uint64_t by)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    uint64_t word = fl_load(&cell->word, relaxed); /* changes under the queue lock only */
    bool possible = word >= least && word <= most;
    if (possible) {
        fl_store(&cell->word, word + by, release); /* pairs with fl_count_value */
#if FL_MODEL_BREAK == 9
        fl_cell_unlock(cell, &wakes);
        fl_cell_lock(cell);
#endif
        serve(cell, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
    return possible;
}

bool fl_count_down(fl_cell *cell, uint32_t by)
{
    return count(cell, by, UINT64_MAX, 0 - (uint64_t)by);
}

bool fl_count_up(fl_cell *cell, uint32_t by)
{
    return count(cell, 0, cell->limit - by, by);
}

void fl_flag_set(fl_cell *cell)
{
    if (!fl_flag_is_set(cell)) {
        count(cell, 1, 1, 0 - (uint64_t)1);
    }
}

void fl_flag_clear(fl_cell *cell)
{
    count(cell, 0, 0, 1);
}
