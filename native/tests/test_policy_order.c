/* Which waiter goes next and when the holder is asked to drop, rule by rule as order.c gives them. */
#include "check.h"
#include "policy_help.h"

/* Most bursts of the process are of 0.1 ms, some are of 20 ms. */
static void begin_with_a_mixture(void)
{
    begin();
    for (int i = 0; i < 200; i++) {
        fl_bursts_note(&policy.bursts, i % 10 > 0 ? 100 * US : 20 * MS);
    }
}

/* `io` began a burst at T and was forced out after `used`; `second` begins one later: which is next? */
static fl_policy_thread *first_after(int64_t used, int64_t rival_began)
{
    take(&io, T);
    arrive(&other, T + used);
    CHECK(force_out(&io, T + used) == &other);
    fl_policy_acquired(&policy, &other, T + used);
    arrive(&io, T + used);
    arrive(&second, rival_began);
    return force_out(&other, rival_began);
}

static void test_short_burst_goes_before_a_long_one_that_began_earlier(void)
{
    begin_with_a_mixture();
    CHECK(first_after(3 * MS, T + 20 * MS) == &second);
}

static void test_burst_that_waited_long_goes_before_all_that_begin_later(void)
{
    begin_with_a_mixture();
    int64_t most = policy.k.stretch * 2 * 3 * MS; /* a burst that has used 3 ms is expected to need 6 */
    CHECK(first_after(3 * MS, T + most) == &io);
}

/* `io` was taken for short and is not: when does `waiter`, which is due sooner, ask it to drop the GIL? */
static int64_t asked_back_after(bool interrupted)
{
    begin();
    for (int i = 0; i < 200; i++) {
        fl_bursts_note(&policy.bursts, i % 10 > 0 ? 100 * US : 2 * MS);
    }
    burst(&second, 0, MS);
    take(&second, T);
    arrive(&io, T + MS);
    policy.asked = interrupted;
    fl_policy_drop(&policy, &second, T + MS);
    fl_policy_acquired(&policy, &io, T + MS);
    arrive(&second, T + MS);
    return fl_policy_tick(&policy, &second, true, T + MS).until - (T + MS);
}

static void test_interrupted_burst_gets_the_gil_back_from_one_that_is_not_short(void)
{
    CHECK(asked_back_after(true) > 100 * US && asked_back_after(true) < 150 * US);
    CHECK(asked_back_after(false) > policy.k.grain_ns);
}

static void test_equal_bursts_go_in_the_order_of_their_beginning(void)
{
    begin_with_a_mixture();
    take(&io, T);
    fl_policy_want(&policy, &second, T + US); /* began first, and arrives last */
    arrive(&cpu, T + 2 * US);
    arrive(&other, T + 3 * US);
    fl_policy_arrive(&policy, &second, T + 4 * US);
    CHECK(force_out(&io, T + 5 * US) == &second);
    fl_policy_acquired(&policy, &second, T + 5 * US);
    CHECK(force_out(&second, T + 6 * US) == &cpu);
    fl_policy_acquired(&policy, &cpu, T + 6 * US);
    CHECK(force_out(&cpu, T + 7 * US) == &other);
}

static void test_waiters_are_served_in_the_order_of_their_deadlines(void)
{
    enum { N = 64 };
    static fl_policy_thread threads[N];
    begin();
    for (int i = 0; i < N; i++) {
        fl_policy_thread_new(&threads[i], FL_PRIORITY_NORMAL);
        burst(&threads[i], i * 50 * MS, (1 + i * 37 % N) * 200 * US);
    }
    int64_t now = 100 * T;
    fl_policy_thread *holder = &io;
    take(holder, now);
    for (int i = 0; i < N; i++) {
        arrive(&threads[i], now + i);
    }
    fl_policy_leave(&policy, &threads[5], now + N); /* from the middle */
    for (int64_t i = 0, last = 0; i < N - 1; i++) {
        holder = force_out(holder, now + N + i);
        CHECK(holder != &threads[5] && holder->link.due >= last);
        last = holder->link.due;
        fl_policy_acquired(&policy, holder, now + N + i);
    }
    CHECK_EQUAL(policy.waiting, 0);
}

