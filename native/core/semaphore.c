/* See semaphore.h for what the word says. */
#include "core/semaphore.h"

#include "core/clock.h"

static void set_owner(fl_cell *cell, uint64_t owner)
{
    if (cell->flags & FL_CELL_OWNED) {
        fl_store(&cell->owner, owner, relaxed); /* read by its own thread, or after a fork */
    }
}

/* Queue lock: whether nobody may pass the head. */
static bool reserve(fl_cell *cell)
{
    if (!(cell->flags & FL_CELL_FAIR) && fl_clock_now() - cell->head->since <= FL_PATIENCE_NS) {
        if (fl_load(&cell->word, relaxed) & FL_SEM_RESERVED) { /* changes under the queue lock only */
            fl_fetch_and(&cell->word, ~FL_SEM_RESERVED, relaxed);
        }
        return false;
    }
    fl_fetch_or(&cell->word, FL_SEM_RESERVED, relaxed); /* the word itself is all that others look at */
    return true;
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    while (cell->head != NULL) {
        fl_waiter *first = cell->head;
        uint32_t wanted = first->wanted; /* a thread's waiter is gone once it is granted */
        bool reserved = reserve(cell);
        if ((uint32_t)fl_load(&cell->word, relaxed) < wanted) { /* what is given later is served then */
            return;
        }
        if (!reserved) {
            if (fl_cell_nudge(cell, first, wakes)) {
                return;
            }
            continue;
        }
        fl_fetch_sub(&cell->word, wanted, acquire); /* pairs with fl_sem_give; it is reserved */
        set_owner(cell, first->owner);
        if (!fl_cell_grant(cell, first, wakes)) {
            set_owner(cell, 0);
            fl_fetch_add(&cell->word, wanted, release); /* pairs with fl_sem_try */
        }
    }
    fl_fetch_and(&cell->word, ~(FL_SEM_QUEUED | FL_SEM_RESERVED), release); /* pairs with fl_sem_try */
}

static bool enter(fl_cell *cell, fl_waiter *waiter)
{
    uint64_t flags = FL_SEM_QUEUED | (cell->flags & FL_CELL_FAIR ? FL_SEM_RESERVED : 0);
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    for (;;) {
        if ((uint32_t)word >= waiter->wanted && !(word & FL_SEM_RESERVED)) {
            if (fl_cas(&cell->word, &word, word - waiter->wanted, acquire, relaxed)) { /* fl_sem_give */
                set_owner(cell, waiter->owner);
                return true;
            }
#if FL_MODEL_BREAK == 1
        } else if (fl_fetch_or(&cell->word, flags, relaxed) + 1) {
#else
        } else if (fl_cas(&cell->word, &word, word | flags, relaxed, relaxed)) {
#endif
            /* whoever gives from now on comes through the queue lock, and finds the waiter */
            fl_cell_push(cell, waiter);
            return false;
        }
    }
}

static bool retry(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    do {
        if ((uint32_t)word < waiter->wanted || (cell->head != waiter && (word & FL_SEM_RESERVED))) {
            return false;
        }
    } while (!fl_cas(&cell->word, &word, word - waiter->wanted, acquire, relaxed)); /* fl_sem_give */
    set_owner(cell, waiter->owner);
    fl_cell_unlink(cell, waiter);
    serve(cell, wakes);
    return true;
}

static void give_back(fl_waiter *waiter)
{
    fl_sem_give(waiter->cell, waiter->wanted);
}

/* A lock whose holder does not exist in this process is free. A semaphore does not know who took its permits.
   */
static void forked(fl_cell *cell)
{
    uint64_t word = (uint32_t)fl_load(&cell->word, relaxed); /* published with the generation */
    if ((cell->flags & FL_CELL_OWNED) && (fl_load(&cell->owner, relaxed) & ~1ull) != fl_owner_thread()) {
        word = cell->limit;
        fl_store(&cell->owner, 0, relaxed); /* published with the generation */
    }
    fl_store(&cell->word, word, relaxed); /* published with the generation */
}

const fl_kind fl_sem_kind = {fl_sem_try, enter, retry, serve, give_back, forked};

fl_sem_result fl_sem_give_slow(fl_cell *cell, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_sem_result result = FL_SEM_TOO_MANY;
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    if (cell->head != NULL) {
        reserve(cell); /* before others can see what is given */
    }
    do {
        if ((uint64_t)(uint32_t)word + count > cell->limit) {
            break;
        }
        if (fl_cas(&cell->word, &word, word + count, release, relaxed)) { /* pairs with fl_sem_try */
            result = FL_SEM_OK;
        }
    } while (result != FL_SEM_OK);
    serve(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
    return result;
}
