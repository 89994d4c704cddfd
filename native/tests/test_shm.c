/* Primitives in shared memory, used by threads in the place of processes, which one process counts as
   one: so that the sanitizers see every access. Who dies is the model's, and that of tests/lifecycle. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/clock.h"
#include "core/herald.h"
#include "core/semaphore.h"
#include "core/shm_barrier.h"
#include "core/shm_permits.h"
#include "core/shm_queue.h"

#define THREADS 3
#define TURNS 2000

static fl_shm_lock lock;
static long inside; /* under the lock */

static bool wait_for(fl_shm_wait *wait, fl_shm_turn *turn)
{
    if (!fl_shm_ask(wait, turn)) {
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
            wait_for(&wait, &lock.turn);
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
        fl_shm_turn *turn = NULL;
        while (fl_shm_queue_begin_put(queue, CAPACITY, length, fl_process_self(), wait.look, &turn, &dead) !=
               FL_SHM_DONE) {
            wait_for(&wait, turn);
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
        fl_shm_turn *turn = NULL;
        fl_shm_result result;
        while ((result = fl_shm_queue_begin_get(queue, fl_process_self(), wait.look, &turn, &dead)) ==
               FL_SHM_NOT) {
            wait_for(&wait, turn);
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
            wait_for(&wait, &barrier->turn);
        }
        CHECK(party.phase == i);
        while (fl_shm_barrier_try(barrier, THREADS, &party, wait.look, &dead) == FL_SHM_NOT) {
            wait_for(&wait, &barrier->turn);
        }
    }
    return arg;
}

static fl_shm_flag flag;
static fl_atomic(uint32_t) gone;

static bool flag_worth(void *owner, fl_shm_turn *turn)
{
    (void)owner, (void)turn;
    return fl_shm_flag_word(&flag) & 1;
}

static void herald_gone(void *owner)
{
    fl_store((fl_atomic(uint32_t) *)owner, 1, release);
    fl_unpark(owner);
}

static void *set_flag(void *arg)
{
    fl_shm_flag_set(&flag);
    return arg;
}

/* Waits as a task does: by the cell that the herald rings. */
static void test_herald_rings_and_is_disarmed(void)
{
    static fl_herald herald;
    fl_cell *bell = fl_sem_new(0, FL_SEM_MOST, 0);
    herald = (fl_herald){.worth = flag_worth, .gone = herald_gone, .owner = &gone};
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        fl_shm_wait wait = {0};
        fl_shm_flag_clear(&flag);
        fl_shm_ask(&wait, &flag.turn);
        fl_herald_result result = fl_herald_arm(&herald, &flag.turn, wait.seen, bell);
        CHECK(result == (i == 0 ? FL_HERALD_STARTED : FL_HERALD_WAITS));
        CHECK(pthread_create(&thread, NULL, set_flag, NULL) == 0);
        if (i % 4 == 3) {
            fl_herald_disarm(&herald);
            fl_sem_try(bell, 1, 0); /* it may have been rung before */
        } else {
            fl_waiter waiter;
            fl_waiter_init(&waiter, bell, 1, 0);
            CHECK(fl_cell_enter(&waiter) || fl_cell_wait(&waiter, FL_FOREVER) == FL_WAIT_GRANTED);
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
    fl_herald_end(&herald);
    while (fl_load(&gone, acquire) == 0) { /* pairs with herald_gone */
        fl_park(&gone, 0, FL_FOREVER);
    }
    fl_cell_unref(bell);
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
    CHECK(fl_cell_setup());
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
    test_herald_rings_and_is_disarmed();
    free(queue);
    free(barrier);
    return 0;
}
