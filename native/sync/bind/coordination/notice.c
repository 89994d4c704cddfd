/* Notice: the wait of a task or a greenlet for a condition, as an awaitable without a coroutine; condition.c
 * says how a wait ends.
 */
#include "sync/bind/coordination/condition.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/awaitable.h"

#include "sync/bind/locks/lost.h"

typedef enum { NEW, WAITING, RETAKING, OVER } phase;

typedef struct {
    fl_awaitable awaitable;
    fl_condition_wrapper *condition;
    fl_waiter *waiter;    /* NEW and OVER: NULL */
    fl_lock_hold before;  /* how the lock was held, while it is not */
    PyObject *error;      /* what is raised once the lock is there; or NULL */
    PyObject *predicate;  /* it ends when that is true; NULL: with the first notification */
    phase phase;          /* RETAKING: it was not notified, and waits for the lock */
} notice;

static const fl_awaitable_ops ops;

PyObject *fl_notice_new(PyObject *op, PyObject *predicate)
{
    notice *self = fl_awaitable_new(fl_wrapper_state(op)->notice_type, &ops);
    if (self != NULL) {
        self->condition = (fl_condition_wrapper *)Py_NewRef(op);
        self->predicate = Py_XNewRef(predicate);
    }
    return (PyObject *)self;
}

/* Done with the waiter, which is settled. */
static void forget(notice *self)
{
    fl_waiter *waiter = self->waiter;
    self->waiter = NULL;
    fl_task_waiter_done(waiter);
}

/* A waiter for the condition or its lock, whose future the task is to await; NULL with an exception. */
static fl_waiter *prepare(notice *self, PyObject *what, bool shielded)
{
    PyObject *future, *mailbox;
    fl_mailbox *body;
    uint64_t holder;
    if (self->condition->as->owner(self->condition->part.of, &holder) < 0) {
        return NULL;
    }
    mailbox = fl_await_here(fl_wrapper_state(what), shielded, &self->awaitable.inner, &body, &future);
    if (mailbox == NULL) {
        return NULL;
    }
    fl_waiter *waiter = fl_task_waiter(what, body, fl_wrapper_waitq(what), 1, FL_HOLDER(holder), future);
    if (waiter == NULL) {
        Py_CLEAR(self->awaitable.inner);
    }
    Py_DECREF(future);
    Py_DECREF(mailbox);
    return waiter;
}

/* A coroutine that is closed, or whose loop is, leaves without the lock. */
static void give_up(PyObject *op)
{
    notice *self = (notice *)op;
    bool lost = self->phase == WAITING || self->phase == RETAKING;
    self->phase = OVER;
    if (lost) {
        if (self->waiter != NULL) {
            FL_WAKING(fl_waiter_abandon(self->waiter, FL_CANCELLED)); /* releases the lock, if it has that */
            forget(self);
        }
        fl_lost_note(self->condition->part.of, self->before.depth);
    }
    Py_CLEAR(self->before.task);
    Py_CLEAR(self->error);
}

/* It has the lock: what its wait ends with. */
static PySendResult finish(notice *self, PyObject **result)
{
    bool notified = self->phase == WAITING;
    self->phase = OVER;
    if (self->waiter != NULL) {
        forget(self);
    }
    self->condition->as->hold_again(self->condition->part.of, self->before);
    self->before.task = NULL;
    if (self->error == NULL && self->predicate != NULL) {
        self->phase = NEW;
        return self->awaitable.ops->step((PyObject *)self, Py_None, result);
    }
    if (self->error == NULL) {
        *result = Py_NewRef(Py_True);
        return PYGEN_RETURN;
    }
    if (notified) {
        fl_condition_notify_next(self->condition);
    }
    PyObject *error = self->error;
    self->error = NULL;
    *result = NULL;
    fl_raise_again(error);
    return PYGEN_ERROR;
}

/* Its loop cannot wake it any more. */
static PySendResult fail(notice *self)
{
    fl_awaitable_give_up((PyObject *)self);
    return PYGEN_ERROR;
}

/* 1: the lock is there; 0: not yet; -1: it never comes, with an exception. `over`: the future is done. */
static int look(notice *self, bool over)
{
    uint32_t state = FL_GRANTED;
    if (fl_cas(&self->waiter->state, &state, FL_TAKEN, acq_rel, acquire)) { /* pairs with the grant */
        return 1;
    }
    if (!over && (state == FL_WAITING || state == FL_WOKEN)) {
        return 0;
    }
    fl_raise(fl_wrapper_state((PyObject *)self->condition), LoopClosedError,
             "the event loop of this task was closed, or its future completed by another");
    return -1;
}

