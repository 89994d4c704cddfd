/* What the policy answers is done here, at the moments at which the hooks tell of a take or a drop. */
#define _GNU_SOURCE

#include "probe/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/ticks.h"
#include "probe/control.h"
#include "probe/hooks.h"
#include "probe/kernel.h"
#include "probe/parking.h"
#include "probe/patience.h"
#include "probe/registry.h"
#include "probe/yields.h"

#ifndef FL_PROBE_REFUSAL

typedef struct {
    fl_policy_thread policy; /* first: a policy's thread is a record */
    fl_parker parker;
    const fl_seat *seat;
    bool wanting;  /* the policy knows that it wants the GIL */
    bool ask;      /* to ask the holder at the next call */
    pid_t native_id;
    bool brief;          /* alone, it has come back at once: when it drops the GIL next is not asked for */
    bool forced;         /* its last drop was */
    long slept;          /* how often it had slept by then */
    uint64_t ran_ns;     /* its CPU time when its grant was withdrawn */
    uint64_t cpu_ns;     /* its CPU time, read before its present hold began, or when that did */
    fl_parker *wakes[2]; /* to wake once the mutex is unlocked */
    const char *news;    /* to say then; NULL: nothing */
} record;

/* How many switches of a GIL lie between two looks whether all hooks are in; a power of two. */
#define SWITCHES_PER_LOOK 256

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static const char gave_up[] = "fairlead: threads that were given the GIL did not wake up for it; "
                              "the interpreter's own scheduling is back in force\n";
static const char switched_on[] = "fairlead: the GIL is scheduled by order of fairlead ctl\n";
static const char switched_off[] = "fairlead: the interpreter's own scheduling is in force by order of "
                                   "fairlead ctl\n";

static fl_schedule_settings settings; /* with the main GIL held; each GIL's policy has its own copy */
/* The policy's slice_ns and lazy_ns. */
static uint64_t long_hold_ticks, brief_ticks;
static __thread uint8_t own_priority;
/* From outside (control.h): the mode, -1 for none; and whether that is not for the program to change. */
static atomic_int ordered = -1;
static atomic_bool off;
static atomic_uint trips;
/* Under the mutex of the main interpreter's GIL: ticks under another mode than STOCK, and since when so. */
static uint64_t scheduled, scheduled_since;

/* The holder of a GIL that is granted and not taken yet, as far as the interpreter can see. It signals the
   holder of a locked GIL by writing into that thread's state, and that of the dropping thread may be freed by
   now. This one is of no interpreter, so that none takes it for its own. And drop_gil(), which waits for a
   switch only while its own thread's state stands there, finds that the switch has been made. */
static PyThreadState nobody;

static record *record_of_policy(fl_policy_thread *thread)
{
    return (record *)(void *)thread;
}

static int64_t ns_of(uint64_t ticks)
{
    return (int64_t)fl_ticks_to_ns(ticks);
}

/* After each change of the mode. */
static void note_mode(fl_gil *gil, const fl_policy *policy)
{
    bool stock = policy->mode == FL_MODE_STOCK;
    if (gil->index == 0 && stock == (scheduled_since != 0)) {
        uint64_t now = fl_gil_now(gil);
        scheduled += stock ? now - scheduled_since : 0;
        scheduled_since = stock ? 0 : now;
    }
}

static fl_policy *policy_of(fl_gil *gil)
{
    fl_policy *policy = gil->schedule;
    if (policy == NULL && (policy = malloc(sizeof *policy)) != NULL) {
        int64_t interval = (int64_t)gil->py->interval * 1000;
        int order = atomic_load(&ordered);
        fl_policy_mode mode = order < 0 ? settings.mode : (fl_policy_mode)order;
        fl_policy_init(policy, mode, settings.share, interval, NULL, ns_of(fl_gil_now(gil)));
        policy->spare_cores = settings.spin;
        gil->schedule = policy;
        note_mode(gil, policy);
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
        if (me->forced && ns_of(now - seat->t_dropped) >= policy->k.away_ns
            && me->slept == fl_kernel_own_usage().sleeps) {
            fl_policy_stays(&me->policy);
        }
        me->forced = false;
        me->wanting = true;
        fl_policy_want(policy, &me->policy, ns_of(now));
    }
}

