/* StripedCounter: the counter in core. Nothing waits for it, so it has no wait queue. */
#include "sync/bind/base/wait.h"

#include "machine/cores.h"
#include "sync/wait/counter.h"

typedef struct {
    PyObject_HEAD
    fl_counter *counter;
    PyObject *weak;
} striped;

static fl_counter *counter_of(PyObject *op)
{
    return ((striped *)op)->counter;
}

static PyObject *whole(fl_wide sum)
{
    if (sum.high == ((int64_t)sum.low < 0 ? -1 : 0)) {
        return PyLong_FromLongLong((int64_t)sum.low);
    }
    PyObject *high = PyLong_FromLongLong(sum.high), *low = PyLong_FromUnsignedLongLong(sum.low);
    PyObject *bits = PyLong_FromLong(64), *result = NULL;
    PyObject *shifted = high == NULL || bits == NULL ? NULL : PyNumber_Lshift(high, bits);
    if (shifted != NULL && low != NULL) {
        result = PyNumber_Add(shifted, low);
    }
    Py_XDECREF(shifted);
    Py_XDECREF(bits);
    Py_XDECREF(low);
    Py_XDECREF(high);
    return result;
}

static PyObject *counter_add(PyObject *op, PyObject *number)
{
    long long by = PyLong_AsLongLong(number);
    if (by == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_SetString(PyExc_OverflowError, "n must fit in 64 bits with its sign: add it in parts");
        }
        return NULL;
    }
    fl_counter_add(counter_of(op), fl_owner_thread(), by);
    Py_RETURN_NONE;
}

static PyObject *counter_increment(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_counter_add(counter_of(op), fl_owner_thread(), 1);
    Py_RETURN_NONE;
}

static PyObject *counter_decrement(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_counter_add(counter_of(op), fl_owner_thread(), -1);
    Py_RETURN_NONE;
}

static PyObject *counter_sum(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return whole(fl_counter_sum(counter_of(op)));
}

static PyObject *counter_sum_and_reset(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return whole(fl_counter_take(counter_of(op)));
}

static PyObject *counter_reset(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_counter_take(counter_of(op));
    Py_RETURN_NONE;
}

static PyObject *counter_statistics(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_state *state = (fl_state *)PyType_GetModuleState(Py_TYPE(op));
    PyObject *all = counter_sum(op, NULL);
    PyObject *record = all == NULL ? NULL : PyStructSequence_New(state->striped_statistics);
    PyObject *stripes = record == NULL ? NULL : PyLong_FromUnsignedLong(counter_of(op)->stripes);
    if (stripes == NULL) {
        Py_XDECREF(record);
        Py_XDECREF(all);
        return NULL;
    }
    PyStructSequence_SetItem(record, 0, all);
    PyStructSequence_SetItem(record, 1, stripes);
    return record;
}

static PyObject *as_int(PyObject *op)
{
    return counter_sum(op, NULL);
}

static PyObject *repr(PyObject *op)
{
    PyObject *all = counter_sum(op, NULL);
    if (all == NULL) {
        return NULL;
    }
    PyObject *text = PyUnicode_FromFormat("<%s sum=%S, %u stripes, at %p>", Py_TYPE(op)->tp_name, all,
                                          (unsigned)counter_of(op)->stripes, (void *)op);
    Py_DECREF(all);
    return text;
}

static PyObject *striped_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *value = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:StripedCounter", FL_PARAMETERS(StripedCounter),
                                     &value)) {
        return NULL;
    }
    striped *self = (striped *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
#ifdef Py_GIL_DISABLED
    self->counter = fl_counter_new((uint32_t)fl_cores_online());
#else
    self->counter = fl_counter_new(1); /* one thread adds at a time */
#endif
    if (self->counter == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    PyObject *added = value == NULL ? Py_NewRef(Py_None) : counter_add((PyObject *)self, value);
    if (added == NULL) {
        Py_CLEAR(self);
    }
    Py_XDECREF(added);
    return (PyObject *)self;
}

static void dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (((striped *)op)->weak != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    fl_counter_free(counter_of(op));
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(striped, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyType_Spec fl_striped_spec = FL_TYPE("fairlead.sync.StripedCounter", striped, 0,
    {Py_tp_new, (void *)striped_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_nb_int, (void *)as_int},
    {Py_tp_members, members},
    FL_SLOTS(StripedCounter, counter_));
