/* Reports takes and drops from the hooks to the policy, and does what the policy answers. */
#define _GNU_SOURCE

#include "gil/schedule/schedule.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "gil/hooks/control.h"
#include "gil/hooks/hooks.h"
#include "gil/threads/kernel.h"
#include "gil/schedule/modes.h"
#include "gil/threads/patience.h"
#include "gil/threads/registry.h"
#include "gil/schedule/yields.h"

#ifndef FL_PROBE_REFUSAL

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static uint64_t long_hold_ticks, brief_ticks; /* the policy's floor_slice_ns and lazy_ns */
static __thread uint8_t own_priority;

/* The holder of a GIL that is granted and not taken yet, as far as the interpreter can see. It signals the
   holder of a locked GIL by writing into that thread's state, and that of the dropping thread may be freed by
   now. This one is of no interpreter, so that none takes it for its own. And drop_gil(), which waits for a
   switch only while its own thread's state stands there, finds that the switch has been made. */
static PyThreadState no_holder;

/* NULL: no memory; then the thread is not scheduled. */
static fl_scheduled *record_of(fl_seat *seat)
{
    if (seat->schedule == NULL) {
        fl_scheduled *made = calloc(1, sizeof *made);
        if (made) {
            fl_policy_thread_new(&made->policy, (fl_priority)own_priority);
            made->seat = seat;
            made->native_id = gettid();
            made->core = -1;
        }
        seat->schedule = made;
    }
    return seat->schedule;
}

/* Under the mutex; woken when it is unlocked. */
static void wake_later(fl_seat *seat, fl_scheduled *me, fl_scheduled *other)
{
    me->wakes[me->wakes[0] != NULL] = &other->parker;
    seat->wakes = true;
}

/* ---- Called by the hooks. Under the mutex unless hooks.h says otherwise. */

static void thread_start(fl_gil *gil, fl_seat *seat)
{
    (void)gil;
    (void)record_of(seat);
}

/* The thread will not take the GIL, which may have been granted to it: then the GIL is free. */
static void withdraw_grant(fl_gil *gil, fl_policy *policy, fl_scheduled *me)
{
    if (policy->grantee == &me->policy) {
        policy->grantee = NULL;
        gil->py->locked = 0;
    }
    me->policy.granted = false;
    fl_parker_awake(&me->parker);
}

static void thread_end(fl_gil *gil, fl_seat *seat)
{
    fl_scheduled *me = seat->schedule;
    fl_policy *policy = gil->schedule ? fl_modes_policy_now(gil) : NULL;

    if (me && policy) {
        withdraw_grant(gil, policy, me);
        fl_policy_thread_exit(policy, &me->policy, fl_ns_of(fl_gil_now(gil)));
    }
    seat->schedule = NULL;
    free(me);
}

static void want(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = fl_modes_policy(gil);
    fl_scheduled *me = record_of(seat);

    if (policy && me) {
        /* Forced out, it comes straight back; unless the thread that it woke got its core: then it is late,
           but has not waited for anything. */
        bool late = me->forced && fl_ns_of(now - seat->t_dropped) >= policy->k.away_ns;
        bool slept = (late || seat->sampled) && me->slept != fl_kernel_own_usage().sleeps;
        if (late && !slept) {
            fl_policy_stays(&me->policy);
        }
        if (seat->sampled) {
            fl_policy_slept(policy, &me->policy, slept);
        }
        me->forced = seat->sampled = false;
        me->wanting = true;
        fl_policy_want(policy, &me->policy, fl_ns_of(now));
    }
}

static fl_scheduled *watched(fl_watched *thread)
{
    char *policy = (char *)thread - offsetof(fl_policy_thread, watched);
    return fl_scheduled_of((fl_policy_thread *)(void *)policy);
}

/* Has the thread slept ever since? It may be awake and kept from running: by want of a core, a page fault,
 * a debugger. Where the kernel does not say, the answer is no, and scheduling goes on. */
