/* Linux: affinity masks of any size, accounts per thread, futexes and eventfds. */
#define _GNU_SOURCE /* cpu_set_t of any size, RUSAGE_THREAD */

#include "platform/unix.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cores.h"
#include "core/fl_atomic.h"

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

bool fl_park_misses_signals(void)
{
    return syscall(SYS_gettid) == getpid(); /* the thread that the process began with */
}

/* The time is absolute and of the monotonic clock, so that nothing is lost by waiting again. */
fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    long status = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
                          deadline == FL_FOREVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (status == 0 || (errno != ETIMEDOUT && errno != EINTR)) {
        return FL_PARK_WOKEN;
    }
    return errno == EINTR ? FL_PARK_INTERRUPTED : FL_PARK_TIMED_OUT;
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

int fl_bell_open(int *bell)
{
    return *bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void fl_bell_close(int poll, int bell)
{
    (void)bell;
    close(poll);
}

void fl_bell_ring(int bell)
{
    int error = errno;
    eventfd_write(bell, 1); /* fails only when it has been rung 2^64 - 2 times since it was cleared */
    errno = error;
}

void fl_bell_clear(int poll)
{
    eventfd_t count;
    eventfd_read(poll, &count); /* fails when it was not rung, which is fine */
}
