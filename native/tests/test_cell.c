/* Semaphores, locks, events and ports between real threads; the races are the model's. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/clock.h"
#include "core/barrier.h"
#include "core/event.h"
#include "core/notices.h"
#include "core/port.h"
#include "core/semaphore.h"

static bool take(fl_cell *cell, uint32_t wanted, int64_t deadline)
{
    uint64_t owner = fl_owner_thread();
    if (fl_sem_try(cell, wanted, owner)) {
        return true;
    }
    fl_waiter waiter;
    fl_waiter_init(&waiter, cell, wanted, owner);
    while (!fl_cell_enter(&waiter)) {
        fl_wait_result result = fl_cell_wait(&waiter, deadline);
        if (result != FL_WAIT_INTERRUPTED) {
            return result == FL_WAIT_GRANTED;
        }
    }
    return true;
}

static void wait_for_waiters(fl_cell *cell, uint32_t count)
{
    while (fl_load(&cell->waiting, relaxed) != count) {
        sched_yield();
    }
}

static void test_permits_are_taken_and_given(void)
{
    fl_cell *cell = fl_sem_new(3, 5, 0);
    CHECK(fl_sem_try(cell, 2, 0));
    CHECK(!fl_sem_try(cell, 2, 0));
    CHECK(fl_sem_try(cell, 1, 0));
    CHECK_EQUAL(fl_sem_give(cell, 5), FL_SEM_OK);
    CHECK_EQUAL(fl_sem_give(cell, 1), FL_SEM_TOO_MANY);
    CHECK_EQUAL(fl_sem_value(cell), 5);
    fl_cell_unref(cell);
}

static void test_a_deadline_passes_and_leaves_nothing_behind(void)
{
    fl_cell *cell = fl_sem_new(0, 1, 0);
    int64_t before = fl_clock_now();
    CHECK(!take(cell, 1, before + 2000000));
    CHECK(fl_clock_now() >= before + 2000000);
    CHECK(!take(cell, 1, before));
    CHECK_EQUAL(cell->waiting, 0);
    CHECK_EQUAL(fl_sem_give(cell, 1), FL_SEM_OK);
    CHECK(take(cell, 1, before));
    fl_cell_unref(cell);
}

typedef struct {
    fl_cell *cell;
    uint32_t wanted;
    fl_atomic(uint32_t) *order;
    uint32_t place;
} customer;

static void *wait_in_line(void *argument)
{
    customer *me = argument;
    CHECK(take(me->cell, me->wanted, FL_FOREVER));
    me->place = fl_fetch_add(me->order, 1, seq_cst);
    CHECK_EQUAL(fl_sem_give(me->cell, me->wanted), FL_SEM_OK);
    return NULL;
}

static void test_a_fair_queue_serves_in_order_and_many_are_not_passed_by_one(void)
{
    fl_atomic(uint32_t) order = 0;
    fl_cell *cell = fl_sem_new(0, 9, FL_CELL_FAIR);
    customer customers[4];
    pthread_t threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        customers[i] = (customer){.cell = cell, .wanted = i == 0 ? 3 : 1, .order = &order};
        CHECK(pthread_create(&threads[i], NULL, wait_in_line, &customers[i]) == 0);
        wait_for_waiters(cell, i + 1);
    }
    CHECK_EQUAL(fl_sem_give(cell, 2), FL_SEM_OK);
    CHECK(!fl_sem_try(cell, 1, 0));
    CHECK_EQUAL(cell->waiting, 4);
    CHECK_EQUAL(fl_sem_give(cell, 1), FL_SEM_OK);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(customers[0].place, 0);
    CHECK_EQUAL(fl_sem_value(cell), 3);
    fl_cell_unref(cell);
}

#define ROUNDS 20000

typedef struct {
    fl_cell *cell;
    int64_t *inside; /* protected by the lock, and by nothing else */
    uint32_t timed_out;
    uint32_t seed;
} worker;

static void *work(void *argument)
{
    worker *me = argument;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        me->seed = me->seed * 1664525 + 1013904223;
        bool hurried = me->seed >> 30 == 0;
        if (!take(me->cell, 1, hurried ? fl_clock_now() + (me->seed >> 12 & 0xffff) : FL_FOREVER)) {
            me->timed_out++;
            continue;
        }
        (*me->inside)++;
        if (me->seed >> 24 & 1) {
            sched_yield();
        }
        CHECK_EQUAL(fl_sem_give(me->cell, 1), FL_SEM_OK);
    }
    return NULL;
}

