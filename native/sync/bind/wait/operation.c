/* Operation: one wait of one task, as an awaitable without a coroutine.
 *
 * It takes at once what is there, and is then over in one step. Otherwise it queues a counted waiter, asks
 * the loop's mailbox for a future, and passes every send and throw on to that future's iterator. Whatever
 * ends the wait without a result (a cancellation, close(), the death of the coroutine) settles the waiter: it
 * leaves, or gives back what it was granted.
 */
#include "sync/bind/wait/operation.h"

#include "sync/bind/base/task.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/mailbox.h"

static const fl_awaitable_ops ops;

PyObject *fl_operation_new(fl_state *state, PyObject *wrapper, uint32_t wanted, fl_finish finish)
{
    return fl_operation_at(state, wrapper, fl_wrapper_waitq(wrapper), wanted, finish, NULL);
}

PyObject *fl_operation_at(fl_state *state, PyObject *wrapper, fl_waitq *waitq, uint32_t wanted,
                          fl_finish finish, PyObject *item)
{
    fl_operation *self = fl_awaitable_new(state->operation_type, &ops);
    if (self != NULL) {
        self->wrapper = Py_NewRef(wrapper);
        self->waitq = waitq;
        self->item = Py_XNewRef(item);
        self->finish = finish;
        self->wanted = wanted;
    }
    return (PyObject *)self;
}

void fl_operation_for(PyObject *op, fl_stake stake)
{
    ((fl_operation *)op)->stake = stake;
    ((fl_operation *)op)->staked = true;
}

static fl_stake stake(fl_operation *self)
{
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    bool named = Py_TYPE(self->wrapper) == state->lock_type;
    return fl_operation_stake(self, named ? fl_owner_named(state) : fl_owner_task());
}

PyObject *fl_operation_unless(PyObject *op, fl_refuses refuses)
{
    if (op != NULL) {
        ((fl_operation *)op)->refuses = refuses;
    }
    return op;
}

PyObject *fl_operation_of(fl_state *state, PyObject *wrapper, PyObject *item, uint32_t wanted,
                          fl_attempt attempt, fl_finish finish)
{
    fl_waitq *waitq = fl_wrapper_waitq(wrapper);
    fl_operation *self = (fl_operation *)fl_operation_at(state, wrapper, waitq, wanted, finish, item);
    if (self != NULL) {
        self->attempt = attempt;
    }
    return (PyObject *)self;
}

PyObject *fl_operation_enter(fl_state *state, PyObject *wrapper, PyObject *item, uint32_t wanted,
                             fl_attempt attempt, fl_finish finish)
{
    uint32_t left = wanted;
    int taken = attempt(wrapper, item, &left);
    if (taken != 0) {
        return taken < 0 ? NULL : fl_operation_done(state);
    }
    PyObject *operation = fl_operation_of(state, wrapper, item, left, attempt, finish);
    if (operation != NULL) {
        ((fl_operation *)operation)->attempted = true;
    }
    return operation;
}

fl_handoff *fl_handoff_new(PyObject *object)
{
    fl_handoff *handoff = PyMem_RawMalloc(sizeof *handoff);
    if (handoff == NULL) {
        return (fl_handoff *)PyErr_NoMemory();
    }
    *handoff = (fl_handoff){.object = Py_NewRef(object)};
    return handoff;
}

void fl_handoff_drop(fl_handoff *handoff)
{
    if (handoff != NULL) {
        PyObject *object = handoff->object;
        PyMem_RawFree(handoff);
        Py_DECREF(object);
    }
}

PyObject *fl_operation_meeting(fl_state *state, PyObject *wrapper, fl_meeting_side side, fl_handoff *handoff,
                            fl_finish finish)
{
    fl_operation *self = (fl_operation *)fl_operation_new(state, wrapper, side, finish);
    if (self == NULL) {
        fl_handoff_drop(handoff);
        return NULL;
    }
    self->handoff = handoff;
    fl_operation_for((PyObject *)self, fl_meeting_place(&self->handoff));
    return (PyObject *)self;
}

/* Done with the waiter, which is settled. */
static void drop_waiter(fl_operation *self)
{
    fl_waiter *waiter = self->waiter;
    self->waiter = NULL;
    self->wanted = waiter->wanted;
    if (self->waitq->ops->forget != NULL) {
        self->waitq->ops->forget(waiter); /* its request is the wrapper, which goes with the operation */
    }
    fl_task_waiter_done(waiter);
}