static void test_computing_holder_is_asked_at_once_and_again_if_that_was_lost(void)
{
    begin_with_computations();
    take(&cpu, T);
    arrive(&io, T + MS);
    CHECK_EQUAL(io.cls, FL_CLASS_SERVING);
    CHECK_EQUAL(policy.holder_class, FL_CLASS_COMPUTING);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T + MS).kind, FL_TICK_ASK);
    fl_tick tick = fl_policy_tick(&policy, &io, true, T + MS);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(tick.until, T + MS + 50 * US);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, tick.until).kind, FL_TICK_ASK);
    CHECK(fl_policy_tick(&policy, &io, true, tick.until).until == tick.until + 100 * US);
    CHECK_EQUAL(policy.counts.asked, 1);
    CHECK_EQUAL(policy.counts.asked_again, 1);
}

static void test_holder_from_before_scheduling_is_asked_after_an_interval(void)
{
    begin();
    arrive(&io, T);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T).until, T + INTERVAL);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T + INTERVAL).kind, FL_TICK_ASK);
}

static void test_computations_wait_behind_all_others(void)
{
    begin_with_computations();
    take(&cpu, T);
    arrive(&second, T);
    arrive(&io, T + MS);
    CHECK(force_out(&cpu, T + MS) == &io);
    CHECK(io.granted && !io.queued && policy.grantee == &io && policy.holder == NULL);
    /* while the grant is on its way no thread is asked */
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T + MS).kind, FL_TICK_SLEEP);
    fl_policy_acquired(&policy, &io, T + MS);
    CHECK(policy.holder == &io && policy.grantee == NULL && !io.granted);
}

static void test_computation_that_is_owed_its_floor_goes_first_and_is_protected_until_it_is_paid(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    arrive(&other, T + MS);
    int64_t now = T + 4 * MS; /* 30 % of that are a slice */
    CHECK(fl_policy_drop(&policy, &io, now).grant == &cpu && cpu.protected);
    CHECK_EQUAL(policy.counts.slices, 1);
    fl_policy_acquired(&policy, &cpu, now);
    fl_tick tick = fl_policy_tick(&policy, &other, true, now);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK(tick.until > now + policy.k.floor_slice_ns && tick.until < now + 2 * policy.k.floor_slice_ns);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, tick.until).kind, FL_TICK_ASK);
    arrive(&second, tick.until);
    CHECK(force_out(&cpu, tick.until) == &other);
}

static void test_computation_that_is_owed_less_than_a_slice_waits(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    arrive(&other, T + MS);
    CHECK(fl_policy_drop(&policy, &io, T + 3 * MS).grant == &other);
}

static void test_serving_holder_is_asked_after_a_grain_for_a_burst_that_is_much_shorter(void)
{
    begin_with_a_mixture();
    take(&io, T);
    arrive(&other, T + 10 * US);
    fl_tick tick = fl_policy_tick(&policy, &other, true, T + 10 * US);
    CHECK_EQUAL(tick.kind, FL_TICK_SLEEP);
    CHECK_EQUAL(tick.until, T + policy.k.grain_ns);
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, tick.until).kind, FL_TICK_ASK);
}

static void test_holder_without_a_core_is_asked_later_by_a_switch_interval_at_most(void)
{
    for (int computing = 0; computing < 2; computing++) {
        begin_with_a_mixture();
        take(computing ? &cpu : &io, T);
        fl_policy_thread *holder = policy.holder;
        holder->cls = policy.holder_class = computing ? FL_CLASS_COMPUTING : FL_CLASS_SERVING;
        fl_policy_thread *waiter = computing ? &second : &other;
        fl_policy_set_priority(waiter, computing ? FL_PRIORITY_BACKGROUND : FL_PRIORITY_NORMAL);
        arrive(waiter, T + 10 * US);
        int64_t until = fl_policy_tick(&policy, waiter, true, T + 10 * US).until;
        fl_policy_coreless(&policy, holder, 3 * MS);
        CHECK_EQUAL(fl_policy_tick(&policy, waiter, true, until).until, until + 3 * MS);
        fl_policy_coreless(&policy, holder, 30 * MS);
        CHECK_EQUAL(fl_policy_tick(&policy, waiter, true, until).until, until + policy.interval);
        CHECK_EQUAL(fl_policy_tick(&policy, waiter, true, until + policy.interval).kind, FL_TICK_ASK);
    }
}

static void test_time_without_a_core_is_not_part_of_a_burst(void)
{
    begin();
    take(&io, T);
    fl_policy_coreless(&policy, &io, 3 * MS);
    (void)fl_policy_drop(&policy, &io, T + 4 * MS);
    CHECK_EQUAL(io.used, MS);
    CHECK_EQUAL(io.turn, MS);
    take(&io, T + 10 * MS);
    (void)fl_policy_drop(&policy, &io, T + 11 * MS);
    CHECK_EQUAL(io.used, MS); /* what it had no core for is forgotten with its hold */
}

