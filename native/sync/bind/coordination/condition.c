/* Condition: its whole wait in one call, or in one awaitable, so that no signal handler runs between its steps.
 *
 * The wait ends with the lock, whatever ends it: a waiter that was notified is served by the lock's queue
 * (sync/coordination/condition.h), and one that was not leaves, and takes the lock again. An exception that comes
 * before that waits until it is taken; if the waiter was notified, the next one is, in its place. Only a
 * coroutine that is closed cannot wait for the lock: that is lost (sync/bind/locks/lost.h).
 */
#include "sync/coordination/condition.h"

#include "machine/clock.h"
#include "sync/bind/locks/lock.h"
#include "sync/bind/locks/lost.h"

typedef struct {
    fl_wrapper wrapper;
    PyObject *lock;
    const fl_lock_kind *as;
} condition;

static fl_waitq *lock_queue(const condition *self)
{
    return fl_wrapper_waitq(self->lock);
}

/* 0: the caller holds it; -1: a NotHeldError, or another exception. */
static int check_held(condition *self, const char *refusal)
{
    int held = self->as->is_held(self->lock);
    if (held == 0) {
        fl_raise(fl_wrapper_state((PyObject *)self), NotHeldError, refusal);
    }
    return held > 0 ? 0 : -1;
}

static void notify_next(const condition *self)
{
    FL_WAKING(fl_condition_give(self->wrapper.waitq, 1));
}

/* Queues the waiter, and then lets go of the lock, so that no notification is missed. */
static int begin(condition *self, fl_waiter *waiter, fl_lock_hold *before)
{
    fl_store(&waiter->request, self, relaxed); /* no other thread has it yet */
    waiter->request_moved = self->lock;
    waiter->since = fl_sem_resumed(lock_queue(self));
    fl_waitq_enter(waiter);
    if (self->as->let_go(self->lock, before) < 0) {
        fl_condition_leave(waiter);
        return -1;
    }
    return 0;
}

/* In a thread. 1: notified; 0: not within the time; -1: an exception. It is held in any case. */
static int wait_in_thread(condition *self, int64_t deadline)
{
    fl_lock_hold before;
    const fl_stake stake = FL_HOLDER(fl_owner_thread());
    fl_waiter *waiter = fl_waiter_for((PyObject *)self, self->wrapper.waitq, 1, stake);
    if (waiter == NULL || begin(self, waiter, &before) < 0) {
        if (waiter != NULL) {
            fl_thread_waiter_done(waiter);
        }
        return -1;
    }
    PyObject *type = NULL, *value = NULL, *traceback = NULL; /* of signal handlers: the last one */
    bool left = deadline == 0 && fl_waitq_leave(waiter, FL_TIMED_OUT);
    int outcome = left ? 0 : FL_AGAIN, looks = 0;
    while (!left && outcome != 1) {
        outcome = fl_sleep(waiter, deadline, &looks);
        left = outcome == 0;
        if (outcome < 0) {
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(traceback);
            PyErr_Fetch(&type, &value, &traceback);
            left = fl_condition_leave(waiter);
        }
    }
    fl_thread_waiter_done(waiter);
    int failed = left ? fl_wait_thread_always(self->lock, lock_queue(self), stake) : 0;
    self->as->hold_again(self->lock, before);
    if (type != NULL && !left) {
        notify_next(self);
    }
    if (type != NULL && failed == 0) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return failed < 0 ? -1 : !left;
}

static PyObject *condition_wait_async(PyObject *op, PyObject *ignored);

/* In a thread or a greenlet, as wait_in_thread(). */
static int wait_within(condition *self, int64_t deadline)
{
    fl_state *state = fl_wrapper_state((PyObject *)self);
    int greenlet = fl_in_greenlet(state);
    if (greenlet > 0) {
        PyObject *result = fl_greenlet_wait(condition_wait_async((PyObject *)self, NULL), deadline);
        int notified = result == NULL ? -1 : result == Py_True;
        Py_XDECREF(result);
        return notified;
    }
    bool may = greenlet == 0 && fl_refuse_to_block(state) == 0 &&
               check_held(self, "cannot wait on un-acquired lock") == 0;
    return may ? wait_in_thread(self, deadline) : -1;
}

