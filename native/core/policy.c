#include "core/policy.h"

#include "core/discipline.h"

static bool is_cpu(const fl_policy_thread *thread)
{
    return thread->cls >= FL_CLASS_CPU;
}

static void enqueue(fl_policy *policy, fl_policy_thread *thread)
{
    if (policy->fair) {
        fl_fair_add(policy, thread);
    }
    else {
        fl_interactive_add(policy, thread);
    }
    thread->queued = true;
    policy->waiting++;
}

static void dequeue(fl_policy *policy, fl_policy_thread *thread)
{
    if (policy->fair) {
        fl_fair_remove(policy, thread);
    }
    else {
        fl_interactive_remove(policy, thread);
    }
    thread->queued = false;
    policy->waiting--;
}

/* The account's view from now on: does a CPU-bound thread want the GIL, and is it charged for it? (FAIR
 * keeps none.) */
static void settle(fl_policy *policy, bool charging, int64_t now)
{
    if (!policy->fair) {
        bool on_its_way = policy->limbo != NULL && is_cpu(policy->limbo);
        bool demand = charging || on_its_way || (policy->waiting > 0 && fl_interactive_cpu_demand(policy));
        fl_account_set(&policy->account, demand, charging, now);
    }
}

static fl_policy_thread *first(const fl_policy *policy)
{
    return policy->fair ? policy->heap : fl_interactive_first(policy);
}

static uint32_t place(const fl_policy *policy, const fl_policy_thread *thread)
{
    if (policy->fair) {
        return policy->heap == thread ? 0 : policy->waiting;
    }
    return fl_interactive_place(policy, thread);
}

void fl_policy_init(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t interval,
               const fl_policy_constants *constants, int64_t now)
{
    *policy = (fl_policy){.interval = interval};
    policy->k = constants != NULL ? *constants : fl_policy_constants_default();
    policy->t_aged = policy->t_progress = now - policy->k.window_ns;
    policy->t_crowded = now - policy->k.crowded_ns;
    for (int cls = 0; cls < FL_CLASSES; cls++) {
        fl_waitqueue_init(&policy->queues[cls]);
    }
    fl_policy_set_mode(policy, mode, share, now);
}

void fl_policy_set_mode(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t now)
{
    bool charging = policy->account.charging;

    policy->mode = mode;
    policy->fair = mode == FL_MODE_FAIR;
    policy->tripped = false;
    policy->stuck = policy->lost = 0;
    policy->alone = NULL;
    fl_account_init(&policy->account, share, policy->k.window_ns, policy->k.debt_ns, now);
    fl_account_set(&policy->account, charging, charging, now);
}

void fl_policy_thread_new(fl_policy_thread *thread, fl_priority priority)
{
    *thread = (fl_policy_thread){.priority = (uint8_t)priority};
    fl_predictor_init(&thread->away);
    fl_predictor_init(&thread->send);
}

void fl_policy_thread_exit(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    fl_policy_leave(policy, thread, now);
    if (policy->holder == thread) {
        policy->holder = NULL;
    }
    if (policy->alone == thread) {
        policy->alone = NULL;
    }
}

void fl_policy_yields(fl_policy_thread *thread)
{
    thread->yielding = true;
}

void fl_policy_stays(fl_policy_thread *thread)
{
    thread->stayed = true;
}

void fl_policy_set_priority(fl_policy_thread *thread, fl_priority priority)
{
    thread->priority = (uint8_t)priority;
}

void fl_policy_want(const fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    thread->t_want = now;
    thread->waited = false;
    thread->spun = thread->asleep = false;
    thread->t_spin = 0;
    thread->offer = FL_OFFER_NONE;
    thread->asks = 0;
    if (thread->seen && !thread->forced) {
        int64_t off = now - thread->t_dropped;
        fl_predictor_train(&thread->away, off > policy->k.lazy_ns);
        fl_predictor_train(&thread->send, off > policy->k.send_ns);
    }
}

void fl_policy_arrive(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    thread->cls = (uint8_t)fl_interactive_class(policy, thread);
    if (!thread->waited) {
        thread->waited = true;
        policy->counts.waited++;
    }
    if (policy->mode != FL_MODE_STOCK) {
        enqueue(policy, thread);
        settle(policy, policy->account.charging, now);
    }
}

