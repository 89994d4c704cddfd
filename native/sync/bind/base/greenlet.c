/* The greenlet's ending of a wait: where gevent runs in this thread, its hub runs the others meanwhile.
 *
 * It is a task's wait, by an operation that fairlead.wait._gevent drives: the future of the hub's mailbox
 * switches to the hub and comes back. What gevent throws into a greenlet that waits (GreenletExit, its
 * Timeout) comes out of the operation, which has left the queue by then or given back what it was granted.
 */
#include "sync/bind/base/wait.h"

#include "machine/clock.h"

static PyObject *end_of_wait(PyObject *Py_UNUSED(wrapper), PyObject *Py_UNUSED(item), bool refused)
{
    return PyLong_FromLong(refused ? FL_REFUSAL : 1);
}

/* The adapter, if this thread has a hub and may switch to it; NULL without an exception: it has none. */
static PyObject *find_adapter(void)
{
    PyObject *name = PyUnicode_FromString("gevent.hub"), *gevent = NULL, *adapter = NULL, *here = NULL;
    if (name != NULL) {
        gevent = PyImport_GetModule(name);
    }
    if (gevent != NULL) {
        adapter = PyImport_ImportModule("fairlead.wait._gevent");
    }
    if (adapter != NULL) {
        here = PyObject_CallMethod(adapter, "in_greenlet", NULL);
    }
    if (here != Py_True) {
        Py_CLEAR(adapter);
    }
    Py_XDECREF(here);
    Py_XDECREF(gevent);
    Py_XDECREF(name);
    return adapter;
}

int fl_in_greenlet(void)
{
    PyObject *adapter = find_adapter();
    Py_XDECREF(adapter);
    return adapter != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

PyObject *fl_greenlet_wait(PyObject *operation, int64_t deadline)
{
    PyObject *adapter = PyImport_ImportModule("fairlead.wait._gevent"), *seconds = NULL, *result = NULL;
    if (adapter != NULL) {
        int64_t left = deadline == FL_FOREVER ? 0 : deadline - fl_clock_now();
        seconds = deadline == FL_FOREVER ? Py_NewRef(Py_None)
                                         : PyFloat_FromDouble(left > 0 ? (double)left / 1e9 : 0);
    }
    if (seconds != NULL) {
        result = PyObject_CallMethod(adapter, "wait", "OO", operation, seconds);
    }
    Py_XDECREF(seconds);
    Py_XDECREF(adapter);
    return result;
}

int fl_wait_greenlet(PyObject *what, fl_waitq *waitq, uint32_t wanted, uint64_t owner, int64_t deadline)
{
    int here = fl_in_greenlet();
    if (here <= 0) {
        return here < 0 ? -1 : FL_NO_GREENLET;
    }
    int outcome = -1;
    PyObject *operation = NULL, *result = NULL, *native = PyImport_ImportModule("fairlead._native");
    if (native != NULL) {
        operation = fl_operation_at(fl_state_of(native), what, waitq, wanted, end_of_wait, NULL);
    }
    if (operation != NULL) {
        fl_operation_for(operation, owner);
        result = fl_greenlet_wait(operation, deadline);
    }
    if (result != NULL) {
        outcome = result == Py_None ? 0 : (int)PyLong_AsLong(result);
    }
    Py_XDECREF(result);
    Py_XDECREF(operation);
    Py_XDECREF(native);
    return outcome;
}
