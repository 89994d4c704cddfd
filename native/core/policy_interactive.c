/* The discipline "interactive": classes, first-in first-out within a class, and a share of the GIL for CPU-
 * bound threads. Which thread is worth how much is decided by what it did last, never by a promise:
 *
 *   FRESH before BRIEF before {CPU, POLL} before BACKGROUND,
 *
 * except that CPU and POLL go first when the account says that they are behind their share, and that a
 * waiter of a lower class which was passed over for age_ns goes first once per age_ns. (Unlimited ageing
 * brings the square back: after age_ns every spinning thread is old.)
 */
#include "core/discipline.h"

static fl_policy_thread *first_of(const fl_policy *policy, fl_class cls)
{
    return (fl_policy_thread *)(void *)fl_waitqueue_first(&policy->queues[cls]);
}

static uint32_t waiting_servers(const fl_policy *policy)
{
    return policy->queues[FL_CLASS_FRESH].count + policy->queues[FL_CLASS_BRIEF].count;
}

/* How far behind their share CPU-bound threads must be to go first. */
static int64_t slice_ns(const fl_policy *policy)
{
    const fl_policy_constants *k = &policy->k;

    int64_t herd = policy->herd < k->herd_most ? policy->herd : k->herd_most;

    return k->share_slice_ns + (herd > k->herd_least ? k->herd_ns * (herd - k->herd_least) : 0);
}

void fl_interactive_slice_ends(fl_policy *policy)
{
    policy->herd = waiting_servers(policy);
}

bool fl_interactive_cpu_demand(const fl_policy *policy)
{
    return (policy->queues[FL_CLASS_CPU].count | policy->queues[FL_CLASS_POLL].count
            | policy->queues[FL_CLASS_BACKGROUND].count) != 0;
}

fl_class fl_interactive_class(const fl_policy *policy, const fl_policy_thread *thread)
{
    const fl_policy_constants *k = &policy->k;

    if (thread->priority == FL_PRIORITY_BACKGROUND) {
        return FL_CLASS_BACKGROUND;
    }
    if (thread->priority == FL_PRIORITY_IO || !thread->seen) {
        return FL_CLASS_FRESH;
    }
    if (thread->yielding) {
        return thread->hold < k->poll_hold_ns ? FL_CLASS_POLL : FL_CLASS_CPU;
    }
    int64_t off = thread->stayed ? 0 : thread->t_want - thread->t_dropped;
    if (off >= k->long_off_ns) {
        return FL_CLASS_FRESH;
    }
    /* Whoever answers requests of some tenths of a millisecond is forced out by the next that comes in. */
    bool shown = thread->hold >= k->brief_hold_ns && thread->since_wait >= k->cpu_hold_ns;
    if (thread->forced && (thread->held_as >= FL_CLASS_CPU || shown)) {
        return FL_CLASS_CPU;
    }
    return thread->hold >= k->cpu_hold_ns ? FL_CLASS_CPU : FL_CLASS_BRIEF;
}

/* A CPU-bound thread that was forced out before its turn is over, which lasts for a switch interval, stays
 * the first in line: it has a core and a warm cache, the next one must be woken first. */
void fl_interactive_add(fl_policy *policy, fl_policy_thread *thread)
{
    fl_waitqueue *queue = &policy->queues[thread->cls];

    if (thread->cls == FL_CLASS_CPU && thread->turn > 0 && thread->turn < policy->interval) {
        fl_waitqueue_return(queue, &thread->link);
        return;
    }
    thread->turn = 0;
    thread->t_line = thread->t_want;
    fl_waitqueue_push(queue, &thread->link);
}

void fl_interactive_remove(fl_policy *policy, fl_policy_thread *thread)
{
    fl_waitqueue_remove(&policy->queues[thread->cls], &thread->link);
}

/* CPU and POLL are one queue in the order in which their turns began, except that pollers that must wait
 * are stepped over. */
static fl_policy_thread *first_cpu(const fl_policy *policy, bool step_over)
{
    fl_policy_thread *cpu = first_of(policy, FL_CLASS_CPU);
    fl_policy_thread *poll = step_over ? NULL : first_of(policy, FL_CLASS_POLL);

    if (cpu != NULL && poll != NULL) {
        return poll->t_line < cpu->t_line ? poll : cpu;
    }
    return cpu != NULL ? cpu : poll;
}

fl_policy_thread *fl_interactive_first(const fl_policy *policy)
{
    for (fl_class cls = FL_CLASS_FRESH; cls < FL_CLASSES; cls++) {
        fl_policy_thread *thread = first_of(policy, cls);
        if (thread != NULL) {
            return thread;
        }
    }
    return NULL;
}

uint32_t fl_interactive_place(const fl_policy *policy, const fl_policy_thread *thread)
{
    uint32_t ahead = fl_waitqueue_place(&policy->queues[thread->cls], &thread->link);

    if (thread->cls > FL_CLASS_FRESH) {
        ahead += policy->queues[FL_CLASS_FRESH].count;
    }
    if (thread->cls > FL_CLASS_BRIEF) {
        ahead += policy->queues[FL_CLASS_BRIEF].count;
    }
    if (thread->cls == FL_CLASS_BACKGROUND) {
        ahead += policy->queues[FL_CLASS_CPU].count; /* pollers may be stepped over, so they do not count */
    }
    return ahead;
}

int64_t fl_interactive_throttle(fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    if (thread->cls != FL_CLASS_POLL || now - policy->t_progress >= policy->k.quiet_ns) {
        return 0;
    }
    (void)fl_account_credit(&policy->account, now);
    return fl_account_recovers_in(&policy->account);
}

