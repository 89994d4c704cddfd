/* Waiter of fairlead.lowlevel: one wait. It is granted or given up, whichever is first, in one step of C. */
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include "sync/coordination/event.h"

typedef enum { OPEN, GRANTED, CANCELLED } outcome;

typedef struct {
    fl_wrapper wrapper; /* over a flag: it was granted */
    PyObject *value;    /* set once, with the outcome */
    outcome outcome;    /* within the critical section */
} lowlevel_waiter;

/* Whether this is the first. */
static bool settle(PyObject *op, outcome how, PyObject *value)
{
    lowlevel_waiter *self = (lowlevel_waiter *)op;
    bool first;
    FL_BEGIN_CRITICAL(op);
    first = self->outcome == OPEN;
    if (first) {
        self->outcome = how;
        self->value = Py_XNewRef(value);
    }
    FL_END_CRITICAL();
    return first;
}

static PyObject *waiter_grant(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"value", NULL};
    PyObject *value;
    if (fl_arguments("grant", names, args, count, kwnames, &value) < 0) {
        return NULL;
    }
    bool first = settle(op, GRANTED, value == NULL ? Py_None : value);
    if (first) {
        FL_WAKING(fl_flag_set(fl_wrapper_waitq(op)));
    }
    return PyBool_FromLong(first);
}

static PyObject *waiter_cancel(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(settle(op, CANCELLED, NULL));
}

static PyObject *waiter_wait(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return fl_wait_for_zero("wait", op, args, count, kwnames);
}

static PyObject *waiter_wait_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(op), op, 0, NULL);
}

static PyObject *get_value(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *value;
    FL_BEGIN_CRITICAL(op);
    value = Py_XNewRef(((lowlevel_waiter *)op)->value);
    FL_END_CRITICAL();
    return value == NULL ? Py_NewRef(Py_None) : value;
}

static PyObject *waiter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":Waiter", FL_PARAMETERS(Waiter))
               ? fl_wrapper_new(type, fl_flag_new())
               : NULL;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((lowlevel_waiter *)op)->value);
    return 0;
}

static int clear(PyObject *op)
{
    Py_CLEAR(((lowlevel_waiter *)op)->value);
    return 0;
}

static PyGetSetDef getters[] = {
    {"value", get_value, NULL, FL_DOC(Waiter, value), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_waiter_spec = FL_TYPE("fairlead.lowlevel.Waiter", lowlevel_waiter, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)waiter_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS(Waiter, waiter_));
