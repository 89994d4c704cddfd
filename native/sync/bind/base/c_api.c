/* What Python's C API lacks, or has in some versions only. */
#include "sync/bind/base/c_api.h"

#include <signal.h>

#include "machine/atomic.h"

#ifdef PYPY_VERSION
int fl_run_handlers(void)
{
    /* PyPy looks for signals when its counter of instructions is below 0. A signal sets the counter so, and
       another thread, which counts at that moment, sets it back: then the handlers run 10,000 instructions
       later, and a thread that sleeps runs none. This function runs them whatever the counter says. */
    static PyObject *mask, *nothing;
    PyObject *signal = mask != NULL ? NULL : PyImport_ImportModule("_signal");
    if (signal != NULL) {
        mask = PyObject_GetAttrString(signal, "pthread_sigmask");
        Py_DECREF(signal);
    }
    if (mask == NULL || (nothing == NULL && (nothing = Py_BuildValue("(i())", SIG_BLOCK)) == NULL)) {
        return -1;
    }
    PyObject *result = PyObject_CallObject(mask, nothing);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

PySendResult fl_iterator_send(PyObject *iterator, PyObject *value, PyObject **result)
{
    *result = value == Py_None ? PyObject_CallMethod(iterator, "__next__", NULL)
                               : PyObject_CallMethod(iterator, "send", "O", value);
    if (*result != NULL) {
        return PYGEN_NEXT;
    }
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) {
        return PYGEN_ERROR;
    }
    PyObject *type, *stop, *traceback;
    PyErr_Fetch(&type, &stop, &traceback);
    PyErr_NormalizeException(&type, &stop, &traceback);
    *result = PyObject_GetAttrString(stop, "value");
    Py_XDECREF(type);
    Py_XDECREF(stop);
    Py_XDECREF(traceback);
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}
#endif

PyObject *fl_refuse_copy(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyErr_Format(PyExc_TypeError, "cannot copy a %s: pass on the object itself", Py_TYPE(self)->tp_name);
    return NULL;
}

PyObject *fl_record(PyTypeObject *type, const long *values, int count, int booleans)
{
    PyObject *record = PyStructSequence_New(type);
    for (int i = 0; record != NULL && i < count; i++) {
        PyObject *value = booleans >> i & 1 ? PyBool_FromLong(values[i]) : PyLong_FromLong(values[i]);
        if (value == NULL) {
            Py_CLEAR(record);
        } else {
            PyStructSequence_SetItem(record, i, value);
        }
    }
    return record;
}

PyObject *fl_dict_get(PyObject *dict, PyObject *key)
{
    PyObject *found;
#if PY_VERSION_HEX >= 0x030D0000
    PyDict_GetItemRef(dict, key, &found);
#else
    found = Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
    return found;
}

void fl_keep_last(PyObject **type, PyObject **value, PyObject **traceback)
{
    Py_XDECREF(*type);
    Py_XDECREF(*value);
    Py_XDECREF(*traceback);
    PyErr_Fetch(type, value, traceback);
}

/* In the main thread, between two instructions of Python. */
static int raise_now(void *error)
{
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), error);
    Py_DECREF((PyObject *)error);
    return -1;
}

void fl_raise_later(PyObject *where)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    bool later = false;
    if (PyErr_GivenExceptionMatches(type, PyExc_Warning)) { /* never a handler's */
    } else if (fl_in_main_thread() && PyInterpreterState_Get() == PyInterpreterState_Main()) {
        if (traceback != NULL) {
            PyException_SetTraceback(error, traceback);
        }
        later = Py_AddPendingCall(raise_now, Py_NewRef(error)) == 0;
    } else if (!PyErr_GivenExceptionMatches(type, PyExc_Exception)) { /* sent by PyThreadState_SetAsyncExc */
        later = PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type) == 1;
    }
    if (later) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    PyErr_Restore(type, error, traceback);
    PyErr_WriteUnraisable(where);
}
