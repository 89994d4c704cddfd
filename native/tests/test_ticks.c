#include <time.h>

#include "check.h"
#include "core/histogram.h"
#include "core/ticks.h"

static uint64_t system_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_an_interval_is_as_long_as_by_the_system_clock(void)
{
    uint64_t outer = system_ns(), ticks = fl_ticks_now(), inner = system_ns();
    while (system_ns() - inner < 20000000) {
    }
    uint64_t inner_end = system_ns();
    uint64_t measured = fl_ticks_to_ns(fl_ticks_now() - ticks);
    uint64_t outer_end = system_ns();
    /* it lies between the two, give or take a hundred parts in a million */
    CHECK(measured >= (inner_end - inner) - (inner_end - inner) / 10000);
    CHECK(measured <= (outer_end - outer) + (outer_end - outer) / 10000);
}

static void test_ticks_and_nanoseconds_convert_both_ways(void)
{
    for (uint64_t ns = 1000; ns < (uint64_t)1 << 50; ns *= 7) {
        uint64_t back = fl_ticks_to_ns(fl_ticks_from_ns(ns));
        CHECK(back <= ns && back + 50 >= ns);
    }
}

static void test_an_anchor_is_a_moment_between_two_others(void)
{
    uint64_t before = system_ns();
    fl_tick_anchor anchor = fl_ticks_anchor();
    CHECK(before <= anchor.ns && anchor.ns <= system_ns());
}

static void test_moments_between_two_anchors_are_interpolated(void)
{
    fl_tick_anchor a = {1000, 5000}, b = {2000, 9000};
    CHECK_EQUAL(fl_ticks_when(1000, a, b), 5000);
    CHECK_EQUAL(fl_ticks_when(1500, a, b), 7000);
    CHECK_EQUAL(fl_ticks_when(2000, a, b), 9000);
    CHECK_EQUAL(fl_ticks_when(2250, a, b), 10000);
    CHECK_EQUAL(fl_ticks_when(750, a, b), 4000);
}

static void test_moments_next_to_one_anchor_use_the_rate(void)
{
    fl_tick_anchor a = fl_ticks_anchor();
    uint64_t later = a.ticks + fl_ticks_from_ns(1000000), when = fl_ticks_when(later, a, a);
    CHECK(when >= a.ns + 999950 && when <= a.ns + 1000000);
    CHECK(fl_ticks_when(a.ticks, a, a) == a.ns);
}

static void test_buckets_are_powers_of_two(void)
{
    CHECK_EQUAL(fl_histogram_bucket(0), 0);
    CHECK_EQUAL(fl_histogram_bucket(1), 0);
    CHECK_EQUAL(fl_histogram_bucket(2), 1);
    CHECK_EQUAL(fl_histogram_bucket(3), 1);
    CHECK_EQUAL(fl_histogram_bucket(1023), 9);
    CHECK_EQUAL(fl_histogram_bucket(1024), 10);
    CHECK_EQUAL(fl_histogram_bucket(((uint64_t)1 << 39) - 1), 38);
    CHECK_EQUAL(fl_histogram_bucket((uint64_t)1 << 39), 39);
    CHECK_EQUAL(fl_histogram_bucket(UINT64_MAX), 39);
}

int main(void)
{
    fl_ticks_prepare();
    fl_ticks_prepare();
    test_an_interval_is_as_long_as_by_the_system_clock();
    test_ticks_and_nanoseconds_convert_both_ways();
    test_an_anchor_is_a_moment_between_two_others();
    test_moments_between_two_anchors_are_interpolated();
    test_moments_next_to_one_anchor_use_the_rate();
    test_buckets_are_powers_of_two();
    return 0;
}
