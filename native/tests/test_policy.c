/* The policy's answers, event by event; what comes of them over whole runs is test_sim's and the property
 * tests'. */
#include "check.h"
#include "core/policy.h"

#define MS 1000000ll
#define US 1000ll
#define INTERVAL (5 * MS)

static fl_policy policy;
static fl_policy_thread io, other, cpu, second;

static void begin(fl_policy_mode mode)
{
    fl_policy_init(&policy, mode, FL_SHARE_ONE * 3 / 10, INTERVAL, NULL, 0);
    fl_policy_thread *all[] = {&io, &other, &cpu, &second};
    for (int i = 0; i < 4; i++) {
        fl_policy_thread_new(all[i], FL_PRIORITY_NORMAL);
    }
}

static void take(fl_policy_thread *thread, int64_t now)
{
    fl_policy_want(&policy, thread, now);
    fl_policy_acquired(&policy, thread, now);
}

static void arrive(fl_policy_thread *thread, int64_t now)
{
    fl_policy_want(&policy, thread, now);
    fl_policy_arrive(&policy, thread, now);
}

/* A thread that was forced out after a long hold waits again: CPU-bound. */
static void make_cpu(fl_policy_thread *thread, int64_t now)
{
    take(thread, now);
    policy.asked = true;
    (void)fl_policy_drop(&policy, thread, now + 5 * MS);
}

static void test_queue_places(void)
{
    fl_waitqueue queue;
    fl_waitlink links[3];
    fl_waitqueue_init(&queue);
    CHECK(fl_waitqueue_first(&queue) == NULL);
    for (int i = 0; i < 3; i++) {
        fl_waitqueue_push(&queue, &links[i]);
    }
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[2]), 2);
    fl_waitqueue_remove(&queue, &links[0]);
    CHECK(fl_waitqueue_first(&queue) == &links[1]);
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[1]), 0);
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[2]), 1);
    CHECK_EQUAL(queue.count, 2);
}

static void test_queue_takes_back_to_its_front(void)
{
    fl_waitqueue queue;
    fl_waitlink links[3];
    fl_waitqueue_init(&queue);
    fl_waitqueue_return(&queue, &links[0]);
    fl_waitqueue_push(&queue, &links[1]);
    fl_waitqueue_return(&queue, &links[2]);
    CHECK(fl_waitqueue_first(&queue) == &links[2]);
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[2]), 0);
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[0]), 1);
    CHECK_EQUAL(fl_waitqueue_place(&queue, &links[1]), 2);
    fl_waitqueue_remove(&queue, &links[0]);
    CHECK(queue.ends.prev == &links[1] && queue.ends.next == &links[2]);
    CHECK_EQUAL(queue.count, 2);
}

static void test_predictor_learns_a_period(void)
{
    fl_predictor predictor;
    fl_predictor_init(&predictor);
    for (int i = 0; i < 64; i++) {
        fl_predictor_train(&predictor, i % 3 == 0);
    }
    for (int i = 64; i < 94; i++) {
        CHECK_EQUAL(fl_predictor_says_long(&predictor), i % 3 == 0);
        fl_predictor_train(&predictor, i % 3 == 0);
    }
}

static void test_account_balances_at_its_share(void)
{
    fl_account account;
    fl_account_init(&account, FL_SHARE_ONE / 4, 100 * MS, 4 * MS, 0);
    fl_account_set(&account, true, false, 0);
    CHECK(fl_account_credit(&account, 4 * MS) > 900 * US);
    fl_account_set(&account, true, true, 4 * MS);
    int64_t lasts = fl_account_lasts(&account);
    CHECK(lasts > 1200 * US && lasts < 1400 * US); /* 1 ms of credit less what is forgotten, over 1 - 1/4 */
    CHECK(fl_account_credit(&account, 4 * MS + lasts) < 20 * US);
    CHECK_EQUAL(fl_account_credit(&account, 1000 * MS), -4 * MS);
    CHECK_EQUAL(fl_account_recovers_in(&account), 16 * MS);
}

