/* The monotonic clock. */
#include "bind/state.h"

#include "core/clock.h"

PyDoc_STRVAR(clock_ns_doc,
"clock_ns($module, /)\n"
"--\n"
"\n"
"Nanoseconds of the system's monotonic clock.\n"
"\n"
"It has an unspecified start, never goes back, and counts alike in all\n"
"threads, interpreters and processes of the machine (CLOCK_MONOTONIC).");

static PyObject *clock_ns(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(fl_clock_now());
}

static PyMethodDef clock_methods[] = {
    {"clock_ns", clock_ns, METH_NOARGS, clock_ns_doc},
    {NULL, NULL, 0, NULL},
};

int fl_clock_exec(PyObject *module)
{
    return PyModule_AddFunctions(module, clock_methods);
}
