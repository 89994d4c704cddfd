/* Meetings in which one side or both select: in every order of arrivals each handoff is made once or not at
 * all, and a select has one result.
 */
#include "sync/coordination/meeting.h"
#include "scenarios.h"

#include <string.h>

typedef struct {
    fl_waitq **waitq;
    uint32_t side; /* of a meeting; or what is wanted of a semaphore */
} want;

/* `waitq` and `other` are meetings; the third is a semaphore, of which one permit is given. */
static fl_waitq *other, *permit;

/* Each thread has a handoff for each of two cases, and for each a place that is gone after its wait. */
static fl_handoff handoffs[MODEL_THREADS][2];
static fl_handoff *places[MODEL_THREADS][2], *nowhere;
static bool sent[MODEL_THREADS][2];
static uint32_t received[MODEL_THREADS][2], taken;

static void begin_chosen(void)
{
    memset(frames, 0, sizeof frames);
    memset(handoffs, 0, sizeof handoffs);
    memset(sent, 0, sizeof sent);
    memset(received, 0, sizeof received);
    memset(&nowhere, 0x5a, sizeof nowhere);
    fl_choice_forked(); /* an execution that failed may have ended with a claim */
    taken = 0;
    wakeup = 0;
    waitq = fl_meeting_new();
    other = fl_meeting_new();
    permit = fl_sem_new(0, 1, 0);
    mailbox = fl_mailbox_new();
}

static void note_received(fl_handoff *handoff)
{
    MODEL_CHECK(handoff != NULL);
    received[(handoff - handoffs[0]) / 2][(handoff - handoffs[0]) % 2]++;
}

static void end_chosen(void)
{
    if (!mailbox->closed) {
        fl_mailbox_close(mailbox);
    }
    fl_waitq *const both[] = {waitq, other};
    for (int i = 0; i < 2; i++) {
        MODEL_CHECK(both[i]->head == NULL && both[i]->tail == NULL && both[i]->waiting == 0);
        for (fl_handoff *listed = fl_meeting_clear(both[i]); listed != NULL; listed = listed->next) {
            note_received(listed);
        }
        MODEL_CHECK(both[i]->lock == 0 && both[i]->refs == 1);
        fl_waitq_unref(both[i]);
    }
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        for (int i = 0; i < 2; i++) {
            MODEL_CHECK(received[thread][i] == sent[thread][i]);
            MODEL_CHECK(places[thread][i] == nowhere || places[thread][i] == NULL);
        }
    }
    MODEL_CHECK(permit->head == NULL && permit->waiting == 0 && permit->refs == 1);
    fl_waitq_unref(permit);
    MODEL_CHECK(mailbox->refs == 1 && model_mailbox_is_empty());
    fl_mailbox_unref(mailbox);
}

static void end_permit(void)
{
    MODEL_CHECK(permit->word + taken == 1);
    end_chosen();
}

static bool takes_handoff(const want *one)
{
    return *one->waitq != permit && one->side == FL_MEET_RECEIVE;
}

/* Of this thread's cases what it ended with; FL_CHOICE_NONE: nothing. */
static void note(const want wants[2], uint32_t winner)
{
    int self = model_self();
    for (uint32_t i = 0; i < 2; i++) {
        fl_handoff *came = places[self][i];
        fl_handoff *mine = takes_handoff(&wants[i]) ? NULL : &handoffs[self][i];
        places[self][i] = nowhere;
        if (i != winner || *wants[i].waitq == permit) {
            MODEL_CHECK(came == mine);
            taken += i == winner;
        } else if (mine == NULL) {
            note_received(came);
        } else {
            MODEL_CHECK(came == NULL);
            sent[self][i] = true;
        }
    }
}

static void prepare(const want wants[2], uint32_t i, fl_choice *choice, fl_waiter *waiter)
{
    fl_handoff **place = &places[model_self()][i];
    *place = takes_handoff(&wants[i]) ? NULL : &handoffs[model_self()][i];
    waiter->stake = *wants[i].waitq == permit ? FL_HOLDER(fl_owner_thread()) : fl_meeting_place(place);
    waiter->choice = choice;
    waiter->place_in_choice = i;
}