static void test_account_never_exceeds_share_of_window(void)
{
    fl_account account;
    fl_account_init(&account, FL_SHARE_ONE / 2, 100 * MS, 4 * MS, 0);
    fl_account_set(&account, true, false, 0);
    for (int64_t t = MS; t < 5000 * MS; t += MS) {
        CHECK(fl_account_credit(&account, t) <= 50 * MS);
    }
    CHECK(fl_account_credit(&account, 1000000000 * MS) <= 50 * MS); /* a clock that jumps breaks nothing */
}

static void test_request_against_cpu_thread_is_immediate(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    take(&cpu, 5 * MS);
    arrive(&io, 6 * MS);
    CHECK_EQUAL(io.cls, FL_CLASS_FRESH);
    CHECK_EQUAL(policy.holder_class, FL_CLASS_CPU);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, 6 * MS).kind, FL_TICK_ASK);
    fl_tick tick = fl_policy_tick(&policy, &io, true, 6 * MS);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(tick.until, 6 * MS + 50 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, tick.until).kind, FL_TICK_ASK); /* it got lost: again */
    CHECK(fl_policy_tick(&policy, &io, true, tick.until).until == tick.until + 100 * US);
}

static void test_drop_hands_to_fresh_before_cpu(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    make_cpu(&second, 5 * MS);
    take(&cpu, 10 * MS);
    arrive(&second, 10 * MS);
    arrive(&io, 11 * MS);
    policy.asked = true;
    fl_drop drop = fl_policy_drop(&policy, &cpu, 11 * MS);
    CHECK_EQUAL(drop.kind, FL_DROP_HAND);
    CHECK(drop.grant == &io);
    CHECK(io.granted && !io.queued && policy.limbo == &io && policy.holder == NULL);
    /* nobody asks while the grant is on its way */
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, 11 * MS).kind, FL_TICK_SLEEP);
    fl_policy_acquired(&policy, &io, 11 * MS);
    CHECK(policy.holder == &io && policy.limbo == NULL && !io.granted);
}

static fl_policy_thread *force_out(fl_policy_thread *thread, int64_t now)
{
    policy.asked = true;
    return fl_policy_drop(&policy, thread, now).grant;
}

static void test_cpu_thread_that_was_forced_out_goes_on_with_its_turn(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    make_cpu(&second, 5 * MS);
    fl_policy_stays(&cpu);
    take(&cpu, 10 * MS);
    arrive(&second, 10 * MS);
    arrive(&io, 12 * MS);
    CHECK(force_out(&cpu, 12 * MS) == &io);
    fl_policy_acquired(&policy, &io, 12 * MS);
    arrive(&cpu, 12 * MS);
    CHECK(fl_policy_drop(&policy, &io, 12 * MS + 10 * US).grant == &cpu); /* `second` has waited for longer */
    fl_policy_acquired(&policy, &cpu, 12 * MS + 10 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, 13 * MS).until - (12 * MS + 10 * US), 3 * MS);
    CHECK(force_out(&cpu, 16 * MS) == &second); /* its five milliseconds are over */
    fl_policy_acquired(&policy, &second, 16 * MS);
    arrive(&cpu, 16 * MS);
    CHECK_EQUAL(cpu.turn, 0);
    CHECK_EQUAL(cpu.t_line, 16 * MS);
}

