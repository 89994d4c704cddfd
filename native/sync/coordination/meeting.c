/* See meeting.h. */
#include "sync/coordination/meeting.h"

#include "sync/wait/choice.h"

static void set_list(fl_waitq *waitq, fl_handoff *first)
{
    fl_store(&((fl_meeting *)(void *)waitq)->returned, first, release); /* a fork may come between any two */
}

static void swap(fl_handoff **mine, fl_handoff **its)
{
    fl_handoff *handoff = *mine;
    *mine = *its;
    *its = handoff;
}

static uint32_t partner_of(uint32_t side)
{
    return side == FL_MEET_SEND ? FL_MEET_RECEIVE : FL_MEET_SEND;
}

/* Queue lock. */
static void count_meeting(fl_waitq *waitq, fl_handoff *handoff)
{
    uint64_t word = fl_load(&waitq->word, relaxed) + 1; /* under the queue lock */
    fl_store(&waitq->word, word, relaxed); /* as above */
    if (handoff != NULL) {
        handoff->number = word;
    }
}

/* Queue lock. Swaps with this one, unless its choice is decided. */
static bool meet(fl_waitq *waitq, uint32_t side, fl_handoff **place, fl_waiter *other, fl_wakes *wakes)
{
    fl_handoff **its = other->stake.place; /* a thread's waiter is gone once it is granted */
    count_meeting(waitq, side == FL_MEET_SEND ? *place : *its);
    swap(place, its);
    if (fl_waitq_grant(waitq, other, wakes)) {
        return true;
    }
    swap(place, its);
    return false;
}

/* Queue lock. The first after this one (NULL: the first of all) that a newcomer of this side could
   meet, NULL if none. Two of its own side that do not choose together, and have not gone, say that there is
   none behind them: that one could have met one of the two. */
static fl_waiter *partner(fl_waitq *waitq, uint32_t side, const fl_choice *choice)
{
    const fl_waiter *same = NULL;
    for (fl_waiter *waiter = waitq->head, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (choice != NULL && waiter->choice == choice) {
            continue; /* itself */
        }
        if (waiter->wanted == partner_of(side)) {
            return waiter;
        }
        if (waiter->choice != NULL && fl_choice_decided(waiter->choice)) {
            fl_waitq_unlink(waitq, waiter); /* which it is about to do itself */
        } else if (waiter->choice == NULL || (same != NULL && waiter->choice != same->choice)) {
            return NULL;
        } else {
            same = waiter;
        }
    }
    return NULL;
}

/* Queue lock. Meets the first that waits on the other side and has not left. `comer`: the newcomer is one of
   several, and wins with it; NULL: it is alone. */
static bool meet_first(fl_waitq *waitq, uint32_t side, fl_handoff **place, const fl_waiter *comer,
                       fl_wakes *wakes)
{
    fl_choice *choice = comer != NULL ? comer->choice : NULL;
    fl_waiter *other = partner(waitq, side, choice);
    bool met = false, claims = choice != NULL;
    if (other == NULL || (claims && !fl_choice_claim(choice))) {
        return false;
    }
    while (other != NULL && !met) {
        met = meet(waitq, side, place, other, wakes);
        other = met ? NULL : partner(waitq, side, choice);
    }
    if (claims) {
        fl_choice_decide(choice, comer->place_in_choice, met);
    }
    return met;
}

/* Queue lock. */
static bool take(fl_waitq *waitq, uint32_t side, fl_handoff **place, const fl_waiter *comer, fl_wakes *wakes)
{
    fl_handoff *first = fl_meeting_list(waitq);
    if (side == FL_MEET_RECEIVE && first != NULL) {
        set_list(waitq, first->next);
        *place = first;
        return true;
    }
    return meet_first(waitq, side, place, comer, wakes);
}

bool fl_meeting_try(fl_waitq *waitq, fl_meeting_side side, fl_handoff **place)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    bool met = take(waitq, side, place, NULL, &wakes);
    fl_waitq_unlock(waitq, &wakes);
    return met;
}

static bool attempt(fl_waitq *waitq, uint32_t wanted, fl_stake stake)
{
    return fl_meeting_try(waitq, (fl_meeting_side)wanted, stake.place);
}

static bool enter(fl_waitq *waitq, fl_waiter *waiter, fl_wakes *wakes)
{
    waiter->final = waiter->wanted != FL_MEET_RECEIVE;
    if (take(waitq, waiter->wanted, waiter->stake.place, waiter, wakes)) {
        return true;
    }
    if (waiter->choice != NULL && fl_choice_decided(waiter->choice)) {
        return false; /* and does not wait */
    }
    if (fl_load(&waitq->word, relaxed) & FL_MEETING_CLOSED) { /* under the queue lock */
        fl_store(&waiter->state, FL_REFUSED, relaxed); /* not queued: no other thread reads it */
        return false;
    }
    fl_waitq_push(waitq, waiter);
    return false;
}

/* A handoff that was not taken goes to the next, or into the list, unless that was emptied. */
static void give_back(fl_waiter *waiter)
{
    fl_waitq *waitq = waiter->waitq;
    fl_handoff **place = waiter->stake.place;
    if (waiter->wanted != FL_MEET_RECEIVE) {
        return; /* the other one has it */
    }
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    uint64_t number = (*place)->number;
    bool emptied = fl_load(&waitq->word, relaxed) & FL_MEETING_EMPTIED; /* under the queue lock */
    if (!emptied && !meet_first(waitq, FL_MEET_SEND, place, NULL, &wakes)) {
        fl_handoff *handoff = *place, *before = NULL, *after = fl_meeting_list(waitq);
        while (after != NULL && after->number < number) {
            before = after;
            after = after->next;
        }
        handoff->number = number;
        handoff->next = after;
        *place = NULL;
        if (before == NULL) {
            set_list(waitq, handoff);
        } else {
            before->next = handoff;
        }
    }
    fl_waitq_unlock(waitq, &wakes);
}

const fl_waitq_ops fl_meeting_ops = {
    .attempt = attempt,
    .enter = enter,
    .give_back = give_back,
    .wakes = true,
};

void fl_meeting_close(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_fetch_or(&waitq->word, FL_MEETING_CLOSED, release); /* pairs with fl_meeting_closed */
    fl_waitq_refuse_all(waitq, NULL, &wakes);
    fl_waitq_unlock(waitq, &wakes);
}

fl_meeting_figures fl_meeting_count(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_meeting_figures figures = {0};
    fl_waitq_lock(waitq);
    for (fl_handoff *handoff = fl_meeting_list(waitq); handoff != NULL; handoff = handoff->next) {
        figures.listed++;
    }
    for (const fl_waiter *waiter = waitq->head; waiter != NULL; waiter = waiter->next) {
        figures.waiting[waiter->wanted]++;
    }
    fl_waitq_unlock(waitq, &wakes);
    return figures;
}

fl_handoff *fl_meeting_clear(fl_waitq *waitq)
{
    fl_wakes wakes = {0};
    fl_waitq_lock(waitq);
    fl_handoff *first = fl_meeting_list(waitq);
    fl_fetch_or(&waitq->word, FL_MEETING_EMPTIED, relaxed);
    set_list(waitq, NULL);
    fl_waitq_unlock(waitq, &wakes);
    return first;
}
