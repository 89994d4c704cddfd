/* Condition: its whole wait in one call, or in one awaitable (notice.c), so that no signal handler runs
 * between its steps.
 *
 * The wait ends with the lock, whatever ends it: a waiter that was notified is served by the lock's queue
 * (sync/coordination/condition.h); one that was not leaves, and takes the lock again. An exception that comes
 * before that waits until the lock is taken; if the waiter was notified, it notifies the next one. Only a
 * coroutine that is closed cannot wait for the lock: it leaves without it (sync/bind/locks/lost.h).
 */
#include "sync/bind/coordination/condition.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/operation.h"

#include "machine/clock.h"

int fl_condition_check_held(fl_condition_wrapper *self, const char *refusal)
{
    int held = self->as->is_held(self->part.of);
    if (held == 0) {
        fl_raise(fl_wrapper_state((PyObject *)self), NotHeldError, refusal);
    }
    return held > 0 ? 0 : -1;
}

int fl_condition_begin(fl_condition_wrapper *self, fl_waiter *waiter, fl_lock_hold *before)
{
    waiter->request_moved = self->part.of;
    waiter->since = fl_sem_resumed(fl_condition_lock_queue(self));
    fl_waitq_enter(waiter);
    if (self->as->let_go(self->part.of, before) < 0) {
        fl_condition_leave(waiter);
        return -1;
    }
    return 0;
}

int fl_condition_ask(PyObject *predicate, PyObject **result)
{
    *result = PyObject_CallNoArgs(predicate);
    int truth = *result == NULL ? -1 : PyObject_IsTrue(*result);
    if (truth < 0) {
        Py_CLEAR(*result);
    }
    return truth;
}

/* In a thread. 1: notified; 0: not within the time; -1: an exception. It is held in any case. */
static int wait_in_thread(fl_condition_wrapper *self, int64_t deadline)
{
    fl_lock_hold before;
    const fl_stake stake = FL_HOLDER(fl_owner_thread());
    fl_waiter *waiter = fl_waiter_for((PyObject *)self, self->part.wrapper.waitq, 1, stake);
    if (waiter == NULL || fl_condition_begin(self, waiter, &before) < 0) {
        if (waiter != NULL) {
            fl_thread_waiter_done(waiter);
        }
        return -1;
    }
    PyObject *error = NULL; /* of signal handlers: the last one */
    bool left = deadline == 0 && fl_waitq_leave(waiter, FL_TIMED_OUT);
    int outcome = left ? 0 : FL_AGAIN, looks = 0;
    while (!left && outcome != 1) {
        outcome = fl_sleep(waiter, deadline, &looks);
        left = outcome == 0;
        if (outcome < 0) {
            Py_XSETREF(error, fl_caught());
            left = fl_condition_leave(waiter);
        }
    }
    fl_thread_waiter_done(waiter);
    int failed = left ? fl_wait_thread_always(self->part.of, fl_condition_lock_queue(self), stake) : 0;
    self->as->hold_again(self->part.of, before);
    if (error != NULL && !left) {
        fl_condition_notify_next(self);
    }
    if (error != NULL && failed == 0) {
        fl_raise_again(error);
        return -1;
    }
    Py_XDECREF(error);
    return failed < 0 ? -1 : !left;
}

/* In a thread or a greenlet, as wait_in_thread(). */
static int wait_within(fl_condition_wrapper *self, int64_t deadline)
{
    fl_state *state = fl_wrapper_state((PyObject *)self);
    int greenlet = fl_in_greenlet(state);
    if (greenlet > 0) {
        PyObject *result = fl_greenlet_wait(fl_notice_new((PyObject *)self, NULL), deadline);
        int notified = result == NULL ? -1 : result == Py_True;
        Py_XDECREF(result);
        return notified;
    }
    bool may = greenlet == 0 && fl_refuse_to_block(state) == 0 &&
               fl_condition_check_held(self, "cannot wait on un-acquired lock") == 0;
    return may ? wait_in_thread(self, deadline) : -1;
}

static PyObject *condition_wait(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return fl_truth(wait_within((fl_condition_wrapper *)op, deadline));
}

static PyObject *condition_wait_for(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"!predicate", "timeout", NULL};
    PyObject *values[2], *result;
    int64_t deadline;
    if (fl_arguments("wait_for", names, args, count, kwnames, values) < 0 ||
        fl_deadline_parse(NULL, values[1], &deadline) < 0) {
        return NULL;
    }
    while (fl_condition_ask(values[0], &result) == 0 &&
           (deadline == FL_FOREVER || (deadline != 0 && fl_clock_now() < deadline))) {
        Py_DECREF(result);
        if (wait_within((fl_condition_wrapper *)op, deadline) < 0) {
            return NULL;
        }
    }
    return result;
}

static PyObject *condition_wait_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_notice_new(op, NULL);
}

static PyObject *condition_wait_for_async(PyObject *op, PyObject *predicate)
{
    return fl_notice_new(op, predicate);
}

