/* The policy's answers, event by event: grants, offers, requests, spinning, and what ends a wait. For which
 * waiter goes next see test_policy_order.c; for grants that are not taken, test_policy_withdrawn.c; for what
 * comes of it over whole runs, test_sim.c. */
#include "check.h"
#include "policy_help.h"

static void test_drop_without_waiters(void)
{
    begin();
    take(&io, T);
    fl_drop drop = fl_policy_drop(&policy, &io, T + MS);
    CHECK_EQUAL(drop.kind, FL_DROP_NO_WAITER);
    CHECK(drop.grant == NULL && drop.kick == NULL);
}

static void test_each_waiter_backs_up_the_one_before_it(void)
{
    begin();
    take(&io, T);
    arrive(&other, T + US);
    arrive(&second, T + US);
    int64_t first = fl_policy_tick(&policy, &other, true, T + US).until;
    CHECK_EQUAL(first, T + policy.k.grain_ns);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T + US).until, first + policy.k.grain_ns);
}

static void test_hand_over_wakes_the_next_in_line_if_it_would_oversleep(void)
{
    begin_with_computations();
    take(&cpu, T);
    arrive(&second, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T).until, T + INTERVAL);
    arrive(&io, T + MS);
    policy.asked = true;
    fl_drop drop = fl_policy_drop(&policy, &cpu, T + MS);
    CHECK(drop.grant == &io && drop.kick == &second);
}

/* Holds of 10 us and absences of `off`, ending with the thread holding. */
static int64_t habit(fl_policy_thread *thread, int64_t now, int64_t off)
{
    for (int i = 0; i < 40; i++) {
        burst(thread, now, 10 * US);
        now += 10 * US + off;
    }
    take(thread, now);
    return now;
}

static void test_lazy_drop_keeps_gil_for_a_thread_that_is_soon_back(void)
{
    begin_with_computations();
    int64_t now = habit(&io, T, 30 * US);
    arrive(&cpu, now);
    now += 10 * US;
    CHECK_EQUAL(fl_policy_drop(&policy, &io, now).kind, FL_DROP_FREE);
    fl_tick tick = fl_policy_tick(&policy, &cpu, false, now + 10 * US);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(tick.until, now + policy.k.lazy_ns);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, false, tick.until).kind, FL_TICK_TAKE);
    CHECK(!cpu.queued);
}

static void test_computation_looks_often_whether_the_gil_was_left_free(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, T + MS).until, T + MS + policy.k.lazy_ns);
}

static void test_drop_is_not_lazy_when_the_floor_is_owed_or_another_serves_or_it_was_asked_for(void)
{
    for (int why = 0; why < 3; why++) {
        begin_with_computations();
        int64_t now = habit(&io, T, 30 * US);
        arrive(&cpu, now);
        if (why == 0) {
            now += 4 * MS; /* 30 % of that are a slice */
        }
        else if (why == 1) {
            arrive(&other, now);
        }
        else {
            policy.asked = true;
        }
        fl_drop drop = fl_policy_drop(&policy, &io, now + 10 * US);
        CHECK_EQUAL(drop.kind, FL_DROP_HAND);
        CHECK(drop.grant == (why == 1 ? &other : &cpu) && drop.grant->protected == (why == 0));
    }
}

static void test_drop_is_not_lazy_for_a_thread_that_stays_away_or_is_unknown(void)
{
    for (int known = 0; known < 2; known++) {
        begin_with_computations();
        int64_t now = T;
        if (known) {
            now = habit(&io, T, MS);
        }
        else {
            take(&io, T);
        }
        arrive(&cpu, now);
        CHECK(fl_policy_drop(&policy, &io, now + 10 * US).grant == &cpu);
    }
}

