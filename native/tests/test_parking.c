/* A thread that sleeps until a mutex is free, and that no other thread wakes. */
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

int main(void)
{
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
    test_thread_whose_mutex_was_unlocked_without_a_wake_is_woken();
#endif
    return 0;
}
