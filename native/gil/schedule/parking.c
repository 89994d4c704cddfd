#define _GNU_SOURCE

#include "gil/schedule/parking.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine/cores.h"
#include "machine/ticks.h"

enum { AWAKE, SPINNING, PARKED, GRANTED };

/* How long the number of cores that a thread may use is taken to stay the same. */
#define LOOK_NS 10000000

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
    pthread_mutex_lock(mutex);
    (void)fl_parker_kick(parker);
    return (int64_t)fl_ticks_to_ns(gap);
}

bool fl_parker_may_spin(fl_parker *parker, int64_t now)
{
    if (parker->t_looked == 0 || now - parker->t_looked > LOOK_NS) {
        parker->one_core = fl_cores_affinity() < 2; /* that may change at any time */
        parker->t_looked = now;
    }
    return !parker->one_core;
}
