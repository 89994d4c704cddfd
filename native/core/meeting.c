/* See meeting.h. */
#include "core/meeting.h"

#include "core/choice.h"

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

/* Queue lock. Swaps with this one, unless it has left. */
static bool meet(fl_cell *cell, uint32_t side, fl_parcel **place, fl_waiter *other, fl_wakes *wakes)
{
    fl_parcel **its = place_of(other->owner); /* a thread's waiter is gone once it is granted */
    count_meeting(cell, side == FL_MEET_SEND ? *place : *its);
    swap(place, its);
    if (fl_cell_grant(cell, other, wakes)) {
        return true;
    }
#if FL_MODEL_BREAK != 20
    swap(place, its);
#endif
    return false;
}

/* Queue lock. Whether it will not meet anybody. */
static bool gone(fl_waiter *waiter)
{
    /* pairs with fl_cell_leave */
    return waiter->choice != NULL ? fl_choice_decided(waiter->choice)
                                  : fl_load(&waiter->state, acquire) != FL_WAITING;
}

/* Queue lock. The first after this one (NULL: the first of all) whom one that comes with this side could
   meet, NULL if nobody. Two of its own side who do not choose together, and have not gone, say that there is
   none behind them: that one could have met one of the two. */
static fl_waiter *partner(fl_cell *cell, uint32_t side, const fl_choice *choice)
{
    const fl_waiter *same = NULL;
    for (fl_waiter *waiter = cell->head, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (FL_MODEL_BREAK != 26 && choice != NULL && waiter->choice == choice) {
            continue; /* itself */
        }
        if (waiter->wanted == partner_of(side)) {
            return waiter;
        }
#if FL_MODEL_BREAK == 27
        return NULL;
#endif
        if (gone(waiter)) {
            fl_cell_unlink(cell, waiter); /* which it is about to do itself */
        } else if (waiter->choice == NULL || (same != NULL && waiter->choice != same->choice)) {
            return NULL;
        } else {
            same = waiter;
        }
    }
    return NULL;
}

/* Queue lock. Meets the first that waits on the other side and has not left. `comer`: who comes is one of
   several, and wins with it; NULL: who comes is alone. */
static bool meet_first(fl_cell *cell, uint32_t side, fl_parcel **place, const fl_waiter *comer,
                       fl_wakes *wakes)
{
    fl_choice *choice = comer != NULL ? comer->choice : NULL;
    fl_waiter *other = partner(cell, side, choice);
    bool met = false, claims = choice != NULL;
#if FL_MODEL_BREAK == 24
    claims = false;
#endif
    if (other == NULL || (claims && !fl_choice_claim(choice))) {
        return false;
    }
    while (other != NULL && !met) {
        met = meet(cell, side, place, other, wakes);
        other = met ? NULL : partner(cell, side, choice);
    }
    if (claims) {
        fl_choice_decide(choice, comer->place, met);
    }
    return met;
}

/* Queue lock. */
static bool take(fl_cell *cell, uint32_t side, fl_parcel **place, const fl_waiter *comer, fl_wakes *wakes)
{
    fl_parcel *first = fl_meeting_list(cell);
    if (side == FL_MEET_RECEIVE && first != NULL) {
        set_list(cell, first->next);
        *place = first;
        return true;
    }
    return meet_first(cell, side, place, comer, wakes);
}

bool fl_meeting_try(fl_cell *cell, fl_meeting_side side, fl_parcel **place)
{
    fl_wakes wakes = {0};
    fl_cell_lock(cell);
    bool met = take(cell, side, place, NULL, &wakes);
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
    if (take(cell, waiter->wanted, place_of(waiter->owner), waiter, wakes)) {
        return true;
    }
    if (waiter->choice != NULL && fl_choice_decided(waiter->choice)) {
        return false; /* and does not wait */
    }
    if (fl_load(&cell->word, relaxed) & FL_MEETING_CLOSED) { /* under the queue lock */
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: nobody else looks */
        return false;
    }
    fl_cell_push(cell, waiter);
    return false;
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
    if (!meet_first(cell, FL_MEET_SEND, place, NULL, &wakes))
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

const fl_kind fl_meeting_kind = {
    .attempt = attempt,
    .enter = enter,
    .give_back = give_back,
    .wakes = true,
};

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
    uint32_t waiting = 0;
    for (const fl_waiter *waiter = cell->head; waiter != NULL; waiter = waiter->next) {
        waiting += waiter->wanted == side;
    }
    fl_cell_unlock(cell, &wakes);
    return waiting;
}
