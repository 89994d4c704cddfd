#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"
#include "gil/trace/histogram.h"
#include "machine/atomic.h"
#include "machine/ticks.h"

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
    fl_tick_line line = fl_ticks_line((fl_tick_anchor){1000, 5000}, (fl_tick_anchor){2000, 9000});
    CHECK_EQUAL(fl_ticks_when(&line, 1000), 5000);
    CHECK_EQUAL(fl_ticks_when(&line, 1500), 7000);
    CHECK_EQUAL(fl_ticks_when(&line, 2000), 9000);
    CHECK_EQUAL(fl_ticks_when(&line, 2250), 10000);
    CHECK_EQUAL(fl_ticks_when(&line, 750), 4000);
}

static void test_both_ends_of_a_line_are_met_at_any_length(void)
{
    for (uint64_t length = 3; length < (uint64_t)1 << 39; length = length * 5 / 3) {
        fl_tick_anchor a = {7, 11}, b = {7 + length, 11 + length * 10 / 27};
        fl_tick_line line = fl_ticks_line(a, b);
        CHECK_EQUAL(fl_ticks_when(&line, a.ticks), a.ns);
        CHECK_EQUAL(fl_ticks_when(&line, b.ticks), b.ns);
    }
}

static void test_moments_next_to_one_anchor_use_the_rate(void)
{
    fl_tick_anchor a = fl_ticks_anchor();
    fl_tick_line line = fl_ticks_line(a, a);
    uint64_t later = a.ticks + fl_ticks_from_ns(1000000), when = fl_ticks_when(&line, later);
    CHECK(when >= a.ns + 999950 && when <= a.ns + 1000000);
    CHECK(fl_ticks_when(&line, a.ticks) == a.ns);
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

/* ---- Many threads that all come first */

#define THREADS 8

static fl_atomic(int) begun;
static struct {
    uint64_t mult;
    bool counter;
} found[THREADS];

static void *prepare(void *number)
{
    fl_fetch_add(&begun, 1, relaxed);
    while (fl_load(&begun, relaxed) < THREADS) { /* macOS has no barriers */
        sched_yield();
    }
    fl_ticks_prepare();
    found[*(int *)number].mult = fl_ticks_scale.mult;
    found[*(int *)number].counter = fl_ticks_scale.counter;
    return NULL;
}

/* Signals come all the while, which end a sleep early. */
static void ignore(int signum)
{
    (void)signum;
}

static void test_threads_that_all_come_first_find_the_same_clock(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    struct sigaction action = {.sa_handler = ignore};
    CHECK_EQUAL(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    CHECK_EQUAL(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_EQUAL(pthread_create(&threads[i], NULL, prepare, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(setitimer(ITIMER_REAL, &never, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(found[i].mult == fl_ticks_scale.mult && found[i].counter == fl_ticks_scale.counter);
    }
    CHECK(fl_ticks_scale.counter || fl_ticks_scale.mult == (uint64_t)1 << 32);
}

/* ---- A counter that steps back, which a negative offset stands for */

/* To half of what the counter has come to: a machine that has just started may be younger than any fixed
   step. */
static uint64_t large_step_ns(void)
{
    return fl_ticks_to_ns(fl_ticks_now()) / 2;
}

static uint64_t latest; /* read by all */

static void *step_over(void *unused)
{
    (void)unused;
    fl_fetch_add(&begun, 1, relaxed);
    while (fl_load(&begun, relaxed) < THREADS) { /* macOS has no barriers */
        sched_yield();
    }
    CHECK(fl_ticks_from(latest) >= latest);
    return NULL;
}

static void step_back(uint64_t ns)
{
    latest = fl_ticks_now();
    fl_ticks_scale.offset -= fl_ticks_from_ns(ns);
}

static void test_a_small_step_back_is_waited_out(void)
{
    uint64_t offset = fl_ticks_scale.offset;
    step_back(200000);
    CHECK(fl_ticks_from(latest) == latest);
    CHECK(fl_ticks_scale.offset == offset - fl_ticks_from_ns(200000));
    while (fl_ticks_from(latest) == latest) {
    }
    fl_ticks_scale.offset = offset;
}

static void test_time_goes_on_after_a_large_step_back(void)
{
    uint64_t step = large_step_ns();
    step_back(step);
    CHECK(fl_ticks_from(latest) == latest);
    fl_tick_anchor a = fl_ticks_anchor();
    CHECK(fl_ticks_now() > latest);
    CHECK(fl_ticks_to_ns(a.ticks - latest) < step);
    struct timespec moment = {0, 2000000};
    (void)nanosleep(&moment, NULL);
    CHECK(fl_ticks_to_ns(fl_ticks_from(a.ticks) - a.ticks) >= 1900000);
}

static void test_threads_that_find_one_step_at_once_correct_it_once(void)
{
    pthread_t threads[THREADS];
    for (int round = 0; round < 100; round++) {
        uint64_t step = large_step_ns();
        step_back(step);
        uint64_t offset = fl_ticks_scale.offset;
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQUAL(pthread_create(&threads[i], NULL, step_over, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
        }
        CHECK(fl_ticks_scale.offset - offset <= fl_ticks_from_ns(step));
    }
}

int main(void)
{
    test_threads_that_all_come_first_find_the_same_clock();
    fl_ticks_prepare();
    test_an_interval_is_as_long_as_by_the_system_clock();
    test_ticks_and_nanoseconds_convert_both_ways();
    test_an_anchor_is_a_moment_between_two_others();
    test_moments_between_two_anchors_are_interpolated();
    test_both_ends_of_a_line_are_met_at_any_length();
    test_moments_next_to_one_anchor_use_the_rate();
    test_buckets_are_powers_of_two();
    test_a_small_step_back_is_waited_out();
    test_time_goes_on_after_a_large_step_back();
    test_threads_that_find_one_step_at_once_correct_it_once();
    return 0;
}
