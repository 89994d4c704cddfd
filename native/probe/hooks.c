#define _GNU_SOURCE

#include "probe/hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "probe/find.h"
#include "probe/places.h"
#include "probe/registry.h"
#include "probe/snapshot.h"
#include "probe/stacks.h"

#ifndef FL_PROBE_REFUSAL

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A thread that is let go after a forced drop and is back for the GIL within this time has wanted it all the
   while. Its way back is some hundred instructions; no system call worth its name is done sooner. So has one
   that comes later because it was not given a core: it has not slept, nor used more of the CPU than this. */
#define BACK_AT_ONCE_NS 2000
#define SPENT_AT_MOST_US 20

/* What every call looks at. Written with a GIL held, read at any time: a call that sees the old state is as
   if it had come a moment earlier. Release and acquire: who finds an address finds the record behind it, and
   who finds an observer or a scheduler finds what that has made ready. */
static struct {
    pthread_mutex_t *_Atomic mutex; /* of the first GIL, nearly always the only one */
    pthread_cond_t *_Atomic cond, *_Atomic switch_cond;
    fl_gil *_Atomic gil;
    atomic_bool more; /* there are others */
    const fl_observer *_Atomic observer;
    const fl_scheduler *_Atomic scheduler;
    uint64_t back_at_once, long_hold; /* ticks; written once */
} hot;

#define HOT(member) atomic_load_explicit(&hot.member, memory_order_acquire)
#define HOT_SET(member, value) atomic_store_explicit(&hot.member, value, memory_order_release)

static int installations;
static uint64_t active_since, active_ticks;

/* Addresses of conditions that are no GIL's, so that they need not be looked into at each signal. */
#define STRANGERS 256
static pthread_cond_t *_Atomic strangers[STRANGERS];

static inline size_t stranger_place(const pthread_cond_t *cond)
{
    return (size_t)(((uintptr_t)cond >> 4) * 0x9E3779B97F4A7C15u >> 56) % STRANGERS;
}

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

/* Somebody has to do with the GIL of an interpreter of its own again, or nobody has any more (gil.h). */
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

static void point_at(fl_gil *gil)
{
    HOT_SET(gil, gil);
    HOT_SET(mutex, &gil->py->mutex);
    HOT_SET(cond, &gil->py->cond);
    HOT_SET(switch_cond, &gil->py->switch_cond);
}

/* hot.gil stays: a call that has just compared the address finds a record, if one that is no longer looked
 * at. */
static void point_nowhere(void)
{
    HOT_SET(mutex, NULL);
    HOT_SET(cond, NULL);
    HOT_SET(switch_cond, NULL);
}

/* ---- Waiting */

static void queue_up(fl_gil *gil, fl_seat *seat)
{
    seat->behind = NULL;
    seat->ahead = gil->last;
    *(gil->last ? &gil->last->behind : &gil->first) = seat;
    gil->last = seat;
    seat->waiting = true;
}

static void leave_queue(fl_gil *gil, fl_seat *seat)
{
    *(seat->ahead ? &seat->ahead->behind : &gil->first) = seat->behind;
    *(seat->behind ? &seat->behind->ahead : &gil->last) = seat->ahead;
    seat->ahead = seat->behind = NULL;
    seat->waiting = false;
}

/* What the kernel knows of the present thread. */
static void look_at_self(uint64_t *spent_us, long *slept)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    *spent_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u
                + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    *slept = usage.ru_nvcsw;
}

/* Since it was forced to drop the GIL, and the wait for that to be made use of was over. */
static bool has_done_nothing(const fl_seat *seat)
{
    uint64_t spent_us;
    long slept;
    look_at_self(&spent_us, &slept);
    return slept == seat->slept && spent_us - seat->spent_us <= SPENT_AT_MOST_US;
}

static void come_back(fl_gil *gil, fl_seat *seat)
{
    gil->forced_out -= seat->forced_out;
    seat->forced_out = false;
}

/* Since when the thread has wanted the GIL, if not since now. It may have had to wait for the mutex; and when
   it was forced to drop the GIL, waited for that to be made use of, if it had to, and comes back at once, it
   has wanted the GIL all the while.

   A window that was opened meanwhile, under the mutex, was told of the wait for the drop to be made use of,
   but could not be of what follows, nor of one for the mutex: these begin for all no earlier than the window.
 */
