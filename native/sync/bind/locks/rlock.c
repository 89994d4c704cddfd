/* RLock: a lock that its holder may take again.
 *
 * The wait queue is a Lock's, and says which thread, or that a task of which thread, is the holder. Which
 * task it is says the wrapper, by a reference, so that no other task can have that identity meanwhile. A
 * greenlet of gevent is a task here, but for a thread's first one, which is the thread. Invariant: while the
 * wait queue's owner is a task of this thread, `holder` and `depth` are written by this thread alone, and
 * while it is this thread itself, `depth` is; other threads read them only to show them. Between the grant
 * to a task and its resumption `holder` is NULL: it has no holder.
 */
#include "sync/bind/locks/lock.h"
#include "sync/bind/locks/lost.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/locks/holders.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

typedef struct {
    fl_wrapper wrapper;
    PyObject *holder;           /* the task; NULL: a thread, or none */
    fl_atomic(uint32_t) depth;  /* how often its holder has acquired it */
} rlock;

static bool held_by(PyObject *self, const fl_caller *me)
{
    uint64_t owner = fl_load(&fl_wrapper_waitq(self)->owner, relaxed); /* ours only by what this thread did */
    return me->task == NULL ? owner == me->thread
                            : owner == (me->thread | FL_OWNER_TASK) && ((rlock *)self)->holder == me->task;
}

/* The wait queue has just been taken; `task` is stolen. */
static void hold(PyObject *self, PyObject *task, uint32_t depth)
{
    rlock *lock = (rlock *)self;
    fl_store(&lock->depth, depth, relaxed); /* read by the holder */
    Py_XSETREF(lock->holder, task); /* in a forked child the one before may be there */
}

/* 1: taken again; 0: another has it, or it is free; -1: an exception. */
static int again(PyObject *self, const fl_caller *me)
{
    rlock *lock = (rlock *)self;
    fl_waitq_refresh(fl_wrapper_waitq(self));
    if (!held_by(self, me)) {
        return 0;
    }
    uint32_t depth = fl_load(&lock->depth, relaxed); /* the holder's own */
    if (depth == UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the lock is held as often as it can count");
        return -1;
    }
    fl_store(&lock->depth, depth + 1, relaxed); /* the holder's own */
    return 1;
}

/* The task that has it, a moment ago: a new reference; NULL: none is known. */
static PyObject *task_inside(PyObject *self, uint64_t owner)
{
    PyObject *task = ((rlock *)self)->holder;
#ifdef Py_GIL_DISABLED /* another thread may let go of it at this moment */
    task = (owner & ~(uint64_t)FL_OWNER_TASK) == fl_owner_thread() ? task : NULL;
#endif
    return Py_XNewRef(owner & FL_OWNER_TASK ? task : NULL);
}

/* Whether the task that has it has ended: a fl_gone, or -1 with an exception. Of a thread it is reported once
   it is waited for. */
static int task_gone(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    uint64_t owner = fl_load(&waitq->owner, relaxed); /* and read again below */
    PyObject *task = task_inside(self, owner);
    int gone = FL_NONE_GONE;
    if (task != NULL && !fl_waitq_orphaned(waitq)) {
        gone = fl_task_ended(fl_wrapper_state(self), task);
    }
    if (gone > 0) { /* or it has let go, and ended, since it was seen inside */
        PyObject *again = task_inside(self, fl_load(&waitq->owner, relaxed));
        gone = again == task ? FL_TASK_GONE : FL_NONE_GONE;
        Py_XDECREF(again);
    }
    Py_XDECREF(task);
    return gone;
}

/* As fl_wait_thread, of a lock that is not free. Not inline: it costs registers. */
static __attribute__((noinline)) int wait_for(PyObject *self, const fl_caller *me, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    uint64_t holder = fl_load(&waitq->owner, relaxed); /* ours only by what this thread did, or is given */
    if (deadline == FL_FOREVER && (holder & ~(uint64_t)FL_OWNER_TASK) == me->thread) {
        int others_run = fl_in_greenlet(fl_wrapper_state(self));
        if (others_run < 0) {
            return -1;
        }
        if (!others_run) {
            fl_raise(fl_wrapper_state(self), DeadlockError,
                     holder & FL_OWNER_TASK
                         ? "a task of this thread's event loop holds this lock, and cannot release it while "
                           "the thread waits; use `async with`, or a timeout"
                         : "this thread holds this lock outside of the task that runs in it now, and cannot "
                           "release it while it waits");
            return -1;
        }
    }
    int gone = task_gone(self);
    return gone < 0 || fl_warn_if_gone(self, gone) < 0
               ? -1
               : fl_wait_thread(self, waitq, 1, FL_HOLDER(fl_caller_owner(me)), deadline);
}

