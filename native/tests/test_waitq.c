/* Semaphores, locks, events and mailboxes between real threads; the races are the model's. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "machine/clock.h"
#include "sync/coordination/barrier.h"
#include "sync/coordination/event.h"
#include "sync/coordination/condition.h"
#include "sync/wait/mailbox.h"
#include "sync/locks/semaphore.h"
#include "waiting.h"

static bool take(fl_waitq *waitq, uint32_t wanted, int64_t deadline)
{
    uint64_t owner = fl_owner_thread();
    if (fl_sem_try(waitq, wanted, owner)) {
        return true;
    }
    return wait_at(waitq, wanted, FL_HOLDER(owner), deadline) == FL_WAIT_GRANTED;
}

static void wait_for_waiters(fl_waitq *waitq, uint32_t count)
{
    while (fl_load(&waitq->waiting, relaxed) != count) {
        sched_yield();
    }
}

static void test_permits_are_taken_and_given(void)
{
    fl_waitq *waitq = fl_sem_new(3, 5, 0);
    CHECK(fl_sem_try(waitq, 2, 0));
    CHECK(!fl_sem_try(waitq, 2, 0));
    CHECK(fl_sem_try(waitq, 1, 0));
    CHECK_EQUAL(fl_sem_give(waitq, 5), FL_SEM_OK);
    CHECK_EQUAL(fl_sem_give(waitq, 1), FL_SEM_TOO_MANY);
    CHECK_EQUAL(fl_sem_value(waitq), 5);
    fl_waitq_unref(waitq);
}

static void test_a_deadline_passes_and_leaves_nothing_behind(void)
{
    fl_waitq *waitq = fl_sem_new(0, 1, 0);
    int64_t before = fl_clock_now();
    CHECK(!take(waitq, 1, before + 2000000));
    CHECK(fl_clock_now() >= before + 2000000);
    CHECK(!take(waitq, 1, before));
    CHECK_EQUAL(waitq->waiting, 0);
    CHECK_EQUAL(fl_sem_give(waitq, 1), FL_SEM_OK);
    CHECK(take(waitq, 1, before));
    fl_waitq_unref(waitq);
}

typedef struct {
    fl_waitq *waitq;
    uint32_t wanted;
    fl_atomic(uint32_t) *order;
    uint32_t place;
} customer;

static void *wait_in_line(void *argument)
{
    customer *me = argument;
    CHECK(take(me->waitq, me->wanted, FL_FOREVER));
    me->place = fl_fetch_add(me->order, 1, seq_cst);
    CHECK_EQUAL(fl_sem_give(me->waitq, me->wanted), FL_SEM_OK);
    return NULL;
}

static void test_a_fair_queue_serves_in_order_and_many_are_not_passed_by_one(void)
{
    fl_atomic(uint32_t) order = 0;
    fl_waitq *waitq = fl_sem_new(0, 9, FL_WAITQ_FAIR);
    customer customers[4];
    pthread_t threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        customers[i] = (customer){.waitq = waitq, .wanted = i == 0 ? 3 : 1, .order = &order};
        CHECK(pthread_create(&threads[i], NULL, wait_in_line, &customers[i]) == 0);
        wait_for_waiters(waitq, i + 1);
    }
    CHECK_EQUAL(fl_sem_give(waitq, 2), FL_SEM_OK);
    CHECK(!fl_sem_try(waitq, 1, 0));
    CHECK_EQUAL(waitq->waiting, 4);
    CHECK_EQUAL(fl_sem_give(waitq, 1), FL_SEM_OK);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(customers[0].place, 0);
    CHECK_EQUAL(fl_sem_value(waitq), 3);
    fl_waitq_unref(waitq);
}

#define ROUNDS 20000

typedef struct {
    fl_waitq *waitq;
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
        if (!take(me->waitq, 1, hurried ? fl_clock_now() + (me->seed >> 12 & 0xffff) : FL_FOREVER)) {
            me->timed_out++;
            continue;
        }
        (*me->inside)++;
        if (me->seed >> 24 & 1) {
            sched_yield();
        }
        CHECK_EQUAL(fl_sem_give(me->waitq, 1), FL_SEM_OK);
    }
    return NULL;
}

static void test_a_lock_excludes(uint32_t flags)
{
    fl_waitq *waitq = fl_sem_new(1, 1, flags | FL_WAITQ_OWNED);
    int64_t inside = 0, timed_out = 0;
    worker workers[4];
    pthread_t threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){waitq, &inside, 0, i + 1};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        timed_out += workers[i].timed_out;
    }
    CHECK_EQUAL(inside + timed_out, 4 * ROUNDS);
    CHECK_EQUAL(waitq->word, 1);
    CHECK(waitq->head == NULL && waitq->tail == NULL && waitq->waiting == 0);
    fl_waitq_unref(waitq);
}

static void *wait_for_flag(void *argument)
{
    fl_waiter waiter;
    fl_waiter_init(&waiter, argument, 0, (fl_stake){0});
    if (!fl_waitq_enter(&waiter)) {
        wait_entered(&waiter, FL_FOREVER);
    }
    return NULL;
}

static void test_an_event_wakes_all_that_wait_even_when_it_is_cleared_at_once(void)
{
    fl_waitq *waitq = fl_flag_new();
    pthread_t threads[20];
    for (uint32_t i = 0; i < 20; i++) {
        CHECK(pthread_create(&threads[i], NULL, wait_for_flag, waitq) == 0);
    }
    wait_for_waiters(waitq, 20);
    fl_flag_set(waitq);
    fl_flag_clear(waitq);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(!fl_flag_is_set(waitq));
    fl_waitq_unref(waitq);
}

static bool rung(const fl_mailbox *mailbox)
{
    struct pollfd one = {.fd = mailbox->wakeup.poll.number, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void test_a_mailbox_gets_what_was_granted_in_order_with_one_ring(void)
{
    fl_mailbox *mailbox = fl_mailbox_new();
    fl_waitq *waitq = fl_sem_new(0, 3, FL_WAITQ_FAIR);
    fl_waiter *waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(0));
        CHECK(!fl_waitq_enter(waiters[i]));
    }
    CHECK(!rung(mailbox));
    CHECK_EQUAL(fl_sem_give(waitq, 3), FL_SEM_OK);
    CHECK(rung(mailbox));
    fl_mailbox_hear(mailbox);
    fl_waiter *ready = fl_mailbox_drain(mailbox);
    CHECK(!rung(mailbox));
    for (int i = 0; i < 3; i++) {
        fl_waiter *next = ready->ready;
        CHECK(ready == waiters[i]);
        fl_mailbox_seen(ready);
        CHECK_EQUAL(ready->state, FL_GRANTED);
        fl_waiter_unref(ready);
        ready = next;
    }
    CHECK(ready == NULL && fl_mailbox_drain(mailbox) == NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(fl_waiter_abandon(waiters[i], FL_CANCELLED));
        fl_mailbox_forget(waiters[i]);
    }
    CHECK_EQUAL(fl_sem_value(waitq), 3);
    fl_mailbox_close(mailbox);
    fl_mailbox_unref(mailbox);
    fl_waitq_unref(waitq);
}

static void test_a_mailbox_that_closes_gives_back_what_its_waiters_were_granted(void)
{
    fl_mailbox *mailbox = fl_mailbox_new();
    fl_waitq *waitq = fl_sem_new(0, 2, 0);
    fl_waiter *granted = fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(0)),
              *queued = fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(0));
    CHECK(!fl_waitq_enter(granted));
    granted->since -= 2 * FL_PATIENCE_NS; /* so that it is handed over, not woken */
    CHECK_EQUAL(fl_sem_give(waitq, 1), FL_SEM_OK);
    CHECK_EQUAL(granted->state, FL_GRANTED);
    CHECK(!fl_waitq_enter(queued));
    fl_mailbox_close(mailbox);
    CHECK_EQUAL(fl_sem_value(waitq), 1);
    CHECK_EQUAL(waitq->waiting, 0);
    CHECK(fl_mailbox_waiter(mailbox, waitq, 1, FL_HOLDER(0)) == NULL);
    CHECK(!fl_waiter_abandon(granted, FL_CANCELLED));
    fl_mailbox_forget(granted);
    fl_mailbox_forget(queued);
    fl_mailbox_unref(mailbox);
    fl_waitq_unref(waitq);
}

