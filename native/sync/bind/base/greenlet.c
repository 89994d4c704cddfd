/* The greenlet's ending of a wait: where gevent runs in this thread, its hub runs the others meanwhile.
 *
 * It is a task's wait, by an operation that fairlead.wait._gevent drives: the future of the hub's mailbox
 * switches to the hub and comes back. What gevent throws into a greenlet that waits (GreenletExit, its
 * Timeout) comes out of the operation, which has left the queue by then or given back what it was granted.
 */
#include "sync/bind/base/wait.h"

#include "machine/clock.h"

static PyObject *end_of_wait(PyObject *Py_UNUSED(wrapper), fl_end end)
{
    return PyLong_FromLong(end.refused ? FL_REFUSAL : 1);
}

int fl_in_greenlet(fl_state *state)
{
    PyObject *asked;
    int here = fl_of_adapter(state, &state->in_greenlet, state->name_gevent, "fairlead.wait._gevent",
                             "in_greenlet", &asked);
    if (here > 0) {
        PyObject *answer = PyObject_CallNoArgs(asked);
        here = answer == NULL ? -1 : answer == Py_True;
        Py_XDECREF(answer);
    }
    return here;
}

PyObject *fl_greenlet_wait(PyObject *operation, int64_t deadline)
{
    PyObject *wait = operation == NULL ? NULL
                                       : fl_imported(&fl_wrapper_state(operation)->greenlet_wait,
                                                     "fairlead.wait._gevent", "wait");
    PyObject *result = NULL;
    if (wait != NULL) {
        int64_t left = deadline == FL_FOREVER ? 0 : deadline - fl_clock_now();
        PyObject *seconds = deadline == FL_FOREVER ? Py_NewRef(Py_None)
                                                   : PyFloat_FromDouble(left > 0 ? (double)left / 1e9 : 0);
        result = PyObject_CallFunction(wait, "ON", operation, seconds);
    }
    Py_XDECREF(operation);
    return result;
}

int fl_wait_greenlet(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline)
{
    fl_state *state = fl_wrapper_state(what);
    int here = fl_in_greenlet(state);
    if (here <= 0) {
        return here < 0 ? -1 : FL_NO_GREENLET;
    }
    PyObject *operation = fl_operation_at(state, what, waitq, wanted, end_of_wait, NULL);
    if (operation != NULL) {
        fl_operation_for(operation, stake);
    }
    PyObject *result = fl_greenlet_wait(operation, deadline);
    int outcome = result == NULL ? -1 : result == Py_None ? 0 : (int)PyLong_AsLong(result);
    Py_XDECREF(result);
    return outcome;
}
