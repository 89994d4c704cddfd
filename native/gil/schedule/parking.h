/* parking: how a thread waits for a GIL that is scheduled, and how it is woken.
 *
 * A waiter parks on a word of its own (a futex) and not on the GIL's condition. The word is one of these:
 *
 *     AWAKE     it will ask the policy before it sleeps
 *     SPINNING  the same, and it polls the word until then
 *     PARKED    it sleeps, or is about to: the thread that changes this must wake it
 *     GRANTED   the GIL is its own; `locked` has stayed set for it
 *
 * It changes to SPINNING, PARKED and GRANTED under the GIL's mutex, to AWAKE by its own thread, or by a kick.
 * So a grant is never lost: either its thread sees the word before it sleeps, or the futex does not let it
 * sleep, or it is woken. And should a wake-up be lost all the same, every sleep has an end.
 *
 * Wakes are made after the mutex is unlocked. The word may be gone by then, if its thread has already taken
 * the GIL and ended: a futex wake of an address that no thread sleeps on does nothing.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t word;
    bool one_core;    /* its thread may run on one core only, when it looked last */
    int64_t t_looked; /* when that was; 0: never */
} fl_parker;

/* Its own thread, or before a wake-up that makes the thread ask the policy again. */
void fl_parker_awake(fl_parker *parker);

/* Under the mutex. True: it sleeps, fl_parker_wake must follow. */
bool fl_parker_grant(fl_parker *parker);

/* Its thread is to ask the policy again. True: it sleeps, fl_parker_wake must follow. */
bool fl_parker_kick(fl_parker *parker);

/* Not under the mutex. */
void fl_parker_wake(fl_parker *parker);

/* Wakes one of the threads that sleep until the mutex is free. The thread that unlocked it is about to do
   so, but may have lost its core. */
void fl_parker_wake_at(pthread_mutex_t *mutex);

/* Sleeps for `ns` or until woken. The mutex is held before and after, and not meanwhile. Own thread. */
void fl_parker_park(fl_parker *parker, pthread_mutex_t *mutex, int64_t ns);

/* The same, spinning. Returns the longest time, in ns, for which the thread had no core. If a CPU quota was
   used up meanwhile, no thread may spin for a while. */
int64_t fl_parker_spin(fl_parker *parker, pthread_mutex_t *mutex, int64_t ns);

/* Whether there is a core to spin on while the holder works, which was on `core` last (-1: not known). Own
   thread; `now` in ns of fl_ticks_now(). */
bool fl_parker_may_spin(fl_parker *parker, int core, int64_t now);