static void test_a_lock_excludes(uint32_t flags)
{
    fl_cell *cell = fl_sem_new(1, 1, flags | FL_CELL_OWNED);
    int64_t inside = 0, timed_out = 0;
    worker workers[4];
    pthread_t threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){cell, &inside, 0, i + 1};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        timed_out += workers[i].timed_out;
    }
    CHECK_EQUAL(inside + timed_out, 4 * ROUNDS);
    CHECK_EQUAL(cell->word, 1);
    CHECK(cell->head == NULL && cell->tail == NULL && cell->waiting == 0);
    fl_cell_unref(cell);
}

static void *wait_for_flag(void *argument)
{
    fl_waiter waiter;
    fl_waiter_init(&waiter, argument, 0, 0);
    if (!fl_cell_enter(&waiter)) {
        while (fl_cell_wait(&waiter, FL_FOREVER) == FL_WAIT_INTERRUPTED && !fl_cell_enter(&waiter)) {
        }
    }
    return NULL;
}

static void test_an_event_wakes_all_that_wait_even_when_it_is_cleared_at_once(void)
{
    fl_cell *cell = fl_flag_new();
    pthread_t threads[20];
    for (uint32_t i = 0; i < 20; i++) {
        CHECK(pthread_create(&threads[i], NULL, wait_for_flag, cell) == 0);
    }
    wait_for_waiters(cell, 20);
    fl_flag_set(cell);
    fl_flag_clear(cell);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(!fl_flag_is_set(cell));
    fl_cell_unref(cell);
}