static PyObject *condition_wait(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int notified = wait_within((condition *)op, deadline);
    return notified < 0 ? NULL : PyBool_FromLong(notified);
}

/* *result is what the predicate returns; whether that is true; -1: an exception. */
static int ask(PyObject *predicate, PyObject **result)
{
    *result = PyObject_CallNoArgs(predicate);
    int truth = *result == NULL ? -1 : PyObject_IsTrue(*result);
    if (truth < 0) {
        Py_CLEAR(*result);
    }
    return truth;
}

static PyObject *condition_wait_for(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"predicate", "timeout", NULL};
    PyObject *values[2], *result;
    int64_t deadline;
    if (fl_arguments("wait_for", names, args, count, kwnames, values) < 0) {
        return NULL;
    }
    if (values[0] == NULL) {
        PyErr_SetString(PyExc_TypeError, "wait_for() missing required argument 'predicate'");
        return NULL;
    }
    if (fl_deadline_parse(NULL, values[1], &deadline) < 0) {
        return NULL;
    }
    while (ask(values[0], &result) == 0 &&
           (deadline == FL_FOREVER || (deadline != 0 && fl_clock_now() < deadline))) {
        Py_DECREF(result);
        if (wait_within((condition *)op, deadline) < 0) {
            return NULL;
        }
    }
    return result;
}

/* A task's wait. */
typedef enum { NEW, WAITING, RETAKING, OVER } phase;

typedef struct {
    fl_awaitable awaitable;
    condition *condition;
    fl_waiter *waiter;    /* NEW and OVER: NULL */
    fl_lock_hold before; /* how the lock was held, while it is not */
    PyObject *error;      /* what is raised once the lock is there; or NULL */
    PyObject *predicate;  /* it ends when that is true; NULL: with the first notification */
    phase phase;          /* RETAKING: it was not notified, and waits for the lock */
} notice;

static const fl_awaitable_ops ops;

static PyObject *condition_wait_for_async(PyObject *op, PyObject *predicate)
{
    notice *self = PyObject_GC_New(notice, fl_wrapper_state(op)->notice_type);
    if (self != NULL) {
        self->awaitable.ops = &ops;
        self->awaitable.inner = NULL;
        self->awaitable.busy = false;
        self->condition = (condition *)Py_NewRef(op);
        self->waiter = NULL;
        self->before = (fl_lock_hold){NULL, 0};
        self->error = NULL;
        self->predicate = Py_XNewRef(predicate);
        self->phase = NEW;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

static PyObject *condition_wait_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return condition_wait_for_async(op, NULL);
}

/* Done with the waiter, which is settled. */
static void forget(notice *self)
{
    fl_waiter *waiter = self->waiter;
    self->waiter = NULL;
    PyObject *future = fl_waiter_swap_future(waiter, NULL);
    fl_mailbox_forget(waiter);
    Py_XDECREF(future);
}

/* A waiter for this queue, whose future the task is to await; NULL with an exception. */
static fl_waiter *prepare(notice *self, fl_waitq *waitq, bool shielded)
{
    fl_state *state = fl_wrapper_state((PyObject *)self->condition);
    PyObject *mailbox = fl_mailbox_here(state);
    fl_mailbox *body;
    PyObject *future = mailbox == NULL ? NULL : fl_mailbox_future(mailbox, shielded, &body);
    fl_waiter *waiter = NULL;
    if (future != NULL && fl_await_future(future, &self->awaitable.inner) == 0) {
        bool named = self->condition->as == &fl_lock_as_lock;
        uint64_t holder = named ? fl_owner_named(state) : fl_owner_task();
        waiter = fl_mailbox_waiter(body, waitq, 1, FL_HOLDER(holder));
        if (waiter == NULL) {
            fl_raise(state, LoopClosedError, "the event loop of this task has been closed");
            Py_CLEAR(self->awaitable.inner);
        } else {
            fl_store(&waiter->payload, Py_NewRef(future), release); /* pairs with the mailbox's taking it out */
        }
    }
    Py_XDECREF(future);
    Py_XDECREF(mailbox);
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
            FL_WAKING(fl_waiter_abandon(self->waiter, FL_CANCELLED)); /* gives the lock back, if it has that */
            forget(self);
        }
        fl_lost_note(self->condition->lock, self->before.depth);
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
    self->condition->as->hold_again(self->condition->lock, self->before);
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
        notify_next(self->condition);
    }
    PyObject *error = self->error;
    self->error = NULL;
    *result = NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return PYGEN_ERROR;
}

