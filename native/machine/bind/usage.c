/* CPU time, context switches and memory of this thread, this process and its children. */
#include "sync/bind/base/state.h"

#include <errno.h>

#include "machine/usage.h"

static PyObject *usage_of(PyObject *module, fl_usage_scope scope)
{
    fl_usage usage;
    if (fl_usage_read(scope, &usage) == FL_USAGE_UNSUPPORTED) {
        PyObject *arguments = Py_BuildValue(
            "(is)", ENOTSUP, "this system keeps no accounts per thread; use process_usage()");
        if (arguments != NULL) {
            PyErr_SetObject(PyExc_OSError, arguments);
            Py_DECREF(arguments);
        }
        return NULL;
    }
    PyObject *record = PyStructSequence_New(fl_state_of(module)->usage_type);
    if (record == NULL) {
        return NULL;
    }
    int64_t values[] = {
        usage.user_ns, usage.system_ns, usage.ctx_voluntary, usage.ctx_involuntary, usage.max_rss_kb,
    };
    for (Py_ssize_t i = 0; i < (Py_ssize_t)Py_ARRAY_LENGTH(values); i++) {
        PyStructSequence_SetItem(record, i, PyLong_FromLongLong(values[i]));
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(record);
    }
    return record;
}

static PyObject *thread_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_THREAD);
}

static PyObject *process_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_PROCESS);
}

static PyObject *children_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_CHILDREN);
}

PyMethodDef fl_usage_functions[] = {
    {"thread_usage", thread_usage, METH_NOARGS, FL_DOC(module, thread_usage)},
    {"process_usage", process_usage, METH_NOARGS, FL_DOC(module, process_usage)},
    {"children_usage", children_usage, METH_NOARGS, FL_DOC(module, children_usage)},
    {NULL, NULL, 0, NULL},
};
