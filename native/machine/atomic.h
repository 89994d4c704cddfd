/* fl_atomic: the one header for atomics, spinning, yielding and parking.
 *
 * A file that says fl_load, fl_cas, fl_park and nothing else about other threads can be built twice:
 *
 * product  the C11 atomics, with the memory orders as written; parking is the platform's (a futex on Linux).
 * model    with -DFL_MODEL: every operation is first announced to a scheduler that runs the threads one at
 *          a time and tries the orders in which they can happen (native/tests/model/model.c). Memory is
 *          sequentially consistent there: a wrong order of accesses is found, a memory order that is too
 *          weak is not. Those are left to ThreadSanitizer, and to the rule that each order weaker than
 *          seq_cst names the operation it pairs with.
 *
 * The orders are written without their prefix: fl_load(&x, acquire).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/descriptor.h"

#ifdef FL_MODEL

void fl_model_point(void);

#define fl_atomic(T) __typeof__(T)
#define fl_load(p, order) (fl_model_point(), *(p))
#define fl_store(p, value, order) (fl_model_point(), (void)(*(p) = (value)))
#define fl_update_(p, value) \
    __extension__({ fl_model_point(); __typeof__(*(p)) old_ = *(p); *(p) = (value); old_; })
#define fl_exchange(p, value, order) fl_update_(p, value)
#define fl_fetch_add(p, value, order) fl_update_(p, old_ + (value))
#define fl_fetch_sub(p, value, order) fl_update_(p, old_ - (value))
#define fl_fetch_or(p, value, order) fl_update_(p, old_ | (value))
#define fl_fetch_and(p, value, order) fl_update_(p, old_ & (value))
#define fl_cas(p, expected, value, yes, no)                                                                 \
    __extension__({                                                                                        \
        fl_model_point();                                                                                  \
        bool same_ = *(p) == *(expected);                                                                  \
        if (same_) { *(p) = (value); } else { *(expected) = *(p); }                                        \
        same_;                                                                                             \
    })
#define FL_SPINS 0

#else

#include <stdatomic.h>

#define fl_atomic(T) _Atomic(T)
#define fl_load(p, order) atomic_load_explicit((p), memory_order_##order)
#define fl_store(p, value, order) atomic_store_explicit((p), (value), memory_order_##order)
#define fl_exchange(p, value, order) atomic_exchange_explicit((p), (value), memory_order_##order)
#define fl_fetch_add(p, value, order) atomic_fetch_add_explicit((p), (value), memory_order_##order)
#define fl_fetch_sub(p, value, order) atomic_fetch_sub_explicit((p), (value), memory_order_##order)
#define fl_fetch_or(p, value, order) atomic_fetch_or_explicit((p), (value), memory_order_##order)
#define fl_fetch_and(p, value, order) atomic_fetch_and_explicit((p), (value), memory_order_##order)
/* Strong: false means that *expected was not there, and now holds what was. */
#define fl_cas(p, expected, value, yes, no)                                                                 \
    atomic_compare_exchange_strong_explicit((p), (expected), (value), memory_order_##yes, memory_order_##no)
/* How often a short lock is tried before its thread sleeps: about as long as the longest holder needs. */
#define FL_SPINS 60

#endif

static inline void fl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

typedef enum {
    FL_PARK_WOKEN,       /* by fl_unpark, because the word had another value, or for no reason */
    FL_PARK_TIMED_OUT,   /* the deadline has passed */
    FL_PARK_INTERRUPTED, /* there may have been a signal: see to it, then park again */
} fl_park_result;

/* No deadline. */
#define FL_FOREVER INT64_MAX

/* Sleeps while *word is `value`, until fl_unpark(word) or the deadline, a time of fl_clock_now(). The check
   and the falling asleep are one step for a thread that changes the word and then unparks. Blocks: a thread
   of Python is to be detached. Implemented by machine/os/, and by the model. */
fl_park_result fl_park(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline);

/* Wakes one thread that is parked on this address, if there is one. The address is a name only and is not
   read: what was there may be gone, and a thread that parks on its next use may be woken for no reason. */
void fl_unpark(const fl_atomic(uint32_t) *word);

/* The kernel's, between processes: as fl_park, and fl_unpark for so many, which says how many slept. */
fl_park_result fl_park_shared(fl_atomic(uint32_t) *word, uint32_t value, int64_t deadline);
uint32_t fl_unpark_shared(const fl_atomic(uint32_t) *word, uint32_t most);

/* Whether this thread runs the handlers of signals, and a sleep of it may not be interrupted by one: that
   which came in the instant before, or which another thread received. */
bool fl_park_misses_signals(void);

/* Whether the process began, or was forked, with this thread: Python runs the handlers of signals in it.
   Where the system does not tell, true. */
bool fl_in_main_thread(void);

/* What another thread's event loop polls to be woken: a pipe, or a socket where loops poll nothing else. */
typedef struct {
    fl_descriptor poll, ring; /* its ends; of a socket, the same */
} fl_wakeup;

/* False: errno says why. */
bool fl_wakeup_open(fl_wakeup *wakeup);
void fl_wakeup_close(fl_wakeup *wakeup);
void fl_wakeup_ring(const fl_wakeup *wakeup);
/* Silences it again, before what it announced is looked at. */
void fl_wakeup_clear(const fl_wakeup *wakeup);

/* A lock for a few dozen instructions (no system call, no Python, no second lock of its kind inside): the
   three-state futex mutex of Ulrich Drepper, "Futexes are tricky" (2011),
   https://www.akkadia.org/drepper/futex.pdf. It parks, because the holder may have been preempted by a thread
   of higher priority that would otherwise spin for ever. Zero is free. */
typedef fl_atomic(uint32_t) fl_mutex;

static inline void fl_mutex_lock(fl_mutex *mutex)
{
    for (int i = 0; i <= FL_SPINS; i++) {
        uint32_t free = 0;
        if (fl_cas(mutex, &free, 1, acquire, relaxed)) { /* pairs with fl_mutex_unlock */
            return;
        }
        fl_pause();
    }
    while (fl_exchange(mutex, 2, acquire) != 0) { /* pairs with fl_mutex_unlock */
        fl_park(mutex, 2, FL_FOREVER);
    }
}

static inline void fl_mutex_unlock(fl_mutex *mutex)
{
    if (fl_exchange(mutex, 0, release) == 2) { /* pairs with fl_mutex_lock */
        fl_unpark(mutex);
    }
}

/* Of what has a lock only once it is shared: NULL is none. */
static inline void fl_mutex_lock_if(fl_mutex *mutex)
{
    if (mutex != NULL) {
        fl_mutex_lock(mutex);
    }
}

static inline void fl_mutex_unlock_if(fl_mutex *mutex)
{
    if (mutex != NULL) {
        fl_mutex_unlock(mutex);
    }
}
