/* See version.h. */
#include "core/version.h"

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)owner;
    return fl_version_seen(fl_version_word(cell)) != wanted;
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&cell->word, acquire); /* pairs with fl_version_advance */
    if (fl_version_seen(word) != waiter->wanted) {
        return true;
    }
    if (word & FL_VERSION_CLOSED) {
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
        return false;
    }
    fl_cell_push(cell, waiter);
    return false;
}

const fl_kind fl_version_kind = {
    .attempt = attempt,
    .enter = enter,
};

bool fl_version_advance(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    uint64_t word = fl_load(&cell->word, relaxed); /* changes under the queue lock only */
    bool open = !(word & FL_VERSION_CLOSED);
    if (open) {
        fl_store(&cell->word, word + 1, release); /* pairs with fl_version_word */
#if FL_MODEL_BREAK == 15
        fl_cell_unlock(cell, &wakes);
        fl_cell_lock(cell);
        if (cell->head != NULL) {
            fl_cell_grant(cell, cell->head, &wakes);
        }
#else
        while (cell->head != NULL) {
            fl_cell_grant(cell, cell->head, &wakes);
        }
#endif
    }
    fl_cell_unlock(cell, &wakes);
    return open;
}

void fl_version_close(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    fl_fetch_or(&cell->word, FL_VERSION_CLOSED, release); /* pairs with fl_version_word */
    while (cell->head != NULL) {
        fl_cell_refuse(cell, cell->head, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
}
