/* A rate between real threads, for the sanitizers, and its arithmetic; the races are the model's. */
#include <pthread.h>

#include "check.h"
#include "machine/clock.h"
#include "sync/coordination/rate.h"
#include "waiting.h"

#define THREADS 4
#define ROUNDS 400
#define INTERVAL 2000 /* ns */

static fl_waitq *waitq;
static fl_atomic(uint32_t) taken;

static void *use(void *argument)
{
    uint32_t wanted = 1 + (uint32_t)(uintptr_t)argument % 2;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t deadline = i % 8 == 0 ? fl_clock_now() + INTERVAL : FL_FOREVER;
        fl_wait_result result = fl_rate_try(waitq, wanted) ? FL_WAIT_GRANTED
                                                           : wait_at(waitq, wanted, (fl_stake){0}, deadline);
        CHECK(result == FL_WAIT_GRANTED || (result == FL_WAIT_TIMED_OUT && deadline != FL_FOREVER));
        if (result == FL_WAIT_GRANTED) {
            fl_fetch_add(&taken, wanted, relaxed);
        }
    }
    return NULL;
}

static void test_threads_take_no_more_than_there_is(void)
{
    pthread_t threads[THREADS];
    waitq = fl_rate_new(INTERVAL, 3);
    int64_t begin = fl_clock_now();
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK((int64_t)(taken - 3) * INTERVAL <= fl_clock_now() - begin);
    CHECK(taken > 0 && waitq->waiting == 0 && waitq->head == NULL);
    CHECK_EQUAL(fl_rate_next(waitq), FL_FOREVER);
    fl_waitq_unref(waitq);
}

static void test_dates_by_a_clock_that_stands_still(void)
{
    waitq = fl_rate_new(10, 3);
    fl_rate_set(waitq, 1000);
    CHECK_EQUAL(fl_rate_available(waitq), 3);
    CHECK(fl_rate_try(waitq, 2) && !fl_rate_try(waitq, 2) && fl_rate_try(waitq, 1));
    CHECK_EQUAL(fl_rate_available(waitq), 0);
    CHECK_EQUAL(fl_rate_delay(waitq, 1), 10);
    CHECK_EQUAL(fl_rate_delay(waitq, 3), 30);
    fl_waiter waiter;
    fl_waiter_init(&waiter, waitq, 2, (fl_stake){0});
    waiter.look = 1019;
    CHECK(!fl_waitq_enter(&waiter) && waiter.state == FL_REFUSED && waitq->waiting == 0);
    waiter.look = 1020;
    CHECK(!fl_waitq_enter(&waiter) && waiter.state == FL_WAITING);
    CHECK_EQUAL(fl_rate_next(waitq), 1020);
    CHECK_EQUAL(fl_rate_look(&waiter), FL_FOREVER);
    fl_rate_set(waitq, 1019);
    CHECK(!fl_waitq_retry(&waiter) && !fl_rate_try(waitq, 1));
    CHECK_EQUAL(fl_rate_delay(waitq, 1), 11);
    CHECK(fl_waitq_leave(&waiter, FL_CANCELLED));
    CHECK_EQUAL(fl_rate_available(waitq), 1);
    CHECK_EQUAL(fl_rate_delay(waitq, 2), 1);
    fl_waitq_unref(waitq);
}

static void test_waiter_that_is_due_beyond_the_clock_is_due_for_ever(void)
{
    waitq = fl_rate_new(FL_RATE_LONGEST / FL_RATE_MOST, FL_RATE_MOST);
    CHECK(fl_rate_try(waitq, FL_RATE_MOST));
    fl_waiter waiters[3];
    for (int i = 0; i < 3; i++) {
        fl_waiter_init(&waiters[i], waitq, FL_RATE_MOST, (fl_stake){0});
        CHECK(!fl_waitq_enter(&waiters[i]));
    }
    CHECK_EQUAL(fl_rate_delay(waitq, FL_RATE_MOST), FL_FOREVER);
    for (int i = 0; i < 3; i++) {
        CHECK(fl_waitq_leave(&waiters[i], FL_CANCELLED));
    }
    CHECK(fl_rate_delay(waitq, 1) < FL_FOREVER);
    fl_waitq_unref(waitq);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_dates_by_a_clock_that_stands_still();
    test_waiter_that_is_due_beyond_the_clock_is_due_for_ever();
    test_threads_take_no_more_than_there_is();
    return 0;
}
