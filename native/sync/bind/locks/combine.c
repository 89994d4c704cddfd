/* Combiner: run(function) in turn, in whichever caller's thread. See sync/locks/combine.h.
 *
 * A section is the request of a waiter: a function, and afterwards what it returned or raised. The
 * holder runs it attached, in its own thread, with a reference of its own, so that a task that is cancelled
 * meanwhile may forget it. Between the holder's writing and the caller's reading stands the waiter's state.
 *
 * The main thread runs no section but its own, and hands the lock on: signal handlers run in the main
 * thread between any two instructions of Python, and what they raise must not end up with another caller.
 */
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include "sync/locks/combine.h"

#define BATCH 1024 /* sections that a holder runs for others, unless its maker says otherwise */

typedef struct {
    fl_wrapper wrapper;
    fl_atomic(uint64_t) combined; /* written by the holder */
    uint32_t batch;
} combiner;

typedef struct {
    fl_part part; /* of the combiner */
    PyObject *function;      /* NULL once it has been run */
    PyObject *value, *error; /* then one of them is set, until it is taken */
} section;

static PyObject *section_new(PyObject *lock, PyObject *function)
{
    section *self = (section *)fl_part_new(fl_wrapper_state(lock)->section_type, lock);
    if (self != NULL) {
        self->function = Py_NewRef(function);
    }
    return (PyObject *)self;
}

static int section_traverse(PyObject *op, visitproc visit, void *arg)
{
    section *self = (section *)op;
    Py_VISIT(self->function);
    Py_VISIT(self->value);
    Py_VISIT(self->error);
    return fl_part_traverse(op, visit, arg);
}

static int section_clear(PyObject *op)
{
    section *self = (section *)op;
    Py_CLEAR(self->part.of);
    Py_CLEAR(self->function);
    Py_CLEAR(self->value);
    Py_CLEAR(self->error);
    return 0;
}

/* By the holder. */
static void section_run(section *self)
{
    PyObject *function = self->function;
    self->function = NULL;
    self->value = PyObject_CallNoArgs(function);
    if (self->value == NULL) {
        self->error = fl_caught();
    }
    Py_DECREF(function);
}

/* What came of it. */
static PyObject *section_take(section *self)
{
    PyObject *value = self->value, *error = self->error;
    self->value = self->error = NULL;
    if (value == NULL) {
        fl_raise_again(error);
    }
    return value;
}

static void keep(void *request)
{
    Py_INCREF((PyObject *)request);
}

/* By the holder, without an exception set: sees to the waiters, and holds the lock no more. */
static void let_go(combiner *lock)
{
    fl_waitq *waitq = lock->wrapper.waitq;
    if (fl_combine_let_go(waitq)) {
        return;
    }
    uint32_t most = fl_in_main_thread() ? 0 : lock->batch; /* asked without Python: a handler might raise */
    for (uint32_t i = 0; i < most; i++) {
        fl_waiter *waiter = fl_combine_next(waitq, keep);
        if (waiter == NULL) {
            return;
        }
        section *theirs = waiter->request;
        section_run(theirs);
        fl_fetch_add(&lock->combined, 1, relaxed); /* a figure to show */
        FL_WAKING(fl_combine_done(waiter));
        Py_DECREF(theirs);
    }
    FL_WAKING(fl_combine_pass(waitq));
}

/* By the holder: runs its own function, then lets go. */
static PyObject *lead(combiner *lock, PyObject *function)
{
    PyObject *value = PyObject_CallNoArgs(function);
    PyObject *type, *error, *traceback; /* of its own section, while those of others are run */
    PyErr_Fetch(&type, &error, &traceback);
    let_go(lock);
    PyErr_Restore(type, error, traceback);
    return value;
}