/* As fl_wait_thread; the reference to the task is stolen. */
static int take_as(PyObject *self, fl_caller me, int64_t deadline)
{
    fl_lost_clear(self);
    int taken = again(self, &me);
    if (taken == 0) {
        taken = fl_sem_try(fl_wrapper_waitq(self), 1, fl_caller_owner(&me)) ? 1
                : deadline == 0                                             ? 0
                                                                            : wait_for(self, &me, deadline);
        if (taken > 0) {
            hold(self, me.task, 1);
            return 1;
        }
    }
    Py_XDECREF(me.task);
    return taken;
}

static int take(PyObject *self, int64_t deadline)
{
    fl_caller me;
    return fl_caller_here(self, &me) < 0 ? -1 : take_as(self, me, deadline);
}

static void give(PyObject *self)
{
    rlock *lock = (rlock *)self;
    PyObject *task = lock->holder;
    lock->holder = NULL;
    fl_permits_give(fl_wrapper_waitq(self), 1);
    Py_XDECREF(task);
}

static int is_mine(PyObject *self)
{
    fl_caller me;
    if (fl_caller_here(self, &me) < 0) {
        return -1;
    }
    fl_waitq_refresh(fl_wrapper_waitq(self));
    int mine = held_by(self, &me);
    Py_XDECREF(me.task);
    return mine;
}

static int raise_not_held(PyObject *self)
{
    fl_raise(fl_wrapper_state(self), NotHeldError,
             fl_sem_value(fl_wrapper_waitq(self)) == 0
                 ? "cannot release un-acquired lock: another thread or task holds it"
                 : "cannot release un-acquired lock");
    return -1;
}

static int release_once(PyObject *self)
{
    rlock *lock = (rlock *)self;
    if (fl_lost_take(self)) {
        return 0;
    }
    int mine = is_mine(self);
    if (mine <= 0) {
        return mine < 0 ? -1 : raise_not_held(self);
    }
    uint32_t depth = fl_load(&lock->depth, relaxed); /* the holder's own */
    if (depth > 1) {
        fl_store(&lock->depth, depth - 1, relaxed); /* the holder's own */
    } else {
        give(self);
    }
    return 0;
}

static int let_go(PyObject *self, fl_lock_hold *before)
{
    rlock *lock = (rlock *)self;
    *before = (fl_lock_hold){lock->holder, fl_load(&lock->depth, relaxed)}; /* the holder's own */
    lock->holder = NULL;
    fl_permits_give(fl_wrapper_waitq(self), 1);
    return 0;
}

static void hold_again(PyObject *self, fl_lock_hold before)
{
    hold(self, before.task, before.depth);
}

/* The operation's two hooks. They run in the task that awaits. */
static int attempt(PyObject *self, PyObject *Py_UNUSED(item), uint32_t *Py_UNUSED(wanted))
{
    fl_caller me;
    if (fl_caller_here(self, &me) < 0) {
        return -1;
    }
    if (me.task == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "an RLock is held by a task, and none runs here; threads use "
                                            "the call without _async");
        return -1;
    }
    int taken = take_as(self, me, 0);
    int gone = taken == 0 ? task_gone(self) : FL_NONE_GONE;
    return gone < 0 || fl_warn_if_gone(self, gone) < 0 ? -1 : taken;
}

static PyObject *finish(PyObject *self, fl_end Py_UNUSED(end))
{
    rlock *lock = (rlock *)self;
    if (lock->holder != NULL) {
        Py_RETURN_TRUE; /* taken at once */
    }
    PyObject *task = fl_task_here(fl_wrapper_state(self));
    if (task == NULL) {
        fl_permits_give(fl_wrapper_waitq(self), 1);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "an RLock was granted to a task that does not run");
        }
        return NULL;
    }
    hold(self, task, 1);
    Py_RETURN_TRUE;
}

static PyObject *rlock_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return fl_truth(take(self, deadline));
}

static PyObject *rlock_acquire_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(self), self, NULL, 1, attempt, finish);
}

static PyObject *rlock_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_none(release_once(self));
}

static PyObject *rlock_locked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(fl_wrapper_waitq(self)) == 0);
}

