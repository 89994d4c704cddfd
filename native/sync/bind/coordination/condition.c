/* ConditionQueue: what a Condition's waiters wait for, with the thread's whole wait in one call, so that no
 * signal handler runs between its steps. The task's is a coroutine in fairlead.sync._condition.
 */
#include "sync/bind/base/wait.h"

#include <stdlib.h>

#include "sync/coordination/condition.h"

/* Either kind of lock, while it is let go. */
typedef struct {
    PyObject *lock;
    bool recursive;
    fl_rlock_hold hold;
    bool lost;  /* it was let go, and is to be taken again */
    bool woken; /* by a notification: once the lock is there, the next is to be woken */
} loan;

/* 0: let go; -1: an exception, and nothing has changed. The caller holds it. */
static int let_go(loan *lent)
{
    if (lent->recursive) {
        lent->hold = fl_rlock_save(lent->lock);
    } else if (fl_permits_give(fl_wrapper_waitq(lent->lock), 1) != FL_SEM_OK) {
        fl_raise(fl_wrapper_state(lent->lock), NotHeldError, "cannot wait on un-acquired lock");
        return -1;
    }
    return 0;
}

/* -1: an exception of a signal handler. It is held in any case. */
static int take_again(loan *lent)
{
    if (lent->recursive) {
        return fl_rlock_restore(lent->lock, lent->hold);
    }
    return fl_wait_thread_always(lent->lock, fl_wrapper_waitq(lent->lock), fl_owner_thread());
}

/* What a wait is not to begin with; 0, or -1 with an exception set. */
static int check(fl_state *state, loan *lent)
{
    PyObject *task = fl_task_here(state);
    if (task != NULL) {
        Py_DECREF(task);
        fl_raise(state, DeadlockError,
                 "a task that waits in its loop's thread stops all that could hand it the "
                 "lock again; await wait_async()");
        return -1;
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    int held =
        lent->recursive ? fl_rlock_is_mine(lent->lock) : fl_sem_value(fl_wrapper_waitq(lent->lock)) == 0;
    if (held == 0) {
        fl_raise(state, NotHeldError, "cannot wait on un-acquired lock");
    }
    return held > 0 ? 0 : -1;
}

/* These two queue, let go of the lock, and wait. 1: notified; 0: not within the time; -1: an exception. */
static int wait_as_thread(PyObject *self, fl_waitq *waitq, loan *lent, int64_t deadline)
{
    fl_waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    fl_waiter_init(waiter, waitq, 0, 0);
    waiter->request = self;
    fl_waitq_enter(waiter);
    int notified = -1;
    if (let_go(lent) < 0) {
        fl_waiter_abandon(waiter, FL_CANCELLED);
    } else {
        lent->lost = true;
        notified = deadline > 0 ? fl_wait_in_place(waiter, deadline) : !fl_waitq_leave(waiter, FL_TIMED_OUT);
        lent->woken = notified == 1;
        if (notified == 0) {
            notified = waiter->notified; /* before the time was over; no thread writes to it now */
        }
    }
    free(waiter);
    return notified;
}

static int wait_as_greenlet(PyObject *self, loan *lent, int64_t deadline)
{
    PyObject *operation = fl_operation_new(fl_wrapper_state(self), self, 0, NULL);
    if (operation == NULL || fl_operation_join(operation) < 0 || let_go(lent) < 0) {
        Py_XDECREF(operation); /* which leaves the queue, if it is there */
        return -1;
    }
    lent->lost = true;
    PyObject *result = fl_greenlet_wait(operation, deadline);
    int notified = result == NULL ? -1 : result == Py_True;
    lent->woken = notified == 1;
    Py_XDECREF(result);
    return notified;
}

/* 1: notified; 0: not within the time; -1: an exception. */
static int wait_with(PyObject *self, loan *lent, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    int greenlet = fl_in_greenlet(fl_wrapper_state(self)), notified = -1;
    if (greenlet == 0) {
        notified = wait_as_thread(self, waitq, lent, deadline);
    } else if (greenlet > 0) {
        notified = wait_as_greenlet(self, lent, deadline);
    }
    if (!lent->lost) {
        return -1;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int taken = take_again(lent);
    if (taken == 0) {
        PyErr_Restore(type, value, traceback);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        if (notified == 1) {
            FL_WAKING(fl_condition_give(waitq, 1)); /* it ends without success, and takes no notice along */
        }
    }
    if (lent->woken) {
        FL_WAKING(fl_condition_pass(waitq));
    }
    return taken == 0 ? notified : -1;
}

static PyObject *condition_wait(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    fl_state *state = fl_wrapper_state(self);
    int64_t deadline;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "wait() takes a lock and a timeout");
        return NULL;
    }
    loan lent = {args[0], Py_IS_TYPE(args[0], state->rlock_type), {NULL, 0}, false, false};
    if (!lent.recursive && !Py_IS_TYPE(args[0], state->lock_type)) {
        PyErr_SetString(PyExc_TypeError, "wait() takes a Lock or an RLock");
        return NULL;
    }
    if (fl_deadline_parse(NULL, count > 1 ? args[1] : NULL, &deadline) < 0 || check(state, &lent) < 0) {
        return NULL;
    }
    int notified = wait_with(self, &lent, deadline);
    return notified < 0 ? NULL : PyBool_FromLong(notified);
}

static PyObject *condition_join(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *operation = fl_operation_new(fl_wrapper_state(self), self, 0, NULL);
    if (operation != NULL && fl_operation_join(operation) < 0) {
        Py_CLEAR(operation);
    }
    return operation;
}

static PyObject *condition_notify(PyObject *self, PyObject *number)
{
    int64_t count = fl_whole("n", number, 0, UINT32_MAX, "");
    if (count < 0) {
        return NULL;
    }
    uint32_t woken = 0;
    if (fl_waitq_waiting(fl_wrapper_waitq(self)) > 0) {
        FL_WAKING(woken = fl_condition_give(fl_wrapper_waitq(self), (uint32_t)count));
    }
    return PyLong_FromUnsignedLong(woken);
}

static PyObject *condition_pass(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_condition_pass(fl_wrapper_waitq(self)));
    Py_RETURN_NONE;
}

static PyObject *condition_waiting(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_condition_waiting(fl_wrapper_waitq(self)));
}

static PyObject *condition_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":ConditionQueue", FL_PARAMETERS(ConditionQueue))
               ? fl_wrapper_new(type, fl_condition_new())
               : NULL;
}

PyType_Spec fl_condition_spec = FL_TYPE("fairlead._native.ConditionQueue", fl_wrapper, 0,
    {Py_tp_new, (void *)condition_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    FL_WRAPPER_SLOTS(ConditionQueue, condition_));