static void test_thread_that_answers_requests_is_not_cpu_bound_for_being_forced_out(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 0); /* new: it has not shown that it waits for anything */
    (void)force_out(&io, 150 * US);
    arrive(&io, 150 * US);
    CHECK_EQUAL(io.cls, FL_CLASS_CPU);
    fl_policy_leave(&policy, &io, 150 * US);

    int64_t now = 10 * MS; /* back from a real wait: a request */
    fl_class classes[] = {FL_CLASS_BRIEF, FL_CLASS_BRIEF, FL_CLASS_CPU};
    take(&io, now);
    for (int i = 0; i < 3; i++) {
        (void)force_out(&io, now += 400 * US);
        arrive(&io, now);
        CHECK_EQUAL(io.cls, classes[i]);
        fl_policy_leave(&policy, &io, now);
        fl_policy_acquired(&policy, &io, now);
    }
}

static void test_cpu_goes_first_when_behind_its_share(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&cpu, 5 * MS);
    arrive(&other, 6 * MS);
    fl_drop drop = fl_policy_drop(&policy, &io, 25 * MS);
    CHECK(drop.grant == &cpu && cpu.protected);
    fl_policy_acquired(&policy, &cpu, 25 * MS);
    fl_tick tick = fl_policy_tick(&policy, &other, true, 25 * MS);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP); /* protected: not before the credit is used up */
    CHECK(tick.until > 25 * MS + 500 * US && tick.until <= 25 * MS + INTERVAL);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, 25 * MS + 20 * MS).kind, FL_TICK_ASK);
}

/* Holds of 10 us and absences of `off`, ending with the thread holding. */
static int64_t habit(fl_policy_thread *thread, int64_t now, int64_t off)
{
    for (int i = 0; i < 40; i++) {
        take(thread, now);
        (void)fl_policy_drop(&policy, thread, now + 10 * US);
        now += 10 * US + off;
    }
    take(thread, now);
    return now;
}

static void test_lazy_drop_keeps_gil_for_a_thread_that_is_soon_back(void)
{
    begin(FL_MODE_INTERACTIVE);
    fl_policy_set_priority(&cpu, FL_PRIORITY_BACKGROUND);
    int64_t now = habit(&io, 5 * MS, 30 * US);
    arrive(&cpu, now);
    policy.account.credit = -MS;
    fl_drop drop = fl_policy_drop(&policy, &io, now + 10 * US);
    CHECK_EQUAL(drop.kind, FL_DROP_FREE);
    fl_tick tick = fl_policy_tick(&policy, &cpu, false, now + 20 * US);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(tick.until, now + 110 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, false, tick.until).kind, FL_TICK_TAKE);
    CHECK(!cpu.queued);
}

static void test_gap_goes_to_a_cpu_thread_that_is_behind_its_share(void)
{
    begin(FL_MODE_INTERACTIVE);
    fl_policy_set_priority(&cpu, FL_PRIORITY_BACKGROUND);
    int64_t now = habit(&io, 5 * MS, 30 * US);
    arrive(&cpu, now);
    policy.account.credit = MS;
    fl_drop drop = fl_policy_drop(&policy, &io, now + 10 * US);
    CHECK(drop.kind == FL_DROP_HAND && drop.grant == &cpu && !cpu.protected);
}

static void test_next_cpu_thread_keeps_its_core_while_others_serve(void)
{
    begin(FL_MODE_INTERACTIVE);
    policy.spare_cores = true;
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&cpu, 5 * MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, 5 * MS).kind, FL_TICK_SLEEP); /* several serve */
    policy.t_server -= policy.k.spin_cpu_ns;
    fl_tick tick = fl_policy_tick(&policy, &cpu, true, 5 * MS);
    CHECK_EQUAL(tick.kind, FL_TICK_SPIN);
    CHECK_EQUAL(tick.until, 5 * MS + 100 * US); /* then it looks whether the GIL was left free */
    CHECK(!cpu.asleep);
    fl_policy_crowded(&policy, &cpu, 5 * MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, 5 * MS).kind, FL_TICK_SLEEP);
    policy.t_crowded -= policy.pause;
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, 8 * MS - 10 * US).until, 8 * MS); /* so long in all */
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, 8 * MS).kind, FL_TICK_SLEEP);
    cpu.t_spin = 0;
    arrive(&other, 8 * MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, 8 * MS).kind, FL_TICK_SLEEP); /* it needs the core */
    int64_t crowded = policy.t_crowded;
    fl_policy_crowded(&policy, &other, 8 * MS);
    CHECK_EQUAL(policy.t_crowded, crowded);
}

