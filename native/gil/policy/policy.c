#include "gil/policy/policy.h"

#include "gil/policy/order.h"

static bool computes(const fl_policy_thread *thread)
{
    return thread->cls == FL_CLASS_COMPUTING;
}

static void enqueue(fl_policy *policy, fl_policy_thread *thread)
{
    fl_order_add(policy, thread);
    thread->queued = true;
    policy->waiting++;
}

static void dequeue(fl_policy *policy, fl_policy_thread *thread)
{
    fl_order_remove(policy, thread);
    thread->queued = false;
    policy->waiting--;
}

/* The thread has kept the GIL for so long: it held it, or the GIL stood free for it or was handed over.
   `owed` of it is, to a computation that wants the GIL. */
static void keep(fl_policy *policy, fl_policy_thread *thread, int64_t ns, int64_t owed, bool wanted,
                 int64_t now)
{
    if (fl_awake_keeps(&thread->awake, ns, &policy->k, now) && wanted && thread->held_as == FL_CLASS_SERVING
        && thread->priority != FL_PRIORITY_IO) {
        fl_debt_add(&policy->debt, owed, policy->k.floor_slice_ns);
    }
}

/* Updates the account: whether a computation wants the GIL, and whether one is charged for it. */
static void settle(fl_policy *policy, bool charging, int64_t now)
{
    bool on_its_way = policy->grantee != NULL && computes(policy->grantee);
    bool demand = charging || on_its_way || policy->queues[FL_CLASS_COMPUTING].count > 0;
    fl_account_set(&policy->account, demand, charging, now);
}

void fl_policy_init(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t interval,
               const fl_policy_constants *constants, int64_t now)
{
    *policy = (fl_policy){.interval = interval};
    policy->k = constants != NULL ? *constants : fl_policy_constants_default();
    policy->t_robbed = now - policy->k.pause_most_ns;
    fl_bursts_init(&policy->bursts);
    fl_policy_set_mode(policy, mode, share, now);
}

void fl_policy_set_mode(fl_policy *policy, fl_policy_mode mode, int32_t share, int64_t now)
{
    bool charging = policy->account.charging;

    policy->mode = mode;
    policy->tripped = false;
    fl_watchdog_forget(&policy->watchdog);
    policy->alone = NULL;
    fl_account_init(&policy->account, share, policy->k.floor_slice_ns, now);
    policy->debt = (fl_debt){0};
    fl_account_set(&policy->account, charging, charging, now);
}

void fl_policy_thread_new(fl_policy_thread *thread, fl_priority priority)
{
    *thread = (fl_policy_thread){.priority = (uint8_t)priority, .finished = -1};
    fl_awake_init(&thread->awake);
    fl_predictor_init(&thread->away);
}

