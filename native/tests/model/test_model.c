/* Every order of what 2 and 3 threads do to a semaphore, a lock, an event, a mailbox and a queue, up to a
 * bound.
 *
 *     test_model                       all scenarios
 *     test_model SCENARIO              one
 *     test_model PART of PARTS         every so many-th of them, from the PART-th on: for so many cores
 *     test_model SCENARIO SCHEDULE     one execution again, as a failure printed it
 *
 * Built with FL_MODEL_BREAK, which puts a fault into the core, it succeeds when the fault is found and its
 * schedule finds it again.
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

static const char *const broken_as[] = {
    "not at all",
    "a waiter that has queued does not check again whether there is something to take",
    "a waiter that leaves does not pass on the wake-up that it had",
    "a waiter is written to after it was granted",
    "a woken waiter that finds nothing in a closed queue goes on waiting",
    "released permits pay no debt",
    "the holder of a combining lock releases it without a second check for queued waiters",
    "a thread that is woken for a group wakes none of the others",
    "a condition's waiter that is cancelled keeps its notification",
    "a waiter sleeps on if the count that reached zero rises at once",
    "a waiter that leaves a barrier does not break it",
    [13] = "a writer that ends lets the next writer in before the waiting readers",
    [31] = "an ending thread looks for its waiters before it is unregistered",
    [30] = "a parked thread goes on while another reads its record",
    [16] = "a select is granted a second case, too",
    [15] = "a broadcast wakes one of its waiters only",
    [17] = "unused time of a rate accumulates without bound",
    [18] = "a waiter that leaves does not notify the next one that it is due earlier",
    [19] = "an unused permit of a rate is returned although others were granted one since",
    [42] = "a stripe is moved while another thread takes the sum",
    [43] = "taking the sum overwrites what is added meanwhile",
    [40] = "a writer begins without invalidating optimistic reads",
    [41] = "one of several readers converts to a writer",
    [45] = "a forked child takes a waiter out of a queue that is its parent's",
    [46] = "a handler that raises while a task is notified costs its wake-up",
    [48] = "a notified waiter that has the lock does not wake the next notified one",
    [47] = "a waiter that leaves after a signal stays in the queue",
    [49] = "a woken select that was removed after committing to another case is removed again",
    [14] = "a writer that gives up leaves the readers barred",
    [20] = "a party that meets one that has left keeps its item",
    [21] = "an item that a receiver returns stays although another waits for it",
    [22] = "a party that comes after all have arrived counts for that phase",
    [23] = "a waiter for the end of a phase does not check whether it has ended",
    [24] = "an arriving select meets a partner before it has committed",
    [25] = "a select that commits does not wait for the outcome of its own meeting",
    [26] = "a select meets itself",
    [27] = "a newcomer meets none when the first in the queue is of its own side",
    [28] = "a select that was woken while it was claimed is not re-checked",
    [29] = "a select runs code that may raise before it has left the queues whose grant it could not return",
};

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
        char *schedule = strdup(result.schedule);
        printf("NOT TRUE: %s\nagain: test_model %s %s\n", result.failure, one->name, schedule);
        const char *failure = result.failure;
        if (FL_MODEL_BREAK) {
            result = model_replay(one, schedule);
            CHECK(result.failure != NULL && strcmp(result.failure, failure) == 0);
        }
        free(schedule);
        break;
    }
    if (FL_MODEL_BREAK && !found) {
        printf("broken on purpose (%s), and not found\n", broken_as[FL_MODEL_BREAK]);
    }
    return found != (FL_MODEL_BREAK != 0);
}
