/* Conditions and barriers: every order of waiting, notifying and coming together. */
#include "sync/coordination/barrier.h"
#include "sync/coordination/condition.h"
#include "sync/coordination/sequence.h"
#include "scenarios.h"

#include <string.h>

/* A condition beside its lock. A waiter that sees the flag passes the notification on, so that one
   notification is enough for all waiters, unless one of them keeps it. */
static fl_waitq *condition;
static bool flag, for_all;
static int waits, served; /* a waiter has a number, and is served in that order */

static void begin_condition(void)
{
    model_begin(1, FL_WAITQ_OWNED);
    condition = fl_condition_new(waitq);
    flag = for_all = false;
    waits = served = 0;
}

static void begin_condition_for_all(void)
{
    begin_condition();
    for_all = true;
}

static void end_condition(void)
{
    MODEL_CHECK(condition->head == NULL && condition->waiting == 0 && condition->lock == 0 &&
                condition->refs == 1);
    fl_waitq_unref(condition);
    model_end();
}

static void take_the_lock(void)
{
    MODEL_CHECK(fl_sem_try(waitq, 1, fl_owner_thread()) || model_wait_for(1, FL_FOREVER));
    model_took(1);
}

/* As wait_as_thread() in sync/bind/coordination/condition.c. A signal raises: once it has the lock again, one
   that was notified notifies the next. True: notified, and nothing raised. */
static bool wait_once(int64_t deadline)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, condition, 1, FL_HOLDER(fl_owner_thread()));
    fl_waitq_enter(waiter);
    int number = ++waits;
    model_give(1);
    bool raised = false, left = false;
    fl_wait_result result = FL_WAIT_INTERRUPTED;
    while (result == FL_WAIT_INTERRUPTED && !left) {
        result = fl_waitq_wait(waiter, deadline, FL_FOREVER);
        raised |= result == FL_WAIT_INTERRUPTED;
        left = result == FL_WAIT_INTERRUPTED && fl_condition_leave(waiter);
    }
    MODEL_CHECK((waiter->moved_from != NULL) == (result == FL_WAIT_GRANTED));
    model_poison(waiter);
    if (result != FL_WAIT_GRANTED) {
        frames[model_self()][0].used = false;
        take_the_lock();
        frames[model_self()][0].used = true;
        return false;
    }
    model_took(1);
    MODEL_CHECK(number > served);
    served = number;
    if (raised) {
        fl_condition_give(condition, 1);
    }
    return !raised;
}

static void wait_for_notice(int64_t deadline)
{
    take_the_lock();
    bool notified = true;
    while (!flag && notified) {
        notified = wait_once(deadline);
    }
    if (notified && !for_all) {
        fl_condition_give(condition, 1);
    }
    model_give(1);
}

static void wait_for_notice_for_ever(void)
{
    wait_for_notice(FL_FOREVER);
}

static void wait_for_notice_within_a_time(void)
{
    wait_for_notice(1);
}

static void notify_one(void)
{
    take_the_lock();
    flag = true;
    fl_condition_give(condition, for_all ? MODEL_THREADS : 1);
    model_give(1);
}

/* Without the lock, as a coroutine that is closed hands its notification on. */
static void notify_without_the_lock(void)
{
    take_the_lock();
    flag = true;
    model_give(1);
    fl_condition_give(condition, 1);
}

/* Two places, one token: a thread that gives it back and asks again comes behind the one that it notified. */
static int tokens, turns[2];

static void begin_tokens(void)
{
    begin_condition();
    tokens = 1;
    turns[0] = turns[1] = 0;
}

static void take_a_token_twice(void)
{
    int other = 1 - model_self();
    for (int turn = 0; turn < 2; turn++) {
        take_the_lock();
        while (tokens == 0) {
            int before = turns[other];
            MODEL_CHECK(wait_once(FL_FOREVER));
            MODEL_CHECK(turns[other] == before); /* none came in between: it is the next */
        }
        tokens--;
        turns[model_self()]++;
        model_give(1);
        take_the_lock();
        tokens++;
        fl_condition_give(condition, 1);
        model_give(1);
    }
}

/* A barrier for two or three: all parties of one time pass together, or none does. */
static uint32_t passed, acting;

static void begin_barrier(uint32_t parties)
{
    memset(frames, 0, sizeof frames);
    passed = acting = 0;
    permits = parties;
    waitq = fl_barrier_new(parties);
}

static void begin_barrier_of_two(void)
{
    begin_barrier(2);
}

static void begin_barrier_of_three(void)
{
    begin_barrier(3);
}

