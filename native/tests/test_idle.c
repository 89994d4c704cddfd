/* How much of the time the GIL is free while a computation waits, by a clock that the test sets. */
#include "gil/schedule/idle.h"

#include <string.h>

#include "check.h"
#include "policy_help.h"

#define S (1000 * MS)

static fl_idle idle;
static int64_t now;
static unsigned lines;

static void start(bool demand, bool charging)
{
    begin();
    idle = (fl_idle){0};
    lines = 0;
    now = T;
    fl_account_set(&policy.account, demand, charging, now);
}

static void acquire(void)
{
    lines += fl_idle_acquired(&idle, &policy, now) != NULL;
}

/* Until then the GIL is free for so long, and held for so long, again and again. */
static void go_on(int64_t until, int64_t free, int64_t held)
{
    while (now < until) {
        policy.t_free = now;
        now += free;
        acquire();
        now += held;
    }
}

static void test_a_gil_that_is_free_for_half_of_ten_seconds_while_a_computation_waits_is_said_once(void)
{
    start(true, false);
    go_on(T + 10 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 0);
    go_on(T + 10 * S + 100 * US, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 1);
    CHECK(strcmp(idle.news,
                 "no thread had the GIL for 50 % of the last 10 s while a computing thread waited for it; "
                 "try a larger --cpu-share, or policy stock (fairlead ctl)")
          == 0);
    go_on(T + 40 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 1);
}

static void test_a_fourth_is_said_and_less_is_not(void)
{
    start(true, false);
    go_on(T + 40 * S, 24 * US, 76 * US);
    CHECK_EQUAL(lines, 0);
    go_on(T + 60 * S, 25 * US, 75 * US);
    CHECK_EQUAL(lines, 1);
}

static void test_each_ten_seconds_are_judged_by_themselves(void)
{
    start(true, false);
    go_on(T + 60 * S, 0, 100 * US);
    CHECK_EQUAL(lines, 0);
    go_on(T + 80 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 1);
}

static void test_a_free_gil_is_no_loss_where_no_computation_waits_or_one_is_charged(void)
{
    for (int charging = 0; charging < 2; charging++) {
        start(charging, charging);
        go_on(T + 40 * S, 90 * US, 10 * US);
        CHECK_EQUAL(lines, 0);
    }
}

static void test_a_gil_that_stays_free_for_want_of_a_core_counts_no_longer_than_the_policy_keeps_it_free(void)
{
    start(true, false);
    go_on(T + 40 * S, 10 * MS, 10 * US);
    CHECK_EQUAL(lines, 0);
}

static void test_it_counts_from_when_the_computation_came(void)
{
    start(true, false);
    while (now < T + 40 * S) {
        policy.t_free = now;
        fl_account_set(&policy.account, false, false, now);
        fl_account_set(&policy.account, true, false, now + 70 * US);
        now += 90 * US; /* 20 of them */
        acquire();
        now += 10 * US;
    }
    CHECK_EQUAL(lines, 0);
}

static void test_a_granted_gil_waits_for_a_thread_that_wakes_up(void)
{
    start(true, false);
    policy.grantee = &io;
    go_on(T + 40 * S, 90 * US, 10 * US);
    CHECK_EQUAL(lines, 0);
}

static void test_what_the_interpreters_own_scheduling_does_is_not_judged(void)
{
    start(true, false);
    policy.mode = FL_MODE_STOCK;
    go_on(T + 40 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 0);
}

static void test_a_child_counts_from_its_fork(void)
{
    start(true, false);
    go_on(T + 9 * S, 50 * US, 50 * US);
    fl_idle_forked(&idle);
    go_on(T + 18 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 0);
    go_on(T + 20 * S, 50 * US, 50 * US);
    CHECK_EQUAL(lines, 1);
}

int main(void)
{
    test_a_gil_that_is_free_for_half_of_ten_seconds_while_a_computation_waits_is_said_once();
    test_a_fourth_is_said_and_less_is_not();
    test_each_ten_seconds_are_judged_by_themselves();
    test_a_free_gil_is_no_loss_where_no_computation_waits_or_one_is_charged();
    test_a_gil_that_stays_free_for_want_of_a_core_counts_no_longer_than_the_policy_keeps_it_free();
    test_it_counts_from_when_the_computation_came();
    test_a_granted_gil_waits_for_a_thread_that_wakes_up();
    test_what_the_interpreters_own_scheduling_does_is_not_judged();
    test_a_child_counts_from_its_fork();
    return 0;
}