/* Or is the thread awake and kept from running (no core to be had, a page to be read, a debugger)? Where the
 * kernel cannot tell, nothing is proved: scheduling goes on. */
static bool asleep_since(const fl_watched *thread)
{
    const char *policy = (const char *)thread - offsetof(fl_policy_thread, watched);
    const record *other = (const record *)(const void *)policy;
    return fl_kernel_state(other->native_id) == 'S' && other->ran_ns != 0
           && fl_kernel_cpu_ns(other->native_id) == other->ran_ns;
}

static void withdraw(fl_seat *seat, record *me, record *other)
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

/* From its next look on, each waiter is scheduled in the new mode. */
static void change(fl_gil *gil, fl_policy *policy, fl_policy_mode mode, int32_t share)
{
    int64_t now = ns_of(fl_gil_now(gil));
    for (fl_policy_thread *thread; (thread = fl_policy_evict(policy, now)) != NULL;) {
        record *other = record_of_policy(thread);
        fl_parker_awake(&other->parker); /* evicted, hence not granted: it looks anew, in the new mode */
        fl_parker_wake(&other->parker);
    }
    fl_policy_set_mode(policy, mode, share, now);
    note_mode(gil, policy);
}

/* Does what another process has asked for since the last time. */
__attribute__((noinline)) static void obey(fl_gil *gil, fl_seat *seat)
{
    fl_policy *policy = policy_now(gil);
    record *me = record_of(seat);
    if (policy == NULL || me == NULL) {
        return;
    }
    fl_control_renew();
    uint32_t request = atomic_load(&fl_control()->request);
    gil->obeyed = request;
    uint32_t order = request & 0xff;
    if (order > FL_ORDER_STATUS && order < FL_ORDERS) {
        fl_policy_mode mode = order == FL_ORDER_INTERACTIVE ? FL_MODE_INTERACTIVE : FL_MODE_STOCK;
        atomic_store(&ordered, (int)mode);
        atomic_store(&off, order == FL_ORDER_OFF);
        if (policy->mode != mode) {
            if (gil->index == 0) {
                me->news = mode == FL_MODE_STOCK ? switched_off : switched_on;
                seat->wakes = true;
            }
            change(gil, policy, mode, settings.share);
        }
    }
    if (gil->index == 0) {
        fl_control_page *page = fl_control();
        atomic_store(&page->mode, (uint32_t)policy->mode);
        atomic_store(&page->off, atomic_load(&off));
        atomic_store(&page->trips, atomic_load(&trips));
        atomic_store(&page->waiting, policy->waiting);
        atomic_store(&page->acquired, policy->counts.acquired);
        atomic_store(&page->waited, policy->counts.waited);
        atomic_store(&page->answered, request);
    }
}

/* Under the mutex, where the present thread takes the GIL or waits for it. */
static inline void look_outside(fl_gil *gil, fl_seat *seat)
{
    if (UNLIKELY(atomic_load_explicit(&fl_control()->request, memory_order_relaxed) != gil->obeyed)) {
        obey(gil, seat);
    }
}

/* A holder without a core does not get on: neither is its burst charged for that time, nor is it asked to
   drop the GIL for it. Where its CPU time was read long before it acquired, it seems to have had a core. */
static void look_coreless(const fl_policy *policy, record *holder, int64_t now)
{
    int64_t held = now - policy->t_acquired;

    if (held >= policy->k.grain_ns) {
        uint64_t cpu_ns = fl_kernel_cpu_ns(holder->native_id);
        fl_policy_coreless(policy, &holder->policy, cpu_ns ? held - (int64_t)(cpu_ns - holder->cpu_ns) : 0);
    }
}