/* Its loop cannot wake it any more. */
static PySendResult fail(notice *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    give_up((PyObject *)self);
    PyErr_Restore(type, value, traceback);
    return PYGEN_ERROR;
}

/* Whether the lock is there: 1; 0: not yet; -1: it never comes, with an exception. `over`: so is the future.
   */
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
    PyObject *mailbox = fl_mailbox_here(state);
    fl_mailbox *body;
    PyObject *future = mailbox == NULL ? NULL : fl_mailbox_future(mailbox, true, &body);
    int outcome = future == NULL ? -1 : fl_await_future(future, &self->awaitable.inner);
    if (outcome == 0) {
        PyObject *before = fl_waiter_swap_future(self->waiter, Py_NewRef(future));
        Py_XDECREF(before);
        outcome = look(self, false); /* or it came while there was no future to complete */
    }
    Py_XDECREF(future);
    Py_XDECREF(mailbox);
    return outcome;
}

/* Queues for the lock. As go_on(). */
static int retake(notice *self)
{
    forget(self);
    self->phase = RETAKING;
    self->waiter = prepare(self, lock_queue(self->condition), true);
    if (self->waiter == NULL) {
        return -1;
    }
    fl_store(&self->waiter->request, self->condition->lock, relaxed); /* no other thread has it yet */
    return fl_waitq_enter(self->waiter);
}

/* With an exception set, which is kept until the lock is there: the last one counts. */
static PySendResult raised(PyObject *op, PyObject **result)
{
    notice *self = (notice *)op;
    if (self->phase == NEW || self->phase == OVER) {
        self->phase = OVER;
        return PYGEN_ERROR;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    Py_XSETREF(self->error, value);
    bool leaves = self->phase == WAITING && fl_condition_leave(self->waiter);
    int outcome = leaves ? retake(self) : go_on(self);
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
        condition *on = self->condition;
        self->phase = OVER;
        if (self->predicate != NULL) {
            int truth = ask(self->predicate, result);
            if (truth != 0) {
                return truth < 0 ? PYGEN_ERROR : PYGEN_RETURN;
            }
            Py_CLEAR(*result);
        }
        if (check_held(on, "cannot wait on un-acquired lock") < 0 ||
            (self->waiter = prepare(self, on->wrapper.waitq, false)) == NULL) {
            return PYGEN_ERROR;
        }
        if (begin(on, self->waiter, &self->before) < 0) {
            forget(self);
            Py_CLEAR(self->awaitable.inner);
            return PYGEN_ERROR;
        }
        self->phase = WAITING;
        value = Py_None;
    }
    PySendResult sent = fl_iterator_send(self->awaitable.inner, value, result);
    if (sent == PYGEN_NEXT) {
        return sent;
    }
    Py_CLEAR(self->awaitable.inner);
    if (sent == PYGEN_ERROR) {
        return raised(op, result);
    }
    Py_CLEAR(*result);
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
    PyObject *type, *value, *traceback; /* it may be collected while an exception is on its way */
    PyErr_Fetch(&type, &value, &traceback);
    give_up(op);
    PyErr_Restore(type, value, traceback);
    Py_CLEAR(((notice *)op)->awaitable.inner);
    Py_CLEAR(((notice *)op)->condition);
    Py_CLEAR(((notice *)op)->predicate);
    return 0;
}

static void notice_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    notice_clear(op);
    PyObject_GC_Del(op);
    Py_DECREF(type);
}

#define notice_send fl_awaitable_send
#define notice_throw fl_awaitable_throw
#define notice_close fl_awaitable_close

PyType_Spec fl_notice_spec = FL_TYPE("fairlead.wait.Notice", notice,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    FL_AWAITABLE_SLOTS,
    {Py_tp_traverse, (void *)notice_traverse},
    {Py_tp_clear, (void *)notice_clear},
    {Py_tp_dealloc, (void *)notice_dealloc},
    FL_SLOTS(Notice, notice_));

