/* The smallest kind: nothing is taken, so nothing is given back. */
#include "core/event.h"

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)wanted, (void)owner;
    return fl_flag_is_set(cell);
}

static bool enter(fl_cell *cell, fl_waiter *waiter)
{
    if (fl_load(&cell->word, acquire)) { /* pairs with fl_flag_set */
        return true;
    }
    fl_cell_push(cell, waiter);
    return false;
}

/* Nobody is ever nudged. */
static bool retry(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)cell, (void)waiter, (void)wakes;
    return false;
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    uint32_t most = cell->flags & FL_CELL_CHAIN ? FL_CHAIN_WIDTH : UINT32_MAX;
    while (cell->head != NULL && most > 0 && fl_load(&cell->word, relaxed)) { /* under the queue lock only */
        bool thread = cell->head->port == NULL; /* a task may not run for long, and wakes nobody */
        most -= fl_cell_grant(cell, cell->head, wakes) && thread;
    }
}

static void give_back(fl_waiter *waiter)
{
    (void)waiter;
}

/* Set or not, as it was at the fork. */
static void forked(fl_cell *cell)
{
    (void)cell;
}

const fl_kind fl_event_kind = {attempt, enter, retry, serve, give_back, forked};

void fl_flag_set(fl_cell *cell)
{
    if (fl_flag_is_set(cell)) {
        return;
    }
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_store(&cell->word, 1, release); /* pairs with fl_flag_is_set */
    serve(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
}

void fl_flag_clear(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_store(&cell->word, 0, relaxed); /* says nothing about what came before */
    fl_cell_unlock(cell, &wakes);
}
