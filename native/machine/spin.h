/* look: how long who waits looks for what it waits for, before it sleeps.
 *
 * A core that falls asleep is woken late, by tens of microseconds: more than a short call takes, and who
 * wakes it pays for a system call besides. So it pays to look first, at most for as long as a wake-up takes.
 * Where that is in vain (calls are long, or others have the cores) it is tried ever more shortly, and then
 * only now and then. One thread at a time spins: others that wait at the same place sleep at once, and leave
 * the cores to threads that have something to do.
 *
 * Any thread. Nothing hangs on any of this but how soon a thread sleeps.
 */
#ifndef FL_MACHINE_SPIN_H
#define FL_MACHINE_SPIN_H

#include "machine/atomic.h"

#define FL_SPIN_MOST_NS 50000u
#define FL_SPIN_LEAST_NS 1000u
#define FL_SPIN_AGAIN 32 /* waits until one looks for the whole time again */

typedef struct {
    fl_atomic(uint32_t) busy;  /* a thread spins; or none is ever to */
    fl_atomic(uint32_t) ns;    /* how long the next one looks */
    fl_atomic(uint32_t) waits; /* since one looked for the whole time */
} fl_spin;

/* `usable`: how many cores there are: on a single one no thread spins: the awaited could not happen. */
void fl_spin_init(fl_spin *spin, int usable);
/* By who is about to sleep: for how many nanoseconds to look before. 0: not at all; otherwise fl_spin_end. */
uint32_t fl_spin_begin(fl_spin *spin);
void fl_spin_end(fl_spin *spin, uint32_t ns, bool found);

#endif
