#include "gil/hooks/waits.h"

#include "gil/hooks/hot.h"
#include "gil/threads/kernel.h"
#include "gil/threads/registry.h"
#include "gil/threads/windows.h"

#ifndef FL_PROBE_REFUSAL

/* A thread that asks for the GIL again within this time after a forced drop has wanted it all the while:
   its way back is some hundred instructions, and a useful system call takes longer. The same holds for a
   thread that is later for want of a core: it has neither slept nor used more CPU time than this. */
#define BACK_AT_ONCE_NS 2000
#define SPENT_AT_MOST_US 20

static uint64_t back_at_once; /* ticks; written once */
static _Atomic uint64_t hooked; /* ticks: when the hooks were put in last */

void fl_waits_prepare(void)
{
    back_at_once = fl_ticks_from_ns(BACK_AT_ONCE_NS);
}

/* A thread may have noted a lock of the mutex that no take followed. If it locks the mutex for its next take
   before the hooks are in again, and then waits when they are, it finds that old note. */
void fl_waits_from_now_on(void)
{
    atomic_store_explicit(&hooked, fl_ticks_now(), memory_order_relaxed);
}

static void queue_up(fl_gil *gil, fl_seat *seat)
{
    seat->behind = NULL;
    seat->ahead = gil->last;
    *(gil->last ? &gil->last->behind : &gil->first) = seat;
    gil->last = seat;
    seat->waiting = true;
}

void fl_waits_end(fl_gil *gil, fl_seat *seat)
{
    *(seat->ahead ? &seat->ahead->behind : &gil->first) = seat->behind;
    *(seat->behind ? &seat->behind->ahead : &gil->last) = seat->ahead;
    seat->ahead = seat->behind = NULL;
    seat->waiting = false;
}

/* True if the thread has done nothing since its forced drop and the wait for another thread to take the
   GIL. */
static bool has_done_nothing(const fl_seat *seat)
{
    fl_kernel_usage usage = fl_kernel_own_usage();
    return usage.sleeps == seat->slept && usage.cpu_us - seat->spent_us <= SPENT_AT_MOST_US;
}

void fl_waits_look_at_self(fl_seat *seat)
{
    fl_kernel_usage usage = fl_kernel_own_usage();
    seat->spent_us = usage.cpu_us;
    seat->slept = usage.sleeps;
}

void fl_waits_forced_out(fl_gil *gil, fl_seat *seat)
{
    gil->forced_out += !seat->forced_out;
    seat->forced_out = true;
    fl_waits_look_at_self(seat);
}

void fl_waits_come_back(fl_gil *gil, fl_seat *seat)
{
    gil->forced_out -= seat->forced_out;
    seat->forced_out = false;
}

/* A window that was opened meanwhile, under the mutex, has counted the wait for another thread to take the
 * GIL. It could not count the wait that follows, nor one for the mutex: for all windows these begin no
 * earlier than the latest window.
 */
uint64_t fl_waits_wanted_since(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    uint64_t since = fl_registry_here.began;
    uint64_t opened = atomic_load_explicit(&fl_window_latest, memory_order_relaxed);
    fl_registry_here.began = 0;
    uint64_t until = atomic_load_explicit(&seat->switch_until, memory_order_relaxed); /* our own */
    uint64_t from = until ? atomic_load_explicit(&seat->switch_from, memory_order_relaxed) : seat->t_dropped;
    if (UNLIKELY(until || seat->forced_out)) {
        uint64_t back = since ? since : now, let_go = until ? until : from;
        atomic_store_explicit(&seat->switch_from, 0, memory_order_relaxed);
        atomic_store_explicit(&seat->switch_until, 0, memory_order_relaxed);
        fl_waits_come_back(gil, seat);
        if (opened <= let_go && (back < let_go + back_at_once || has_done_nothing(seat))) {
            return from;
        }
        seat->switch_apart += let_go - from;
    }
    uint64_t in = atomic_load_explicit(&hooked, memory_order_relaxed), earliest = opened > in ? opened : in;
    return UNLIKELY(since && since < earliest) ? earliest : since;
}

void fl_waits_begin(fl_gil *gil, fl_seat *seat)
{
    uint64_t now = fl_gil_now(gil), since = fl_waits_wanted_since(gil, seat, now);
    seat->t_want = since ? since : now;
    if (UNLIKELY(atomic_load_explicit(&gil->unseen, memory_order_relaxed)) && !fl_hooks_miss_waiters(gil)) {
        atomic_store_explicit(&gil->unseen, 0, memory_order_relaxed);
    }
    queue_up(gil, seat);
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->want(gil, seat, now);
    }
}

#endif
