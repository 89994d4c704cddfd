/* See queues.h. */
#include "sync/bind/queues/queues.h"
#include "sync/bind/base/arguments.h"

int fl_queue_deadline(PyObject *block, PyObject *timeout, int64_t *deadline)
{
    int blocks = block == NULL ? 1 : PyObject_IsTrue(block);
    if (blocks < 0 || !blocks || timeout == NULL || timeout == Py_None) {
        return blocks < 0 ? -1 : fl_deadline_parse(block, NULL, deadline);
    }
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
        }
        return -1;
    }
    PyObject *number = PyFloat_FromDouble(seconds);
    int parsed = number == NULL ? -1 : fl_deadline_parse(block, number, deadline);
    Py_XDECREF(number);
    return parsed;
}

int fl_queue_arguments(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames,
                       int64_t *deadline)
{
    *deadline = FL_FOREVER;
    if (count == 0 && kwnames == NULL) {
        return 0;
    }
    static const char *const names[] = {"block", "timeout", NULL};
    PyObject *values[2];
    if (fl_arguments(function, names, args, count, kwnames, values) < 0) {
        return -1;
    }
    return fl_queue_deadline(values[0], values[1], deadline);
}
