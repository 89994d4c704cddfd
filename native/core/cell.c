/* The queue of a cell, the states of a waiter, and what a fork leaves. See cell.h. */
#include "core/cell.h"

#include <stdlib.h>
#ifndef FL_MODEL
#include <pthread.h>
#endif

#include "core/choice.h"
#include "core/clock.h"
#include "core/port.h"
#ifndef FL_MODEL
#include "core/roster.h"
#endif

_Static_assert(sizeof(void *) > 8 || sizeof(fl_cell) <= 64, "a cell is one cache line");

uint32_t fl_fork_generation = 1;
uint64_t fl_fork_thread;
bool (*fl_owner_ended)(uint64_t owner);

/* Cells are put in order after a fork one at a time. */
static fl_mutex refreshing;

void fl_cell_forked(void)
{
    fl_fork_generation++;
    fl_fork_thread = fl_owner_thread();
    fl_store(&refreshing, 0, relaxed); /* the only thread */
    fl_choice_forked();
}

#ifndef FL_MODEL
static bool fork_handled;

static void handle_fork(void)
{
    /* the roster first, whose locks the forking thread holds until then */
    fork_handled = fl_roster_setup() && pthread_atfork(NULL, NULL, fl_cell_forked) == 0;
}

bool fl_cell_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_fork);
    return fork_handled;
}
#endif

fl_cell *fl_cell_new(const fl_kind *kind, uint64_t word, uint32_t limit, uint32_t flags)
{
    return fl_cell_new_within(sizeof(fl_cell), kind, word, limit, flags);
}

fl_cell *fl_cell_new_within(size_t size, const fl_kind *kind, uint64_t word, uint32_t limit, uint32_t flags)
{
    fl_cell *cell = calloc(1, size);
    if (cell != NULL) {
        cell->word = word;
        cell->kind = kind;
        cell->generation = fl_fork_generation;
        cell->refs = 1;
        cell->limit = limit;
        cell->flags = flags;
    }
    return cell;
}

void fl_cell_ref(fl_cell *cell)
{
    fl_fetch_add(&cell->refs, 1, relaxed); /* who adds one has one */
}

void fl_cell_unref(fl_cell *cell)
{
    if (fl_fetch_sub(&cell->refs, 1, acq_rel) == 1) { /* pairs with itself: the last one sees what all did */
        free(cell);
    }
}

void fl_cell_refresh_slow(fl_cell *cell)
{
    fl_mutex_lock(&refreshing);
    if (fl_load(&cell->generation, relaxed) != fl_fork_generation) { /* written under `refreshing` */
        /* The other threads of the parent do not exist here, and may have been anywhere. */
        cell->head = cell->tail = NULL;
        fl_store(&cell->waiting, 0, relaxed); /* published with the generation, as all of this */
        fl_store(&cell->lock, 0, relaxed);
        if (cell->kind->forked != NULL) {
            cell->kind->forked(cell);
        }
        fl_store(&cell->generation, fl_fork_generation, release); /* pairs with fl_cell_refresh */
    }
    fl_mutex_unlock(&refreshing);
}

void fl_fork_unlock(fl_atomic(uint32_t) *generation, fl_mutex *mutex)
{
    /* pairs with the release below */
    if (__builtin_expect(FL_LOAD_GENERATION(generation) != fl_fork_generation, false)) {
        fl_mutex_lock(&refreshing);
        if (fl_load(generation, relaxed) != fl_fork_generation) { /* written under `refreshing` */
            fl_store(mutex, 0, relaxed); /* published with the generation */
            fl_store(generation, fl_fork_generation, release); /* pairs with the acquire above */
        }
        fl_mutex_unlock(&refreshing);
    }
}

void fl_cell_lock(fl_cell *cell)
{
    fl_cell_refresh(cell);
    fl_mutex_lock(&cell->lock);
}

/* Who is woken may be gone as soon as its state says so, unless it is a task's, which is counted. */
static void deliver(fl_wakes *wakes)
{
    for (uint32_t i = 0; i < wakes->count; i++) {
        const fl_wake *wake = i < FL_WAKES ? &wakes->at[i] : &wakes->more[i - FL_WAKES];
        if (wake->port != NULL) {
            fl_port_post(wake->port, wake->waiter);
        } else {
            fl_unpark(wake->word);
        }
    }
    wakes->count = 0;
}

static void remember(fl_wakes *wakes, fl_wake wake)
{
    if (wakes->count == FL_WAKES + wakes->room) {
        deliver(wakes);
    }
    uint32_t at = wakes->count++;
    *(at < FL_WAKES ? &wakes->at[at] : &wakes->more[at - FL_WAKES]) = wake;
}

