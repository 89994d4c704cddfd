#include "gil/hooks/hooks.h"

#include <errno.h>

#include "gil/interpreter/find.h"
#include "gil/hooks/hot.h"
#include "gil/threads/registry.h"
#include "gil/threads/windows.h"
#include "gil/hooks/waits.h"

#ifndef FL_PROBE_REFUSAL

fl_hot_state fl_hot;

/* Addresses of conditions that belong to no GIL, so that a signal of one need not be searched for again. */
#define STRANGERS 256
static pthread_cond_t *_Atomic strangers[STRANGERS];

static inline size_t stranger_place(const pthread_cond_t *cond)
{
    return (size_t)(((uintptr_t)cond >> 4) * 0x9E3779B97F4A7C15u >> 56) % STRANGERS;
}

/* An interpreter's own GIL comes into use again (stir), or becomes idle (rest): see gil.h. */
static void stir(fl_gil *gil)
{
    pthread_mutex_lock(&gil->life);
    gil->idle = false;
    pthread_mutex_unlock(&gil->life);
}

static inline void rest(fl_gil *gil)
{
    if (UNLIKELY(gil->index != 0) && gil->first == NULL) {
        pthread_mutex_lock(&gil->life);
        gil->idle = true;
        pthread_mutex_unlock(&gil->life);
    }
}

/* Under the mutex, like what it is called for. */
static inline fl_seat *seat_at(fl_gil *gil)
{
    if (UNLIKELY(gil->idle)) {
        stir(gil);
    }
    fl_seat *seat = fl_registry_here.seat;
    return LIKELY(seat != NULL && fl_seat_gil(seat) == gil) ? seat : fl_registry_seat(gil);
}

/* ---- Taking and dropping */

static int acquired(fl_gil *gil)
{
    pthread_cond_t *cond = &gil->py->switch_cond;
    fl_seat *seat = seat_at(gil);
    if (UNLIKELY(seat == NULL)) {
        gil->holder = NULL;
        return fl_find_real.signal(cond);
    }
    uint64_t now = fl_gil_now(gil), since = 0;
    if (UNLIKELY(seat->waiting)) {
        since = seat->t_want;
        fl_waits_end(gil, seat);
    } else if (UNLIKELY(fl_registry_here.began | seat->forced_out
                        | atomic_load_explicit(&seat->switch_until, memory_order_relaxed))) {
        since = fl_waits_wanted_since(gil, seat, now);
    }
    if (UNLIKELY(gil->holder != NULL)) {
        gil->holder->holding = false; /* dropped while the hooks were not in */
    }
    seat->holding = true;
    seat->marked = false;
    seat->t_acquired = now;
    gil->t_request = 0;
    gil->holder = seat;
    const fl_observer *observer = HOT(observer);
    if (observer) {
        seat->tally.acquisitions++;
        if (UNLIKELY(since || gil->ring || seat->held >= fl_hot.long_hold || seat->switch_apart)) {
            observer->acquired(gil, seat, since, now);
        }
    }
    gil->dropper = NULL;
    gil->holder_before = seat->serial;
    const fl_scheduler *scheduler = HOT(scheduler);
    if (UNLIKELY(scheduler != NULL) && scheduler->acquired(gil, seat, now)) {
        return 0;
    }
    return fl_find_real.signal(cond);
}

static void count_hold(const fl_observer *observer, fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_tally *tally = &seat->tally;
    uint64_t held = now - seat->t_acquired;
    seat->held = held;
    if (observer == NULL) {
        return;
    }
    tally->held += held;
    fl_window_note(seat, FL_MAXIMUM_HELD, seat->t_acquired, now);
    tally->held_histogram[fl_histogram_bucket(fl_ticks_to_ns(held))]++;
    if (UNLIKELY(gil->t_request)) {
        tally->forced_drops++;
    } else {
        tally->voluntary_drops++;
    }
    if (UNLIKELY(gil->first || gil->forced_out || gil->t_request || gil->ring || seat->marked)) {
        observer->dropped(gil, seat, now);
    }
}

