/* macOS: sleeping on a word by ulock, accounts per thread by Mach, and which thread is the first.

   The calls __ulock_wait and __ulock_wake are not in Apple's headers; libc++ and Rust sleep by them, too,
   where the system is older than 14.4. Not yet run: compiled and linked against Apple's symbols only. */
#include "machine/os/unix.h"

#include <errno.h>
#include <mach/mach.h>
#include <pthread.h>

#include "machine/atomic.h"
#include "machine/clock.h"
#include "machine/cores.h"

#define COMPARE_AND_WAIT 1u
#define NO_ERRNO 0x01000000u /* the error is what is returned, negative */

int __ulock_wait(uint32_t operation, void *word, uint64_t value, uint32_t microseconds); /* 0: for ever */
int __ulock_wake(uint32_t operation, void *word, uint64_t value);

int fl_cores_affinity(void)
{
    return fl_cores_online();
}

static int64_t nanoseconds(time_value_t time)
{
    return (int64_t)time.seconds * 1000000000 + (int64_t)time.microseconds * 1000;
}

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    fl_unix_rusage(scope == FL_USAGE_CHILDREN ? RUSAGE_CHILDREN : RUSAGE_SELF, usage);
    if (scope == FL_USAGE_THREAD) {
        thread_basic_info_data_t info;
        mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
        if (thread_info(pthread_mach_thread_np(pthread_self()), THREAD_BASIC_INFO, (thread_info_t)&info,
                        &count) != KERN_SUCCESS) {
            return FL_USAGE_UNSUPPORTED;
        }
        usage->user_ns = nanoseconds(info.user_time);
        usage->system_ns = nanoseconds(info.system_time);
        usage->ctx_voluntary = usage->ctx_involuntary = 0;
    }
    return FL_USAGE_OK;
}

bool fl_in_main_thread(void)
{
    return pthread_main_np() == 1;
}

bool fl_park_misses_signals(void)
{
    return fl_in_main_thread();
}

/* The kernel's time-out has 32 bits of microseconds: a longer sleep ends early, which callers expect. */
fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    uint32_t microseconds = 0;
    if (deadline != FL_FOREVER) {
        int64_t left = (deadline - fl_clock_now() + 999) / 1000;
        if (left <= 0) {
            return fl_load(word, acquire) == value ? FL_PARK_TIMED_OUT : FL_PARK_WOKEN; /* with its change */
        }
        microseconds = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
    }
    int status = __ulock_wait(COMPARE_AND_WAIT | NO_ERRNO, (void *)word, value, microseconds);
    if (status == -EINTR) {
        return FL_PARK_INTERRUPTED;
    }
    return status == -ETIMEDOUT && fl_clock_now() >= deadline ? FL_PARK_TIMED_OUT : FL_PARK_WOKEN;
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    int status;
    do {
        status = __ulock_wake(COMPARE_AND_WAIT | NO_ERRNO, (void *)(uintptr_t)word, 0);
    } while (status == -EINTR);
}
