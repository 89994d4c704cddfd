/* offcpu: how long the thread that holds a GIL has no core, and whether it sleeps by itself.
 *
 * The kernel says how long a thread has run, but asking costs a system call (250 ns here), ten times as
 * much as all else that is done for an uncontended take and drop, and under the GIL's mutex. So it is asked
 * only where that is little: when a thread takes the GIL whose last hold was of OFF_CPU_FROM_NS or more,
 * after a wait; after a hold of a millisecond in any case; and by a thread that begins to wait for a hold
 * that has lasted so long already, or asks for its end (another thread's clock can be read too). From then
 * on to the drop the time is known to about a microsecond, if the hold turns out to last OFF_CPU_FROM_NS or
 * more; of what lies before, and of shorter holds, nothing is known, and a core that was taken away makes a
 * hold long. `off_cpu_known` counts the time of which that is known. It is asked once more at the first
 * request: what a core that was taken away before it has cost is not the overrun's.
 *
 * A holder that has no core was preempted, or it sleeps: in a call into C that waits for something and does
 * not let go of the GIL meanwhile. Its state in /proc says which of the two; reading that takes some
 * microseconds. So it is read when a request has gone unanswered for LOOK_NS, and at every further request
 * after as long again. Each reading stands for the time off the CPU since the one before; the first also
 * for the known time before it, the last also for the rest of the hold. A preempted holder that has a core
 * again may be waiting for the mutex under which its state is read: then at most the time between two
 * readings is wrong.
 *
 * Everything here is done under the mutex.
 */
#pragma once

#include "gil/threads/gil.h"

void fl_off_cpu_prepare(void);

/* The present thread has taken the GIL: after a wait, or not. */
void fl_off_cpu_taken(fl_seat *seat, bool waited);

/* The present thread wants the GIL, or asks for it: it is not the holder, if there is one. */
void fl_off_cpu_wanted(const fl_gil *gil, uint64_t now);
void fl_off_cpu_asked(fl_gil *gil, uint64_t now);

/* Counts what the holder has been off the CPU for so far: so that a window which is opened or read within a
   hold divides that, too. */
void fl_off_cpu_settle(const fl_gil *gil, uint64_t now);

/* The present thread drops the GIL: seat->off_cpu and seat->asleep are those of the hold, and off_cpu_before
 * is that before the first request. False: they are not known. */
bool fl_off_cpu_dropped(fl_seat *seat, uint64_t now);

/* For how long a holder has had no core since it was first asked: as far as that was settled. */
static inline uint64_t fl_off_cpu_after(const fl_seat *seat)
{
    return seat->off_cpu > seat->off_cpu_before ? seat->off_cpu - seat->off_cpu_before : 0;
}