static void *hold(void *argument)
{
    CHECK(take(argument, 1, FL_FOREVER));
    return NULL;
}

static void test_in_a_forked_child_a_lock_of_another_thread_is_free_and_ones_own_is_held(void)
{
    fl_waitq *theirs = fl_sem_new(1, 1, FL_WAITQ_OWNED), *mine = fl_sem_new(1, 1, FL_WAITQ_OWNED);
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
    fl_waitq_unref(theirs);
    fl_waitq_unref(mine);
}

typedef struct {
    fl_waitq *barrier;
    fl_waitq *lock, *condition;
    int64_t *turn; /* protected by the barrier in the one test, and by the lock in the other */
    int64_t me;
} party;

#define PARTIES 3

static void *pass_again_and_again(void *argument)
{
    party *mine = argument;
    for (int64_t round = 0; round < ROUNDS / 10; round++) {
        fl_waiter waiter;
        fl_waiter_init(&waiter, mine->barrier, 0, (fl_stake){0});
        if (!fl_waitq_enter(&waiter)) {
            CHECK_EQUAL(wait_entered(&waiter, FL_FOREVER), FL_WAIT_GRANTED);
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
    fl_waitq *barrier = fl_barrier_new(PARTIES);
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
    fl_waitq_unref(barrier);
}

static void *take_turns(void *argument)
{
    party *mine = argument;
    for (int64_t round = 0; round < ROUNDS / 100; round++) {
        CHECK(take(mine->lock, 1, FL_FOREVER));
        while (*mine->turn % PARTIES != mine->me) {
            fl_waiter waiter;
            fl_waiter_init(&waiter, mine->condition, 1, FL_HOLDER(fl_owner_thread()));
            CHECK(!fl_waitq_enter(&waiter));
            CHECK_EQUAL(fl_sem_give(mine->lock, 1), FL_SEM_OK);
            CHECK_EQUAL(wait_entered(&waiter, FL_FOREVER), FL_WAIT_GRANTED); /* with the lock */
        }
        (*mine->turn)++;
        fl_condition_give(mine->condition, PARTIES);
        CHECK_EQUAL(fl_sem_give(mine->lock, 1), FL_SEM_OK);
    }
    return NULL;
}

static void test_condition_reaches_waiters_that_have_released_the_lock(void)
{
    int64_t turn = 0;
    party parties[PARTIES];
    pthread_t threads[PARTIES];
    fl_waitq *lock = fl_sem_new(1, 1, FL_WAITQ_OWNED), *condition = fl_condition_new(lock);
    for (int64_t i = 0; i < PARTIES; i++) {
        parties[i] = (party){.lock = lock, .condition = condition, .turn = &turn, .me = i};
        CHECK(pthread_create(&threads[i], NULL, take_turns, &parties[i]) == 0);
    }
    for (int i = 0; i < PARTIES; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(turn, PARTIES * (ROUNDS / 100));
    CHECK_EQUAL(condition->waiting, 0);
    fl_waitq_unref(lock);
    fl_waitq_unref(condition);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_permits_are_taken_and_given();
    test_a_deadline_passes_and_leaves_nothing_behind();
    test_a_fair_queue_serves_in_order_and_many_are_not_passed_by_one();
    test_a_lock_excludes(0);
    test_a_lock_excludes(FL_WAITQ_FAIR);
    test_an_event_wakes_all_that_wait_even_when_it_is_cleared_at_once();
    test_a_mailbox_gets_what_was_granted_in_order_with_one_ring();
    test_a_mailbox_that_closes_gives_back_what_its_waiters_were_granted();
    test_a_barrier_lets_all_through_again_and_again();
    test_condition_reaches_waiters_that_have_released_the_lock();
    test_in_a_forked_child_a_lock_of_another_thread_is_free_and_ones_own_is_held();
    return 0;
}