static bool rung(const fl_port *port)
{
    struct pollfd one = {.fd = port->poll, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void test_a_port_gets_what_was_granted_in_order_with_one_ring(void)
{
    fl_port *port = fl_port_new();
    fl_cell *cell = fl_sem_new(0, 3, FL_CELL_FAIR);
    fl_waiter *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = fl_port_waiter(port, cell, 1, 0);
        CHECK(!fl_cell_enter(waiters[i]));
    }
    CHECK(!rung(port));
    CHECK_EQUAL(fl_sem_give(cell, 3), FL_SEM_OK);
    CHECK(rung(port));
    fl_port_hear(port);
    fl_waiter *ready = fl_port_drain(port);
    CHECK(!rung(port));
    for (int i = 0; i < 3; i++) {
        fl_waiter *next = ready->ready;
        CHECK(ready == waiters[i]);
        fl_port_seen(ready);
        CHECK_EQUAL(ready->state, FL_GRANTED);
        fl_waiter_unref(ready);
        ready = next;
    }
    CHECK(ready == NULL && fl_port_drain(port) == NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(fl_waiter_abandon(waiters[i], FL_CANCELLED));
        fl_port_forget(waiters[i]);
    }
    CHECK_EQUAL(fl_sem_value(cell), 3);
    fl_port_close(port);
    fl_port_unref(port);
    fl_cell_unref(cell);
}

static void test_a_port_that_closes_gives_back_what_its_waiters_were_granted(void)
{
    fl_port *port = fl_port_new();
    fl_cell *cell = fl_sem_new(0, 2, 0);
    fl_waiter *granted = fl_port_waiter(port, cell, 1, 0), *queued = fl_port_waiter(port, cell, 1, 0);
    CHECK(!fl_cell_enter(granted));
    granted->since -= 2 * FL_PATIENCE_NS; /* so that it is handed over, not nudged */
    CHECK_EQUAL(fl_sem_give(cell, 1), FL_SEM_OK);
    CHECK_EQUAL(granted->state, FL_GRANTED);
    CHECK(!fl_cell_enter(queued));
    fl_port_close(port);
    CHECK_EQUAL(fl_sem_value(cell), 1);
    CHECK_EQUAL(cell->waiting, 0);
    CHECK(fl_port_waiter(port, cell, 1, 0) == NULL);
    CHECK(!fl_waiter_abandon(granted, FL_CANCELLED));
    fl_port_forget(granted);
    fl_port_forget(queued);
    fl_port_unref(port);
    fl_cell_unref(cell);
}

static void *hold(void *argument)
{
    CHECK(take(argument, 1, FL_FOREVER));
    return NULL;
}

static void test_in_a_forked_child_a_lock_of_another_thread_is_free_and_ones_own_is_held(void)
{
    fl_cell *theirs = fl_sem_new(1, 1, FL_CELL_OWNED), *mine = fl_sem_new(1, 1, FL_CELL_OWNED);
    pthread_t holder, waiter;
    CHECK(take(mine, 1, FL_FOREVER));
    CHECK(pthread_create(&holder, NULL, hold, theirs) == 0);
    CHECK(pthread_join(holder, NULL) == 0);
    CHECK(pthread_create(&waiter, NULL, hold, mine) == 0);
    wait_for_waiters(mine, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool good = fl_sem_try(theirs, 1, fl_owner_thread()) && !fl_sem_try(mine, 1, fl_owner_thread()) &&
                    fl_sem_give(mine, 1) == FL_SEM_OK && take(mine, 1, FL_FOREVER) && mine->waiting == 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    CHECK(!fl_sem_try(theirs, 1, 0));
    CHECK_EQUAL(fl_sem_give(mine, 1), FL_SEM_OK);
    CHECK(pthread_join(waiter, NULL) == 0);
    fl_cell_unref(theirs);
    fl_cell_unref(mine);
}

typedef struct {
    fl_cell *barrier;
    fl_cell *lock, *notices;
    int64_t *turn; /* protected by the barrier in the one test, and by the lock in the other */
    int64_t me;
} party;

#define PARTIES 3

static void *pass_again_and_again(void *argument)
{
    party *mine = argument;
    for (int64_t round = 0; round < ROUNDS / 10; round++) {
        fl_waiter waiter;
        fl_waiter_init(&waiter, mine->barrier, 0, 0);
        if (!fl_cell_enter(&waiter)) {
            fl_wait_result result;
            do {
                result = fl_cell_wait_in_place(&waiter, FL_FOREVER);
            } while (result == FL_WAIT_INTERRUPTED);
            CHECK_EQUAL(result, FL_WAIT_GRANTED);
        }
        if (waiter.wanted & FL_BARRIER_LAST) {
            (*mine->turn)++;
            CHECK(fl_barrier_trip(mine->barrier, waiter.wanted));
        }
    }
    return NULL;
}

static void test_a_barrier_lets_all_through_again_and_again(void)
{
    int64_t turn = 0;
    party parties[PARTIES];
    pthread_t threads[PARTIES];
    fl_cell *barrier = fl_barrier_new(PARTIES);
    for (int64_t i = 0; i < PARTIES; i++) {
        parties[i] = (party){.barrier = barrier, .turn = &turn};
        CHECK(pthread_create(&threads[i], NULL, pass_again_and_again, &parties[i]) == 0);
    }
    for (int i = 0; i < PARTIES; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(turn, ROUNDS / 10);
    CHECK_EQUAL(barrier->word, 0);
    CHECK_EQUAL(barrier->waiting, 0);
    fl_cell_unref(barrier);
}

static void *take_turns(void *argument)
{
    party *mine = argument;
    for (int64_t round = 0; round < ROUNDS / 100; round++) {
        CHECK(take(mine->lock, 1, FL_FOREVER));
        while (*mine->turn % PARTIES != mine->me) {
            fl_waiter waiter;
            fl_waiter_init(&waiter, mine->notices, 0, 0);
            CHECK(!fl_cell_enter(&waiter));
            CHECK_EQUAL(fl_sem_give(mine->lock, 1), FL_SEM_OK);
            while (fl_cell_wait_in_place(&waiter, FL_FOREVER) == FL_WAIT_INTERRUPTED) {
            }
            CHECK(take(mine->lock, 1, FL_FOREVER));
            fl_notices_pass(mine->notices);
        }
        (*mine->turn)++;
        fl_notices_give(mine->notices, PARTIES);
        CHECK_EQUAL(fl_sem_give(mine->lock, 1), FL_SEM_OK);
    }
    return NULL;
}

static void test_notices_reach_who_let_go_of_a_lock(void)
{
    int64_t turn = 0;
    party parties[PARTIES];
    pthread_t threads[PARTIES];
    fl_cell *lock = fl_sem_new(1, 1, FL_CELL_OWNED), *notices = fl_notices_new();
    for (int64_t i = 0; i < PARTIES; i++) {
        parties[i] = (party){.lock = lock, .notices = notices, .turn = &turn, .me = i};
        CHECK(pthread_create(&threads[i], NULL, take_turns, &parties[i]) == 0);
    }
    for (int i = 0; i < PARTIES; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(turn, PARTIES * (ROUNDS / 100));
    CHECK_EQUAL(notices->waiting, 0);
    fl_cell_unref(lock);
    fl_cell_unref(notices);
}

int main(void)
{
    CHECK(fl_cell_setup());
    test_permits_are_taken_and_given();
    test_a_deadline_passes_and_leaves_nothing_behind();
    test_a_fair_queue_serves_in_order_and_many_are_not_passed_by_one();
    test_a_lock_excludes(0);
    test_a_lock_excludes(FL_CELL_FAIR);
    test_an_event_wakes_all_that_wait_even_when_it_is_cleared_at_once();
    test_a_port_gets_what_was_granted_in_order_with_one_ring();
    test_a_port_that_closes_gives_back_what_its_waiters_were_granted();
    test_a_barrier_lets_all_through_again_and_again();
    test_notices_reach_who_let_go_of_a_lock();
    test_in_a_forked_child_a_lock_of_another_thread_is_free_and_ones_own_is_held();
    return 0;
}