static void test_serving_holder_is_not_asked_for_a_burst_like_its_own(void)
{
    begin();
    for (int i = 0; i < 100; i++) {
        fl_bursts_note(&policy.bursts, 2 * MS);
    }
    take(&io, T);
    arrive(&other, T + 10 * US);
    CHECK(fl_policy_tick(&policy, &other, true, T + 10 * US).until >= T + 2 * MS);
}

static void test_serving_holder_is_asked_only_for_a_burst_less_than_half_as_long(void)
{
    for (uint32_t octave_parts = 1; octave_parts < 5; octave_parts++) {
        begin();
        uint32_t bucket = fl_bursts_bucket(4 * MS);
        io.guess = fl_bursts_low(bucket);
        other.guess = fl_bursts_low(bucket - octave_parts);
        take(&io, T);
        arrive(&other, T);
        int64_t until = fl_policy_tick(&policy, &other, true, T).until;
        CHECK_EQUAL(until == T + policy.k.grain_ns, 2 * other.guess < io.guess);
        CHECK(until == T + policy.k.grain_ns || until > T + 2 * MS);
    }
}

static void test_serving_holder_is_not_asked_where_hand_overs_take_longer_than_that_would_save(void)
{
    begin_with_a_mixture();
    for (int64_t now = 0; now < 100 * MS; now += 10 * MS) { /* to a waiter that is long without a core */
        take(&cpu, now);
        arrive(&second, now);
        (void)fl_policy_drop(&policy, &cpu, now + MS);
        fl_policy_acquired(&policy, &second, now + 4 * MS);
        (void)fl_policy_drop(&policy, &second, now + 5 * MS);
    }
    int64_t learnt = policy.handover;
    CHECK(learnt > MS && learnt < 3 * MS);
    take(&io, T);
    CHECK_EQUAL(policy.handover, learnt); /* a thread that did not wait tells nothing */
    arrive(&other, T);
    CHECK(fl_policy_tick(&policy, &other, true, T).until > T + 2 * policy.k.grain_ns);
}

static void test_serving_holder_that_waited_long_is_asked_later(void)
{
    begin();
    take(&io, T);
    arrive(&other, T + MS);
    CHECK(force_out(&io, T + MS) == &other);
    fl_policy_acquired(&policy, &other, T + MS);
    arrive(&io, T + MS);
    CHECK(force_out(&other, T + 40 * MS) == &io);
    int64_t now = T + 40 * MS;
    fl_policy_acquired(&policy, &io, now);
    arrive(&second, now);
    /* its deadline passes that of `second` only when it is expected to need 8 ms */
    CHECK(fl_policy_tick(&policy, &second, true, now).until >= now + 3 * MS);
}

static void test_burst_of_so_much_gil_time_is_a_computation(void)
{
    begin();
    take(&io, T);
    (void)force_out(&io, T + 13 * MS);
    arrive(&io, T + 13 * MS);
    CHECK_EQUAL(io.cls, FL_CLASS_SERVING);
    fl_policy_leave(&policy, &io, T + 13 * MS);
    fl_policy_acquired(&policy, &io, T + 20 * MS);
    other.guess = 20 * MS; /* so long that nothing else speaks for asking */
    arrive(&other, T + 20 * MS);
    int64_t computes = T + 20 * MS + policy.k.computation_ns - 13 * MS;
    CHECK_EQUAL(fl_policy_tick(&policy, &other, true, T + 20 * MS).until, computes);
    (void)force_out(&io, computes);
    arrive(&io, computes);
    CHECK_EQUAL(io.cls, FL_CLASS_COMPUTING);
}

static void test_computation_asks_a_serving_holder_once_that_computes_too(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T);
    CHECK(fl_policy_tick(&policy, &cpu, true, T + 24 * MS).kind == FL_TICK_SLEEP);
    CHECK(fl_policy_tick(&policy, &cpu, true, T + policy.k.computation_ns).kind == FL_TICK_ASK);
}

static void test_burst_goes_on_after_a_request_unless_its_thread_slept(void)
{
    for (int stays = 0; stays < 2; stays++) {
        begin();
        take(&io, T);
        (void)force_out(&io, T + 3 * MS);
        arrive(&io, T + 3 * MS + policy.k.away_ns - 1);
        CHECK_EQUAL(io.used, 3 * MS);
        CHECK_EQUAL(io.t_burst, T);
        fl_policy_leave(&policy, &io, T + 4 * MS);
        fl_policy_acquired(&policy, &io, T + 4 * MS);
        (void)force_out(&io, T + 5 * MS);
        if (stays) {
            fl_policy_stays(&io); /* away for want of a core */
        }
        arrive(&io, T + 6 * MS);
        CHECK_EQUAL(io.used, stays ? 4 * MS : 0);
        CHECK_EQUAL(io.t_burst, stays ? T : T + 6 * MS);
    }
}

