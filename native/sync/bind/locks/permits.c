/* Lock, Semaphore and BoundedSemaphore: the semaphore in core, as three types. */
#include "sync/bind/locks/lock.h"
#include "sync/bind/locks/lost.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/locks/holders.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/gone.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include <string.h>

static int raise_broken(PyObject *self)
{
    fl_raise(fl_wrapper_state(self), BrokenLockError,
             "the thread that held this lock has ended without releasing it");
    return -1;
}

/* As take(), of what is not there. Not inline: it costs registers. */
static __attribute__((noinline)) int wait_for(PyObject *self, uint32_t wanted, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    if (waitq->flags & FL_WAITQ_BREAKS && (fl_sem_closed(waitq) || fl_waitq_orphaned(waitq))) {
        fl_holder_ended(self, waitq);
        return raise_broken(self);
    }
    if (deadline == 0) {
        return 0;
    }
    uint64_t holder = fl_load(&waitq->owner, relaxed); /* ours only by what this thread did, or is given */
    if (deadline == FL_FOREVER && fl_owner_place(holder) == fl_owner_task()) {
        fl_raise(fl_wrapper_state(self), DeadlockError,
                 "a task of this thread's event loop holds this lock, and cannot release it while the "
                 "thread waits; use `async with`, or a timeout");
        return -1;
    }
    int taken = fl_wait_thread(self, waitq, wanted, FL_HOLDER(fl_owner_thread()), deadline);
    return taken == FL_REFUSAL ? raise_broken(self) : taken;
}

/* 1: taken; 0: not within the time; -1: an exception. */
static int take(PyObject *self, uint32_t wanted, int64_t deadline)
{
    fl_lost_clear(self);
    return fl_sem_try(fl_wrapper_waitq(self), wanted, fl_owner_thread()) ? 1
                                                                         : wait_for(self, wanted, deadline);
}

static int give(PyObject *self, uint32_t count)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    if (fl_lost_take(self)) {
        return 0;
    }
    if (waitq->flags & FL_WAITQ_BREAKS && fl_sem_closed(waitq)) {
        return raise_broken(self); /* it would be free, and no lock: the next waiter is refused */
    }
    if (fl_permits_give(waitq, count) == FL_SEM_OK) {
        return 0;
    }
    if (waitq->flags & FL_WAITQ_OWNED) {
        fl_raise(fl_wrapper_state(self), NotHeldError, "release unlocked lock");
    } else {
        fl_raise(fl_wrapper_state(self), TooManyReleasesError, "Semaphore released too many times");
    }
    return -1;
}

static PyObject *lock_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return fl_truth(take(self, 1, deadline));
}

static PyObject *semaphore_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline = FL_FOREVER, wanted = 1;
    if (count > 0 || kwnames != NULL) {
        static const char *const names[] = {"blocking", "timeout", "n", NULL};
        PyObject *values[3];
        if (fl_arguments("acquire", names, args, count, kwnames, values) < 0 ||
            fl_deadline_parse(values[0], values[1], &deadline) < 0 ||
            (wanted = fl_permits_parse(fl_wrapper_waitq(self), values[2], "")) < 0) {
            return NULL;
        }
    }
    return fl_truth(take(self, (uint32_t)wanted, deadline));
}

static PyObject *finish_lock(PyObject *self, fl_end end)
{
    if (end.refused) {
        raise_broken(self);
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *lock_acquire_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 1, finish_lock);
}

static PyObject *semaphore_acquire_async(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                         PyObject *kwnames)
{
    int64_t wanted =
        fl_permits_argument("acquire_async", fl_wrapper_waitq(self), args, count, kwnames, "");
    return wanted < 0 ? NULL : fl_operation_new(fl_wrapper_state(self), self, (uint32_t)wanted, NULL);
}

static PyObject *lock_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_none(give(self, 1));
}

static PyObject *semaphore_release(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t number = fl_permits_argument("release", fl_wrapper_waitq(self), args, count, kwnames, "");
    return number < 0 || give(self, (uint32_t)number) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *semaphore_locked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_sem_value(fl_wrapper_waitq(self)) == 0);
}

static PyObject *lock_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {fl_sem_value(waitq) == 0, (long)fl_waitq_waiting(waitq), waitq->flags & FL_WAITQ_FAIR};
    return fl_record(fl_wrapper_state(self)->lock_statistics, values, 3, 5);
}

static PyObject *semaphore_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)fl_sem_value(waitq), (long)fl_waitq_waiting(waitq), waitq->flags & FL_WAITQ_FAIR};
    return fl_record(fl_wrapper_state(self)->semaphore_statistics, values, 3, 4);
}

static PyObject *lock_holders(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    fl_waitq_refresh(waitq);
    return fl_holders_append(PyList_New(0), fl_load(&waitq->owner, relaxed), NULL, true); /* to show */
}

static PyObject *lock_repr(PyObject *self)
{
    return fl_wrapper_repr(self, "%s", fl_sem_value(fl_wrapper_waitq(self)) == 0 ? "locked" : "unlocked");
}