static int wait(fl_gil *gil, fl_seat *seat, const struct timespec *deadline)
{
    fl_policy *policy = policy_now(gil);
    record *me = record_of(seat);
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
    policy->interval = (int64_t)(gil->py->interval ? gil->py->interval : 1) * 1000;
    for (;;) {
        if (me->policy.granted) {
            fl_parker_awake(&me->parker);
            me->cpu_ns = slept ? fl_kernel_cpu_ns(me->native_id) : me->cpu_ns;
            gil->py->locked = 0; /* nobody sees it: take_gil() sets it again before it unlocks */
            return 0;
        }
        look_outside(gil, seat);
        int64_t now = ns_of(fl_gil_now(gil));
        if (policy->holder) {
            look_coreless(policy, record_of_policy(policy->holder), now);
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
                withdraw(seat, me, record_of_policy(tick.revoke));
            }
            me->cpu_ns = slept ? fl_kernel_cpu_ns(me->native_id) : me->cpu_ns;
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
            slept = true;
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

    if (gil->py->switch_number % SWITCHES_PER_LOOK == 0) {
        fl_hooks_mend();
    }
    if (policy && me) {
        if (!me->wanting) { /* it did not have to wait */
            want(gil, seat, now);
        }
        me->wanting = me->ask = false;
        fl_policy_acquired(policy, &me->policy, ns_of(now));
        if (fl_policy_gives_up(policy, ns_of(now), asleep_since)) {
            me->news = gave_up;
            seat->wakes = true;
            atomic_fetch_add(&trips, 1);
            note_mode(gil, policy);
        }
    }
    return false; /* a thread that dropped it before there was a scheduler may wait for this */
}

static bool acquired(fl_gil *gil, fl_seat *seat, uint64_t now)
{
    fl_policy *policy = gil->schedule;
    record *me = seat->schedule;

    look_outside(gil, seat);
    if (LIKELY(policy && me && seat->held < long_hold_ticks) && fl_policy_retake(policy, &me->policy)) {
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
    look_coreless(policy, me, ns_of(now));
    fl_drop drop = fl_policy_drop(policy, &me->policy, ns_of(now));
    if (drop.kick) {
        record *other = record_of_policy(drop.kick);
        if (fl_parker_kick(&other->parker)) {
            wake_later(seat, me, other);
        }
    }
    if (drop.kind == FL_DROP_HAND) {
        record *next = record_of_policy(drop.grant);
        gil->py->last_holder = &nobody;
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
        me->slept = fl_kernel_own_usage().sleeps;
    }
    if (me->news) {
        const char *news = me->news;
        me->news = NULL;
        (void)!write(STDERR_FILENO, news, strlen(news));
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
    me->news = NULL;
    policy->counts = (fl_policy_counts){0};
    atomic_store(&trips, 0);
    scheduled = 0;
    scheduled_since = policy->mode == FL_MODE_STOCK ? 0 : fl_gil_now(gil);
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
    change(gil, policy, settings.mode, settings.share);
    policy->spare_cores = settings.spin;
}

const char *fl_schedule_set(fl_schedule_settings wanted)
{
    static bool on;
    fl_schedule_settings before = settings;

    settings = wanted;
    if (atomic_load(&off)) {
        settings.mode = FL_MODE_STOCK;
    } else {
        atomic_store(&ordered, -1);
    }
    if (!on) {
        const char *failure = fl_hooks_schedule(&scheduler);
        if (failure) {
            settings = before;
            return failure;
        }
        on = true;
        fl_policy_constants k = fl_policy_constants_default();
        long_hold_ticks = fl_ticks_from_ns((uint64_t)k.floor_slice_ns);
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
        uint64_t ticks = scheduled + (scheduled_since ? fl_gil_now(gil) - scheduled_since : 0);
        *state = (fl_schedule_state){.mode = policy->mode,
                                     .waiting = policy->waiting,
                                     .tripped = policy->tripped,
                                     .off = atomic_load(&off),
                                     .trips = atomic_load(&trips),
                                     .scheduled_ns = fl_ticks_to_ns(ticks),
                                     .counts = policy->counts};
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
        fl_policy_set_priority(&((record *)seat->schedule)->policy, priority);
    }
    return before;
}

#endif
