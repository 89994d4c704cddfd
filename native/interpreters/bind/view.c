/* View: the bytes of a pin as an object that memoryview() takes, in any interpreter. And what becomes of
 * buffers that were lent.
 */
#include "interpreters/bind/codec.h"

typedef struct {
    PyObject_HEAD
    fl_pin *pin;
} view_object;

PyObject *fl_view_new(fl_state *state, fl_pin *pin)
{
    view_object *self = PyObject_New(view_object, state->view_type);
    if (self == NULL) {
        fl_pin_unref(pin);
        return NULL;
    }
    self->pin = pin;
    return (PyObject *)self;
}

fl_pin *fl_view_pin(fl_state *state, PyObject *memoryview)
{
    PyObject *base = PyMemoryView_GET_BASE(memoryview);
    return base != NULL && Py_TYPE(base) == state->view_type ? ((view_object *)base)->pin : NULL;
}

void fl_settle_loans(fl_lender *lender)
{
    fl_pin *next;
    for (fl_pin *pin = fl_lender_take(lender); pin != NULL; pin = next) {
        next = pin->next;
        PyBuffer_Release(pin->buffer);
        PyMem_RawFree(pin->buffer);
        fl_pin_free(pin);
    }
}

static int get_buffer(PyObject *op, Py_buffer *buffer, int flags)
{
    const fl_pin *pin = ((view_object *)op)->pin;
    return PyBuffer_FillInfo(buffer, op, pin->bytes, (Py_ssize_t)pin->size, pin->readonly, flags);
}

static void dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    fl_pin_unref(((view_object *)op)->pin);
    PyObject_Free(op);
    Py_DECREF(type);
}

PyType_Spec fl_view_spec = FL_TYPE("fairlead._native.View", view_object, Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_dealloc, (void *)dealloc},
    {Py_bf_getbuffer, (void *)get_buffer},
    {0, NULL});

static PyObject *message(PyObject *module, PyObject *value)
{
    fl_item *item = fl_pack(fl_state_of(module), value, NULL);
    PyObject *bytes = item == NULL ? NULL : PyBytes_FromStringAndSize(item->bytes, (Py_ssize_t)item->size);
    fl_item_unref(item);
    return bytes;
}

static PyObject *from_message(PyObject *module, PyObject *bytes)
{
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "a message is bytes");
        return NULL;
    }
    return fl_decode(fl_state_of(module), PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

PyMethodDef fl_view_functions[] = {
    {"message", message, METH_O, FL_DOC(module, message)},
    {"from_message", from_message, METH_O, FL_DOC(module, from_message)},
    {NULL, NULL, 0, NULL},
};
