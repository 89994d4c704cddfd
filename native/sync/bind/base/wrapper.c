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

void fl_wrapper_dealloc(PyObject *self)
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
