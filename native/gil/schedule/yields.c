#define _GNU_SOURCE

#include "gil/schedule/yields.h"

#include <time.h>

#include "gil/policy/policy.h"
#include "gil/interpreter/find.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

enum { NANOSLEEP, YIELD, YIELDS };

typedef union {
    int (*sleep)(clockid_t, int, const struct timespec *, struct timespec *);
    int (*yield)(void);
    void *address;
} call;

static fl_got_function yields[YIELDS] = {
    [NANOSLEEP] = {.name = "clock_nanosleep"},
    [YIELD] = {.name = "sched_yield"},
};

/* What stood in the table: the C library's own, or another library's hook. */
static call real[YIELDS];

static void yielding(void)
{
    fl_seat *seat = fl_registry_here.seat;
    if (seat && !seat->holding && seat->schedule) {
        fl_policy_yields(seat->schedule);
    }
}

static int hook_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec from = {0, 0};
    if (flags & TIMER_ABSTIME) {
        (void)clock_gettime(clock, &from);
    }
    if (time->tv_sec < from.tv_sec || (time->tv_sec == from.tv_sec && time->tv_nsec <= from.tv_nsec)) {
        yielding();
    }
    return real[NANOSLEEP].sleep(clock, flags, time, left);
}

static int hook_yield(void)
{
    yielding();
    return real[YIELD].yield();
}

void fl_yields_hook(void)
{
    static bool done;
    fl_got_object object;
    static const call hook[YIELDS] = {
        [NANOSLEEP] = {.sleep = hook_nanosleep},
        [YIELD] = {.yield = hook_yield},
    };

    if (done || !fl_got_find(fl_find_landmark(), &object, yields, YIELDS)) {
        return;
    }
    for (int i = 0; i < YIELDS; i++) { /* without them a yield is taken for a short wait: slower, not wrong */
        real[i].address = yields[i].real;
        if (yields[i].count && !yields[i].more && yields[i].real) {
            (void)fl_got_set(&yields[i], hook[i].address);
        }
    }
    done = true;
}

#endif
