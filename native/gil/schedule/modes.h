/* modes: which policy a GIL is scheduled by: as the program asked for (schedule.h) or as another process
 * ordered (control.h), and how long that has been so.
 *
 * Under the GIL's mutex unless said otherwise.
 */
#pragma once

#include "machine/ticks.h"
#include "gil/schedule/parking.h"
#include "gil/schedule/schedule.h"

/* One thread at one GIL. */
typedef struct {
    fl_policy_thread policy; /* first: a policy's thread is a record */
    fl_parker parker;
    const fl_seat *seat;
    bool wanting;  /* the policy knows that it wants the GIL */
    bool ask;      /* to ask the holder at the next call */
    pid_t native_id;
    int core;            /* where it was when it acquired the GIL */
    bool brief;          /* alone at the GIL, and back at once: its next drop is not timed */
    bool forced;         /* its last drop was */
    long slept;          /* how often it had slept by then */
    uint64_t ran_ns;     /* its CPU time when its grant was withdrawn */
    uint64_t cpu_ns;     /* its CPU time, read before its present hold began, or when that did */
    fl_parker *wakes[2]; /* to wake once the mutex is unlocked */
    const char *news;    /* the message to print then; NULL: none */
} fl_scheduled;

static inline fl_scheduled *fl_scheduled_of(fl_policy_thread *thread)
{
    return (fl_scheduled *)(void *)thread;
}

static inline int64_t fl_ns_of(uint64_t ticks)
{
    return (int64_t)fl_ticks_to_ns(ticks);
}

/* Makes the policy of a GIL that has none yet. NULL: no memory. */
fl_policy *fl_modes_make(fl_gil *gil);

static inline fl_policy *fl_modes_policy(fl_gil *gil)
{
    fl_policy *policy = gil->schedule;
    return policy ? policy : fl_modes_make(gil);
}

/* The same, once it has the reports that were only counted (fl_policy_catch_up). */
static inline fl_policy *fl_modes_policy_now(fl_gil *gil)
{
    fl_policy *policy = fl_modes_policy(gil);
    if (policy && policy->alone) {
        const fl_seat *seat = fl_scheduled_of(policy->alone)->seat;
        bool holds = policy->holder == policy->alone;
        uint64_t acquired = holds ? seat->t_acquired : seat->t_dropped - seat->held;
        fl_policy_catch_up(policy, fl_ns_of(acquired), fl_ns_of(seat->t_dropped));
    }
    return policy;
}

/* Ends scheduling whose time is over, and obeys what another process has ordered since the last call. The
   message to print; NULL: none. */
const char *fl_modes_obey(fl_gil *gil, fl_policy *policy, uint64_t now);

/* Before fl_policy_acquired: ends the scheduling of a GIL whose waiters are not seen, and counts for how long
   computations have waited for a free one. The message to print; NULL: none. */
const char *fl_modes_acquire(fl_gil *gil, fl_policy *policy, uint64_t now);

/* The watchdog has ended scheduling. The message to print. */
const char *fl_modes_tripped(fl_gil *gil, const fl_policy *policy);

/* In the child of a fork, which has this policy. */
void fl_modes_forked(fl_gil *gil, const fl_policy *policy);

/* What the program asks for, unless another process has switched scheduling off; returns what it asked for
   before. With the main GIL held, no mutex. Takes effect by fl_modes_apply(). */
fl_schedule_settings fl_modes_set(fl_schedule_settings wanted);
void fl_modes_apply(void);

fl_schedule_state fl_modes_state(fl_gil *gil, const fl_policy *policy);