static PyObject *combiner_run(PyObject *op, PyObject *function)
{
    combiner *self = (combiner *)op;
    fl_waitq *waitq = self->wrapper.waitq;
    if (fl_combine_try(waitq)) {
        return lead(self, function);
    }
    uint64_t holder = fl_load(&waitq->owner, relaxed); /* ours only by what this thread did, or was granted */
    if ((holder & ~(uint64_t)FL_OWNER_TASK) == fl_owner_thread()) {
        return fl_raise(fl_wrapper_state(op), DeadlockError,
                        "this thread, or a task of it, has its turn, and would wait for itself for ever; "
                        "call what is to be run directly, or await run_async()");
    }
    if (fl_refuse_to_block(fl_wrapper_state(op)) < 0) {
        return NULL;
    }
    PyObject *mine = section_new(op, function);
    if (mine == NULL) {
        return NULL;
    }
    fl_waiter *waiter = fl_waiter_for(mine, waitq, 0, FL_HOLDER(fl_owner_thread()));
    if (waiter == NULL) {
        Py_DECREF(mine);
        return NULL;
    }
    bool leads = fl_waitq_enter(waiter);
    PyObject *value = NULL;
    if (!leads) {
        PyObject *error = NULL; /* of a handler, while another runs it */
        int outcome, looks = 0;
        do {
            outcome = fl_sleep(waiter, FL_FOREVER, &looks);
            if (outcome < 0) {
                Py_XSETREF(error, fl_caught());
            }
        } while (outcome != 1 && (error == NULL || !fl_waitq_leave(waiter, FL_CANCELLED)));
        leads = outcome == 1 && fl_load(&waiter->state, acquire) == FL_GRANTED; /* pairs with the grant */
        if (error != NULL && leads) {
            FL_WAKING(fl_combine_pass(waitq));
            leads = false;
        } else if (error == NULL && !leads) {
            value = section_take((section *)mine);
        }
        if (error != NULL) {
            fl_raise_again(error);
        }
    }
    fl_thread_waiter_done(waiter);
    if (leads) {
        fl_combine_lead(waitq);
        value = lead(self, function);
    }
    Py_DECREF(mine);
    return value;
}

/* The task's ending: it leads, or its section has been run. */
static PyObject *finish(PyObject *op, fl_end Py_UNUSED(end))
{
    section *self = (section *)op;
    if (self->function == NULL) {
        return section_take(self);
    }
    fl_combine_lead(fl_wrapper_waitq(op));
    return lead((combiner *)self->part.of, self->function);
}

static PyObject *combiner_run_async(PyObject *op, PyObject *function)
{
    PyObject *mine = section_new(op, function);
    PyObject *operation = mine == NULL ? NULL : fl_operation_new(fl_wrapper_state(op), mine, 0, finish);
    Py_XDECREF(mine);
    return operation;
}

static bool held(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, relaxed) != 0; /* a figure to show */
}

static PyObject *combiner_locked(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(held(fl_wrapper_waitq(op)));
}

static PyObject *combiner_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    combiner *self = (combiner *)op;
    fl_waitq *waitq = self->wrapper.waitq;
    long combined = (long)fl_load(&self->combined, relaxed); /* a figure to show */
    long values[] = {held(waitq), (long)fl_waitq_waiting(waitq), combined, (long)self->batch};
    return fl_record(fl_wrapper_state(op)->combiner_statistics, values, 4, 1);
}

static PyObject *repr(PyObject *op)
{
    return fl_wrapper_repr(op, "%s", held(fl_wrapper_waitq(op)) ? "locked" : "unlocked");
}

static PyObject *combiner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *number = NULL;
    int64_t batch = BATCH;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:Combiner", FL_PARAMETERS(Combiner), &number) ||
        (number != NULL && (batch = fl_whole("batch", number, 0, UINT32_MAX / 2, "")) < 0)) {
        return NULL;
    }
    PyObject *self = fl_wrapper_new(type, fl_combine_new());
    if (self != NULL) {
        ((combiner *)self)->batch = (uint32_t)batch;
    }
    return self;
}

PyType_Spec fl_combiner_spec = FL_TYPE("fairlead.sync.extra.Combiner", combiner, 0,
    {Py_tp_new, (void *)combiner_new},
    {Py_tp_repr, (void *)repr},
    FL_WRAPPER_SLOTS(Combiner, combiner_));

PyType_Spec fl_section_spec = FL_TYPE("fairlead.sync.Section", section,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_traverse, (void *)section_traverse},
    {Py_tp_clear, (void *)section_clear},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_members, fl_wrapper_members},
    {0, NULL});
