/* What Python's C API lacks, or has in some versions only. */
#include "sync/bind/base/c_api.h"

#include <signal.h>

#include "gil/interpreter/compat.h"
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

PyObject *fl_appended(PyObject *list, PyObject *one)
{
    if (one == NULL || PyList_Append(list, one) < 0) {
        Py_CLEAR(list);
    }
    Py_XDECREF(one);
    return list;
}

PyObject *fl_caught(void)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return error;
}

void fl_raise_again(PyObject *error)
{
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), error, PyException_GetTraceback(error));
}

bool fl_recall_exception(void)
{
    bool pending = fl_exception_pending();
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), NULL);
    return pending;
}

/* In the main thread, between two instructions of Python. */
static int raise_now(void *error)
{
    fl_raise_again(error);
    return -1;
}

void fl_raise_later(PyObject *where)
{
    PyObject *error = fl_caught();
    bool later = false;
    if (PyErr_GivenExceptionMatches(error, PyExc_Warning)) { /* never a handler's */
    } else if (fl_in_main_thread() && PyInterpreterState_Get() == PyInterpreterState_Main()) {
        later = Py_AddPendingCall(raise_now, Py_NewRef(error)) == 0;
    } else if (!PyErr_GivenExceptionMatches(error, PyExc_Exception)) { /* sent by PyThreadState_SetAsyncExc */
        later = PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), (PyObject *)Py_TYPE(error)) == 1;
    }
    if (later) {
        Py_DECREF(error);
        return;
    }
    fl_raise_again(error);
    PyErr_WriteUnraisable(where);
}
