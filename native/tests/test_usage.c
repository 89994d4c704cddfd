#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "machine/usage.h"

#define MILLISECOND INT64_C(1000000)

static fl_usage read_usage(fl_usage_scope scope)
{
    fl_usage usage;
    CHECK(fl_usage_read(scope, &usage) == FL_USAGE_OK);
    return usage;
}

static int64_t cpu_ns(const fl_usage *usage)
{
    return usage->user_ns + usage->system_ns;
}

static int64_t thread_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Burns CPU time of this thread by the thread's own CPU clock, so that other load does not matter. */
static void burn(int64_t nanoseconds)
{
    int64_t end = thread_clock() + nanoseconds;
    while (thread_clock() < end) {
    }
}

static void *burn_in_thread(void *nanoseconds)
{
    burn(*(int64_t *)nanoseconds);
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void test_process_counts_cpu_time_of_an_ended_thread(void)
{
    int64_t time = 50 * MILLISECOND;
    fl_usage before = read_usage(FL_USAGE_PROCESS);
    run_thread(burn_in_thread, &time);
    fl_usage after = read_usage(FL_USAGE_PROCESS);
    CHECK(cpu_ns(&after) - cpu_ns(&before) >= 45 * MILLISECOND);
    CHECK(after.max_rss_kb > 0);
}

static void test_children_count_only_what_was_waited_for(void)
{
    fl_usage before = read_usage(FL_USAGE_CHILDREN);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        burn(50 * MILLISECOND);
        _exit(0);
    }
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    fl_usage ended = read_usage(FL_USAGE_CHILDREN);
    CHECK_EQUAL(cpu_ns(&ended), cpu_ns(&before));
    CHECK(waitpid(child, NULL, 0) == child);
    fl_usage waited = read_usage(FL_USAGE_CHILDREN);
    CHECK(cpu_ns(&waited) - cpu_ns(&before) >= 45 * MILLISECOND);
    CHECK(waited.max_rss_kb > 0);
}

static void test_process_counts_a_voluntary_switch_for_each_wait(void)
{
    enum { ROUNDS = 20 };
    int to_child[2], to_parent[2];
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* answers only when the other side sleeps in its read: /proc says so */
        char byte, path[64];
        snprintf(path, sizeof path, "/proc/%d/stat", getppid());
        for (int i = 0; i < ROUNDS; i++) {
            if (read(to_child[0], &byte, 1) != 1) {
                _exit(1);
            }
            char state = '?';
            while (state != 'S') {
                FILE *stat = fopen(path, "r");
                if (stat == NULL || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) {
                    _exit(2);
                }
                fclose(stat);
            }
            if (write(to_parent[1], "x", 1) != 1) {
                _exit(3);
            }
        }
        _exit(0);
    }
    fl_usage before = read_usage(FL_USAGE_PROCESS);
    for (int i = 0; i < ROUNDS; i++) {
        char byte;
        CHECK(write(to_child[1], "x", 1) == 1);
        CHECK(read(to_parent[0], &byte, 1) == 1);
    }
    fl_usage after = read_usage(FL_USAGE_PROCESS);
    CHECK(after.ctx_voluntary - before.ctx_voluntary >= ROUNDS);
    CHECK(after.ctx_involuntary >= before.ctx_involuntary);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

#ifndef FL_TEST_PLATFORM_POSIX
static void *check_own_usage(void *nanoseconds)
{
    fl_usage before = read_usage(FL_USAGE_THREAD);
    CHECK(cpu_ns(&before) < *(int64_t *)nanoseconds);
    burn(*(int64_t *)nanoseconds);
    fl_usage after = read_usage(FL_USAGE_THREAD);
    int64_t used = cpu_ns(&after) - cpu_ns(&before);
    CHECK(used >= *(int64_t *)nanoseconds * 9 / 10);
    CHECK(used <= *(int64_t *)nanoseconds * 3);
    return NULL;
}

static void test_thread_counts_its_own_cpu_time_only(void)
{
    int64_t time = 50 * MILLISECOND;
    burn(time);
    fl_usage before = read_usage(FL_USAGE_THREAD);
    CHECK(cpu_ns(&before) >= 45 * MILLISECOND);
    run_thread(check_own_usage, &time);
    fl_usage after = read_usage(FL_USAGE_THREAD);
    CHECK(cpu_ns(&after) - cpu_ns(&before) < 25 * MILLISECOND);
}

#endif

#ifdef FL_TEST_PLATFORM_LINUX
static void test_thread_counts_up_to_this_moment(void)
{
    enum { ROUNDING_NS = 2000 };  /* user and system time are whole microseconds */
    for (int i = 0; i < 1000; i++) {
        int64_t before = thread_clock();
        fl_usage usage = read_usage(FL_USAGE_THREAD);
        int64_t after = thread_clock();
        CHECK(cpu_ns(&usage) >= before - ROUNDING_NS);
        CHECK(cpu_ns(&usage) <= after);
    }
}
#endif

#ifdef FL_TEST_PLATFORM_POSIX
static void test_thread_is_unsupported_where_the_system_has_no_account(void)
{
    fl_usage usage;
    CHECK(fl_usage_read(FL_USAGE_THREAD, &usage) == FL_USAGE_UNSUPPORTED);
}
#endif

int main(void)
{
    test_process_counts_cpu_time_of_an_ended_thread();
    test_children_count_only_what_was_waited_for();
#ifdef __linux__
    test_process_counts_a_voluntary_switch_for_each_wait();
#endif
#ifndef FL_TEST_PLATFORM_POSIX
    test_thread_counts_its_own_cpu_time_only();
#endif
#ifdef FL_TEST_PLATFORM_LINUX
    test_thread_counts_up_to_this_moment();
#endif
#ifdef FL_TEST_PLATFORM_POSIX
    test_thread_is_unsupported_where_the_system_has_no_account();
#endif
    return 0;
}