static void test_thread_is_judged_by_its_last_bursts(void)
{
    int64_t lengths[] = {40 * MS, 40 * MS, MS};
    /* one long burst may be an exception; one short burst is enough */
    fl_class then[] = {FL_CLASS_SERVING, FL_CLASS_COMPUTING, FL_CLASS_SERVING};
    begin();
    take(&io, T);
    for (int i = 0; i < 3; i++) {
        int64_t now = T + i * 100 * MS;
        (void)fl_policy_drop(&policy, &io, now + lengths[i]);
        take(&io, now + 100 * MS);
        CHECK_EQUAL(io.cls, then[i]);
    }
}

static void test_brief_bursts_predict_nothing(void)
{
    begin();
    burst(&io, T, MS);
    burst(&io, T + 10 * MS, 4 * MS);
    burst(&io, T + 14 * MS + 10 * US, 10 * US); /* the end of a send(): it was away for 10 us */
    CHECK_EQUAL(policy.bursts.counts[fl_bursts_bucket(4 * MS)], 1);
    int64_t guess = io.guess;
    burst(&io, T + 20 * MS, 10 * US); /* after a real wait */
    CHECK_EQUAL(io.guess, guess);
    CHECK_EQUAL(policy.bursts.counts[fl_bursts_bucket(10 * US)], 0);
    arrive(&io, T + 30 * MS);
    CHECK_EQUAL(policy.bursts.counts[fl_bursts_bucket(10 * US)], 1);
    CHECK(io.guess <= 10 * US);
}

static void test_computations_take_turns_of_an_interval(void)
{
    begin_with_computations();
    take(&cpu, T);
    arrive(&second, T + US);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, T + US).until, T + INTERVAL);
    arrive(&io, T + 2 * MS);
    CHECK(force_out(&cpu, T + 2 * MS) == &io);
    fl_policy_acquired(&policy, &io, T + 2 * MS);
    arrive(&cpu, T + 2 * MS);
    int64_t now = T + 2 * MS + 10 * US;
    /* its turn goes on, though `second` has waited longer */
    CHECK(fl_policy_drop(&policy, &io, now).grant == &cpu);
    fl_policy_acquired(&policy, &cpu, now);
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, now).until, now + 3 * MS);
    now += 3 * MS;
    CHECK_EQUAL(fl_policy_tick(&policy, &second, true, now).kind, FL_TICK_ASK);
    CHECK(force_out(&cpu, now) == &second);
    fl_policy_acquired(&policy, &second, now);
    arrive(&cpu, now);
    CHECK_EQUAL(cpu.turn, 0);
    CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now).until, now + INTERVAL);
}

static void test_yield_goes_behind_those_that_wait_and_the_burst_goes_on(void)
{
    begin_with_computations();
    take(&io, T);
    arrive(&cpu, T + US);
    CHECK(fl_policy_drop(&policy, &io, T + 10 * US).grant == &cpu);
    fl_policy_acquired(&policy, &cpu, T + 10 * US);
    fl_policy_yields(&io);
    uint32_t known = policy.bursts.total;
    int64_t used = io.used;
    arrive(&io, T + 20 * US);
    CHECK_EQUAL(policy.bursts.total, known); /* a burst that ends in a yield is no request's */
    CHECK_EQUAL(io.used, used + 2 * policy.k.floor_slice_ns);
    CHECK_EQUAL(io.t_burst, T + 20 * US);
    CHECK_EQUAL(io.cls, FL_CLASS_SERVING);
    CHECK_EQUAL(fl_policy_tick(&policy, &io, true, T + 30 * US).kind, FL_TICK_ASK);
}

static void test_thread_that_yields_all_the_time_is_a_computation_until_it_waits(void)
{
    begin();
    int64_t now = T;
    int yields = 0;
    for (take(&io, now); io.cls == FL_CLASS_SERVING; take(&io, now)) {
        (void)fl_policy_drop(&policy, &io, now + US);
        fl_policy_yields(&io);
        now += 60 * US;
        yields++;
    }
    CHECK_EQUAL(yields, policy.k.computation_ns / (2 * policy.k.floor_slice_ns + US) + 1);
    (void)fl_policy_drop(&policy, &io, now + US);
    take(&io, now + 60 * US);
    CHECK_EQUAL(io.cls, FL_CLASS_SERVING);
}