static int dropped(fl_gil *gil)
{
    pthread_cond_t *cond = &gil->py->cond;
    fl_seat *seat = seat_at(gil);
    if (UNLIKELY(seat == NULL)) {
        gil->holder = NULL;
        rest(gil);
        return fl_find_real.signal(cond);
    }
    const fl_observer *observer = HOT(observer);
    const fl_scheduler *scheduler = HOT(scheduler);
    if (observer == NULL && scheduler != NULL && scheduler->let_go(gil, seat)) {
        seat->holding = false;
        gil->holder = NULL;
        rest(gil);
        return fl_find_real.signal(cond);
    }
    uint64_t now = fl_gil_now(gil);
    bool forced = gil->t_request != 0;
    if (LIKELY(seat->holding)) { /* else it took the GIL before the hooks were in */
        count_hold(observer, gil, seat, now);
    }
    seat->holding = false;
    seat->t_dropped = now;
    gil->holder = NULL;
    gil->dropper = seat;
    if (UNLIKELY(forced)) {
        fl_waits_forced_out(gil, seat);
    }
    gil->t_request = 0;
    bool handled = UNLIKELY(scheduler != NULL) && scheduler->dropped(gil, seat, now, forced);
    rest(gil);
    return handled ? 0 : fl_find_real.signal(cond);
}

/* A condition that is not of the GIL found first. */
static int signal_elsewhere(pthread_cond_t *cond)
{
    fl_gil *gil = gil_by_cond(cond);
    if (gil) {
        return dropped(gil);
    }
    gil = gil_by_switch_cond(cond);
    if (gil) {
        return acquired(gil);
    }
    if (atomic_load_explicit(&strangers[stranger_place(cond)], memory_order_relaxed) == cond) {
        return fl_find_real.signal(cond);
    }
    fl_py_gil *taken = FL_GIL_OF(switch_cond, cond), *let_go = FL_GIL_OF(cond, cond);
    fl_py_gil *found = fl_find_is_gil(taken) ? taken : fl_find_is_gil(let_go) ? let_go : NULL;
    if (found == NULL) {
        atomic_store_explicit(&strangers[stranger_place(cond)], cond, memory_order_relaxed);
        return fl_find_real.signal(cond);
    }
    gil = fl_registry_add(found, fl_find_is_main(found));
    if (gil == NULL) {
        return fl_find_real.signal(cond);
    }
    HOT_SET(more, true);
    return found == taken ? acquired(gil) : dropped(gil);
}

/* ---- The hooks */

/* A take of the GIL begins here, and so may a wait for it. But the mutex is also locked to drop the GIL, or
   to signal its holder: then no take follows, and the next one begins with a lock of its own, which sets or
   clears what this one noted. */
static int hook_lock(pthread_mutex_t *mutex)
{
    if (UNLIKELY(gil_by_mutex(mutex) != NULL)) {
        /* Reading the C library's lock word costs less than trying the lock. A thread that takes it just
           after this read has only just arrived. */
        fl_registry_here.began = UNLIKELY(mutex->__data.__lock) ? fl_ticks_now() : 0;
        if (UNLIKELY(fl_registry_here.began) && fl_registry_here.seat != NULL) {
            fl_registry_here.seat->sampled = false; /* it may sleep for the mutex */
        }
    }
    return fl_find_real.lock(mutex);
}

/* For a thread that gave up its wait, or that has another thread to wake. */
__attribute__((noinline)) static int unlock_and_notify(pthread_mutex_t *mutex, fl_seat *seat)
{
    fl_gil *gil = gil_by_mutex(mutex);
    if (gil == NULL || fl_seat_gil(seat) != gil) {
        return fl_find_real.unlock(mutex);
    }
    if (seat->waiting) { /* take_gil() gives up: the interpreter is being finalised */
        fl_waits_end(gil, seat);
        const fl_scheduler *scheduler = HOT(scheduler);
        if (scheduler) {
            scheduler->leave(gil, seat, fl_gil_now(gil));
        }
        if (gil->holder == NULL) {
            rest(gil);
        }
    }
    int error = fl_find_real.unlock(mutex);
    if (seat->wakes) {
        seat->wakes = false;
        const fl_scheduler *scheduler = HOT(scheduler);
        if (scheduler) {
            scheduler->unlocked(gil, seat);
        }
    }
    return error;
}

/* Only while there is a scheduler. Nearly always it has nothing to do. */
static int hook_unlock(pthread_mutex_t *mutex)
{
    fl_seat *seat = fl_registry_here.seat;
    if (UNLIKELY(seat != NULL && (seat->waiting | seat->wakes))) {
        return unlock_and_notify(mutex, seat);
    }
    return fl_find_real.unlock(mutex);
}