/* In a thread. `raises`: a signal ends it. */
static void choose(const want wants[2], int64_t deadline, bool raises)
{
    fl_waiter waiters[2], *pointers[2] = {&waiters[0], &waiters[1]};
    fl_choice choice = {FL_CHOICE_OPEN, 2, pointers};
    for (uint32_t i = 0; i < 2; i++) {
        fl_waiter_init(&waiters[i], *wants[i].waitq, wants[i].side, (fl_stake){0});
        prepare(wants, i, &choice, &waiters[i]);
    }
    fl_choice_begin(&choice, 0);
    bool raised = false;
    while (!raised && fl_choice_wait(&choice, deadline, FL_FOREVER) == FL_WAIT_INTERRUPTED) {
        raised = raises;
    }
    uint32_t winner = fl_choice_end(&choice);
    if (winner != FL_CHOICE_NONE && waiters[winner].state == FL_REFUSED) {
        winner = FL_CHOICE_NONE;
    }
    if (winner != FL_CHOICE_NONE) {
        MODEL_CHECK(winner < 2 && waiters[winner].state == FL_GRANTED);
        MODEL_CHECK(waiters[1 - winner].state != FL_GRANTED);
        if (raised && fl_waiter_abandon(&waiters[winner], FL_CANCELLED)) {
            winner = FL_CHOICE_NONE;
        } /* else what it has sent stands, and the exception comes after that */
    }
    note(wants, winner);
    model_poison(&waiters[0]);
    model_poison(&waiters[1]);
    memset(&choice, 0, sizeof choice);
}

/* In a task, which is cancelled by a signal, or whose loop is closed by one. */
static void choose_in_a_loop(const want wants[2], bool closes)
{
    fl_waiter *pointers[2];
    fl_choice choice = {FL_CHOICE_OPEN, 2, pointers};
    for (uint32_t i = 0; i < 2; i++) {
        pointers[i] = fl_mailbox_waiter(mailbox, *wants[i].waitq, wants[i].side, (fl_stake){0});
        prepare(wants, i, &choice, pointers[i]);
    }
    fl_choice_begin(&choice, 0);
    bool given_up = model_run_loop_of(&choice);
    if (given_up && closes) {
        fl_mailbox_close(mailbox);
    }
    uint32_t winner = fl_choice_end(&choice), granted = FL_GRANTED;
    bool has = winner != FL_CHOICE_NONE && fl_load(&pointers[winner]->state, acquire) != FL_REFUSED;
    if (has && given_up && fl_waiter_abandon(pointers[winner], FL_CANCELLED)) {
        has = false; /* given back */
    } else if (has) { /* otherwise the loop was closed, and the sender has sent */
        has = fl_cas(&pointers[winner]->state, &granted, FL_TAKEN, acq_rel, acquire) ||
              wants[winner].side == FL_MEET_SEND;
    }
    if (has && wants[winner].side == FL_MEET_SEND && places[model_self()][winner] != NULL) {
        MODEL_CHECK(closes); /* broken before it was granted */
        has = false;
    }
    note(wants, has ? winner : FL_CHOICE_NONE);
    fl_mailbox_forget(pointers[0]);
    fl_mailbox_forget(pointers[1]);
    memset(&choice, 0, sizeof choice);
}

static const want sends[] = {{&waitq, FL_MEET_SEND}, {&other, FL_MEET_SEND}};
static const want receives[] = {{&other, FL_MEET_RECEIVE}, {&waitq, FL_MEET_RECEIVE}};
static const want crosses[] = {{&waitq, FL_MEET_SEND}, {&other, FL_MEET_RECEIVE}};
static const want crosses_back[] = {{&other, FL_MEET_SEND}, {&waitq, FL_MEET_RECEIVE}};
static const want either[] = {{&waitq, FL_MEET_SEND}, {&waitq, FL_MEET_RECEIVE}};
static const want sends_or_takes[] = {{&permit, 1}, {&waitq, FL_MEET_SEND}};

static void send_one(void)
{
    choose(sends, FL_FOREVER, false);
}

static void send_within_a_time(void)
{
    choose(sends, 1, false);
}

static void send_until_a_signal(void)
{
    choose(sends, FL_FOREVER, true);
}

static void receive_one(void)
{
    choose(receives, FL_FOREVER, false);
}

static void receive_within_a_time(void)
{
    choose(receives, 1, false);
}

