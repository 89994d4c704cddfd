/* See notices.h. */
#include "core/notices.h"

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)cell, (void)wanted, (void)owner;
    return false;
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_cell_push(cell, waiter);
    return false;
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    (void)cell, (void)wakes;
}

static void give_back(fl_waiter *waiter)
{
#if FL_MODEL_BREAK != 8
    fl_notices_give(waiter->cell, 1);
#else
    (void)waiter;
#endif
}

static void forked(fl_cell *cell)
{
    (void)cell;
}

const fl_kind fl_notices_kind = {attempt, enter, NULL, serve, give_back, forked};

uint32_t fl_notices_give(fl_cell *cell, uint32_t count)
{
    uint32_t given = 0;
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    while (given < count && cell->head != NULL) {
        given += fl_cell_grant(cell, cell->head, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
    return given;
}
