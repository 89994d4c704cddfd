/* Interrupting a thread that runs Python. */
#include "sync/bind/base/state.h"

static PyObject *send_exception(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long ident;
    PyObject *kind;
    if (!PyArg_ParseTuple(args, "kO:send_exception", &ident, &kind)) {
        return NULL;
    }
    return PyBool_FromLong(PyThreadState_SetAsyncExc(ident, kind == Py_None ? NULL : kind));
}

PyMethodDef fl_interrupt_functions[] = {
    {"send_exception", send_exception, METH_VARARGS, FL_DOC(module, send_exception)},
    {NULL, NULL, 0, NULL},
};
