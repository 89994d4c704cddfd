/* The GIL is found by watching and not by its name: it has none that a linker knows, and where it lies in the
 * interpreter's state differs from version to version, even between patch releases. What does not differ is
 * the order in which a release and a retake use it; the addresses in that order say where its parts are, and
 * these are then checked against each other and against three values that are known: the switch interval, the
 * flag that it is locked (by us), and the thread state that has it (ours).
 */
#define _GNU_SOURCE /* process_vm_readv */

#include "gil/interpreter/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef FL_PROBE_REFUSAL

fl_real fl_find_real;
fl_got_function fl_find_functions[FL_FUNCTIONS] = {
    [FL_LOCK] = {.name = "pthread_mutex_lock"},          [FL_UNLOCK] = {.name = "pthread_mutex_unlock"},
    [FL_TIMEDWAIT] = {.name = "pthread_cond_timedwait"}, [FL_SIGNAL] = {.name = "pthread_cond_signal"},
    [FL_WAIT] = {.name = "pthread_cond_wait"},           [FL_INIT] = {.name = "pthread_cond_init"},
    [FL_DESTROY] = {.name = "pthread_cond_destroy"},
};

static char reason[512];

/* Where the GIL was found; from 3.12 on, its offset in its PyInterpreterState; 0 when that is not known. */
static fl_py_gil *first_found;
static uintptr_t offset_in_interpreter;

/* A function that no symbol names. For one that has a name, the linker may give an entry in the table of an
   executable: of one that embeds the interpreter, takes the function's address, and is not
   position-independent. */
const void *fl_find_landmark(void)
{
    union {
        ternaryfunc function;
        const void *address;
    } landmark = {PyType_Type.tp_call};
    return landmark.address;
}

const char *fl_find_slots(void)
{
    static bool found;
    if (found) {
        return NULL;
    }
    fl_got_object object;
    if (!fl_got_find(fl_find_landmark(), &object, fl_find_functions, FL_FUNCTIONS)) {
        return "the interpreter is linked statically with the C library, whose functions cannot be hooked";
    }
    for (size_t i = 0; i < FL_FUNCTIONS; i++) {
        const fl_got_function *function = &fl_find_functions[i];
        if (function->count == 0 || function->more || function->real == NULL) {
            snprintf(reason, sizeof reason, "%s %s %s%s",
                     object.path[0] ? object.path : "the interpreter's executable",
                     function->count == 0 ? "does not call" : "calls", function->name,
                     function->more          ? " through more places than can be hooked"
                     : function->count == 0 ? " through a table that can be hooked"
                                             : ", which cannot be found");
            return reason;
        }
    }
    /* A union, because a function's address is no object's in C; POSIX has them alike. */
    union {
        fl_real functions;
        void *addresses[FL_FUNCTIONS];
    } real;
    for (size_t i = 0; i < FL_FUNCTIONS; i++) {
        real.addresses[i] = fl_find_functions[i].real;
    }
    fl_find_real = real.functions;
    found = true;
    return NULL;
}

/* ---- Watching */

#define STEPS 32

static struct {
    pthread_t thread;
    atomic_bool on; /* stored after the thread */
    int count;
    char kinds[STEPS + 1];
    void *addresses[STEPS];
} watched;

static void note(char kind, void *address)
{
    if (!watched.on || !pthread_equal(watched.thread, pthread_self())) {
        return;
    }
    /* However long it waits for the GIL, that is one step. */
    bool again = kind == 'T' && watched.count > 0 && watched.kinds[watched.count - 1] == 'T';
    if (!again && watched.count < STEPS) {
        watched.kinds[watched.count] = kind;
        watched.addresses[watched.count++] = address;
    }
}

static int watch_lock(pthread_mutex_t *mutex)
{
    note('L', mutex);
    return fl_find_real.lock(mutex);
}

static int watch_unlock(pthread_mutex_t *mutex)
{
    note('U', mutex);
    return fl_find_real.unlock(mutex);
}

static int watch_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    note('T', cond);
    return fl_find_real.timedwait(cond, mutex, deadline);
}

static int watch_signal(pthread_cond_t *cond)
{
    note('S', cond);
    return fl_find_real.signal(cond);
}

static int watch_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    note('W', cond);
    return fl_find_real.wait(cond, mutex);
}

/* The GIL, if the watched calls are the release and the retake of one; else NULL. */
static fl_py_gil *understand(void)
{
    if (watched.count < 7 || strncmp(watched.kinds, "LSU", 3) != 0) {
        return NULL;
    }
    fl_py_gil *gil = FL_GIL_OF(cond, watched.addresses[1]);
    if (watched.addresses[0] != &gil->mutex || watched.addresses[2] != &gil->mutex) {
        return NULL;
    }
    /* The retake ends: lock(switch_mutex) signal(switch_cond) unlock(switch_mutex) unlock(mutex). */
    int last = watched.count - 4;
    void *const *end = &watched.addresses[last];
    if (strcmp(&watched.kinds[last], "LSUU") != 0 || end[0] != &gil->switch_mutex
        || end[1] != &gil->switch_cond || end[2] != &gil->switch_mutex || end[3] != &gil->mutex) {
        return NULL;
    }
    return gil;
}

