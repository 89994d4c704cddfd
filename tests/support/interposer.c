/* What another library does that hooks the interpreter's calls, and what the dynamic linker does when it looks a
   function up. Compiled by tests, with the probe's own got.c. */
#include <dlfcn.h>
#include <pthread.h>
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
