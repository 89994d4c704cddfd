/* Linux: affinity masks of any size, accounts per thread, futexes, and process identities. */
#define _GNU_SOURCE /* cpu_set_t of any size, RUSAGE_THREAD */

#include "machine/os/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine/clock.h"
#include "machine/cores.h"
#include "machine/fork.h"
#include "machine/process.h"
#include "machine/segment.h"

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

int64_t fl_timer_slack(void)
{
    int ns = prctl(PR_GET_TIMERSLACK);
    return ns < 0 ? 0 : ns;
}

bool fl_timer_slack_set(int64_t ns)
{
    return prctl(PR_SET_TIMERSLACK, (unsigned long)ns) == 0;
}

bool fl_in_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

bool fl_park_misses_signals(void)
{
    return fl_in_main_thread();
}

/* The time is absolute and of the monotonic clock, so that nothing is lost by waiting again. */
static fl_park_result park(int operation, fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    long status = syscall(SYS_futex, word, operation, value, deadline == FL_FOREVER ? NULL : &until, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    if (status == 0 || (errno != ETIMEDOUT && errno != EINTR)) {
        return FL_PARK_WOKEN;
    }
    return errno == EINTR ? FL_PARK_INTERRUPTED : FL_PARK_TIMED_OUT;
}

fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    return park(FUTEX_WAIT_BITSET_PRIVATE, word, value, deadline);
}

fl_park_result fl_park_shared(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    return park(FUTEX_WAIT_BITSET, word, value, deadline);
}

uint32_t fl_unpark_shared(const fl_atomic(uint32_t) *word, uint32_t most)
{
    long woken = syscall(SYS_futex, word, FUTEX_WAKE, most > INT_MAX ? INT_MAX : (int)most);
    return woken > 0 ? (uint32_t)woken : 0;
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

/* What /proc says of a process: false: nothing. `file` is its number, or "self". */
struct status {
    int number;
    unsigned long long start;
    bool ended;
};

static bool read_status(const char *file, struct status *found)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", file);
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        return false;
    }
    ssize_t length = read(opened, text, sizeof text - 1);
    close(opened);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    /* The name in brackets may be anything, so what follows the last bracket. Field 3, the state, is
       next; field 20 says how many threads there are, and field 22 when it started (proc(5)). One whose
       first thread has ended looks like one that has ended, but for the others. */
    const char *field = strrchr(text, ')');
    char state;
    long threads;
    if (field == NULL || sscanf(text, "%d", &found->number) != 1 ||
        sscanf(field + 1,
               " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu",
               &state, &threads, &found->start) != 3) {
        return false;
    }
    found->ended = (state == 'Z' || state == 'X' || state == 'x') && threads <= 1;
    return true;
}

static uint64_t identity(const struct status *found)
{
    return (uint64_t)found->number << 32 | (uint32_t)found->start;
}

uint64_t fl_process_self(void)
{
    static fl_atomic(uint64_t) mine;
    static fl_atomic(uint32_t) generation; /* that `mine` is of */
    if (fl_load(&generation, acquire) != fl_fork_generation) { /* pairs with the release below */
        struct status found;
        if (!read_status("self", &found) || found.number != getpid()) { /* another space's /proc */
            return 0;
        }
        fl_store(&mine, identity(&found), relaxed); /* published with the generation */
        fl_store(&generation, fl_fork_generation, release);
    }
    return fl_load(&mine, relaxed);
}

bool fl_process_alive(uint64_t process)
{
    char number[16];
    struct status found;
    int error = errno;
    snprintf(number, sizeof number, "%d", fl_process_number(process));
    bool alive;
    if (read_status(number, &found)) {
        alive = !found.ended && identity(&found) == process;
    } else {
        alive = kill(fl_process_number(process), 0) == 0 || errno != ESRCH; /* /proc may hide others' */
    }
    errno = error;
    return alive;
}

uint64_t fl_process_space(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;
}

int fl_segment_reserve(int fd, size_t size)
{
    return posix_fallocate(fd, 0, (off_t)size);
}

int fl_segment_size(int fd, size_t *size)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return errno;
    }
    *size = (size_t)status.st_size;
    return 0;
}

void *fl_segment_map(int fd, size_t size)
{
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return found == MAP_FAILED ? NULL : found;
}

void fl_segment_unmap(void *map, size_t size)
{
    munmap(map, size);
}
