/* A waiter parks on a word of its own (a futex) and not on the GIL's condition. The word says how it is:
 *
 *     AWAKE     it will look at the policy before it sleeps
 *     PARKED    it sleeps, or is about to: whoever changes this must wake it
 *     GRANTED   the GIL is its own; `locked` has stayed set for it
 *
 * It changes to PARKED and to GRANTED under the GIL's mutex, to AWAKE by its own thread, or by a kick. So a
 * grant is never lost: either its thread sees the word before it sleeps, or the futex does not let it
 * sleep, or it is woken. And should a wake-up be lost all the same, every sleep has an end.
 *
 * Wakes are made after the mutex is unlocked. The word may be gone by then, if its thread has already taken
 * the GIL and ended: a futex wake of an address that nobody sleeps on does nothing.
 */
#define _GNU_SOURCE

#include "probe/schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cores.h"
#include "core/ticks.h"
#include "probe/got.h"
#include "probe/hooks.h"
#include "probe/registry.h"

#ifndef FL_PROBE_REFUSAL

enum { AWAKE, PARKED, GRANTED };

/* How long it is relied upon which cores a thread may use. */
#define LOOK_NS 10000000

typedef struct {
    fl_policy_thread policy; /* first: a policy's thread is a record */
    _Atomic uint32_t word;
    bool wanting;  /* the policy knows that it wants the GIL */
    bool ask;      /* to ask the holder at the next call */
    bool announce; /* to say that scheduling has ended */
    pid_t native_id;
    bool alone;      /* may run on one core only, when it looked last */
    int64_t t_alone; /* when that was */
    bool forced;   /* its last drop was */
    long slept;    /* how often it had slept by then */
    _Atomic uint32_t *wakes[2]; /* to wake once the mutex is unlocked */
} record;

static fl_schedule_settings settings; /* with the main GIL held; each GIL's policy has its own copy */
static __thread uint8_t own_priority;

static record *record_of_policy(fl_policy_thread *thread)
{
    return (record *)(void *)thread;
}

static int64_t ns_of(uint64_t ticks)
{
    return (int64_t)fl_ticks_to_ns(ticks);
}

static fl_policy *policy_of(fl_gil *gil)
{
    fl_policy *policy = gil->schedule;
    if (policy == NULL && (policy = malloc(sizeof *policy)) != NULL) {
        int64_t interval = (int64_t)gil->py->interval * 1000;
        fl_policy_init(policy, settings.mode, settings.share, interval, NULL, ns_of(fl_gil_now(gil)));
        policy->spare_cores = settings.spin;
        gil->schedule = policy;
    }
    return policy;
}

/* NULL: no memory; then the thread is not scheduled. */
static record *record_of(fl_seat *seat)
{
    if (seat->schedule == NULL) {
        record *made = calloc(1, sizeof *made);
        if (made) {
            fl_policy_thread_new(&made->policy, (fl_priority)own_priority);
            made->native_id = gettid();
        }
        seat->schedule = made;
    }
    return seat->schedule;
}

/* ---- Parking */

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* The mutex is held before and after, and not meanwhile. */
static void park(fl_gil *gil, record *me, int64_t ns)
{
    atomic_store(&me->word, PARKED);
    pthread_mutex_unlock(&gil->py->mutex);
    futex_wait(&me->word, PARKED, ns);
    pthread_mutex_lock(&gil->py->mutex);
    uint32_t parked = PARKED;
    (void)atomic_compare_exchange_strong(&me->word, &parked, AWAKE);
}

/* Whether there is a core to spin on while the holder works: the affinity may change at any time. */
static bool may_spin(record *me, int64_t now)
{
    if (me->t_alone == 0 || now - me->t_alone > LOOK_NS) {
        me->alone = fl_cores_affinity() < 2;
        me->t_alone = now;
    }
    return !me->alone;
}

static void spin(fl_gil *gil, record *me, int64_t ns)
{
    uint64_t until = fl_ticks_now() + fl_ticks_from_ns((uint64_t)ns);

    pthread_mutex_unlock(&gil->py->mutex);
    while (atomic_load_explicit(&me->word, memory_order_relaxed) != GRANTED && fl_ticks_now() < until) {
        relax();
    }
    pthread_mutex_lock(&gil->py->mutex);
}

