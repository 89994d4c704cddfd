/* Every order of what 2 and 3 threads do to a semaphore, a lock, an event, a mailbox and a queue, up to a
 * bound.
 *
 *     test_model                       all scenarios
 *     test_model SCENARIO              one
 *     test_model PART of PARTS         every so many-th of them, from the PART-th on: for so many cores
 *     test_model SCENARIO SCHEDULE     one execution again, as a failure printed it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "sync/coordination/event.h"
#include "scenarios.h"

static void use(uint32_t wanted, int64_t deadline)
{
    if (fl_sem_try(waitq, wanted, fl_owner_thread()) || model_wait_for(wanted, deadline)) {
        model_took(wanted);
        model_give(wanted);
    }
}

static void lock_and_unlock(void)
{
    use(1, FL_FOREVER);
}

static void lock_within_a_time(void)
{
    use(1, 1);
}

static void try_lock(void)
{
    if (fl_sem_try(waitq, 1, fl_owner_thread())) {
        model_took(1);
        model_give(1);
    }
}

static void take_two(void)
{
    use(2, FL_FOREVER);
}

static void take_two_within_a_time(void)
{
    use(2, 1);
}

/* Two uses in a row: the second may pass the waiters. */
static void lock_twice(void)
{
    use(1, FL_FOREVER);
    use(1, FL_FOREVER);
}

static void lock_in_a_loop(bool close_when_interrupted)
{
    if (model_run_loop(waitq, close_when_interrupted, NULL)) {
        model_took(1);
        model_give(1);
    }
}

static void loop_with_a_task(void)
{
    lock_in_a_loop(false);
}

static void loop_that_closes(void)
{
    lock_in_a_loop(true);
}

static void begin_lock(void)
{
    model_begin(1, FL_WAITQ_OWNED);
}

static void begin_fair_lock(void)
{
    model_begin(1, FL_WAITQ_OWNED | FL_WAITQ_FAIR);
}

static void begin_two_permits(void)
{
    model_begin(2, 0);
}

/* An event: all that wait when it is set wake, even if it is cleared at once. */
static bool set_done;

static void begin_event(void)
{
    memset(frames, 0, sizeof frames);
    set_done = false;
    waitq = fl_flag_new();
}

static void wait_for_flag(void)
{
    MODEL_CHECK(fl_flag_is_set(waitq) || model_wait_for(0, FL_FOREVER));
    MODEL_CHECK(set_done);
}

static void wait_for_flag_within_a_time(void)
{
    MODEL_CHECK(!(fl_flag_is_set(waitq) || model_wait_for(0, 1)) || set_done);
}

static void set_flag(void)
{
    set_done = true;
    fl_flag_set(waitq);
}

/* A count: the waiters wake when it reaches zero, even if it rises at once. */
static void begin_count(void)
{
    begin_event();
    set_done = true;
    fl_count_up(waitq, 1);
}

static void count_down(void)
{
    MODEL_CHECK(fl_count_down(waitq, 1));
}

static void count_down_up_and_down(void)
{
    count_down();
    MODEL_CHECK(fl_count_up(waitq, 1));
    count_down();
}

/* A waiter that was queued (`waiting`) when the count reached zero is woken; a later one waits for the next
   zero. */
static bool queued;

static void count_down_once(void)
{
    queued = fl_waitq_waiting(waitq) == 1;
    set_done = true;
    count_down();
}

static void count_up_again(void)
{
    if (fl_flag_is_set(waitq)) {
        MODEL_CHECK(fl_count_up(waitq, 1));
        if (!queued) {
            count_down();
        }
    }
}

static void end_event(void)
{
    model_end_poison();
    MODEL_CHECK(waitq->word == 0 && waitq->head == NULL && waitq->waiting == 0 && waitq->lock == 0);
    fl_waitq_unref(waitq);
}

static void end_count(void)
{
    if (!fl_flag_is_set(waitq)) {
        count_down();
    }
    end_event();
}

