#include "gil/hooks/hooks.h"

#include "gil/hooks/control.h"
#include "gil/interpreter/find.h"
#include "gil/hooks/hot.h"
#include "gil/threads/registry.h"
#include "gil/hooks/waits.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#ifndef FL_PROBE_REFUSAL

static int installations;
static void (*observers_forked)(void);
static uint64_t active_since, active_ticks; /* since when there is an observer, and for how long before */

static void take_out(int count)
{
    while (count-- > 0) {
        (void)fl_got_restore(&fl_find_functions[count], fl_hooks_table[count].address);
    }
}

/* Of hooks that do not rest. */
static bool wanted(int function)
{
    return function != FL_UNLOCK || HOT(scheduler);
}

/* A hook that another library has put in over ours stays. It passes calls on to ours; if it does not,
   fairlead sees nothing. 0 or the first error. */
static int put_all_in(void)
{
    int error = 0;
    for (int i = 0; i < FL_FUNCTIONS; i++) {
        fl_got_function *function = &fl_find_functions[i];
        void *hook = fl_hooks_table[i].address;
        if (wanted(i) && !fl_got_taken(function, hook)) {
            int failed = fl_got_set(function, hook);
            error = error ? error : failed;
        }
    }
    return error;
}

static bool all_there(void)
{
    bool all = true;
    for (int i = 0; i < FL_FUNCTIONS; i++) {
        all = all && (!wanted(i) || fl_got_is(&fl_find_functions[i], fl_hooks_table[i].address));
    }
    return all;
}

static const char taken_by_others[] = "another library has hooked the functions that the interpreter "
                                      "takes its GIL with";

static const char *put_in(void)
{
    fl_waits_from_now_on();
    int error = put_all_in();
    if (error) {
        take_out(FL_FUNCTIONS);
        return fl_got_failure(error);
    }
    uint64_t taken = fl_registry_here.seat->t_acquired;
    Py_BEGIN_ALLOW_THREADS
    Py_END_ALLOW_THREADS
    if (fl_registry_here.seat->t_acquired == taken) {
        take_out(FL_FUNCTIONS);
        return taken_by_others;
    }
    return NULL;
}

/* ---- Rest */

static void forget(fl_gil *gil, void *context)
{
    const fl_observer *observer = context;
    if (gil->alive) {
        uint64_t now = fl_gil_now(gil);
        gil->first = gil->last = NULL;
        gil->forced_out = 0;
        for (fl_seat *seat = gil->seats; seat; seat = seat->of_gil) {
            if (observer && !seat->ended) {
                observer->interrupted(gil, seat, now);
            }
            seat->holding = seat->waiting = seat->marked = seat->forced_out = false;
            seat->ahead = seat->behind = NULL;
        }
    }
}

/* The present thread has the only thread state. */
static bool thread_is_alone(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Main();
    PyThreadState *thread = PyThreadState_Get();
    return PyInterpreterState_Head() == interpreter && PyInterpreterState_Next(interpreter) == NULL
           && PyInterpreterState_ThreadHead(interpreter) == thread && PyThreadState_Next(thread) == NULL;
}

void fl_hooks_rest(void)
{
    fl_gil *gil = HOT(gil);
    if (installations != 1 || HOT(observer) || HOT(more) || gil->index != 0 || !thread_is_alone()) {
        return;
    }
    pthread_mutex_lock(&gil->py->mutex);
    if (gil->first == NULL && all_there()) {
        forget(gil, NULL);
        gil->holder = NULL;
        HOT_SET(resting, true);
        for (int i = 0; i < FL_FUNCTIONS; i++) {
            if (i != FL_TIMEDWAIT) {
                (void)fl_got_restore(&fl_find_functions[i], fl_hooks_table[i].address);
            }
        }
    }
    pthread_mutex_unlock(&gil->py->mutex);
}

/* A hook of another library that was put in meanwhile does not pass calls on to ours. */
static bool others_have_come(void)
{
    bool others = false;
    for (int i = 0; i < FL_FUNCTIONS; i++) {
        others = others || fl_got_taken(&fl_find_functions[i], fl_hooks_table[i].address);
    }
    return others;
}

static const char *rouse(void)
{
    for (fl_seat *seat = HOT(gil)->seats; seat; seat = seat->of_gil) {
        seat->t_acquired = seat->t_dropped = fl_ticks_now(); /* it counts as a thread that has just come */
    }
    if (others_have_come()) {
        return taken_by_others;
    }
    fl_waits_from_now_on();
    int error = put_all_in();
    if (error) {
        take_out(FL_FUNCTIONS);
        return fl_got_failure(error);
    }
    return NULL;
}

