/* The clock, the cores online and getrusage(): alike on every Unix. */
#include "platform/unix.h"

#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/cores.h"

/* The kernel counts the peak resident set in KiB, except on macOS. */
#ifdef __APPLE__
#define MAXRSS_PER_KB 1024
#else
#define MAXRSS_PER_KB 1
#endif

int64_t fl_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int fl_cores_online(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (int)online;
}

static int64_t nanoseconds(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

void fl_unix_rusage(int who, fl_usage *usage)
{
    struct rusage kernel = {0};
    getrusage(who, &kernel);
    usage->user_ns = nanoseconds(kernel.ru_utime);
    usage->system_ns = nanoseconds(kernel.ru_stime);
    usage->ctx_voluntary = kernel.ru_nvcsw;
    usage->ctx_involuntary = kernel.ru_nivcsw;
    usage->max_rss_kb = kernel.ru_maxrss / MAXRSS_PER_KB;
}