void fl_policy_thread_exit(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    fl_policy_leave(policy, thread, now);
    fl_watchdog_seen(&policy->watchdog, &thread->watched);
    if (policy->holder == thread) {
        policy->holder = NULL;
    }
    if (policy->alone == thread) {
        policy->alone = NULL;
    }
    if (policy->server == thread) {
        policy->server = NULL;
    }
    if (policy->kept_by == thread) {
        policy->kept_by = NULL;
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

bool fl_policy_samples(const fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    return policy->mode != FL_MODE_STOCK && !thread->forced
           && fl_awake_samples(&thread->awake, &policy->k, now);
}

void fl_policy_slept(const fl_policy *policy, fl_policy_thread *thread, bool slept)
{
    fl_awake_slept(&thread->awake, slept, &policy->k);
}

void fl_policy_coreless(const fl_policy *policy, fl_policy_thread *thread, int64_t ns)
{
    thread->coreless = ns < 0 ? 0 : ns < policy->interval ? ns : policy->interval;
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
    thread->offer = FL_OFFER_NONE;
    thread->asks = 0;
    if (thread->seen && !thread->forced && !thread->yielding) {
        fl_predictor_train(&thread->away, now - thread->t_dropped > policy->k.lazy_ns);
    }
    fl_order_want(policy, thread);
}

void fl_policy_arrive(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    thread->cls = (uint8_t)fl_order_class(policy, thread);
    if (!thread->waited) {
        thread->waited = true;
        policy->counts.waited++;
    }
    if (policy->mode != FL_MODE_STOCK) {
        enqueue(policy, thread);
        settle(policy, policy->account.charging, now);
    }
}

/* Has a waiter that is awake seen the same grant not taken for so long that it should go first? */
static bool is_stuck(fl_policy *policy, int64_t now)
{
    if (policy->grantee == NULL || policy->counts.direct_handovers != policy->stuck_grant) {
        policy->stuck_grant = policy->counts.direct_handovers;
        policy->t_stuck = now;
        return false;
    }
    return now - policy->t_stuck >= policy->k.late_ns;
}

static fl_tick take(fl_policy *policy, fl_policy_thread *thread)
{
    dequeue(policy, thread);
    return (fl_tick){.kind = FL_TICK_TAKE};
}

/* The answer of a waiter that found a free GIL: take it, unless it is being kept for its last holder, or for
 * the first in line, which is on its way. */
static fl_tick tick_free(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    int64_t until = policy->reserved_until, late = policy->t_free + policy->k.late_ns;

    if (fl_order_place(policy, thread) > 0 && until < late) {
        until = late;
    }
    return now >= until ? take(policy, thread) : (fl_tick){.kind = FL_TICK_SLEEP, .until = until};
}

static fl_tick tick_held(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    if (policy->grantee != NULL) {
        return (fl_tick){.kind = FL_TICK_SLEEP, .until = now + policy->k.late_ns};
    }
    if (thread->asks > 0 && thread->ask_epoch == policy->epoch && now < thread->t_ask) {
        return (fl_tick){.kind = FL_TICK_SLEEP, .until = thread->t_ask};
    }
    int64_t at = fl_order_ask_at(policy, thread, now);
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
    int64_t again = policy->k.retry_ns << thread->asks;
    thread->asks = (uint8_t)(thread->asks < 16 ? thread->asks + 1 : 16);
    thread->t_ask = now + (again < policy->interval ? again : policy->interval);
    policy->asked = true;
    return (fl_tick){.kind = FL_TICK_ASK};
}

fl_tick fl_policy_tick(fl_policy *policy, fl_policy_thread *thread, bool locked, int64_t now)
{
    const fl_policy_constants *k = &policy->k;

    fl_watchdog_seen(&policy->watchdog, &thread->watched);
    if (policy->mode == FL_MODE_STOCK) {
        fl_policy_leave(policy, thread, now);
        return (fl_tick){.kind = FL_TICK_PASS};
    }
    if (!thread->queued) {
        fl_policy_arrive(policy, thread, now);
    }
    if (is_stuck(policy, now)) {
        fl_tick tick = take(policy, thread);
        tick.revoke = policy->grantee;
        tick.revoke->granted = tick.revoke->protected = false;
        policy->grantee = NULL;
        policy->counts.revoked++;
        fl_watchdog_missing(&policy->watchdog, &tick.revoke->watched, now);
        return tick;
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
    uint32_t ahead = fl_order_place(policy, thread);
    if (ahead == 0 && locked && computes(thread) && tick.until > now + k->lazy_ns
        && policy->holder_class == FL_CLASS_SERVING) {
        tick.until = now + k->lazy_ns; /* the holder may leave the GIL free, and wakes none then */
    }
    tick.until += ahead * k->grain_ns; /* the back-up of those ahead */
    thread->t_timer = tick.until;
    int64_t spin = fl_order_spin(policy, thread, now);
    if (spin > 0) {
        tick = (fl_tick){.kind = FL_TICK_SPIN, .until = now + spin < tick.until ? now + spin : tick.until};
    }
    thread->asleep = tick.kind == FL_TICK_SLEEP;
    return tick;
}

void fl_policy_crowded(fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    if (computes(thread)) {
        int64_t least = policy->k.pause_least_ns, most = policy->k.pause_most_ns;
        bool again = now - policy->t_robbed < 2 * policy->pause + policy->interval;
        policy->pause = !again ? least : policy->pause < most / 2 ? 2 * policy->pause : most;
        policy->t_robbed = now;
    }
}

fl_policy_thread *fl_policy_server_to_look_at(const fl_policy *policy, const fl_policy_thread *thread,
                                              int64_t now)
{
    bool useful = computes(thread) && policy->spare_cores;
    return useful && now - policy->t_looked >= policy->k.alternates_ns ? policy->server : NULL;
}

/* A server that sleeps at a fourth of its turns or more waits for its client each time, and the client for
 * it: the two need one core. One that sleeps rarely has several clients, which need the other. */
void fl_policy_server_slept(fl_policy *policy, uint64_t sleeps, int64_t now)
{
    uint64_t turns = policy->counts.acquired, slept = sleeps - policy->sleeps;

    if (policy->looked) {
        policy->alternates = sleeps > policy->sleeps && FL_TURNS_A_SLEEP * slept >= turns - policy->turns;
    }
    policy->looked = true;
    policy->sleeps = sleeps;
    policy->turns = turns;
    policy->t_looked = now;
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
        thread->cls = (uint8_t)fl_order_class(policy, thread);
    }
    if (thread->waited) {
        int64_t took = now - policy->t_free;
        took = took < policy->interval ? took : policy->interval;
        policy->handover += (took - policy->handover) / FL_HANDOVER_PARTS;
    }
    int64_t idle = now - policy->t_free, most = policy->k.lazy_ns; /* longer: for want of a core */
    idle = idle < most ? idle : most;
    keep(policy, policy->kept_by != NULL ? policy->kept_by : thread, idle, idle * policy->k.awake_costs,
         policy->gap_owed && (computes(thread) || fl_order_wants(policy)), now);
    policy->paying &= thread->granted;
    thread->held_as = thread->cls;
    thread->t_acquired = now;
    thread->coreless = 0;
    thread->seen = true;
    thread->yielded = thread->yielding;
    thread->yielding = thread->stayed = false;
    thread->granted = false;

    policy->counts.acquired++;
    policy->epoch++;
    policy->grantee = policy->alone = NULL;
    policy->holder = thread;
    policy->holder_class = thread->cls;
    policy->holder_protected = thread->protected;
    policy->t_acquired = now;
    policy->asked = false;
    thread->protected = false;
    if (!computes(thread) && policy->server != thread) {
        policy->server = thread;
        policy->alternates = policy->looked = false;
    }
    settle(policy, computes(thread), now);
}

/* A sleeping waiter must not oversleep `until` by more than `slack`: the thread that wakes it lets it
 * set its timer anew. */
static fl_policy_thread *kick(fl_policy *policy, fl_policy_thread *sleeper, int64_t until, int64_t slack)
{
    if (sleeper == NULL || sleeper->t_timer <= until + slack) {
        return NULL;
    }
    sleeper->t_timer = until;
    policy->counts.woken_early++;
    return sleeper;
}

static fl_drop hand(fl_policy *policy, fl_policy_thread *next, bool slice, int64_t now)
{
    dequeue(policy, next);
    next->granted = true;
    next->protected = slice && fl_order_owes_floor(policy, now);
    policy->grantee = next;
    policy->paying = slice;
    policy->gap_owed &= !slice;
    policy->holder_class = next->cls;
    policy->t_acquired = now;
    policy->counts.direct_handovers++;
    /* A hand-over is charged to the thread that it serves if it is longer than the hold that follows. */
    settle(policy, computes(next) && next->yielding, now);
    int64_t lasts = fl_account_lasts(&policy->account);
    int64_t until = !slice ? now : now + (lasts > policy->debt.owed ? lasts : policy->debt.owed);
    return (fl_drop){.kind = FL_DROP_HAND,
                     .grant = next,
                     .kick = kick(policy, fl_order_first(policy), until, policy->k.late_ns)};
}

fl_drop fl_policy_drop(fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    const fl_policy_constants *k = &policy->k;
    bool slice;

    thread->hold = now - thread->t_acquired;
    thread->used += thread->hold - thread->coreless;
    thread->turn += thread->hold - thread->coreless;
    thread->t_dropped = now;
    thread->forced = policy->asked;
    policy->counts.forced += thread->forced;
    policy->asked = false;
    policy->holder = NULL;
    policy->t_free = policy->reserved_until = now;
    policy->kept_by = computes(thread) ? NULL : thread;
    policy->gap_owed = !policy->paying;
    policy->paying = false;
    settle(policy, false, now);
    if (computes(thread)) {
        fl_debt_pay(&policy->debt, thread->hold - thread->coreless);
    }
    else {
        int64_t ns = thread->hold - thread->coreless;
        keep(policy, thread, ns, ns / policy->k.awake_holds, fl_order_wants(policy), now);
    }
    if (policy->waiting == 0) {
        bool plain = policy->mode == FL_MODE_INTERACTIVE && !thread->forced && !thread->yielded
                     && thread->hold < k->floor_slice_ns && policy->watchdog.missing == 0;
        policy->alone = plain && thread->held_as == FL_CLASS_SERVING ? thread : NULL;
        return (fl_drop){.kind = FL_DROP_NO_WAITER};
    }
    if (policy->mode == FL_MODE_STOCK) {
        /* waiters from before the fallback: let them find out */
        return (fl_drop){.kind = FL_DROP_FREE, .kick = kick(policy, fl_order_first(policy), now, -now)};
    }
    fl_policy_thread *next = fl_order_pick(policy, now, &slice);
    int64_t reserve = fl_order_reserve(policy, thread, next, slice);
    if (reserve > 0) {
        policy->reserved_until = now + reserve;
        policy->counts.dropped_unclaimed++;
        return (fl_drop){.kind = FL_DROP_FREE, .kick = kick(policy, next, now + reserve, k->late_ns / 2)};
    }
    if (fl_order_offers(policy, thread, next, slice, now)) {
        next->offer = FL_OFFER_MADE;
        policy->counts.dropped_unclaimed++;
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
    thread->t_acquired = policy->t_acquired = t_acquired;
    thread->hold = thread->used = t_dropped - t_acquired;
    policy->t_free = policy->reserved_until = t_dropped;
}

fl_policy_thread *fl_policy_evict(fl_policy *policy, int64_t now)
{
    fl_policy_thread *thread = fl_order_first(policy);

    if (thread != NULL) {
        fl_policy_leave(policy, thread, now);
    }
    return thread;
}

void fl_policy_fork_reset(fl_policy *policy, fl_policy_thread *self, bool holds, int64_t now)
{
    for (int cls = 0; cls < FL_CLASSES; cls++) {
        policy->queues[cls] = (fl_duequeue){0};
    }
    policy->waiting = 0;
    policy->grantee = policy->alone = policy->kept_by = NULL;
    policy->server = NULL;
    policy->asked = false;
    policy->watchdog = (fl_watchdog){0};
    self->watched.missing = false;
    policy->holder = holds ? self : NULL;
    policy->reserved_until = policy->t_free = now;
    self->queued = self->granted = self->protected = false;
    settle(policy, holds && computes(self), now);
}