/* Has a grant stood untaken for so many intervals that another thread should go first? Intervals are
 * counted as they are seen to pass, one per look, so that a stopped process (SIGSTOP) counts as one however
 * long it was. */
static bool is_stuck(fl_policy *policy, int64_t now)
{
    if (policy->limbo == NULL || policy->epoch != policy->stuck_epoch) {
        policy->stuck_epoch = policy->epoch;
        policy->stuck = 0;
        policy->t_stuck = now;
        return false;
    }
    int64_t least = policy->k.watchdog_least_ns;
    if (now - policy->t_stuck >= (policy->interval > least ? policy->interval : least)) {
        policy->t_stuck = now;
        policy->stuck++;
    }
    return policy->stuck >= policy->k.watchdog_intervals;
}

static fl_tick take(fl_policy *policy, fl_policy_thread *thread)
{
    dequeue(policy, thread);
    return (fl_tick){.kind = FL_TICK_TAKE};
}

/* The answer of a waiter that found a free GIL: take it, unless it is being kept for its last holder. */
static fl_tick tick_free(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    int64_t until = policy->reserved_until;

    if (!policy->fair) {
        int64_t throttle = fl_interactive_throttle(policy, thread, now);
        if (throttle > 0 && now + throttle > until) {
            until = now + throttle;
        }
        if (place(policy, thread) > 0 && until < policy->t_free + policy->k.kick_ns) {
            until = policy->t_free + policy->k.kick_ns; /* leave it to the first in line, who is on its way */
        }
    }
    return now >= until ? take(policy, thread) : (fl_tick){.kind = FL_TICK_SLEEP, .until = until};
}

static fl_tick tick_held(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    int64_t at;

    if (policy->limbo != NULL) {
        return (fl_tick){.kind = FL_TICK_SLEEP, .until = now + policy->k.limbo_ns};
    }
    if (thread->asks > 0 && thread->ask_epoch == policy->epoch && now < thread->t_ask) {
        return (fl_tick){.kind = FL_TICK_SLEEP, .until = thread->t_ask};
    }
    at = policy->fair ? fl_fair_ask_at(policy, thread) : fl_interactive_ask_at(policy, thread, now);
    if (now < at) {
        return (fl_tick){.kind = FL_TICK_SLEEP, .until = at};
    }
    if (thread->ask_epoch != policy->epoch) {
        thread->ask_epoch = policy->epoch;
        thread->asks = 0;
    }
    if (policy->asked) {
        policy->counts.asked_again++;
    }
    else {
        policy->counts.asked++;
    }
    int64_t again = policy->k.reask_ns << thread->asks;
    thread->asks = (uint8_t)(thread->asks < 16 ? thread->asks + 1 : 16);
    thread->t_ask = now + (again < policy->interval ? again : policy->interval);
    policy->asked = true;
    return (fl_tick){.kind = FL_TICK_ASK};
}

fl_tick fl_policy_tick(fl_policy *policy, fl_policy_thread *thread, bool locked, int64_t now)
{
    const fl_policy_constants *k = &policy->k;

    if (policy->mode == FL_MODE_STOCK) {
        fl_policy_leave(policy, thread, now);
        return (fl_tick){.kind = FL_TICK_PASS};
    }
    if (!thread->queued) {
        fl_policy_arrive(policy, thread, now);
    }
    if (is_stuck(policy, now)) {
        fl_policy_thread *lost = policy->limbo;
        lost->granted = lost->protected = false;
        policy->limbo = NULL;
        policy->counts.revoked++;
        dequeue(policy, thread);
        return (fl_tick){.kind = FL_TICK_TAKE, .revoke = lost};
    }

    thread->asleep = false;
    if (thread->offer == FL_OFFER_MADE) {
        thread->offer = FL_OFFER_MISSED;
        thread->spun = false; /* most holds are shorter than going back to sleep */
    }
    fl_tick tick = locked ? tick_held(policy, thread, now) : tick_free(policy, thread, now);
    if (tick.kind != FL_TICK_SLEEP) {
        return tick;
    }
    uint32_t ahead = place(policy, thread);
    if (ahead == 0 && locked && policy->holder_class < FL_CLASS_CPU && !policy->fair
        && tick.until > now + k->lazy_ns) {
        tick.until = now + k->lazy_ns; /* the holder may leave the GIL free at any time, waking nobody */
    }
    tick.until += ahead * (is_cpu(thread) || policy->fair ? k->stagger_cpu_ns : k->stagger_ns);
    thread->t_due = tick.until;
    int64_t spin = fl_interactive_spin(policy, thread, now);
    if (spin > 0) {
        tick = (fl_tick){.kind = FL_TICK_SPIN, .until = now + spin < tick.until ? now + spin : tick.until};
    }
    thread->asleep = tick.kind == FL_TICK_SLEEP;
    return tick;
}

