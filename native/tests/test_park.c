/* What each platform file implements alike: sleeping on a word, and waking an event loop. */
#ifdef _WIN32
#include <winsock2.h>
#define poll WSAPoll
typedef WSAPOLLFD poll_place;
#define PLACE(number) (SOCKET)(number)
#else
#include <poll.h>
#include <unistd.h>
typedef struct pollfd poll_place;
#define PLACE(number) (number)
#endif

#include <pthread.h>

#include "check.h"
#include "machine/atomic.h"
#include "machine/clock.h"
#include "machine/thread.h"

#define MILLISECOND INT64_C(1000000)

static void test_park_returns_at_once_when_the_word_has_changed(void)
{
    fl_atomic(uint32_t) word = 1;
    CHECK_EQUAL(fl_park(&word, 0, FL_FOREVER), FL_PARK_WOKEN);
}

static void test_park_times_out_at_the_deadline_and_not_before(void)
{
    fl_atomic(uint32_t) word = 0;
    int64_t deadline = fl_clock_now() + 30 * MILLISECOND;
    while (fl_park(&word, 0, deadline) != FL_PARK_TIMED_OUT) { /* a slice may be over, or a signal may come */
    }
    CHECK(fl_clock_now() >= deadline);
    CHECK_EQUAL(fl_park(&word, 0, deadline), FL_PARK_TIMED_OUT);
    CHECK_EQUAL(fl_park(&word, 0, 0), FL_PARK_TIMED_OUT);
}

#ifdef _WIN32
static void test_sleep_of_several_slices_is_not_interrupted_without_a_ctrl_c(void)
{
    fl_atomic(uint32_t) word = 0;
    CHECK_EQUAL(fl_park(&word, 0, fl_clock_now() + 100 * MILLISECOND), FL_PARK_TIMED_OUT);
}
#endif

/* Two threads that take turns: a wake-up that is lost ends the test by its time limit. */
static fl_atomic(uint32_t) turn;

static void *play(void *number)
{
    uint32_t mine = *(uint32_t *)number;
    for (int round = 0; round < 500; round++) {
        while (fl_load(&turn, acquire) != mine) { /* pairs with the release below */
            fl_park(&turn, !mine, FL_FOREVER);
        }
        fl_store(&turn, !mine, release);
        fl_unpark(&turn);
    }
    return NULL;
}

static void test_unpark_wakes_a_parked_thread(void)
{
    pthread_t threads[2];
    uint32_t numbers[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, play, &numbers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQUAL(turn, 0);
}

static int ready(int number, int milliseconds)
{
    poll_place place = {.fd = PLACE(number), .events = POLLIN};
    return poll(&place, 1, milliseconds);
}

static void test_wakeup_is_readable_from_ring_to_clear(void)
{
    fl_wakeup wakeup;
    CHECK(fl_wakeup_open(&wakeup));
    int number = wakeup.poll.number;
    for (int round = 0; round < 3; round++) {
        CHECK_EQUAL(ready(number, 0), 0);
        for (int i = 0; i <= round * 1000; i++) {
            fl_wakeup_ring(&wakeup); /* more often than there is room for: none blocks */
        }
        CHECK_EQUAL(ready(number, 10000), 1);
        fl_wakeup_clear(&wakeup);
    }
    CHECK_EQUAL(ready(number, 0), 0);
    fl_wakeup_close(&wakeup);
}

#ifndef _WIN32
/* As where a program has closed what it has not opened, and then opened files. */
static void test_wakeup_leaves_a_file_alone_that_the_program_has_at_its_numbers(void)
{
    fl_wakeup wakeup;
    int ends[2];
    char all[8];
    CHECK(fl_wakeup_open(&wakeup) && pipe(ends) == 0 && write(ends[1], "own", 3) == 3);
    int poll = dup2(ends[0], wakeup.poll.number), ring = dup2(ends[1], wakeup.ring.number);
    fl_wakeup_ring(&wakeup);
    fl_wakeup_clear(&wakeup);
    fl_wakeup_close(&wakeup);
    CHECK(write(ring, "s", 1) == 1);
    CHECK_EQUAL(read(poll, all, sizeof all), 4);
    CHECK(close(poll) == 0 && close(ring) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}
#endif

static fl_atomic(uint32_t) started;

static void *announce(void *ident)
{
    *(uint64_t *)ident = fl_thread_ident();
    fl_store(&started, 1, release); /* with the number */
    fl_unpark(&started);
    return NULL;
}

static void test_thread_runs_and_has_another_identity(void)
{
    static uint64_t theirs;
    CHECK(fl_thread_start(announce, &theirs));
    while (fl_load(&started, acquire) == 0) { /* pairs with announce */
        fl_park(&started, 0, FL_FOREVER);
    }
    CHECK(theirs != fl_thread_ident());
}

int main(void)
{
    test_park_returns_at_once_when_the_word_has_changed();
    test_park_times_out_at_the_deadline_and_not_before();
#ifdef _WIN32
    test_sleep_of_several_slices_is_not_interrupted_without_a_ctrl_c();
#endif
    test_unpark_wakes_a_parked_thread();
    test_wakeup_is_readable_from_ring_to_clear();
#ifndef _WIN32
    test_wakeup_leaves_a_file_alone_that_the_program_has_at_its_numbers();
#endif
    test_thread_runs_and_has_another_identity();
    return 0;
}
