/* herald: a thread that sleeps on a word of shared memory (shm.h) in the place of a task, which cannot.
 *
 * What can wake a loop in another process is something that the kernel knows by a number of that process,
 * as an eventfd, and a word is not. So where a task has to wait, one thread of its process sleeps on the
 * word, knows no Python, and gives one permit to a cell of this process when there may be something: from
 * there on it is the wait of a task like any other. One herald serves one word, and one wait at a time:
 * tasks stand in a line for it. It is started when a task first has to wait, and stays until the primitive
 * goes from its process.
 */
#ifndef FL_CORE_HERALD_H
#define FL_CORE_HERALD_H

#include "core/cell.h"
#include "core/shm.h"

typedef struct {
    fl_mutex lock;
    fl_atomic(uint32_t) generation;
    fl_atomic(uint32_t) work; /* what it sleeps on while nobody waits */
    uint32_t seen, looks, forks;
    bool armed, runs, over;
    fl_shm_turn *turn;
    fl_cell *bell;
    /* Constant, and set by who has it. Whether trying might succeed; and that the thread has ended. */
    bool (*worth)(void *owner, fl_shm_turn *turn);
    void (*gone)(void *owner);
    void *owner;
} fl_herald;

typedef enum { FL_HERALD_WAITS, FL_HERALD_STARTED, FL_HERALD_FAILED } fl_herald_result;

/* Rings `bell` (which is kept) once the turn is not `seen` any more, or there is something nevertheless.
   FL_HERALD_STARTED: a thread was started, and calls `gone` at its end. Takes a mutex. */
fl_herald_result fl_herald_arm(fl_herald *herald, fl_shm_turn *turn, uint32_t seen, fl_cell *bell);
/* Who waited does not any more; a wake-up that came meanwhile is passed on. */
void fl_herald_disarm(fl_herald *herald);
/* For good. The thread ends within 64 ms. */
void fl_herald_end(fl_herald *herald);

#endif