static PyObject *condition_notify(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"n", NULL};
    PyObject *number;
    int64_t most = 1;
    if (fl_arguments("notify", names, args, count, kwnames, &number) < 0 ||
        (number != NULL && (most = fl_whole("n", number, 0, UINT32_MAX, "")) < 0) ||
        check_held((condition *)op, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    if (fl_waitq_waiting(fl_wrapper_waitq(op)) > 0) {
        FL_WAKING(fl_condition_give(fl_wrapper_waitq(op), (uint32_t)most));
    }
    Py_RETURN_NONE;
}

static PyObject *condition_notify_all(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (check_held((condition *)op, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    FL_WAKING(fl_condition_give(fl_wrapper_waitq(op), UINT32_MAX));
    Py_RETURN_NONE;
}

/* What it does as its lock does. */
#define AS_THE_LOCK(name)                                                                                   \
    static PyObject *condition_##name(PyObject *op, PyObject *ignored)                                     \
    {                                                                                                      \
        return ((condition *)op)->as->name(((condition *)op)->lock, ignored);                              \
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
    return ((condition *)op)->as->acquire(((condition *)op)->lock, args, count, kwnames);
}

static PyObject *condition_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *record = PyStructSequence_New(fl_wrapper_state(op)->condition_statistics);
    if (record != NULL) {
        PyObject *waiting = PyLong_FromUnsignedLong(fl_waitq_waiting(fl_wrapper_waitq(op)));
        PyObject *lock = ((condition *)op)->as->statistics(((condition *)op)->lock, NULL);
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
    return Py_NewRef(((condition *)op)->lock);
}

static PyObject *repr(PyObject *op)
{
    return PyUnicode_FromFormat("<fairlead.sync.Condition %R, %u waiting>", ((condition *)op)->lock,
                                (unsigned)fl_waitq_waiting(fl_wrapper_waitq(op)));
}

/* Steals the reference to the queue. */
static PyObject *with_lock(PyTypeObject *type, PyObject *lock, fl_waitq *waitq)
{
    condition *self = (condition *)fl_wrapper_new(type, waitq);
    if (self != NULL) {
        self->lock = Py_NewRef(lock);
        self->as = Py_IS_TYPE(lock, fl_wrapper_state(lock)->rlock_type) ? &fl_rlock_as_lock : &fl_lock_as_lock;
    }
    return (PyObject *)self;
}

static PyObject *condition_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *lock = Py_None;
    int fair = 0;
    fl_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$p:Condition",
                                                      FL_PARAMETERS(Condition), &lock, &fair)) {
        return NULL;
    }
    if (lock != Py_None && fair) {
        PyErr_SetString(PyExc_ValueError,
                        "fair is for a lock that the Condition makes itself: make your lock with fair=True");
        return NULL;
    }
    if (lock != Py_None && !Py_IS_TYPE(lock, state->rlock_type) && !Py_IS_TYPE(lock, state->lock_type)) {
        PyErr_Format(PyExc_TypeError, "a Condition takes a Lock or an RLock of fairlead.sync, not a %s: a lock "
                     "of another library cannot wake tasks", Py_TYPE(lock)->tp_name);
        return NULL;
    }
    if (lock != Py_None && fl_wrapper_waitq(lock)->flags & FL_WAITQ_BREAKS) {
        return fl_raise(state, UsageError,
                        "a Condition must be able to acquire its lock again: it takes no lock that breaks");
    }
    uint32_t flags = FL_WAITQ_OWNED | (fair ? FL_WAITQ_FAIR : 0);
    PyObject *made = lock != Py_None ? Py_NewRef(lock) : fl_wrapper_new(state->rlock_type, fl_sem_new(1, 1, flags));
    PyObject *self = made == NULL ? NULL : with_lock(type, made, fl_condition_new(fl_wrapper_waitq(made)));
    Py_XDECREF(made);
    return self;
}

PyObject *fl_condition_with(PyObject *lock, fl_waitq *waitq)
{
    return with_lock(fl_wrapper_state(lock)->condition_type, lock, waitq);
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((condition *)op)->lock);
    return 0;
}

static void dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    PyObject *lock = ((condition *)op)->lock;
    ((condition *)op)->lock = NULL;
    fl_wrapper_dealloc(op);
    Py_XDECREF(lock);
}

static PyGetSetDef getters[] = {
    {"_lock", get_lock, NULL, "The lock.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_condition_spec = FL_TYPE("fairlead.sync.Condition", condition, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)condition_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(Condition, condition_));
