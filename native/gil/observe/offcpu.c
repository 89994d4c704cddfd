#include "gil/observe/offcpu.h"

#include "gil/hooks/hooks.h"
#include "gil/threads/kernel.h"

#ifndef FL_PROBE_REFUSAL

#define OFF_CPU_FROM_NS 50000
#define LOOK_NS 4000000 /* under the usual switch interval: every request but the first finds it passed */

static struct {
    uint64_t from, long_hold, look; /* ticks */
} limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

void fl_off_cpu_prepare(void)
{
    limits.from = fl_ticks_from_ns(OFF_CPU_FROM_NS);
    limits.long_hold = fl_ticks_from_ns(FL_LONG_HOLD_NS);
    limits.look = fl_ticks_from_ns(LOOK_NS);
}

static uint64_t cpu_time_of(const fl_seat *seat)
{
    return fl_kernel_cpu_ns(seat->thread->native_id);
}

static void mark(fl_seat *seat, uint64_t cpu_ns)
{
    seat->cpu_ns = cpu_ns;
    seat->cpu_ticks = fl_ticks_now();
    seat->marked = seat->cpu_ns != 0;
}

static void begin(fl_seat *seat, uint64_t cpu_ns)
{
    mark(seat, cpu_ns);
    seat->off_cpu = seat->asleep = seat->off_cpu_before = 0;
    seat->sleeps = false;
}

static uint64_t since_mark(const fl_seat *seat, uint64_t now)
{
    return now > seat->cpu_ticks ? now - seat->cpu_ticks : 0;
}

/* The time off the CPU from the mark to `now`. No more than lies between them: the thread that reads the two
   clocks may itself lose its core between one and the other, when the hold that is counted is over. */
static uint64_t off_since_mark(const fl_seat *seat, uint64_t cpu_ns, uint64_t now)
{
    uint64_t passed = fl_ticks_to_ns(fl_ticks_now() - seat->cpu_ticks), ran = cpu_ns - seat->cpu_ns;
    uint64_t off = passed > ran ? fl_ticks_from_ns(passed - ran) : 0, span = since_mark(seat, now);
    return off < span ? off : span;
}

static void count(fl_seat *seat, uint64_t cpu_ns, uint64_t now)
{
    uint64_t off = off_since_mark(seat, cpu_ns, now);
    uint64_t asleep = seat->sleeps ? off : 0;
    seat->tally.off_cpu += off;
    seat->tally.off_cpu_known += since_mark(seat, now);
    seat->tally.asleep += asleep;
    seat->off_cpu += off;
    seat->asleep += asleep;
}

void fl_off_cpu_settle(const fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && holder->marked) {
        uint64_t cpu_ns = cpu_time_of(holder);
        count(holder, cpu_ns, now);
        mark(holder, cpu_ns);
    }
}

void fl_off_cpu_taken(fl_seat *seat, bool waited)
{
    if (seat->held >= (waited ? limits.from : limits.long_hold)) {
        begin(seat, fl_kernel_own_cpu_ns());
    }
}

void fl_off_cpu_wanted(const fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && !holder->marked && now >= holder->t_acquired + limits.from) {
        begin(holder, cpu_time_of(holder));
    }
}

void fl_off_cpu_asked(fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && !holder->marked) {
        begin(holder, cpu_time_of(holder));
    } else if (holder && now == gil->t_request) {
        /* Only read: of the time before it, a later request says whether the holder slept. */
        holder->off_cpu_before = holder->off_cpu + off_since_mark(holder, cpu_time_of(holder), now);
    } else if (holder && now >= gil->t_request + limits.look && now >= gil->t_look + limits.look) {
        gil->t_look = now;
        char state = fl_kernel_state(holder->thread->native_id);
        holder->sleeps = state == 'S' || state == 'D';
        fl_off_cpu_settle(gil, now);
    }
}

bool fl_off_cpu_dropped(fl_seat *seat, uint64_t now)
{
    if (seat->marked && now >= seat->cpu_ticks + limits.from) {
        count(seat, fl_kernel_own_cpu_ns(), now);
        return true;
    }
    return seat->marked && seat->off_cpu;
}

#endif