/* How often it is held; a figure to show. */
static uint32_t depth_of(PyObject *self)
{
    if (fl_sem_value(fl_wrapper_waitq(self)) > 0) {
        return 0;
    }
    return fl_load(&((rlock *)self)->depth, relaxed); /* a figure to show */
}

static PyObject *rlock_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {fl_sem_value(waitq) == 0, (long)depth_of(self), (long)fl_waitq_waiting(waitq),
                     waitq->flags & FL_WAITQ_FAIR};
    return fl_record(fl_wrapper_state(self)->rlock_statistics, values, 4, 9);
}

static PyObject *rlock_holders(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    fl_waitq_refresh(waitq);
    uint64_t owner = fl_load(&waitq->owner, relaxed); /* a figure to show */
    PyObject *task = task_inside(self, owner);
    PyObject *list = fl_holders_append(PyList_New(0), owner, task, true);
    Py_XDECREF(task);
    return list;
}

static PyObject *repr(PyObject *self)
{
    const char *state = fl_sem_value(fl_wrapper_waitq(self)) == 0 ? "locked" : "unlocked";
    return fl_wrapper_repr(self, "%s count=%u", state, (unsigned)depth_of(self));
}

static PyObject *rlock_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_truth(take(self, FL_FOREVER));
}

static PyObject *rlock_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return rlock_release(self, NULL);
}

static PyObject *rlock_aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_enter(fl_wrapper_state(self), self, NULL, 1, attempt, finish);
}

static PyObject *rlock_aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return release_once(self) < 0 ? NULL : fl_operation_done(fl_wrapper_state(self));
}

static PyObject *rlock_is_owned(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_truth(is_mine(self));
}

static PyObject *rlock_recursion_count(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int mine = is_mine(self);
    return mine < 0 ? NULL : PyLong_FromUnsignedLong(mine ? depth_of(self) : 0);
}

static PyObject *rlock_release_save(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int mine = is_mine(self);
    if (mine == 0) {
        fl_raise(fl_wrapper_state(self), NotHeldError, "cannot release un-acquired lock");
    }
    if (mine <= 0) {
        return NULL;
    }
    fl_lock_hold before;
    let_go(self, &before);
    PyObject *task = before.task == NULL ? Py_NewRef(Py_None) : before.task;
    return Py_BuildValue("(IN)", (unsigned)before.depth, task);
}

static PyObject *rlock_acquire_restore(PyObject *self, PyObject *held)
{
    unsigned depth;
    PyObject *task;
    if (!PyTuple_Check(held)) {
        PyErr_SetString(PyExc_TypeError, "_acquire_restore() takes what _release_save() returned");
        return NULL;
    }
    if (!PyArg_ParseTuple(held, "IO:_acquire_restore", &depth, &task)) {
        return NULL;
    }
    uint64_t holder = task == Py_None ? fl_owner_thread() : fl_owner_task();
    int raised = fl_wait_thread_always(self, fl_wrapper_waitq(self), FL_HOLDER(holder));
    hold(self, task == Py_None ? NULL : Py_NewRef(task), depth);
    return fl_none(raised);
}

static PyObject *rlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:RLock", FL_PARAMETERS(RLock), &fair)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_sem_new(1, 1, FL_WAITQ_OWNED | (fair ? FL_WAITQ_FAIR : 0)));
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((rlock *)self)->holder);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((rlock *)self)->holder);
    return 0;
}

/* It tells a thread's first greenlet, which is the thread, from the others. */
static int owner(PyObject *self, uint64_t *owner)
{
    fl_caller me;
    if (fl_caller_here(self, &me) < 0) {
        return -1;
    }
    *owner = fl_caller_owner(&me);
    Py_XDECREF(me.task);
    return 0;
}

const fl_lock_kind fl_rlock_as_lock = {
    .owner = owner,
    .is_held = is_mine,
    .let_go = let_go,
    .hold_again = hold_again,
    .acquire = rlock_acquire,
    .enter = rlock_enter,
    .aenter = rlock_aenter,
    .acquire_async = rlock_acquire_async,
    .release = rlock_release,
    .locked = rlock_locked,
    .statistics = rlock_statistics,
};

PyType_Spec fl_rlock_spec = FL_TYPE("fairlead.sync.RLock", rlock, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)rlock_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    FL_WRAPPER_SLOTS_AND(RLock, rlock_, fl_lock_dealloc));
