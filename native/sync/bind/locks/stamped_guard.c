/* What `with` is given of a StampedLock: comes in, and goes out by the stamp that it got. */
#include "sync/bind/locks/stamped.h"

typedef struct {
    PyObject_HEAD
    PyObject *lock, *stamp;
    int kind;
} visit;

PyObject *fl_stamped_visiting(PyObject *op, void *kind)
{
    fl_state *state = fl_wrapper_state(op);
    visit *made = PyObject_New(visit, state->visit_type);
    if (made != NULL) {
        made->lock = Py_NewRef(op);
        made->stamp = NULL;
        made->kind = (int)(uintptr_t)kind;
    }
    return (PyObject *)made;
}

static void visit_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_DECREF(((visit *)op)->lock);
    Py_XDECREF(((visit *)op)->stamp);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *refuse_again(void)
{
    PyErr_SetString(PyExc_RuntimeError, "this was entered before: ask the lock for another");
    return NULL;
}

static PyObject *visit_enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    visit *self = (visit *)op;
    if (self->stamp != NULL) {
        return refuse_again();
    }
    PyObject *got = fl_stamped_acquire(self->lock, self->kind, FL_FOREVER);
    self->stamp = Py_XNewRef(got);
    return got;
}

static PyObject *visit_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    visit *self = (visit *)op;
    if (self->stamp == NULL) {
        return fl_raise(fl_wrapper_state(op), NotHeldError, "this was not entered");
    }
    return fl_stamped_release(self->lock, self->stamp);
}

static PyObject *finish_visit(PyObject *op, PyObject *item, bool Py_UNUSED(refused))
{
    visit *self = (visit *)item;
    PyObject *got = fl_stamped_came_in(op, self->kind);
    Py_XSETREF(self->stamp, Py_XNewRef(got));
    return got;
}

static PyObject *visit_aenter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    visit *self = (visit *)op;
    if (self->stamp != NULL) {
        return refuse_again();
    }
    return fl_stamped_operation(self->lock, self->kind, finish_visit, op);
}

static PyObject *visit_aexit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    PyObject *released = visit_exit(op, args, count);
    Py_XDECREF(released);
    return released == NULL ? NULL : fl_operation_done(fl_wrapper_state(((visit *)op)->lock));
}

PyType_Spec fl_stamped_visit_spec = FL_TYPE("fairlead.sync.StampedGuard", visit,
    Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_dealloc, (void *)visit_dealloc},
    FL_SLOTS(StampedGuard, visit_));