static void test_sleeper_is_offered_a_free_gil_until_it_has_waited_long_and_then_granted_it(void)
{
    begin();
    take(&other, T);
    arrive(&io, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T).kind, FL_TICK_SLEEP);
    int64_t now = T + 10 * US;
    fl_policy_thread *holder = &other;
    for (; now < T + policy.k.offer_ns; now += 100 * US) {
        fl_drop drop = fl_policy_drop(&policy, holder, now);
        CHECK(drop.kind == FL_DROP_FREE && drop.kick == &io);
        take(&second, now + US); /* a thread that is awake makes use of it meanwhile */
        drop = fl_policy_drop(&policy, &second, now + 2 * US);
        CHECK(drop.kind == FL_DROP_FREE && drop.kick == NULL); /* it is on its way */
        take(holder = &second, now + 3 * US);
        CHECK_EQUAL(fl_policy_tick(&policy, &io, true, now + 50 * US).kind, FL_TICK_SLEEP); /* too late */
    }
    fl_drop drop = fl_policy_drop(&policy, holder, now);
    CHECK(drop.kind == FL_DROP_HAND && drop.grant == &io);
}

/* A request that comes before the computation is awake finds the GIL free. */
static void test_sleeping_computation_is_offered_a_free_gil_but_granted_its_floor(void)
{
    for (int owed = 0; owed < 2; owed++) {
        begin_with_computations();
        take(&io, T);
        arrive(&cpu, T);
        CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, T).kind, FL_TICK_SLEEP);
        fl_drop drop = fl_policy_drop(&policy, &io, T + (owed ? 4 * MS : 10 * US));
        CHECK_EQUAL(drop.kind, owed ? FL_DROP_HAND : FL_DROP_FREE);
        CHECK((owed ? drop.grant : drop.kick) == &cpu);
    }
}

static void test_sleeper_that_is_offered_a_free_gil_takes_it_and_others_let_it(void)
{
    begin();
    take(&other, T);
    arrive(&io, T);
    arrive(&second, T + US);
    (void)fl_policy_tick(&policy, &io, true, T);
    (void)fl_policy_tick(&policy, &second, true, T + US);
    int64_t now = T + 10 * US;
    CHECK_EQUAL(fl_policy_drop(&policy, &other, now).kind, FL_DROP_FREE);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, false, now + US).kind, FL_TICK_SLEEP);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, false, now + 40 * US).kind, FL_TICK_TAKE);
    fl_policy_leave(&policy, &io, now + 40 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, false, now + policy.k.late_ns).kind, FL_TICK_TAKE);
}

static void test_waiter_that_is_awake_is_granted_the_gil(void)
{
    begin();
    policy.spare_cores = true;
    take(&other, T);
    arrive(&io, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T).kind, FL_TICK_SPIN);
    fl_drop drop = fl_policy_drop(&policy, &other, T + 10 * US);
    CHECK(drop.kind == FL_DROP_HAND && drop.grant == &io);
}

static void test_thread_that_yields_or_is_forced_out_leaves_no_free_gil_to_a_sleeper(void)
{
    for (int forced = 0; forced < 2; forced++) {
        begin();
        take(&other, T);
        if (!forced) { /* it has done so before, and would be back before the sleeper is awake */
            (void)fl_policy_drop(&policy, &other, T + US);
            fl_policy_yields(&other);
            take(&other, T + 2 * US);
        }
        arrive(&io, T + 10 * US);
        (void)fl_policy_tick(&policy, &io, true, T + 10 * US);
        policy.asked = forced;
        fl_drop drop = fl_policy_drop(&policy, &other, T + 20 * US);
        CHECK(drop.kind == FL_DROP_HAND && drop.grant == &io);
    }
}

static void test_serving_waiter_spins_once_and_only_alone(void)
{
    begin();
    policy.spare_cores = true;
    take(&other, T);
    arrive(&io, T);
    fl_tick tick = fl_policy_tick(&policy, &io, true, T);
    CHECK_EQUAL(tick.kind, FL_TICK_SPIN);
    CHECK_EQUAL(tick.until, T + policy.k.spin_ns);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, tick.until).kind, FL_TICK_SLEEP);
    arrive(&second, T + 20 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T + 20 * US).kind, FL_TICK_SLEEP);
    CHECK_EQUAL(fl_policy_drop(&policy, &other, T + 30 * US).kind, FL_DROP_FREE);
    take(&other, T + 31 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T + 70 * US).kind, FL_TICK_SPIN); /* it missed an offer */
}

