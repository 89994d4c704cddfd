/* See codec.h. A value is a letter and what belongs to it, in this machine's own byte order. */
#include "bind/codec.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    fl_item *item;
    size_t room;
} writer;

static int write_bytes(writer *to, const void *bytes, size_t size)
{
    size_t used = to->item == NULL ? 0 : to->item->size;
    if (to->item == NULL || used + size > to->room) {
        size_t room = 2 * (used + size) + 32;
        fl_item *larger = realloc(to->item, sizeof *larger + room);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        to->item = larger;
        to->room = room;
    }
    memcpy(to->item->bytes + used, bytes, size);
    to->item->size = used + size;
    return 0;
}

static int write_sized(writer *to, char kind, const void *bytes, Py_ssize_t size)
{
    return write_bytes(to, &kind, 1) < 0 || write_bytes(to, &size, sizeof size) < 0 ||
                   write_bytes(to, bytes, (size_t)size) < 0
               ? -1
               : 0;
}

static int write_value(writer *to, char kind, const void *value, size_t size)
{
    return write_bytes(to, &kind, 1) < 0 ? -1 : write_bytes(to, value, size);
}

static int write_text(writer *to, PyObject *text)
{
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text) < 0) {
        return -1;
    }
#endif
    int kind = PyUnicode_KIND(text); /* 1, 2 or 4 bytes for a character */
    char letter = (char)('0' + kind);
    return write_sized(to, letter, PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text) * kind);
}

static int write_view(writer *to, PyObject *object)
{
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) < 0) {
        return -1;
    }
    int outcome = -1;
    char *flat = PyMem_Malloc(view.len ? (size_t)view.len : 1);
    if (flat == NULL) {
        PyErr_NoMemory();
    } else if (PyBuffer_ToContiguous(flat, &view, view.len, 'C') == 0) {
        outcome = write_sized(to, 'b', flat, view.len);
    }
    PyMem_Free(flat);
    PyBuffer_Release(&view);
    return outcome;
}

static int write_pickle(writer *to, PyObject *object)
{
    PyObject *pickle = PyImport_ImportModule("pickle");
    PyObject *bytes = pickle == NULL ? NULL : PyObject_CallMethod(pickle, "dumps", "Oi", object, 5);
    int outcome = -1;
    if (bytes != NULL && PyBytes_Check(bytes)) {
        outcome = write_sized(to, 'p', PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    }
    Py_XDECREF(bytes);
    Py_XDECREF(pickle);
    return outcome;
}

static int write_object(writer *to, PyObject *object);

static int write_tuple(writer *to, PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    if (write_value(to, '(', &count, sizeof count) < 0 || Py_EnterRecursiveCall(" while sending a tuple")) {
        return -1;
    }
    int outcome = 0;
    for (Py_ssize_t i = 0; i < count && outcome == 0; i++) {
        outcome = write_object(to, PyTuple_GET_ITEM(tuple, i));
    }
    Py_LeaveRecursiveCall();
    return outcome;
}

static int write_object(writer *to, PyObject *object)
{
    if (object == Py_None || object == Py_True || object == Py_False) {
        return write_bytes(to, object == Py_None ? "N" : object == Py_True ? "T" : "F", 1);
    }
    if (PyLong_CheckExact(object)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        return overflow ? write_pickle(to, object) : write_value(to, 'i', &value, sizeof value);
    }
    if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AS_DOUBLE(object);
        return write_value(to, 'd', &value, sizeof value);
    }
    if (PyComplex_CheckExact(object)) {
        Py_complex value = PyComplex_AsCComplex(object);
        return write_value(to, 'c', &value, sizeof value);
    }
    if (PyUnicode_CheckExact(object)) {
        return write_text(to, object);
    }
    if (PyBytes_CheckExact(object)) {
        return write_sized(to, 'b', PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    }
    if (PyByteArray_CheckExact(object)) {
        return write_sized(to, 'a', PyByteArray_AS_STRING(object), PyByteArray_GET_SIZE(object));
    }
    if (PyMemoryView_Check(object)) {
        return write_view(to, object);
    }
    if (PyTuple_CheckExact(object)) {
        return write_tuple(to, object);
    }
    return write_pickle(to, object);
}

fl_item *fl_encode(PyObject *object)
{
    writer to = {NULL, 0};
    if (write_object(&to, object) < 0) {
        free(to.item);
        return NULL;
    }
    return to.item;
}

static void read_bytes(const char **at, void *value, size_t size)
{
    memcpy(value, *at, size);
    *at += size;
}

static PyObject *unpickle(const char *bytes, Py_ssize_t size)
{
    PyObject *pickle = PyImport_ImportModule("pickle");
    PyObject *whole = pickle == NULL ? NULL : PyBytes_FromStringAndSize(bytes, size);
    PyObject *object = whole == NULL ? NULL : PyObject_CallMethod(pickle, "loads", "O", whole);
    Py_XDECREF(whole);
    Py_XDECREF(pickle);
    return object;
}

static PyObject *read_sized(char kind, const char **at)
{
    Py_ssize_t size;
    read_bytes(at, &size, sizeof size);
    const char *bytes = *at;
    *at += size;
    switch (kind) {
    case 'b': return PyBytes_FromStringAndSize(bytes, size);
    case 'a': return PyByteArray_FromStringAndSize(bytes, size);
    case 'p': return unpickle(bytes, size);
    default: break;
    }
    int width = kind - '0';
    char *aligned = PyMem_Malloc(size ? (size_t)size : 1);
    if (aligned == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(aligned, bytes, (size_t)size);
    PyObject *text = PyUnicode_FromKindAndData(width, aligned, size / width);
    PyMem_Free(aligned);
    return text;
}

static PyObject *read_object(const char **at)
{
    char kind = *(*at)++;
    long long whole;
    double real;
    Py_complex number;
    Py_ssize_t count;
    switch (kind) {
    case 'N': return Py_NewRef(Py_None);
    case 'T': return Py_NewRef(Py_True);
    case 'F': return Py_NewRef(Py_False);
    case 'i': read_bytes(at, &whole, sizeof whole); return PyLong_FromLongLong(whole);
    case 'd': read_bytes(at, &real, sizeof real); return PyFloat_FromDouble(real);
    case 'c': read_bytes(at, &number, sizeof number); return PyComplex_FromCComplex(number);
    case '(': break;
    default: return read_sized(kind, at);
    }
    read_bytes(at, &count, sizeof count);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *one = read_object(at); /* as deep as what was written, which was bounded */
        if (one == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, one);
        }
    }
    return tuple;
}

PyObject *fl_decode(const fl_item *item)
{
    const char *at = item->bytes;
    return read_object(&at);
}