/* Under the mutex; woken when it is unlocked. */
static void wake_later(fl_seat *seat, record *me, record *other)
{
    me->wakes[me->wakes[0] != NULL] = &other->word;
    seat->wakes = true;
}

/* How often the calling thread has gone to sleep of its own accord. About 300 ns. */
static long sleeps(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}

/* ---- What the hooks tell. Under the mutex unless said otherwise there. */

static void thread_start(fl_gil *gil, fl_seat *seat)
{
    (void)gil;
    (void)record_of(seat);
}

/* A thread that goes without taking the GIL that was granted to it: nobody has it then. */
static void give_back(fl_gil *gil, fl_policy *policy, record *me)
{
    if (policy->limbo == &me->policy) {
        policy->limbo = NULL;
        gil->py->locked = 0;
    }
    me->policy.granted = false;
    atomic_store(&me->word, AWAKE);
}

static void thread_end(fl_gil *gil, fl_seat *seat)
{
    record *me = seat->schedule;
    fl_policy *policy = gil->schedule;

    if (me && policy) {
        give_back(gil, policy, me);
        fl_policy_thread_exit(policy, &me->policy, ns_of(fl_gil_now(gil)));
    }
    seat->schedule = NULL;
    free(me);
}

static void want(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = policy_of(gil);
    record *me = record_of(seat);

    if (policy && me) {
        /* Forced out, it comes straight back; unless the thread that it woke got its core: then it is late,
           but has not waited for anything. */
        if (me->forced && ns_of(now - seat->t_dropped) >= policy->k.long_off_ns && me->slept == sleeps()) {
            fl_policy_stays(&me->policy);
        }
        me->forced = false;
        me->wanting = true;
        fl_policy_want(policy, &me->policy, ns_of(now));
    }
}

/* A thread whose grant was withdrawn: did it sleep through its wake-up, or is it awake and only kept from
 * running (no core to be had, a page to be read, a debugger)? The kernel knows: S is asleep. */
static bool is_lost(const record *other)
{
    char path[48], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)other->native_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        (void)close(file);
    }
    text[size > 0 ? size : 0] = 0;
    const char *name_end = strrchr(text, ')'); /* "1234 (name) S ...", names have up to 64 bytes */
    return name_end == NULL || name_end[1] == 0 || name_end[2] == 'S';
}

static void withdraw(fl_seat *seat, record *me, record *other)
{
    atomic_store(&other->word, AWAKE);
    wake_later(seat, me, other);
}

static int ask(fl_gil *gil, fl_seat *seat)
{
    fl_hooks_request(gil, seat, fl_gil_now(gil));
    return ETIMEDOUT;
}

static int wait(fl_gil *gil, fl_seat *seat, const struct timespec *deadline)
{
    fl_policy *policy = policy_of(gil);
    record *me = record_of(seat);
    unsigned long switches = gil->py->switch_number;

    (void)deadline;
    if (policy == NULL || me == NULL) {
        return FL_WAIT_AS_USUAL;
    }
    if (!me->wanting) { /* it came before the scheduler did */
        want(gil, seat, fl_gil_now(gil));
    }
    if (me->ask) { /* now that take_gil() has read the switch number anew */
        me->ask = false;
        return ask(gil, seat);
    }
    policy->interval = (int64_t)(gil->py->interval ? gil->py->interval : 1) * 1000;
    for (;;) {
        if (me->policy.granted) {
            atomic_store(&me->word, AWAKE);
            gil->py->locked = 0; /* nobody sees it: take_gil() sets it again before it unlocks */
            return 0;
        }
        int64_t now = ns_of(fl_gil_now(gil));
        fl_tick tick = fl_policy_tick(policy, &me->policy, gil->py->locked != 0, now);
        switch (tick.kind) {
        case FL_TICK_PASS:
            return FL_WAIT_AS_USUAL;
        case FL_TICK_ASK:
            if (gil->py->switch_number == switches) {
                return ask(gil, seat);
            }
            me->ask = true;
            return 0;
        case FL_TICK_TAKE:
            if (tick.revoke) {
                withdraw(seat, me, record_of_policy(tick.revoke));
                me->announce = is_lost(record_of_policy(tick.revoke)) && fl_policy_lost(policy);
            }
            gil->py->locked = 0;
            return 0;
        case FL_TICK_SPIN: /* asked at most once per wait: without, the next tick says how long to sleep */
            if (may_spin(me, now)) {
                policy->counts.spun++;
                spin(gil, me, tick.until - now);
            }
            break;
        case FL_TICK_SLEEP:
            park(gil, me, tick.until - now);
            break;
        }
    }
}

