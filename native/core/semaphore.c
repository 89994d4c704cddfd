/* See semaphore.h for what the word says. */
#include "core/semaphore.h"

#include "core/clock.h"

static void set_owner(fl_cell *cell, uint64_t owner)
{
    if (cell->flags & FL_CELL_OWNED) {
        fl_store(&cell->owner, owner, relaxed); /* read by its own thread, or after a fork */
    }
}

/* Queue lock: permits that were withdrawn and are not back yet. */
static uint64_t owed(fl_cell *cell)
{
    return cell->flags & FL_CELL_OWNED ? 0 : fl_load(&cell->owner, relaxed); /* under the queue lock */
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
        uint64_t word = fl_load(&cell->word, relaxed); /* what is given later is served then */
        if ((uint32_t)word < wanted && (word & FL_SEM_CLOSED)) {
            fl_cell_refuse(cell, first, wakes);
            continue;
        }
        if ((uint32_t)word < wanted) {
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
    uint64_t flags = owed(cell) ? FL_SEM_RESERVED : FL_SEM_QUEUED | FL_SEM_RESERVED;
    fl_fetch_and(&cell->word, ~flags, release); /* pairs with fl_sem_try */
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    uint64_t flags = FL_SEM_QUEUED | (cell->flags & FL_CELL_FAIR ? FL_SEM_RESERVED : 0);
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    for (;;) {
        if ((uint32_t)word >= waiter->wanted && !(word & FL_SEM_RESERVED)) {
            if (fl_cas(&cell->word, &word, word - waiter->wanted, acquire, relaxed)) { /* fl_sem_give */
                set_owner(cell, waiter->owner);
                return true;
            }
        } else if ((uint32_t)word < waiter->wanted && (word & FL_SEM_CLOSED)) {
            fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
            return false;
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
            if (word & FL_SEM_CLOSED && FL_MODEL_BREAK != 4) {
                serve(cell, wakes); /* what it was nudged for is gone, and nothing comes */
            }
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
    /* published with the generation, as the stores */
    uint64_t word = fl_load(&cell->word, relaxed) & (UINT32_MAX | FL_SEM_CLOSED);
    uint64_t owner = fl_load(&cell->owner, relaxed); /* published with it, too */
    if ((cell->flags & FL_CELL_OWNED) && (fl_owner_place(owner) & ~1ull) != fl_fork_thread) {
        word = cell->limit;
        fl_store(&cell->owner, 0, relaxed); /* published with the generation */
    }
    fl_store(&cell->word, word | (owed(cell) ? FL_SEM_QUEUED : 0), relaxed); /* published with it, too */
}

const fl_kind fl_sem_kind = {
    .attempt = fl_sem_try,
    .enter = enter,
    .retry = retry,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
};

fl_sem_result fl_sem_give_slow(fl_cell *cell, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    fl_sem_result result = FL_SEM_TOO_MANY;
    uint64_t debt = owed(cell);
    uint32_t paid = debt < count ? (uint32_t)debt : count;
    count -= paid;
    if (cell->head != NULL) {
        reserve(cell); /* before others can see what is given */
    }
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    do {
        if ((uint64_t)(uint32_t)word + count > cell->limit) {
            break;
        }
        if (fl_cas(&cell->word, &word, word + count, release, relaxed)) { /* pairs with fl_sem_try */
            result = FL_SEM_OK;
        }
    } while (result != FL_SEM_OK);
    if (paid > 0 && result == FL_SEM_OK) {
        fl_store(&cell->owner, debt - paid, relaxed); /* under the queue lock */
    }
    serve(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
    return result;
}

uint64_t fl_sem_withdraw(fl_cell *cell, uint32_t count)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    uint64_t flag;
    uint32_t taken;
    do {
        taken = (uint32_t)word < count ? (uint32_t)word : count;
        flag = taken < count && FL_MODEL_BREAK != 5 ? FL_SEM_QUEUED : 0;
    } while (!fl_cas(&cell->word, &word, (word - taken) | flag, acquire, relaxed)); /* fl_sem_give */
    uint64_t debt = owed(cell) + (count - taken);
    fl_store(&cell->owner, debt, relaxed); /* under the queue lock */
    fl_cell_unlock(cell, &wakes);
    return debt;
}

void fl_sem_close(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock_for_all(cell, &wakes);
    fl_fetch_or(&cell->word, FL_SEM_CLOSED, release); /* pairs with fl_sem_closed */
    serve(cell, &wakes);
    fl_cell_unlock(cell, &wakes);
}
