/* The clock, the cores online, getrusage(), threads and forks: alike on every Unix. */
#include "machine/os/unix.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "machine/clock.h"
#include "machine/cores.h"
#include "machine/thread.h"

#define STACK 65536

/* The kernel counts the peak resident set in KiB, except on macOS. */
#ifdef __APPLE__
#define MAXRSS_PER_KB 1024
#else
#define MAXRSS_PER_KB 1
#endif

int64_t fl_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int fl_cores_online(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (int)online;
}

static int64_t nanoseconds(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

void fl_unix_rusage(int scope, fl_usage *usage)
{
    struct rusage kernel = {0};
    getrusage(scope, &kernel);
    usage->user_ns = nanoseconds(kernel.ru_utime);
    usage->system_ns = nanoseconds(kernel.ru_stime);
    usage->ctx_voluntary = kernel.ru_nvcsw;
    usage->ctx_involuntary = kernel.ru_nivcsw;
    usage->max_rss_kb = kernel.ru_maxrss / MAXRSS_PER_KB;
}

bool fl_thread_start(void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, body, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

uint64_t fl_thread_ident(void)
{
    return (uint64_t)pthread_self();
}

bool fl_fork_call(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return pthread_atfork(before, parent, child) == 0;
}
