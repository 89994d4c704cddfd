/* Which threads are missing, and when several have slept for too long. */
#include "gil/policy/watchdog.h"

#include "check.h"

#define ENOUGH 2
#define LONG 100

static fl_watched threads[3];
static unsigned asked, woken;

static bool asleep(fl_watched *thread)
{
    (void)thread;
    asked++;
    return true;
}

static bool first_is_awake(fl_watched *thread)
{
    return thread != &threads[0];
}

static void rouse(fl_watched *thread)
{
    woken += thread->missing;
}

static bool look(fl_watchdog *dog, int64_t now, bool (*asleep_since)(fl_watched *thread))
{
    return fl_watchdog_look(dog, ENOUGH, LONG, now, asleep_since, rouse);
}

static fl_watchdog watchdog_with_two_missing(void)
{
    fl_watchdog dog = {0};
    for (int i = 0; i < 3; i++) {
        threads[i] = (fl_watched){0};
    }
    fl_watchdog_missing(&dog, &threads[0], 1000);
    fl_watchdog_missing(&dog, &threads[1], 1010);
    asked = woken = 0;
    return dog;
}

static void test_no_thread_is_checked_before_it_is_missing_for_long(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!look(&dog, 1050, asleep));
    CHECK_EQUAL(asked, 0);
    CHECK(!look(&dog, 1109, asleep));
    CHECK_EQUAL(asked, 1);
}

static void test_sleeping_thread_is_woken_before_it_counts(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!look(&dog, 1110, asleep)); /* the thread that was to wake them may have no core */
    CHECK_EQUAL(woken, 2);
    CHECK(!look(&dog, 1209, asleep));
    CHECK(look(&dog, 1210, asleep));
    CHECK_EQUAL(woken, 2);
}

static void test_thread_that_came_once_woken_does_not_count(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!look(&dog, 1110, asleep));
    fl_watchdog_seen(&dog, &threads[0]);
    fl_watchdog_missing(&dog, &threads[0], 1150);
    CHECK(!look(&dog, 1250, asleep));
    CHECK_EQUAL(woken, 3);
    CHECK(!look(&dog, 1349, asleep));
    CHECK(look(&dog, 1350, asleep));
}

static void test_a_thread_that_is_awake_is_asked_about_again_later(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    CHECK(!look(&dog, 1200, first_is_awake));
    CHECK(!look(&dog, 1299, asleep));
    CHECK_EQUAL(asked, 0);
    CHECK(!look(&dog, 1300, asleep)); /* the second counts, the first is woken */
    CHECK(look(&dog, 1400, asleep));
}

static void test_thread_that_looks_at_the_gil_is_not_missing(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    fl_watchdog_seen(&dog, &threads[2]);
    CHECK_EQUAL(dog.missing, 2);
    fl_watchdog_seen(&dog, &threads[0]);
    CHECK(dog.missing == 1 && dog.first == &threads[1]);
    CHECK(!look(&dog, 5000, asleep));
    fl_watchdog_missing(&dog, &threads[2], 5000);
    fl_watchdog_forget(&dog);
    CHECK(dog.missing == 0 && dog.first == NULL && !threads[1].missing);
}

static void test_a_thread_that_is_missing_twice_counts_once_and_from_the_second_time(void)
{
    fl_watchdog dog = watchdog_with_two_missing();
    fl_watchdog_missing(&dog, &threads[0], 1090);
    CHECK_EQUAL(dog.missing, 2);
    CHECK(!look(&dog, 1150, asleep));
}

int main(void)
{
    test_no_thread_is_checked_before_it_is_missing_for_long();
    test_sleeping_thread_is_woken_before_it_counts();
    test_thread_that_came_once_woken_does_not_count();
    test_a_thread_that_is_awake_is_asked_about_again_later();
    test_thread_that_looks_at_the_gil_is_not_missing();
    test_a_thread_that_is_missing_twice_counts_once_and_from_the_second_time();
    return 0;
}