static void give_up(PyObject *op)
{
    fl_operation *self = (fl_operation *)op;
    self->phase = FL_OPERATION_OVER;
    fl_operation_stop_timer(self);
    if (self->waiter != NULL) {
        fl_waiter_abandon(self->waiter, FL_CANCELLED);
        drop_waiter(self);
    }
}

/* The wait leaves, or gives back what it was granted; unless that is final and stands, and the exception has
   been put off. */
static PySendResult raised(PyObject *op, PyObject **result)
{
    fl_operation *self = (fl_operation *)op;
    bool stands = self->waiter != NULL && fl_wait_stands(fl_wrapper_state((PyObject *)self), self->waiter);
    fl_awaitable_give_up(op);
    return stands ? fl_operation_end(self, false, result) : PYGEN_ERROR;
}

PySendResult fl_operation_end(fl_operation *self, bool refused, PyObject **result)
{
    fl_handoff *handoff = self->handoff;
    self->handoff = NULL;
    self->phase = FL_OPERATION_OVER;
    fl_operation_stop_timer(self);
    fl_end end = {handoff != NULL ? handoff->object : self->item, self->wanted, refused};
    *result = self->finish != NULL ? self->finish(self->wrapper, end) : Py_NewRef(Py_True);
    fl_handoff_drop(handoff);
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

bool fl_operation_take(fl_operation *self, fl_stake stake)
{
    fl_waitq *waitq = self->waitq;
    bool taken;
    if (waitq->ops->attempt == NULL) {
        taken = false;
    } else if (waitq->ops->wakes) {
        FL_WAKING(taken = waitq->ops->attempt(waitq, self->wanted, stake));
    } else {
        taken = waitq->ops->attempt(waitq, self->wanted, stake);
    }
    return taken;
}

/* 1: taken; 0: queued; FL_REFUSAL: the wait queue is closed; -1: an exception. Unless queued, nothing is
 * left. */
static int begin(fl_operation *self)
{
    fl_waitq *waitq = self->waitq;
    int taken = fl_operation_is_refused(self) ? FL_REFUSAL
                : self->attempted             ? 0
                : self->attempt != NULL       ? self->attempt(self->wrapper, self->item, &self->wanted)
                                              : fl_operation_take(self, stake(self));
    if (taken) {
        return taken;
    }
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    int outcome = -1;
    fl_mailbox *body;
    PyObject *future, *mailbox = fl_await_here(state, false, &self->awaitable.inner, &body, &future);
    if (mailbox == NULL) {
        return -1;
    }
    self->waiter = fl_task_waiter(self->wrapper, body, waitq, self->wanted, stake(self), future);
    if (self->waiter == NULL) {
        goto done;
    }
    outcome = fl_waitq_enter(self->waiter);
    if (!outcome) {
        fl_operation_is_refused(self);
    }
    if (!outcome && fl_load(&self->waiter->state, acquire) == FL_REFUSED) { /* pairs with fl_waitq_refuse */
        outcome = FL_REFUSAL;
    }
    if (!outcome && fl_waitq_orphaned(waitq)) { /* it is in its mailbox's list by now: see thread_table.h */
        self->waiter->told = true;
        if (fl_holder_ended(self->wrapper, waitq) < 0) {
            fl_waiter_abandon(self->waiter, FL_CANCELLED);
            outcome = -1;
        }
    }
    if (outcome) {
        drop_waiter(self);
    } else {
        self->phase = FL_OPERATION_WAITING;
        if (fl_operation_set_timer(self, mailbox) < 0) {
            give_up((PyObject *)self);
            outcome = -1;
        }
    }
done:
    if (outcome != 0) {
        Py_CLEAR(self->awaitable.inner);
    }
    Py_DECREF(future);
    Py_DECREF(mailbox);
    return outcome;
}

static PySendResult step(PyObject *op, PyObject *value, PyObject **result)
{
    fl_operation *self = (fl_operation *)op;
    if (self->phase == FL_OPERATION_OVER) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse an awaited acquire, call acquire_async() again");
        return PYGEN_ERROR;
    }
    if (self->phase == FL_OPERATION_NEW) {
        int taken = begin(self);
        if (taken != 0) {
            self->phase = FL_OPERATION_OVER;
            return taken < 0 ? PYGEN_ERROR : fl_operation_end(self, taken == FL_REFUSAL, result);
        }
        value = Py_None;
    }
    uint32_t state;
    bool granted;
    for (;;) {
        PySendResult sent;
        if (fl_awaitable_awaits(op, value, result, &sent)) {
            return sent;
        }
        if (self->waiter != NULL && fl_operation_rechecks(self)) {
            fl_operation_stop_timer(self);
            FL_WAKING(fl_waitq_retry(self->waiter));
        }
        state = FL_GRANTED;
        granted = self->waiter != NULL &&
                  fl_cas(&self->waiter->state, &state, FL_TAKEN, acq_rel, acquire); /* pairs with a grant */
        if (granted || self->waiter == NULL || !fl_operation_rechecks(self) ||
            (state != FL_WAITING && state != FL_WOKEN)) {
            break;
        }
        if (fl_operation_await_again(self) < 0) {
            give_up((PyObject *)self);
            return PYGEN_ERROR;
        }
        value = Py_None;
    }
    if (!granted && self->waiter != NULL && state == FL_REFUSED) {
        drop_waiter(self);
        return fl_operation_end(self, true, result);
    }
    if (!granted && (self->waiter == NULL || state != FL_DONE)) {
        give_up((PyObject *)self);
        fl_raise(fl_wrapper_state((PyObject *)self), LoopClosedError,
                 "the event loop of this task was closed, or its future completed by another");
        return PYGEN_ERROR;
    }
    drop_waiter(self);
    return fl_operation_end(self, false, result);
}

