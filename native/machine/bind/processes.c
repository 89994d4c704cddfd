/* The end of processes: with their descendants, and with their parent. */
#include "sync/bind/base/state.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#include "machine/process.h"

/* A number from `least` on. */
static bool number(PyObject *arg, int least, int *found)
{
    long value = PyLong_AsLong(arg);
    if (value == -1 && PyErr_Occurred()) {
        return false;
    }
    if (value < least || value > INT_MAX) {
        PyErr_Format(PyExc_ValueError, "it must be %d or more, and an int of C", least);
        return false;
    }
    *found = (int)value;
    return true;
}

static PyObject *kill_tree(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int pid;
    if (!number(arg, 2, &pid)) { /* 1 and below are init, groups and all processes */
        return NULL;
    }
    fl_process_kill_tree(pid);
    Py_RETURN_NONE;
}

static PyObject *end_with(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int descriptor;
    if (!number(arg, 0, &descriptor)) {
        return NULL;
    }
    errno = fl_process_end_with(descriptor);
    return errno == 0 ? Py_NewRef(Py_None) : PyErr_SetFromErrno(PyExc_OSError);
}

PyMethodDef fl_process_functions[] = {
    {"kill_tree", kill_tree, METH_O, FL_DOC(module, kill_tree)},
    {"end_with", end_with, METH_O, FL_DOC(module, end_with)},
    {NULL, NULL, 0, NULL},
};