static void tell_once(const char *failure)
{
    static bool told;
    if (!told) {
        told = true;
        fl_hooks_tell(failure, "; the interpreter's own scheduling is in force");
    }
}

/* Whether standard error took the text. The calling thread may hold the GIL, so it does not wait for a
   reader; and the program gets no signal for what it did not write itself. */
static bool written(const char *text, size_t size)
{
    static const int raised[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) {
        sigaddset(&ours, raised[i]);
    }
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigpending(&pending);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) {
        if (sigismember(&pending, raised[i])) {
            sigdelset(&ours, raised[i]);
        }
    }
    bool done = poll(&out, 1, 0) == 1 && write(STDERR_FILENO, text, size) == (ssize_t)size;
    if (!done) {
        sigtimedwait(&ours, NULL, &(struct timespec){0});
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

void fl_hooks_tell(const char *news, const char *more)
{
    static _Atomic unsigned untold; /* lines */
    char line[400], late[80] = ""; /* written at once, or those of other processes come between */
    unsigned count = atomic_exchange(&untold, 0);
    if (count) {
        const char *plural = count == 1 ? "" : "s";
        snprintf(late, sizeof late, " (standard error did not take %u line%s before)", count, plural);
    }
    int length =
        snprintf(line, sizeof line, "fairlead: process %d: %s%s%s\n", (int)getpid(), news, more, late);
    if (!written(line, (size_t)length)) {
        atomic_fetch_add(&untold, count + 1);
    }
}

/* Guards the end of their rest. */
static pthread_mutex_t waking = PTHREAD_MUTEX_INITIALIZER;

const char *fl_hooks_wake(void)
{
    const char *failure = NULL;
    pthread_mutex_lock(&waking);
    if (HOT(resting)) {
        failure = rouse();
        HOT_SET(resting, failure != NULL);
        atomic_store(&fl_control()->hooks, failure ? FL_CANNOT_WAKE : FL_AWAKE);
    }
    if (failure) {
        tell_once(failure);
    }
    pthread_mutex_unlock(&waking);
    return failure;
}

static bool bypassed; /* on the main interpreter's GIL; with `waking` held */

void fl_hooks_show(fl_control_page *page)
{
    pthread_mutex_lock(&waking);
    atomic_store(&page->hooks, HOT(resting) ? FL_RESTING : bypassed ? FL_BYPASSED : FL_AWAKE);
    atomic_store_explicit(&fl_control_here, page, memory_order_release);
    pthread_mutex_unlock(&waking);
}

void fl_hooks_asked_by_unseen(fl_gil *gil)
{
    if (atomic_fetch_add_explicit(&gil->unseen, 1, memory_order_relaxed) + 1 != FL_UNSEEN_ENOUGH) {
        return;
    }
    if (!all_there()) {
        (void)put_all_in();
        if (all_there()) {
            atomic_store_explicit(&gil->unseen, 0, memory_order_relaxed);
            return;
        }
    }
    pthread_mutex_lock(&waking);
    bool main = gil->index == 0;
    if (main && !bypassed) {
        bypassed = true;
        atomic_store(&fl_control()->hooks, FL_BYPASSED);
    }
    pthread_mutex_unlock(&waking);
    if (main) {
        fl_hooks_tell("threads wait for the GIL, and fairlead's hooks do not see them",
                      HOT(scheduler) ? "; the interpreter's own scheduling is in force"
                                     : "; such waits are not counted");
    }
}

/* ---- Fork and preparation */

/* In the child: only this thread is left, and the GIL that it holds, if it does. The interpreter makes that
   GIL anew, and this thread takes it, as soon as it knows that it is a child. */
static void forked(void)
{
    pthread_mutex_init(&waking, NULL);
    fl_got_forked();
    fl_seat *seat = fl_registry_here.seat;
    fl_gil *kept = NULL;
    if (installations > 0) {
        kept = seat != NULL && seat->holding ? fl_seat_gil(seat) : HOT(mutex) != NULL ? HOT(gil) : NULL;
    }
    fl_registry_fork(kept);
    active_ticks = 0;
    active_since = fl_ticks_now();
    observers_forked();
    fl_control_forked();
    HOT_SET(more, false);
    if (kept == NULL) {
        point_nowhere();
    } else {
        point_at(kept);
    }
    (void)fl_hooks_wake(); /* fairlead ctl looks for the page that a child makes when it takes the GIL */
    const fl_observer *observer = HOT(observer);
    if (observer) {
        observer->forked();
    }
    const fl_scheduler *scheduler = HOT(scheduler);
    if (scheduler && kept) {
        scheduler->forked(kept, fl_registry_here.seat);
    }
}

const char *fl_hooks_prepare(void (*forked_too)(void))
{
    observers_forked = forked_too;
    Py_BEGIN_ALLOW_THREADS
    fl_ticks_prepare();
    Py_END_ALLOW_THREADS
    if (fl_registry_prepare(fl_hooks_thread_start, fl_hooks_thread_end) != 0
        || pthread_atfork(fl_control_forking, NULL, forked) != 0) {
        return "there is no memory, or no key for thread data left";
    }
    fl_waits_prepare();
    fl_hot.long_hold = fl_ticks_from_ns(FL_LONG_HOLD_NS);
    return NULL;
}

/* The present thread, which holds the GIL, takes its seat. */
static fl_gil *settle(fl_py_gil *py)
{
    fl_gil *gil = fl_places_find(py);
    gil = gil ? gil : fl_registry_add(py, fl_find_is_main(py));
    if (gil == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&py->mutex);
    fl_seat *seat = fl_registry_seat(gil);
    if (seat) {
        seat->holding = true;
        seat->t_acquired = fl_gil_now(gil);
        gil->holder = seat;
        gil->holder_before = seat->serial;
    }
    pthread_mutex_unlock(&py->mutex);
    return seat ? gil : NULL;
}

/* The hooks are in; makes the present thread's GIL known to them. NULL, or why that failed. */
static const char *make_known(void)
{
    const fl_seat *seat = fl_registry_here.seat;
    if (seat != NULL && seat->holding) {
        return NULL;
    }
    fl_py_gil *py = fl_find_own_gil();
    fl_gil *gil = py ? settle(py) : NULL;
    if (gil == NULL) {
        return "this interpreter has a GIL of its own that was not found, or there are too many such";
    }
    if (HOT(mutex) == NULL) {
        point_at(gil);
    } else if (gil != HOT(gil)) {
        HOT_SET(more, true);
    }
    return NULL;
}

const char *fl_hooks_install(void)
{
    if (installations > 0) {
        const char *failure = fl_hooks_wake();
        failure = failure ? failure : make_known();
        installations += failure == NULL;
        return failure;
    }
    fl_py_gil *py = NULL;
    const char *failure = fl_find_slots();
    if (!failure) {
        failure = fl_find_gil(&py);
    }
    if (failure) {
        return failure;
    }
    fl_gil *gil = settle(py);
    if (gil == NULL) {
        return "there is no memory left";
    }
    point_at(gil);
    failure = put_in();
    if (failure) {
        fl_registry_forget(gil);
    } else {
        installations = 1;
    }
    return failure;
}

void fl_hooks_release(void)
{
    if (--installations > 0) {
        return;
    }
    const fl_observer *observer = HOT(observer);
    HOT_SET(observer, NULL);
    HOT_SET(scheduler, NULL);
    take_out(FL_FUNCTIONS);
    if (observer) {
        active_ticks += fl_ticks_now() - active_since;
    }
    /* Calls that are in a hook now find the seats as if they had just come. */
    fl_registry_each(forget, (void *)(uintptr_t)observer);
    fl_registry_retire();
    point_nowhere();
    HOT_SET(more, false);
}

void fl_hooks_observe(const fl_observer *observer)
{
    if (HOT(observer) == NULL) {
        active_since = fl_registry_here.seat->t_acquired = fl_ticks_now(); /* this hold, from now on */
    }
    HOT_SET(observer, observer);
}

bool fl_hooks_observed(void)
{
    return HOT(observer) != NULL;
}

const char *fl_hooks_schedule(const fl_scheduler *scheduler)
{
    int error = fl_got_set(&fl_find_functions[FL_UNLOCK], fl_hooks_table[FL_UNLOCK].address);
    if (error) {
        return fl_got_failure(error);
    }
    HOT_SET(scheduler, scheduler);
    return NULL;
}

uint64_t fl_hooks_active_ns(void)
{
    return fl_ticks_to_ns(active_ticks + (HOT(observer) ? fl_ticks_now() - active_since : 0));
}

void fl_hooks_reinstall(void)
{
    if (UNLIKELY(!all_there())) {
        (void)put_all_in();
    }
}

#endif