static void test_priorities_decide_the_class(void)
{
    begin_with_computations();
    fl_policy_set_priority(&cpu, FL_PRIORITY_IO);
    fl_policy_set_priority(&io, FL_PRIORITY_BACKGROUND);
    take(&other, T);
    arrive(&cpu, T);
    arrive(&io, T);
    CHECK_EQUAL(cpu.cls, FL_CLASS_SERVING);
    CHECK_EQUAL(io.cls, FL_CLASS_COMPUTING);
    CHECK(force_out(&other, T + US) == &cpu);
}

static void test_background_waits_long_behind_computations_but_not_for_ever(void)
{
    for (int later = 0; later < 2; later++) {
        begin_with_computations();
        fl_policy_set_priority(&io, FL_PRIORITY_BACKGROUND);
        int64_t now = T + (later ? 2000 : 100) * MS;
        take(&cpu, T);
        arrive(&io, T);
        arrive(&second, now);
        CHECK(force_out(&cpu, now) == (later ? &io : &second));
    }
}

static void test_serving_holder_has_its_grain_even_when_its_burst_is_a_computation_by_now(void)
{
    for (int rival_serves = 0; rival_serves < 2; rival_serves++) {
        begin_with_computations();
        fl_policy_set_priority(&io, FL_PRIORITY_IO);
        fl_policy_set_priority(&cpu, rival_serves ? FL_PRIORITY_IO : FL_PRIORITY_NORMAL);
        take(&io, T);
        arrive(&cpu, T + 30 * MS);
        CHECK(force_out(&io, T + 30 * MS) == &cpu);
        fl_policy_acquired(&policy, &cpu, T + 30 * MS);
        arrive(&io, T + 30 * MS);
        int64_t now = T + 50 * MS;
        CHECK(force_out(&cpu, now) == &io);
        fl_policy_acquired(&policy, &io, now);
        arrive(&cpu, now);
        fl_tick tick = fl_policy_tick(&policy, &cpu, true, now);
        CHECK_EQUAL(tick.kind, FL_TICK_SLEEP); /* or the two would do nothing but ask each other */
        CHECK_EQUAL(fl_policy_tick(&policy, &cpu, true, now + policy.k.grain_ns - 1).kind, FL_TICK_SLEEP);
    }
}

int main(void)
{
    test_short_burst_goes_before_a_long_one_that_began_earlier();
    test_burst_that_waited_long_goes_before_all_that_begin_later();
    test_interrupted_burst_gets_the_gil_back_from_one_that_is_not_short();
    test_equal_bursts_go_in_the_order_of_their_beginning();
    test_waiters_are_served_in_the_order_of_their_deadlines();
    test_computing_holder_is_asked_at_once_and_again_if_that_was_lost();
    test_holder_from_before_scheduling_is_asked_after_an_interval();
    test_computations_wait_behind_all_others();
    test_computation_that_is_owed_its_floor_goes_first_and_is_protected_until_it_is_paid();
    test_computation_that_is_owed_less_than_a_slice_waits();
    test_serving_holder_is_asked_after_a_grain_for_a_burst_that_is_much_shorter();
    test_holder_without_a_core_is_asked_later_by_a_switch_interval_at_most();
    test_time_without_a_core_is_not_part_of_a_burst();
    test_serving_holder_is_not_asked_for_a_burst_like_its_own();
    test_serving_holder_is_asked_only_for_a_burst_less_than_half_as_long();
    test_serving_holder_is_not_asked_where_hand_overs_take_longer_than_that_would_save();
    test_serving_holder_that_waited_long_is_asked_later();
    test_burst_of_so_much_gil_time_is_a_computation();
    test_computation_asks_a_serving_holder_once_that_computes_too();
    test_burst_goes_on_after_a_request_unless_its_thread_slept();
    test_thread_is_judged_by_its_last_bursts();
    test_brief_bursts_predict_nothing();
    test_computations_take_turns_of_an_interval();
    test_yield_goes_behind_those_that_wait_and_the_burst_goes_on();
    test_thread_that_yields_all_the_time_is_a_computation_until_it_waits();
    test_priorities_decide_the_class();
    test_background_waits_long_behind_computations_but_not_for_ever();
    test_serving_holder_has_its_grain_even_when_its_burst_is_a_computation_by_now();
    return 0;
}
