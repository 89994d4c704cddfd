/* Readers and writers: every order of coming in, going on to write, going back to read, and giving up. */
#include "sync/locks/rwlock.h"
#include "scenarios.h"

#include <string.h>

/* The holders, and how many phases of writing have begun. */
static uint32_t reading, writing, phases;
static bool upgradable;

static void begin_rw(void)
{
    memset(frames, 0, sizeof frames);
    reading = writing = phases = 0;
    upgradable = false;
    wakeup = 0;
    waitq = fl_rw_new();
    mailbox = fl_mailbox_new();
}

static void end_rw(void)
{
    model_end_poison();
    MODEL_CHECK(reading == 0 && writing == 0 && !upgradable);
    MODEL_CHECK(waitq->word == 0 && waitq->owner == 0);
    MODEL_CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0 && waitq->lock == 0);
    if (model_mailbox_is_empty() && !mailbox->closed) {
        fl_mailbox_close(mailbox);
    }
    MODEL_CHECK(waitq->refs == 1 && mailbox->refs == 1 && model_mailbox_is_empty());
    fl_waitq_unref(waitq);
    fl_mailbox_unref(mailbox);
}

static void inside_as(fl_rw_mode mode)
{
    if (mode == FL_RW_READ) {
        reading++;
    } else if (mode == FL_RW_UPGRADE) {
        MODEL_CHECK(!upgradable);
        upgradable = true;
    } else {
        writing++;
        phases++;
    }
    MODEL_CHECK(writing <= 1 && (writing == 0 || (reading == 0 && !upgradable)));
}

static void lower_to(fl_rw_mode from, fl_rw_mode to)
{
    reading = reading + (to == FL_RW_READ) - (from == FL_RW_READ);
    upgradable = to == FL_RW_UPGRADE || (upgradable && from != FL_RW_UPGRADE);
    writing -= from == FL_RW_WRITE;
    fl_rw_lower(waitq, from, to);
}

static bool come_in(fl_rw_mode mode, int64_t deadline)
{
    if (!fl_rw_try(waitq, mode, fl_owner_thread()) &&
        model_wait_at(waitq, mode, deadline) != FL_WAIT_GRANTED) {
        return false;
    }
    inside_as(mode);
    return true;
}

static void use(fl_rw_mode mode, int64_t deadline)
{
    if (come_in(mode, deadline)) {
        lower_to(mode, FL_RW_NONE);
    }
}

static void read_once(void)
{
    use(FL_RW_READ, FL_FOREVER);
}

static void write_once(void)
{
    use(FL_RW_WRITE, FL_FOREVER);
}

static void write_within_a_time(void)
{
    use(FL_RW_WRITE, 1);
}

static void write_twice(void)
{
    write_once();
    write_once();
}

static void read_and_write(void)
{
    read_once();
    write_once();
}

static void read_within_a_time(void)
{
    use(FL_RW_READ, 1);
}

/* Once it is queued, one phase of writing at most begins before it is inside. */
static void read_after_one_phase(void)
{
    fl_waiter waiter;
    fl_waiter_init(&waiter, waitq, FL_RW_READ, FL_HOLDER(fl_owner_thread()));
    if (!fl_waitq_enter(&waiter)) {
        uint32_t before = phases;
        MODEL_CHECK(fl_waitq_wait(&waiter, FL_FOREVER, FL_FOREVER) == FL_WAIT_GRANTED);
        MODEL_CHECK(phases - before <= 1);
    }
    inside_as(FL_RW_READ);
    lower_to(FL_RW_READ, FL_RW_NONE);
}

/* No other writes between its reading and its writing, nor as it goes back. */
static void upgrade(int64_t deadline)
{
    MODEL_CHECK(come_in(FL_RW_UPGRADE, FL_FOREVER));
    uint32_t before = phases;
    if (fl_rw_try(waitq, FL_RW_RAISE, fl_owner_thread()) ||
        model_wait_at(waitq, FL_RW_RAISE, deadline) == FL_WAIT_GRANTED) {
        MODEL_CHECK(phases == before);
        upgradable = false;
        inside_as(FL_RW_WRITE);
        lower_to(FL_RW_WRITE, FL_RW_UPGRADE);
        MODEL_CHECK(phases == before + 1);
    }
    lower_to(FL_RW_UPGRADE, FL_RW_NONE);
}

static void upgrade_once(void)
{
    upgrade(FL_FOREVER);
}

static void upgrade_within_a_time(void)
{
    upgrade(1);
}

static void write_then_read(void)
{
    if (come_in(FL_RW_WRITE, FL_FOREVER)) {
        uint32_t before = phases;
        lower_to(FL_RW_WRITE, FL_RW_READ);
        fl_model_point();
        MODEL_CHECK(phases == before);
        lower_to(FL_RW_READ, FL_RW_NONE);
    }
}

static void loop_that_reads(void)
{
    if (model_run_loop(waitq, true, NULL)) { /* which wants 1: to read */
        inside_as(FL_RW_READ);
        lower_to(FL_RW_READ, FL_RW_NONE);
    }
}

static const model_scenario scenarios[] = {
    {"rw-2-timed", 3, 1, PATIENT, begin_rw, end_rw, {read_and_write, write_within_a_time}},
    {"rw-2-upgrade", 3, 1, PATIENT, begin_rw, end_rw, {upgrade_once, read_and_write}},
    {"rw-3", 3, 0, PATIENT, begin_rw, end_rw, {read_once, read_once, write_once}},
    {"rw-3-timed", 3, 0, PATIENT, begin_rw, end_rw, {read_within_a_time, read_once, write_within_a_time}},
    {"rw-3-phases", 3, 0, PATIENT, begin_rw, end_rw, {read_after_one_phase, write_twice, write_twice}},
    {"rw-3-upgrade", 3, 0, PATIENT, begin_rw, end_rw, {upgrade_within_a_time, read_once, write_once}},
    {"rw-3-upgraders", 3, 0, PATIENT, begin_rw, end_rw, {upgrade_once, upgrade_once, read_once}},
    {"rw-3-downgrade", 3, 0, PATIENT, begin_rw, end_rw, {write_then_read, read_once, write_once}},
    {"rw-3-task", 2, 1, PATIENT, begin_rw, end_rw, {loop_that_reads, read_once, write_once}},
};

const model_table rw_scenarios = MODEL_TABLE(scenarios);
