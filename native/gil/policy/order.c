/* The policy: earliest deadline first, where a deadline is in proportion to what it is for.
 *
 * A burst is the GIL time that a thread uses between two drops of its own accord. A waiter is due `stretch`
 * times the expected length of its burst after that burst began. The finished bursts of the process say
 * what to expect of a burst that has used so much already (bursts.h). So a burst of 0.1 ms goes before one
 * of 20 ms, equals go in the order of their beginning, and one that has waited for long goes before all
 * that begin later. A holder is interrupted for a burst that is due sooner and expected to be less than
 * half as long, after grain_ns at the earliest; where hand-overs are slow, only for one that is shorter
 * still. A burst that was interrupted gets the GIL back as soon as it is due sooner, and from a burst that
 * has just begun without that delay: otherwise a long burst that was taken for a short one would keep its
 * lead.
 *
 * A burst of computation_ns is a computation. Computations wait behind all others, give way to them at once,
 * and take turns of a switch interval among each other. They have what the others leave, and are owed a floor
 * of the time in which one of them wants the GIL: when they are owed floor_slice_ns, they go first until that
 * is paid. A thread that yields goes behind those that wait, and its burst goes on, charged with what the
 * yield costs them: one that yields all the time is a computation.
 *
 * What follows for a waiter, below load 1: its wait is in proportion to its own burst (slowdown, not time,
 * is what is evened out), and finite whatever the others do, as its deadline stands still while it waits and
 * later ones are due later. docs/explanation/gil-scheduler.md has the bound, the proof, and what each rule
 * is worth.
 */
#include "gil/policy/order.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How long a burst will be that has used `age`. */
static int64_t expected(const fl_policy *policy, int64_t age)
{
    return least(fl_bursts_rank(&policy->bursts, age), most(policy->k.expect_most_ns, 2 * age));
}

static int64_t age_of(const fl_policy_thread *thread)
{
    return most(thread->used, thread->guess);
}

static int64_t due(const fl_policy *policy, const fl_policy_thread *thread)
{
    if (thread->cls == FL_CLASS_SERVING) {
        bool last = fl_awake_is(&thread->awake) || (thread->yielding && thread->yielded);
        int64_t length = last ? policy->k.computation_ns : expected(policy, age_of(thread));
        return thread->t_burst + policy->k.stretch * length;
    }
    return thread->t_burst + (thread->priority == FL_PRIORITY_BACKGROUND ? policy->k.background_ns : 0);
}

void fl_order_want(const fl_policy *policy, fl_policy_thread *thread)
{
    bool away = !thread->stayed && thread->t_want - thread->t_dropped >= policy->k.away_ns;

    if (thread->yielding) { /* behind those that wait now; a dozen in a row make a computation */
        thread->used += 2 * policy->k.floor_slice_ns;
        thread->turn = 0;
        thread->t_burst = thread->t_want;
    } else if (!thread->forced || away) {
        int64_t absent = thread->t_began - thread->t_ended; /* before the burst that is over now */
        bool brief = thread->used < policy->k.brief_ns && absent < policy->k.brief_ns;
        if (thread->seen && !brief) {
            thread->finished = thread->used;
            thread->guess = least(thread->used, thread->last);
            thread->last = thread->used;
        }
        thread->t_ended = thread->t_dropped;
        thread->t_began = thread->t_want;
        thread->used = thread->turn = 0;
        thread->t_burst = thread->t_want;
    }
}

fl_class fl_order_class(fl_policy *policy, fl_policy_thread *thread)
{
    if (thread->finished >= 0) {
        fl_bursts_note(&policy->bursts, thread->finished);
        thread->finished = -1;
    }
    if (thread->held_as == FL_CLASS_COMPUTING && thread->turn >= policy->interval) {
        thread->turn = 0;
        thread->t_burst = thread->t_want;
    }
    if (thread->priority != FL_PRIORITY_NORMAL) {
        return thread->priority == FL_PRIORITY_IO ? FL_CLASS_SERVING : FL_CLASS_COMPUTING;
    }
    return age_of(thread) >= policy->k.computation_ns ? FL_CLASS_COMPUTING : FL_CLASS_SERVING;
}

void fl_order_add(fl_policy *policy, fl_policy_thread *thread)
{
    thread->link.due = due(policy, thread);
    thread->link.since = thread->t_want;
    fl_duequeue_add(&policy->queues[thread->cls], &thread->link);
}

void fl_order_remove(fl_policy *policy, fl_policy_thread *thread)
{
    fl_duequeue_remove(&policy->queues[thread->cls], &thread->link);
}

static fl_policy_thread *first_of(const fl_policy *policy, fl_class cls)
{
    return (fl_policy_thread *)(void *)policy->queues[cls].first;
}

fl_policy_thread *fl_order_first(const fl_policy *policy)
{
    fl_policy_thread *serving = first_of(policy, FL_CLASS_SERVING);
    return serving != NULL ? serving : first_of(policy, FL_CLASS_COMPUTING);
}

uint32_t fl_order_place(const fl_policy *policy, const fl_policy_thread *thread)
{
    const fl_duequeue *queue = &policy->queues[thread->cls];
    uint32_t ahead = queue->first == &thread->link ? 0 : queue->count - 1;
    return thread->cls == FL_CLASS_SERVING ? ahead : ahead + policy->queues[FL_CLASS_SERVING].count;
}

