/* Which clock a tick is of, and how long one is. */
#include "machine/ticks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#endif

#define BASELINE_NS 10000000u

/* The kernel watches the TSC and gives it up as its clock when it finds it unfit; so its choice is the better
   test of the two. */
static bool counter_is_fit(void)
{
#if defined(__aarch64__)
    return true;
#elif defined(__x86_64__) && defined(__linux__)
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1u << 8)) {
        return false;
    }
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return read && strcmp(name, "tsc\n") == 0;
#else
    return false;
#endif
}

/* The clock says when it is over: a sleep that is interrupted, or not allowed, only makes it less restful. */
static uint64_t rate(void)
{
    fl_tick_anchor first = fl_ticks_anchor_by(true), second;
    struct timespec pause = {0, BASELINE_NS};
    do {
        (void)nanosleep(&pause, NULL);
        second = fl_ticks_anchor_by(true);
    } while (second.ns - first.ns < BASELINE_NS);
    uint64_t ticks = second.ticks - first.ticks, ns = second.ns - first.ns;
    return ticks ? (uint64_t)(((unsigned __int128)ns << 32) / ticks) : 0;
}

static void choose(void)
{
    if (counter_is_fit()) {
        uint64_t mult = rate();
        if (mult != 0) { /* else a counter that stands still, or runs above 4 GHz by a thousand times */
            fl_ticks_scale.mult = mult;
            fl_ticks_scale.counter = true;
        }
    }
}

void fl_ticks_prepare(void)
{
    /* A thread that comes while another is at it waits for the outcome. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, choose);
}
