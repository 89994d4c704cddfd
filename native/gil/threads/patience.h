/* patience: locks that threads of the program hold for moments, for a thread that must not wait for one that
 * lost its core meanwhile.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "machine/ticks.h"

#define FL_FOREVER UINT64_MAX

/* Lets another thread run, be it one of a lower priority of a real-time class, for which sched_yield() does
   nothing. */
static inline void fl_step_aside(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* False: it was still locked at `until`, in ticks. Until then the mutex is tried now and then, so that the
   thread that unlocks it has none to wake. */
static inline bool fl_lock_until(pthread_mutex_t *mutex, uint64_t until)
{
    if (until == FL_FOREVER) {
        pthread_mutex_lock(mutex);
        return true;
    }
    while (pthread_mutex_trylock(mutex) != 0) {
        if (fl_ticks_now() >= until) {
            return false;
        }
        fl_step_aside();
    }
    return true;
}
