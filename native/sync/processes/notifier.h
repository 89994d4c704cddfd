/* notifier: a thread that sleeps on a word of shared memory (shm.h) in the place of a task, which cannot.
 *
 * What can wake a loop in another process is something that the kernel knows by a number of that process,
 * as a pipe, and a word is not. So where a task has to wait, one thread of its process sleeps on the
 * word, knows no Python, and gives one permit to a wait queue of this process when there may be something:
 * from there on it is the wait of a task like any other. One notifier serves one word, and one wait at a
 * time: tasks stand in a line for it. It is started when a task first has to wait, and stays until the
 * primitive goes from its process.
 */
#pragma once

#include "sync/wait/waitq.h"
#include "sync/processes/shm.h"

typedef struct {
    fl_mutex lock;
    fl_atomic(uint32_t) generation;
    fl_atomic(uint32_t) work; /* what it sleeps on while no task waits */
    uint32_t seen, looks, forks;
    bool armed, runs, over;
    fl_shm_eventcount *eventcount;
    fl_waitq *wakeup;
    /* Constant, and set by its owner. Whether trying might succeed; and that the thread has ended. */
    bool (*ready)(void *owner, fl_shm_eventcount *eventcount);
    void (*gone)(void *owner);
    void *owner;
} fl_notifier;

typedef enum { FL_NOTIFIER_WAITS, FL_NOTIFIER_STARTED, FL_NOTIFIER_FAILED } fl_notifier_result;

/* Rings `wakeup` (which is kept) once the turn is not `seen` any more, or there is something nevertheless.
   FL_NOTIFIER_STARTED: a thread was started, and calls `gone` at its end. Takes a mutex. */
fl_notifier_result fl_notifier_arm(fl_notifier *notifier, fl_shm_eventcount *eventcount, uint32_t seen,
                                   fl_waitq *wakeup);
/* The task no longer waits; a wake-up that came meanwhile is passed on. */
void fl_notifier_disarm(fl_notifier *notifier);
/* For good. The thread ends within 64 ms. */
void fl_notifier_end(fl_notifier *notifier);
