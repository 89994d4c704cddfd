/* CPU time, context switches and memory of this thread, this process and its children. */
#include "sync/bind/base/state.h"

#include <errno.h>

#include "machine/usage.h"

PyDoc_STRVAR(usage_type_doc,
"What the kernel has accounted to a thread or to processes since they began.");

static PyStructSequence_Field usage_fields[] = {
    {"user_ns", "CPU time outside the kernel, in nanoseconds"},
    {"system_ns", "CPU time inside the kernel, in nanoseconds"},
    {"ctx_voluntary", "context switches because it had to wait"},
    {"ctx_involuntary", "context switches because the core was taken away"},
    {"max_rss_kb", "peak resident set in KiB: of the process for a thread, of the largest one for children"},
    {NULL, NULL},
};

static PyStructSequence_Desc usage_desc = {
    .name = "fairlead.machine.Usage",
    .doc = usage_type_doc,
    .fields = usage_fields,
    .n_in_sequence = 5,
};

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

FL_DOC(thread_usage_doc, "thread_usage($module, /)",
"What the calling thread has used.\n"
"\n"
"Raises OSError (ENOTSUP) where the operating system keeps no accounts per thread.");

static PyObject *thread_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_THREAD);
}

FL_DOC(process_usage_doc, "process_usage($module, /)",
"What all threads of this process have used, those that have ended included.");

static PyObject *process_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_PROCESS);
}

FL_DOC(children_usage_doc, "children_usage($module, /)",
"What child processes have used that have ended and been waited for, and theirs.");

static PyObject *children_usage(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return usage_of(module, FL_USAGE_CHILDREN);
}

static PyMethodDef usage_methods[] = {
    {"thread_usage", thread_usage, METH_NOARGS, thread_usage_doc},
    {"process_usage", process_usage, METH_NOARGS, process_usage_doc},
    {"children_usage", children_usage, METH_NOARGS, children_usage_doc},
    {NULL, NULL, 0, NULL},
};

int fl_usage_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->usage_type = PyStructSequence_NewType(&usage_desc);
    if (state->usage_type == NULL || PyModule_AddType(module, state->usage_type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, usage_methods);
}
