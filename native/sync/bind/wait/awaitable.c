/* What the awaitables that wait for a future are made of: steps as an iterator's, what is thrown into one,
 * and an exception that comes too late for what was done.
 */
#include "sync/bind/wait/awaitable.h"

#include "sync/bind/base/imports.h"

void *fl_awaitable_new(PyTypeObject *type, const fl_awaitable_ops *ops)
{
    fl_awaitable *self = (fl_awaitable *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->ops = ops;
    }
    return self;
}

void fl_awaitable_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, fl_awaitable_dealloc)
    type->tp_clear(op);
    PyObject_GC_Del(op);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

/* The end of a step as an iterator's. */
static PyObject *as_iteration(PySendResult sent, PyObject *result)
{
    if (sent == PYGEN_RETURN) {
        /* a tuple or an exception would be unpacked by PyErr_SetObject */
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
        Py_DECREF(result);
        if (stop != NULL) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
        return NULL;
    }
    return result;
}

bool fl_awaitable_awaits(PyObject *op, PyObject *value, PyObject **result, PySendResult *sent)
{
    fl_awaitable *self = (fl_awaitable *)op;
    *sent = PyIter_Send(self->inner, value, result);
    if (*sent == PYGEN_NEXT) {
        return true;
    }
    Py_CLEAR(self->inner);
    if (*sent == PYGEN_ERROR) {
        *sent = self->ops->raised(op, result);
        return true;
    }
    Py_CLEAR(*result);
    return false;
}

void fl_awaitable_give_up(PyObject *op)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    ((fl_awaitable *)op)->ops->give_up(op);
    PyErr_Restore(type, value, traceback);
}

/* Raises what throw() was called with. */
static void raise_thrown(PyObject *const *args, Py_ssize_t count)
{
    if (PyExceptionInstance_Check(args[0])) {
        PyErr_SetObject((PyObject *)Py_TYPE(args[0]), args[0]);
    } else if (PyExceptionClass_Check(args[0])) {
        PyErr_SetObject(args[0], count > 1 ? args[1] : NULL);
    } else {
        PyErr_SetString(PyExc_TypeError, "throw() takes an exception class or an exception");
    }
}

/* Into *inner (NULL: it awaits nothing). NULL: the exception comes out again, and *inner is gone. */
static PyObject *throw_into(PyObject **inner, PyObject *const *args, Py_ssize_t count)
{
    PyObject *thrower = *inner == NULL ? NULL : PyObject_GetAttrString(*inner, "throw"), *yielded = NULL;
    if (thrower != NULL) {
        yielded = PyObject_Vectorcall(thrower, args, (size_t)count, NULL);
        Py_DECREF(thrower);
    } else {
        PyErr_Clear();
        raise_thrown(args, count);
    }
    if (yielded == NULL) {
        PyObject *type, *value, *traceback; /* an exception that is set while the future goes */
        PyErr_Fetch(&type, &value, &traceback);
        Py_CLEAR(*inner);
        PyErr_Restore(type, value, traceback);
    }
    return yielded;
}

/* False, with an exception, within another step of it. */
static bool begin(fl_awaitable *self)
{
    if (self->busy) {
        PyErr_SetString(PyExc_ValueError, "this awaitable is being awaited at this moment");
        return false;
    }
    return self->busy = true;
}

PySendResult fl_awaitable_step(PyObject *op, PyObject *value, PyObject **result)
{
    fl_awaitable *self = (fl_awaitable *)op;
    PySendResult sent = PYGEN_ERROR;
    *result = NULL;
    FL_BEGIN_CRITICAL(op);
    if (begin(self)) {
        sent = self->ops->step(op, value, result);
        self->busy = false;
    }
    FL_END_CRITICAL();
    return sent;
}

PyObject *fl_awaitable_send(PyObject *op, PyObject *value)
{
    PyObject *result;
    PySendResult sent = fl_awaitable_step(op, value, &result);
    return as_iteration(sent, result);
}

PyObject *fl_awaitable_next(PyObject *op)
{
    return fl_awaitable_send(op, Py_None);
}

PyObject *fl_awaitable_throw(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    fl_awaitable *self = (fl_awaitable *)op;
    PyObject *result = NULL;
    if (count < 1 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "throw() takes 1 to 3 arguments");
        return NULL;
    }
    FL_BEGIN_CRITICAL(op);
    if (begin(self)) {
        result = throw_into(&self->inner, args, count);
        if (result == NULL) { /* else the future will not go yet */
            PySendResult sent = self->ops->raised(op, &result);
            result = as_iteration(sent, result);
        }
        self->busy = false;
    }
    FL_END_CRITICAL();
    return result;
}

PyObject *fl_awaitable_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_awaitable *self = (fl_awaitable *)op;
    bool begun;
    FL_BEGIN_CRITICAL(op);
    begun = begin(self);
    if (begun) {
        Py_CLEAR(self->inner);
        self->ops->give_up(op);
        self->busy = false;
    }
    FL_END_CRITICAL();
    return begun ? Py_NewRef(Py_None) : NULL;
}

/* Whether an exception that ends a wait, which met another all the same, comes again at the next one. */
static bool postpone(fl_state *state, PyObject *error)
{
    PyObject *asked = fl_imported(&state->postponed, "fairlead.wait", "postponed");
    PyObject *answer = asked == NULL ? NULL : PyObject_CallOneArg(asked, error);
    bool postponed = answer == Py_True;
    if (answer == NULL) {
        fl_raise_later(error);
    }
    Py_XDECREF(answer);
    return postponed;
}

bool fl_wait_stands(fl_state *state, fl_waiter *waiter)
{
    PyObject *error = fl_caught(); /* it is not set while the waiter is settled */
    uint32_t granted = FL_GRANTED;
    bool stands =
        waiter->final && !fl_waiter_abandon(waiter, FL_CANCELLED) &&
        fl_cas(&waiter->state, &granted, FL_TAKEN, acq_rel, acquire); /* pairs with fl_mailbox_close */
    stands = stands && postpone(state, error);
    if (stands) {
        Py_DECREF(error);
    } else {
        fl_raise_again(error);
    }
    return stands;
}