static void test_cpu_threads_spin_the_less_the_more_others_want_the_core(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&cpu, 5 * MS);
    fl_policy_crowded(&policy, &cpu, 5 * MS);
    CHECK_EQUAL(policy.pause, policy.k.crowded_least_ns);
    for (int64_t pause = 2 * policy.pause; policy.pause < policy.k.crowded_ns; pause *= 2) {
        fl_policy_crowded(&policy, &cpu, policy.t_crowded + policy.pause + MS); /* as soon as it may spin */
        CHECK(policy.pause == pause || policy.pause == policy.k.crowded_ns);
    }
    fl_policy_crowded(&policy, &cpu, policy.t_crowded + 10 * policy.k.crowded_ns);
    CHECK_EQUAL(policy.pause, policy.k.crowded_least_ns);
}

static void test_drop_is_not_lazy_for_a_thread_that_stays_away_or_is_unknown(void)
{
    for (int known = 0; known < 2; known++) {
        begin(FL_MODE_INTERACTIVE);
        fl_policy_set_priority(&cpu, FL_PRIORITY_BACKGROUND);
        int64_t now = 5 * MS;
        if (known) {
            now = habit(&io, now, MS);
        }
        else {
            take(&io, now);
        }
        arrive(&cpu, now);
        policy.account.credit = -MS;
        CHECK(fl_policy_drop(&policy, &io, now + 10 * US).grant == &cpu);
    }
}

static void test_sleeper_is_woken_for_a_free_gil_and_granted_the_next_if_it_missed(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&other, 0);
    arrive(&io, 10 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, 10 * US).kind, FL_TICK_SLEEP);
    fl_drop drop = fl_policy_drop(&policy, &other, 20 * US);
    CHECK(drop.kind == FL_DROP_FREE && drop.kick == &io);
    take(&second, 21 * US); /* somebody who is awake makes use of it meanwhile */
    drop = fl_policy_drop(&policy, &second, 25 * US);
    CHECK(drop.kind == FL_DROP_FREE && drop.kick == NULL); /* it is on its way */
    take(&second, 30 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, 50 * US).kind, FL_TICK_SLEEP); /* too late */
    drop = fl_policy_drop(&policy, &second, 60 * US);
    CHECK(drop.kind == FL_DROP_HAND && drop.grant == &io);
}

static void test_poller_and_forced_out_thread_cannot_overtake_a_sleeper(void)
{
    for (int forced = 0; forced < 2; forced++) {
        begin(FL_MODE_INTERACTIVE);
        take(&second, 0);
        (void)fl_policy_drop(&policy, &second, 1 * US);
        take(&other, 2 * US);
        arrive(&io, 10 * US);
        (void)fl_policy_tick(&policy, &io, true, 10 * US);
        policy.asked = forced;
        if (!forced) {
            fl_policy_yields(&second);
            arrive(&second, 13 * US);
            CHECK_EQUAL(second.cls, FL_CLASS_POLL);
        }
        fl_drop drop = fl_policy_drop(&policy, &other, 20 * US);
        CHECK(drop.kind == FL_DROP_HAND && drop.grant == &io);
    }
}

static void test_drop_with_nobody_waiting(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 0);
    fl_drop drop = fl_policy_drop(&policy, &io, MS);
    CHECK_EQUAL(drop.kind, FL_DROP_NOBODY);
    CHECK(drop.grant == NULL && drop.kick == NULL);
}

