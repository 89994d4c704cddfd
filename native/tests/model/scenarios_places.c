/* A thread that looks for signals, and runs their handlers, keeps its place in the queue: whatever a handler
 * or another thread does meanwhile is as if the waiter slept.
 */
#include "sync/coordination/event.h"
#include "sync/locks/rwlock.h"
#include "scenarios.h"

#include <string.h>

static fl_waitq *over; /* a flag: the first waiter is done */
static uint32_t given; /* by the handler, or in its place */
static bool first_is_done;

static void begin(fl_waitq *made)
{
    memset(frames, 0, sizeof frames);
    model_allow_handlers(false, false);
    waitq = made;
    over = fl_flag_new();
    given = 0;
    first_is_done = false;
}

static void end(void)
{
    model_handler = NULL;
    model_end_poison();
    fl_waitq *const both[] = {waitq, over};
    for (int i = 0; i < 2; i++) {
        MODEL_CHECK(both[i]->head == NULL && both[i]->waiting == 0 && both[i]->lock == 0);
        MODEL_CHECK(both[i]->refs == 1);
        fl_waitq_unref(both[i]);
    }
}

static bool give_once(void)
{
    return fl_exchange(&given, 1, acq_rel) == 0; /* pairs with itself */
}

/* Four permits: the first wants two, the second all. Two are released while the first is interrupted; the
   others, once the first has had its two. */
static void release_two(void)
{
    if (give_once()) {
        fl_sem_give(waitq, 2);
    }
}

static void begin_permits(void)
{
    begin(fl_sem_new(0, 4, 0));
    model_handler = release_two;
}

static void begin_fair_permits(void)
{
    begin(fl_sem_new(0, 4, FL_WAITQ_FAIR));
    model_handler = release_two;
}

static void take_two(void)
{
    MODEL_CHECK(model_wait_for(2, FL_FOREVER));
    fl_sem_give(waitq, 2);
    fl_flag_set(over);
}

static void take_four(void)
{
    if (fl_waitq_waiting(waitq) == 1) { /* behind the first */
        MODEL_CHECK(model_wait_for(4, FL_FOREVER));
        fl_sem_give(waitq, 4);
    }
}

static void release_the_rest(void)
{
    release_two();
    MODEL_CHECK(fl_flag_is_set(over) || model_wait_at(over, 0, FL_FOREVER) == FL_WAIT_GRANTED);
    fl_sem_give(waitq, 2);
}

static void end_permits(void)
{
    MODEL_CHECK(waitq->word == 4);
    end();
}

/* An event is set, and cleared at once: by a handler of the waiter, or by another thread that saw it wait. */
static void pulse(void)
{
    if (give_once()) {
        fl_flag_set(waitq);
        fl_flag_clear(waitq);
    }
}

static void begin_pulse(void)
{
    begin(fl_flag_new());
    model_handler = pulse;
}

static void begin_pulse_of_another(void)
{
    begin(fl_flag_new());
}

static void wait_for_the_pulse(void)
{
    MODEL_CHECK(fl_flag_is_set(waitq) || model_wait_for(0, FL_FOREVER));
}

static void set_for_good(void)
{
    if (give_once()) {
        fl_flag_set(waitq);
    }
}

static void pulse_if_waited_for(void)
{
    bool waited = fl_waitq_waiting(waitq) == 1;
    fl_flag_set(waitq);
    if (waited) {
        fl_flag_clear(waitq);
    }
}

/* A fair lock: the second begins to wait when the first does, and comes after it. */
static void begin_fair(void)
{
    begin(fl_sem_new(0, 1, FL_WAITQ_FAIR));
}

static void take_first(void)
{
    MODEL_CHECK(fl_sem_try(waitq, 1, 0) || model_wait_for(1, FL_FOREVER));
    first_is_done = true;
    fl_sem_give(waitq, 1);
}

static void take_second(void)
{
    bool behind = fl_waitq_waiting(waitq) == 1;
    MODEL_CHECK(fl_sem_try(waitq, 1, 0) || model_wait_for(1, FL_FOREVER));
    MODEL_CHECK(!behind || first_is_done);
    fl_sem_give(waitq, 1);
}

static void release_it(void)
{
    fl_sem_give(waitq, 1);
}

/* While a writer waits no reader comes in. */
static void begin_readers(void)
{
    begin(fl_rw_new());
    fl_rw_try(waitq, FL_RW_READ, 0);
}

static void write_first(void)
{
    MODEL_CHECK(fl_rw_try(waitq, FL_RW_WRITE, 0) || model_wait_for(FL_RW_WRITE, FL_FOREVER));
    first_is_done = true;
    fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
}

static void read_if_none_writes(void)
{
    bool barred = fl_rw_word(waitq) & FL_RW_BARRED;
    if (fl_rw_try(waitq, FL_RW_READ, 0)) {
        MODEL_CHECK(!barred || first_is_done);
        fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
    }
}

static void end_reading(void)
{
    fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
}

static const model_scenario scenarios[] = {
    {"place-3-permits", 2, 1, IMPATIENT, begin_permits, end_permits, {take_two, take_four, release_the_rest}},
    {"place-3-permits-fair", 2, 1, PATIENT, begin_fair_permits, end_permits,
     {take_two, take_four, release_the_rest}},
    {"place-2-pulse", 3, 1, PATIENT, begin_pulse, end, {wait_for_the_pulse, set_for_good}},
    {"place-2-pulse-other", 3, 1, PATIENT, begin_pulse_of_another, end,
     {wait_for_the_pulse, pulse_if_waited_for}},
    {"place-3-fair", 2, 1, PATIENT, begin_fair, end, {take_first, take_second, release_it}},
    {"place-3-writer", 2, 1, PATIENT, begin_readers, end, {write_first, read_if_none_writes, end_reading}},
};

const model_table place_scenarios = MODEL_TABLE(scenarios);
