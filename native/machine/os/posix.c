/* Any other Unix: what POSIX promises, which is neither affinity, nor accounts per thread, nor a way to sleep
   on a word. */
#include "machine/os/unix.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "machine/clock.h"
#include "machine/cores.h"
#include "machine/atomic.h"

int fl_cores_affinity(void)
{
    return fl_cores_online();
}

int64_t fl_timer_slack(void)
{
    return 0;
}

bool fl_timer_slack_set(int64_t ns)
{
    (void)ns;
    return false;
}

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    if (scope == FL_USAGE_THREAD) {
        return FL_USAGE_UNSUPPORTED;
    }
    fl_unix_rusage(scope == FL_USAGE_PROCESS ? RUSAGE_SELF : RUSAGE_CHILDREN, usage);
    return FL_USAGE_OK;
}

/* Sleepers by address. Two addresses may share a bed, so all in it are woken and look. */
#define BEDS 64

static struct bed {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
} beds[BEDS];

static pthread_once_t beds_made = PTHREAD_ONCE_INIT;

/* Also in a forked child, where other threads may have left them locked. */
static void make_beds(void)
{
    for (int i = 0; i < BEDS; i++) {
        pthread_mutex_init(&beds[i].mutex, NULL);
        pthread_cond_init(&beds[i].woken, NULL);
    }
}

static void make_beds_once(void)
{
    make_beds();
    pthread_atfork(NULL, NULL, make_beds);
}

static struct bed *bed_of(const fl_atomic(uint32_t) *word)
{
    pthread_once(&beds_made, make_beds_once);
    return &beds[((uintptr_t)word >> 4) * 2654435761u % BEDS];
}

/* See fl_park. */
bool fl_in_main_thread(void)
{
    return true;
}

bool fl_park_misses_signals(void)
{
    return false;
}

/* A condition does not tell of signals, so a sleeping thread checks for one every 20 ms. */
#define SLICE_NS 20000000

fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    struct bed *bed = bed_of(word);
    fl_park_result result = FL_PARK_WOKEN;
    pthread_mutex_lock(&bed->mutex);
    if (fl_load(word, acquire) == value) { /* pairs with the thread that changes it and unparks */
        int64_t now = fl_clock_now();
        int64_t sleep = deadline - now < SLICE_NS ? deadline - now : SLICE_NS;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until); /* the only clock that every system's conditions know */
        int64_t ns = until.tv_nsec + (sleep > 0 ? sleep : 0);
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        if (sleep <= 0) {
            result = FL_PARK_TIMED_OUT;
        } else if (pthread_cond_timedwait(&bed->woken, &bed->mutex, &until) == ETIMEDOUT) {
            result = fl_clock_now() >= deadline ? FL_PARK_TIMED_OUT : FL_PARK_INTERRUPTED;
        }
    }
    pthread_mutex_unlock(&bed->mutex);
    return result;
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    struct bed *bed = bed_of(word);
    pthread_mutex_lock(&bed->mutex);
    pthread_cond_broadcast(&bed->woken);
    pthread_mutex_unlock(&bed->mutex);
}
