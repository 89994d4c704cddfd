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

fl_usage_result fl_usage_read(fl_usage_scope scope, fl_usage *usage)
{
    if (scope == FL_USAGE_THREAD) {
        return FL_USAGE_UNSUPPORTED;
    }
    fl_unix_rusage(scope == FL_USAGE_PROCESS ? RUSAGE_SELF : RUSAGE_CHILDREN, usage);
    return FL_USAGE_OK;
}

/* Parked threads by address. Two addresses may share a bucket, so all its threads are woken and check their
   own word. */
#define BUCKETS 64

static struct bucket {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
} buckets[BUCKETS];

static pthread_once_t buckets_made = PTHREAD_ONCE_INIT;

/* Also in a forked child, where other threads may have left them locked. */
static void make_buckets(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&buckets[i].mutex, NULL);
        pthread_cond_init(&buckets[i].woken, NULL);
    }
}

static void make_buckets_once(void)
{
    make_buckets();
    pthread_atfork(NULL, NULL, make_buckets);
}

static struct bucket *bucket_of(const fl_atomic(uint32_t) *word)
{
    pthread_once(&buckets_made, make_buckets_once);
    return &buckets[((uintptr_t)word >> 4) * 2654435761u % BUCKETS];
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

/* A condition variable does not report signals, so a sleeping thread checks for one every 20 ms. */
#define SLICE_NS 20000000

fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline)
{
    struct bucket *bucket = bucket_of(word);
    fl_park_result result = FL_PARK_WOKEN;
    pthread_mutex_lock(&bucket->mutex);
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
        } else if (pthread_cond_timedwait(&bucket->woken, &bucket->mutex, &until) == ETIMEDOUT) {
            result = fl_clock_now() >= deadline ? FL_PARK_TIMED_OUT : FL_PARK_INTERRUPTED;
        }
    }
    pthread_mutex_unlock(&bucket->mutex);
    return result;
}

void fl_unpark(const fl_atomic(uint32_t) *word)
{
    struct bucket *bucket = bucket_of(word);
    pthread_mutex_lock(&bucket->mutex);
    pthread_cond_broadcast(&bucket->woken);
    pthread_mutex_unlock(&bucket->mutex);
}