static int hook_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    if (UNLIKELY(HOT(resting)) && (cond == HOT(cond) || fl_find_is_gil(FL_GIL_OF(cond, cond)))) {
        (void)fl_hooks_wake();
    }
    fl_gil *gil = HOT(resting) ? NULL : gil_by_cond(cond);
    fl_seat *seat = gil ? seat_at(gil) : NULL;
    if (seat == NULL) {
        return fl_find_real.timedwait(cond, mutex, deadline);
    }
    if (!seat->waiting) {
        fl_waits_begin(gil, seat);
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler) {
        int answer = scheduler->wait(gil, seat, deadline);
        if (answer != FL_WAIT_AS_USUAL) {
            return answer;
        }
    }
    unsigned long switches = gil->py->switch_number;
    int error = fl_find_real.timedwait(cond, mutex, deadline);
    /* The condition on which take_gil() will now ask the holder. A seat that no longer waits was cleared in
     * between. */
    if (error == ETIMEDOUT && seat->waiting && gil->py->locked && gil->py->switch_number == switches) {
        fl_hooks_request(gil, seat, fl_gil_now(gil));
    }
    return error;
}

static int hook_signal(pthread_cond_t *cond)
{
    if (LIKELY(cond == HOT(cond))) {
        return dropped(HOT(gil));
    }
    if (LIKELY(cond == HOT(switch_cond))) {
        return acquired(HOT(gil));
    }
    return FL_GIL_PER_INTERPRETER ? signal_elsewhere(cond) : fl_find_real.signal(cond);
}

static int hook_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    fl_gil *gil = gil_by_switch_cond(cond);
    fl_seat *seat = fl_registry_here.seat;
    if (gil == NULL || seat == NULL || fl_seat_gil(seat) != gil) {
        return fl_find_real.wait(cond, mutex);
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (UNLIKELY(!seat->forced_out)) { /* only a request brings a thread here */
        fl_hooks_asked_by_unseen(gil);
    } else if (scheduler && scheduler->switched(gil, seat)) {
        return 0;
    }
    /* Relaxed: a reader from outside takes the values as of that moment. */
    atomic_store_explicit(&seat->switch_from, seat->t_dropped, memory_order_relaxed);
    int error = fl_find_real.wait(cond, mutex);
    fl_waits_look_at_self(seat);
    atomic_store_explicit(&seat->switch_until, fl_ticks_now(), memory_order_relaxed);
    return error;
}

static void forget_gil(fl_gil *gil)
{
    fl_registry_forget(gil);
    if (gil == HOT(gil)) {
        point_nowhere();
    }
}

/* A condition is initialised where a GIL may have had another one: that GIL no longer exists, unless it is
   the main interpreter's, made anew in the child of a fork. */
static int hook_init(pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
    fl_gil *gil = gil_by_cond(cond);
    gil = gil ? gil : gil_by_switch_cond(cond);
    if (gil && gil->index != 0) {
        forget_gil(gil);
    }
    pthread_cond_t *_Atomic *stranger = &strangers[stranger_place(cond)];
    pthread_cond_t *expected = cond;
    atomic_compare_exchange_strong(stranger, &expected, NULL);
    return fl_find_real.init(cond, attributes);
}

static int hook_destroy(pthread_cond_t *cond)
{
    fl_gil *gil = gil_by_cond(cond);
    if (gil) {
        forget_gil(gil);
    }
    return fl_find_real.destroy(cond);
}

/* ---- For others */

void fl_hooks_request(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    if (!gil->t_request) {
        gil->t_request = now;
    }
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->request(gil, seat, now);
    }
}

void fl_hooks_thread_start(fl_gil *gil, fl_seat *seat)
{
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->thread_start(gil, seat);
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler) {
        scheduler->thread_start(gil, seat);
    }
}

void fl_hooks_thread_end(fl_gil *gil, fl_seat *seat)
{
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->thread_end(gil, seat);
    }
    fl_waits_come_back(gil, seat);
    if (seat->waiting) { /* it ended instead of taking the GIL: the interpreter is being finalised */
        fl_waits_end(gil, seat);
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler) {
        scheduler->thread_end(gil, seat);
    }
}

/* ---- The table */

const fl_hook fl_hooks_table[FL_FUNCTIONS] = {
    [FL_LOCK] = {.mutex = hook_lock},
    [FL_UNLOCK] = {.mutex = hook_unlock},
    [FL_TIMEDWAIT] = {.timedwait = hook_timedwait},
    [FL_SIGNAL] = {.cond = hook_signal},
    [FL_WAIT] = {.wait = hook_wait},
    [FL_INIT] = {.init = hook_init},
    [FL_DESTROY] = {.cond = hook_destroy},
};

#endif