static bool asleep_since(fl_watched *thread)
{
    const fl_scheduled *other = watched(thread);
    return fl_kernel_state(other->native_id) == 'S' && other->ran_ns != 0
           && fl_kernel_cpu_ns(other->native_id) == other->ran_ns;
}

/* A sleep at the parker ends by itself. So the thread more likely sleeps at the mutex. */
static void rouse(fl_watched *thread)
{
    fl_scheduled *other = watched(thread);
    fl_gil *gil = fl_seat_gil(other->seat);

    fl_parker_wake(&other->parker);
    if (gil) {
        fl_parker_wake_at(&gil->py->mutex);
    }
}

static void withdraw(fl_seat *seat, fl_scheduled *me, fl_scheduled *other)
{
    other->ran_ns = fl_kernel_cpu_ns(other->native_id);
    fl_parker_awake(&other->parker);
    wake_later(seat, me, other);
}

static int ask(fl_gil *gil, fl_seat *seat)
{
    fl_hooks_request(gil, seat, fl_gil_now(gil));
    return ETIMEDOUT;
}

__attribute__((noinline)) static void obey(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = fl_modes_policy_now(gil);
    fl_scheduled *me = record_of(seat);
    const char *news = policy && me ? fl_modes_obey(gil, policy, now) : NULL;
    if (news) {
        me->news = news;
        seat->wakes = true;
    }
}

/* Is there an order of another process, or is the time over? Under the mutex, where the present thread takes
   the GIL or waits for it. */
static inline void look_outside(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    if (UNLIKELY(atomic_load_explicit(&fl_control()->request, memory_order_relaxed) != gil->obeyed
                 || now >= gil->until)) {
        obey(gil, seat, now);
    }
}

/* A holder without a core makes no progress: its burst is not charged for that time, nor is it asked to
   drop the GIL for it. Where its CPU time was read long before it acquired, it seems to have had a core. */
static void look_coreless(const fl_policy *policy, fl_scheduled *holder, int64_t now)
{
    int64_t held = now - policy->t_acquired;

    if (held >= policy->k.grain_ns) {
        uint64_t cpu_ns = fl_kernel_cpu_ns(holder->native_id);
        fl_policy_coreless(policy, &holder->policy, cpu_ns ? held - (int64_t)(cpu_ns - holder->cpu_ns) : 0);
    }
}

/* Where the holder was that a serving thread may spin for; a computation spins to keep its core awake. */
static int core_of_holder(const fl_policy *policy, const fl_scheduled *me)
{
    bool serving = me->policy.cls == FL_CLASS_SERVING;
    return serving && policy->holder ? fl_scheduled_of(policy->holder)->core : -1;
}

static int wait(fl_gil *gil, fl_seat *seat, const struct timespec *deadline)
{
    fl_policy *policy = fl_modes_policy_now(gil);
    fl_scheduled *me = record_of(seat);
    unsigned long switches = gil->py->switch_number;
    bool slept = false;

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
    for (;;) {
        policy->interval = (int64_t)(gil->py->interval ? gil->py->interval : 1) * 1000;
        if (me->policy.granted) {
            fl_parker_awake(&me->parker);
            me->cpu_ns = slept ? fl_kernel_cpu_ns(me->native_id) : me->cpu_ns;
            gil->py->locked = 0; /* no thread sees it: take_gil() sets it again before it unlocks */
            return 0;
        }
        uint64_t ticks = fl_gil_now(gil);
        look_outside(gil, seat, ticks);
        int64_t now = fl_ns_of(ticks);
        if (policy->holder) {
            look_coreless(policy, fl_scheduled_of(policy->holder), now);
        }
        fl_policy_thread *server = fl_policy_server_to_look_at(policy, &me->policy, now);
        if (server) {
            fl_policy_server_slept(policy, fl_kernel_sleeps(fl_scheduled_of(server)->native_id), now);
        }
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
                withdraw(seat, me, fl_scheduled_of(tick.revoke));
            }
            me->cpu_ns = slept ? fl_kernel_cpu_ns(me->native_id) : me->cpu_ns;
            gil->py->locked = 0;
            return 0;
        case FL_TICK_SPIN:
            if (!fl_parker_may_spin(&me->parker, core_of_holder(policy, me), now)) {
                fl_policy_crowded(policy, &me->policy, now);
                break;
            }
            policy->counts.spun++;
            if (fl_parker_spin(&me->parker, &gil->py->mutex, tick.until - now) >= policy->k.robbed_ns) {
                fl_policy_crowded(policy, &me->policy, fl_ns_of(fl_gil_now(gil)));
            }
            break;
        case FL_TICK_SLEEP:
            slept = true;
            fl_parker_park(&me->parker, &gil->py->mutex, tick.until - now);
            break;
        }
    }
}

