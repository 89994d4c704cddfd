/* See choice.h. */
#include "core/choice.h"

void fl_choice_begin(fl_choice *choice, uint32_t first)
{
    for (uint32_t i = 0; i < choice->count && !fl_choice_decided(choice); i++) {
        uint32_t place = (first + i) % choice->count;
        fl_waiter *waiter = choice->waiters[place];
        if (fl_cell_enter(waiter)) {
            if (fl_choice_win(choice, place)) {
                fl_store(&waiter->state, FL_GRANTED, relaxed); /* not queued: nobody else looks */
            } else {
                waiter->cell->kind->give_back(waiter);
            }
        } else if (fl_load(&waiter->state, acquire) == FL_REFUSED) { /* pairs with settle */
            fl_choice_win(choice, place); /* unless it has won by being refused in the queue */
        }
    }
}

fl_wait_result fl_choice_wait(fl_choice *choice, int64_t deadline, int64_t look)
{
    int64_t until = look < deadline ? look : deadline;
    for (;;) {
        uint32_t word = FL_CHOICE_LOOK;
        if (fl_cas(&choice->word, &word, FL_CHOICE_OPEN, acq_rel, acquire)) { /* pairs with settle */
            for (uint32_t i = 0; i < choice->count; i++) {
                if (fl_load(&choice->waiters[i]->state, acquire) == FL_NUDGED) { /* pairs with settle */
                    fl_cell_retry(choice->waiters[i]);
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
            fl_cell_leave(waiter, FL_CANCELLED);
        }
    }
    if (winner != FL_CHOICE_NONE) {
        /* who has let it win may have yet to say so, and to let go of it */
        fl_cell *cell = choice->waiters[winner]->cell;
        fl_wakes wakes = {0};
        fl_cell_lock(cell);
        if (cell->flags & FL_CELL_CHAIN) {
            cell->kind->serve(cell, &wakes);
        }
        fl_cell_unlock(cell, &wakes);
    }
    return winner;
}
