/* Wrappers: how they are made and how they end; and the handoffs of a meeting. */
#include "sync/bind/base/wait.h"

#include "sync/coordination/event.h"

PyMemberDef fl_wrapper_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(fl_wrapper, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyObject *fl_wrapper_new(PyTypeObject *type, fl_waitq *waitq)
{
    if (waitq == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *errors = fl_errors(fl_type_state(type));
    fl_wrapper *self = errors == NULL ? NULL : (fl_wrapper *)type->tp_alloc(type, 0);
    if (self == NULL) {
        fl_waitq_unref(waitq);
        return NULL;
    }
    self->waitq = waitq;
    return (PyObject *)self;
}

static void free_wrapper(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((fl_wrapper *)self)->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    fl_shared *shared = fl_load(&((fl_wrapper *)self)->shared, relaxed); /* no other thread has this object */
    if (shared != NULL) {
        fl_shared_unref(shared);
    }
    if (((fl_wrapper *)self)->waitq != NULL) {
        fl_waitq_unref(((fl_wrapper *)self)->waitq);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

void fl_wrapper_dealloc(PyObject *self)
{
    PyTypeObject *own = fl_own_type(Py_TYPE(self));
    if (!PyType_IS_GC(own)) {
        free_wrapper(self);
        return;
    }
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, fl_wrapper_dealloc)
    if (own->tp_clear != NULL) {
        own->tp_clear(self);
    }
    free_wrapper(self);
    Py_TRASHCAN_END
}

PyObject *fl_wrapper_repr(PyObject *self, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *state = PyUnicode_FromFormatV(format, values);
    va_end(values);
    PyObject *shown = state == NULL ? NULL
                                    : PyUnicode_FromFormat("<%s %U, %u waiting, at %p>",
                                                           Py_TYPE(self)->tp_name, state,
                                                           (unsigned)fl_waitq_waiting(fl_wrapper_waitq(self)),
                                                           (void *)self);
    Py_XDECREF(state);
    return shown;
}

PyObject *fl_part_new(PyTypeObject *type, PyObject *of)
{
    fl_waitq_ref(fl_wrapper_waitq(of));
    fl_part *self = (fl_part *)fl_wrapper_new(type, fl_wrapper_waitq(of));
    if (self != NULL) {
        self->of = Py_NewRef(of);
    }
    return (PyObject *)self;
}

int fl_part_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((fl_part *)self)->of);
    return 0;
}

void fl_part_dealloc(PyObject *self)
{
    PyObject *of = ((fl_part *)self)->of;
    PyObject_GC_UnTrack(self);
    free_wrapper(self);
    Py_XDECREF(of);
}

PyObject *fl_refuse_copy(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyErr_Format(PyExc_TypeError, "cannot copy a %s: pass on the object itself", Py_TYPE(self)->tp_name);
    return NULL;
}

fl_handoff *fl_handoff_new(PyObject *object)
{
    fl_handoff *handoff = PyMem_RawMalloc(sizeof *handoff);
    if (handoff == NULL) {
        return (fl_handoff *)PyErr_NoMemory();
    }
    *handoff = (fl_handoff){.object = Py_NewRef(object)};
    return handoff;
}

void fl_handoff_drop(fl_handoff *handoff)
{
    if (handoff != NULL) {
        PyObject *object = handoff->object;
        PyMem_RawFree(handoff);
        Py_DECREF(object);
    }
}

PyObject *fl_wait_for_zero(const char *function, PyObject *what, PyObject *const *args, Py_ssize_t count,
                           PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument(function, args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int zero = fl_flag_is_set(fl_wrapper_waitq(what));
    if (!zero && deadline > 0) {
        zero = fl_wait_thread(what, fl_wrapper_waitq(what), 0, (fl_stake){0}, deadline);
    }
    return fl_truth(zero);
}
