#define _GNU_SOURCE

#include "gil/schedule/parking.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gil/policy/constants.h"
#include "machine/cores.h"
#include "machine/quota.h"
#include "machine/ticks.h"

enum { AWAKE, SPINNING, PARKED, GRANTED };

static _Atomic int64_t calm_until, asked_at = -FL_GONE_EVERY_NS;
static _Atomic uint64_t throttled; /* what fl_quota_throttled() said last */

void fl_parker_awake(fl_parker *parker)
{
    atomic_store(&parker->word, AWAKE);
}

bool fl_parker_grant(fl_parker *parker)
{
    return atomic_exchange(&parker->word, GRANTED) == PARKED;
}

bool fl_parker_kick(fl_parker *parker)
{
    uint32_t was = PARKED;
    if (atomic_compare_exchange_strong(&parker->word, &was, AWAKE)) {
        return true;
    }
    was = SPINNING;
    (void)atomic_compare_exchange_strong(&parker->word, &was, AWAKE);
    return false;
}

void fl_parker_wake(fl_parker *parker)
{
    (void)syscall(SYS_futex, &parker->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void fl_parker_wake_at(pthread_mutex_t *mutex)
{
    (void)syscall(SYS_futex, &mutex->__data.__lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); /* glibc's word */
}

void fl_parker_park(fl_parker *parker, pthread_mutex_t *mutex, int64_t ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    atomic_store(&parker->word, PARKED);
    pthread_mutex_unlock(mutex);
    (void)syscall(SYS_futex, &parker->word, FUTEX_WAIT_PRIVATE, PARKED, &timeout, NULL, 0);
    pthread_mutex_lock(mutex);
    (void)fl_parker_kick(parker);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

static void look_for_a_quota(int64_t now)
{
    if (now - atomic_load(&asked_at) >= FL_GONE_EVERY_NS) {
        atomic_store(&asked_at, now);
        uint64_t times = fl_quota_throttled("");
        if (times > atomic_exchange(&throttled, times)) {
            atomic_store(&calm_until, now + FL_GONE_CALM_NS);
        }
    }
}

int64_t fl_parker_spin(fl_parker *parker, pthread_mutex_t *mutex, int64_t ns)
{
    uint64_t now = fl_ticks_now(), until = now + fl_ticks_from_ns((uint64_t)ns), gap = 0;
    uint64_t before = now; /* a clock that steps back ends the spinning */

    atomic_store(&parker->word, SPINNING);
    pthread_mutex_unlock(mutex);
    while (atomic_load_explicit(&parker->word, memory_order_relaxed) == SPINNING && now < until
           && now >= before) {
        relax();
        before = now;
        now = fl_ticks_now();
        gap = now > before + gap ? now - before : gap;
    }
    int64_t gone = (int64_t)fl_ticks_to_ns(gap);
    if (gone >= FL_GONE_NS) {
        look_for_a_quota((int64_t)fl_ticks_to_ns(now));
    }
    pthread_mutex_lock(mutex);
    (void)fl_parker_kick(parker);
    return gone;
}

bool fl_parker_may_spin(fl_parker *parker, int core, int64_t now)
{
    if (parker->t_looked == 0 || now - parker->t_looked > FL_CORES_NS) {
        parker->one_core = fl_cores_affinity() < 2; /* that may change at any time */
        parker->t_looked = now;
    }
    if (core == sched_getcpu()) { /* the holder woke this thread, and lost its core to it */
        return false;
    }
    return !parker->one_core && now >= atomic_load_explicit(&calm_until, memory_order_relaxed);
}