bool fl_order_owes_floor(fl_policy *policy, int64_t now)
{
    return fl_account_credit(&policy->account, now) >= policy->k.floor_slice_ns;
}

fl_policy_thread *fl_order_pick(fl_policy *policy, int64_t now, bool *slice)
{
    fl_policy_thread *computing = first_of(policy, FL_CLASS_COMPUTING);

    const fl_policy_thread *serving = first_of(policy, FL_CLASS_SERVING);
    bool before = serving == NULL || fl_awake_is(&serving->awake);
    bool pays = before && policy->debt.due && fl_order_wants(policy);
    *slice = computing != NULL && (pays || fl_order_owes_floor(policy, now));
    policy->counts.slices += *slice;
    return *slice ? computing : fl_order_first(policy);
}

bool fl_order_wants(const fl_policy *policy)
{
    const fl_policy_thread *computing = first_of(policy, FL_CLASS_COMPUTING);
    return computing != NULL && !computing->yielding;
}

/* A thread that comes back at once from among computations saves two hand-overs. */
int64_t fl_order_reserve(const fl_policy *policy, const fl_policy_thread *dropper,
                         const fl_policy_thread *next, bool slice)
{
    bool keeps = !dropper->forced && !dropper->yielded && !slice && dropper->held_as == FL_CLASS_SERVING
                 && next->cls == FL_CLASS_COMPUTING;
    return keeps && !fl_predictor_says_long(&dropper->away) ? policy->k.lazy_ns : 0;
}

bool fl_order_offers(const fl_policy *policy, const fl_policy_thread *dropper, const fl_policy_thread *next,
                     bool slice, int64_t now)
{
    return next->asleep && !slice && !dropper->forced && !dropper->yielded
           && dropper->held_as == FL_CLASS_SERVING && now - next->t_want < policy->k.offer_ns;
}

/* The age at which the holder's burst is interrupted for this waiter's, if it is not over by then. */
static int64_t overtaken_at(const fl_policy *policy, const fl_policy_thread *holder,
                            const fl_policy_thread *thread)
{
    int64_t age = age_of(holder), stretch = policy->k.stretch;
    int64_t wanted = expected(policy, age_of(thread));
    int64_t patience = (thread->link.due - holder->t_burst) / stretch;

    if (!thread->forced) { /* two hand-overs more delay every waiter */
        patience = most(patience, 2 * (wanted + FL_HANDOVERS * policy->handover));
    }
    if (expected(policy, age) > patience) {
        return holder->used;
    }
    for (uint32_t bucket = fl_bursts_bucket(age) + 1; bucket < FL_BURSTS_BUCKETS; bucket++) {
        age = fl_bursts_low(bucket);
        if (expected(policy, age) > patience) {
            return age;
        }
    }
    return policy->k.computation_ns;
}

int64_t fl_order_ask_at(fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    const fl_policy_thread *holder = policy->holder;

    if (holder == NULL) { /* it has held the GIL since before there was scheduling */
        return thread->t_want + least(policy->interval, policy->k.unknown_ns);
    }
    int64_t from = policy->t_acquired + holder->coreless;
    int64_t computes = most(policy->k.computation_ns - holder->used, policy->k.grain_ns);

    if (thread->cls == FL_CLASS_COMPUTING) {
        bool equals = policy->holder_class == FL_CLASS_COMPUTING;
        return from + most(policy->interval - holder->turn, equals ? 0 : computes);
    }
    if (policy->holder_class == FL_CLASS_COMPUTING) {
        policy->holder_protected |= fl_order_owes_floor(policy, now);
        int64_t lasts = least(fl_account_lasts(&policy->account), policy->interval);
        int64_t pays = fl_awake_is(&thread->awake) && policy->debt.due ? from + policy->debt.owed : now;
        return most(pays, policy->holder_protected ? now + lasts : now);
    }
    int64_t overtaken = overtaken_at(policy, holder, thread) - holder->used;
    bool back = thread->forced && holder->used == 0;
    return from + least(back ? overtaken : most(overtaken, policy->k.grain_ns), computes);
}

/* The computation that is next keeps its core awake while a thread and its client take turns. */
static int64_t spin_computing(const fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    bool next = first_of(policy, FL_CLASS_COMPUTING) == thread && policy->queues[FL_CLASS_SERVING].count == 0;

    if (!next || !policy->alternates || policy->grantee != NULL || policy->holder_class == FL_CLASS_COMPUTING
        || now - policy->t_robbed < policy->pause) {
        return 0;
    }
    return most(policy->t_acquired + policy->k.grain_ns - now, 0);
}

int64_t fl_order_spin(const fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    if (!policy->spare_cores) {
        return 0;
    }
    if (thread->cls == FL_CLASS_COMPUTING) {
        return spin_computing(policy, thread, now);
    }
    bool crowd = policy->queues[FL_CLASS_SERVING].count > 1 && thread->offer != FL_OFFER_MISSED;
    if (thread->spun || crowd) {
        return 0;
    }
    thread->spun = true;
    return policy->k.spin_ns;
}
