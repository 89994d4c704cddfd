/* One that chooses between two wait queues: it takes from one, whatever comes in whichever order. */
#include "scenarios.h"

#include <string.h>

static fl_waitq *other;
static uint32_t chosen; /* how often something was */

/* Two semaphores, of `value` permits each. */
static void begin_two(uint32_t value)
{
    memset(frames, 0, sizeof frames);
    chosen = 0;
    wakeup = 0;
    waitq = fl_sem_new(value, 2, 0);
    other = fl_sem_new(value, 2, 0);
    mailbox = fl_mailbox_new();
}

static void begin_empty(void)
{
    begin_two(0);
}

/* One permit to give in each, so that a choice and a second one both have something. */
static void end_two(void)
{
    if (!mailbox->closed) {
        fl_mailbox_close(mailbox);
    }
    MODEL_CHECK(waitq->word + other->word + chosen == 2);
    fl_waitq *const both[] = {waitq, other};
    for (int i = 0; i < 2; i++) {
        MODEL_CHECK(both[i]->head == NULL && both[i]->waiting == 0);
        MODEL_CHECK(both[i]->lock == 0 && both[i]->refs == 1);
        fl_waitq_unref(both[i]);
    }
    MODEL_CHECK(mailbox->refs == 1 && model_mailbox_is_empty());
    fl_mailbox_unref(mailbox);
}

/* Whether something was chosen within the time; interrupted, it gives up. */
static bool choose_within(int64_t deadline)
{
    fl_waiter waiters[2], *pointers[2] = {&waiters[0], &waiters[1]};
    fl_choice choice = {FL_CHOICE_OPEN, 2, pointers};
    fl_waitq *const both[] = {waitq, other};
    for (uint32_t i = 0; i < 2; i++) {
        fl_waiter_init(&waiters[i], both[i], 1, FL_HOLDER(fl_owner_thread()));
        waiters[i].choice = &choice;
        waiters[i].place_in_choice = i;
    }
    fl_choice_begin(&choice, 0);
    fl_choice_wait(&choice, deadline, FL_FOREVER);
    uint32_t winner = fl_choice_end(&choice);
    if (winner != FL_CHOICE_NONE) {
        MODEL_CHECK(winner < 2 && waiters[winner].state == FL_GRANTED);
        MODEL_CHECK(waiters[1 - winner].state != FL_GRANTED);
        chosen++;
    }
    model_poison(&waiters[0]);
    model_poison(&waiters[1]);
    memset(&choice, 0, sizeof choice);
    return winner != FL_CHOICE_NONE;
}

static void choose(void)
{
    choose_within(FL_FOREVER);
}

static void choose_within_a_time(void)
{
    choose_within(1);
}

static void give_first(void)
{
    fl_sem_give(waitq, 1);
}

static void give_second(void)
{
    fl_sem_give(other, 1);
}

static void give_both(void)
{
    give_first();
    give_second();
}

/* Takes the first by itself, perhaps before it was chosen, and gives it back. */
static void give_both_and_barge(void)
{
    give_both();
    if (fl_sem_try(waitq, 1, 0)) {
        fl_sem_give(waitq, 1);
    }
}

/* The second permit is released, taken by another thread, and released again once it is kept for the woken
   waiter, whose select may have committed to the first. */
static void give_both_and_second_again(void)
{
    give_both();
    if (fl_sem_try(other, 1, 0)) {
        give_second();
    }
}

/* A task that selects: its loop is notified, is cancelled by a signal, and closes at the end. */
static void loop_that_chooses(void)
{
    fl_waiter *pointers[2];
    fl_choice choice = {FL_CHOICE_OPEN, 2, pointers};
    fl_waitq *const both[] = {waitq, other};
    for (uint32_t i = 0; i < 2; i++) {
        pointers[i] = fl_mailbox_waiter(mailbox, both[i], 1, FL_HOLDER(fl_owner_task()));
        pointers[i]->choice = &choice;
        pointers[i]->place_in_choice = i;
    }
    fl_choice_begin(&choice, 1);
    bool given_up = model_run_loop_of(&choice);
    uint32_t winner = fl_choice_end(&choice);
    if (winner != FL_CHOICE_NONE && given_up) {
        MODEL_CHECK(fl_waiter_abandon(pointers[winner], FL_CANCELLED));
    } else if (winner != FL_CHOICE_NONE) {
        uint32_t state = FL_GRANTED;
        MODEL_CHECK(fl_cas(&pointers[winner]->state, &state, FL_TAKEN, acq_rel, acquire));
        chosen++;
    }
    fl_mailbox_forget(pointers[0]);
    fl_mailbox_forget(pointers[1]);
    memset(&choice, 0, sizeof choice);
}

static const model_scenario scenarios[] = {
    {"select-2", 3, 1, PATIENT, begin_empty, end_two, {choose, give_both_and_barge}},
    {"select-2-overdue", 3, 0, IMPATIENT, begin_empty, end_two, {choose_within_a_time, give_both_and_barge}},
    /* the waiter is woken by the first release of the second, and served first by the next one */
    {"select-2-again", 3, 0, 120000, begin_empty, end_two, {choose, give_both_and_second_again}},
    {"select-2-task-again", 3, 0, 90000, begin_empty, end_two,
     {loop_that_chooses, give_both_and_second_again}},
    {"select-2-task", 3, 1, PATIENT, begin_empty, end_two, {loop_that_chooses, give_both}},
    {"select-2-task-overdue", 2, 1, IMPATIENT, begin_empty, end_two, {loop_that_chooses, give_both}},
    {"select-3", 2, 0, IMPATIENT, begin_empty, end_two, {choose, give_first, give_second}},
    {"select-3-two", 2, 0, PATIENT, begin_empty, end_two, {choose, choose, give_both}},
    {"select-3-timed", 2, 0, PATIENT, begin_empty, end_two, {choose_within_a_time, give_first, give_second}},
};

const model_table select_scenarios = MODEL_TABLE(scenarios);
