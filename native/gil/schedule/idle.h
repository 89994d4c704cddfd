/* idle: what the policy costs the computations: time in which no thread has the GIL although one of them
 * waits for it, because the policy keeps it free for a thread that it expects back.
 *
 * A program in which that is much of the time computes less than under the interpreter's own scheduling,
 * which wakes a waiter at each drop. That is said once. It is counted and not tried out, as by a canary
 * (fairlead.gil.schedule.canary): in a window of the interpreter's own scheduling, requests would wait.
 */
#pragma once

#include "gil/policy/policy.h"

typedef struct {
    int64_t since, sum; /* ns: when the present window began, 0: none has; and the idle time in it so far */
    bool said;
    char news[200];
} fl_idle;

/* A thread is about to have the GIL: before fl_policy_acquired. The message to print, with a process number
   missing at its end; NULL: none. Under the lock of the policy. */
const char *fl_idle_acquired(fl_idle *idle, const fl_policy *policy, int64_t now);

/* In the child of a fork: what the parent did is not the child's, but what it said is. */
void fl_idle_forked(fl_idle *idle);