static PyObject *condition_notify(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"n", NULL};
    PyObject *number;
    int64_t most = 1;
    if (fl_arguments("notify", names, args, count, kwnames, &number) < 0 ||
        (number != NULL && (most = fl_whole("n", number, 0, UINT32_MAX, "")) < 0) ||
        fl_condition_check_held((fl_condition_wrapper *)op, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    if (fl_waitq_waiting(fl_wrapper_waitq(op)) > 0) {
        FL_WAKING(fl_condition_give(fl_wrapper_waitq(op), (uint32_t)most));
    }
    Py_RETURN_NONE;
}

static PyObject *condition_notify_all(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (fl_condition_check_held((fl_condition_wrapper *)op, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    FL_WAKING(fl_condition_give(fl_wrapper_waitq(op), UINT32_MAX));
    Py_RETURN_NONE;
}

/* What it does as its lock does. */
#define AS_THE_LOCK(name)                                                                                   \
    static PyObject *condition_##name(PyObject *op, PyObject *ignored)                                     \
    {                                                                                                      \
        fl_condition_wrapper *self = (fl_condition_wrapper *)op;                                           \
        return self->as->name(self->part.of, ignored);                                                     \
    }
AS_THE_LOCK(enter)
AS_THE_LOCK(aenter)
AS_THE_LOCK(release)
AS_THE_LOCK(locked)
AS_THE_LOCK(acquire_async)

static PyObject *condition_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return condition_release(op, NULL);
}

static PyObject *condition_aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    PyObject *released = condition_release(op, NULL);
    Py_XDECREF(released);
    return released == NULL ? NULL : fl_operation_done(fl_wrapper_state(op));
}

static PyObject *condition_acquire(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    fl_condition_wrapper *self = (fl_condition_wrapper *)op;
    return self->as->acquire(self->part.of, args, count, kwnames);
}

static PyObject *condition_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_condition_wrapper *self = (fl_condition_wrapper *)op;
    PyObject *record = PyStructSequence_New(fl_wrapper_state(op)->condition_statistics);
    if (record != NULL) {
        PyObject *waiting = PyLong_FromUnsignedLong(fl_waitq_waiting(fl_wrapper_waitq(op)));
        PyObject *lock = self->as->statistics(self->part.of, NULL);
        PyStructSequence_SetItem(record, 0, waiting);
        PyStructSequence_SetItem(record, 1, lock);
        if (waiting == NULL || lock == NULL) {
            Py_CLEAR(record);
        }
    }
    return record;
}

static PyObject *get_lock(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((fl_part *)op)->of);
}

static PyObject *repr(PyObject *op)
{
    fl_condition_wrapper *self = (fl_condition_wrapper *)op;
    unsigned waiting = fl_waitq_waiting(fl_wrapper_waitq(op));
    return PyUnicode_FromFormat("<fairlead.sync.Condition %R, %u waiting>", self->part.of, waiting);
}

/* Steals the reference to the queue. */
static PyObject *with_lock(PyTypeObject *type, PyObject *lock, fl_waitq *waitq)
{
    fl_condition_wrapper *self = (fl_condition_wrapper *)fl_wrapper_new(type, waitq);
    if (self != NULL) {
        self->part.of = Py_NewRef(lock);
        bool again = Py_IS_TYPE(lock, fl_wrapper_state(lock)->rlock_type);
        self->as = again ? &fl_rlock_as_lock : &fl_lock_as_lock;
    }
    return (PyObject *)self;
}

static PyObject *condition_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *lock = Py_None;
    int fair = 0;
    fl_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$p:Condition", FL_PARAMETERS(Condition), &lock,
                                     &fair)) {
        return NULL;
    }
    if (lock != Py_None && fair) {
        PyErr_SetString(PyExc_ValueError,
                        "fair is for a lock that the Condition makes itself: make your lock with fair=True");
        return NULL;
    }
    if (lock != Py_None && !Py_IS_TYPE(lock, state->rlock_type) && !Py_IS_TYPE(lock, state->lock_type)) {
        PyErr_Format(PyExc_TypeError,
                     "a Condition takes a Lock or an RLock of fairlead.sync, not a %s: a lock of another "
                     "library cannot wake tasks",
                     Py_TYPE(lock)->tp_name);
        return NULL;
    }
    if (lock != Py_None && fl_wrapper_waitq(lock)->flags & FL_WAITQ_BREAKS) {
        return fl_raise(state, UsageError,
                        "a Condition must be able to acquire its lock again: it takes no lock that breaks");
    }
    uint32_t flags = FL_WAITQ_OWNED | (fair ? FL_WAITQ_FAIR : 0);
    PyObject *made = lock != Py_None ? Py_NewRef(lock)
                                     : fl_wrapper_new(state->rlock_type, fl_sem_new(1, 1, flags));
    PyObject *self = made == NULL ? NULL : with_lock(type, made, fl_condition_new(fl_wrapper_waitq(made)));
    Py_XDECREF(made);
    return self;
}

PyObject *fl_condition_with(PyObject *lock, fl_waitq *waitq)
{
    return with_lock(fl_wrapper_state(lock)->condition_type, lock, waitq);
}

static PyGetSetDef getters[] = {
    {"_lock", get_lock, NULL, "The lock.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_condition_spec = FL_TYPE("fairlead.sync.Condition", fl_condition_wrapper, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)condition_new},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_PART_SLOTS(Condition, condition_));
