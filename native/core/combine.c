/* See combine.h. */
#include "core/combine.h"

#include "core/port.h"

bool fl_combine_try(fl_cell *cell)
{
    fl_cell_refresh(cell);
    uint64_t word = 0;
    if (!fl_cas(&cell->word, &word, FL_COMBINE_HELD, acquire, relaxed)) { /* pairs with fl_combine_next */
        return false;
    }
    fl_combine_lead(cell);
    return true;
}

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    (void)wanted, (void)owner;
    return fl_combine_try(cell);
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    for (;;) {
        if (!(word & FL_COMBINE_HELD)) {
            if (fl_cas(&cell->word, &word, FL_COMBINE_HELD, acquire, relaxed)) { /* fl_combine_next */
                fl_combine_lead(cell);
                return true;
            }
        } else if (fl_cas(&cell->word, &word, word | FL_COMBINE_QUEUED, relaxed, relaxed)) {
            /* whoever lets go from now on comes through the queue lock, and finds the waiter */
            fl_cell_push(cell, waiter);
            return false;
        }
    }
}

/* Somebody has left. The holder sees to those who are still there. */
static void serve(fl_cell *cell, fl_wakes *wakes)
{
    (void)wakes;
    if (cell->head == NULL && fl_load(&cell->word, relaxed) & FL_COMBINE_QUEUED) { /* queue lock */
        fl_store(&cell->word, FL_COMBINE_HELD, relaxed); /* so marked, it changes under the queue lock */
    }
}

static void give_back(fl_waiter *waiter)
{
    fl_combine_pass(waiter->cell);
}

/* A holder that does not exist in this process holds nothing. */
static void forked(fl_cell *cell)
{
    bool mine = fl_load(&cell->owner, relaxed) == fl_fork_thread; /* published with the generation */
    fl_store(&cell->word, mine ? FL_COMBINE_HELD : 0, relaxed);   /* the same */
    fl_store(&cell->owner, mine ? fl_fork_thread : 0, relaxed);   /* the same */
}

const fl_kind fl_combine_kind = {
    .attempt = attempt,
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
    .marks = true,
    .forget = fl_combine_forget,
};

bool fl_combine_let_go(fl_cell *cell)
{
    fl_store(&cell->owner, 0, relaxed); /* before somebody else can be the holder */
#if FL_MODEL_BREAK == 6
    if (fl_load(&cell->word, relaxed) == FL_COMBINE_HELD) {
        fl_store(&cell->word, 0, release);
        return true;
    }
#else
    uint64_t word = FL_COMBINE_HELD;
    if (fl_cas(&cell->word, &word, 0, release, relaxed)) { /* pairs with fl_combine_try */
        return true;
    }
#endif
    fl_combine_lead(cell);
    return false;
}

fl_waiter *fl_combine_next(fl_cell *cell, void (*keep)(void *request))
{
    if (fl_combine_let_go(cell)) {
        return NULL;
    }
    fl_wakes wakes = {0};
    fl_waiter *claimed = NULL;
    fl_cell_lock(cell);
    while (cell->head != NULL && claimed == NULL) {
        fl_waiter *first = cell->head;
        uint32_t state = FL_WAITING;
        fl_cell_unlink(cell, first);
        if (fl_cas(&first->state, &state, FL_CLAIMED, acq_rel, acquire)) { /* pairs with fl_cell_leave */
            claimed = first;
        }
    }
    if (claimed != NULL) {
        serve(cell, &wakes);
        keep(claimed->request);
        if (claimed->port != NULL) {
            fl_waiter_ref(claimed);
        }
    } else {
        fl_store(&cell->owner, 0, relaxed); /* before somebody else can be the holder */
        fl_store(&cell->word, 0, release); /* pairs with fl_combine_try */
    }
    fl_cell_unlock(cell, &wakes);
    return claimed;
}

void fl_combine_done(fl_waiter *waiter)
{
    fl_port *port = waiter->port;
    uint32_t state = FL_CLAIMED;
    /* pairs with the look at the state of who waits: the result is seen after it */
    bool wanted = fl_cas(&waiter->state, &state, FL_DONE, acq_rel, acquire);
    if (port == NULL) {
        fl_unpark(&waiter->state); /* its address only */
    } else if (wanted) {
        fl_port_post(port, waiter);
    } else {
        fl_waiter_unref(waiter);
    }
}

void fl_combine_pass(fl_cell *cell)
{
    fl_wakes wakes = {0};
    bool passed = false;
    fl_cell_lock(cell);
    fl_store(&cell->owner, 0, relaxed); /* until the next holder runs: fl_combine_lead */
    while (cell->head != NULL && !passed) {
        passed = fl_cell_grant(cell, cell->head, &wakes);
    }
    if (passed) {
        serve(cell, &wakes);
    } else {
        fl_store(&cell->word, 0, release); /* pairs with fl_combine_try */
    }
    fl_cell_unlock(cell, &wakes);
}

fl_combine_result fl_combine_wait(fl_waiter *waiter)
{
    for (;;) {
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with a grant, and fl_combine_done */
        if (state == FL_GRANTED) {
            return FL_COMBINE_LEADS;
        }
        if (state == FL_DONE) {
            return FL_COMBINE_DONE;
        }
        if (fl_park(&waiter->state, state, waiter->look) != FL_PARK_WOKEN &&
            fl_cell_leave(waiter, FL_CANCELLED)) {
            return FL_COMBINE_INTERRUPTED;
        }
    }
}

void fl_combine_forget(fl_waiter *waiter)
{
    fl_wakes wakes = {0};
    fl_cell_lock(waiter->cell);
    if (waiter->queued && waiter->generation == fl_fork_generation) {
        fl_cell_unlink(waiter->cell, waiter);
        serve(waiter->cell, &wakes);
    }
    fl_cell_unlock(waiter->cell, &wakes);
}
