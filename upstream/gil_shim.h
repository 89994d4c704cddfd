/* What take_gil() and drop_gil() need of CPython, for gil_model.c: a mutex and condition variables that
 * announce each operation to the explorer (native/tests/model/model.h), thread states that know when they have
 * been freed, a clock that a timer moves. And after each operation, whether what must hold does.
 */
#ifndef FL_UPSTREAM_GIL_SHIM_H
#define FL_UPSTREAM_GIL_SHIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "machine/atomic.h"
#include "model.h"
#include "sync/wait/waitq.h"

#define INTERVAL_US 50
#define TIMEOUTS 2 /* of one thread beside a request that has been made: more of them change nothing */

/* Of CPython. */
typedef int64_t PyTime_t;
typedef struct {
    uint32_t held;
    int owner;
} PyMUTEX_T;
typedef struct {
    uint32_t wakes;
    bool alive;
} PyCOND_T;
typedef struct PyInterpreterState PyInterpreterState;
typedef struct {
    PyInterpreterState *interp;
    uintptr_t eval_breaker;
    struct {
        int holds_gil;
    } _status;
} PyThreadState;
typedef struct {
    PyThreadState base;
    int gil_preempted, gil_preemptions;
} _PyThreadStateImpl;
struct _ceval_state {
    struct _gil_runtime_state *gil;
};
struct PyInterpreterState {
    struct _ceval_state ceval;
    PyThreadState *finalizing;
};

#undef assert
#define assert MODEL_CHECK
#define Py_FatalError model_fail
#define Py_MIN(x, y) ((x) < (y) ? (x) : (y))
#define HAVE_FORK
#define _PY_GIL_DROP_REQUEST_BIT 1u
#define _Py_ANNOTATE_RWLOCK_CREATE(lock) ((void)0)
#define _Py_ANNOTATE_RWLOCK_DESTROY(lock) ((void)0)
#define _Py_ANNOTATE_RWLOCK_ACQUIRED(lock, is_write) ((void)0)
#define _Py_ANNOTATE_RWLOCK_RELEASED(lock, is_write) ((void)0)
#define _Py_atomic_load_ptr_relaxed(p) (*(p))
#define _Py_atomic_store_ptr_relaxed(p, value) ((void)(*(p) = (value)))
#define _Py_atomic_load_int_acquire(p) (*(p))
#define _Py_atomic_store_int_release(p, value) ((void)(*(p) = (value)))
#define _Py_atomic_load_int_relaxed(p) load_int(p)
#define _Py_atomic_store_int_relaxed store_int

static int load_int(const int *p);
static void store_int(int *p, int value);
static int PyMUTEX_INIT(PyMUTEX_T *mutex);
static int PyMUTEX_FINI(PyMUTEX_T *mutex);
static int PyMUTEX_LOCK(PyMUTEX_T *mutex);
static int PyMUTEX_UNLOCK(PyMUTEX_T *mutex);
static int PyCOND_INIT(PyCOND_T *cond);
static int PyCOND_FINI(PyCOND_T *cond);
static int PyCOND_SIGNAL(PyCOND_T *cond);
static int PyCOND_WAIT(PyCOND_T *cond, PyMUTEX_T *mutex);
static int PyCOND_TIMEDWAIT(PyCOND_T *cond, PyMUTEX_T *mutex, long long us);
static void PyThread_hang_thread(void);
static int _PyThreadState_MustExit(PyThreadState *tstate);
static int _PyThreadState_CheckConsistency(PyThreadState *tstate);
static void _Py_set_eval_breaker_bit(PyThreadState *tstate, uintptr_t bit);
static void _Py_unset_eval_breaker_bit(PyThreadState *tstate, uintptr_t bit);
static int _Py_eval_breaker_bit_is_set(PyThreadState *tstate, uintptr_t bit);

static inline PyThreadState *_PyInterpreterState_GetFinalizing(PyInterpreterState *interp)
{
    return interp->finalizing;
}

static inline void update_eval_breaker_for_thread(PyInterpreterState *interp, PyThreadState *tstate)
{
    (void)interp;
    (void)tstate;
}

static PyTime_t now;