/* Awaits another future in the place of one that an exception has ended, which no cancellation ends. 1: the
   lock is there; 0: it waits; -1: an exception. */
static int go_on(notice *self)
{
    fl_state *state = fl_wrapper_state((PyObject *)self->condition);
    fl_mailbox *body;
    PyObject *future, *mailbox = fl_await_here(state, true, &self->awaitable.inner, &body, &future);
    if (mailbox == NULL) {
        return -1;
    }
    PyObject *before = fl_waiter_swap_future(self->waiter, future);
    Py_XDECREF(before);
    Py_DECREF(mailbox);
    return look(self, false); /* or it came while there was no future to complete */
}

/* Queues for the lock. As go_on(). */
static int retake(notice *self)
{
    forget(self);
    self->phase = RETAKING;
    self->waiter = prepare(self, self->condition->part.of, true);
    return self->waiter == NULL ? -1 : fl_waitq_enter(self->waiter);
}

/* With an exception set, which is kept until the lock is there: the last one counts. */
static PySendResult raised(PyObject *op, PyObject **result)
{
    notice *self = (notice *)op;
    if (self->phase == NEW || self->phase == OVER) {
        self->phase = OVER;
        return PYGEN_ERROR;
    }
    Py_XSETREF(self->error, fl_caught());
    /* the mailbox found the future done, and has passed on the lock and the notification */
    bool lost = fl_load(&self->waiter->state, acquire) == FL_CANCELLED; /* pairs with its abandoning */
    bool leaves = self->phase == WAITING && fl_condition_leave(self->waiter);
    int outcome = lost || leaves ? retake(self) : go_on(self);
    if (outcome == 0) {
        return self->awaitable.ops->step(op, Py_None, result);
    }
    Py_CLEAR(self->awaitable.inner);
    return outcome > 0 ? finish(self, result) : fail(self);
}

static PySendResult step(PyObject *op, PyObject *value, PyObject **result)
{
    notice *self = (notice *)op;
    if (self->phase == OVER) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse an awaited wait, call wait_async() again");
        return PYGEN_ERROR;
    }
    if (self->phase == NEW) {
        fl_condition_wrapper *on = self->condition;
        self->phase = OVER;
        if (self->predicate != NULL) {
            int truth = fl_condition_ask(self->predicate, result);
            if (truth != 0) {
                return truth < 0 ? PYGEN_ERROR : PYGEN_RETURN;
            }
            Py_CLEAR(*result);
        }
        if (fl_condition_check_held(on, "cannot wait on un-acquired lock") < 0 ||
            (self->waiter = prepare(self, (PyObject *)on, false)) == NULL) {
            return PYGEN_ERROR;
        }
        if (fl_condition_begin(on, self->waiter, &self->before) < 0) {
            forget(self);
            Py_CLEAR(self->awaitable.inner);
            return PYGEN_ERROR;
        }
        self->phase = WAITING;
        value = Py_None;
    }
    PySendResult sent;
    if (fl_awaitable_awaits(op, value, result, &sent)) {
        return sent;
    }
    return look(self, true) > 0 ? finish(self, result) : fail(self);
}

static const fl_awaitable_ops ops = {.step = step, .raised = raised, .give_up = give_up};

static int notice_traverse(PyObject *op, visitproc visit, void *arg)
{
    notice *self = (notice *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->awaitable.inner);
    Py_VISIT(self->condition);
    Py_VISIT(self->before.task);
    Py_VISIT(self->error);
    Py_VISIT(self->predicate);
    if (self->waiter != NULL) {
        PyObject *future = fl_load(&self->waiter->payload, relaxed); /* no thread of Python runs meanwhile */
        Py_VISIT(future);
    }
    return 0;
}

static int notice_clear(PyObject *op)
{
    fl_awaitable_give_up(op);
    Py_CLEAR(((notice *)op)->awaitable.inner);
    Py_CLEAR(((notice *)op)->condition);
    Py_CLEAR(((notice *)op)->predicate);
    return 0;
}

PyType_Spec fl_notice_spec = FL_TYPE("fairlead.wait.Notice", notice,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    FL_AWAITABLE_SLOTS,
    {Py_tp_traverse, (void *)notice_traverse},
    {Py_tp_clear, (void *)notice_clear},
    {Py_tp_dealloc, (void *)fl_awaitable_dealloc},
    FL_SLOTS(Notice, fl_awaitable_));

