#define _GNU_SOURCE /* RUSAGE_THREAD */

#include "gil/threads/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A file of the thread's, or what fits of it; "" where there is none. */
static void look_up(pid_t thread, const char *name, char *text, size_t size)
{
    char path[56];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)thread, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0) {
        (void)close(file);
    }
    text[got > 0 ? got : 0] = 0;
}

char fl_kernel_state(pid_t thread)
{
    char text[128];
    look_up(thread, "stat", text, sizeof text);
    const char *name_end = strrchr(text, ')'); /* "1234 (name) S ..."; the name is the program's own choice */
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : (char)0;
}

uint64_t fl_kernel_sleeps(pid_t thread)
{
    static const char name[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    look_up(thread, "status", text, sizeof text);
    const char *found = strstr(text, name);
    return found != NULL ? strtoull(found + sizeof name - 1, NULL, 10) : 0;
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec
                                            : 0;
}

uint64_t fl_kernel_cpu_ns(pid_t thread)
{
    return cpu_ns((clockid_t)((~(unsigned)thread << 3) | 6u)); /* the kernel's name for its CPU clock */
}

uint64_t fl_kernel_own_cpu_ns(void)
{
    return cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The kernel's struct sched_attr, in its first version. */
typedef struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} scheduling;

#define SHORTEST_SLICE_NS 100000

void fl_kernel_short_slices(void)
{
    scheduling own = {.size = sizeof own};
    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0 && own.policy == 0) {
        own.runtime = SHORTEST_SLICE_NS; /* of a thread without a policy of its own: how long a slice is */
        (void)syscall(SYS_sched_setattr, 0, &own, 0);
    }
}

fl_kernel_usage fl_kernel_own_usage(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_THREAD, &usage);
    return (fl_kernel_usage){
        .cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u
                  + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
        .sleeps = usage.ru_nvcsw,
    };
}