void fl_cell_lock_for_all(fl_cell *cell, fl_wakes *wakes)
{
    uint32_t waiting = fl_cell_waiting(cell);
    if (waiting > FL_WAKES) {
        wakes->more = malloc((waiting - FL_WAKES) * sizeof *wakes->more);
        wakes->room = wakes->more == NULL ? 0 : waiting - FL_WAKES;
    }
    fl_cell_lock(cell);
}

void fl_cell_unlock(fl_cell *cell, fl_wakes *wakes)
{
    fl_mutex_unlock(&cell->lock);
    deliver(wakes);
    free(wakes->more);
    wakes->more = NULL;
    wakes->room = 0;
}

void fl_cell_push(fl_cell *cell, fl_waiter *waiter)
{
    if (waiter->since == 0) {
        waiter->since = fl_clock_now();
    }
    fl_waiter *before = cell->tail;
    while (before != NULL && before->since > waiter->since) {
        before = before->prev;
    }
    fl_waiter **next = before != NULL ? &before->next : &cell->head;
    waiter->prev = before;
    waiter->next = *next;
    *(waiter->next != NULL ? &waiter->next->prev : &cell->tail) = waiter;
    *next = waiter;
    waiter->generation = fl_fork_generation;
    waiter->queued = true;
    fl_fetch_add(&cell->waiting, 1, relaxed); /* a figure to show */
}

void fl_cell_unlink(fl_cell *cell, fl_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &cell->head) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &cell->tail) = waiter->prev;
    waiter->queued = false;
    fl_fetch_sub(&cell->waiting, 1, relaxed); /* a figure to show */
}

/* Changes the state and notes whom to wake. Whoever is woken needs a reference before, because after the
   change it may be forgotten by its own side. */
static bool settle(fl_waiter *waiter, uint32_t from, fl_waiter_state to, fl_wakes *wakes)
{
    fl_port *port = waiter->port;
    fl_choice *choice = waiter->choice;
#if FL_MODEL_BREAK == 16
    if (choice != NULL && to != FL_NUDGED) {
        fl_choice_win(choice, waiter->place);
    }
#else
    if (choice != NULL && to != FL_NUDGED && !fl_choice_win(choice, waiter->place)) {
        return false; /* it is leaving */
    }
#endif
    if (port != NULL) {
        fl_waiter_ref(waiter);
    }
    /* pairs with whoever looks at the state: what was done before the grant is seen after it */
    while (!fl_cas(&waiter->state, &from, to, acq_rel, acquire)) {
        if (from != FL_WAITING && from != FL_NUDGED) {
            if (port != NULL) {
                fl_waiter_unref(waiter);
            }
            return false;
        }
    }
    if (choice != NULL && to == FL_NUDGED) { /* it leaves under the queue lock, and so is here still */
        fl_choice_nudge(choice);
    }
    remember(wakes, (fl_wake){waiter, port, choice != NULL ? &choice->word : &waiter->state});
#if FL_MODEL_BREAK == 3
    fl_store(&waiter->posted, 0, relaxed);
#endif
    return true;
}

bool fl_cell_grant(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_cell_unlink(cell, waiter);
    return settle(waiter, FL_WAITING, FL_GRANTED, wakes);
}

void fl_cell_refuse(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    fl_cell_unlink(cell, waiter);
    settle(waiter, FL_WAITING, FL_REFUSED, wakes); /* or it had left by itself */
}

bool fl_cell_nudge(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    uint32_t state = fl_load(&waiter->state, acquire); /* pairs with the cas in fl_cell_leave */
    if (state == FL_NUDGED) {
        return true;
    }
    if (state == FL_WAITING && settle(waiter, FL_WAITING, FL_NUDGED, wakes)) {
        return true;
    }
    fl_cell_unlink(cell, waiter);
    return false;
}

void fl_cell_alarm(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    while (cell->head != NULL && !fl_cell_nudge(cell, cell->head, &wakes)) {
    }
    fl_cell_unlock(cell, &wakes);
}

void fl_waiter_init(fl_waiter *waiter, fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    *waiter = (fl_waiter){
        .state = FL_WAITING, .cell = cell, .wanted = wanted, .owner = owner, .look = FL_FOREVER};
}

bool fl_waiter_waits(fl_waiter *waiter)
{
    fl_cell_lock(waiter->cell);
    uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle */
    fl_mutex_unlock(&waiter->cell->lock);
    return state == FL_WAITING || state == FL_NUDGED || state == FL_CLAIMED;
}

/* Queue lock. False of a waiter that a forked child has from its parent: the queue that it was in, and its
   neighbours there, are the parent's. */
static bool is_queued_here(const fl_waiter *waiter)
{
    return waiter->generation == fl_fork_generation || FL_MODEL_BREAK == 45;
}

