/* Reading without a lock, and judging it afterwards; going from one way of holding the lock to another. */
#include "sync/locks/stamped.h"
#include "scenarios.h"

#include <string.h>

static uint32_t one, other; /* the same, whenever there is no writer */
static uint32_t reading, writing;

static void begin_stamped(void)
{
    memset(frames, 0, sizeof frames);
    one = other = reading = writing = 0;
    waitq = fl_stamped_new();
}

static void end_stamped(void)
{
    model_end_poison();
    MODEL_CHECK(reading == 0 && writing == 0 && one == other);
    MODEL_CHECK(waitq->word == 0 && waitq->owner == 0 && !(*fl_stamped_version(waitq) & 1));
    MODEL_CHECK(waitq->head == NULL && waitq->waiting == 0 && waitq->lock == 0 && waitq->refs == 1);
    fl_waitq_unref(waitq);
}

static bool come_in(fl_rw_mode mode, int64_t deadline)
{
    return fl_rw_try(waitq, mode, fl_owner_thread()) ||
           model_wait_at(waitq, mode, deadline) == FL_WAIT_GRANTED;
}

/* Has the lock to write. */
static void change_both(void)
{
    writing++;
    MODEL_CHECK(writing == 1 && reading == 0);
    fl_stamped_begin(waitq);
    fl_store(&one, one + 1, relaxed);
    fl_store(&other, other + 1, relaxed);
    fl_stamped_end(waitq);
    writing--;
}

static void write_once(void)
{
    MODEL_CHECK(come_in(FL_RW_WRITE, FL_FOREVER));
    change_both();
    fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
}

static void write_within_a_time(void)
{
    if (come_in(FL_RW_WRITE, 1)) {
        change_both();
        fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
    }
}

/* The even version that was read with both; odd: they may not belong together. */
static uint64_t look(uint32_t *seen)
{
    uint64_t version = fl_stamped_look(waitq);
    *seen = fl_load(&one, relaxed);
    uint32_t second = fl_load(&other, relaxed);
    bool whole = !(version & 1) && fl_stamped_same(waitq, version);
    MODEL_CHECK(!whole || *seen == second);
    return whole ? version : 1;
}

static void look_once(void)
{
    uint32_t seen;
    look(&seen);
}

/* As an optimistic reader that converts to a writer if nothing has changed. */
static void look_and_write(void)
{
    uint32_t seen;
    uint64_t version = look(&seen);
    if (!(version & 1) && fl_rw_try(waitq, FL_RW_WRITE, fl_owner_thread())) {
        MODEL_CHECK(!fl_stamped_same(waitq, version) || one == seen);
        change_both();
        fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
    }
}

/* As a reader that converts to a writer if it is the only one. */
static void read_and_write(void)
{
    if (!come_in(FL_RW_READ, FL_FOREVER)) {
        return;
    }
    reading++;
    uint32_t seen = fl_load(&one, relaxed);
    MODEL_CHECK(writing == 0);
    if (fl_rw_raise_alone(waitq, fl_owner_thread())) {
        reading--;
        MODEL_CHECK(one == seen);
        change_both();
        fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
    } else {
        reading--;
        fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
    }
}

static const model_scenario scenarios[] = {
    {"stamped-2", 3, 0, PATIENT, begin_stamped, end_stamped, {look_once, write_once}},
    {"stamped-3", 2, 0, PATIENT, begin_stamped, end_stamped, {look_and_write, write_once, look_once}},
    {"stamped-3-alone", 2, 0, PATIENT, begin_stamped, end_stamped,
     {read_and_write, read_and_write, write_within_a_time}},
};

const model_table stamped_scenarios = MODEL_TABLE(scenarios);