/* Eight short holds of a thread that is alone, told one by one or made up for: the same comes of it. */
static fl_policy_thread habit_alone(bool told, bool holds)
{
    int64_t acquired = 0, dropped = 0;
    begin(FL_MODE_INTERACTIVE);
    take(&io, acquired);
    (void)fl_policy_drop(&policy, &io, dropped = 10 * US);
    for (int i = 0; i < 8; i++) {
        bool last = i == 7;
        acquired = dropped + 40 * US;
        if (told) {
            take(&io, acquired);
        }
        else {
            CHECK(fl_policy_retake(&policy, &io));
        }
        if (last && holds) {
            break;
        }
        dropped = acquired + 10 * US;
        if (told) {
            (void)fl_policy_drop(&policy, &io, dropped);
        }
        else {
            CHECK(fl_policy_let_go(&policy, &io));
        }
    }
    if (!told) {
        fl_policy_catch_up(&policy, acquired, dropped);
    }
    CHECK_EQUAL(policy.counts.acquired, 9);
    CHECK(policy.holder == (holds ? &io : NULL));
    CHECK_EQUAL(policy.t_progress, acquired);
    return io;
}

static void test_thread_that_is_alone_is_made_up_for(void)
{
    for (int holds = 0; holds < 2; holds++) {
        fl_policy_thread told = habit_alone(true, holds), late = habit_alone(false, holds);
        CHECK_EQUAL(late.t_acquired, told.t_acquired);
        CHECK_EQUAL(late.t_dropped, told.t_dropped);
        CHECK_EQUAL(late.held_as >= FL_CLASS_CPU, told.held_as >= FL_CLASS_CPU);
        CHECK_EQUAL(late.t_burst, told.t_burst);
        CHECK_EQUAL(holds || late.hold == told.hold, true);
    }
}

static void test_thread_is_not_alone_once_another_comes_or_it_has_shown_what_it_is(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 0);
    CHECK(!fl_policy_let_go(&policy, &io)); /* its first hold, before which nothing was known */
    (void)fl_policy_drop(&policy, &io, 10 * US);
    CHECK(!fl_policy_retake(&policy, &other));
    fl_policy_yields(&io);
    CHECK(!fl_policy_retake(&policy, &io));
    take(&io, 20 * US);
    (void)fl_policy_drop(&policy, &io, 2 * MS);
    CHECK(!fl_policy_retake(&policy, &io)); /* a hold of a CPU-bound thread */
    take(&other, 3 * MS);
    (void)fl_policy_drop(&policy, &other, 3 * MS + US);
    fl_policy_set_priority(&other, FL_PRIORITY_BACKGROUND);
    CHECK(!fl_policy_retake(&policy, &other));
    fl_policy_set_priority(&other, FL_PRIORITY_NORMAL);
    CHECK(fl_policy_retake(&policy, &other));
    fl_policy_catch_up(&policy, 4 * MS, 3 * MS + US);
    arrive(&io, 4 * MS + US);
    CHECK(!fl_policy_let_go(&policy, &other));
    CHECK_EQUAL(fl_policy_drop(&policy, &other, 4 * MS + 2 * US).kind, FL_DROP_HAND);
    fl_policy_acquired(&policy, &io, 4 * MS + 3 * US);
    (void)fl_policy_drop(&policy, &io, 4 * MS + 4 * US);
    fl_policy_set_mode(&policy, FL_MODE_FAIR, FL_SHARE_ONE / 2, 5 * MS);
    CHECK(!fl_policy_retake(&policy, &io));
    take(&io, 5 * MS);
    (void)fl_policy_drop(&policy, &io, 5 * MS + US);
    CHECK(!fl_policy_retake(&policy, &io));
}

