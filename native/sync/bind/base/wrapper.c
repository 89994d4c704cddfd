/* What every primitive's object is made of. */
#include "sync/bind/base/wrapper.h"

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
