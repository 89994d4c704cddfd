/* decode: messages become objects (codec.h); whatever has come, no byte behind its end is read. */
#include "interpreters/bind/codec.h"

#include "sync/bind/base/imports.h"

#include <string.h>

typedef struct {
    fl_state *state;
    fl_pin **pins;
    size_t pinned;
    const char *at, *end;
} reader;

static int damaged(const reader *from)
{
    fl_raise(from->state, SerializationError, "a message is damaged: it is incomplete, or not a message");
    return -1;
}

/* Bytes where they are; NULL: there are not so many. */
static const char *read_bytes(reader *from, size_t size)
{
    if ((size_t)(from->end - from->at) < size) {
        damaged(from);
        return NULL;
    }
    const char *bytes = from->at;
    from->at += size;
    return bytes;
}

static int read_value(reader *from, void *value, size_t size)
{
    const char *bytes = read_bytes(from, size);
    if (bytes == NULL) {
        return -1;
    }
    memcpy(value, bytes, size);
    return 0;
}

/* Bytes behind their number. */
static const char *read_sized(reader *from, Py_ssize_t *size)
{
    if (read_value(from, size, sizeof *size) < 0) {
        return NULL;
    }
    if (*size < 0) {
        damaged(from);
        return NULL;
    }
    return read_bytes(from, (size_t)*size);
}

/* Borrowed. */
static fl_pin *read_pin(reader *from)
{
    size_t index;
    if (read_value(from, &index, sizeof index) < 0) {
        return NULL;
    }
    if (index >= from->pinned) {
        damaged(from);
        return NULL;
    }
    return from->pins[index];
}

static PyObject *view_of(reader *from, fl_pin *pin)
{
    fl_pin_ref(pin);
    PyObject *view = fl_view_new(from->state, pin);
    PyObject *memory = view == NULL ? NULL : PyMemoryView_FromObject(view);
    Py_XDECREF(view);
    return memory;
}

static PyObject *read_view(reader *from)
{
    fl_pin *pin = read_pin(from);
    Py_ssize_t dimensions, length, one;
    if (pin == NULL || read_value(from, &dimensions, sizeof dimensions) < 0) {
        return NULL;
    }
    if (dimensions < 0 || dimensions > PyBUF_MAX_NDIM) {
        damaged(from);
        return NULL;
    }
    PyObject *shape = PyTuple_New(dimensions);
    for (Py_ssize_t i = 0; shape != NULL && i < dimensions; i++) {
        PyObject *size = read_value(from, &one, sizeof one) < 0 ? NULL : PyLong_FromSsize_t(one);
        if (size == NULL) {
            Py_CLEAR(shape);
        } else {
            PyTuple_SET_ITEM(shape, i, size);
        }
    }
    char kind;
    const char *format = shape == NULL || read_value(from, &kind, 1) < 0 ? NULL : read_sized(from, &length);
    PyObject *flat = format == NULL ? NULL : view_of(from, pin);
    PyObject *view = flat;
    if (flat != NULL && (dimensions != 1 || length != 1 || *format != 'B')) {
        view = PyObject_CallMethod(flat, "cast", "s#O", format, length, shape);
        if (view == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) { /* a format that nothing is cast to */
            PyErr_Clear();
            view = Py_NewRef(flat);
        }
        Py_DECREF(flat);
    }
    Py_XDECREF(shape);
    return view;
}

static PyObject *read_pickle(reader *from, bool with_buffers)
{
    Py_ssize_t size, count = 0;
    const char *bytes = read_sized(from, &size);
    if (bytes == NULL || (with_buffers && read_value(from, &count, sizeof count) < 0)) {
        return NULL;
    }
    PyObject *buffers = with_buffers ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; buffers != NULL && i < count; i++) {
        char kind;
        fl_pin *pin = read_value(from, &kind, 1) < 0 ? NULL : read_pin(from);
        buffers = fl_appended(buffers, pin == NULL ? NULL : view_of(from, pin));
    }
    if (with_buffers && buffers == NULL) {
        return NULL;
    }
    PyObject *loads = fl_imported(&from->state->loads, "pickle", "loads");
    PyObject *args = loads == NULL ? NULL : Py_BuildValue("(y#)", bytes, size);
    PyObject *named = args == NULL || buffers == NULL ? NULL : Py_BuildValue("{sO}", "buffers", buffers);
    bool ready = args != NULL && (buffers == NULL || named != NULL);
    PyObject *object = ready ? PyObject_Call(loads, args, named) : NULL;
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(buffers);
    return object;
}