static void test_watchdog_takes_back_a_grant_and_ends_after_three_lost(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&other, 5 * MS);
    arrive(&cpu, 5 * MS);
    policy.asked = true;
    CHECK(fl_policy_drop(&policy, &io, 6 * MS).grant == &other);
    int64_t now = 6 * MS;
    fl_tick tick = fl_policy_tick(&policy, &cpu, true, now);
    now += 60000 * MS; /* SIGSTOP: one look, however long */
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SLEEP);
    int looks = 0;
    while ((tick = fl_policy_tick(&policy, &cpu, true, now)).kind == FL_TICK_SLEEP) {
        now += INTERVAL;
        CHECK(looks++ < 100);
    }
    CHECK_EQUAL(tick.kind, FL_TICK_TAKE);
    CHECK(tick.revoke == &other && !other.granted && policy.limbo == NULL);
    CHECK_EQUAL(looks, policy.k.watchdog_intervals - 1);
    fl_policy_acquired(&policy, &cpu, now);
    CHECK(!fl_policy_lost(&policy) && !fl_policy_lost(&policy));
    CHECK_EQUAL(policy.mode, FL_MODE_INTERACTIVE);
    CHECK(fl_policy_lost(&policy) && policy.tripped);
    CHECK_EQUAL(policy.mode, FL_MODE_STOCK);
    CHECK(!fl_policy_lost(&policy)); /* said once */
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, now).kind, FL_TICK_PASS);
}

static void test_watchdog_is_patient_however_short_the_interval(void)
{
    begin(FL_MODE_INTERACTIVE);
    policy.interval = 1000;
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&other, 5 * MS);
    arrive(&cpu, 5 * MS);
    policy.asked = true;
    CHECK(fl_policy_drop(&policy, &io, 6 * MS).grant == &other);
    for (int64_t now = 6 * MS; now < 150 * MS; now += 10000) {
        CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).kind, FL_TICK_SLEEP);
    }
}

static void test_watchdog_forgives_after_a_grant_was_taken(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 5 * MS);
    CHECK(!fl_policy_lost(&policy) && !fl_policy_lost(&policy));
    arrive(&other, 5 * MS);
    policy.asked = true;
    CHECK(fl_policy_drop(&policy, &io, 6 * MS).grant == &other);
    fl_policy_acquired(&policy, &other, 6 * MS);
    CHECK(!fl_policy_lost(&policy) && !policy.tripped);
}

static void test_evict_empties_the_queue_for_a_new_mode(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 0);
    arrive(&other, 0);
    arrive(&cpu, 0);
    int evicted = 0;
    while (fl_policy_evict(&policy, MS) != NULL) {
        evicted++;
    }
    CHECK_EQUAL(evicted, 2);
    fl_policy_set_mode(&policy, FL_MODE_FAIR, 0, MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, MS).kind, FL_TICK_SLEEP);
    CHECK(other.queued && policy.heap == &other);
    CHECK(fl_policy_evict(&policy, MS) == &other);
    fl_policy_set_mode(&policy, FL_MODE_STOCK, 0, MS);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, MS).kind, FL_TICK_PASS);
    CHECK_EQUAL(fl_policy_drop(&policy, &io, 2 * MS).kind, FL_DROP_NOBODY);
}

static void test_leave_and_exit_take_a_waiter_out(void)
{
    begin(FL_MODE_INTERACTIVE);
    take(&io, 0);
    arrive(&other, 0);
    fl_policy_leave(&policy, &other, MS);
    fl_policy_leave(&policy, &other, MS);
    CHECK_EQUAL(policy.waiting, 0);
    CHECK_EQUAL(fl_policy_drop(&policy, &io, MS).kind, FL_DROP_NOBODY);
    arrive(&other, MS);
    fl_policy_thread_exit(&policy, &other, MS);
    CHECK_EQUAL(policy.waiting, 0);
}

static void test_fork_leaves_only_the_forking_thread(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    take(&io, 5 * MS);
    arrive(&cpu, 5 * MS);
    arrive(&other, 5 * MS);
    fl_policy_fork_reset(&policy, &io, true, 6 * MS);
    CHECK_EQUAL(policy.waiting, 0);
    CHECK(policy.holder == &io && !policy.account.demand);
    CHECK_EQUAL(fl_policy_drop(&policy, &io, 7 * MS).kind, FL_DROP_NOBODY);
}