static void leave(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = gil->schedule;
    record *me = seat->schedule;

    if (policy && me) {
        give_back(gil, policy, me);
        fl_policy_leave(policy, &me->policy, ns_of(now));
        me->wanting = false;
    }
}

static bool acquired(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = policy_of(gil);
    record *me = record_of(seat);

    if (policy && me) {
        if (!me->wanting) { /* it did not have to wait */
            want(gil, seat, now);
        }
        me->wanting = me->ask = false;
        fl_policy_acquired(policy, &me->policy, ns_of(now));
    }
    return false; /* a thread that dropped it before there was a scheduler may wait for this */
}

static bool dropped(fl_gil *gil, fl_seat *seat, uint64_t now, bool forced)
{
    fl_policy *policy = gil->schedule;
    record *me = seat->schedule;

    if (policy == NULL || me == NULL) {
        return false;
    }
    if (policy->holder != &me->policy) { /* it took the GIL before there was a scheduler */
        fl_policy_acquired(policy, &me->policy, ns_of(seat->t_acquired));
    }
    policy->asked = me->forced = forced;
    seat->wakes |= forced;
    fl_drop drop = fl_policy_drop(policy, &me->policy, ns_of(now));
    if (drop.kick) {
        uint32_t parked = PARKED;
        record *other = record_of_policy(drop.kick);
        if (atomic_compare_exchange_strong(&other->word, &parked, AWAKE)) {
            wake_later(seat, me, other);
        }
    }
    if (drop.kind == FL_DROP_HAND) {
        record *next = record_of_policy(drop.grant);
        gil->py->locked = 1;
        if (atomic_exchange(&next->word, GRANTED) == PARKED) {
            wake_later(seat, me, next);
        }
    }
    return drop.kind != FL_DROP_NOBODY && policy->mode != FL_MODE_STOCK;
}

static void unlocked(fl_gil *gil, fl_seat *seat)
{
    record *me = seat->schedule;

    (void)gil;
    if (me == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (me->wakes[i]) {
            futex_wake(me->wakes[i]);
            me->wakes[i] = NULL;
        }
    }
    if (me->forced) {
        me->slept = sleeps();
    }
    if (me->announce) {
        static const char text[] = "fairlead: threads that were given the GIL did not wake up for it; "
                                   "the interpreter's own scheduling is back in force\n";
        me->announce = false;
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
    }
}

static bool switched(fl_gil *gil, fl_seat *seat)
{
    const fl_policy *policy = gil->schedule;
    return policy && seat->schedule && policy->mode != FL_MODE_STOCK;
}

static void forked(fl_gil *gil, fl_seat *seat)
{
    fl_policy *policy = gil->schedule;
    record *me = seat ? seat->schedule : NULL;

    if (policy == NULL) {
        return;
    }
    if (me == NULL) { /* nobody is known to be left */
        gil->schedule = NULL;
        free(policy);
        return;
    }
    atomic_store(&me->word, AWAKE);
    me->native_id = gettid();
    me->wanting = me->ask = false;
    me->wakes[0] = me->wakes[1] = NULL;
    fl_policy_fork_reset(policy, &me->policy, seat->holding, ns_of(fl_gil_now(gil)));
}

