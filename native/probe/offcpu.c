#include "probe/offcpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/hooks.h"

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

static uint64_t cpu_time(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec
                                            : 0;
}

/* The kernel's name for the CPU clock of a thread of this process. */
static clockid_t clock_of(pid_t native_id)
{
    return (clockid_t)((~(unsigned)native_id << 3) | 6u);
}

/* Whether a thread of this process sleeps: waits for something other than a core. */
static bool is_asleep(pid_t native_id)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", (long)native_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const char *name_end = strrchr(text, ')'); /* the name before it is the program's own choice */
    return name_end && (strncmp(name_end, ") S", 3) == 0 || strncmp(name_end, ") D", 3) == 0);
}

static void mark(fl_seat *seat, clockid_t clock)
{
    seat->cpu_ns = cpu_time(clock);
    seat->cpu_ticks = fl_ticks_now();
    seat->marked = seat->cpu_ns != 0;
}

static void begin(fl_seat *seat, clockid_t clock)
{
    mark(seat, clock);
    seat->off_cpu = seat->asleep = 0;
    seat->sleeps = false;
}

/* Counts the time off the CPU from the mark to `now`. No more than lies between them: the thread that reads
   the two clocks may itself lose its core between one and the other, when the hold that is counted is over.
 */
static void count(fl_seat *seat, clockid_t clock, uint64_t now)
{
    uint64_t span = now > seat->cpu_ticks ? now - seat->cpu_ticks : 0, ns = cpu_time(clock);
    uint64_t passed = fl_ticks_to_ns(fl_ticks_now() - seat->cpu_ticks), ran = ns - seat->cpu_ns;
    uint64_t off = passed > ran ? fl_ticks_from_ns(passed - ran) : 0;
    off = off < span ? off : span;
    uint64_t asleep = seat->sleeps ? off : 0;
    seat->tally.off_cpu += off;
    seat->tally.off_cpu_known += span;
    seat->tally.asleep += asleep;
    seat->off_cpu += off;
    seat->asleep += asleep;
}

void fl_off_cpu_settle(const fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && holder->marked) {
        clockid_t clock = clock_of(holder->thread->native_id);
        count(holder, clock, now);
        mark(holder, clock);
    }
}

void fl_off_cpu_taken(fl_seat *seat, bool waited)
{
    if (seat->held >= (waited ? limits.from : limits.long_hold)) {
        begin(seat, CLOCK_THREAD_CPUTIME_ID);
    }
}

void fl_off_cpu_wanted(const fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && !holder->marked && now >= holder->t_acquired + limits.from) {
        begin(holder, clock_of(holder->thread->native_id));
    }
}

void fl_off_cpu_asked(fl_gil *gil, uint64_t now)
{
    fl_seat *holder = gil->holder;
    if (holder && !holder->marked) {
        begin(holder, clock_of(holder->thread->native_id));
    } else if (holder && now >= gil->t_request + limits.look && now >= gil->t_look + limits.look) {
        gil->t_look = now;
        holder->sleeps = is_asleep(holder->thread->native_id);
        fl_off_cpu_settle(gil, now);
    }
}

bool fl_off_cpu_dropped(fl_seat *seat, uint64_t now)
{
    if (seat->marked && now >= seat->cpu_ticks + limits.from) {
        count(seat, CLOCK_THREAD_CPUTIME_ID, now);
        return true;
    }
    return seat->marked && seat->off_cpu;
}

#endif
