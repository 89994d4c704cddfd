/* policy_order: which waiter goes next, and when the holder is asked to drop: the policy proper, for
 * policy.c.
 *
 * Every function needs the policy's lock unless it says otherwise; none blocks, allocates or reads a clock.
 */
#pragma once

#include "gil/policy/policy.h"

/* The thread wants the GIL again (t_want). Own thread, no lock. */
void fl_order_want(const fl_policy *policy, fl_policy_thread *thread);

/* The class of a thread that wants the GIL; counts the burst that it has finished. */
fl_class fl_order_class(fl_policy *policy, fl_policy_thread *thread);

/* A waiter joins or leaves its queue. */
void fl_order_add(fl_policy *policy, fl_policy_thread *thread);
void fl_order_remove(fl_policy *policy, fl_policy_thread *thread);

/* The first waiter, the only one that must keep exact time; NULL when none waits. */
fl_policy_thread *fl_order_first(const fl_policy *policy);

/* How many are ahead of this waiter, at most; 0: it is the first. */
uint32_t fl_order_place(const fl_policy *policy, const fl_policy_thread *thread);

/* Are the computations owed enough of their floor to go first? */
bool fl_order_owes_floor(fl_policy *policy, int64_t now);

/* The waiter that should get the GIL that is being dropped; there is one. *slice: for what is owed to the
 * computations: a slice of their floor, or what awake threads kept. */
fl_policy_thread *fl_order_pick(fl_policy *policy, int64_t now, bool *slice);

/* Does a computation wait that would make use of the GIL, and not only poll? */
bool fl_order_wants(const fl_policy *policy);

/* How long the GIL stays free for the dropper although `next` waits; 0: not at all. */
int64_t fl_order_reserve(const fl_policy *policy, const fl_policy_thread *dropper,
                         const fl_policy_thread *next, bool slice);

/* May `next` be woken for a free GIL instead of having it granted? */
bool fl_order_offers(const fl_policy *policy, const fl_policy_thread *dropper, const fl_policy_thread *next,
                     bool slice, int64_t now);

/* When this waiter may ask the present holder to drop. */
int64_t fl_order_ask_at(fl_policy *policy, const fl_policy_thread *thread, int64_t now);

/* How long this waiter spins before it sleeps; 0: not at all. */
int64_t fl_order_spin(const fl_policy *policy, fl_policy_thread *thread, int64_t now);