static void leave(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = gil->schedule;
    fl_scheduled *me = seat->schedule;

    if (policy && me) {
        withdraw_grant(gil, policy, me);
        fl_policy_leave(policy, &me->policy, fl_ns_of(now));
        me->wanting = false;
    }
}

static bool acquired_anew(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = fl_modes_policy_now(gil);
    fl_scheduled *me = record_of(seat);

    if (gil->py->switch_number % FL_SWITCHES_PER_LOOK == 0) {
        fl_hooks_reinstall();
    }
    if (policy && me) {
        if (!me->wanting) { /* it did not have to wait */
            want(gil, seat, now);
        }
        me->wanting = me->ask = false;
        me->core = sched_getcpu();
        const char *news = fl_modes_acquire(gil, policy, now);
        fl_policy_acquired(policy, &me->policy, fl_ns_of(now));
        if (fl_policy_gives_up(policy, fl_ns_of(now), asleep_since, rouse)) {
            news = fl_modes_tripped(gil, policy);
        }
        me->news = news ? news : me->news; /* an order may have come while it waited */
        seat->wakes |= news != NULL;
    }
    return false; /* a thread that dropped it before there was a scheduler may wait for this */
}

static bool acquired(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = gil->schedule;
    fl_scheduled *me = seat->schedule;

    look_outside(gil, seat, now);
    if (LIKELY(policy && me && seat->held < long_hold_ticks) && fl_policy_retake(policy, &me->policy)) {
        me->brief = now - seat->t_dropped < brief_ticks;
        return false;
    }
    return acquired_anew(gil, seat, now);
}

static bool dropped_before_others(fl_gil *gil, fl_seat *seat, uint64_t now, bool forced)
{
    fl_policy *policy = fl_modes_policy_now(gil);
    fl_scheduled *me = seat->schedule;

    if (policy->holder != &me->policy) { /* it took the GIL before there was a scheduler */
        fl_policy_acquired(policy, &me->policy, fl_ns_of(seat->t_acquired));
    }
    policy->asked = me->forced = forced;
    seat->wakes |= forced;
    look_coreless(policy, me, fl_ns_of(now));
    fl_drop drop = fl_policy_drop(policy, &me->policy, fl_ns_of(now));
    if (fl_policy_samples(policy, &me->policy, fl_ns_of(now))) {
        seat->sampled = seat->wakes = true;
    }
    if (drop.kick) {
        fl_scheduled *other = fl_scheduled_of(drop.kick);
        if (fl_parker_kick(&other->parker)) {
            wake_later(seat, me, other);
        }
    }
    if (drop.kind == FL_DROP_HAND) {
        fl_scheduled *next = fl_scheduled_of(drop.grant);
        gil->py->last_holder = &no_holder;
        gil->py->locked = 1;
        if (fl_parker_grant(&next->parker)) {
            wake_later(seat, me, next);
        }
    }
    return drop.kind != FL_DROP_NO_WAITER && policy->mode != FL_MODE_STOCK;
}

/* A thread that takes and drops the GIL several times in a tenth of a millisecond, with no other thread
   there, neither waits for the world nor computes: it is enough to know that the drop was between two
   takes. */
static bool let_go(fl_gil *gil, fl_seat *seat)
{
    fl_policy *policy = gil->schedule;
    const fl_scheduled *me = seat->schedule;

    if (policy == NULL || me == NULL || !me->brief || !fl_policy_let_go(policy, &me->policy)) {
        return false;
    }
    seat->t_dropped = seat->t_acquired;
    seat->held = 0;
    return true;
}