static void test_priorities_decide_the_class(void)
{
    begin(FL_MODE_INTERACTIVE);
    make_cpu(&cpu, 0);
    make_cpu(&second, 5 * MS);
    fl_policy_set_priority(&cpu, FL_PRIORITY_IO);
    fl_policy_set_priority(&second, FL_PRIORITY_BACKGROUND);
    take(&io, 10 * MS);
    arrive(&cpu, 10 * MS);
    arrive(&second, 10 * MS);
    CHECK_EQUAL(cpu.cls, FL_CLASS_FRESH);
    CHECK_EQUAL(second.cls, FL_CLASS_BACKGROUND);
}

static void test_fair_serves_in_the_order_of_time_used(void)
{
    enum { N = 64 };
    static fl_policy_thread threads[N];
    static fl_policy_thread holder;
    begin(FL_MODE_FAIR);
    fl_policy_thread_new(&holder, FL_PRIORITY_NORMAL);
    take(&holder, 0);
    policy.virtual_now = 0;
    for (int i = 0; i < N; i++) {
        fl_policy_thread_new(&threads[i], FL_PRIORITY_NORMAL);
        threads[i].used = (i * 37 % N) * US;
        arrive(&threads[i], i);
    }
    fl_policy_leave(&policy, &threads[5], N); /* from the middle */
    int64_t last = -1;
    fl_policy_thread *now_holds = &holder;
    for (int i = 0; i < N - 1; i++) {
        fl_drop drop = fl_policy_drop(&policy, now_holds, N + i);
        CHECK_EQUAL(drop.kind, FL_DROP_HAND);
        CHECK(drop.grant != &threads[5]);
        CHECK(drop.grant->used > last);
        last = drop.grant->used;
        now_holds = drop.grant;
        fl_policy_acquired(&policy, now_holds, N + i);
    }
    CHECK_EQUAL(policy.waiting, 0);
}

int main(void)
{
    test_queue_places();
    test_queue_takes_back_to_its_front();
    test_predictor_learns_a_period();
    test_account_balances_at_its_share();
    test_account_never_exceeds_share_of_window();
    test_request_against_cpu_thread_is_immediate();
    test_drop_hands_to_fresh_before_cpu();
    test_cpu_thread_that_was_forced_out_goes_on_with_its_turn();
    test_thread_that_answers_requests_is_not_cpu_bound_for_being_forced_out();
    test_cpu_goes_first_when_behind_its_share();
    test_lazy_drop_keeps_gil_for_a_thread_that_is_soon_back();
    test_gap_goes_to_a_cpu_thread_that_is_behind_its_share();
    test_next_cpu_thread_keeps_its_core_while_others_serve();
    test_cpu_threads_spin_the_less_the_more_others_want_the_core();
    test_drop_is_not_lazy_for_a_thread_that_stays_away_or_is_unknown();
    test_sleeper_is_woken_for_a_free_gil_and_granted_the_next_if_it_missed();
    test_poller_and_forced_out_thread_cannot_overtake_a_sleeper();
    test_drop_with_nobody_waiting();
    test_thread_that_is_alone_is_made_up_for();
    test_thread_is_not_alone_once_another_comes_or_it_has_shown_what_it_is();
    test_watchdog_takes_back_a_grant_and_ends_after_three_lost();
    test_watchdog_is_patient_however_short_the_interval();
    test_watchdog_forgives_after_a_grant_was_taken();
    test_evict_empties_the_queue_for_a_new_mode();
    test_leave_and_exit_take_a_waiter_out();
    test_fork_leaves_only_the_forking_thread();
    test_priorities_decide_the_class();
    test_fair_serves_in_the_order_of_time_used();
    return 0;
}