void fl_policy_crowded(fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    if (is_cpu(thread)) {
        int64_t least = policy->k.crowded_least_ns, most = policy->k.crowded_ns;
        bool again = now - policy->t_crowded < 2 * policy->pause + 2 * policy->k.spin_cpu_ns;
        policy->pause = !again ? least : policy->pause < most / 2 ? 2 * policy->pause : most;
        policy->t_crowded = now;
    }
}

bool fl_policy_lost(fl_policy *policy)
{
    if (++policy->lost < policy->k.watchdog_grants || policy->mode == FL_MODE_STOCK) {
        return false;
    }
    policy->tripped = true;
    policy->mode = FL_MODE_STOCK;
    return true;
}

void fl_policy_leave(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    if (thread->queued) {
        dequeue(policy, thread);
        settle(policy, policy->account.charging, now);
    }
}

void fl_policy_acquired(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    if (!thread->waited) {
        thread->cls = (uint8_t)fl_interactive_class(policy, thread);
    }
    if (thread->waited || is_cpu(thread) || thread->held_as >= FL_CLASS_CPU) {
        thread->t_burst = now;
    }
    if (thread->cls == FL_CLASS_FRESH) {
        thread->since_wait = thread->seen ? 0 : policy->k.cpu_hold_ns;
    }
    thread->held_as = thread->cls;
    thread->t_acquired = now;
    thread->seen = true;
    thread->yielding = thread->stayed = false;
    thread->granted = false;

    if (policy->fair) {
        fl_fair_served(policy, thread, policy->limbo == thread ? now - policy->t_acquired : 0);
    }
    if (policy->limbo == thread) {
        policy->lost = 0;
    }
    policy->counts.acquired++;
    policy->epoch++;
    policy->limbo = policy->alone = NULL;
    policy->holder = thread;
    policy->holder_class = thread->cls;
    policy->holder_protected = thread->protected;
    policy->t_acquired = now;
    policy->asked = false;
    thread->protected = false;
    if (!is_cpu(thread)) {
        policy->t_progress = now;
        if (policy->server != thread) {
            policy->server = thread;
            policy->t_server = now;
        }
    }
    settle(policy, is_cpu(thread), now);
}

/* A sleeping waiter must not oversleep `until` by more than `slack`: whoever wakes it lets it set its timer
 * anew. */
static fl_policy_thread *kick(fl_policy *policy, fl_policy_thread *sleeper, int64_t until, int64_t slack)
{
    if (sleeper == NULL || sleeper->t_due <= until + slack) {
        return NULL;
    }
    sleeper->t_due = until;
    policy->counts.kicked++;
    return sleeper;
}

static fl_drop hand(fl_policy *policy, fl_policy_thread *next, bool slice, int64_t now)
{
    const fl_policy_constants *k = &policy->k;

    dequeue(policy, next);
    next->granted = true;
    next->protected = slice;
    policy->limbo = next;
    policy->holder_class = next->cls;
    policy->t_acquired = now;
    policy->counts.handed++;
    /* A hand-over is charged to whom it serves if it is longer than the hold that follows. */
    settle(policy, next->cls == FL_CLASS_POLL, now);
    int64_t slack = slice ? k->kick_ns : k->kick_handed_ns;
    int64_t until = slice ? now + fl_account_lasts(&policy->account) : now;
    return (fl_drop){.kind = FL_DROP_HAND, .grant = next, .kick = kick(policy, first(policy), until, slack)};
}

