/* Interrupting a thread that runs Python, and keeping one from it for good. */
#include "sync/bind/base/state.h"
#include "machine/atomic.h"

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

#if PY_VERSION_HEX >= 0x030D0000 && !defined(PYPY_VERSION)

/* The beginning of the table that CPython has for debuggers, alike from 3.13 to 3.15. */
typedef struct {
    char cookie[8];
    uint64_t version, free_threaded;
    uint64_t runtime_size, finalizing, head;
    uint64_t interpreter_size, id, next;
} debug_offsets;

PyAPI_DATA(char) _PyRuntime[]; /* the table, and behind it what it tells of */

/* Where the list of interpreters points to this one; NULL: nowhere, or the table is another. */
static PyInterpreterState **find_interpreter(int64_t id)
{
    const debug_offsets *offsets = (const debug_offsets *)(const void *)_PyRuntime;
    if (memcmp(offsets->cookie, "xdebugpy", sizeof offsets->cookie) != 0 ||
        offsets->head >= offsets->runtime_size || offsets->next >= offsets->interpreter_size) {
        return NULL;
    }
    PyInterpreterState **place = (PyInterpreterState **)(void *)(_PyRuntime + offsets->head);
    PyInterpreterState *one = PyInterpreterState_Head();
    while (one != NULL && *place == one && PyInterpreterState_GetID(one) != id) {
        place = (PyInterpreterState **)(void *)((char *)one + offsets->next);
        one = PyInterpreterState_Next(one);
    }
    return one != NULL && *place == one ? place : NULL;
}

#ifndef Py_GIL_DISABLED
/* Of a thread that takes an interpreter's GIL and keeps it, unless that takes too long. */
typedef struct {
    PyInterpreterState *interpreter;
    PyThread_type_lock held, forever; /* released when it has the GIL, and never */
    fl_atomic(bool) settled;          /* it has the GIL, or is not waited for any more */
} keeper;

static void keep(void *arg)
{
    keeper *self = arg;
    PyThreadState *there = PyThreadState_New(self->interpreter);
    if (there == NULL) {
        return;
    }
    PyEval_AcquireThread(there);
    if (!fl_exchange(&self->settled, true, seq_cst)) {
        PyThread_release_lock(self->held);
        PyThread_acquire_lock(self->forever, WAIT_LOCK);
    }
    PyThreadState_Clear(there);
    PyEval_ReleaseThread(there);
    PyThreadState_Delete(there);
}

static bool keep_gil_of(PyInterpreterState *interpreter, PY_TIMEOUT_T microseconds)
{
    keeper *self = PyMem_RawCalloc(1, sizeof *self); /* the program ends: never freed */
    if (self == NULL || (self->held = PyThread_allocate_lock()) == NULL ||
        (self->forever = PyThread_allocate_lock()) == NULL) {
        return false;
    }
    self->interpreter = interpreter;
    PyThread_acquire_lock(self->held, WAIT_LOCK);
    PyThread_acquire_lock(self->forever, WAIT_LOCK);
    if (PyThread_start_new_thread(keep, self) == PYTHREAD_INVALID_THREAD_ID) {
        return false;
    }
    bool held;
    Py_BEGIN_ALLOW_THREADS
    held = PyThread_acquire_lock_timed(self->held, microseconds, 0) == PY_LOCK_ACQUIRED;
    Py_END_ALLOW_THREADS
    return held || fl_exchange(&self->settled, true, seq_cst);
}
#endif

static PyObject *keep_interpreter(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long id;
    double timeout;
    if (!PyArg_ParseTuple(args, "Ld:keep_interpreter", &id, &timeout)) {
        return NULL;
    }
    PyInterpreterState **place = find_interpreter(id);
#ifndef Py_GIL_DISABLED
    if (place != NULL) {
        if (!keep_gil_of(*place, timeout < 0 ? -1 : (PY_TIMEOUT_T)(timeout * 1e6))) {
            Py_RETURN_FALSE;
        }
        place = find_interpreter(id);
    }
#endif
    if (place != NULL) {
        *place = PyInterpreterState_Next(*place);
    }
    Py_RETURN_TRUE;
}

#else

static PyObject *keep_interpreter(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    Py_RETURN_FALSE;
}

#endif

PyMethodDef fl_interrupt_functions[] = {
    {"send_exception", send_exception, METH_VARARGS, FL_DOC(module, send_exception)},
    {"recall_exception", recall_exception, METH_NOARGS, FL_DOC(module, recall_exception)},
    {"dropped_hook", dropped_hook, METH_VARARGS, FL_DOC(module, dropped_hook)},
    {"keep_interpreter", keep_interpreter, METH_VARARGS, FL_DOC(module, keep_interpreter)},
    {NULL, NULL, 0, NULL},
};
