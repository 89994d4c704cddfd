/* Readers and writers between real threads, for the sanitizers; the races are the model's. */
#include <pthread.h>

#include "check.h"
#include "waiting.h"
#include "sync/locks/rwlock.h"

#define THREADS 4
#define ROUNDS 3000

static fl_waitq *waitq;
static int64_t protected_count, copy; /* by the lock alone: the same whenever there is no writer */

static void come_in(uint32_t wanted)
{
    if (!fl_rw_try(waitq, wanted, fl_owner_thread())) {
        CHECK_EQUAL(wait_at(waitq, wanted, FL_HOLDER(fl_owner_thread()), FL_FOREVER), FL_WAIT_GRANTED);
    }
}

static void write_both(void)
{
    protected_count++;
    copy++;
}

static void *use(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument * 2654435761u + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        switch (random >> 28 & 3) {
        case 0:
            come_in(FL_RW_WRITE);
            write_both();
            fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_READ);
            CHECK_EQUAL(protected_count, copy);
            fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
            break;
        case 1: {
            come_in(FL_RW_UPGRADE);
            int64_t before = protected_count;
            CHECK_EQUAL(before, copy);
            come_in(FL_RW_RAISE);
            CHECK_EQUAL(protected_count, before);
            write_both();
            fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_UPGRADE);
            CHECK_EQUAL(protected_count, before + 1);
            fl_rw_lower(waitq, FL_RW_UPGRADE, FL_RW_NONE);
            break;
        }
        default:
            come_in(FL_RW_READ);
            CHECK_EQUAL(protected_count, copy);
            fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
        }
    }
    return NULL;
}

static void test_threads_read_write_and_upgrade(void)
{
    pthread_t threads[THREADS];
    waitq = fl_rw_new();
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(fl_rw_word(waitq), 0);
    CHECK_EQUAL(waitq->waiting, 0);
    fl_waitq_unref(waitq);
}

static void test_modes_exclude_each_other_as_they_should(void)
{
    waitq = fl_rw_new();
    CHECK(fl_rw_try(waitq, FL_RW_READ, 2) && fl_rw_try(waitq, FL_RW_UPGRADE, 2));
    CHECK(!fl_rw_try(waitq, FL_RW_UPGRADE, 2) && !fl_rw_try(waitq, FL_RW_WRITE, 2));
    CHECK(!fl_rw_try(waitq, FL_RW_RAISE, 2));
    fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
    CHECK(fl_rw_try(waitq, FL_RW_RAISE, 2));
    CHECK(!fl_rw_try(waitq, FL_RW_READ, 2) && !fl_rw_try(waitq, FL_RW_UPGRADE, 2));
    fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_READ);
    CHECK(fl_rw_try(waitq, FL_RW_UPGRADE, 2));
    fl_rw_lower(waitq, FL_RW_UPGRADE, FL_RW_NONE);
    fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
    CHECK_EQUAL(fl_rw_word(waitq), 0);
    fl_waitq_unref(waitq);
}

int main(void)
{
    CHECK(fl_waitq_setup());
    test_modes_exclude_each_other_as_they_should();
    test_threads_read_write_and_upgrade();
    return 0;
}
