/* Taker: the base of a stream, which gives the outcomes that it has one by one. In C, because that is a part
 * of each call.
 */
#include "sync/bind/base/state.h"

#include <stddef.h>

typedef struct {
    PyObject_HEAD
    PyObject *outcomes, *failure; /* either may be NULL */
} taker;

static int clear(PyObject *op)
{
    Py_CLEAR(((taker *)op)->outcomes);
    Py_CLEAR(((taker *)op)->failure);
    return 0;
}

static void dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    taker *self = (taker *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->outcomes);
    Py_VISIT(self->failure);
    return 0;
}

static PyObject *next(PyObject *op)
{
    taker *self = (taker *)op;
    fl_state *state = fl_type_state(Py_TYPE(op));
    PyObject *outcomes, *item = NULL;
    FL_BEGIN_CRITICAL(op); /* another thread may set it */
    outcomes = Py_XNewRef(self->outcomes);
    FL_END_CRITICAL();
    if (outcomes != NULL) {
        item = PyObject_CallMethodNoArgs(outcomes, state->name_popleft);
        Py_DECREF(outcomes);
        if (item == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_IndexError)) {
                return NULL;
            }
            PyErr_Clear();
        }
    }
    if (item == NULL) {
        return PyObject_CallMethodNoArgs(op, state->name_next);
    }
    if ((PyObject *)Py_TYPE(item) == self->failure) {
        Py_SETREF(item, PyObject_CallMethodOneArg(op, state->name_raise, item));
    }
    return item;
}

static PyMemberDef members[] = {
    {"_outcomes", T_OBJECT_EX, offsetof(taker, outcomes), 0, FL_DOC(Taker, _outcomes)},
    {"_failure", T_OBJECT_EX, offsetof(taker, failure), 0, FL_DOC(Taker, _failure)},
    {NULL, 0, 0, 0, NULL},
};

PyType_Spec fl_taker_spec = FL_TYPE("fairlead._native.Taker", taker, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)next},
    {Py_tp_members, members},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(Taker)},
    {0, NULL});
