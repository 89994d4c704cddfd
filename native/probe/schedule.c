/* What the policy answers is done here, at the moments at which the hooks tell of a take or a drop. */
#define _GNU_SOURCE

#include "probe/schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/ticks.h"
#include "probe/hooks.h"
#include "probe/parking.h"
#include "probe/registry.h"
#include "probe/yields.h"

#ifndef FL_PROBE_REFUSAL

typedef struct {
    fl_policy_thread policy; /* first: a policy's thread is a record */
    fl_parker parker;
    const fl_seat *seat;
    bool wanting;  /* the policy knows that it wants the GIL */
    bool ask;      /* to ask the holder at the next call */
    bool announce; /* to say that scheduling has ended */
    pid_t native_id;
    bool brief;          /* alone, it has come back at once: when it drops the GIL next is not asked for */
    bool forced;         /* its last drop was */
    long slept;          /* how often it had slept by then */
    fl_parker *wakes[2]; /* to wake once the mutex is unlocked */
} record;

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

static fl_schedule_settings settings; /* with the main GIL held; each GIL's policy has its own copy */
/* The policy's cpu_hold_ns and lazy_ns. */
static uint64_t cpu_hold_ticks, brief_ticks;
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

/* The same, told of what it was not told at the time. */
static fl_policy *policy_now(fl_gil *gil)
{
    fl_policy *policy = policy_of(gil);
    if (policy && policy->alone) {
        const fl_seat *seat = record_of_policy(policy->alone)->seat;
        bool holds = policy->holder == policy->alone;
        uint64_t acquired = holds ? seat->t_acquired : seat->t_dropped - seat->held;
        fl_policy_catch_up(policy, ns_of(acquired), ns_of(seat->t_dropped));
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
            made->seat = seat;
            made->native_id = gettid();
        }
        seat->schedule = made;
    }
    return seat->schedule;
}

/* Under the mutex; woken when it is unlocked. */
static void wake_later(fl_seat *seat, record *me, record *other)
{
    me->wakes[me->wakes[0] != NULL] = &other->parker;
    seat->wakes = true;
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
    fl_parker_awake(&me->parker);
}

static void thread_end(fl_gil *gil, fl_seat *seat)
{
    record *me = seat->schedule;
    fl_policy *policy = gil->schedule ? policy_now(gil) : NULL;

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
        if (me->forced && ns_of(now - seat->t_dropped) >= policy->k.long_off_ns
            && me->slept == fl_parker_sleeps()) {
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
    fl_parker_awake(&other->parker);
    wake_later(seat, me, other);
}

static int ask(fl_gil *gil, fl_seat *seat)
{
    fl_hooks_request(gil, seat, fl_gil_now(gil));
    return ETIMEDOUT;
}

static int wait(fl_gil *gil, fl_seat *seat, const struct timespec *deadline)
{
    fl_policy *policy = policy_now(gil);
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
            fl_parker_awake(&me->parker);
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
        case FL_TICK_SPIN:
            if (!fl_parker_may_spin(&me->parker, now)) {
                fl_policy_crowded(policy, &me->policy, now);
                break;
            }
            policy->counts.spun++;
            if (fl_parker_spin(&me->parker, &gil->py->mutex, tick.until - now) >= policy->k.robbed_ns) {
                fl_policy_crowded(policy, &me->policy, ns_of(fl_gil_now(gil)));
            }
            break;
        case FL_TICK_SLEEP:
            fl_parker_park(&me->parker, &gil->py->mutex, tick.until - now);
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

static bool acquired_anew(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = policy_now(gil);
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

static bool acquired(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = gil->schedule;
    record *me = seat->schedule;

    if (LIKELY(policy && me && seat->held < cpu_hold_ticks) && fl_policy_retake(policy, &me->policy)) {
        me->brief = now - seat->t_dropped < brief_ticks;
        return false;
    }
    return acquired_anew(gil, seat, now);
}

static bool dropped_before_others(fl_gil *gil, fl_seat *seat, uint64_t now, bool forced)
{
    fl_policy *policy = policy_now(gil);
    record *me = seat->schedule;

    if (policy->holder != &me->policy) { /* it took the GIL before there was a scheduler */
        fl_policy_acquired(policy, &me->policy, ns_of(seat->t_acquired));
    }
    policy->asked = me->forced = forced;
    seat->wakes |= forced;
    fl_drop drop = fl_policy_drop(policy, &me->policy, ns_of(now));
    if (drop.kick) {
        record *other = record_of_policy(drop.kick);
        if (fl_parker_kick(&other->parker)) {
            wake_later(seat, me, other);
        }
    }
    if (drop.kind == FL_DROP_HAND) {
        record *next = record_of_policy(drop.grant);
        gil->py->locked = 1;
        if (fl_parker_grant(&next->parker)) {
            wake_later(seat, me, next);
        }
    }
    return drop.kind != FL_DROP_NOBODY && policy->mode != FL_MODE_STOCK;
}

/* Who takes and drops the GIL several times in a tenth of a millisecond, with nobody else there, neither
   waits for the world nor computes: it is enough to know that the drop was between two takes. */
static bool let_go(fl_gil *gil, fl_seat *seat)
{
    fl_policy *policy = gil->schedule;
    const record *me = seat->schedule;

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
    record *me = seat->schedule;

    if (policy == NULL || me == NULL || LIKELY(fl_policy_let_go(policy, &me->policy))) {
        return false;
    }
    return dropped_before_others(gil, seat, now, forced);
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
            fl_parker_wake(me->wakes[i]);
            me->wakes[i] = NULL;
        }
    }
    if (me->forced) {
        me->slept = fl_parker_sleeps();
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
    if (policy->alone == &me->policy) { /* of others, nothing is left to be told */
        (void)policy_now(gil);
    }
    fl_parker_awake(&me->parker);
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
    .let_go = let_go,
    .dropped = dropped,
    .unlocked = unlocked,
    .switched = switched,
    .forked = forked,
};

/* ---- Settings */

static void apply(fl_gil *gil, void *context)
{
    (void)context;
    if (!gil->alive || (gil->idle && gil->schedule == NULL)) { /* it may be gone; else it gets one later */
        return;
    }
    fl_policy *policy = policy_now(gil);
    if (policy == NULL) {
        return;
    }
    int64_t now = ns_of(fl_gil_now(gil));
    for (fl_policy_thread *thread; (thread = fl_policy_evict(policy, now)) != NULL;) {
        record *other = record_of_policy(thread);
        fl_parker_awake(&other->parker); /* evicted, hence not granted: it looks anew, in the new mode */
        fl_parker_wake(&other->parker);
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
        fl_policy_constants k = fl_policy_constants_default();
        cpu_hold_ticks = fl_ticks_from_ns((uint64_t)k.cpu_hold_ns);
        brief_ticks = fl_ticks_from_ns((uint64_t)k.lazy_ns);
        fl_yields_hook();
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