static const fl_scheduler scheduler = {
    .thread_start = thread_start,
    .thread_end = thread_end,
    .wait = wait,
    .leave = leave,
    .acquired = acquired,
    .dropped = dropped,
    .unlocked = unlocked,
    .switched = switched,
    .forked = forked,
};

/* ---- Yields: sleep(0) and sched_yield(), which the interpreter calls through the same table. */

enum { NANOSLEEP, YIELD, YIELDS };

static fl_got_function yields[YIELDS] = {
    [NANOSLEEP] = {.name = "clock_nanosleep"},
    [YIELD] = {.name = "sched_yield"},
};

static void yielding(void)
{
    fl_seat *seat = fl_registry_here.seat;
    if (seat && !seat->holding && seat->schedule) {
        fl_policy_yields(&((record *)seat->schedule)->policy);
    }
}

static int hook_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec from = {0, 0};
    if (flags & TIMER_ABSTIME) {
        (void)clock_gettime(clock, &from);
    }
    if (time->tv_sec < from.tv_sec || (time->tv_sec == from.tv_sec && time->tv_nsec <= from.tv_nsec)) {
        yielding();
    }
    return clock_nanosleep(clock, flags, time, left);
}

static int hook_yield(void)
{
    yielding();
    return sched_yield();
}

static void hook_yields(void)
{
    static bool done;
    fl_got_object object;
    union {
        void (*function)(PyThreadState *);
        const void *address;
    } landmark = {PyEval_RestoreThread};
    union {
        int (*sleep)(clockid_t, int, const struct timespec *, struct timespec *);
        int (*yield)(void);
        void *address;
    } hook[YIELDS] = {[NANOSLEEP] = {.sleep = hook_nanosleep}, [YIELD] = {.yield = hook_yield}};

    if (done || !fl_got_find(landmark.address, &object, yields, YIELDS)) {
        return;
    }
    for (int i = 0; i < YIELDS; i++) { /* without them a yield is taken for a short wait: slower, not wrong */
        if (yields[i].count) {
            (void)fl_got_set(&yields[i], hook[i].address);
        }
    }
    done = true;
}

/* ---- Settings */

static void apply(fl_gil *gil, void *context)
{
    (void)context;
    if (!gil->alive || (gil->idle && gil->schedule == NULL)) { /* it may be gone; else it gets one later */
        return;
    }
    fl_policy *policy = policy_of(gil);
    if (policy == NULL) {
        return;
    }
    int64_t now = ns_of(fl_gil_now(gil));
    for (fl_policy_thread *thread; (thread = fl_policy_evict(policy, now)) != NULL;) {
        record *other = record_of_policy(thread);
        atomic_store(&other->word, AWAKE); /* evicted, hence not granted: it looks anew, in the new mode */
        futex_wake(&other->word);
    }
    fl_policy_set_mode(policy, settings.mode, settings.share, now);
    policy->spare_cores = settings.spin;
}

const char *fl_schedule_set(fl_schedule_settings wanted)
{
    static bool on;
    fl_schedule_settings before = settings;

    settings = wanted;
    if (!on) {
        if (!fl_hooks_schedule(&scheduler)) {
            settings = before;
            return "the interpreter's table of functions cannot be changed";
        }
        on = true;
        hook_yields();
    }
    fl_registry_each(apply, NULL);
    return NULL;
}

static void look(fl_gil *gil, void *context)
{
    fl_schedule_state *state = context;
    const fl_policy *policy = gil->schedule;
    if (gil->alive && gil->index == 0 && policy) {
        *state = (fl_schedule_state){policy->mode, policy->waiting, policy->tripped, policy->counts};
    }
}

fl_schedule_state fl_schedule_look(void)
{
    fl_schedule_state state = {.mode = FL_MODE_STOCK};
    fl_registry_each(look, &state);
    return state;
}

fl_priority fl_schedule_priority(fl_priority priority)
{
    fl_priority before = (fl_priority)own_priority;
    fl_seat *seat = fl_registry_here.seat;

    own_priority = (uint8_t)priority;
    if (seat && seat->schedule) {
        fl_policy_set_priority(&((record *)seat->schedule)->policy, priority);
    }
    return before;
}

#endif