static inline int PyTime_MonotonicRaw(PyTime_t *time)
{
    *time = now;
    return 0;
}

#include "gil_under_test.h"

#ifndef FORCE_SWITCHING
#define QUEUE 1
#endif
#ifndef BOUND /* on pre-emptions; forced switching has more operations to take them at */
#ifdef QUEUE
#define BOUND 2
#else
#define BOUND 1
#endif
#endif
#ifdef FL_AB
#define COMPUTES(thread) (states[thread].gil_preemptions > MAX_PREEMPTIONS)
#define DROP_IMPL(tstate) drop_gil_impl(tstate, &gil, 0, 0)
#else
#define COMPUTES(thread) false
#ifdef QUEUE
#define DROP_IMPL(tstate) drop_gil_impl(tstate, &gil, 0)
#else
#define DROP_IMPL(tstate) drop_gil_impl(tstate, &gil)
#endif
#endif

static struct _gil_runtime_state gil;
static PyInterpreterState interp;
static _PyThreadStateImpl states[MODEL_THREADS];

static struct {
    PyCOND_T *cond; /* it waits on this, since it has been woken so often */
    uint32_t wakes;
    bool timed, awake;
    bool withheld;  /* its timer fires when the GIL has another holder, or another request */
    int timeouts;
    int arrival;    /* in the queue; 0: not in it */
    uint32_t asked; /* to drop the GIL, or told that no other thread is left */
    bool freed, ended;
    jmp_buf exit;
} threads[MODEL_THREADS];
static int holder; /* -1: none, or one to which the GIL was handed over and that has not woken up */
static int arrivals;

static int number(const PyThreadState *tstate)
{
    return (int)((const _PyThreadStateImpl *)tstate - states);
}

static bool under_mutex(void)
{
    return gil.mutex.held && gil.mutex.owner == model_self();
}

static int load_int(const int *p)
{
    if (!under_mutex()) {
        fl_model_point();
    }
    return *p;
}

/* A timer that was withheld fires: there is something to ask for. */
static void rearm(void)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        if (threads[thread].withheld) {
            threads[thread].withheld = false;
            fl_unpark(&threads[thread].cond->wakes);
        }
    }
}

static void store_int(int *p, int value)
{
    int self = model_self();
    if (p == &gil.locked) {
        MODEL_CHECK(under_mutex());
        if (value && holder != -1) {
            model_fail("two threads have the GIL");
        }
        for (int other = 0; value && *p && other < MODEL_THREADS; other++) { /* a hand-over */
            if (threads[other].arrival != 0 && threads[other].arrival < threads[self].arrival &&
                COMPUTES(other) == COMPUTES(self)) {
                model_fail("a waiter was passed by a hand-over");
            }
        }
        threads[self].arrival = 0;
        holder = value ? self : -1;
    }
    *p = value;
    if (p == &gil.locked && value) {
        rearm();
    }
}

static int PyMUTEX_INIT(PyMUTEX_T *mutex)
{
    *mutex = (PyMUTEX_T){0, -1};
    return 0;
}

static int PyMUTEX_FINI(PyMUTEX_T *mutex)
{
    return (int)mutex->held;
}

static int PyMUTEX_LOCK(PyMUTEX_T *mutex)
{
    fl_model_point();
    while (mutex->held) {
        fl_park(&mutex->held, 1, FL_FOREVER);
    }
    *mutex = (PyMUTEX_T){1, model_self()};
    return 0;
}

#ifdef QUEUE
static bool sleeps_on(const PyCOND_T *cond, int *thread)
{
    for (*thread = 0; *thread < MODEL_THREADS; ++*thread) {
        if (threads[*thread].cond == cond) {
            return !threads[*thread].awake && threads[*thread].wakes == cond->wakes;
        }
    }
    return false;
}
#endif

static void check_queue(void)
{
#ifdef QUEUE
    int thread;
    bool sleeps = gil.first_waiter != NULL && sleeps_on(&gil.first_waiter->cond, &thread);
    if (sleeps && !gil.locked) {
        model_fail("the GIL is free, and the first waiter sleeps");
    }
    if (sleeps && holder != -1 && !threads[thread].timed) {
        model_fail("the GIL is held, and no waiter has a timer");
    }
#endif
}

