/* See queues.h. */
#include "sync/bind/queues/queues.h"

int fl_queue_deadline(PyObject *block, PyObject *timeout, int64_t *deadline)
{
    int blocks = block == NULL ? 1 : PyObject_IsTrue(block);
    if (blocks < 0 || fl_deadline_parse(block, blocks ? timeout : NULL, deadline) < 0) {
        return -1;
    }
    if (blocks && *deadline == FL_FOREVER && timeout != NULL && timeout != Py_None) {
        PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
        return -1;
    }
    return 0;
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