static const fl_awaitable_ops ops = {.step = step, .raised = raised, .give_up = give_up};

static int operation_traverse(PyObject *op, visitproc visit, void *arg)
{
    fl_operation *self = (fl_operation *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->wrapper);
    Py_VISIT(self->awaitable.inner);
    Py_VISIT(self->item);
    Py_VISIT(self->timer);
    if (self->handoff != NULL) {
        Py_VISIT((PyObject *)self->handoff->object);
    }
    if (self->waiter != NULL) {
        PyObject *future = fl_load(&self->waiter->payload, relaxed); /* no thread of Python runs meanwhile */
        Py_VISIT(future);
    }
    return 0;
}

static void drop_handoff(fl_operation *self)
{
    fl_handoff *handoff = self->handoff;
    self->handoff = NULL;
    fl_handoff_drop(handoff);
}

static int operation_clear(PyObject *op)
{
    fl_operation *self = (fl_operation *)op;
    fl_awaitable_give_up(op);
    Py_CLEAR(self->awaitable.inner);
    Py_CLEAR(self->item);
    if (!self->selected) {
        drop_handoff(self);
    }
    Py_CLEAR(self->wrapper);
    return 0;
}

static void operation_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, operation_dealloc)
    operation_clear(op);
    drop_handoff((fl_operation *)op);
    type->tp_free(op);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

/* By a timer of its loop: it is time for its task to look. */
static PyObject *operation_recheck(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_operation *self = (fl_operation *)op;
    FL_BEGIN_CRITICAL(op);
    if (self->waiter != NULL) {
        fl_mailbox_complete(fl_wrapper_state(op), self->waiter);
    }
    FL_END_CRITICAL();
    Py_RETURN_NONE;
}

#define operation_send fl_awaitable_send
#define operation_throw fl_awaitable_throw
#define operation_close fl_awaitable_close

PyType_Spec fl_operation_spec = FL_TYPE("fairlead.wait.Operation", fl_operation,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    FL_AWAITABLE_SLOTS,
    {Py_tp_traverse, (void *)operation_traverse},
    {Py_tp_clear, (void *)operation_clear},
    {Py_tp_dealloc, (void *)operation_dealloc},
    FL_SLOTS(Operation, operation_));

/* ---- The awaitable that is done, for what had nothing to wait for: one for all of an interpreter. */

static PySendResult done_send(PyObject *op, PyObject *value, PyObject **result)
{
    (void)op, (void)value;
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

static PyObject *done_next(PyObject *op)
{
    (void)op;
    return NULL; /* StopIteration(None) */
}

/* It is part of the module's state, and so of the cycle of module and types. */
static int done_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void done_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyType_Spec fl_done_spec = FL_TYPE("fairlead.wait.Done", PyObject,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_am_await, (void *)PyObject_SelfIter},
    {Py_am_send, (void *)done_send},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)done_next},
    {Py_tp_traverse, (void *)done_traverse},
    {Py_tp_dealloc, (void *)done_dealloc},
    {0, NULL});

PyObject *fl_operation_done(fl_state *state)
{
    return Py_NewRef(state->done);
}

static PyObject *use_mailboxes(PyObject *module, PyObject *finder)
{
    fl_state *state = fl_state_of(module);
    Py_XSETREF(state->current_mailbox, Py_NewRef(finder));
    Py_RETURN_NONE;
}

PyMethodDef fl_operation_functions[] = {
    {"use_mailboxes", use_mailboxes, METH_O, FL_DOC(module, use_mailboxes)},
    {NULL, NULL, 0, NULL},
};
