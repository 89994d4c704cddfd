/* hot: what every hooked call of the interpreter reads first. For hooks.c, waits.c and install.c.
 *
 * Written with a GIL held, read at any time: a call that sees the old state is as if it had come a moment
 * earlier. Release and acquire: a call that reads an address also sees the record behind it, and one that
 * reads an observer or a scheduler sees what that has made ready.
 */
#pragma once

#include "gil/interpreter/find.h"
#include "gil/hooks/hooks.h"
#include "gil/threads/places.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

typedef struct {
    pthread_mutex_t *_Atomic mutex; /* of the first GIL, nearly always the only one */
    pthread_cond_t *_Atomic cond, *_Atomic switch_cond;
    fl_gil *_Atomic gil;
    atomic_bool more; /* there are others */
    atomic_bool resting; /* of the hooks only that of timedwait is in (fl_hooks_rest) */
    const fl_observer *_Atomic observer;
    const fl_scheduler *_Atomic scheduler;
    uint64_t long_hold; /* ticks; written once */
} fl_hot_state;

extern fl_hot_state fl_hot __attribute__((visibility("hidden")));

#define HOT(member) atomic_load_explicit(&fl_hot.member, memory_order_acquire)
#define HOT_SET(member, value) atomic_store_explicit(&fl_hot.member, value, memory_order_release)

static inline fl_gil *gil_by_mutex(pthread_mutex_t *mutex)
{
    if (LIKELY(mutex == HOT(mutex))) {
        return HOT(gil);
    }
    return UNLIKELY(HOT(more)) ? fl_places_find(FL_GIL_OF(mutex, mutex)) : NULL;
}

static inline fl_gil *gil_by_cond(pthread_cond_t *cond)
{
    if (LIKELY(cond == HOT(cond))) {
        return HOT(gil);
    }
    return UNLIKELY(HOT(more)) ? fl_places_find(FL_GIL_OF(cond, cond)) : NULL;
}

static inline fl_gil *gil_by_switch_cond(pthread_cond_t *cond)
{
    if (LIKELY(cond == HOT(switch_cond))) {
        return HOT(gil);
    }
    return UNLIKELY(HOT(more)) ? fl_places_find(FL_GIL_OF(switch_cond, cond)) : NULL;
}

/* This GIL is the first from now on. */
static inline void point_at(fl_gil *gil)
{
    HOT_SET(gil, gil);
    HOT_SET(mutex, &gil->py->mutex);
    HOT_SET(cond, &gil->py->cond);
    HOT_SET(switch_cond, &gil->py->switch_cond);
}

/* No GIL is the first. The record stays in memory for a call that has just compared the address. */
static inline void point_nowhere(void)
{
    HOT_SET(mutex, NULL);
    HOT_SET(cond, NULL);
    HOT_SET(switch_cond, NULL);
}

/* What stands in the interpreter's table in place of each function. */
typedef union {
    int (*mutex)(pthread_mutex_t *);
    int (*timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond)(pthread_cond_t *);
    int (*wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*init)(pthread_cond_t *, const pthread_condattr_t *);
    void *address;
} fl_hook;

extern const fl_hook fl_hooks_table[FL_FUNCTIONS]; /* hooks.c */
