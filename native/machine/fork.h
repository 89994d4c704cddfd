/* fork: in which process this is, and what a fork leaves locked. */
#pragma once

#include "machine/atomic.h"

/* Counts the processes that this one was forked from, since fl_fork_happened is called in each. */
extern uint32_t fl_fork_generation;

/* Held while something is put in order after a fork: one at a time. */
extern fl_mutex fl_fork_repairs;

#ifdef FL_MODEL /* changes while one thread is left: more orders to try would find nothing more */
#define FL_LOAD_GENERATION(generation) (*(generation))
#else
#define FL_LOAD_GENERATION(generation) fl_load(generation, acquire)
#endif

/* In a forked child, once, before anything else here is used. */
void fl_fork_happened(void);

/* Frees a mutex once in a forked child, where a thread that does not exist may have held it. */
void fl_fork_unlock(fl_atomic(uint32_t) *generation, fl_mutex *mutex);
