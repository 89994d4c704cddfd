/* Senders and receivers: every order of arriving, leaving and returning an item. */
#include "sync/coordination/meeting.h"
#include "scenarios.h"

#include <string.h>

/* Each thread has a handoff to send. It is in one place: a thread whose send has succeeded no longer has
   it. */
static fl_handoff handoffs[MODEL_THREADS];
static bool sent[MODEL_THREADS];
static uint32_t received[MODEL_THREADS];
static bool closed;

/* Beside the waiter on the stack of its thread, and gone with it. */
static fl_handoff *places[MODEL_THREADS][4], *nowhere;

static void begin_meeting(void)
{
    memset(frames, 0, sizeof frames);
    memset(handoffs, 0, sizeof handoffs);
    memset(sent, 0, sizeof sent);
    memset(received, 0, sizeof received);
    memset(&nowhere, 0x5a, sizeof nowhere);
    closed = false;
    wakeup = 0;
    waitq = fl_meeting_new();
    mailbox = fl_mailbox_new();
}

static bool meet(fl_meeting_side side, fl_handoff **handoff, int64_t deadline)
{
    int frame = 0;
    while (frames[model_self()][frame].used) {
        frame++;
    }
    frames[model_self()][frame].used = true;
    fl_waiter *waiter = &frames[model_self()][frame].waiter;
    fl_handoff **place = &places[model_self()][frame];
    *place = *handoff;
    fl_waiter_init(waiter, waitq, side, fl_meeting_place(place));
    fl_wait_result result = fl_waitq_enter(waiter) ? FL_WAIT_GRANTED : model_wait_entered(waiter, deadline);
    MODEL_CHECK(result != FL_WAIT_REFUSED || closed);
    *handoff = *place;
    *place = nowhere;
    model_poison(waiter);
    return result == FL_WAIT_GRANTED;
}

static void note_received(fl_handoff *handoff)
{
    MODEL_CHECK(handoff != NULL);
    received[handoff - handoffs]++;
}

static bool send_handoff(fl_handoff *handoff, int64_t deadline)
{
    fl_handoff *mine = handoff;
    bool met = meet(FL_MEET_SEND, &mine, deadline);
    MODEL_CHECK(mine == (met ? NULL : handoff));
    return met;
}

static void send_within(int64_t deadline)
{
    sent[model_self()] = send_handoff(&handoffs[model_self()], deadline);
}

static void send_for_ever(void)
{
    send_within(FL_FOREVER);
}

static void send_within_a_time(void)
{
    send_within(1);
}

static void try_to_send(void)
{
    fl_handoff *mine = &handoffs[model_self()];
    sent[model_self()] = fl_meeting_try(waitq, FL_MEET_SEND, &mine);
}

static void receive_within(int64_t deadline)
{
    fl_handoff *came = NULL;
    bool met = meet(FL_MEET_RECEIVE, &came, deadline);
    MODEL_CHECK(met == (came != NULL));
    if (met) {
        note_received(came);
    }
}

static void receive_for_ever(void)
{
    receive_within(FL_FOREVER);
}

static void receive_within_a_time(void)
{
    receive_within(1);
}

/* A task that receives, is cancelled by a signal, and hands on what it took. */
static void receive_in_a_loop(bool close_when_interrupted)
{
    fl_handoff *came = NULL;
    bool refused = false;
    fl_stake place = fl_meeting_place(&came);
    if (model_run_loop_as(waitq, FL_MEET_RECEIVE, place, close_when_interrupted, &refused)) {
        MODEL_CHECK(came != NULL);
        send_handoff(came, FL_FOREVER);
    } else {
        MODEL_CHECK(came == NULL && (closed || !refused));
    }
}

static void loop_that_receives(void)
{
    receive_in_a_loop(false);
}

static void loop_that_closes(void)
{
    receive_in_a_loop(true);
}

/* A task that sends, and is cancelled by a signal: too late, once another has it. Else its thread sends. */
static void loop_that_sends(void)
{
    fl_handoff *mine = &handoffs[model_self()];
    sent[model_self()] = model_run_loop_as(waitq, FL_MEET_SEND, fl_meeting_place(&mine), false, NULL);
    MODEL_CHECK((mine == NULL) == sent[model_self()]);
    if (mine != NULL) {
        send_for_ever();
    }
}

static void close_meeting(void)
{
    closed = true;
    fl_meeting_close(waitq);
}

/* So that a task which was not cancelled, and has nothing to wait for, ends. */
static void receive_and_close(void)
{
    receive_for_ever();
    close_meeting();
}

static void end_meeting(void)
{
    model_end_poison();
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        for (int frame = 0; frames[thread][frame].used; frame++) {
            MODEL_CHECK(places[thread][frame] == nowhere);
        }
    }
    MODEL_CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0 && waitq->lock == 0);
    uint64_t before = 0;
    for (fl_handoff *listed = fl_meeting_clear(waitq); listed != NULL; listed = listed->next) {
        MODEL_CHECK(listed->number > before);
        before = listed->number;
        note_received(listed);
    }
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        MODEL_CHECK(received[thread] == sent[thread]);
    }
    if (!mailbox->closed) {
        fl_mailbox_close(mailbox);
    }
    MODEL_CHECK(waitq->refs == 1 && mailbox->refs == 1 && model_mailbox_is_empty());
    fl_waitq_unref(waitq);
    fl_mailbox_unref(mailbox);
}

static const model_scenario scenarios[] = {
    {"meet-2", 3, 2, PATIENT, begin_meeting, end_meeting, {send_for_ever, receive_for_ever}},
    {"meet-2-timed", 3, 1, PATIENT, begin_meeting, end_meeting, {send_within_a_time, receive_within_a_time}},
    {"meet-2-task-sends", 3, 1, PATIENT, begin_meeting, end_meeting,
     {loop_that_sends, receive_for_ever}},
    {"meet-3-timed", 3, 0, PATIENT, begin_meeting, end_meeting,
     {send_within_a_time, receive_within_a_time, send_within_a_time}},
    {"meet-3-try", 2, 0, PATIENT, begin_meeting, end_meeting,
     {try_to_send, receive_within_a_time, receive_within_a_time}},
    {"meet-3-task", 2, 1, PATIENT, begin_meeting, end_meeting,
     {loop_that_receives, send_for_ever, receive_and_close}},
    {"meet-3-task-closes", 2, 1, PATIENT, begin_meeting, end_meeting,
     {loop_that_closes, send_for_ever, receive_and_close}},
    {"meet-3-closed", 2, 0, PATIENT, begin_meeting, end_meeting,
     {send_for_ever, receive_for_ever, close_meeting}},
};

const model_table meet_scenarios = MODEL_TABLE(scenarios);
