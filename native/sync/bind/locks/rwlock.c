/* RWLock and its three views: the readers-writer lock in core, by the books of rwlock_holding.c. */
#include "sync/bind/locks/rwlock_holding.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/task.h"

static PyObject *side_acquire(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    return fl_truth(fl_rwlock_come_in(op, deadline));
}

static PyObject *side_acquire_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(op), op, NULL, ((fl_rwlock_view *)op)->mode, fl_rwlock_attempt,
                           fl_rwlock_finish);
}

static PyObject *side_release(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_none(fl_rwlock_leave(fl_rwlock_of_view(op), ((fl_rwlock_view *)op)->mode, FL_RW_NONE));
}

static PyObject *side_locked(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t word = fl_rw_word(fl_rwlock_of_view(op)->wrapper.waitq);
    uint32_t mode = ((fl_rwlock_view *)op)->mode;
    return PyBool_FromLong(!fl_rw_fits(word, mode));
}

static PyObject *side_holders(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_rwlock *self = fl_rwlock_of_view(op);
    PyObject *list = PyList_New(0);
    FL_BEGIN_CRITICAL(self);
    for (uint32_t i = 0; list != NULL && i < self->holders.room; i++) {
        const fl_rw_hold *hold = &self->holders.at[i];
        uint64_t owner = hold->task != NULL ? hold->thread | FL_OWNER_TASK : hold->thread;
        list = fl_holders_append(list, owner, hold->task, hold->writes > 0);
    }
    FL_END_CRITICAL();
    return list;
}

static PyObject *side_enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_truth(fl_rwlock_come_in(op, FL_FOREVER));
}

static PyObject *side_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return side_release(op, NULL);
}

static PyObject *side_aenter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_enter(fl_wrapper_state(op), op, NULL, ((fl_rwlock_view *)op)->mode,
                              fl_rwlock_attempt, fl_rwlock_finish);
}

static PyObject *side_aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    PyObject *released = side_release(op, NULL);
    Py_XDECREF(released);
    return released == NULL ? NULL : fl_operation_done(fl_wrapper_state(op));
}

static const char *const mode_names[] = {"", "reading", "upgradable", "writing"};

static PyObject *side_repr(PyObject *op)
{
    const fl_rwlock_view *view = (fl_rwlock_view *)op;
    return PyUnicode_FromFormat("<%s %s of %R>", Py_TYPE(op)->tp_name, mode_names[view->mode], view->part.of);
}

PyType_Spec fl_side_spec = FL_TYPE("fairlead.sync.RWLockView", fl_rwlock_view,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_repr, (void *)side_repr},
    FL_PART_SLOTS(RWLockView, side_));

/* A view is made when it is asked for: kept in the lock it would be a cycle. */
static PyObject *view(PyObject *op, void *mode)
{
    fl_rwlock_view *made = (fl_rwlock_view *)fl_part_new(fl_wrapper_state(op)->side_type, op);
    if (made != NULL) {
        made->mode = (uint32_t)(uintptr_t)mode;
    }
    return (PyObject *)made;
}

static PyObject *rwlock_downgrade(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_none(fl_rwlock_leave(fl_rwlock_begin(op), FL_RW_NONE, FL_RW_READ));
}

static PyObject *rwlock_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_rwlock_begin(op)->wrapper.waitq;
    uint64_t word = fl_rw_word(waitq);
    long values[] = {(long)(uint32_t)word, (word & FL_RW_UPGRADABLE) != 0, (word & FL_RW_WRITER) != 0,
                     (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(op)->rwlock_statistics, values, 4, 6);
}

static PyObject *repr(PyObject *op)
{
    uint64_t word = fl_rw_word(fl_rwlock_begin(op)->wrapper.waitq);
    const char *state = word & FL_RW_WRITER ? "writing" : word & FL_RW_UPGRADABLE ? "upgradable" : "open";
    return fl_wrapper_repr(op, "%s, %u readers", state, (unsigned)word);
}

static PyObject *rwlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":RWLock", FL_PARAMETERS(RWLock))) {
        return NULL;
    }
    fl_rwlock *self = (fl_rwlock *)fl_wrapper_new(type, fl_rw_new());
    if (self != NULL) {
        fl_store(&self->generation, fl_fork_generation, relaxed); /* no other thread has it yet */
    }
    return (PyObject *)self;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    const fl_holders *holders = &((fl_rwlock *)op)->holders;
    for (uint32_t i = 0; i < holders->room; i++) {
        Py_VISIT(holders->at[i].task);
    }
    return 0;
}

static int clear(PyObject *op)
{
    fl_holders gone = ((fl_rwlock *)op)->holders;
    ((fl_rwlock *)op)->holders = (fl_holders){0};
    for (uint32_t i = 0; i < gone.room; i++) {
        Py_XDECREF(gone.at[i].task);
    }
    PyMem_RawFree(gone.at);
    return 0;
}

static PyGetSetDef getters[] = {
    {"reading", view, NULL, "The view of readers.", (void *)FL_RW_READ},
    {"upgradable", view, NULL, "The view of a reader that may write next.", (void *)FL_RW_UPGRADE},
    {"writing", view, NULL, "The view of writers.", (void *)FL_RW_WRITE},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_rwlock_spec = FL_TYPE("fairlead.sync.RWLock", fl_rwlock, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)rwlock_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(RWLock, rwlock_));
