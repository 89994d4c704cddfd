/* See barrier.h. */
#include "core/barrier.h"

/* Queue lock. */
static uint32_t last_of(fl_cell *cell)
{
    uint64_t generation = fl_load(&cell->owner, relaxed); /* under the queue lock */
    return FL_BARRIER_LAST | ((uint32_t)generation & FL_BARRIER_MOST);
}

/* Queue lock: everyone who waits is refused, and a last one that is busy is not the last any more. */
static void refuse_all(fl_cell *cell, uint64_t word, fl_wakes *wakes)
{
    fl_store(&cell->word, word, relaxed); /* under the queue lock */
    fl_store(&cell->owner, fl_load(&cell->owner, relaxed) + 1, relaxed); /* as above */
    while (cell->head != NULL) {
        fl_cell_refuse(cell, cell->head, wakes);
    }
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&cell->word, relaxed); /* under the queue lock */
    if (word & FL_BARRIER_BROKEN) {
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
        return false;
    }
    uint32_t arrived = (uint32_t)word;
    if (!(word & FL_BARRIER_ACTING) && arrived == cell->limit - 1) {
        fl_store(&cell->word, word | FL_BARRIER_ACTING, relaxed); /* under the queue lock */
        waiter->wanted = last_of(cell);
        return true;
    }
    /* of those who are behind a last one that is busy, the first is the first of the next time */
    waiter->wanted = (arrived + (word & FL_BARRIER_ACTING ? 1 : 0)) % cell->limit;
    fl_store(&cell->word, word + 1, relaxed); /* under the queue lock */
    fl_cell_push(cell, waiter);
    return false;
}

/* After somebody left. */
static void serve(fl_cell *cell, fl_wakes *wakes)
{
    uint64_t word = fl_load(&cell->word, relaxed); /* under the queue lock */
    uint32_t waiting = fl_load(&cell->waiting, relaxed); /* as above */
    if (waiting < (uint32_t)word) {
#if FL_MODEL_BREAK == 10
        fl_store(&cell->word, word - (uint32_t)word + waiting, relaxed);
        return;
#endif
        refuse_all(cell, FL_BARRIER_BROKEN, wakes);
    }
}

static void give_back(fl_waiter *waiter)
{
    if (waiter->wanted & FL_BARRIER_LAST) {
        fl_barrier_break(waiter->cell, waiter->wanted);
    }
}

/* Nobody has arrived, and nobody who was the last is. */
static void forked(fl_cell *cell)
{
    /* published with the generation of the cell, as the next */
    fl_store(&cell->word, fl_load(&cell->word, relaxed) & FL_BARRIER_BROKEN, relaxed);
    fl_store(&cell->owner, fl_load(&cell->owner, relaxed) + 1, relaxed); /* published with it, too */
}

const fl_kind fl_barrier_kind = {
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
};

/* Queue lock: one of those who came while the last one was busy may be the next last one. */
static void choose_last(fl_cell *cell, fl_wakes *wakes)
{
    uint64_t word = fl_load(&cell->word, relaxed); /* under the queue lock */
    if ((uint32_t)word < cell->limit) {
        return;
    }
    fl_waiter *last = cell->head;
    for (uint32_t i = 1; last != NULL && i < cell->limit; i++) {
        last = last->next;
    }
    if (last != NULL) {
        last->wanted = last_of(cell);
        if (fl_cell_grant(cell, last, wakes)) {
            fl_store(&cell->word, (word - 1) | FL_BARRIER_ACTING, relaxed); /* under the queue lock */
        }
    }
    serve(cell, wakes);
}

bool fl_barrier_trip(fl_cell *cell, uint32_t last)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    uint64_t word = fl_load(&cell->word, relaxed); /* under the queue lock */
    bool tripped = last == last_of(cell) && (word & FL_BARRIER_ACTING);
    if (tripped) {
        for (uint32_t i = 1; i < cell->limit; i++) {
            cell->head->wanted |= FL_BARRIER_THROUGH; /* also for who has left and wants the queue lock */
            fl_cell_grant(cell, cell->head, &wakes);
        }
        fl_store(&cell->word, (word & ~FL_BARRIER_ACTING) - (cell->limit - 1), relaxed); /* queue lock */
        choose_last(cell, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
    return tripped;
}

void fl_barrier_break(fl_cell *cell, uint32_t last)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    if (last == 0 || last == last_of(cell)) {
        refuse_all(cell, FL_BARRIER_BROKEN, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
}

void fl_barrier_reset(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    refuse_all(cell, 0, &wakes);
    fl_cell_unlock(cell, &wakes);
}
