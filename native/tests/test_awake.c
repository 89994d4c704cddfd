/* Threads that leave the GIL for moments and do not sleep: how they are known, and what they owe. */
#include "check.h"
#include "policy_help.h"

static void see(fl_policy_thread *thread, bool slept, int times)
{
    for (int i = 0; i < times; i++) {
        fl_policy_slept(&policy, thread, slept);
    }
}

/* `io` is awake and has kept the GIL for more than its part; `cpu` waits. Returns when `io` took it. */
static int64_t begin_with_a_caller(void)
{
    begin_with_computations();
    see(&io, false, FL_SAMPLES);
    io.awake.kept = policy.k.computation_ns;
    io.awake.t_kept = T;
    take(&io, T);
    arrive(&cpu, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, T).kind, FL_TICK_SLEEP);
    return T;
}

static void test_thread_is_awake_once_it_has_slept_in_three_of_the_last_absences_at_most(void)
{
    begin();
    CHECK(!fl_awake_is(&io.awake));
    see(&io, false, FL_SAMPLES - 4);
    CHECK(!fl_awake_is(&io.awake));
    see(&io, false, 1);
    CHECK(fl_awake_is(&io.awake));
    see(&io, true, 3);
    CHECK(fl_awake_is(&io.awake));
    see(&io, true, 1);
    CHECK(!fl_awake_is(&io.awake));
}

/* A server's absences take turns: a long one (receive), in which it sleeps, and a short one (send). */
static void test_samples_are_of_every_absence_alike(void)
{
    begin();
    int after_short = 0, samples = 0;
    for (int64_t now = T; now < T + 1000 * MS; now += 30 * US) {
        int begins_long = fl_policy_samples(&policy, &io, now); /* away for 25 us */
        after_short += begins_long;
        samples += begins_long + fl_policy_samples(&policy, &io, now + 27 * US); /* away for 3 us */
    }
    CHECK(samples <= 1000 * MS / (policy.k.computation_ns / FL_SAMPLES) + 1 && samples > 1000);
    CHECK(after_short > samples / 3 && after_short < samples * 2 / 3);
}

static void test_a_part_of_holds_is_owed_and_what_stands_free_several_times_over(void)
{
    int64_t now = begin_with_a_caller();
    (void)fl_policy_drop(&policy, &io, now + 10 * US);
    CHECK_EQUAL(policy.debt.owed, 10 * US / policy.k.awake_holds);
    take(&io, now + 40 * US); /* the GIL stood free for it */
    CHECK_EQUAL(policy.debt.owed, 10 * US / policy.k.awake_holds + 30 * US * policy.k.awake_costs);
}

/* The last computation that waits leaves the queue when it is granted the GIL. */
static void test_a_hand_over_to_the_only_computation_is_owed_to_it(void)
{
    int64_t now = begin_with_a_caller();
    CHECK(force_out(&io, now) == &cpu);
    fl_policy_acquired(&policy, &cpu, now + 30 * US);
    CHECK_EQUAL(policy.debt.owed, 30 * US * policy.k.awake_costs);
}

static void test_a_gap_that_is_longer_than_a_lazy_drop_is_want_of_a_core(void)
{
    int64_t now = begin_with_a_caller();
    (void)fl_policy_drop(&policy, &io, now);
    take(&io, now + 3 * MS);
    CHECK_EQUAL(policy.debt.owed, policy.k.lazy_ns * policy.k.awake_costs);
}

static void test_nothing_is_owed_where_none_can_use_it(void)
{
    for (int why = 0; why < 4; why++) {
        int64_t now = begin_with_a_caller();
        if (why == 0) { /* no computation waits */
            fl_policy_leave(&policy, &cpu, now);
        }
        else if (why == 1) { /* it only polls */
            cpu.yielding = true;
        }
        else if (why == 2) {
            fl_policy_set_priority(&io, FL_PRIORITY_IO);
        }
        else { /* the thread sleeps */
            see(&io, true, FL_SAMPLES);
        }
        (void)fl_policy_drop(&policy, &io, now + MS / 10);
        CHECK_EQUAL(policy.debt.owed, 0);
    }
}