static PyObject *read_text(reader *from, int width)
{
    Py_ssize_t size;
    const char *bytes = read_sized(from, &size);
    if (bytes == NULL) {
        return NULL;
    }
    char *aligned = PyMem_Malloc(size ? (size_t)size : 1);
    if (aligned == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(aligned, bytes, (size_t)size);
    PyObject *text = NULL;
    bool sound = size % width == 0;
    for (Py_ssize_t i = 0; width == 4 && sound && i < size; i += 4) {
        Py_UCS4 character;
        memcpy(&character, aligned + i, sizeof character);
        sound = character <= 0x10ffff;
    }
    if (sound) {
        text = PyUnicode_FromKindAndData(width, aligned, size / width);
    } else {
        damaged(from);
    }
    PyMem_Free(aligned);
    return text;
}

static PyObject *read_object(reader *from);

static PyObject *read_tuple(reader *from)
{
    Py_ssize_t count;
    if (read_value(from, &count, sizeof count) < 0) {
        return NULL;
    }
    if (count < 0 || count > from->end - from->at) {
        damaged(from);
        return NULL;
    }
    if (Py_EnterRecursiveCall(" while reading a tuple")) {
        return NULL;
    }
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *one = read_object(from);
        if (one == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, one);
        }
    }
    Py_LeaveRecursiveCall();
    return tuple;
}

static PyObject *read_object(reader *from)
{
    char kind;
    long long whole;
    double real;
    Py_complex number;
    Py_ssize_t size;
    const char *bytes;
    fl_pin *pin;
    if (read_value(from, &kind, 1) < 0) {
        return NULL;
    }
    switch (kind) {
    case 'N': return Py_NewRef(Py_None);
    case 'T': return Py_NewRef(Py_True);
    case 'F': return Py_NewRef(Py_False);
    case 'i': return read_value(from, &whole, sizeof whole) < 0 ? NULL : PyLong_FromLongLong(whole);
    case 'd': return read_value(from, &real, sizeof real) < 0 ? NULL : PyFloat_FromDouble(real);
    case 'c': return read_value(from, &number, sizeof number) < 0 ? NULL : PyComplex_FromCComplex(number);
    case 'b':
        bytes = read_sized(from, &size);
        return bytes == NULL ? NULL : PyBytes_FromStringAndSize(bytes, size);
    case 'a':
        bytes = read_sized(from, &size);
        return bytes == NULL ? NULL : PyByteArray_FromStringAndSize(bytes, size);
    case 'B':
        pin = read_pin(from);
        return pin == NULL ? NULL : PyBytes_FromStringAndSize(pin->bytes, (Py_ssize_t)pin->size);
    case 'M': return read_view(from);
    case 'p': return read_pickle(from, false);
    case 'P': return read_pickle(from, true);
    case '1': return read_text(from, 1);
    case '2': return read_text(from, 2);
    case '4': return read_text(from, 4);
    case '(': return read_tuple(from);
    default: damaged(from); return NULL;
    }
}

static PyObject *read_whole(reader *from)
{
    PyObject *object = read_object(from);
    if (object != NULL && from->at != from->end) {
        Py_CLEAR(object);
        damaged(from);
    }
    return object;
}

PyObject *fl_unpack(fl_state *state, const fl_item *item)
{
    reader from = {state, item->pins, item->pinned, item->bytes, item->bytes + item->size};
    return read_whole(&from);
}

PyObject *fl_decode(fl_state *state, const char *bytes, size_t size)
{
    reader from = {state, NULL, 0, bytes, bytes + size};
    return read_whole(&from);
}
