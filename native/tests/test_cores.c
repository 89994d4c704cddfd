#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "machine/cores.h"

static void test_usable_is_the_affinity_without_a_quota(void)
{
    CHECK_EQUAL(fl_cores_usable(8, INFINITY), 8);
    CHECK_EQUAL(fl_cores_usable(1, INFINITY), 1);
}

static void test_usable_rounds_the_quota_up(void)
{
    CHECK_EQUAL(fl_cores_usable(8, 1.5), 2);
    CHECK_EQUAL(fl_cores_usable(8, 2.0), 2);
    CHECK_EQUAL(fl_cores_usable(8, 2.01), 3);
    CHECK_EQUAL(fl_cores_usable(8, 7.5), 8);
}

static void test_usable_is_never_above_the_affinity(void)
{
    CHECK_EQUAL(fl_cores_usable(2, 2.0), 2);
    CHECK_EQUAL(fl_cores_usable(2, 64.0), 2);
    CHECK_EQUAL(fl_cores_usable(2, 1e300), 2);
}

static void test_usable_is_at_least_one(void)
{
    CHECK_EQUAL(fl_cores_usable(4, 0.01), 1);
    CHECK_EQUAL(fl_cores_usable(0, INFINITY), 1);
}

static void test_online_is_what_the_system_says(void)
{
    CHECK_EQUAL(fl_cores_online(), sysconf(_SC_NPROCESSORS_ONLN));
}

#ifdef FL_TEST_PLATFORM_LINUX
static void test_affinity_follows_the_mask(void)
{
    cpu_set_t before;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK_EQUAL(fl_cores_affinity(), CPU_COUNT(&before));
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &before)) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
            CHECK_EQUAL(fl_cores_affinity(), 1);
        }
    }
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    CHECK_EQUAL(fl_cores_affinity(), CPU_COUNT(&before));
}
#else
static void test_affinity_is_all_cores_where_the_system_has_none(void)
{
    CHECK_EQUAL(fl_cores_affinity(), fl_cores_online());
}
#endif

int main(void)
{
    test_usable_is_the_affinity_without_a_quota();
    test_usable_rounds_the_quota_up();
    test_usable_is_never_above_the_affinity();
    test_usable_is_at_least_one();
    test_online_is_what_the_system_says();
#ifdef FL_TEST_PLATFORM_LINUX
    test_affinity_follows_the_mask();
#else
    test_affinity_is_all_cores_where_the_system_has_none();
#endif
    return 0;
}