static void cross(void)
{
    choose(crosses, FL_FOREVER, false);
}

static void cross_back(void)
{
    choose(crosses_back, FL_FOREVER, false);
}

static void cross_within_a_time(void)
{
    choose(crosses, 1, false);
}

static void cross_back_within_a_time(void)
{
    choose(crosses_back, 1, false);
}

static void send_or_receive(void)
{
    choose(either, FL_FOREVER, false);
}

static void send_or_receive_within_a_time(void)
{
    choose(either, 1, false);
}

static void send_or_take(void)
{
    choose(sends_or_takes, FL_FOREVER, false);
}

static void loop_that_sends(void)
{
    choose_in_a_loop(sends, false);
}

static void loop_that_sends_closes(void)
{
    choose_in_a_loop(sends, true);
}

static void loop_that_receives(void)
{
    choose_in_a_loop(receives, false);
}

/* So that a task which has met no other ends. */
static void close_both(void)
{
    fl_meeting_close(waitq);
    fl_meeting_close(other);
}

static void receive_and_close(void)
{
    receive_within_a_time();
    close_both();
}

static void send_and_close(void)
{
    send_within_a_time();
    close_both();
}

/* Alone: it does not choose. */
static void meet_alone(fl_meeting_side side, int64_t deadline)
{
    fl_waiter waiter;
    fl_handoff **place = &places[model_self()][0];
    *place = side == FL_MEET_RECEIVE ? NULL : &handoffs[model_self()][0];
    fl_waiter_init(&waiter, waitq, side, fl_meeting_place(place));
    fl_wait_result result =
        fl_waitq_enter(&waiter) ? FL_WAIT_GRANTED : model_wait_entered(&waiter, deadline);
    if (result == FL_WAIT_GRANTED && side == FL_MEET_RECEIVE) {
        note_received(*place);
    } else if (result == FL_WAIT_GRANTED) {
        MODEL_CHECK(*place == NULL);
        sent[model_self()][0] = true;
    }
    *place = nowhere;
    model_poison(&waiter);
}

static void receive_alone_within_a_time(void)
{
    meet_alone(FL_MEET_RECEIVE, 1);
}

static void send_alone_within_a_time(void)
{
    meet_alone(FL_MEET_SEND, 1);
}

static void send_alone(void)
{
    meet_alone(FL_MEET_SEND, FL_FOREVER);
}

static void give_permit(void)
{
    fl_sem_give(permit, 1);
}

static const model_scenario scenarios[] = {
    {"chosen-2", 3, 1, PATIENT, begin_chosen, end_chosen, {send_one, receive_one}},
    {"chosen-2-cross", 3, 1, PATIENT, begin_chosen, end_chosen, {cross, cross_back}},
    {"chosen-2-either", 3, 1, PATIENT, begin_chosen, end_chosen, {send_or_receive, send_or_receive}},
    {"chosen-2-alone", 3, 1, PATIENT, begin_chosen, end_chosen, {send_or_receive, send_alone}},
    {"chosen-2-timed", 3, 0, PATIENT, begin_chosen, end_chosen, {send_within_a_time, receive_within_a_time}},
    {"chosen-2-cancelled", 3, 1, PATIENT, begin_chosen, end_chosen,
     {send_until_a_signal, receive_and_close}},
    {"chosen-2-task", 2, 1, PATIENT, begin_chosen, end_chosen, {loop_that_sends, receive_and_close}},
    {"chosen-2-task-closes", 2, 1, PATIENT, begin_chosen, end_chosen,
     {loop_that_sends_closes, receive_and_close}},
    {"chosen-2-task-gets", 2, 1, PATIENT, begin_chosen, end_chosen,
     {loop_that_receives, send_and_close}},
    {"chosen-3", 2, 0, PATIENT, begin_chosen, end_chosen,
     {cross_within_a_time, cross_back_within_a_time, receive_alone_within_a_time}},
    {"chosen-3-either", 2, 0, PATIENT, begin_chosen, end_chosen,
     {send_or_receive_within_a_time, send_or_receive_within_a_time, send_alone_within_a_time}},
    {"chosen-3-nudged", 2, 0, PATIENT, begin_chosen, end_permit,
     {send_or_take, receive_within_a_time, give_permit}},
};

const model_table chosen_scenarios = MODEL_TABLE(scenarios);