static uint64_t wanted_since(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    uint64_t since = fl_registry_here.began;
    uint64_t opened = atomic_load_explicit(&fl_window_latest, memory_order_relaxed);
    fl_registry_here.began = 0;
    uint64_t until = atomic_load_explicit(&seat->switch_until, memory_order_relaxed); /* our own */
    uint64_t from = until ? atomic_load_explicit(&seat->switch_from, memory_order_relaxed) : seat->t_dropped;
    if (UNLIKELY(until || seat->forced_out)) {
        uint64_t back = since ? since : now, let_go = until ? until : from;
        atomic_store_explicit(&seat->switch_from, 0, memory_order_relaxed);
        atomic_store_explicit(&seat->switch_until, 0, memory_order_relaxed);
        come_back(gil, seat);
        if (opened <= let_go && (back < let_go + hot.back_at_once || has_done_nothing(seat))) {
            return from;
        }
        seat->switch_apart += let_go - from;
    }
    return UNLIKELY(since && since < opened) ? opened : since;
}

static void begin_wait(fl_gil *gil, fl_seat *seat)
{
    uint64_t now = fl_gil_now(gil), since = wanted_since(gil, seat, now);
    seat->t_want = since ? since : now;
    queue_up(gil, seat);
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->want(gil, seat, now);
    }
}

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
        leave_queue(gil, seat);
    } else if (UNLIKELY(fl_registry_here.began | seat->forced_out
                        | atomic_load_explicit(&seat->switch_until, memory_order_relaxed))) {
        since = wanted_since(gil, seat, now);
    }
    if (UNLIKELY(gil->holder != NULL)) {
        gil->holder->holding = false; /* dropped while the hooks were not in */
    }
    seat->holding = true;
    seat->marked = false;
    seat->t_acquired = now;
    seat->tally.acquisitions++;
    gil->t_request = 0;
    gil->holder = seat;
    if (UNLIKELY(since || gil->ring || seat->held >= hot.long_hold || seat->switch_apart)) {
        const fl_observer *observer = HOT(observer);
        if (observer) {
            observer->acquired(gil, seat, since, now);
        }
    }
    gil->giver = NULL;
    gil->holder_before = seat->serial;
    const fl_scheduler *scheduler = HOT(scheduler);
    if (UNLIKELY(scheduler != NULL) && scheduler->acquired(gil, seat, now)) {
        return 0;
    }
    return fl_find_real.signal(cond);
}

