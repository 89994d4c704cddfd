/* A thread that sleeps until a mutex is free, and that no other thread wakes; and where a thread may spin. */
#define _GNU_SOURCE
#include "gil/schedule/parking.h"

#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "gil/threads/kernel.h"

/* TSan keeps account of the owner of a mutex, and here none unlocks it. */
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t sleeper;

static void *takes(void *nothing)
{
    sleeper = gettid();
    CHECK_EQUAL(pthread_mutex_lock(&mutex), 0);
    CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
    return nothing;
}

static int lock_word(void)
{
    return __atomic_load_n(&mutex.__data.__lock, __ATOMIC_SEQ_CST);
}

static void test_thread_whose_mutex_was_unlocked_without_a_wake_is_woken(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    CHECK_EQUAL(pthread_create(&thread, NULL, takes, NULL), 0);
    while (lock_word() != 2 || fl_kernel_state(sleeper) != 'S') { /* 2: locked, and a thread sleeps */
        sched_yield();
    }
    /* As by a thread that loses its core within pthread_mutex_unlock(). */
    mutex.__data.__owner = 0;
    mutex.__data.__nusers = 0;
    __atomic_store_n(&mutex.__data.__lock, 0, __ATOMIC_SEQ_CST);
    fl_parker_wake_at(&mutex);
    CHECK_EQUAL(pthread_join(thread, NULL), 0); /* else this ends by its time limit */
}
#endif

static void test_thread_does_not_spin_on_the_core_that_the_holder_needs(void)
{
    fl_parker parker = {.t_looked = 1}; /* it may run on other cores, too */
    int core = sched_getcpu();
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET((size_t)core, &own);
    CHECK_EQUAL(sched_setaffinity(0, sizeof own, &own), 0); /* or it might move between two looks */
    CHECK(!fl_parker_may_spin(&parker, core, 1));
    CHECK(fl_parker_may_spin(&parker, core + 1, 1));
    CHECK(fl_parker_may_spin(&parker, -1, 1));
}

int main(void)
{
    test_thread_does_not_spin_on_the_core_that_the_holder_needs();
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
    test_thread_whose_mutex_was_unlocked_without_a_wake_is_woken();
#endif
    return 0;
}
