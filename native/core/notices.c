/* See notices.h. */
#include "core/notices.h"

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    fl_cell_push(cell, waiter);
    return false;
}

/* Queue lock. Notifies the first so many that are not; how many there were. */
static uint32_t notify(fl_cell *cell, uint32_t most)
{
    uint32_t count = 0;
    for (fl_waiter *waiter = cell->head; waiter != NULL && count < most; waiter = waiter->next) {
        count += !waiter->notified;
        waiter->notified = true;
    }
    fl_fetch_add(&cell->word, count * FL_NOTICES_ONE, relaxed); /* under the queue lock, as all of this */
    return count;
}

/* Queue lock. What one that was notified, and left, does with that. */
static void hand_on(fl_cell *cell, const fl_waiter *left)
{
    /* pairs with fl_cell_leave */
    if (fl_load(&left->state, acquire) != FL_TIMED_OUT && FL_MODEL_BREAK != 8) {
        notify(cell, 1);
    }
}

/* Queue lock. Wakes the first that is notified, unless one is on its way. */
static void wake_first(fl_cell *cell, fl_wakes *wakes)
{
    while (cell->head != NULL && cell->head->notified &&
           !(fl_load(&cell->word, relaxed) & FL_NOTICES_PASSING)) {
        fl_waiter *first = cell->head;
        fl_fetch_sub(&cell->word, FL_NOTICES_ONE, relaxed);
        if (fl_cell_grant(cell, first, wakes)) {
            fl_fetch_or(&cell->word, FL_NOTICES_PASSING, relaxed);
        } else {
            hand_on(cell, first); /* it is about to ask for the queue lock, and so is still there */
        }
    }
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    const fl_waiter *left = wakes->left;
    wakes->left = NULL;
    if (left != NULL && left->notified) {
        fl_fetch_sub(&cell->word, FL_NOTICES_ONE, relaxed);
        hand_on(cell, left);
    }
    wake_first(cell, wakes);
}

static void pass(fl_cell *cell, uint32_t more)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_fetch_and(&cell->word, ~FL_NOTICES_PASSING, relaxed);
    notify(cell, more);
    wake_first(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
}

void fl_notices_pass(fl_cell *cell)
{
#if FL_MODEL_BREAK != 48
    pass(cell, 0);
#else
    (void)cell;
#endif
}

static void give_back(fl_waiter *waiter)
{
    pass(waiter->cell, FL_MODEL_BREAK != 8 ? 1 : 0);
}

/* Nobody waits, and nobody was woken. */
static void forked(fl_cell *cell)
{
    fl_store(&cell->word, 0, relaxed); /* published with the generation */
}

const fl_kind fl_notices_kind = {
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
};

uint32_t fl_notices_give(fl_cell *cell, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint32_t given = notify(cell, count);
    wake_first(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
    return given;
}

uint32_t fl_notices_waiting(fl_cell *cell)
{
    uint32_t waiting = fl_cell_waiting(cell);
    uint64_t notified = fl_load(&cell->word, relaxed) / FL_NOTICES_ONE; /* a figure to show */
    return notified < waiting ? waiting - (uint32_t)notified : 0;
}
