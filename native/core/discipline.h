/* discipline: what the two queueing disciplines offer to policy.c. Internal to the policy; not for callers.
 *
 * Every function needs the policy's lock, is O(1) (fair_*: O(log n) amortised), and neither blocks nor
 * allocates.
 */
#ifndef FL_DISCIPLINE_H
#define FL_DISCIPLINE_H

#include "core/policy.h"

/* A waiter joins or leaves those who wait. */
void fl_interactive_add(fl_policy *policy, fl_policy_thread *thread);
void fl_interactive_remove(fl_policy *policy, fl_policy_thread *thread);
void fl_fair_add(fl_policy *policy, fl_policy_thread *thread);
void fl_fair_remove(fl_policy *policy, fl_policy_thread *thread);

/* Does a CPU-bound thread wait? */
bool fl_interactive_cpu_demand(const fl_policy *policy);

/* Who is first in line; NULL when nobody waits. */
fl_policy_thread *fl_interactive_first(const fl_policy *policy);

/* How many are ahead of this waiter, at most; 0: it must keep exact time. */
uint32_t fl_interactive_place(const fl_policy *policy, const fl_policy_thread *thread);

/* Who should get the GIL that is being dropped; NULL: leave it free. Removes nobody. *slice: it may run
 * until the account is empty. */
fl_policy_thread *fl_interactive_pick(fl_policy *policy, int64_t now, bool *slice);

/* A slice of the share ends. */
void fl_interactive_slice_ends(fl_policy *policy);

/* How long the GIL is to be left free after this drop although `next` waits; 0: not at all. */
int64_t fl_interactive_reserve(const fl_policy *policy, const fl_policy_thread *dropper,
                               const fl_policy_thread *next, bool slice, int64_t now);

/* May `next` be woken for a free GIL instead of having it granted? */
bool fl_interactive_offers(const fl_policy *policy, const fl_policy_thread *dropper,
                           const fl_policy_thread *next, int64_t now);

int64_t fl_fair_reserve(const fl_policy *policy, const fl_policy_thread *dropper, int64_t now);

/* When this waiter may ask the present holder to drop. */
int64_t fl_interactive_ask_at(fl_policy *policy, const fl_policy_thread *thread, int64_t now);
int64_t fl_fair_ask_at(const fl_policy *policy, const fl_policy_thread *thread);

/* How long this waiter is to look on from its core before it sleeps; 0: not at all. */
int64_t fl_interactive_spin(const fl_policy *policy, fl_policy_thread *thread, int64_t now);

/* How long a poller must still wait before it may take a free GIL; 0: not at all. */
int64_t fl_interactive_throttle(fl_policy *policy, const fl_policy_thread *thread, int64_t now);

/* The class of a thread that wants the GIL. */
fl_class fl_interactive_class(const fl_policy *policy, const fl_policy_thread *thread);

/* The thread got the GIL, which took its hand-over so long: the virtual clock goes on from there. */
void fl_fair_served(fl_policy *policy, fl_policy_thread *thread, int64_t handing);

/* The thread used the GIL for so long. */
void fl_fair_charge(fl_policy_thread *thread, int64_t ns);

#endif
