/* Primitives in shared memory, used by threads in the place of processes, which one process counts as one:
   so that the sanitizers see every access. Deaths are tested by the model and in tests/lifecycle. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "waiting.h"
#include "sync/processes/notifier.h"
#include "sync/locks/semaphore.h"
#include "sync/processes/barrier.h"
#include "sync/processes/permits.h"
#include "sync/processes/queue.h"

#define THREADS 3
#define TURNS 2000

static fl_shm_lock lock;
static long inside; /* under the lock */

static bool wait_for(fl_shm_wait *wait, fl_shm_eventcount *eventcount)
{
    if (!fl_shm_prepare(wait, eventcount)) {
        fl_shm_sleep(wait, FL_FOREVER);
    }
    return true;
}

static void *use_lock(void *arg)
{
    uint64_t me = fl_process_self(), dead;
    for (int i = 0; i < TURNS; i++) {
        fl_shm_wait wait = {0};
        while (fl_shm_lock_try(&lock, me, wait.look, true, &dead) == FL_SHM_NOT) {
            wait_for(&wait, &lock.eventcount);
        }
        inside++;
        CHECK(fl_shm_lock_release(&lock, me));
    }
    return arg;
}

#define CAPACITY 256

static fl_shm_queue *queue;
static long sums[THREADS];

static void *put_all(void *arg)
{
    for (uint64_t i = 1; i <= TURNS; i++) {
        uint64_t message[3] = {i, i, i}, dead;
        size_t length = 8 * (1 + i % 3);
        fl_shm_wait wait = {0};
        fl_shm_eventcount *eventcount = NULL;
        while (fl_shm_queue_begin_put(queue, CAPACITY, length, fl_process_self(), wait.look, &eventcount,
                                      &dead) != FL_SHM_DONE) {
            wait_for(&wait, eventcount);
        }
        fl_shm_queue_end_put(queue, CAPACITY, message, length, fl_process_self());
    }
    return arg;
}

static void *get_all(void *arg)
{
    for (;;) {
        uint64_t message[3], dead, length;
        fl_shm_wait wait = {0};
        fl_shm_eventcount *eventcount = NULL;
        fl_shm_result result;
        while ((result = fl_shm_queue_begin_get(queue, fl_process_self(), wait.look, &eventcount, &dead)) ==
               FL_SHM_NOT) {
            wait_for(&wait, eventcount);
        }
        if (result == FL_SHM_SHUT_DOWN) {
            return arg;
        }
        CHECK(fl_shm_queue_length(queue, CAPACITY, &length) && length <= sizeof message);
        fl_shm_queue_end_get(queue, CAPACITY, message, length, fl_process_self());
        CHECK(length == 8 * (1 + message[0] % 3) && message[length / 8 - 1] == message[0]);
        *(long *)arg += (long)message[0];
    }
}

static fl_shm_barrier *barrier;

static void *meet_again(void *arg)
{
    for (uint32_t i = 0; i < TURNS / 4; i++) {
        fl_shm_wait wait = {0};
        fl_shm_party party;
        uint64_t dead;
        while (fl_shm_barrier_come(barrier, THREADS, fl_process_self(), &party) == FL_SHM_NOT) {
            wait_for(&wait, &barrier->eventcount);
        }
        CHECK(party.phase == i);
        while (fl_shm_barrier_try(barrier, THREADS, &party, wait.look, &dead) == FL_SHM_NOT) {
            wait_for(&wait, &barrier->eventcount);
        }
    }
    return arg;
}

static fl_shm_flag flag;
static fl_atomic(uint32_t) gone;

static bool flag_ready(void *owner, fl_shm_eventcount *eventcount)
{
    (void)owner, (void)eventcount;
    return fl_shm_flag_word(&flag) & 1;
}

static void notifier_gone(void *owner)
{
    fl_store((fl_atomic(uint32_t) *)owner, 1, release);
    fl_unpark(owner);
}

static void *set_flag(void *arg)
{
    fl_shm_flag_set(&flag);
    return arg;
}

/* Waits as a task does: by the wait queue that the notifier rings. */
static void test_notifier_rings_and_is_disarmed(void)
{
    static fl_notifier notifier;
    fl_waitq *wakeup = fl_sem_new(0, FL_SEM_MOST, 0);
    notifier = (fl_notifier){.ready = flag_ready, .gone = notifier_gone, .owner = &gone};
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        fl_shm_wait wait = {0};
        fl_shm_flag_clear(&flag);
        fl_shm_prepare(&wait, &flag.eventcount);
        fl_notifier_result result = fl_notifier_arm(&notifier, &flag.eventcount, wait.seen, wakeup);
        CHECK(result == (i == 0 ? FL_NOTIFIER_STARTED : FL_NOTIFIER_WAITS));
        CHECK(pthread_create(&thread, NULL, set_flag, NULL) == 0);
        if (i % 4 == 3) {
            fl_notifier_disarm(&notifier);
            fl_sem_try(wakeup, 1, 0); /* it may have been rung before */
        } else {
            CHECK_EQUAL(wait_at(wakeup, 1, (fl_stake){0}, FL_FOREVER), FL_WAIT_GRANTED);
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
    fl_notifier_end(&notifier);
    while (fl_load(&gone, acquire) == 0) { /* pairs with notifier_gone */
        fl_park(&gone, 0, FL_FOREVER);
    }
    fl_waitq_unref(wakeup);
}

static void run(void *(*body)(void *), void *(*other)(void *))
{
    pthread_t threads[THREADS], others[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, body, NULL) == 0);
        CHECK(other == NULL || pthread_create(&others[i], NULL, other, &sums[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    if (other != NULL) {
        fl_shm_queue_shut(queue, FL_SHM_SHUT);
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_join(others[i], NULL) == 0);
        }
    }
}

int main(void)
{
    CHECK(fl_waitq_setup());
    if (fl_process_self() == 0) {
        return 77; /* the system does not tell processes apart: skipped */
    }
    CHECK(fl_process_alive(fl_process_self()));
    CHECK(!fl_process_alive(fl_process_self() ^ 1)); /* the same number, another start */
    run(use_lock, NULL);
    CHECK(inside == THREADS * TURNS);
    queue = aligned_alloc(64, sizeof *queue + CAPACITY);
    memset(queue, 0, sizeof *queue + CAPACITY);
    run(put_all, get_all);
    CHECK(sums[0] + sums[1] + sums[2] == (long)THREADS * TURNS * (TURNS + 1) / 2);
    barrier = calloc(1, sizeof *barrier + THREADS * sizeof(uint64_t));
    run(meet_again, NULL);
    CHECK(fl_shm_barrier_waiting(barrier, THREADS) == 0 && !fl_shm_barrier_broken(barrier));
    test_notifier_rings_and_is_disarmed();
    free(queue);
    free(barrier);
    return 0;
}
