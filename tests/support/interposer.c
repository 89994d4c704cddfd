/* What another library does that hooks the interpreter's calls, and what the dynamic linker does when it looks a
   function up. Compiled by tests, with the probe's own got.c. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "gil/interpreter/got.h"

typedef int sleep_function(clockid_t, int, const struct timespec *, struct timespec *);
typedef int signal_function(pthread_cond_t *);

static fl_got_function function;
static atomic_int calls;
static union {
    void *address;
    sleep_function *sleep;
    signal_function *signal;
    void (*back)(void);
} before;

static int counted(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    calls++;
    return before.sleep(clock, flags, time, left);
}

static int counted_signal(pthread_cond_t *cond)
{
    calls++;
    return before.signal(cond);
}

static int find(const void *landmark, const char *name)
{
    fl_got_object object;
    function.name = name;
    return fl_got_find(landmark, &object, &function, 1) && function.count > 0;
}

/* Counts the calls of clock_nanosleep() from now on. */
int hook(const void *landmark)
{
    union {
        sleep_function *sleep;
        void *address;
    } ours = {counted};
    int found = find(landmark, "clock_nanosleep");
    before.address = function.real;
    return found && fl_got_set(&function, ours.address) == 0;
}

/* Counts the calls of pthread_cond_signal() from now on. */
int hook_signal(const void *landmark)
{
    union {
        signal_function *signal;
        void *address;
    } ours = {counted_signal};
    int found = find(landmark, "pthread_cond_signal");
    before.address = function.real;
    return found && fl_got_set(&function, ours.address) == 0;
}

/* The object that has the landmark calls the function at the address instead from now on. */
int replace(const void *landmark, const char *name, void *address)
{
    return find(landmark, name) && fl_got_set(&function, address) == 0;
}

int count(void)
{
    return calls;
}

/* Has the function's slots lead to itself again. */
int overwrite(const void *landmark, const char *name)
{
    return replace(landmark, name, dlsym(RTLD_DEFAULT, name));
}

/* Whether they do. */
int is_overwritten(void)
{
    return fl_got_is(&function, dlsym(RTLD_DEFAULT, function.name));
}

static int timedwait_alone(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    return pthread_cond_timedwait(cond, mutex, deadline);
}

/* Keeps the calls of pthread_cond_timedwait() from whoever has hooked it. */
int hide_waits(const void *landmark)
{
    union {
        int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
        void *address;
    } ours = {timedwait_alone};
    return replace(landmark, "pthread_cond_timedwait", ours.address);
}

static sem_t called, may_return;

static void *locks_and_calls(void *mutex)
{
    union {
        void *address;
        int (*lock)(pthread_mutex_t *);
    } lock = {*function.slots[0]};
    (void)lock.lock(mutex);
    (void)pthread_mutex_unlock(mutex);
    (void)sem_post(&called);
    (void)sem_wait(&may_return);
    before.back();
    return NULL;
}

/* Has a new thread lock the mutex as the object that has the landmark would, while it is locked, and wait. */
int lock_in_a_thread(const void *landmark, pthread_mutex_t *mutex)
{
    pthread_t thread;
    if (!find(landmark, "pthread_mutex_lock") || sem_init(&called, 0, 0) || sem_init(&may_return, 0, 0)) {
        return 0;
    }
    (void)pthread_mutex_lock(mutex);
    int error = pthread_create(&thread, NULL, locks_and_calls, mutex) || pthread_detach(thread);
    while (!error && __atomic_load_n(&mutex->__data.__lock, __ATOMIC_SEQ_CST) != 2) {
        (void)sched_yield(); /* 2: locked, and a thread sleeps */
    }
    (void)pthread_mutex_unlock(mutex);
    return !error && sem_wait(&called) == 0;
}

/* That thread calls this now. */
void call_in_the_thread(void (*back)(void))
{
    before.back = back;
    (void)sem_post(&may_return);
}
