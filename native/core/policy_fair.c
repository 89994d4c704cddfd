/* The discipline "fair": equal GIL time for every thread that wants it.
 *
 * Start-time fair queueing (Goyal, Vin and Cheng, 1996): each thread's hold time is added to its own
 * virtual clock, the waiter whose clock is lowest is served, and who comes from a wait is put at most
 * fair_lag_ns behind the thread served last, so that sleeping saves nothing up. The waiters are a pairing
 * heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) threaded through their records: no allocation, O(log
 * n) amortised, removal from the middle.
 */
#include "core/discipline.h"

static bool before(const fl_policy_thread *a, const fl_policy_thread *b)
{
    return a->used != b->used ? a->used < b->used : a->t_want < b->t_want;
}

/* `prev` is the left sibling, or the parent for a first child; NULL for the root. */
static fl_policy_thread *meld(fl_policy_thread *a, fl_policy_thread *b)
{
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    if (before(b, a)) {
        fl_policy_thread *swap = a;
        a = b;
        b = swap;
    }
    b->heap.prev = a;
    b->heap.next = a->heap.child;
    if (a->heap.child != NULL) {
        a->heap.child->heap.prev = b;
    }
    a->heap.child = b;
    a->heap.next = a->heap.prev = NULL;
    return a;
}

/* Meld a list of siblings in pairs from the left, then all pairs from the right. */
static fl_policy_thread *meld_siblings(fl_policy_thread *list)
{
    fl_policy_thread *pairs = NULL, *heap = NULL;

    while (list != NULL) {
        fl_policy_thread *a = list, *b = a->heap.next;
        list = b != NULL ? b->heap.next : NULL;
        a->heap.next = a->heap.prev = NULL;
        if (b != NULL) {
            b->heap.next = b->heap.prev = NULL;
        }
        a = meld(a, b);
        a->heap.next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        fl_policy_thread *rest = pairs->heap.next;
        pairs->heap.next = NULL;
        heap = meld(heap, pairs);
        pairs = rest;
    }
    return heap;
}

static void catch_up(const fl_policy *policy, fl_policy_thread *thread)
{
    int64_t earliest = policy->virtual_now - policy->k.fair_lag_ns;

    if (thread->used < earliest) {
        thread->used = earliest;
    }
}

void fl_fair_add(fl_policy *policy, fl_policy_thread *thread)
{
    catch_up(policy, thread);
    thread->heap.child = thread->heap.next = thread->heap.prev = NULL;
    policy->heap = meld(policy->heap, thread);
}

void fl_fair_remove(fl_policy *policy, fl_policy_thread *thread)
{
    fl_policy_thread *orphans = meld_siblings(thread->heap.child);

    if (policy->heap == thread) {
        policy->heap = orphans;
    }
    else {
        if (thread->heap.prev->heap.child == thread) {
            thread->heap.prev->heap.child = thread->heap.next;
        }
        else {
            thread->heap.prev->heap.next = thread->heap.next;
        }
        if (thread->heap.next != NULL) {
            thread->heap.next->heap.prev = thread->heap.prev;
        }
        policy->heap = meld(policy->heap, orphans);
    }
    thread->heap.child = thread->heap.next = thread->heap.prev = NULL;
}

int64_t fl_fair_ask_at(const fl_policy *policy, const fl_policy_thread *thread)
{
    int64_t wait = policy->k.fair_slice_ns;

    if (policy->holder != NULL) {
        wait += thread->used - policy->holder->used;
    }
    return policy->t_acquired + (wait < policy->interval ? wait : policy->interval);
}

void fl_fair_served(fl_policy *policy, fl_policy_thread *thread, int64_t handing)
{
    catch_up(policy, thread);
    fl_fair_charge(thread, handing);
    if (thread->used > policy->virtual_now) {
        policy->virtual_now = thread->used;
    }
}

int64_t fl_fair_reserve(const fl_policy *policy, const fl_policy_thread *dropper, int64_t now)
{
    bool stays = dropper->forced || now - dropper->t_burst >= policy->k.burst_ns;

    return stays || fl_predictor_says_long(&dropper->send) ? 0 : policy->k.send_ns;
}

void fl_fair_charge(fl_policy_thread *thread, int64_t ns)
{
    /* A weight of four for "io", of an eighth for "background". */
    if (thread->priority == FL_PRIORITY_IO) {
        thread->used += ns / 4;
    }
    else {
        thread->used += thread->priority == FL_PRIORITY_BACKGROUND ? ns * 8 : ns;
    }
}