static bool pass_barrier(int64_t deadline)
{
    fl_waiter waiter;
    fl_waiter_init(&waiter, waitq, 0, (fl_stake){0});
    fl_wait_result result = FL_WAIT_GRANTED;
    if (!fl_waitq_enter(&waiter)) {
        result = fl_waitq_wait(&waiter, deadline, FL_FOREVER);
        if (result == FL_WAIT_INTERRUPTED && !fl_waitq_leave(&waiter, FL_CANCELLED)) {
            fl_waiter_wake_others(&waiter);
            result = waiter.state == FL_REFUSED ? FL_WAIT_REFUSED : FL_WAIT_GRANTED;
            if (result == FL_WAIT_GRANTED && (waiter.wanted & FL_BARRIER_LAST)) {
                MODEL_CHECK(fl_waiter_abandon(&waiter, FL_CANCELLED)); /* which breaks it */
                result = FL_WAIT_INTERRUPTED;
            } /* else all have met, and what is raised comes after that */
        }
    }
    uint32_t outcome = waiter.wanted;
    model_poison(&waiter);
    bool through = result == FL_WAIT_GRANTED && !(outcome & FL_BARRIER_LAST);
    if (result == FL_WAIT_GRANTED && (outcome & FL_BARRIER_LAST)) {
        MODEL_CHECK(acting++ == 0);
        fl_model_point();
        acting--;
        through = fl_barrier_trip(waitq, outcome);
    }
    passed += through;
    return through;
}

static void pass_once(void)
{
    pass_barrier(FL_FOREVER);
}

static void pass_within_a_time(void)
{
    pass_barrier(1);
}

static void pass_twice_within_a_time(void)
{
    if (pass_barrier(1)) {
        pass_barrier(1);
    }
}

static void reset_barrier(void)
{
    fl_barrier_reset(waitq);
    fl_barrier_break(waitq, 0);
}

static void end_barrier(void)
{
    MODEL_CHECK(passed % permits == 0);
    MODEL_CHECK(waitq->head == NULL && waitq->waiting == 0 && waitq->lock == 0 && waitq->refs == 1);
    MODEL_CHECK((waitq->word & ~FL_BARRIER_BROKEN) == 0);
    fl_waitq_unref(waitq);
}

/* A number that grows to two and is closed: a waiter sees it all, in order, and then the end. */
static void begin_version(void)
{
    memset(frames, 0, sizeof frames);
    passed = 0;
    waitq = fl_sequence_new();
}

static void see_all(void)
{
    uint64_t place = 0;
    for (;;) {
        uint64_t word = fl_sequence_word(waitq);
        if (place != (word & ~FL_SEQUENCE_CLOSED)) {
            place++;
        } else if (model_wait_at(waitq, fl_sequence_seen(place), FL_FOREVER) == FL_WAIT_REFUSED) {
            break;
        }
    }
    MODEL_CHECK(place == 2);
    passed++;
}

static void advance_twice_and_close(void)
{
    MODEL_CHECK(fl_sequence_advance(waitq));
    MODEL_CHECK(fl_sequence_advance(waitq));
    fl_sequence_close(waitq);
    MODEL_CHECK(!fl_sequence_advance(waitq));
}

static void end_version(void)
{
    model_end_poison();
    MODEL_CHECK(passed == 2);
    MODEL_CHECK(waitq->word == (FL_SEQUENCE_CLOSED | 2) && waitq->head == NULL && waitq->waiting == 0);
    fl_waitq_unref(waitq);
}

static const model_scenario scenarios[] = {
    {"sequence-3", 2, 0, PATIENT, begin_version, end_version, {see_all, see_all, advance_twice_and_close}},
    {"condition-2", 3, 1, PATIENT, begin_condition, end_condition, {wait_for_notice_for_ever, notify_one}},
    {"condition-3", 3, 1, PATIENT, begin_condition, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_for_ever, notify_one}},
    {"condition-3-all", 2, 1, PATIENT, begin_condition_for_all, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_for_ever, notify_one}},
    {"condition-3-all-timed", 2, 0, PATIENT, begin_condition_for_all, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_within_a_time, notify_one}},
    {"condition-3-free", 2, 1, PATIENT, begin_condition, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_within_a_time, notify_without_the_lock}},
    {"condition-2-turns", 3, 0, IMPATIENT, begin_tokens, end_condition,
     {take_a_token_twice, take_a_token_twice}},
    {"condition-3-timed", 3, 0, PATIENT, begin_condition, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_within_a_time, notify_one}},
    {"barrier-2-timed", 3, 1, PATIENT, begin_barrier_of_two, end_barrier, {pass_within_a_time, pass_once}},
    {"barrier-3", 3, 1, PATIENT, begin_barrier_of_three, end_barrier, {pass_once, pass_once, pass_once}},
    {"barrier-3-timed", 3, 0, PATIENT, begin_barrier_of_three, end_barrier,
     {pass_within_a_time, pass_once, pass_once}},
    {"barrier-3-pairs", 3, 0, PATIENT, begin_barrier_of_two, end_barrier,
     {pass_twice_within_a_time, pass_within_a_time, pass_within_a_time}},
    {"barrier-3-reset", 3, 0, PATIENT, begin_barrier_of_two, end_barrier,
     {pass_once, pass_once, reset_barrier}},
};

const model_table meeting_scenarios = MODEL_TABLE(scenarios);
