/* Which threads are missing, and when several have slept for too long. */
#include "gil/policy/watchdog.h"

#include "check.h"

#define ENOUGH 2
#define LONG 100

static fl_watched threads[3];
static unsigned asked;

static bool asleep(const fl_watched *thread)
{
    (void)thread;
    asked++;
    return true;
}

static bool first_is_awake(const fl_watched *thread)
{
    return thread != &threads[0];
}

static fl_watchdog watchdog_with_two_missing(void)
{
    fl_watchdog dog = {0};
    for (int i = 0; i < 3; i++) {
        threads[i] = (fl_watched){0};
    }
    fl_watchdog_missing(&dog, &threads[0], 1000);
    fl_watchdog_missing(&dog, &threads[1], 1010);
    asked = 0;
    return dog;
}

static void test_nobody_is_asked_about_before_it_is_missing_for_long(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 1050, asleep));
    CHECK_EQUAL(asked, 0);
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 1109, asleep));
    CHECK(fl_watchdog_look(&dog, ENOUGH, LONG, 1110, asleep));
}

static void test_a_thread_that_is_awake_is_asked_about_again_later(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 1200, first_is_awake));
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 1299, asleep));
    CHECK_EQUAL(asked, 0);
    CHECK(fl_watchdog_look(&dog, ENOUGH, LONG, 1300, asleep));
}

static void test_who_looks_at_the_gil_is_not_missing(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    fl_watchdog_seen(&dog, &threads[2]);
    CHECK_EQUAL(dog.missing, 2);
    fl_watchdog_seen(&dog, &threads[0]);
    CHECK(dog.missing == 1 && dog.first == &threads[1]);
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 5000, asleep));
    fl_watchdog_missing(&dog, &threads[2], 5000);
    fl_watchdog_forget(&dog);
    CHECK(dog.missing == 0 && dog.first == NULL && !threads[1].missing);
}

static void test_a_thread_that_is_missing_twice_counts_once_and_from_the_second_time(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    fl_watchdog_missing(&dog, &threads[0], 1090);
    CHECK_EQUAL(dog.missing, 2);
    CHECK(!fl_watchdog_look(&dog, ENOUGH, LONG, 1150, asleep));
}

int main(void)
{
    test_nobody_is_asked_about_before_it_is_missing_for_long();
    test_a_thread_that_is_awake_is_asked_about_again_later();
    test_who_looks_at_the_gil_is_not_missing();
    test_a_thread_that_is_missing_twice_counts_once_and_from_the_second_time();
    return 0;
}
