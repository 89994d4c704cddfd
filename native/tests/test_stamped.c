/* Reading without a lock between real threads, on this machine's memory; the races are the model's. */
#include <pthread.h>

#include "check.h"
#include "waiting.h"
#include "sync/locks/stamped.h"

#define READERS 3
#define WRITES 20000

static fl_waitq *waitq;
static fl_atomic(uint64_t) one, other; /* relaxed: the lock alone orders them */
static fl_atomic(uint32_t) done;

static void come_in(uint32_t wanted)
{
    if (!fl_rw_try(waitq, wanted, fl_owner_thread())) {
        CHECK_EQUAL(wait_at(waitq, wanted, FL_HOLDER(fl_owner_thread()), FL_FOREVER), FL_WAIT_GRANTED);
    }
}

static void change_both(uint64_t by)
{
    fl_stamped_begin(waitq);
    fl_store(&one, fl_load(&one, relaxed) + by, relaxed);
    fl_store(&other, fl_load(&other, relaxed) + by, relaxed);
    fl_stamped_end(waitq);
}

static void *look(void *argument)
{
    uint64_t whole = 0, before = 0;
    while (!fl_load(&done, relaxed) || whole == 0) {
        uint64_t version = fl_stamped_look(waitq);
        uint64_t first = fl_load(&one, relaxed), second = fl_load(&other, relaxed);
        if (!(version & 1) && fl_stamped_same(waitq, version)) {
            CHECK_EQUAL(first, second);
            CHECK(first >= before);
            before = first;
            whole++;
        }
        if (argument != NULL && whole % 64 == 0) { /* and as a reader, perhaps the only one */
            come_in(FL_RW_READ);
            CHECK_EQUAL(fl_load(&one, relaxed), fl_load(&other, relaxed));
            bool alone = fl_rw_raise_alone(waitq, fl_owner_thread());
            if (alone) {
                change_both(1);
            }
            fl_rw_lower(waitq, alone ? FL_RW_WRITE : FL_RW_READ, FL_RW_NONE);
        }
    }
    return NULL;
}

int main(void)
{
    CHECK(fl_waitq_setup());
    waitq = fl_stamped_new();
    CHECK(fl_rw_try(waitq, FL_RW_READ, 2) && fl_rw_try(waitq, FL_RW_READ, 4) && !fl_rw_raise_alone(waitq, 2));
    fl_rw_lower(waitq, FL_RW_READ, FL_RW_NONE);
    CHECK(fl_rw_raise_alone(waitq, 2) && !fl_rw_try(waitq, FL_RW_READ, 4));
    CHECK(fl_stamped_begin(waitq) == 1 && (fl_stamped_look(waitq) & 1));
    CHECK(fl_stamped_end(waitq) == 2 && fl_stamped_same(waitq, 2) && !fl_stamped_same(waitq, 0));
    fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
    pthread_t threads[READERS];
    for (uintptr_t i = 0; i < READERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, look, (void *)i) == 0);
    }
    for (int i = 0; i < WRITES; i++) {
        come_in(FL_RW_WRITE);
        change_both(1);
        fl_rw_lower(waitq, FL_RW_WRITE, FL_RW_NONE);
    }
    fl_store(&done, 1, relaxed);
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(fl_rw_word(waitq), 0);
    CHECK(one >= WRITES && one == other);
    fl_waitq_unref(waitq);
    return 0;
}
