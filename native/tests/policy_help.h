/* A policy and four threads of it, for the tests of what it answers. */
#pragma once

#include "gil/policy/policy.h"

#define MS 1000000ll
#define US 1000ll
#define INTERVAL (5 * MS)
#define T (1000 * MS) /* when a test begins, whatever its threads did before */

static fl_policy policy;
static fl_policy_thread io, other, cpu, second;

static inline void begin(void)
{
    fl_policy_init(&policy, FL_MODE_INTERACTIVE, FL_SHARE_ONE * 3 / 10, INTERVAL, NULL, 0);
    fl_policy_thread *all[] = {&io, &other, &cpu, &second};
    for (int i = 0; i < 4; i++) {
        fl_policy_thread_new(all[i], FL_PRIORITY_NORMAL);
    }
}

static inline void take(fl_policy_thread *thread, int64_t now)
{
    fl_policy_want(&policy, thread, now);
    fl_policy_acquired(&policy, thread, now);
}

static inline void arrive(fl_policy_thread *thread, int64_t now)
{
    fl_policy_want(&policy, thread, now);
    fl_policy_arrive(&policy, thread, now);
}

/* The holder drops the GIL as a waiter asked it to: which thread is it granted to? */
static inline fl_policy_thread *force_out(fl_policy_thread *holder, int64_t now)
{
    policy.asked = true;
    return fl_policy_drop(&policy, holder, now).grant;
}

/* A burst of this length, with no other thread there. */
static inline void burst(fl_policy_thread *thread, int64_t now, int64_t length)
{
    take(thread, now);
    (void)fl_policy_drop(&policy, thread, now + length);
}

/* Threads whose last two bursts were computations. */
static inline void begin_with_computations(void)
{
    begin();
    for (int64_t now = 0; now <= 200 * MS; now += 200 * MS) {
        burst(&cpu, now, 60 * MS);
        burst(&second, now + 100 * MS, 60 * MS);
    }
}

/* `other` was granted the GIL at T + 1 ms; `cpu` and `second` wait. */
static inline void begin_with_a_grant(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&second, T + US);
    arrive(&cpu, T + US);
    arrive(&other, T + US);
    CHECK(force_out(&io, T + MS) == &other);
}