/* A thread that serves and its client take turns within microseconds. A core that a CPU-bound thread leaves
 * meanwhile falls asleep, is woken late, and all three are on the other core until then: so the thread that
 * is next stays where it is, unless that keeps somebody waiting. Where several threads serve, the cores are
 * awake without it. */
static int64_t spin_cpu(const fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    const fl_policy_constants *k = &policy->k;

    if (first_of(policy, FL_CLASS_CPU) != thread || policy->limbo != NULL
        || policy->holder_class >= FL_CLASS_CPU || now - policy->t_crowded < policy->pause
        || now - policy->t_server < k->spin_cpu_ns) {
        return 0;
    }
    if (thread->t_spin == 0) {
        thread->t_spin = now + k->spin_cpu_ns;
    }
    return thread->t_spin - now;
}

/* Under FAIR too, whose queues of classes are empty. */
int64_t fl_interactive_spin(const fl_policy *policy, fl_policy_thread *thread, int64_t now)
{
    uint32_t others = waiting_servers(policy);

    if (!policy->spare_cores) {
        return 0;
    }
    if (thread->cls >= FL_CLASS_CPU) {
        return others == 0 ? spin_cpu(policy, thread, now) : 0;
    }
    if (thread->spun || (others > 1 && thread->offer != FL_OFFER_MISSED)) {
        return 0;
    }
    thread->spun = true;
    return policy->k.spin_ns;
}

/* A waiter of this class that was passed over for too long, if no other was helped out of turn lately. */
static fl_policy_thread *aged(fl_policy *policy, fl_class cls, int64_t now)
{
    fl_policy_thread *thread = first_of(policy, cls);

    int64_t age = policy->k.age_ns;

    if (thread == NULL || now - thread->t_want < age || now - policy->t_aged < age) {
        return NULL;
    }
    policy->t_aged = now;
    policy->counts.aged++;
    return thread;
}

fl_policy_thread *fl_interactive_pick(fl_policy *policy, int64_t now, bool *slice)
{
    const fl_policy_constants *k = &policy->k;
    int64_t credit = fl_account_credit(&policy->account, now);
    fl_policy_thread *cpu = first_cpu(policy, false);
    fl_policy_thread *thread;

    *slice = false;
    if (cpu != NULL && credit >= (cpu->cls == FL_CLASS_CPU ? slice_ns(policy) : k->poll_credit_ns)) {
        *slice = cpu->cls == FL_CLASS_CPU;
        policy->counts.slices += *slice;
        return cpu;
    }
    if ((thread = aged(policy, FL_CLASS_BACKGROUND, now)) != NULL
        || (thread = aged(policy, FL_CLASS_BRIEF, now)) != NULL
        || (thread = first_of(policy, FL_CLASS_FRESH)) != NULL
        || (thread = first_of(policy, FL_CLASS_BRIEF)) != NULL) {
        return thread;
    }
    thread = first_cpu(policy, credit < 0 && now - policy->t_progress < k->quiet_ns);
    return thread != NULL ? thread : first_of(policy, FL_CLASS_BACKGROUND);
}

int64_t fl_interactive_reserve(const fl_policy *policy, const fl_policy_thread *dropper,
                               const fl_policy_thread *next, bool slice, int64_t now)
{
    const fl_policy_constants *k = &policy->k;

    if (dropper->forced || dropper->held_as >= FL_CLASS_CPU || slice) {
        return 0;
    }
    if (next->cls >= FL_CLASS_CPU) {
        /* A gap is worth filling only for the sake of the share, for it costs two hand-overs, and if it is
           not shorter than these. */
        bool worth = policy->account.credit >= k->gap_credit_ns && fl_predictor_says_long(&dropper->send);
        return worth || fl_predictor_says_long(&dropper->away) ? 0 : k->lazy_ns;
    }
    if (next->cls < dropper->held_as || now - dropper->t_burst >= k->burst_ns) {
        return 0;
    }
    return fl_predictor_says_long(&dropper->send) ? 0 : k->send_ns;
}

bool fl_interactive_offers(const fl_policy *policy, const fl_policy_thread *dropper,
                           const fl_policy_thread *next, int64_t now)
{
    if (!next->asleep || next->offer == FL_OFFER_MISSED || next->cls >= FL_CLASS_CPU
        || now - next->t_want >= policy->k.offer_ns) {
        return false;
    }
    /* Who was forced out, or polls, would be back before it is awake. */
    return !dropper->forced && dropper->held_as < FL_CLASS_CPU && policy->queues[FL_CLASS_POLL].count == 0;
}

int64_t fl_interactive_ask_at(fl_policy *policy, const fl_policy_thread *thread, int64_t now)
{
    const fl_policy_constants *k = &policy->k;
    int64_t wait = policy->interval;

    if (policy->holder_class >= FL_CLASS_CPU && thread->cls < FL_CLASS_CPU) {
        int64_t credit = fl_account_credit(&policy->account, now);
        if (credit >= slice_ns(policy) && policy->holder_class == FL_CLASS_CPU) {
            policy->holder_protected = true;
        }
        if (!policy->holder_protected) {
            return now;
        }
        int64_t lasts = fl_account_lasts(&policy->account);
        return now + (lasts < wait ? lasts : wait);
    }
    if (thread->cls == FL_CLASS_FRESH && k->ask_fresh_ns < wait) {
        wait = k->ask_fresh_ns;
    }
    else if (thread->cls == FL_CLASS_BRIEF && k->ask_brief_ns < wait) {
        wait = k->ask_brief_ns;
    }
    else if (policy->holder_class == FL_CLASS_CPU && policy->holder != NULL) {
        wait -= policy->holder->turn;
    }
    return policy->t_acquired + wait;
}
