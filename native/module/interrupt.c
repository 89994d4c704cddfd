/* Interrupting a thread that runs Python. */
#include "sync/bind/base/state.h"

static PyObject *send_exception(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long ident;
    PyObject *kind;
    if (!PyArg_ParseTuple(args, "kO:send_exception", &ident, &kind)) {
        return NULL;
    }
    return PyBool_FromLong(PyThreadState_SetAsyncExc(ident, kind));
}

static PyObject *recall_exception(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    return PyBool_FromLong(fl_recall_exception());
}

/* What dropped_hook makes. `self`: the exception to send again, and the hook for all others. In C, because
   in a hook in Python the exception would arrive in the hook. */
static PyObject *send_again(PyObject *self, PyObject *unraisable)
{
    PyObject *kind = PyTuple_GET_ITEM(self, 0);
    PyObject *dropped = PyObject_GetAttrString(unraisable, "exc_type");
    if (dropped == NULL) {
        return NULL;
    }
    Py_DECREF(dropped);
    if (dropped != kind) {
        return PyObject_CallOneArg(PyTuple_GET_ITEM(self, 1), unraisable);
    }
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), kind);
    Py_RETURN_NONE;
}

static PyMethodDef hook_method = {"unraisablehook", send_again, METH_O, NULL};

static PyObject *dropped_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *kind, *otherwise;
    return PyArg_ParseTuple(args, "OO:dropped_hook", &kind, &otherwise) ? PyCFunction_New(&hook_method, args)
                                                                        : NULL;
}

PyMethodDef fl_interrupt_functions[] = {
    {"send_exception", send_exception, METH_VARARGS, FL_DOC(module, send_exception)},
    {"recall_exception", recall_exception, METH_NOARGS, FL_DOC(module, recall_exception)},
    {"dropped_hook", dropped_hook, METH_VARARGS, FL_DOC(module, dropped_hook)},
    {NULL, NULL, 0, NULL},
};
