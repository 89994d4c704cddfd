/* See rwlock.h for what the word says. */
#include "core/rwlock.h"

/* What a mode is in the word. */
static uint64_t share(uint32_t mode)
{
    switch (mode) {
    case FL_RW_READ:
        return 1;
    case FL_RW_UPGRADE:
        return FL_RW_UPGRADABLE;
    case FL_RW_NONE:
        return 0;
    default:
        return FL_RW_WRITER;
    }
}

/* By how much the word grows as this is granted. */
static uint64_t gain(uint32_t wanted)
{
    return share(wanted) - (wanted == FL_RW_RAISE ? FL_RW_UPGRADABLE : 0);
}

static uint32_t readers(uint64_t word)
{
    return (uint32_t)word;
}

/* Whether who comes finds room; who has queued is not kept out by those who wait. */
static bool fits(uint64_t word, uint32_t wanted, bool queued)
{
    switch (wanted) {
    case FL_RW_READ:
        word &= queued ? FL_RW_WRITER | FL_RW_MOST : FL_RW_WRITER | FL_RW_BARRED | FL_RW_MOST;
        return word < FL_RW_MOST;
    case FL_RW_UPGRADE:
        return !(word & (FL_RW_WRITER | FL_RW_UPGRADABLE | (queued ? 0 : FL_RW_BARRED | FL_RW_QUEUED)));
    case FL_RW_RAISE:
        return readers(word) == 0;
    default:
        return (word & ~(queued ? FL_RW_QUEUED | FL_RW_BARRED : UINT64_C(0))) == 0;
    }
}

bool fl_rw_fits(uint64_t word, uint32_t wanted)
{
    return fits(word, wanted, false);
}

static void set_owner(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    if (wanted >= FL_RW_WRITE) {
        fl_store(&cell->owner, owner, relaxed); /* read by its own thread, to know itself */
    }
}

/* Takes it if it fits, at the moment that it changes. */
static bool take(fl_cell *cell, uint32_t wanted, uint64_t owner, bool queued)
{
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    do {
        if (!fits(word, wanted, queued)) {
            return false;
        }
    } while (!fl_cas(&cell->word, &word, word + gain(wanted), acquire, relaxed)); /* pairs with fl_rw_lower */
    set_owner(cell, wanted, owner);
    return true;
}

bool fl_rw_try(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    fl_cell_refresh(cell);
    return take(cell, wanted, owner, false);
}

bool fl_rw_raise_alone(fl_cell *cell, uint64_t owner)
{
    fl_cell_refresh(cell);
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    do {
        if (readers(word) != 1 && FL_MODEL_BREAK != 41) {
            return false;
        }
        if (word & FL_RW_UPGRADABLE) {
            return false;
        }
    } while (!fl_cas(&cell->word, &word, word - 1 + FL_RW_WRITER, acquire, relaxed)); /* fl_rw_lower */
    set_owner(cell, FL_RW_WRITE, owner);
    return true;
}

/* Queue lock. The first from here on that waits to write. */
static fl_waiter *next_writer(fl_waiter *from)
{
    while (from != NULL && from->wanted != FL_RW_WRITE && from->wanted != FL_RW_RAISE) {
        from = from->next;
    }
    return from;
}

/* Queue lock. It is inside now, unless it does not fit. It is out of the queue, unless this says false. */
static bool admit(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    uint32_t wanted = waiter->wanted; /* a thread's waiter is gone once it is granted */
    if (!take(cell, wanted, waiter->owner, true)) {
        return false;
    }
    if (!fl_cell_grant(cell, waiter, wakes)) {
        set_owner(cell, wanted, 0);
        fl_fetch_sub(&cell->word, gain(wanted), release); /* pairs with take */
    }
    return true;
}

