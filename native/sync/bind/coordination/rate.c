/* RateLimiter: the rate in core, with its clock or one that stands still. */
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include <math.h>

#include "sync/coordination/rate.h"

#define BURST ", the burst: more never gather"

static int64_t plus(int64_t date, int64_t wait)
{
    return wait < FL_FOREVER - date ? date + wait : FL_FOREVER;
}

/* 1: taken; 0: not within the time, and this is known; -1: an exception. */
static int take(PyObject *self, uint32_t wanted, int64_t wait)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    if (fl_rate_try(waitq, wanted)) {
        return 1;
    }
    if (wait == 0) {
        return 0;
    }
    /* where its clock stands still a time-out is of that time, and a waiter is served before it is over */
    int64_t latest = plus(fl_rate_now(waitq), wait), deadline = fl_rate_stands(waitq) ? FL_FOREVER : latest;
    int outcome = fl_in_greenlet(fl_wrapper_state(self));
    if (outcome < 0) {
        return -1;
    }
    if (outcome > 0) {
        bool late = plus(fl_rate_now(waitq), fl_rate_delay(waitq, wanted)) > latest;
        return late ? 0 : fl_wait_greenlet(self, waitq, wanted, (fl_stake){0}, deadline);
    }
    fl_waiter *waiter = fl_waiter_for(self, waitq, wanted, (fl_stake){0});
    if (waiter == NULL) {
        return -1;
    }
    waiter->look = latest;
    outcome = fl_waitq_enter(waiter) ? 1 : fl_wait_in_place(fl_wrapper_state(self), waiter, deadline);
    fl_thread_waiter_done(waiter);
    return outcome == FL_REFUSAL ? 0 : outcome;
}

static PyObject *rate_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t wait = FL_FOREVER, wanted = 1;
    if (count > 0 || kwnames != NULL) {
        static const char *const names[] = {"blocking", "timeout", "n", NULL};
        PyObject *values[3];
        if (fl_arguments("acquire", names, args, count, kwnames, values) < 0 ||
            fl_wait_parse(values[0], values[1], &wait) < 0 ||
            (wanted = fl_permits_parse(fl_wrapper_waitq(self), values[2], BURST)) < 0) {
            return NULL;
        }
    }
    return fl_truth(take(self, (uint32_t)wanted, wait));
}

static PyObject *rate_acquire_async(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                    PyObject *kwnames)
{
    int64_t wanted =
        fl_permits_argument("acquire_async", fl_wrapper_waitq(self), args, count, kwnames, BURST);
    return wanted < 0 ? NULL : fl_operation_new(fl_wrapper_state(self), self, (uint32_t)wanted, NULL);
}

static PyObject *rate_delay(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t wanted = fl_permits_argument("delay", fl_wrapper_waitq(self), args, count, kwnames, BURST);
    if (wanted < 0) {
        return NULL;
    }
    int64_t wait = fl_rate_delay(fl_wrapper_waitq(self), (uint32_t)wanted);
    return PyFloat_FromDouble(wait == FL_FOREVER ? (double)INFINITY : (double)wait / 1e9);
}

static PyObject *rate_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)fl_rate_available(waitq), (long)waitq->limit, (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(self)->rate_statistics, values, 3, 0);
}

static PyObject *repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return fl_wrapper_repr(self, "%u of %u available, one each %lld ns", (unsigned)fl_rate_available(waitq),
                           (unsigned)waitq->limit, (long long)((fl_rate *)(void *)waitq)->interval);
}

static PyObject *rate_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_truth(take(self, 1, FL_FOREVER));
}

static PyObject *rate_exit(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                           Py_ssize_t Py_UNUSED(count))
{
    Py_RETURN_NONE;
}

static PyObject *rate_aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 1, NULL);
}

static PyObject *rate_aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return fl_operation_done(fl_wrapper_state(self));
}

static PyObject *rate_set(PyObject *self, PyObject *number)
{
    long long now = PyLong_AsLongLong(number);
    if (now == -1 && PyErr_Occurred()) {
        return NULL;
    }
    FL_WAKING(fl_rate_set(fl_wrapper_waitq(self), now));
    Py_RETURN_NONE;
}

static PyObject *rate_next(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t date = fl_rate_next(fl_wrapper_waitq(self));
    if (date == FL_FOREVER) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLongLong(date);
}

/* Nanoseconds from one permit to the next; -1 with an exception set. */
static int64_t parse_interval(double rate, double per, int64_t burst)
{
    if (!(rate > 0 && per > 0 && isfinite(rate) && isfinite(per))) {
        PyErr_SetString(PyExc_ValueError, "rate and per must be more than 0, and finite");
        return -1;
    }
    double interval = ceil(per * 1e9 / rate);
    if (interval * (double)burst > (double)FL_RATE_LONGEST) {
        PyErr_SetString(PyExc_ValueError, "that many permits at that rate come in more than 36 years");
        return -1;
    }
    return (int64_t)interval;
}

static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    double rate, per = 1;
    int64_t burst = 1;
    PyObject *number = NULL, *clock = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "d|d$OO:RateLimiter", FL_PARAMETERS(RateLimiter), &rate,
                                     &per, &number, &clock) ||
        (number != NULL && (burst = fl_whole("burst", number, 1, FL_RATE_MOST, "")) < 0)) {
        return NULL;
    }
    int64_t interval = parse_interval(rate, per, burst);
    PyObject *self = interval < 0 ? NULL : fl_wrapper_new(type, fl_rate_new(interval, (uint32_t)burst));
    if (self != NULL && clock != Py_None) {
        PyObject *adopted = PyObject_CallMethod(clock, "_adopt", "O", self);
        if (adopted == NULL) {
            if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
                PyErr_Format(PyExc_TypeError, "clock must be a ManualClock or None, not a %s",
                             Py_TYPE(clock)->tp_name);
            }
            Py_CLEAR(self);
        }
        Py_XDECREF(adopted);
    }
    return self;
}

PyType_Spec fl_rate_spec = FL_TYPE("fairlead.sync.RateLimiter", fl_wrapper, 0,
    {Py_tp_new, (void *)limiter_new},
    {Py_tp_repr, (void *)repr},
    FL_WRAPPER_SLOTS(RateLimiter, rate_));