/* `io` serves alone and sleeps `sleeps` times in `turns` turns; then the computing thread looks. */
static int64_t serve(unsigned turns, unsigned sleeps)
{
    CHECK(fl_policy_server_to_look_at(&policy, &cpu, T) == &io);
    fl_policy_server_slept(&policy, 100, T);
    for (unsigned i = 0; i < turns; i++) {
        take(&io, T);
    }
    int64_t now = T + policy.k.alternates_ns;
    CHECK(fl_policy_server_to_look_at(&policy, &cpu, now - US) == NULL);
    CHECK(fl_policy_server_to_look_at(&policy, &io, now) == NULL); /* has better things to do */
    CHECK(fl_policy_server_to_look_at(&policy, &cpu, now) == &io);
    fl_policy_server_slept(&policy, 100 + sleeps, now);
    policy.t_acquired = now;
    return now;
}

static void begin_with_a_server(void)
{
    begin_with_computations();
    policy.spare_cores = true;
    take(&io, T);
    arrive(&cpu, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, T).kind, FL_TICK_SLEEP); /* nothing is known of it */
}

static void test_next_computation_keeps_its_core_while_a_thread_and_its_client_take_turns(void)
{
    begin_with_a_server();
    int64_t now = serve(40, 10);
    fl_tick tick = fl_policy_tick(&policy, &cpu, true, now);
    CHECK_EQUAL(tick.kind, FL_TICK_SPIN);
    CHECK_EQUAL(tick.until, now + policy.k.lazy_ns); /* then it looks whether the GIL was left free */
    CHECK(!cpu.asleep);
    int64_t ends = now + policy.k.grain_ns;
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, ends - 10 * US).until, ends);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, ends).kind, FL_TICK_SLEEP); /* a long hold */
    take(&io, ends);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, ends).kind, FL_TICK_SPIN);
    arrive(&other, ends);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, ends).kind, FL_TICK_SLEEP); /* it needs the core */
}

static void test_next_computation_leaves_the_core_to_the_clients_of_a_thread_that_sleeps_rarely(void)
{
    begin_with_a_server();
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, serve(40, 9)).kind, FL_TICK_SLEEP);
    begin_with_a_server();
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, serve(40, 0)).kind, FL_TICK_SLEEP);
}

static void test_another_thread_that_serves_ends_the_spinning(void)
{
    begin_with_a_server();
    int64_t now = serve(40, 20);
    take(&other, now);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SLEEP);
    fl_policy_thread_exit(&policy, &other, now);
    CHECK(fl_policy_server_to_look_at(&policy, &cpu, now + 2 * policy.k.alternates_ns) == NULL);
}

static void test_computation_does_not_spin_for_another_one(void)
{
    begin_with_computations();
    policy.spare_cores = true;
    take(&cpu, T);
    arrive(&second, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T).kind, FL_TICK_SLEEP);
}

static void test_computation_without_a_core_stops_spinning_for_a_while(void)
{
    begin_with_a_server();
    int64_t now = serve(40, 20);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SPIN);
    fl_policy_crowded(&policy, &cpu, now);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SLEEP);
    now += policy.k.pause_least_ns;
    take(&io, now - US);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now - US).kind, FL_TICK_SLEEP);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SPIN);
    int64_t robbed = policy.t_robbed;
    fl_policy_crowded(&policy, &io, now); /* tells nothing: a thread that serves spins for microseconds */
    CHECK_EQUAL(policy.t_robbed, robbed);
}

static void test_computations_pause_the_longer_the_more_others_want_the_core(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    fl_policy_crowded(&policy, &cpu, T);
    CHECK_EQUAL(policy.pause, policy.k.pause_least_ns);
    for (int64_t pause = 2 * policy.pause; policy.pause < policy.k.pause_most_ns; pause *= 2) {
        fl_policy_crowded(&policy, &cpu, policy.t_robbed + policy.pause + MS); /* as soon as it may spin */
        CHECK(policy.pause == pause || policy.pause == policy.k.pause_most_ns);
    }
    fl_policy_crowded(&policy, &cpu, policy.t_robbed + 10 * policy.k.pause_most_ns);
    CHECK_EQUAL(policy.pause, policy.k.pause_least_ns);
}

