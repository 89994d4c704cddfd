/* Barrier: the barrier in core, as threading.Barrier and asyncio.Barrier at once. */
#include "sync/bind/coordination/barrier.h"

#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include "sync/coordination/barrier.h"

typedef struct {
    fl_wrapper wrapper;
    PyObject *action;  /* NULL: none */
    PyObject *timeout; /* None: for ever */
} barrier;

fl_shared *fl_barrier_share(PyObject *op, uint32_t type)
{
    if (((barrier *)op)->action != NULL || ((barrier *)op)->timeout != Py_None) {
        return fl_raise(fl_wrapper_state(op), UsageError,
                        "a barrier with an action or a timeout of its own is of one interpreter; "
                        "give the timeout to wait(), and act where wait() returns 0");
    }
    fl_shared *shared = fl_shared_new(fl_wrapper_waitq(op), type, NULL, NULL);
    return shared != NULL ? shared : (fl_shared *)PyErr_NoMemory();
}

static PyObject *broken(PyObject *self)
{
    return fl_raise(fl_wrapper_state(self), BrokenBarrierError,
                    "the barrier is broken, or was reset; reset() makes it usable again");
}

/* The end of a wait that was not refused: the place among the parties. The last one acts, and lets the others
   through. */
static PyObject *pass(PyObject *self, uint32_t wanted)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    if (!(wanted & FL_BARRIER_LAST)) {
        return PyLong_FromUnsignedLong(wanted & FL_BARRIER_MOST);
    }
    PyObject *action = ((barrier *)self)->action;
    if (action != NULL) {
        PyObject *result = PyObject_CallNoArgs(action);
        if (result == NULL) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            FL_WAKING(fl_barrier_break(waitq, wanted));
            PyErr_Restore(type, value, traceback);
            return NULL;
        }
        Py_DECREF(result);
    }
    bool tripped;
    FL_WAKING(tripped = fl_barrier_trip(waitq, wanted));
    return tripped ? PyLong_FromUnsignedLong(waitq->limit - 1) : broken(self);
}

static PyObject *finish(PyObject *self, fl_end end)
{
    return end.refused ? broken(self) : pass(self, end.wanted);
}

static PyObject *wait_as_greenlet(PyObject *self, int64_t deadline)
{
    PyObject *operation = fl_operation_new(fl_wrapper_state(self), self, 0, finish);
    PyObject *result = fl_greenlet_wait(operation, deadline);
    if (result == Py_None) {
        Py_DECREF(result);
        return broken(self); /* by its leaving */
    }
    return result;
}

static PyObject *barrier_wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *timeout;
    int64_t deadline;
    if (fl_arguments("wait", names, args, count, kwnames, &timeout) < 0) {
        return NULL;
    }
    if (timeout == NULL || timeout == Py_None) {
        timeout = ((barrier *)self)->timeout;
    }
    if (fl_deadline_parse(NULL, timeout, &deadline) < 0) {
        return NULL;
    }
    int greenlet = fl_in_greenlet(fl_wrapper_state(self));
    if (greenlet != 0) {
        return greenlet < 0 ? NULL : wait_as_greenlet(self, deadline);
    }
    fl_waitq *waitq = fl_wrapper_waitq(self); /* one that leaves would break it: it is not to enter */
    if (!fl_barrier_broken(waitq) && fl_waitq_waiting(waitq) + 1 < waitq->limit && deadline != 0 &&
        fl_refuse_to_block(fl_wrapper_state(self)) < 0) {
        return NULL;
    }
    fl_waiter *waiter = fl_waiter_for(self, fl_wrapper_waitq(self), 0, (fl_stake){0});
    if (waiter == NULL) {
        return NULL;
    }
    int through = fl_waitq_enter(waiter) ? 1 : fl_wait_in_place(fl_wrapper_state(self), waiter, deadline);
    uint32_t wanted = waiter->wanted;
    fl_thread_waiter_done(waiter);
    return through == 1 ? pass(self, wanted) : through < 0 ? NULL : broken(self);
}

static PyObject *barrier_wait_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 0, finish);
}

static PyObject *barrier_aexit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return fl_operation_done(fl_wrapper_state(self));
}

static PyObject *barrier_reset(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_barrier_reset(fl_wrapper_waitq(self)));
    Py_RETURN_NONE;
}

static PyObject *barrier_abort(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_barrier_break(fl_wrapper_waitq(self), 0));
    Py_RETURN_NONE;
}

static PyObject *barrier_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)waitq->limit, (long)fl_waitq_waiting(waitq), fl_barrier_broken(waitq)};
    return fl_record(fl_wrapper_state(self)->barrier_statistics, values, 3, 4);
}

static PyObject *get_parties(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(fl_wrapper_waitq(self)->limit);
}

static PyObject *get_n_waiting(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(fl_waitq_waiting(fl_wrapper_waitq(self)));
}

static PyObject *get_broken(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(fl_barrier_broken(fl_wrapper_waitq(self)));
}

static PyObject *repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return PyUnicode_FromFormat("<%s %s, %u of %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                fl_barrier_broken(waitq) ? "broken" : "whole",
                                (unsigned)fl_waitq_waiting(waitq), (unsigned)waitq->limit, (void *)self);
}

static PyObject *barrier_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *number, *action = Py_None, *timeout = Py_None;
    int64_t deadline, parties;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Barrier", FL_PARAMETERS(Barrier), &number, &action,
                                     &timeout) ||
        fl_deadline_parse(NULL, timeout, &deadline) < 0 ||
        (parties = fl_whole("parties", number, 1, FL_BARRIER_MOST, "")) < 0) {
        return NULL;
    }
    if (action != Py_None && !PyCallable_Check(action)) {
        PyErr_SetString(PyExc_TypeError, "action must be callable, or None");
        return NULL;
    }
    barrier *self = (barrier *)fl_wrapper_new(type, fl_barrier_new((uint32_t)parties));
    if (self != NULL) {
        self->action = action == Py_None ? NULL : Py_NewRef(action);
        self->timeout = Py_NewRef(timeout);
    }
    return (PyObject *)self;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((barrier *)self)->action);
    Py_VISIT(((barrier *)self)->timeout);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((barrier *)self)->action);
    Py_CLEAR(((barrier *)self)->timeout);
    return 0;
}

#define barrier_aenter barrier_wait_async

static PyGetSetDef getters[] = {
    {"parties", get_parties, NULL, FL_DOC(Barrier, parties), NULL},
    {"n_waiting", get_n_waiting, NULL, FL_DOC(Barrier, n_waiting), NULL},
    {"broken", get_broken, NULL, FL_DOC(Barrier, broken), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_barrier_spec = FL_TYPE("fairlead.sync.Barrier", barrier, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)barrier_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(Barrier, barrier_));
