/* Every order of what 2 and 3 threads do to a semaphore, a lock, an event and a port, within a bound.
 *
 *     test_model                       all scenarios
 *     test_model SCENARIO SCHEDULE     one execution again, as a failure printed it
 *
 * Built with FL_MODEL_BREAK, which puts a fault into the core, it succeeds when the fault is found and its
 * schedule finds it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/event.h"
#include "core/port.h"
#include "core/semaphore.h"
#include "model.h"

#define POISON 0xdd

static fl_cell *cell;
static uint32_t permits, held;

/* A thread's waiter is gone when the wait is over; who touches it afterwards spoils the poison. */
static struct {
    fl_waiter waiter;
    bool used;
} frames[MODEL_THREADS][4];

static void poison(fl_waiter *waiter)
{
    memset(waiter, POISON, sizeof *waiter);
}

static void took(uint32_t wanted)
{
    held += wanted;
    MODEL_CHECK(held <= permits);
}

static void give(uint32_t count)
{
    held -= count;
    MODEL_CHECK(fl_sem_give(cell, count) == FL_SEM_OK);
}

static bool wait_for(uint32_t wanted, int64_t deadline)
{
    int frame = 0;
    while (frames[model_self()][frame].used) {
        frame++;
    }
    frames[model_self()][frame].used = true;
    fl_waiter *waiter = &frames[model_self()][frame].waiter;
    fl_waiter_init(waiter, cell, wanted, fl_owner_thread());
    bool taken = true;
    while (!fl_cell_enter(waiter)) {
        fl_wait_result result = fl_cell_wait(waiter, deadline);
        if (result != FL_WAIT_INTERRUPTED) {
            taken = result == FL_WAIT_GRANTED;
            break;
        }
    }
    poison(waiter);
    return taken;
}

