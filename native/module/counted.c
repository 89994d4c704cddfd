/* Counted: an iterator that writes into memory how far it has come. A process that shares the memory sees it
 * when this one is dead. In C, because it is a part of each call of a chunk.
 */
#include "sync/bind/base/state.h"

#include <stddef.h>

#include "machine/atomic.h"

typedef struct {
    PyObject_HEAD
    PyObject *items; /* a tuple */
    Py_ssize_t number, stop;
    Py_buffer memory;
} counted;

static PyObject *counted_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *items, *memory;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Counted", FL_PARAMETERS(Counted), &items, &memory)) {
        return NULL;
    }
    counted *self = (counted *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->items = PySequence_Tuple(items);
    if (self->items == NULL || PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->memory.len < (Py_ssize_t)sizeof(uint64_t)
        || (uintptr_t)self->memory.buf % sizeof(uint64_t) != 0) {
        PyErr_SetString(PyExc_ValueError, "the memory must be eight bytes, aligned");
        Py_DECREF(self);
        return NULL;
    }
    self->stop = PyTuple_GET_SIZE(self->items);
    return (PyObject *)self;
}

static int clear(PyObject *op)
{
    Py_CLEAR(((counted *)op)->items);
    return 0;
}

static void dealloc(PyObject *op)
{
    counted *self = (counted *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    clear(op);
    PyBuffer_Release(&self->memory); /* which may be none yet */
    type->tp_free(op);
    Py_DECREF(type);
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    counted *self = (counted *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->items);
    Py_VISIT(self->memory.obj);
    return 0;
}

static PyObject *next(PyObject *op)
{
    counted *self = (counted *)op;
    if (self->items == NULL || self->number >= self->stop || self->number >= PyTuple_GET_SIZE(self->items)) {
        return NULL;
    }
    PyObject *item = PyTuple_GET_ITEM(self->items, self->number);
    self->number++;
    fl_store((fl_atomic(uint64_t) *)self->memory.buf, (uint64_t)self->number, release);
    return Py_NewRef(item);
}

static PyMemberDef members[] = {
    {"number", T_PYSSIZET, offsetof(counted, number), READONLY, FL_DOC(Counted, number)},
    {"stop", T_PYSSIZET, offsetof(counted, stop), 0, FL_DOC(Counted, stop)},
    {NULL, 0, 0, 0, NULL},
};

PyType_Spec fl_counted_spec = FL_TYPE("fairlead._native.Counted", counted, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)counted_new},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)next},
    {Py_tp_members, members},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(Counted)},
    {0, NULL});
