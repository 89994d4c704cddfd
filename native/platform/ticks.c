/* Which clock a tick is of, and how long one is. */
#define _GNU_SOURCE /* clock_nanosleep */

#include "core/ticks.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define BASELINE_NS 10000000u

/* The kernel watches the TSC and gives it up as its clock when it finds it unfit; so its choice is the better
   test of the two. */
static bool counter_is_fit(void)
{
#if defined(__aarch64__)
    return true;
#elif defined(__x86_64__)
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

void fl_ticks_prepare(void)
{
    static bool prepared;
    if (prepared) {
        return;
    }
    prepared = true;
    if (!counter_is_fit()) {
        return;
    }
    fl_ticks_scale.counter = true;
    fl_tick_anchor first = fl_ticks_anchor();
    struct timespec pause = {0, BASELINE_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, &pause) != 0) {
    }
    fl_tick_anchor second = fl_ticks_anchor();
    uint64_t ticks = second.ticks - first.ticks, ns = second.ns - first.ns;
    uint64_t mult = ticks ? (uint64_t)(((unsigned __int128)ns << 32) / ticks) : 0;
    if (mult == 0) { /* a counter that stands still, or runs above 4 GHz by a thousand times */
        fl_ticks_scale.counter = false;
        return;
    }
    fl_ticks_scale.mult = mult;
}