static void use(uint32_t wanted, int64_t deadline)
{
    if (fl_sem_try(cell, wanted, fl_owner_thread()) || wait_for(wanted, deadline)) {
        took(wanted);
        give(wanted);
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
    if (fl_sem_try(cell, 1, fl_owner_thread())) {
        took(1);
        give(1);
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

/* Two uses in a row: the second may pass those who wait. */
static void lock_twice(void)
{
    use(1, FL_FOREVER);
    use(1, FL_FOREVER);
}

/* An event loop with one task that waits, is cancelled by a signal, and closes its port when it is done. */
static fl_port *port;
static uint32_t bell;

int fl_bell_open(int *which)
{
    return *which = 0;
}

void fl_bell_close(int poll, int which)
{
    (void)poll, (void)which;
}

void fl_bell_ring(int which)
{
    (void)which;
    fl_store(&bell, 1, release); /* pairs with fl_bell_clear */
    fl_unpark(&bell);
}

void fl_bell_clear(int poll)
{
    (void)poll;
    fl_store(&bell, 0, acquire); /* pairs with fl_bell_ring */
}

static void run_loop(bool close_when_interrupted)
{
    fl_waiter *waiter = fl_port_waiter(port, cell, 1, fl_owner_task());
    MODEL_CHECK(waiter != NULL);
    bool taken = fl_cell_enter(waiter), closed = false;
    while (!taken) {
        if (fl_park(&bell, 0, FL_FOREVER) == FL_PARK_INTERRUPTED) {
            if (close_when_interrupted) {
                fl_port_close(port);
                closed = true;
                MODEL_CHECK(!fl_waiter_abandon(waiter, FL_CANCELLED));
            } else {
                MODEL_CHECK(fl_waiter_abandon(waiter, FL_CANCELLED));
            }
            break;
        }
        fl_waiter *posted = fl_port_drain(port);
        while (posted != NULL) {
            fl_waiter *next = posted->ready;
            fl_port_seen(posted);
            if (fl_load(&posted->state, acquire) == FL_NUDGED) {
                fl_cell_retry(posted);
            }
            fl_waiter_unref(posted);
            posted = next;
        }
        uint32_t state = FL_GRANTED;
        taken = fl_cas(&waiter->state, &state, FL_TAKEN, acq_rel, acquire);
    }
    fl_port_forget(waiter);
    if (taken) {
        took(1);
        give(1);
    }
    if (!closed) {
        fl_port_close(port);
    }
}

static void loop_with_a_task(void)
{
    run_loop(false);
}

static void loop_that_closes(void)
{
    run_loop(true);
}

static void begin(uint32_t value, uint32_t flags)
{
    memset(frames, 0, sizeof frames);
    held = 0;
    bell = 0;
    permits = value;
    cell = fl_sem_new(value, value, flags);
    port = fl_port_new();
}

static void begin_lock(void)
{
    begin(1, FL_CELL_OWNED);
}

static void begin_fair_lock(void)
{
    begin(1, FL_CELL_OWNED | FL_CELL_FAIR);
}

static void begin_two_permits(void)
{
    begin(2, 0);
}

static void end_poison(void)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        for (int frame = 0; frames[thread][frame].used; frame++) {
            for (size_t i = 0; i < sizeof(fl_waiter); i++) {
                MODEL_CHECK(((unsigned char *)&frames[thread][frame].waiter)[i] == POISON);
            }
        }
    }
}

static void end(void)
{
    end_poison();
    MODEL_CHECK(held == 0);
    MODEL_CHECK(cell->word == permits);
    MODEL_CHECK(cell->head == NULL && cell->tail == NULL && cell->waiting == 0 && cell->lock == 0);
    MODEL_CHECK(cell->owner == 0);
    MODEL_CHECK(cell->refs == 1 && port->refs == 1 && port->all == NULL); /* no waiter is left */
    fl_cell_unref(cell);
    fl_port_unref(port);
}

/* An event: all who wait when it is set wake, though it is cleared at once. */
static bool set_done;

static void begin_event(void)
{
    memset(frames, 0, sizeof frames);
    set_done = false;
    cell = fl_flag_new();
}

static void wait_for_flag(void)
{
    MODEL_CHECK(fl_flag_is_set(cell) || wait_for(0, FL_FOREVER));
    MODEL_CHECK(set_done);
}

static void wait_for_flag_within_a_time(void)
{
    MODEL_CHECK(!(fl_flag_is_set(cell) || wait_for(0, 1)) || set_done);
}

static void set_flag(void)
{
    set_done = true;
    fl_flag_set(cell);
}

static void end_event(void)
{
    end_poison();
    MODEL_CHECK(cell->word == 1 && cell->head == NULL && cell->waiting == 0 && cell->lock == 0);
    fl_cell_unref(cell);
}

#define PATIENT 1           /* nobody waits long enough to be served first */
#define IMPATIENT 100000000 /* everybody does */

static const model_scenario scenarios[] = {
    {"lock-2", 3, 0, PATIENT, begin_lock, end, {lock_twice, lock_twice}},
    {"lock-2-overdue", 3, 0, IMPATIENT, begin_lock, end, {lock_twice, lock_twice}},
    {"lock-2-fair", 3, 0, PATIENT, begin_fair_lock, end, {lock_twice, lock_twice}},
    {"lock-2-timed", 3, 0, PATIENT, begin_lock, end, {lock_within_a_time, lock_twice}},
    {"lock-2-timed-overdue", 3, 0, IMPATIENT, begin_lock, end, {lock_within_a_time, lock_twice}},
    {"lock-2-signal", 3, 2, PATIENT, begin_lock, end, {lock_and_unlock, lock_twice}},
    {"lock-2-signal-overdue", 3, 2, IMPATIENT, begin_lock, end, {lock_and_unlock, lock_twice}},
    {"lock-3", 3, 0, PATIENT, begin_lock, end, {lock_and_unlock, lock_and_unlock, lock_and_unlock}},
    {"lock-3-timed", 3, 0, PATIENT, begin_lock, end, {lock_and_unlock, lock_within_a_time, lock_and_unlock}},
    {"lock-3-overdue", 3, 0, IMPATIENT, begin_lock, end,
     {lock_and_unlock, lock_within_a_time, lock_and_unlock}},
    {"lock-3-try", 3, 1, PATIENT, begin_lock, end, {lock_and_unlock, try_lock, lock_and_unlock}},
    {"lock-3-fair", 3, 0, PATIENT, begin_fair_lock, end, {lock_and_unlock, lock_within_a_time, try_lock}},
    {"permits-2", 3, 1, PATIENT, begin_two_permits, end, {take_two_within_a_time, lock_twice}},
    {"permits-3", 3, 0, PATIENT, begin_two_permits, end, {take_two, lock_and_unlock, lock_and_unlock}},
    {"permits-3-overdue", 3, 0, IMPATIENT, begin_two_permits, end,
     {take_two_within_a_time, lock_and_unlock, lock_and_unlock}},
    {"task-2", 3, 1, PATIENT, begin_lock, end, {loop_with_a_task, lock_twice}},
    {"task-2-overdue", 3, 1, IMPATIENT, begin_lock, end, {loop_with_a_task, lock_twice}},
    {"task-2-closes", 3, 1, PATIENT, begin_lock, end, {loop_that_closes, lock_and_unlock}},
    {"task-2-closes-overdue", 3, 1, IMPATIENT, begin_lock, end, {loop_that_closes, lock_twice}},
    {"task-3", 3, 1, PATIENT, begin_lock, end, {loop_that_closes, lock_and_unlock, lock_and_unlock}},
    {"event-3", 3, 0, PATIENT, begin_event, end_event,
     {wait_for_flag, wait_for_flag_within_a_time, set_flag}},
};

static const char *const broken_as[] = {
    "not at all",
    "who queues does not look again whether there is something to take",
    "who leaves does not pass on the nudge that it had",
    "a waiter is written to after it was granted",
};

int main(int argc, char **argv)
{
    bool found = false;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const model_scenario *one = &scenarios[i];
        if (argc > 1 && strcmp(argv[1], one->name) != 0) {
            continue;
        }
        model_result result = argc > 2 ? model_replay(one, argv[2]) : model_explore(one);
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
