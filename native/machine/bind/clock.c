/* The monotonic clock, and how late timers may be. */
#include "sync/bind/base/state.h"

#include "machine/clock.h"

FL_DOC(clock_ns_doc, "clock_ns($module, /)",
"Nanoseconds of the system's monotonic clock.\n"
"\n"
"It has an unspecified start, never goes back, and counts alike in all\n"
"threads, interpreters and processes of the machine (CLOCK_MONOTONIC).");

static PyObject *clock_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(fl_clock_now());
}

FL_DOC(timer_slack_ns_doc, "timer_slack_ns($module, /)",
"How many nanoseconds late the kernel may let a timer of this thread be.\n"
"\n"
"0 where the system has no such thing, and for threads of a real-time policy.");

static PyObject *timer_slack_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(fl_timer_slack());
}

FL_DOC(set_timer_slack_ns_doc, "set_timer_slack_ns($module, ns, /)",
"From now on, for this thread and for those that it starts. ValueError: it is\n"
"not from 1 to 1,000,000,000. False: this system has no such thing.");

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

static PyMethodDef clock_methods[] = {
    {"clock_ns", clock_ns, METH_NOARGS, clock_ns_doc},
    {"timer_slack_ns", timer_slack_ns, METH_NOARGS, timer_slack_ns_doc},
    {"set_timer_slack_ns", set_timer_slack_ns, METH_O, set_timer_slack_ns_doc},
    {NULL, NULL, 0, NULL},
};

int fl_clock_exec(PyObject *module)
{
    return PyModule_AddFunctions(module, clock_methods);
}
