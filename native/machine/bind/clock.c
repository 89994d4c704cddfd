/* The monotonic clock, and how late timers may be. */
#include "sync/bind/base/state.h"

#include "machine/clock.h"

static PyObject *clock_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(fl_clock_now());
}

static PyObject *timer_slack_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(fl_timer_slack());
}

static PyObject *set_timer_slack_ns(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long long ns = PyLong_AsLongLong(arg);
    if (ns == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (ns < 1 || ns > 1000000000) {
        PyErr_SetString(PyExc_ValueError, "a timer slack is from 1 ns to a second");
        return NULL;
    }
    return PyBool_FromLong(fl_timer_slack_set(ns));
}

PyMethodDef fl_clock_functions[] = {
    {"clock_ns", clock_ns, METH_NOARGS, FL_DOC(module, clock_ns)},
    {"timer_slack_ns", timer_slack_ns, METH_NOARGS, FL_DOC(module, timer_slack_ns)},
    {"set_timer_slack_ns", set_timer_slack_ns, METH_O, FL_DOC(module, set_timer_slack_ns)},
    {NULL, NULL, 0, NULL},
};