/* Eight short holds of a thread that is alone, reported one by one or caught up with: the result is the
   same. */
static fl_policy_thread habit_alone(bool reported, bool holds)
{
    int64_t acquired = T, dropped = T + 10 * US;
    begin();
    burst(&io, acquired, dropped - acquired);
    for (int i = 0; i < 8; i++) {
        bool last = i == 7;
        acquired = dropped + 40 * US;
        if (reported) {
            take(&io, acquired);
        }
        else {
            CHECK(fl_policy_retake(&policy, &io));
        }
        if (last && holds) {
            break;
        }
        dropped = acquired + 10 * US;
        if (reported) {
            (void)fl_policy_drop(&policy, &io, dropped);
        }
        else {
            CHECK(fl_policy_let_go(&policy, &io));
        }
    }
    if (!reported) {
        fl_policy_catch_up(&policy, acquired, dropped);
    }
    CHECK_EQUAL(policy.counts.acquired, 9);
    CHECK(policy.holder == (holds ? &io : NULL));
    CHECK_EQUAL(policy.t_acquired, acquired);
    return io;
}

static void test_thread_that_is_alone_is_made_up_for(void)
{
    for (int holds = 0; holds < 2; holds++) {
        fl_policy_thread reported = habit_alone(true, holds), late = habit_alone(false, holds);
        CHECK_EQUAL(late.t_acquired, reported.t_acquired);
        CHECK_EQUAL(late.t_dropped, reported.t_dropped);
        CHECK_EQUAL(late.held_as, reported.held_as);
        CHECK_EQUAL(late.used, reported.used);
        CHECK_EQUAL(holds ? late.t_burst : late.hold, holds ? reported.t_burst : reported.hold);
    }
}

static void test_thread_is_not_alone_once_another_comes_or_it_has_shown_what_it_is(void)
{
    begin();
    take(&io, T);
    CHECK(!fl_policy_let_go(&policy, &io)); /* its first hold, before which nothing was known */
    (void)fl_policy_drop(&policy, &io, T + 10 * US);
    CHECK(!fl_policy_retake(&policy, &other));
    fl_policy_yields(&io);
    CHECK(!fl_policy_retake(&policy, &io));
    burst(&io, T + 20 * US, US);
    CHECK(!fl_policy_retake(&policy, &io)); /* it yielded */
    burst(&io, T + 30 * US, 2 * MS);
    CHECK(!fl_policy_retake(&policy, &io)); /* a hold that may be a computation's */
    burst(&other, T + 3 * MS, US);
    fl_policy_set_priority(&other, FL_PRIORITY_BACKGROUND);
    CHECK(!fl_policy_retake(&policy, &other));
    fl_policy_set_priority(&other, FL_PRIORITY_NORMAL);
    CHECK(fl_policy_retake(&policy, &other));
    fl_policy_catch_up(&policy, T + 4 * MS, T + 3 * MS + US);
    arrive(&io, T + 4 * MS + US);
    CHECK(!fl_policy_let_go(&policy, &other));
    CHECK_EQUAL(fl_policy_drop(&policy, &other, T + 4 * MS + 2 * US).kind, FL_DROP_HAND);
    fl_policy_acquired(&policy, &io, T + 4 * MS + 3 * US);
    (void)fl_policy_drop(&policy, &io, T + 4 * MS + 4 * US);
    CHECK(policy.alone == &io);
    fl_policy_set_mode(&policy, FL_MODE_STOCK, FL_SHARE_ONE / 2, T + 5 * MS);
    CHECK(!fl_policy_retake(&policy, &io));
    burst(&io, T + 5 * MS, US);
    CHECK(!fl_policy_retake(&policy, &io));
}