static PyObject *semaphore_repr(PyObject *self)
{
    return fl_wrapper_repr(self, "value=%u", (unsigned)fl_sem_value(fl_wrapper_waitq(self)));
}

static PyObject *semaphore_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_truth(take(self, 1, FL_FOREVER));
}

static PyObject *semaphore_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return lock_release(self, NULL);
}

static PyObject *semaphore_aenter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_state *state = fl_wrapper_state(self);
    fl_lost_clear(self);
    if (fl_sem_try(fl_wrapper_waitq(self), 1, fl_owner_named(state))) {
        return fl_operation_done(state);
    }
    return fl_operation_new(state, self, 1, Py_TYPE(self) == state->lock_type ? finish_lock : NULL);
}

static PyObject *semaphore_aexit(PyObject *self, PyObject *const *Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count))
{
    return give(self, 1) < 0 ? NULL : fl_operation_done(fl_wrapper_state(self));
}

static PyObject *new_by(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *format,
                        bool bounded)
{
    PyObject *number = NULL;
    int64_t value = 1;
    int fair = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, FL_PARAMETERS(Semaphore), &number, &fair) ||
        (number != NULL && (value = fl_whole("value", number, 0, FL_SEM_MOST, "")) < 0)) {
        return NULL;
    }
    uint32_t limit = bounded ? (uint32_t)value : FL_SEM_MOST;
    return fl_wrapper_new(type, fl_sem_new((uint32_t)value, limit, fair ? FL_WAITQ_FAIR : 0));
}

static PyObject *semaphore_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|O$p:Semaphore", false);
}

static PyObject *bounded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_by(type, args, kwargs, "|O$p:BoundedSemaphore", true);
}

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int fair = 0;
    const char *death = "warn";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ps:Lock", FL_PARAMETERS(Lock), &fair, &death)) {
        return NULL;
    }
    bool breaks = strcmp(death, "break") == 0;
    if (!breaks && strcmp(death, "warn") != 0) {
        return fl_raise(fl_type_state(type), UsageError, "on_owner_death is 'warn' or 'break'");
    }
    return fl_wrapper_new(type, fl_sem_new(1, 1, FL_WAITQ_OWNED | (fair ? FL_WAITQ_FAIR : 0) |
                                                   (breaks ? FL_WAITQ_BREAKS : 0)));
}

static PyObject *on_owner_death(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(fl_wrapper_waitq(self)->flags & FL_WAITQ_BREAKS ? "break" : "warn");
}

static PyGetSetDef lock_fields_got[] = {
    {"on_owner_death", on_owner_death, NULL, FL_DOC(Lock, on_owner_death), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* What a Lock does as a Semaphore does. */
#define lock_locked semaphore_locked
#define lock_enter semaphore_enter
#define lock_exit semaphore_exit
#define lock_aenter semaphore_aenter
#define lock_aexit semaphore_aexit

static int is_held(PyObject *self)
{
    return fl_sem_value(fl_wrapper_waitq(self)) == 0;
}

static int let_go(PyObject *self, fl_lock_hold *before)
{
    *before = (fl_lock_hold){NULL, 1};
    return give(self, 1);
}

static void hold_again(PyObject *self, fl_lock_hold before)
{
    (void)self, (void)before; /* it knows no more than its wait queue */
}

static int owner(PyObject *self, uint64_t *owner)
{
    *owner = fl_owner_named(fl_wrapper_state(self));
    return 0;
}

const fl_lock_kind fl_lock_as_lock = {
    .owner = owner,
    .is_held = is_held,
    .let_go = let_go,
    .hold_again = hold_again,
    .acquire = lock_acquire,
    .enter = lock_enter,
    .aenter = lock_aenter,
    .acquire_async = lock_acquire_async,
    .release = lock_release,
    .locked = lock_locked,
    .statistics = lock_statistics,
};

PyType_Spec fl_lock_spec = FL_TYPE("fairlead.sync.Lock", fl_wrapper, 0,
    {Py_tp_new, (void *)lock_new},
    {Py_tp_repr, (void *)lock_repr},
    {Py_tp_getset, lock_fields_got},
    FL_WRAPPER_SLOTS_AND(Lock, lock_, fl_lock_dealloc));

PyType_Spec fl_semaphore_spec = FL_TYPE("fairlead.sync.Semaphore", fl_wrapper, 0,
    {Py_tp_new, (void *)semaphore_new},
    {Py_tp_repr, (void *)semaphore_repr},
    FL_WRAPPER_SLOTS(Semaphore, semaphore_));

PyType_Spec fl_bounded_spec = FL_TYPE("fairlead.sync.BoundedSemaphore", fl_wrapper, 0,
    {Py_tp_new, (void *)bounded_new},
    {Py_tp_repr, (void *)semaphore_repr},
    FL_WRAPPER_SLOTS(BoundedSemaphore, semaphore_));