static const model_scenario scenarios[] = {
    {"event-3-together", 3, 0, PATIENT, begin_event, end_event, {wait_for_flag, wait_for_flag, set_flag}},
    {"event-3-together-timed", 3, 1, PATIENT, begin_event, end_event,
     {wait_for_flag, wait_for_flag_within_a_time, set_flag}},
    {"lock-2", 3, 0, PATIENT, begin_lock, model_end, {lock_twice, lock_twice}},
    {"lock-2-overdue", 3, 0, IMPATIENT, begin_lock, model_end, {lock_twice, lock_twice}},
    {"lock-2-fair", 3, 0, PATIENT, begin_fair_lock, model_end, {lock_twice, lock_twice}},
    {"lock-2-timed", 3, 0, PATIENT, begin_lock, model_end, {lock_within_a_time, lock_twice}},
    {"lock-2-timed-overdue", 3, 0, IMPATIENT, begin_lock, model_end, {lock_within_a_time, lock_twice}},
    {"lock-2-signal", 3, 2, PATIENT, begin_lock, model_end, {lock_and_unlock, lock_twice}},
    {"lock-2-signal-overdue", 3, 2, IMPATIENT, begin_lock, model_end, {lock_and_unlock, lock_twice}},
    {"lock-3", 3, 0, PATIENT, begin_lock, model_end, {lock_and_unlock, lock_and_unlock, lock_and_unlock}},
    {"lock-3-timed", 3, 0, PATIENT, begin_lock, model_end,
     {lock_and_unlock, lock_within_a_time, lock_and_unlock}},
    {"lock-3-overdue", 3, 0, IMPATIENT, begin_lock, model_end,
     {lock_and_unlock, lock_within_a_time, lock_and_unlock}},
    {"lock-3-try", 3, 1, PATIENT, begin_lock, model_end, {lock_and_unlock, try_lock, lock_and_unlock}},
    {"lock-3-fair", 3, 0, PATIENT, begin_fair_lock, model_end,
     {lock_and_unlock, lock_within_a_time, try_lock}},
    {"permits-2", 3, 1, PATIENT, begin_two_permits, model_end, {take_two_within_a_time, lock_twice}},
    {"permits-3", 3, 0, PATIENT, begin_two_permits, model_end, {take_two, lock_and_unlock, lock_and_unlock}},
    {"permits-3-overdue", 3, 0, IMPATIENT, begin_two_permits, model_end,
     {take_two_within_a_time, lock_and_unlock, lock_and_unlock}},
    {"task-2", 3, 1, PATIENT, begin_lock, model_end, {loop_with_a_task, lock_twice}},
    {"task-2-overdue", 3, 1, IMPATIENT, begin_lock, model_end, {loop_with_a_task, lock_twice}},
    {"task-2-closes", 3, 1, PATIENT, begin_lock, model_end, {loop_that_closes, lock_and_unlock}},
    {"task-2-closes-overdue", 3, 1, IMPATIENT, begin_lock, model_end, {loop_that_closes, lock_twice}},
    {"task-3", 3, 1, PATIENT, begin_lock, model_end, {loop_that_closes, lock_and_unlock, lock_and_unlock}},
    {"count-3", 3, 0, PATIENT, begin_count, end_event, {wait_for_flag, count_down, count_down}},
    {"count-3-up", 3, 0, PATIENT, begin_count, end_event,
     {wait_for_flag_within_a_time, count_down, count_down_up_and_down}},
    {"count-3-again", 3, 0, PATIENT, begin_event, end_count,
     {wait_for_flag, count_down_once, count_up_again}},
    {"event-3", 3, 0, PATIENT, begin_event, end_event,
     {wait_for_flag, wait_for_flag_within_a_time, set_flag}},
};

/* Of all tables, in order; NULL: there are no more. */
static const model_scenario *scenario_at(size_t index)
{
#define MODEL_TABLE_ENTRY(table) table,
    const model_table tables[] = {MODEL_TABLE(scenarios), MODEL_TABLES(MODEL_TABLE_ENTRY)};
#undef MODEL_TABLE_ENTRY
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (index < tables[i].count) {
            return &tables[i].at[index];
        }
        index -= tables[i].count;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    bool found = false, in_parts = argc == 4;
    size_t index = in_parts ? strtoul(argv[1], NULL, 10) : 0;
    size_t parts = in_parts ? strtoul(argv[3], NULL, 10) : 1;
    CHECK(parts > 0);
    for (const model_scenario *one; (one = scenario_at(index)) != NULL; index += parts) {
        if (argc > 1 && !in_parts && strcmp(argv[1], one->name) != 0) {
            continue;
        }
        model_result result = argc == 3 ? model_replay(one, argv[2]) : model_explore(one);
        printf("%-22s %d pre-emptions: %9llu executions of up to %u steps\n", one->name, one->preemptions,
               (unsigned long long)result.executions, result.longest);
        if (result.failure == NULL) {
            continue;
        }
        found = true;
        printf("NOT TRUE: %s\nagain: test_model %s %s\n", result.failure, one->name, result.schedule);
        break;
    }
    return found;
}
