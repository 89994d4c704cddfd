/* See meeting.h. */
#include "core/meeting.h"

static fl_parcel **place_of(uint64_t owner)
{
    return (fl_parcel **)(uintptr_t)owner;
}

static void set_list(fl_cell *cell, fl_parcel *first)
{
    fl_store(&cell->owner, (uint64_t)(uintptr_t)first, release); /* a fork may come between any two */
}

static void swap(fl_parcel **mine, fl_parcel **its)
{
    fl_parcel *parcel = *mine;
    *mine = *its;
    *its = parcel;
}

static uint32_t partner_of(uint32_t side)
{
    return side == FL_MEET_SWAP ? FL_MEET_SWAP : side == FL_MEET_SEND ? FL_MEET_RECEIVE : FL_MEET_SEND;
}

/* Queue lock. */
static void count_meeting(fl_cell *cell, fl_parcel *parcel)
{
    uint64_t word = fl_load(&cell->word, relaxed) + 1; /* under the queue lock */
    fl_store(&cell->word, word, relaxed); /* as above */
    if (parcel != NULL) {
        parcel->number = word;
    }
}

/* Queue lock. Swaps with the first that waits on the other side and has not left. */
static bool meet(fl_cell *cell, uint32_t side, fl_parcel **place, fl_wakes *wakes)
{
    while (cell->head != NULL && cell->head->wanted == partner_of(side)) {
        fl_parcel **its = place_of(cell->head->owner); /* a thread's waiter is gone once it is granted */
        count_meeting(cell, side == FL_MEET_SEND ? *place : *its);
        swap(place, its);
        if (fl_cell_grant(cell, cell->head, wakes)) {
            return true;
        }
#if FL_MODEL_BREAK != 20
        swap(place, its);
#endif
    }
    return false;
}

/* Queue lock. */
static bool take(fl_cell *cell, uint32_t side, fl_parcel **place, fl_wakes *wakes)
{
    fl_parcel *first = fl_meeting_list(cell);
    if (side == FL_MEET_RECEIVE && first != NULL) {
        set_list(cell, first->next);
        *place = first;
        return true;
    }
    return meet(cell, side, place, wakes);
}

bool fl_meeting_try(fl_cell *cell, fl_meeting_side side, fl_parcel **place)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    bool met = take(cell, side, place, &wakes);
    fl_cell_unlock(cell, &wakes);
    return met;
}

static bool attempt(fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    return fl_meeting_try(cell, (fl_meeting_side)wanted, place_of(owner));
}

static bool enter(fl_cell *cell, fl_waiter *waiter, fl_wakes *wakes)
{
    waiter->final = waiter->wanted != FL_MEET_RECEIVE;
    if (take(cell, waiter->wanted, place_of(waiter->owner), wakes)) {
        return true;
    }
    if (fl_load(&cell->word, relaxed) & FL_MEETING_CLOSED) { /* under the queue lock */
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
        return false;
    }
    fl_cell_push(cell, waiter);
    return false;
}

/* Who has left was in nobody's way. */
static void serve(fl_cell *cell, fl_wakes *wakes)
{
    (void)cell, (void)wakes;
}

/* A parcel that was not taken goes to the next, or into the list. */
static void give_back(fl_waiter *waiter)
{
    fl_cell *cell = waiter->cell;
    fl_parcel **place = place_of(waiter->owner);
    if (waiter->wanted != FL_MEET_RECEIVE) {
        return; /* the other one has it */
    }
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint64_t number = (*place)->number;
#if FL_MODEL_BREAK != 21
    if (!meet(cell, FL_MEET_SEND, place, &wakes))
#endif
    {
        fl_parcel *parcel = *place, *before = NULL, *after = fl_meeting_list(cell);
        while (after != NULL && after->number < number) {
            before = after;
            after = after->next;
        }
        parcel->number = number;
        parcel->next = after;
        *place = NULL;
        if (before == NULL) {
            set_list(cell, parcel);
        } else {
            before->next = parcel;
        }
    }
    fl_cell_unlock(cell, &wakes);
}

/* What came back is there still. */
static void forked(fl_cell *cell)
{
    (void)cell;
}

const fl_kind fl_meeting_kind = {attempt, enter, NULL, serve, give_back, forked};

void fl_meeting_close(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_fetch_or(&cell->word, FL_MEETING_CLOSED, release); /* pairs with fl_meeting_closed */
    while (cell->head != NULL) {
        fl_cell_refuse(cell, cell->head, &wakes);
    }
    fl_cell_unlock(cell, &wakes);
}

uint32_t fl_meeting_listed(fl_cell *cell)
{
    fl_wakes wakes = {0};
    uint32_t count = 0;
    fl_cell_lock(cell);
    for (fl_parcel *parcel = fl_meeting_list(cell); parcel != NULL; parcel = parcel->next) {
        count++;
    }
    fl_cell_unlock(cell, &wakes);
    return count;
}

fl_parcel *fl_meeting_clear(fl_cell *cell)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    fl_parcel *first = fl_meeting_list(cell);
    set_list(cell, NULL);
    fl_cell_unlock(cell, &wakes);
    return first;
}

uint32_t fl_meeting_waiting(fl_cell *cell, fl_meeting_side side)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    uint32_t waiting = cell->head != NULL && cell->head->wanted == side ? fl_cell_waiting(cell) : 0;
    fl_cell_unlock(cell, &wakes);
    return waiting;
}