fl_drop fl_policy_drop(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    const fl_policy_constants *k = &policy->k;
    fl_policy_thread *next = policy->heap;
    bool slice = false;

    thread->hold = now - thread->t_acquired;
    thread->since_wait += thread->hold;
    thread->t_dropped = now;
    thread->forced = policy->asked;
    thread->turn = thread->forced && thread->held_as == FL_CLASS_CPU ? thread->turn + thread->hold : 0;
    policy->counts.forced += thread->forced;
    policy->asked = false;
    policy->holder = NULL;
    policy->t_free = policy->reserved_until = now;
    if (policy->fair) {
        fl_fair_charge(thread, thread->hold);
    }
    settle(policy, false, now);
    if (policy->holder_protected && !policy->fair) {
        fl_interactive_slice_ends(policy);
    }
    if (policy->waiting == 0) {
        bool plain = policy->mode == FL_MODE_INTERACTIVE && !thread->forced && thread->hold < k->cpu_hold_ns;
        policy->alone = plain && thread->held_as < FL_CLASS_CPU ? thread : NULL;
        return (fl_drop){.kind = FL_DROP_NOBODY};
    }
    if (policy->mode == FL_MODE_STOCK) {
        /* waiters from before the fallback: let them find out */
        return (fl_drop){.kind = FL_DROP_FREE, .kick = kick(policy, first(policy), now, -now)};
    }
    int64_t reserve;
    if (policy->fair) {
        reserve = fl_fair_reserve(policy, thread, now);
    }
    else {
        next = fl_interactive_pick(policy, now, &slice);
        reserve = next == NULL ? 0 : fl_interactive_reserve(policy, thread, next, slice, now);
    }
    if (reserve > 0 || next == NULL) {
        policy->reserved_until = now + reserve;
        if (next == NULL) { /* only pollers wait, and they have had their share */
            next = first(policy);
            reserve = fl_account_recovers_in(&policy->account);
        }
        policy->counts.left_free++;
        return (fl_drop){.kind = FL_DROP_FREE, .kick = kick(policy, next, now + reserve, k->kick_ns)};
    }
    if (!policy->fair && fl_interactive_offers(policy, thread, next, now)) {
        next->offer = FL_OFFER_MADE;
        policy->counts.left_free++;
        return (fl_drop){.kind = FL_DROP_FREE, .kick = kick(policy, next, now, 0)};
    }
    return hand(policy, next, slice, now);
}

void fl_policy_catch_up(fl_policy *policy, int64_t t_acquired, int64_t t_dropped)
{
    fl_policy_thread *thread = policy->alone;

    policy->alone = NULL;
    thread->t_dropped = t_dropped;
    if (policy->holder == thread) {
        policy->counts.acquired--; /* it is counted already */
        fl_policy_want(policy, thread, t_acquired);
        fl_policy_acquired(policy, thread, t_acquired);
        return;
    }
    thread->t_acquired = policy->t_acquired = policy->t_progress = t_acquired;
    thread->hold = t_dropped - t_acquired;
    policy->t_free = policy->reserved_until = t_dropped;
}

fl_policy_thread *fl_policy_evict(fl_policy *policy, int64_t now)
{
    fl_policy_thread *thread = first(policy);

    if (thread != NULL) {
        fl_policy_leave(policy, thread, now);
    }
    return thread;
}

void fl_policy_fork_reset(fl_policy *policy, fl_policy_thread *self, bool holds, int64_t now)
{
    for (int cls = 0; cls < FL_CLASSES; cls++) {
        fl_waitqueue_init(&policy->queues[cls]);
    }
    policy->heap = NULL;
    policy->waiting = 0;
    policy->limbo = policy->alone = NULL;
    policy->asked = false;
    policy->stuck = policy->lost = 0;
    policy->holder = holds ? self : NULL;
    policy->reserved_until = policy->t_free = now;
    self->queued = self->granted = self->protected = false;
    settle(policy, holds && is_cpu(self), now);
}
