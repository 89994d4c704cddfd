/* The awaitable that is done, for what had nothing to wait for: one for all of an interpreter. */
#include "sync/bind/base/wait.h"

static PySendResult done_send(PyObject *op, PyObject *value, PyObject **result)
{
    (void)op, (void)value;
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

static PyObject *done_next(PyObject *op)
{
    (void)op;
    return NULL; /* StopIteration(None) */
}

/* It is part of the module's state, and so of the cycle of module and types. */
static int done_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void done_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyType_Spec fl_done_spec = FL_TYPE("fairlead.wait.Done", PyObject,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_am_await, (void *)PyObject_SelfIter},
    {Py_am_send, (void *)done_send},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)done_next},
    {Py_tp_traverse, (void *)done_traverse},
    {Py_tp_dealloc, (void *)done_dealloc},
    {0, NULL});

PyObject *fl_operation_done(fl_state *state)
{
    return Py_NewRef(state->done);
}
