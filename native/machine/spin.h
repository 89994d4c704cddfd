/* spin: how long a waiter spins before it sleeps.
 *
 * An idle core is woken tens of microseconds late: that is more than a short call takes, and the waking
 * thread pays for a system call besides. So a waiter spins first, for at most as long as a wake-up takes.
 * After a spin that failed (calls are long, or other threads have the cores) the next one is half as long,
 * down to none, and now and then a waiter spins for the whole time again. One thread at a time spins: others
 * that wait at the same place sleep at once, and leave the cores to threads that have work.
 *
 * Any thread. All of this decides how soon a thread sleeps, and nothing else.
 */
#pragma once

#include "machine/atomic.h"

#define FL_SPIN_MOST_NS 50000u
#define FL_SPIN_LEAST_NS 1000u
#define FL_SPIN_AGAIN 32 /* waits until one spins for the whole time again */

typedef struct {
    fl_atomic(uint32_t) busy;  /* a thread spins, or none ever may */
    fl_atomic(uint32_t) ns;    /* how long the next waiter spins */
    fl_atomic(uint32_t) waits; /* since one spun for the whole time */
} fl_spin;

/* `usable`: the number of cores. On a single core no thread spins, as it would only delay what it waits
   for. */
void fl_spin_init(fl_spin *spin, int usable);
/* For a thread that is about to sleep: for how many ns to spin first. 0: not at all; otherwise call
   fl_spin_end. */
uint32_t fl_spin_begin(fl_spin *spin);
void fl_spin_end(fl_spin *spin, uint32_t ns, bool found);
