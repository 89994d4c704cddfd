/* Grants that are not taken: their withdrawal, and the watchdog that counts the threads that missed one. */
#include "check.h"
#include "policy_help.h"

static void test_grant_is_withdrawn_when_a_waiter_that_is_awake_saw_it_not_taken(void)
{
    begin_with_a_grant();
    int64_t now = T + MS + 60000 * MS, due = other.link.due; /* SIGSTOP: one look, however long that was */
    fl_tick tick = fl_policy_tick(&policy, &cpu, true, now);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now + policy.k.late_ns - 1).kind, FL_TICK_SLEEP);
    now += policy.k.late_ns;
    tick = fl_policy_tick(&policy, &cpu, true, now);
    CHECK(tick.kind == FL_TICK_TAKE && tick.revoke == &other);
    CHECK(!other.granted && !other.queued && !cpu.queued && policy.grantee == NULL);
    CHECK_EQUAL(policy.counts.revoked, 1);
    fl_policy_acquired(&policy, &cpu, now);
    (void)fl_policy_tick(&policy, &other, true, now);
    CHECK(other.queued && other.link.due == due);
    CHECK(force_out(&cpu, now + US) == &other); /* it lost its grant, not its place */
}

static void test_grant_is_new_to_a_waiter_that_looked_long_before_it(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&other, T);
    arrive(&cpu, T);
    (void)fl_policy_tick(&policy, &cpu, true, T);
    int64_t now = T + 2 * policy.k.late_ns;
    CHECK(force_out(&io, now) == &other);
    fl_tick tick = fl_policy_tick(&policy, &cpu, true, now + US);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK(tick.until <= now + US + 2 * policy.k.late_ns);
    CHECK(other.granted && policy.grantee == &other);
}

static bool asleep(fl_watched *thread)
{
    (void)thread;
    return true;
}

static void rouse(fl_watched *thread)
{
    (void)thread;
}

/* Its grant is withdrawn, as another waiter finds it not taken. */
static void withdraw_from(fl_policy_thread *thread, int64_t now)
{
    policy.grantee = thread;
    policy.stuck_grant = ++policy.counts.direct_handovers;
    policy.t_stuck = now - policy.k.late_ns;
    arrive(&io, now);
    CHECK(fl_policy_tick(&policy, &io, true, now).revoke == thread);
    fl_policy_acquired(&policy, &io, now);
}

static void test_watchdog_waits_for_threads_whose_waker_lost_its_core(void)
{
    begin();
    withdraw_from(&other, T);
    withdraw_from(&cpu, T + 2 * MS);
    withdraw_from(&second, T + 4 * MS);
    CHECK(!fl_policy_gives_up(&policy, T + 5 * MS, asleep, rouse));
    (void)fl_policy_tick(&policy, &cpu, true, T + 150 * MS); /* it was late, and looks again */
    CHECK(!fl_policy_gives_up(&policy, T + 1000 * MS, asleep, rouse));
    CHECK_EQUAL(policy.mode, FL_MODE_INTERACTIVE);
}

static void test_watchdog_ends_scheduling_while_three_threads_sleep_through_grants(void)
{
    begin();
    withdraw_from(&other, T);
    withdraw_from(&cpu, T + 2 * MS);
    withdraw_from(&second, T + 4 * MS);
    CHECK(!fl_policy_gives_up(&policy, T + 4 * MS, asleep, rouse));
    int64_t woken = T + 4 * MS + policy.k.lost_ns;
    CHECK(!fl_policy_gives_up(&policy, woken, asleep, rouse));
    CHECK(fl_policy_gives_up(&policy, woken + policy.k.lost_ns, asleep, rouse) && policy.tripped);
    CHECK_EQUAL(policy.mode, FL_MODE_STOCK);
    CHECK(!fl_policy_gives_up(&policy, T + 3000 * MS, asleep, rouse)); /* said once */
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, T).kind, FL_TICK_PASS);
    fl_policy_set_mode(&policy, FL_MODE_INTERACTIVE, FL_SHARE_ONE / 2, T);
    CHECK(!policy.tripped && policy.watchdog.missing == 0);
}

static void test_a_missing_thread_that_ends_is_missing_no_more(void)
{
    begin();
    withdraw_from(&other, T);
    fl_policy_thread_exit(&policy, &other, T + MS);
    CHECK_EQUAL(policy.watchdog.missing, 0);
}

static void test_waiters_from_before_the_fallback_are_woken_to_find_out(void)
{
    begin();
    take(&io, T);
    arrive(&other, T);
    (void)fl_policy_tick(&policy, &other, true, T);
    policy.mode = FL_MODE_STOCK;
    fl_drop drop = fl_policy_drop(&policy, &io, T + US);
    CHECK(drop.kind == FL_DROP_FREE && drop.kick == &other);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, false, T + 2 * US).kind, FL_TICK_PASS);
    CHECK_EQUAL(policy.waiting, 0);
}

int main(void)
{
    test_grant_is_withdrawn_when_a_waiter_that_is_awake_saw_it_not_taken();
    test_grant_is_new_to_a_waiter_that_looked_long_before_it();
    test_watchdog_waits_for_threads_whose_waker_lost_its_core();
    test_watchdog_ends_scheduling_while_three_threads_sleep_through_grants();
    test_a_missing_thread_that_ends_is_missing_no_more();
    test_waiters_from_before_the_fallback_are_woken_to_find_out();
    return 0;
}
