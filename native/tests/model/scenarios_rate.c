/* A rate: never more than it allows in any span of time, no grant late, and no place lost. */
#include "machine/clock.h"
#include "sync/coordination/rate.h"
#include "scenarios.h"

#include <string.h>

#define INTERVAL 3
#define LONG_INTERVAL 10 /* so that newcomers wait */
#define MOST 8

/* What was kept: readings of the clock before and after. */
static struct {
    int64_t before, after;
    uint32_t count;
} kept[MOST];
static uint32_t times, served;

static void begin_rate_of(int64_t interval, uint32_t burst)
{
    memset(frames, 0, sizeof frames);
    times = served = 0;
    wakeup = 0;
    waitq = fl_rate_new(interval, burst);
    mailbox = fl_mailbox_new();
    for (int i = 0; i < 10 * INTERVAL; i++) {
        fl_clock_now(); /* a time in which nothing is taken */
    }
}

static void begin_rate(void)
{
    begin_rate_of(INTERVAL, 2);
}

static void begin_slow_rate(void)
{
    begin_rate_of(LONG_INTERVAL, 2);
}

static void keep(int64_t before, uint32_t count)
{
    int64_t after = fl_rate_now(waitq); /* others may run here, and not below */
    kept[times].before = before;
    kept[times].after = after;
    kept[times++].count = count;
    served++;
    fl_unpark(&served);
}

/* A time that stands still at 0, where the only permit was taken. */
static void begin_standing(void)
{
    begin_rate_of(INTERVAL, 1);
    fl_rate_set(waitq, 0);
    MODEL_CHECK(fl_rate_try(waitq, 1));
    keep(0, 1);
    served = 0;
}

static int64_t interval(void)
{
    return ((fl_rate *)(void *)waitq)->interval;
}

static void end_rate(void)
{
    model_end_poison();
    for (uint32_t i = 0; i < times; i++) {
        for (uint32_t j = 0; j < times; j++) {
            int64_t from = kept[i].before, to = kept[j].after, sum = 0;
            for (uint32_t k = 0; k < times; k++) {
                sum += kept[k].before >= from && kept[k].after <= to ? kept[k].count : 0;
            }
            MODEL_CHECK(from > to || sum * interval() <= to - from + waitq->limit * interval());
        }
    }
    fl_rate *rate = (fl_rate *)(void *)waitq;
    MODEL_CHECK(!(waitq->word & FL_RATE_QUEUED) && rate->queued == 0);
    MODEL_CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0 && waitq->lock == 0);
    if (model_mailbox_is_empty() && !mailbox->closed) {
        fl_mailbox_close(mailbox);
    }
    MODEL_CHECK(waitq->refs == 1 && mailbox->refs == 1 && model_mailbox_is_empty());
    fl_waitq_unref(waitq);
    fl_mailbox_unref(mailbox);
}

/* For a while, or for ever; may be interrupted, and then gives up or goes on in its place. */
static void take(uint32_t wanted, int64_t patience, bool gives_up)
{
    int64_t before = fl_rate_now(waitq), latest = patience == FL_FOREVER ? FL_FOREVER : before + patience;
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, waitq, wanted, (fl_stake){0});
    waiter->look = latest;
    fl_wait_result result = FL_WAIT_GRANTED;
    if (!fl_rate_try(waitq, wanted) && !fl_waitq_enter(waiter)) {
        do {
            result = fl_waitq_wait(waiter, latest, FL_FOREVER);
        } while (result == FL_WAIT_INTERRUPTED && !gives_up);
        if (result == FL_WAIT_INTERRUPTED && !fl_waitq_leave(waiter, FL_CANCELLED)) {
            result = FL_WAIT_GRANTED;
        }
    }
    model_poison(waiter);
    if (result == FL_WAIT_GRANTED) {
        keep(before, wanted);
    } else {
        MODEL_CHECK(gives_up || latest != FL_FOREVER);
    }
}

static void take_one(void)
{
    take(1, FL_FOREVER, false);
}

static void take_two(void)
{
    take(2, FL_FOREVER, false);
}

static void take_one_or_give_up(void)
{
    take(1, FL_FOREVER, true);
}

static void take_one_within_a_time(void)
{
    take(1, INTERVAL, false);
}

static void take_now(void)
{
    int64_t before = fl_rate_now(waitq);
    if (fl_rate_try(waitq, 1)) {
        keep(before, 1);
    }
}

static void take_three_times(void)
{
    take_now();
    take_now();
    take_now();
}

/* The head of the queue checks in time, or has been notified to. */
static void observe(void)
{
    fl_waitq_lock(waitq);
    const fl_waiter *head = waitq->head;
    MODEL_CHECK((head != NULL) == ((waitq->word & FL_RATE_QUEUED) != 0));
    if (head != NULL && head->state == FL_WAITING) {
        int64_t full = (int64_t)(waitq->word & ~FL_RATE_QUEUED);
        MODEL_CHECK(head->look <= full - (int64_t)(waitq->limit - head->wanted) * interval());
    }
    fl_mutex_unlock(&waitq->lock);
}

/* Queues, as a task does, and is cancelled. */
static void queue_and_leave(uint32_t wanted)
{
    int64_t before = fl_rate_now(waitq);
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, waitq, wanted, (fl_stake){0});
    bool taken = fl_waitq_enter(waiter);
    if (!taken) {
        observe();
        taken = !fl_waitq_leave(waiter, FL_CANCELLED);
    }
    model_poison(waiter);
    if (taken) {
        keep(before, wanted);
    }
    observe();
}

static void take_all_and_leave(void)
{
    take_now();
    take_now();
    queue_and_leave(2);
}

static void leave_one(void)
{
    queue_and_leave(1);
}

static void pass_time(void)
{
    fl_rate_set(waitq, INTERVAL);
    while (fl_load(&served, relaxed) == 0) {
        fl_park(&served, 0, FL_FOREVER);
    }
    fl_rate_set(waitq, 2 * INTERVAL);
}

static void pass_time_and_take(void)
{
    fl_rate_set(waitq, INTERVAL);
    fl_rate_set(waitq, 3 * INTERVAL);
    take_now();
    take_now();
    fl_rate_set(waitq, 4 * INTERVAL);
    fl_rate_set(waitq, 5 * INTERVAL);
}

static void loop_that_takes(void)
{
    int64_t before = fl_rate_now(waitq);
    if (model_run_loop(waitq, false, NULL)) {
        keep(before, 1);
    }
}

static const model_scenario scenarios[] = {
    {"rate-2", 3, 0, PATIENT, begin_rate, end_rate, {take_three_times, take_two}},
    {"rate-2-timed", 3, 1, PATIENT, begin_rate, end_rate, {take_one_within_a_time, take_two}},
    {"rate-3-head", 2, 0, PATIENT, begin_slow_rate, end_rate, {take_all_and_leave, leave_one, leave_one}},
    {"rate-3-place", 2, 1, PATIENT, begin_standing, end_rate, {pass_time, take_one_or_give_up, take_one}},
    {"rate-3-task", 2, 1, PATIENT, begin_standing, end_rate, {pass_time_and_take, loop_that_takes}},
};

const model_table rate_scenarios = MODEL_TABLE(scenarios);
