/* A counter of stripes: what is added while others take the sum is counted once. */
#include "sync/wait/counter.h"
#include "scenarios.h"

static fl_counter *counter;
static int64_t taken, added; /* by fl_counter_take; by finished adders */

static void begin_with(uint32_t stripes)
{
    counter = fl_counter_new(stripes);
    taken = added = 0;
}

static void begin_one_stripe(void)
{
    begin_with(1);
}

static void begin_two_stripes(void)
{
    begin_with(2);
}

static int64_t narrow(fl_wide sum)
{
    MODEL_CHECK(sum.high == ((int64_t)sum.low < 0 ? -1 : 0));
    return (int64_t)sum.low;
}

static void end_counter(void)
{
    MODEL_CHECK(taken + narrow(fl_counter_sum(counter)) == added);
    MODEL_CHECK(counter->lock == 0);
    fl_counter_free(counter);
}

static void add(int64_t by)
{
    fl_counter_add(counter, fl_owner_thread(), by);
    added += by;
}

static void add_three(void)
{
    add(1);
    add(1); /* is moved to the rest */
    add(1);
}

static void add_less(void)
{
    add(-1);
    add(-2); /* is moved, too */
}

static void take_twice(void)
{
    int64_t first = narrow(fl_counter_take(counter));
    int64_t second = narrow(fl_counter_take(counter));
    taken += first + second;
}

/* Nothing is taken, and nothing negative added. */
static void sum_twice(void)
{
    int64_t before = added;
    int64_t first = narrow(fl_counter_sum(counter));
    MODEL_CHECK(before <= first);
    MODEL_CHECK(first <= narrow(fl_counter_sum(counter)));
}

static const model_scenario scenarios[] = {
    {"counter-2", 3, 0, PATIENT, begin_one_stripe, end_counter, {add_three, sum_twice}},
    {"counter-3", 3, 0, PATIENT, begin_two_stripes, end_counter, {add_three, add_three, sum_twice}},
    {"counter-3-take", 3, 0, PATIENT, begin_one_stripe, end_counter, {add_three, add_less, take_twice}},
};

const model_table counter_scenarios = MODEL_TABLE(scenarios);