static void count_hold(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_tally *tally = &seat->tally;
    uint64_t held = now - seat->t_acquired;
    tally->held += held;
    fl_window_note(seat, FL_MAXIMUM_HELD, seat->t_acquired, now);
    tally->held_histogram[fl_histogram_bucket(fl_ticks_to_ns(held))]++;
    seat->held = held;
    if (UNLIKELY(gil->t_request)) {
        tally->forced_drops++;
    } else {
        tally->voluntary_drops++;
    }
    if (UNLIKELY(gil->first || gil->forced_out || gil->t_request || gil->ring || seat->marked)) {
        const fl_observer *observer = HOT(observer);
        if (observer) {
            observer->dropped(gil, seat, now);
        }
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
    uint64_t now = fl_gil_now(gil);
    bool forced = gil->t_request != 0;
    if (LIKELY(seat->holding)) { /* else it took the GIL before the hooks were in */
        count_hold(gil, seat, now);
    }
    seat->holding = false;
    seat->t_dropped = now;
    gil->holder = NULL;
    gil->giver = seat;
    if (UNLIKELY(forced)) {
        gil->forced_out += !seat->forced_out;
        seat->forced_out = true;
        look_at_self(&seat->spent_us, &seat->slept);
    }
    gil->t_request = 0;
    const fl_scheduler *scheduler = HOT(scheduler);
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

static int lock_busy(fl_gil *gil, pthread_mutex_t *mutex)
{
    fl_seat *seat = fl_registry_here.seat;
    if (seat == NULL || fl_seat_gil(seat) != gil || !seat->holding) { /* not to drop the GIL: to take it */
        fl_registry_here.began = fl_ticks_now();
    }
    return fl_find_real.lock(mutex);
}

static int hook_lock(pthread_mutex_t *mutex)
{
    fl_gil *gil = gil_by_mutex(mutex);
    if (LIKELY(gil == NULL)) {
        return fl_find_real.lock(mutex);
    }
    /* A look at the C library's lock word costs less than trying. It may be taken just after: then it is by
       somebody who has only just come. */
    return UNLIKELY(mutex->__data.__lock) ? lock_busy(gil, mutex) : fl_find_real.lock(mutex);
}

/* Only while there is a scheduler. Nearly always it has nothing to do. */
static int hook_unlock(pthread_mutex_t *mutex)
{
    fl_seat *seat = fl_registry_here.seat;
    if (LIKELY(seat == NULL || !(seat->waiting | seat->wakes))) {
        return fl_find_real.unlock(mutex);
    }
    fl_gil *gil = gil_by_mutex(mutex);
    if (gil == NULL || fl_seat_gil(seat) != gil) {
        return fl_find_real.unlock(mutex);
    }
    if (seat->waiting) { /* take_gil() gives up: the interpreter is being finalised */
        leave_queue(gil, seat);
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

static int hook_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    fl_gil *gil = gil_by_cond(cond);
    fl_seat *seat = gil ? seat_at(gil) : NULL;
    if (seat == NULL) {
        return fl_find_real.timedwait(cond, mutex, deadline);
    }
    if (!seat->waiting) {
        begin_wait(gil, seat);
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
    if (scheduler && scheduler->switched(gil, seat)) {
        return 0;
    }
    /* Relaxed: who reads them from outside takes what it finds for what is so at that moment. */
    atomic_store_explicit(&seat->switch_from, seat->t_dropped, memory_order_relaxed);
    int error = fl_find_real.wait(cond, mutex);
    look_at_self(&seat->spent_us, &seat->slept);
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

/* A condition comes into being where there may have been another before: so the GIL that lay here is no more,
   unless it is the main interpreter's, made anew in the child of a fork. */
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

/* ---- Putting them in and taking them out */

static const union {
    int (*mutex)(pthread_mutex_t *);
    int (*timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond)(pthread_cond_t *);
    int (*wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*init)(pthread_cond_t *, const pthread_condattr_t *);
    void *address;
} hooks[FL_FUNCTIONS] = {
    [FL_LOCK] = {.mutex = hook_lock},
    [FL_UNLOCK] = {.mutex = hook_unlock},
    [FL_TIMEDWAIT] = {.timedwait = hook_timedwait},
    [FL_SIGNAL] = {.cond = hook_signal},
    [FL_WAIT] = {.wait = hook_wait},
    [FL_INIT] = {.init = hook_init},
    [FL_DESTROY] = {.cond = hook_destroy},
};

static void take_out(int count)
{
    while (count-- > 0) {
        (void)fl_got_restore(&fl_find_functions[count], hooks[count].address);
    }
}

/* Where another library has its hook by now, that stays: it was put in while ours was there, and passes on to
   ours; or it does not, and nothing is seen. */
static const char *put_in(void)
{
    for (int i = 0; i < FL_FUNCTIONS; i++) {
        fl_got_function *function = &fl_find_functions[i];
        void *hook = hooks[i].address;
        if (i != FL_UNLOCK && !fl_got_taken(function, hook) && fl_got_set(function, hook) != 0) {
            take_out(i);
            return "the interpreter's table of functions cannot be changed";
        }
    }
    uint64_t turns = fl_registry_here.seat->tally.acquisitions;
    Py_BEGIN_ALLOW_THREADS
    Py_END_ALLOW_THREADS
    if (fl_registry_here.seat->tally.acquisitions == turns) {
        take_out(FL_FUNCTIONS);
        return "another library has hooked the functions that the interpreter takes its GIL with";
    }
    return NULL;
}

/* In the child: only this thread is left, and the GIL that it holds, if it does. The interpreter makes that
   GIL anew, and this thread takes it, as soon as it knows that it is a child. */
static void forked(void)
{
    fl_seat *seat = fl_registry_here.seat;
    fl_gil *kept = NULL;
    if (installations > 0) {
        kept = seat != NULL && seat->holding ? fl_seat_gil(seat) : HOT(mutex) != NULL ? HOT(gil) : NULL;
    }
    fl_registry_fork(kept);
    active_ticks = 0;
    active_since = fl_ticks_now();
    fl_stacks_fork();
    fl_snapshot_fork();
    HOT_SET(more, false);
    if (kept == NULL) {
        point_nowhere();
    } else {
        point_at(kept);
    }
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->forked();
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler && kept) {
        scheduler->forked(kept, fl_registry_here.seat);
    }
}

const char *fl_hooks_prepare(void)
{
    Py_BEGIN_ALLOW_THREADS
    fl_ticks_prepare();
    Py_END_ALLOW_THREADS
    if (fl_registry_prepare() != 0 || pthread_atfork(NULL, NULL, forked) != 0) {
        return "there is no memory, or no key for thread data left";
    }
    hot.back_at_once = fl_ticks_from_ns(BACK_AT_ONCE_NS);
    hot.long_hold = fl_ticks_from_ns(FL_LONG_HOLD_NS);
    return NULL;
}

/* The present thread, which holds the GIL, takes its seat. */
static fl_gil *settle(fl_py_gil *py)
{
    fl_gil *gil = fl_registry_add(py, fl_find_is_main(py));
    if (gil == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&py->mutex);
    fl_seat *seat = fl_registry_seat(gil);
    if (seat) {
        seat->holding = true;
        seat->t_acquired = fl_gil_now(gil);
        gil->holder = seat;
        gil->holder_before = seat->serial;
    }
    pthread_mutex_unlock(&py->mutex);
    return seat ? gil : NULL;
}

const char *fl_hooks_install(void)
{
    if (installations > 0) {
        installations++;
        return NULL;
    }
    fl_py_gil *py = NULL;
    const char *failure = fl_find_slots();
    if (!failure) {
        failure = fl_find_gil(&py);
    }
    if (failure) {
        return failure;
    }
    fl_gil *gil = settle(py);
    if (gil == NULL) {
        return "there is no memory left";
    }
    point_at(gil);
    failure = put_in();
    if (failure) {
        fl_registry_forget(gil);
    } else {
        installations = 1;
        active_since = fl_ticks_now();
    }
    return failure;
}

static void forget(fl_gil *gil, void *context)
{
    const fl_observer *observer = context;
    if (gil->alive) {
        uint64_t now = fl_gil_now(gil);
        gil->first = gil->last = NULL;
        gil->forced_out = 0;
        for (fl_seat *seat = gil->seats; seat; seat = seat->of_gil) {
            if (observer && !seat->ended) {
                observer->interrupted(gil, seat, now);
            }
            seat->holding = seat->waiting = seat->marked = seat->forced_out = false;
            seat->ahead = seat->behind = NULL;
        }
    }
}

void fl_hooks_release(void)
{
    if (--installations > 0) {
        return;
    }
    const fl_observer *observer = HOT(observer);
    HOT_SET(observer, NULL);
    HOT_SET(scheduler, NULL);
    take_out(FL_FUNCTIONS);
    active_ticks += fl_ticks_now() - active_since;
    /* Calls that are in a hook now find the seats as if they had just come. */
    fl_registry_each(forget, (void *)(uintptr_t)observer);
    fl_registry_retire();
    point_nowhere();
    HOT_SET(more, false);
}

void fl_hooks_observe(const fl_observer *observer)
{
    HOT_SET(observer, observer);
}

bool fl_hooks_schedule(const fl_scheduler *scheduler)
{
    fl_got_function *unlock = &fl_find_functions[FL_UNLOCK];
    void *hook = hooks[FL_UNLOCK].address;
    int error = 0;
    if (scheduler && !fl_got_is(unlock, hook)) {
        error = fl_got_set(unlock, hook);
    }
    if (!error) {
        HOT_SET(scheduler, scheduler);
    }
    if (!scheduler) {
        (void)fl_got_restore(unlock, hook);
    }
    return error == 0;
}

uint64_t fl_hooks_active_ns(void)
{
    return fl_ticks_to_ns(active_ticks + (installations > 0 ? fl_ticks_now() - active_since : 0));
}

bool fl_hooks_intact(void)
{
    bool intact = true;
    for (int i = 0; i < FL_FUNCTIONS; i++) {
        fl_got_function *function = &fl_find_functions[i];
        void *hook = hooks[i].address;
        if ((i != FL_UNLOCK || HOT(scheduler)) && !fl_got_is(function, hook)) {
            if (!fl_got_taken(function, hook)) {
                (void)fl_got_set(function, hook);
            }
            intact = false;
        }
    }
    return intact;
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
    come_back(gil, seat);
    if (seat->waiting) { /* it ended instead of taking the GIL: the interpreter is being finalised */
        leave_queue(gil, seat);
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler) {
        scheduler->thread_end(gil, seat);
    }
}

#endif