bool fl_cell_enter(fl_waiter *waiter)
{
    fl_cell *cell = waiter->cell;
    fl_cell_lock(cell);
    fl_store(&waiter->state, FL_WAITING, relaxed); /* published by the queue lock */
    fl_wakes wakes; /* but for its array, which is as long as all the rest of this */
    wakes.count = wakes.room = 0;
    wakes.more = NULL;
    wakes.left = NULL;
    bool taken = cell->kind->enter(cell, waiter, &wakes);
    fl_cell_unlock(cell, &wakes);
    return taken;
}

bool fl_cell_retry(fl_waiter *waiter)
{
    fl_cell *cell = waiter->cell;
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint32_t state = FL_NUDGED;
    bool taken = false;
    if (!fl_cas(&waiter->state, &state, FL_WAITING, acq_rel, acquire)) { /* pairs with settle */
        taken = state == FL_GRANTED;
    } else if (is_queued_here(waiter) ? cell->kind->retry(cell, waiter, &wakes)
                                      : cell->kind->enter(cell, waiter, &wakes)) {
        /* not queued; a task may be cancelled at any moment, so this is a race like a grant */
        state = FL_WAITING;
        taken = (waiter->choice == NULL || fl_choice_win(waiter->choice, waiter->place)) &&
                fl_cas(&waiter->state, &state, FL_GRANTED, acq_rel, acquire); /* pairs with fl_cell_leave */
        if (!taken) {
            fl_cell_unlock(cell, &wakes);
            fl_cell_give_back(waiter);
            return false;
        }
    }
    fl_cell_unlock(cell, &wakes);
    return taken;
}

bool fl_cell_leave(fl_waiter *waiter, fl_waiter_state why)
{
    fl_cell *cell = waiter->cell;
    uint32_t state = FL_WAITING;
    while (!fl_cas(&waiter->state, &state, why, acq_rel, acquire)) { /* pairs with settle */
        if (state != FL_NUDGED) {
            return false;
        }
    }
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    if (waiter->queued && is_queued_here(waiter) && FL_MODEL_BREAK != 47) {
        fl_cell_unlink(cell, waiter);
        wakes.left = waiter;
    }
#if FL_MODEL_BREAK != 2
    fl_cell_serve(cell, &wakes); /* it may have been nudged, or in the next one's way */
#endif
    fl_cell_unlock(cell, &wakes);
    return true;
}

bool fl_waiter_abandon(fl_waiter *waiter, fl_waiter_state why)
{
    if (fl_cell_leave(waiter, why)) {
        return true;
    }
    if (waiter->final && why == FL_CANCELLED) {
        return false;
    }
    uint32_t state = FL_GRANTED;
    while (!fl_cas(&waiter->state, &state, why, acq_rel, acquire)) { /* pairs with settle, fl_combine_done */
        if (state != FL_CLAIMED && state != FL_DONE) {
            return false;
        }
    }
    if (state == FL_GRANTED) {
        fl_cell_give_back(waiter);
    }
    return true;
}

fl_wait_result fl_cell_wait_in_place(fl_waiter *waiter, int64_t deadline)
{
    for (;;) {
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with settle */
        if (state == FL_GRANTED || (state == FL_NUDGED && fl_cell_retry(waiter))) {
            return FL_WAIT_GRANTED;
        }
        if (state == FL_REFUSED) {
            return FL_WAIT_REFUSED;
        }
        if (!waiter->told && fl_cell_orphaned(waiter->cell)) {
            waiter->told = true;
            return FL_WAIT_INTERRUPTED;
        }
        int64_t until = waiter->look < deadline ? waiter->look : deadline;
        fl_park_result result = fl_park(&waiter->state, FL_WAITING, until);
        if (result == FL_PARK_TIMED_OUT && until < deadline) {
            result = FL_PARK_INTERRUPTED;
        }
        if (result == FL_PARK_TIMED_OUT && fl_cell_leave(waiter, FL_TIMED_OUT)) {
            return FL_WAIT_TIMED_OUT;
        }
        if (result == FL_PARK_INTERRUPTED) {
            return FL_WAIT_INTERRUPTED;
        }
    }
}

fl_wait_result fl_cell_wait(fl_waiter *waiter, int64_t deadline)
{
    fl_wait_result result;
    do {
        result = fl_cell_wait_in_place(waiter, deadline);
    } while (result == FL_WAIT_INTERRUPTED && !fl_cell_leave(waiter, FL_CANCELLED));
#if FL_MODEL_BREAK != 7
    if (result == FL_WAIT_GRANTED && waiter->cell->flags & FL_CELL_CHAIN) {
        fl_wakes wakes = {0};
        fl_cell_lock(waiter->cell);
        fl_cell_serve(waiter->cell, &wakes);
        fl_cell_unlock(waiter->cell, &wakes);
    }
#endif
    return result;
}