static bool dropped(fl_gil *gil, fl_seat *seat, uint64_t now, bool forced)
{
    fl_policy *policy = gil->schedule;
    fl_scheduled *me = record_of(seat); /* it may have taken the GIL before the hooks were in */

    if (policy == NULL || me == NULL || LIKELY(fl_policy_let_go(policy, &me->policy))) {
        return false;
    }
    return dropped_before_others(gil, seat, now, forced);
}

static void unlocked(fl_gil *gil, fl_seat *seat)
{
    fl_scheduled *me = seat->schedule;

    (void)gil;
    if (me == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (me->wakes[i]) {
            fl_parker_wake(me->wakes[i]);
            me->wakes[i] = NULL;
        }
    }
    if (me->forced || seat->sampled) {
        me->slept = fl_kernel_own_usage().sleeps;
    }
    if (me->news) {
        fl_hooks_tell(me->news, "");
        me->news = NULL;
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
    fl_scheduled *me = seat ? seat->schedule : NULL;

    if (policy == NULL) {
        return;
    }
    fl_modes_forked(gil, policy);
    if (me == NULL) { /* no thread is known to be left */
        gil->schedule = NULL;
        free(policy);
        return;
    }
    if (policy->alone == &me->policy) { /* all other counts belong to threads that are gone */
        (void)fl_modes_policy_now(gil);
    }
    fl_parker_awake(&me->parker);
    me->native_id = gettid();
    me->wanting = me->ask = false;
    me->wakes[0] = me->wakes[1] = NULL;
    me->news = NULL;
    policy->counts = (fl_policy_counts){0};
    fl_policy_fork_reset(policy, &me->policy, seat->holding, fl_ns_of(fl_gil_now(gil)));
}

static const fl_scheduler scheduler = {
    .thread_start = thread_start,
    .thread_end = thread_end,
    .wait = wait,
    .leave = leave,
    .acquired = acquired,
    .let_go = let_go,
    .dropped = dropped,
    .unlocked = unlocked,
    .switched = switched,
    .forked = forked,
};

/* ---- Settings */

const char *fl_schedule_set(fl_schedule_settings wanted)
{
    static bool on;
    fl_schedule_settings before = fl_modes_set(wanted);

    if (!on) {
        const char *failure = fl_hooks_schedule(&scheduler);
        if (failure) {
            (void)fl_modes_set(before);
            return failure;
        }
        on = true;
        fl_policy_constants k = fl_policy_constants_default();
        long_hold_ticks = fl_ticks_from_ns((uint64_t)k.floor_slice_ns);
        brief_ticks = fl_ticks_from_ns((uint64_t)k.lazy_ns);
        fl_yields_hook();
    }
    fl_modes_apply();
    return NULL;
}

static void look(fl_gil *gil, void *context)
{
    fl_schedule_state *state = context;
    const fl_policy *policy = gil->schedule;
    if (gil->alive && gil->index == 0 && policy) {
        *state = fl_modes_state(gil, policy);
    }
}

bool fl_schedule_look_until(fl_schedule_state *state, uint64_t until)
{
    fl_schedule_state seen = {.mode = FL_MODE_STOCK};
    bool all = fl_registry_each_until(look, &seen, until);
    if (all) {
        *state = seen;
    }
    return all;
}

fl_schedule_state fl_schedule_look(void)
{
    fl_schedule_state state = {.mode = FL_MODE_STOCK};
    (void)fl_schedule_look_until(&state, FL_FOREVER);
    return state;
}

fl_priority fl_schedule_priority(fl_priority priority)
{
    fl_priority before = (fl_priority)own_priority;
    fl_seat *seat = fl_registry_here.seat;

    own_priority = (uint8_t)priority;
    if (seat && seat->schedule) {
        fl_policy_set_priority(&((fl_scheduled *)seat->schedule)->policy, priority);
    }
    return before;
}

#endif