static void test_one_of_many_threads_owes_nothing(void)
{
    begin_with_computations();
    see(&io, false, FL_SAMPLES);
    arrive(&cpu, T);
    for (int64_t now = T; now < T + 1000 * MS; now += 10 * MS) { /* a fortieth of the time */
        take(&io, now);
        (void)fl_policy_drop(&policy, &io, now + 250 * US);
    }
    CHECK_EQUAL(policy.debt.owed, 0);
}

static void test_a_server_that_has_slept_may_catch_up(void)
{
    begin();
    see(&io, true, 100);
    CHECK_EQUAL(io.awake.kept, -policy.k.awake_credit_ns);
    see(&io, false, FL_SAMPLES);
    int64_t hold = 100 * US, most = policy.k.awake_credit_ns + 2 * policy.k.floor_slice_ns, kept = 0;
    while (kept < most && !fl_awake_keeps(&io.awake, hold, &policy.k, T + kept)) {
        kept += hold;
    }
    CHECK(kept > policy.k.awake_credit_ns + policy.k.floor_slice_ns && kept < most);
}

static void test_a_slice_of_debt_goes_first_until_it_is_paid_but_not_before_a_request(void)
{
    int64_t now = begin_with_a_caller();
    fl_debt_add(&policy.debt, policy.k.floor_slice_ns, policy.k.floor_slice_ns);
    fl_drop drop = fl_policy_drop(&policy, &io, now);
    CHECK(drop.kind == FL_DROP_HAND && drop.grant == &cpu);
    fl_policy_acquired(&policy, &cpu, now);
    arrive(&io, now + 10 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, now + 10 * US).until, now + policy.debt.owed);
    arrive(&other, now + 20 * US); /* it sleeps */
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, now + 20 * US).kind, FL_TICK_ASK);
    CHECK(force_out(&cpu, now + 30 * US) == &other);
    CHECK(policy.debt.due);
    fl_policy_acquired(&policy, &other, now + 30 * US);
    arrive(&cpu, now + 30 * US);
    drop = fl_policy_drop(&policy, &other, now + 40 * US);
    CHECK(drop.grant == &cpu);
    fl_policy_acquired(&policy, &cpu, now + 40 * US);
    CHECK(force_out(&cpu, now + 2 * MS) == &io);
    CHECK(!policy.debt.due);
    CHECK_EQUAL(policy.debt.owed, 0);
}

static void test_what_it_takes_to_pay_is_not_owed(void)
{
    int64_t now = begin_with_a_caller(), slice = policy.k.floor_slice_ns;
    fl_debt_add(&policy.debt, slice, slice);
    CHECK(fl_policy_drop(&policy, &io, now).grant == &cpu);
    fl_policy_acquired(&policy, &cpu, now + 50 * US);
    CHECK_EQUAL(policy.debt.owed, slice);
    arrive(&io, now + 60 * US);
    CHECK(force_out(&cpu, now + 50 * US + slice) == &io);
    arrive(&cpu, now + 60 * US + slice);
    fl_policy_acquired(&policy, &io, now + 100 * US + slice);
    CHECK_EQUAL(policy.debt.owed, 0);
}

static void test_debt_is_two_slices_at_most(void)
{
    int64_t now = begin_with_a_caller();
    (void)fl_policy_drop(&policy, &io, now + 20 * MS);
    CHECK_EQUAL(policy.debt.owed, 2 * policy.k.floor_slice_ns);
}

int main(void)
{
    test_thread_is_awake_once_it_has_slept_in_three_of_the_last_absences_at_most();
    test_samples_are_of_every_absence_alike();
    test_a_part_of_holds_is_owed_and_what_stands_free_several_times_over();
    test_a_hand_over_to_the_only_computation_is_owed_to_it();
    test_a_gap_that_is_longer_than_a_lazy_drop_is_want_of_a_core();
    test_nothing_is_owed_where_none_can_use_it();
    test_one_of_many_threads_owes_nothing();
    test_a_server_that_has_slept_may_catch_up();
    test_a_slice_of_debt_goes_first_until_it_is_paid_but_not_before_a_request();
    test_what_it_takes_to_pay_is_not_owed();
    test_debt_is_two_slices_at_most();
    return 0;
}