static unsigned long switch_interval(void)
{
    PyObject *function = PySys_GetObject("getswitchinterval");
    PyObject *seconds = function ? PyObject_CallNoArgs(function) : NULL;
    double value = seconds ? PyFloat_AsDouble(seconds) : -1;
    Py_XDECREF(seconds);
    PyErr_Clear();
    return (unsigned long)(value * 1e6 + 0.5);
}

/* The smaller of two: the offset in another interpreter than the GIL's own is larger than an interpreter. */
static void learn_offset(const fl_py_gil *gil)
{
    uintptr_t from_main = (uintptr_t)gil - (uintptr_t)PyInterpreterState_Main();
    uintptr_t from_own = (uintptr_t)gil - (uintptr_t)PyInterpreterState_Get();
    uintptr_t least = from_main < from_own ? from_main : from_own;
    offset_in_interpreter = FL_GIL_PER_INTERPRETER && least < (uintptr_t)1 << 20 ? least : 0;
}

static bool is_ours(const fl_py_gil *gil)
{
    return gil->interval == switch_interval() && gil->locked == 1 && gil->last_holder == PyThreadState_Get();
}

static const char *put_watch_in(void)
{
    static const union {
        int (*lock)(pthread_mutex_t *);
        int (*timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
        int (*signal)(pthread_cond_t *);
        int (*wait)(pthread_cond_t *, pthread_mutex_t *);
        void *address;
    } watch[FL_WATCHED] = {
        [FL_LOCK] = {.lock = watch_lock},
        [FL_UNLOCK] = {.lock = watch_unlock},
        [FL_TIMEDWAIT] = {.timedwait = watch_timedwait},
        [FL_SIGNAL] = {.signal = watch_signal},
        [FL_WAIT] = {.wait = watch_wait},
    };
    int error = 0, done = 0;
    for (; done < FL_WATCHED && !error; done++) {
        error = fl_got_set(&fl_find_functions[done], watch[done].address);
    }
    if (!error) {
        watched.thread = pthread_self();
        watched.count = 0;
        watched.on = true;
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
        watched.on = false;
        watched.kinds[watched.count] = 0;
    }
    while (done-- > 0) {
        (void)fl_got_restore(&fl_find_functions[done], watch[done].address);
    }
    return error ? fl_got_failure(error) : NULL;
}

const char *fl_find_gil(fl_py_gil **found)
{
    const char *failure = put_watch_in();
    if (failure) {
        return failure;
    }
    fl_py_gil *gil = understand();
    if (gil == NULL) {
        snprintf(reason, sizeof reason,
                 "this interpreter takes its GIL in a way that fairlead does not know (%s)", watched.kinds);
        return reason;
    }
    if (!is_ours(gil)) {
        return "this interpreter's GIL is laid out in a way that fairlead does not know";
    }
    learn_offset(gil);
    first_found = *found = gil;
    return NULL;
}

fl_py_gil *fl_find_own_gil(void)
{
    uintptr_t own = (uintptr_t)PyInterpreterState_Get() + offset_in_interpreter;
    fl_py_gil *gil = FL_GIL_PER_INTERPRETER && offset_in_interpreter ? (fl_py_gil *)own : first_found;
    return gil != NULL && is_ours(gil) ? gil : NULL;
}

/* Has the kernel write the memory into a pipe: for sandboxes and emulators without process_vm_readv. */
static bool peek_by_pipe(const void *address, void *into, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    bool done = write(ends[1], address, size) == (ssize_t)size && read(ends[0], into, size) == (ssize_t)size;
    close(ends[0]);
    close(ends[1]);
    return done;
}

/* Reads memory that may not be there. */
static bool peek(const void *address, void *into, size_t size)
{
    struct iovec here = {into, size};
    union {
        const void *constant;
        void *plain;
    } there = {address};
    struct iovec remote = {there.plain, size};
    bool may_be_killed = prctl(PR_GET_SECCOMP) != 0; /* some filters kill a process for a debugger's call */
    if (!may_be_killed && process_vm_readv(getpid(), &here, 1, &remote, 1, 0) == (ssize_t)size) {
        return true;
    }
    return (may_be_killed || errno != EFAULT) && peek_by_pipe(address, into, size);
}

bool fl_find_is_gil(const fl_py_gil *gil)
{
    if (!offset_in_interpreter || (uintptr_t)gil % sizeof(void *) != 0) {
        return false;
    }
    fl_py_gil start;
    PyInterpreterState *interpreter;
    return peek(gil, &start, offsetof(fl_py_gil, cond)) && start.interval > 0
           && (start.locked == 0 || start.locked == 1) && start.last_holder != NULL
           && peek((char *)start.last_holder + FL_INTERPRETER_OFFSET, &interpreter, sizeof interpreter)
           && (uintptr_t)interpreter + offset_in_interpreter == (uintptr_t)gil;
}

bool fl_find_is_main(const fl_py_gil *gil)
{
    return !FL_GIL_PER_INTERPRETER
           || (uintptr_t)gil == (uintptr_t)PyInterpreterState_Main() + offset_in_interpreter;
}

#endif