static int PyMUTEX_UNLOCK(PyMUTEX_T *mutex)
{
    MODEL_CHECK(mutex->held && mutex->owner == model_self());
    if (mutex == &gil.mutex) {
        check_queue();
    }
    *mutex = (PyMUTEX_T){0, -1};
    fl_unpark(&mutex->held);
    return 0;
}

static int PyCOND_INIT(PyCOND_T *cond)
{
    *cond = (PyCOND_T){.alive = true};
    if (gil.mutex.held) { /* a waiter's own */
        threads[model_self()].arrival = ++arrivals;
    }
    return 0;
}

static int PyCOND_FINI(PyCOND_T *cond)
{
    cond->alive = false;
    return 0;
}

static int PyCOND_SIGNAL(PyCOND_T *cond)
{
    if (!cond->alive) {
        model_fail("a waiter that is gone is woken");
    }
    cond->wakes++;
    fl_unpark(&cond->wakes);
    return 0;
}

static bool cond_wait(PyCOND_T *cond, PyMUTEX_T *mutex, bool timed)
{
    int self = model_self();
    const PyThreadState *asked = gil.last_holder;
    bool fires = timed && (threads[self].timeouts < TIMEOUTS ||
                           !(asked && asked->eval_breaker & _PY_GIL_DROP_REQUEST_BIT));
    threads[self].cond = cond;
    threads[self].wakes = cond->wakes;
    threads[self].timed = timed;
    threads[self].awake = false;
    threads[self].withheld = timed && !fires;
    PyMUTEX_UNLOCK(mutex);
    fl_park_result result = fl_park(&cond->wakes, threads[self].wakes, fires ? 1 : FL_FOREVER);
    threads[self].awake = true;
    threads[self].withheld = false;
    threads[self].timeouts += result == FL_PARK_TIMED_OUT;
    bool timed_out = timed && cond->wakes == threads[self].wakes;
    PyMUTEX_LOCK(mutex);
    threads[self].cond = NULL;
    return timed_out;
}

static int PyCOND_WAIT(PyCOND_T *cond, PyMUTEX_T *mutex)
{
    cond_wait(cond, mutex, false);
    return 0;
}

static int PyCOND_TIMEDWAIT(PyCOND_T *cond, PyMUTEX_T *mutex, long long us)
{
    PyTime_t until = now + us * 1000;
    bool timed_out = cond_wait(cond, mutex, true);
    if (timed_out && now < until) {
        now = until;
    }
    return timed_out;
}

static void PyThread_hang_thread(void)
{
    threads[model_self()].arrival = 0;
    longjmp(threads[model_self()].exit, 1);
}

/* Reads nothing of a thread state once the runtime finalizes, as in CPython. */
static int _PyThreadState_MustExit(PyThreadState *tstate)
{
    return interp.finalizing != NULL && interp.finalizing != tstate;
}

static int _PyThreadState_CheckConsistency(PyThreadState *tstate)
{
    return !threads[number(tstate)].freed;
}

static void check_not_freed(const PyThreadState *tstate)
{
    if (threads[number(tstate)].freed) {
        model_fail("a freed thread state is used");
    }
}

static void tell(int thread)
{
    threads[thread].asked = 1;
    fl_unpark(&threads[thread].asked);
}

static void _Py_set_eval_breaker_bit(PyThreadState *tstate, uintptr_t bit)
{
    check_not_freed(tstate);
    tstate->eval_breaker |= bit;
    tell(number(tstate));
}

static void _Py_unset_eval_breaker_bit(PyThreadState *tstate, uintptr_t bit)
{
    check_not_freed(tstate);
    tstate->eval_breaker &= ~bit;
    threads[number(tstate)].asked = 0;
}

static int _Py_eval_breaker_bit_is_set(PyThreadState *tstate, uintptr_t bit)
{
    fl_model_point();
    check_not_freed(tstate);
    return (tstate->eval_breaker & bit) != 0;
}

/* The explorer prepares these for fairlead's wait queues, of which there is none here. */
uint64_t fl_fork_thread;

void fl_waitq_forked(void)
{
}

#endif
