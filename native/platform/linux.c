/* Linux: affinity masks of any size, and accounts per thread. */
#define _GNU_SOURCE /* cpu_set_t of any size, RUSAGE_THREAD */

#include "platform/unix.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "core/cores.h"

int fl_cores_affinity(void)
{
    /* The kernel refuses a mask that is shorter than its own, and does not say how long that is. */
    for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
        cpu_set_t *mask = CPU_ALLOC((size_t)bits);
        if (mask == NULL) {
            break;
        }
        size_t size = CPU_ALLOC_SIZE((size_t)bits);
        int status = sched_getaffinity(0, size, mask);
        int error = errno;
        int count = status == 0 ? CPU_COUNT_S(size, mask) : 0;
        CPU_FREE(mask);
        if (count > 0) {
            return count;
        }
        if (error != EINVAL) {
            break;
        }
    }
    return fl_cores_online();
}

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    static const int who[] = {
        [FL_USAGE_THREAD] = RUSAGE_THREAD,
        [FL_USAGE_PROCESS] = RUSAGE_SELF,
        [FL_USAGE_CHILDREN] = RUSAGE_CHILDREN,
    };
    if (scope == FL_USAGE_THREAD) {
        /* A running thread's account is brought up to date at the scheduler's tick, and getrusage() does
           not wait for that, as it does for a process; reading the thread's CPU clock does it at once. */
        struct timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    fl_unix_rusage(who[scope], usage);
    return FL_USAGE_OK;
}
