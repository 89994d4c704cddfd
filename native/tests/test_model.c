/* Every order of what 2 and 3 threads do to a semaphore, a lock, an event, a port and a queue, up to a bound.
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
#include "core/barrier.h"
#include "core/combine.h"
#include "core/event.h"
#include "core/notices.h"
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

static fl_wait_result wait_at(fl_cell *here, uint32_t wanted, int64_t deadline)
{
    int frame = 0;
    while (frames[model_self()][frame].used) {
        frame++;
    }
    frames[model_self()][frame].used = true;
    fl_waiter *waiter = &frames[model_self()][frame].waiter;
    fl_waiter_init(waiter, here, wanted, fl_owner_thread());
    fl_wait_result result = FL_WAIT_INTERRUPTED;
    while (result == FL_WAIT_INTERRUPTED) {
        result = fl_cell_enter(waiter) ? FL_WAIT_GRANTED : fl_cell_wait(waiter, deadline);
    }
    poison(waiter);
    return result;
}

static bool wait_for(uint32_t wanted, int64_t deadline)
{
    return wait_at(cell, wanted, deadline) == FL_WAIT_GRANTED;
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

/* Whether the task took one permit; `refused`, if not NULL, whether the cell was closed. */
static bool run_loop(fl_cell *here, bool close_when_interrupted, bool *refused)
{
    fl_waiter *waiter = fl_port_waiter(port, here, 1, fl_owner_task());
    MODEL_CHECK(waiter != NULL);
    bool taken = fl_cell_enter(waiter), closed = false;
    while (!taken) {
        if (fl_load(&waiter->state, acquire) == FL_REFUSED) {
            MODEL_CHECK(refused != NULL);
            *refused = true;
            break;
        }
        if (fl_park(&bell, 0, FL_FOREVER) == FL_PARK_INTERRUPTED) {
            if (close_when_interrupted) {
                fl_port_close(port);
                closed = true;
                MODEL_CHECK(!fl_waiter_abandon(waiter, FL_CANCELLED));
            } else if (!fl_waiter_abandon(waiter, FL_CANCELLED)) {
                MODEL_CHECK(refused != NULL && waiter->state == FL_REFUSED);
                *refused = true;
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
    if (!closed) {
        fl_port_close(port);
    }
    return taken;
}

static void lock_in_a_loop(bool close_when_interrupted)
{
    if (run_loop(cell, close_when_interrupted, NULL)) {
        took(1);
        give(1);
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

/* A gate: who is woken wakes the next. */
static void begin_gate(void)
{
    begin_event();
    fl_cell_unref(cell);
    cell = fl_gate_new();
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

/* A count: who waits when it comes to nothing wakes, though it goes up at once. */
static void begin_count(void)
{
    begin_event();
    set_done = true;
    fl_count_up(cell, 1);
}

static void count_down(void)
{
    MODEL_CHECK(fl_count_down(cell, 1));
}

static void count_down_up_and_down(void)
{
    count_down();
    MODEL_CHECK(fl_count_up(cell, 1));
    count_down();
}

/* Who was queued, as `waiting` says, when it came to nothing is woken; who was not waits for the next. */
static bool queued;

static void count_down_once(void)
{
    queued = fl_cell_waiting(cell) == 1;
    set_done = true;
    count_down();
}

static void count_up_again(void)
{
    if (fl_flag_is_set(cell)) {
        MODEL_CHECK(fl_count_up(cell, 1));
        if (!queued) {
            count_down();
        }
    }
}

static void end_event(void)
{
    end_poison();
    MODEL_CHECK(cell->word == 0 && cell->head == NULL && cell->waiting == 0 && cell->lock == 0);
    fl_cell_unref(cell);
}

static void end_count(void)
{
    if (!fl_flag_is_set(cell)) {
        count_down();
    }
    end_event();
}

/* A queue as bind/queue.c has it: a cell of slots, a cell of objects, and between them a shelf that one
   thread at a time touches, which also gives the right to what it puts there. */
static fl_cell *slots;
static fl_mutex desk;
static uint32_t most, shelf, put, got, thrown_away;
static bool shut, some_refused, some_left;

static void begin_queue(uint32_t value, uint32_t flags)
{
    begin(0, flags);
    fl_cell_unref(cell);
    cell = fl_sem_new(0, FL_SEM_MOST, flags);
    slots = fl_sem_new(value, FL_SEM_MOST, flags);
    desk = 0;
    most = value;
    shelf = put = got = thrown_away = 0;
    shut = some_refused = some_left = false;
}

static void begin_queue_of_one(void)
{
    begin_queue(1, 0);
}

static void begin_fair_queue_of_one(void)
{
    begin_queue(1, FL_CELL_FAIR);
}

static void begin_queue_of_two(void)
{
    begin_queue(2, 0);
}

/* With the right to a slot. */
static void put_down(void)
{
    fl_mutex_lock(&desk);
    bool late = shut;
    if (!late) {
        shelf++;
        put++;
        MODEL_CHECK(fl_sem_give(cell, 1) == FL_SEM_OK);
    }
    fl_mutex_unlock(&desk);
    if (late) {
        MODEL_CHECK(fl_sem_give(slots, 1) == FL_SEM_OK);
    }
}

/* With the right to an object. */
static void take_up(void)
{
    fl_mutex_lock(&desk);
    bool empty = shelf == 0;
    if (!empty) {
        shelf--;
        got++;
    }
    fl_mutex_unlock(&desk);
    MODEL_CHECK(!empty || thrown_away > 0);
    if (!empty) {
        MODEL_CHECK(fl_sem_give(slots, 1) == FL_SEM_OK);
    }
}

static bool right_to(fl_cell *here, int64_t deadline)
{
    fl_wait_result result =
        fl_sem_try(here, 1, fl_owner_thread()) ? FL_WAIT_GRANTED : wait_at(here, 1, deadline);
    MODEL_CHECK(result != FL_WAIT_REFUSED || shut);
    some_refused |= here == cell && result == FL_WAIT_REFUSED;
    some_left |= result == FL_WAIT_TIMED_OUT;
    return result == FL_WAIT_GRANTED;
}

static void put_one(void)
{
    if (right_to(slots, FL_FOREVER)) {
        put_down();
    }
}

static void put_two(void)
{
    put_one();
    put_one();
}

static void put_one_within_a_time(void)
{
    if (right_to(slots, 1)) {
        put_down();
    }
}

static void get_one(void)
{
    if (right_to(cell, FL_FOREVER)) {
        take_up();
    }
}

static void get_two(void)
{
    get_one();
    get_one();
}

static void get_one_within_a_time(void)
{
    if (right_to(cell, 1)) {
        take_up();
    }
}

static void get_in_a_loop(void)
{
    bool refused = false;
    if (run_loop(cell, false, &refused)) {
        take_up();
    } else {
        some_left |= !refused;
    }
    MODEL_CHECK(!refused || shut);
    some_refused |= refused;
}

static void shut_down(bool immediate)
{
    fl_mutex_lock(&desk);
    shut = true;
    if (immediate) {
        thrown_away = shelf;
        shelf = 0;
        fl_sem_withdraw(cell, FL_SEM_MOST);
    }
    fl_sem_close(cell);
    fl_sem_close(slots);
    fl_mutex_unlock(&desk);
    if (immediate && thrown_away > 0) {
        MODEL_CHECK(fl_sem_give(slots, thrown_away) == FL_SEM_OK);
    }
}

static void only_shut_down(void)
{
    shut_down(false);
}

static void put_and_shut_down(void)
{
    put_one();
    shut_down(false);
}

static void put_and_shut_down_at_once(void)
{
    put_one();
    shut_down(true);
}

static void shrink_by_one(void)
{
    most--;
    fl_sem_withdraw(slots, 1);
}

static void end_queue(void)
{
    end_poison();
    MODEL_CHECK(shelf == put - got - thrown_away);
    /* who was sent away with nothing left nothing behind, unless another had it then and gave it back */
    MODEL_CHECK(shelf == 0 || !some_refused || some_left);
    MODEL_CHECK((uint32_t)cell->word == (thrown_away ? 0 : shelf));
    MODEL_CHECK((uint32_t)slots->word + shelf == most + slots->owner);
    MODEL_CHECK((slots->word & FL_SEM_QUEUED) == (slots->owner ? FL_SEM_QUEUED : 0));
    for (int i = 0; i < 2; i++) {
        fl_cell *one = i == 0 ? cell : slots;
        MODEL_CHECK(one->head == NULL && one->tail == NULL && one->waiting == 0 && one->lock == 0);
        MODEL_CHECK(!(one->word & FL_SEM_RESERVED) && one->refs == 1);
        fl_cell_unref(one);
    }
    MODEL_CHECK(port->refs == 1 && port->all == NULL);
    fl_port_unref(port);
}

/* A combining lock: every section that is not cancelled is run once, by one thread at a time, and whoever
   asked for it sees that it was. */
static struct section {
    unsigned runs;
    bool kept, never;
} sections[MODEL_THREADS][2];
static bool running;

static void run_section(struct section *one)
{
    MODEL_CHECK(!running);
    running = true;
    fl_model_point();
    one->runs++;
    running = false;
}

static void keep_section(void *request)
{
    ((struct section *)request)->kept = true;
}

/* Runs what waits, at most one of the others' sections. */
static void lead_sections(void)
{
    fl_waiter *next = fl_combine_next(cell, keep_section);
    if (next == NULL) {
        return;
    }
    struct section *theirs = next->request;
    MODEL_CHECK(theirs->kept);
    run_section(theirs);
    theirs->kept = false;
    fl_combine_done(next);
    fl_combine_pass(cell);
}

static void ask_for_a_section(int which)
{
    struct section *mine = &sections[model_self()][which];
    fl_combine_result result = FL_COMBINE_LEADS;
    if (!fl_combine_try(cell)) {
        frames[model_self()][which].used = true;
        fl_waiter *waiter = &frames[model_self()][which].waiter;
        fl_waiter_init(waiter, cell, 0, 0);
        waiter->request = mine;
        while (!fl_cell_enter(waiter) && (result = fl_combine_wait(waiter)) == FL_COMBINE_INTERRUPTED) {
            MODEL_CHECK(mine->runs == 0);
            result = FL_COMBINE_LEADS;
        }
        poison(waiter);
    }
    if (result == FL_COMBINE_LEADS) {
        fl_combine_lead(cell);
        run_section(mine);
        lead_sections();
    }
    MODEL_CHECK(mine->runs == 1);
}

static void ask_once(void)
{
    ask_for_a_section(0);
}

static void ask_twice(void)
{
    ask_for_a_section(0);
    ask_for_a_section(1);
}

/* A task asks; a signal cancels it, and what is not claimed by then is never run. */
static void ask_from_a_loop(void)
{
    struct section *mine = &sections[model_self()][0];
    fl_waiter *waiter = fl_port_waiter(port, cell, 0, 0);
    MODEL_CHECK(waiter != NULL);
    waiter->request = mine;
    bool leads = fl_cell_enter(waiter), done = false;
    while (!leads && !done) {
        if (fl_park(&bell, 0, FL_FOREVER) == FL_PARK_INTERRUPTED) {
            MODEL_CHECK(fl_waiter_abandon(waiter, FL_CANCELLED));
            break;
        }
        for (fl_waiter *posted = fl_port_drain(port); posted != NULL;) {
            fl_waiter *next = posted->ready;
            fl_port_seen(posted);
            fl_waiter_unref(posted);
            posted = next;
        }
        uint32_t state = FL_GRANTED;
        leads = fl_cas(&waiter->state, &state, FL_TAKEN, acq_rel, acquire);
        done = state == FL_DONE;
    }
    fl_combine_forget(waiter);
    mine->never = !leads && !mine->kept && mine->runs == 0;
    fl_port_forget(waiter);
    if (leads) {
        fl_combine_lead(cell);
        run_section(mine);
        lead_sections();
    }
    MODEL_CHECK(!done || mine->runs == 1);
    fl_port_close(port);
}

static void begin_sections(void)
{
    begin(0, 0);
    fl_cell_unref(cell);
    cell = fl_combine_new();
    memset(sections, 0, sizeof sections);
    running = false;
}

static void end_sections(void)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        MODEL_CHECK(sections[thread][0].runs <= !sections[thread][0].never);
    }
    permits = 0;
    end();
}

/* A condition: notices beside a lock. Who sees the flag passes the notice on, so that one notice for all who
   wait is enough, unless somebody takes it along. */
static fl_cell *notices;
static bool flag;

static void begin_condition(void)
{
    begin(1, FL_CELL_OWNED);
    notices = fl_notices_new();
    flag = false;
}

static void end_condition(void)
{
    MODEL_CHECK(notices->head == NULL && notices->waiting == 0 && notices->lock == 0 && notices->refs == 1);
    fl_cell_unref(notices);
    end();
}

static void take_the_lock(void)
{
    MODEL_CHECK(fl_sem_try(cell, 1, fl_owner_thread()) || wait_for(1, FL_FOREVER));
    took(1);
}

static void wait_for_notice(int64_t deadline)
{
    take_the_lock();
    bool notified = true;
    while (!flag && notified) {
        fl_waiter waiter;
        fl_waiter_init(&waiter, notices, 0, 0);
        fl_cell_enter(&waiter);
        give(1);
        fl_wait_result result = fl_cell_wait_in_place(&waiter, deadline);
        if (result == FL_WAIT_INTERRUPTED) {
            fl_waiter_abandon(&waiter, FL_CANCELLED);
        }
        poison(&waiter);
        take_the_lock();
        notified = result == FL_WAIT_GRANTED;
    }
    if (notified) {
        fl_notices_give(notices, 1);
    }
    give(1);
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
    fl_notices_give(notices, 1);
    give(1);
}

/* A barrier for two or three: whoever passes does so with all the others of that time, or nobody does. */
static uint32_t passed, acting;

static void begin_barrier(uint32_t parties)
{
    memset(frames, 0, sizeof frames);
    passed = acting = 0;
    permits = parties;
    cell = fl_barrier_new(parties);
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
    fl_waiter_init(&waiter, cell, 0, 0);
    fl_wait_result result = FL_WAIT_GRANTED;
    if (!fl_cell_enter(&waiter)) {
        result = fl_cell_wait_in_place(&waiter, deadline);
        if (result == FL_WAIT_INTERRUPTED) {
            fl_waiter_abandon(&waiter, FL_CANCELLED);
        }
    }
    uint32_t outcome = waiter.wanted;
    poison(&waiter);
    bool through = (outcome & FL_BARRIER_THROUGH) != 0;
    if (result == FL_WAIT_GRANTED && (outcome & FL_BARRIER_LAST)) {
        MODEL_CHECK(acting++ == 0);
        fl_model_point();
        acting--;
        through = fl_barrier_trip(cell, outcome);
    }
    MODEL_CHECK(result != FL_WAIT_GRANTED || through || (outcome & FL_BARRIER_LAST));
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
    fl_barrier_reset(cell);
    fl_barrier_break(cell, 0);
}

static void end_barrier(void)
{
    MODEL_CHECK(passed % permits == 0);
    MODEL_CHECK(cell->head == NULL && cell->waiting == 0 && cell->lock == 0 && cell->refs == 1);
    MODEL_CHECK((cell->word & ~FL_BARRIER_BROKEN) == 0);
    fl_cell_unref(cell);
}

#define PATIENT 1           /* nobody waits long enough to be served first */
#define IMPATIENT 100000000 /* everybody does */

static const model_scenario scenarios[] = {
    {"gate-3", 3, 0, PATIENT, begin_gate, end_event, {wait_for_flag, wait_for_flag, set_flag}},
    {"gate-3-timed", 2, 1, PATIENT, begin_gate, end_event,
     {wait_for_flag, wait_for_flag_within_a_time, set_flag}},
    {"sections-2", 3, 0, PATIENT, begin_sections, end_sections, {ask_twice, ask_twice}},
    {"sections-2-signal", 3, 2, PATIENT, begin_sections, end_sections, {ask_once, ask_twice}},
    {"sections-3", 3, 0, PATIENT, begin_sections, end_sections, {ask_once, ask_once, ask_once}},
    {"sections-2-task", 3, 1, PATIENT, begin_sections, end_sections, {ask_from_a_loop, ask_twice}},
    {"sections-3-task", 2, 1, PATIENT, begin_sections, end_sections, {ask_from_a_loop, ask_once, ask_once}},
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
    {"condition-2", 3, 1, PATIENT, begin_condition, end_condition, {wait_for_notice_for_ever, notify_one}},
    {"condition-3", 2, 1, PATIENT, begin_condition, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_for_ever, notify_one}},
    {"condition-3-timed", 2, 0, PATIENT, begin_condition, end_condition,
     {wait_for_notice_for_ever, wait_for_notice_within_a_time, notify_one}},
    {"count-3", 3, 0, PATIENT, begin_count, end_event, {wait_for_flag, count_down, count_down}},
    {"count-3-up", 3, 0, PATIENT, begin_count, end_event,
     {wait_for_flag_within_a_time, count_down, count_down_up_and_down}},
    {"count-3-again", 3, 0, PATIENT, begin_event, end_count,
     {wait_for_flag, count_down_once, count_up_again}},
    {"barrier-2-timed", 3, 1, PATIENT, begin_barrier_of_two, end_barrier, {pass_within_a_time, pass_once}},
    {"barrier-3", 2, 1, PATIENT, begin_barrier_of_three, end_barrier, {pass_once, pass_once, pass_once}},
    {"barrier-3-timed", 3, 0, PATIENT, begin_barrier_of_three, end_barrier,
     {pass_within_a_time, pass_once, pass_once}},
    {"barrier-3-pairs", 2, 0, PATIENT, begin_barrier_of_two, end_barrier,
     {pass_twice_within_a_time, pass_within_a_time, pass_within_a_time}},
    {"barrier-3-reset", 3, 0, PATIENT, begin_barrier_of_two, end_barrier,
     {pass_once, pass_once, reset_barrier}},
    {"event-3", 3, 0, PATIENT, begin_event, end_event,
     {wait_for_flag, wait_for_flag_within_a_time, set_flag}},
    {"queue-2", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-2-overdue", 3, 0, IMPATIENT, begin_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-2-fair", 3, 0, PATIENT, begin_fair_queue_of_one, end_queue, {put_two, get_two}},
    {"queue-3-timed", 2, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_one_within_a_time, get_one_within_a_time, put_one_within_a_time}},
    {"queue-2-task", 3, 1, PATIENT, begin_queue_of_one, end_queue, {put_one, get_in_a_loop}},
    {"queue-2-shut", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_and_shut_down, get_two}},
    {"queue-2-shut-at-once", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down_at_once, get_one}},
    {"queue-2-shut-task", 3, 1, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down, get_in_a_loop}},
    {"queue-3-shut", 3, 0, PATIENT, begin_queue_of_one, end_queue, {put_and_shut_down, get_one, get_one}},
    {"queue-3-shut-overdue", 2, 0, IMPATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down, get_one, get_one}},
    {"queue-3-shut-timed", 2, 0, PATIENT, begin_queue_of_one, end_queue,
     {put_and_shut_down_at_once, get_one_within_a_time, get_one}},
    {"queue-3-shut-putters", 3, 0, PATIENT, begin_queue_of_one, end_queue,
     {only_shut_down, put_one, put_one}},
    {"queue-3-shrinks", 3, 0, PATIENT, begin_queue_of_two, end_queue, {put_two, get_two, shrink_by_one}},
};

static const char *const broken_as[] = {
    "not at all",
    "who queues does not look again whether there is something to take",
    "who leaves does not pass on the nudge that it had",
    "a waiter is written to after it was granted",
    "a nudged waiter that finds nothing in a closed cell goes on waiting",
    "what is given pays no debt",
    "the holder of a combining lock lets go without looking whether somebody has queued since it looked",
    "who is woken at a gate does not wake the next",
    "a condition's waiter that is cancelled takes its notice along",
    "who waits when a count comes to nothing sleeps on if it goes up at once",
    "who leaves a barrier does not break it",
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