static void test_evict_empties_the_queue_for_a_new_mode(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&other, T);
    arrive(&cpu, T);
    CHECK(fl_policy_evict(&policy, T + MS) != NULL && fl_policy_evict(&policy, T + MS) != NULL);
    CHECK(fl_policy_evict(&policy, T + MS) == NULL);
    fl_policy_set_mode(&policy, FL_MODE_INTERACTIVE, FL_SHARE_ONE / 2, T + MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, T + MS).kind, FL_TICK_SLEEP);
    CHECK(other.queued && fl_policy_evict(&policy, T + MS) == &other);
    fl_policy_set_mode(&policy, FL_MODE_STOCK, FL_SHARE_ONE / 2, T + MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, T + MS).kind, FL_TICK_PASS);
    CHECK_EQUAL(fl_policy_drop(&policy, &io, T + 2 * MS).kind, FL_DROP_NO_WAITER);
}

static void test_leave_and_exit_take_a_waiter_out(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    fl_policy_leave(&policy, &cpu, T + MS);
    fl_policy_leave(&policy, &cpu, T + MS);
    CHECK(policy.waiting == 0 && !policy.account.demand);
    arrive(&other, T + MS);
    fl_policy_thread_exit(&policy, &other, T + MS);
    CHECK_EQUAL(policy.waiting, 0);
    CHECK_EQUAL(fl_policy_drop(&policy, &io, T + 2 * MS).kind, FL_DROP_NO_WAITER);
    burst(&io, T + 3 * MS, US);
    fl_policy_thread_exit(&policy, &io, T + 4 * MS);
    CHECK(policy.holder == NULL && policy.alone == NULL);
}

static void test_fork_leaves_only_the_forking_thread(void)
{
    for (int holds = 0; holds < 2; holds++) {
        begin_with_a_grant();
        fl_policy_fork_reset(&policy, &io, holds, T + 2 * MS);
        CHECK(policy.waiting == 0 && policy.grantee == NULL && !policy.account.demand);
        CHECK(policy.holder == (holds ? &io : NULL));
        if (!holds) {
            take(&io, T + 2 * MS);
        }
        CHECK_EQUAL(fl_policy_drop(&policy, &io, T + 3 * MS).kind, FL_DROP_NO_WAITER);
    }
}

int main(void)
{
    test_drop_without_waiters();
    test_each_waiter_backs_up_the_one_before_it();
    test_hand_over_wakes_the_next_in_line_if_it_would_oversleep();
    test_lazy_drop_keeps_gil_for_a_thread_that_is_soon_back();
    test_computation_looks_often_whether_the_gil_was_left_free();
    test_drop_is_not_lazy_when_the_floor_is_owed_or_another_serves_or_it_was_asked_for();
    test_drop_is_not_lazy_for_a_thread_that_stays_away_or_is_unknown();
    test_sleeper_is_offered_a_free_gil_until_it_has_waited_long_and_then_granted_it();
    test_sleeping_computation_is_offered_a_free_gil_but_granted_its_floor();
    test_sleeper_that_is_offered_a_free_gil_takes_it_and_others_let_it();
    test_waiter_that_is_awake_is_granted_the_gil();
    test_thread_that_yields_or_is_forced_out_leaves_no_free_gil_to_a_sleeper();
    test_serving_waiter_spins_once_and_only_alone();
    test_next_computation_keeps_its_core_while_a_thread_and_its_client_take_turns();
    test_next_computation_leaves_the_core_to_the_clients_of_a_thread_that_sleeps_rarely();
    test_another_thread_that_serves_ends_the_spinning();
    test_computation_does_not_spin_for_another_one();
    test_computation_without_a_core_stops_spinning_for_a_while();
    test_computations_pause_the_longer_the_more_others_want_the_core();
    test_thread_that_is_alone_is_made_up_for();
    test_thread_is_not_alone_once_another_comes_or_it_has_shown_what_it_is();
    test_evict_empties_the_queue_for_a_new_mode();
    test_leave_and_exit_take_a_waiter_out();
    test_fork_leaves_only_the_forking_thread();
    return 0;
}
