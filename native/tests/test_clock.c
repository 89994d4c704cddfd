#include <pthread.h>
#include <time.h>

#include "check.h"
#include "machine/clock.h"

static int64_t system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void test_clock_lies_between_two_readings_of_the_system_clock(void)
{
    int64_t before = system_clock();
    int64_t now = fl_clock_now();
    int64_t after = system_clock();
    CHECK(before <= now && now <= after);
}

static void test_clock_never_goes_back(void)
{
    int64_t last = fl_clock_now();
    for (int i = 0; i < 100000; i++) {
        int64_t now = fl_clock_now();
        CHECK(now >= last);
        last = now;
    }
}

static void *read_clock(void *reading)
{
    *(int64_t *)reading = fl_clock_now();
    return NULL;
}

static void test_clock_of_another_thread_lies_between_ours(void)
{
    int64_t before = fl_clock_now();
    int64_t theirs = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_clock, &theirs) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(before <= theirs && theirs <= fl_clock_now());
}

int main(void)
{
    test_clock_lies_between_two_readings_of_the_system_clock();
    test_clock_never_goes_back();
    test_clock_of_another_thread_lies_between_ours();
    return 0;
}