/* Queue lock. All who wait to read, and one of those who may write next, in the order of waiting. */
static void admit_readers(fl_cell *cell, fl_wakes *wakes)
{
    fl_waiter *next;
    for (fl_waiter *waiter = cell->head; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->wanted == FL_RW_READ || waiter->wanted == FL_RW_UPGRADE) {
            admit(cell, waiter, wakes);
        }
    }
}

/* Queue lock. `readers_turn`: somebody has just ended to write. */
static void serve_phase(fl_cell *cell, fl_wakes *wakes, bool readers_turn)
{
    fl_waiter *writer;
    while (!(fl_load(&cell->word, relaxed) & FL_RW_WRITER)) { /* set under the queue lock, if someone waits */
        writer = next_writer(cell->head);
        if (writer == NULL || (readers_turn && writer->wanted != FL_RW_RAISE)) {
            admit_readers(cell, wakes);
        }
        if (writer == NULL || !admit(cell, writer, wakes)) {
            break;
        }
    }
    bool barred = next_writer(cell->head) != NULL || FL_MODEL_BREAK == 14;
    uint64_t gone = (cell->head == NULL ? FL_RW_QUEUED : 0) | (barred ? 0 : FL_RW_BARRED);
    fl_fetch_and(&cell->word, ~gone, release); /* pairs with take */
}

static void serve(fl_cell *cell, fl_wakes *wakes)
{
    serve_phase(cell, wakes, false);
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    (void)wakes;
    bool writes = waiter->wanted >= FL_RW_WRITE;
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    for (;;) {
        if (fits(word, waiter->wanted, false)) {
            if (take(cell, waiter->wanted, waiter->owner, false)) {
                return true;
            }
            word = fl_load(&cell->word, relaxed); /* only a guess again */
        } else if (fl_cas(&cell->word, &word, word | FL_RW_QUEUED | (writes ? FL_RW_BARRED : 0), relaxed,
                          relaxed)) {
            /* whoever leaves from now on comes through the queue lock, and finds the waiter */
            if (waiter->wanted == FL_RW_RAISE) {
                waiter->since = 1; /* before all others */
            }
            fl_cell_push(cell, waiter);
            return false;
        }
    }
}

static void give_back(fl_waiter *waiter)
{
    bool raised = waiter->wanted == FL_RW_RAISE;
    fl_rw_lower(waiter->cell, raised ? FL_RW_WRITE : (fl_rw_mode)waiter->wanted,
                raised ? FL_RW_UPGRADE : FL_RW_NONE);
}

/* Nobody is inside; who has survived says so by fl_rw_survive. */
static void forked(fl_cell *cell)
{
    fl_store(&cell->word, 0, relaxed); /* published with the generation, as the next */
    fl_store(&cell->owner, 0, relaxed); /* published with it, too */
}

const fl_kind fl_rw_kind = {
    .attempt = fl_rw_try,
    .enter = enter,
    .serve = serve,
    .give_back = give_back,
    .forked = forked,
};

void fl_rw_lower(fl_cell *cell, fl_rw_mode from, fl_rw_mode to)
{
    fl_cell_refresh(cell);
    uint64_t less = share(from) - share(to);
    if (from == FL_RW_WRITE) {
        fl_store(&cell->owner, 0, relaxed); /* before somebody else can write */
    }
    uint64_t word = fl_load(&cell->word, relaxed); /* only a first guess */
    do {
        if (word & FL_RW_QUEUED) {
            fl_wakes wakes = {0};
            fl_cell_lock_for_all(cell, &wakes);
            fl_fetch_sub(&cell->word, less, release); /* pairs with take */
            serve_phase(cell, &wakes, from == FL_RW_WRITE && FL_MODEL_BREAK != 13);
            fl_cell_unlock(cell, &wakes);
            return;
        }
    } while (!fl_cas(&cell->word, &word, word - less, release, relaxed)); /* pairs with take */
}

void fl_rw_survive(fl_cell *cell, fl_rw_mode mode)
{
    fl_cell_refresh(cell);
    fl_fetch_add(&cell->word, share(mode), relaxed); /* alone in this process */
}
