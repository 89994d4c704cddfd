/* See choice.h. */
#include "sync/wait/choice.h"

/* Held by the one that has a claim. */
static fl_mutex claims;

bool fl_choice_win(fl_choice *choice, uint32_t place)
{
    uint32_t word = fl_load(&choice->word, relaxed); /* only a first guess */
    for (;;) {
        if (word >= FL_CHOICE_WON) {
            return false;
        }
        if (word == FL_CHOICE_CLAIMED) {
            fl_mutex_lock(&claims);
            fl_mutex_unlock(&claims);
            word = fl_load(&choice->word, relaxed); /* as above */
            continue;
        }
        if (fl_cas(&choice->word, &word, place + FL_CHOICE_WON, acq_rel, acquire)) { /* pairs with itself */
            return true;
        }
    }
}

bool fl_choice_claim(fl_choice *choice)
{
    fl_mutex_lock(&claims);
    uint32_t word = fl_load(&choice->word, relaxed); /* only a first guess */
    while (word < FL_CHOICE_WON) {
        if (fl_cas(&choice->word, &word, FL_CHOICE_CLAIMED, acq_rel, acquire)) { /* with fl_choice_win */
            return true;
        }
    }
    fl_mutex_unlock(&claims);
    return false;
}

void fl_choice_decide(fl_choice *choice, uint32_t place, bool won)
{
    /* a waiter woken meanwhile has left no trace in the word; pairs with fl_choice_wake and _win */
    fl_exchange(&choice->word, won ? place + FL_CHOICE_WON : FL_CHOICE_WOKEN, acq_rel);
    fl_mutex_unlock(&claims);
}

void fl_choice_forked(void)
{
    fl_store(&claims, 0, relaxed); /* the only thread */
}

void fl_choice_wake(fl_choice *choice)
{
    /* It is written in any case, so that the thread that takes LOOK away, or a claim, has seen the wake:
       pairs with fl_choice_wait and fl_choice_decide. */
    uint32_t word = fl_load(&choice->word, relaxed); /* only a first guess */
    while (word < FL_CHOICE_WON &&
           !fl_cas(&choice->word, &word, word == FL_CHOICE_CLAIMED ? word : FL_CHOICE_WOKEN, acq_rel,
                   relaxed)) { /* or it is decided, and no thread looks */
    }
}

static void enter(fl_choice *choice, uint32_t place)
{
    fl_waiter *waiter = choice->waiters[place];
    if (fl_waitq_enter(waiter)) {
        bool claimed = fl_load(&choice->word, relaxed) == place + FL_CHOICE_WON; /* by this thread */
        if (claimed || fl_choice_win(choice, place)) {
            fl_store(&waiter->state, FL_GRANTED, relaxed); /* not queued: no other thread reads it */
        } else {
            fl_waitq_give_back(waiter);
        }
    } else if (fl_load(&waiter->state, acquire) == FL_REFUSED) { /* pairs with settle */
        fl_choice_win(choice, place); /* unless it has won by being refused in the queue */
    }
}

void fl_choice_begin(fl_choice *choice, uint32_t first)
{
    for (uint32_t i = 0; i < choice->count && !fl_choice_decided(choice); i++) {
        enter(choice, (first + i) % choice->count);
    }
}

fl_wait_result fl_choice_wait(fl_choice *choice, int64_t deadline, int64_t look)
{
    int64_t until = look < deadline ? look : deadline;
    for (;;) {
        uint32_t word = FL_CHOICE_WOKEN;
        if (fl_cas(&choice->word, &word, FL_CHOICE_OPEN, acq_rel, acquire)) { /* pairs with settle */
            for (uint32_t i = 0; i < choice->count; i++) {
                if (fl_load(&choice->waiters[i]->state, acquire) == FL_WOKEN) { /* pairs with settle */
                    fl_waitq_retry(choice->waiters[i]);
                }
            }
            continue;
        }
        if (word >= FL_CHOICE_WON) {
            return FL_WAIT_GRANTED;
        }
        fl_park_result result = fl_park(&choice->word, FL_CHOICE_OPEN, until);
        if (result == FL_PARK_TIMED_OUT && until == deadline &&
            fl_choice_win(choice, FL_CHOICE_NONE)) {
            return FL_WAIT_TIMED_OUT;
        }
        if (result == FL_PARK_INTERRUPTED || (result == FL_PARK_TIMED_OUT && until < deadline)) {
            return FL_WAIT_INTERRUPTED;
        }
    }
}

uint32_t fl_choice_end(fl_choice *choice)
{
    fl_choice_win(choice, FL_CHOICE_NONE);
    uint32_t winner = fl_load(&choice->word, acquire) - FL_CHOICE_WON; /* pairs with fl_choice_win */
    for (uint32_t i = 0; i < choice->count; i++) {
        fl_waiter *waiter = choice->waiters[i];
        if (i != winner && waiter->since != 0) { /* it was in a queue */
            fl_waitq_leave(waiter, FL_CANCELLED);
        }
    }
    if (winner != FL_CHOICE_NONE) {
        /* the thread that let it win may have yet to say so, and to let go of it */
        fl_waitq *waitq = choice->waiters[winner]->waitq;
        fl_wakes wakes = {0};
        fl_waitq_lock(waitq);
        fl_waitq_unlock(waitq, &wakes);
        fl_waiter_wake_others(choice->waiters[winner]);
    }
    return winner;
}
