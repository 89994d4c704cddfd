/* See future.h. */
#include "sync/bind/wait/future.h"

#include "sync/bind/base/imports.h"

bool fl_future_refused(void)
{
    return PyErr_ExceptionMatches(PyExc_RuntimeError) /* asyncio's and uvloop's */
           || PyErr_ExceptionMatches(PyExc_ValueError); /* gevent's */
}

/* Of a future of asyncio that is not done, a list of its own or a tuple; NULL: none, or the future is another
   library's. */
static PyObject *callbacks_of(fl_state *state, PyObject *future)
{
    PyObject *list = PyObject_GetAttr(future, state->name_callbacks);
    PyErr_Clear();
    if (list == NULL || !PyList_CheckExact(list) || PyList_GET_SIZE(list) == 0) {
        Py_XDECREF(list);
        return NULL;
    }
    if (Py_REFCNT(list) == 1) {
        return list;
    }
    PyObject *copy = PyList_AsTuple(list);
    PyErr_Clear();
    Py_DECREF(list);
    return copy;
}

/* The future is asyncio's and done, and a signal handler has raised as it scheduled its callbacks, by a
   function in Python; it has forgotten them. Those that the loop has not got are scheduled now. */
static void reschedule(fl_state *state, PyObject *future, PyObject *callbacks)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *function = fl_imported(&state->reschedule, "fairlead.wait._asyncio", "reschedule");
    PyObject *done = function == NULL ? NULL : PyObject_CallFunction(function, "OO", future, callbacks);
    if (done == NULL) {
        fl_raise_later(future);
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

int fl_future_complete(fl_state *state, PyObject *future)
{
    PyObject *callbacks = callbacks_of(state, future);
    int was_done = 0;
    if (callbacks == NULL) {
        PyObject *done = PyObject_CallMethodNoArgs(future, state->name_done);
        was_done = done == NULL ? -1 : PyObject_IsTrue(done);
        Py_XDECREF(done);
    }
    if (was_done == 0) {
        PyObject *set = PyObject_CallMethodOneArg(future, state->name_set_result, Py_None);
        was_done = set == NULL ? -1 : 0;
        if (set == NULL && callbacks != NULL && !fl_future_refused()) {
            reschedule(state, future, callbacks);
        }
        Py_XDECREF(set);
    }
    Py_XDECREF(callbacks);
    return was_done;
}

void fl_future_complete_again(fl_state *state, PyObject *future)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (fl_future_complete(state, future) < 0) {
        fl_raise_later(future);
    }
    PyErr_Restore(type, value, traceback);
    fl_raise_later(future); /* last: it is raised in the next call of Python */
}
