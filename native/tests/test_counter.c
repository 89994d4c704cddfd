/* A counter between real threads, for the sanitizers, and its arithmetic; the races are the model's. */
#include <pthread.h>

#include "check.h"
#include "sync/wait/waitq.h"
#include "sync/wait/counter.h"

#define THREADS 4
#define ROUNDS 20000

static fl_counter *counter;

static void *add(void *argument)
{
    int64_t by = (int64_t)(intptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        fl_counter_add(counter, fl_owner_thread(), by);
    }
    return NULL;
}

static void test_threads_add_while_others_take(void)
{
    pthread_t threads[THREADS];
    int64_t taken = 0, wanted = 0;
    counter = fl_counter_new(3);
    CHECK_EQUAL(counter->stripes, 4);
    for (intptr_t i = 0; i < THREADS; i++) {
        wanted += (i - 1) * ROUNDS;
        CHECK(pthread_create(&threads[i], NULL, add, (void *)(i - 1)) == 0);
    }
    for (int i = 0; i < 200; i++) {
        taken += (int64_t)fl_counter_take(counter).low;
        fl_counter_sum(counter);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(taken + (int64_t)fl_counter_sum(counter).low, wanted);
    fl_counter_free(counter);
}

static void check_sum(int64_t high, uint64_t low)
{
    fl_wide sum = fl_counter_sum(counter);
    CHECK_EQUAL(sum.high, high);
    CHECK(sum.low == low);
}

static void test_sum_is_exact_however_large(void)
{
    counter = fl_counter_new(1000);
    CHECK_EQUAL(counter->stripes, FL_COUNTER_STRIPES);
    for (int i = 0; i < 3; i++) {
        fl_counter_add(counter, 2, INT64_MAX);
    }
    check_sum(1, (uint64_t)INT64_MAX - 2); /* 3 * 2**63 - 3 */
    for (int i = 0; i < 6; i++) {
        fl_counter_add(counter, 4, INT64_MIN);
    }
    fl_counter_add(counter, 6, 3);
    check_sum(-2, (uint64_t)INT64_MAX + 1); /* -3 * 2**63 */
    fl_wide taken = fl_counter_take(counter);
    CHECK_EQUAL(taken.high, -2);
    check_sum(0, 0);
    fl_counter_add(counter, 8, -1);
    check_sum(-1, UINT64_MAX);
    CHECK(sizeof(fl_stripe) == 64 && (uintptr_t)counter->at % 64 == 0);
    fl_counter_free(counter);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_sum_is_exact_however_large();
    test_threads_add_while_others_take();
    return 0;
}
