/* awaitable: what the awaitables that wait for a future are made of. */
#pragma once

#include "sync/bind/base/state.h"
#include "sync/wait/waitq.h"

/* What every awaitable that waits begins with. One step of it is taken at a time. */
typedef struct {
    PyObject_HEAD
    const struct fl_awaitable_ops *ops;
    PyObject *inner; /* the iterator of the future that is awaited */
    bool busy;       /* a step of it runs: what that calls may not take another */
} fl_awaitable;

typedef struct fl_awaitable_ops {
    PySendResult (*step)(PyObject *op, PyObject *value, PyObject **result);
    /* With an exception set, which ends the wait; PYGEN_ERROR: it is set still. */
    PySendResult (*raised)(PyObject *op, PyObject **result);
    void (*give_up)(PyObject *op);
} fl_awaitable_ops;

/* A new one, of whose fields all others are zero; NULL with an exception. The end of one that its tp_clear
   leaves nothing of. */
void *fl_awaitable_new(PyTypeObject *type, const fl_awaitable_ops *ops);
void fl_awaitable_dealloc(PyObject *op);

/* Its methods send, throw and close, and its type's slots for awaiting. */
PyObject *fl_awaitable_send(PyObject *op, PyObject *value);
PyObject *fl_awaitable_throw(PyObject *op, PyObject *const *args, Py_ssize_t count);
PyObject *fl_awaitable_close(PyObject *op, PyObject *ignored);
PySendResult fl_awaitable_step(PyObject *op, PyObject *value, PyObject **result);
PyObject *fl_awaitable_next(PyObject *op);
/* A step of the future that is awaited. True: it ends this step, with *sent; false: the future is done. */
bool fl_awaitable_awaits(PyObject *op, PyObject *value, PyObject **result, PySendResult *sent);
/* Its give_up, while an exception may be on its way. */
void fl_awaitable_give_up(PyObject *op);
#define FL_AWAITABLE_SLOTS                                                                                  \
    {Py_am_await, (void *)PyObject_SelfIter}, {Py_am_send, (void *)fl_awaitable_step},                     \
        {Py_tp_iter, (void *)PyObject_SelfIter}, {Py_tp_iternext, (void *)fl_awaitable_next}

/* With an exception set, which ends the wait of a task's waiter: whether that was granted what is final, so
   that it stands, and the exception has been put off. If not it is set still, and the waiter is to be given
   up. */
bool fl_wait_stands(fl_state *state, fl_waiter *waiter);
