/* encode: objects become messages (codec.h), a letter and what belongs to it for each. */
#include "interpreters/bind/codec.h"

#include "sync/bind/base/imports.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    fl_item *item;
    size_t room;
    fl_state *state;
    const fl_sending *sending; /* NULL: nothing goes by reference */
    fl_pin **pins;
    size_t pinned;
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
        if (to->item == NULL) {
            *larger = (fl_item){.refs = 1};
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

/* Takes over the pin. */
static int write_pin(writer *to, char kind, fl_pin *pin)
{
    if (pin == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    fl_pin **more = realloc(to->pins, (to->pinned + 1) * sizeof *more);
    if (more == NULL) {
        fl_pin_unref(pin);
        PyErr_NoMemory();
        return -1;
    }
    to->pins = more;
    to->pins[to->pinned] = pin;
    size_t index = to->pinned++;
    return write_bytes(to, &kind, 1) < 0 ? -1 : write_bytes(to, &index, sizeof index);
}

/* Of contiguous bytes that an object exports. */
static fl_pin *pin_of(const fl_sending *sending, PyObject *exporter)
{
    Py_buffer *buffer = PyMem_RawMalloc(sizeof *buffer);
    if (buffer == NULL || PyObject_GetBuffer(exporter, buffer, PyBUF_SIMPLE) < 0) {
        PyMem_RawFree(buffer);
        return NULL;
    }
    fl_pin *pin;
    if (sending->lender != NULL) {
        pin = fl_pin_lend(sending->lender, buffer, buffer->buf, (size_t)buffer->len, buffer->readonly);
        if (pin != NULL) {
            return pin;
        }
    } else if ((pin = fl_pin_block((size_t)buffer->len)) != NULL) {
        memcpy(pin->bytes, buffer->buf, (size_t)buffer->len);
    }
    PyBuffer_Release(buffer);
    PyMem_RawFree(buffer);
    return pin;
}

/* Of a memoryview of contiguous bytes; one of what was sent here goes on as a part of that. */
static fl_pin *pin_of_view(const writer *to, PyObject *view)
{
    fl_pin *whole = fl_view_pin(to->state, view);
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    return whole == NULL ? pin_of(to->sending, view)
                         : fl_pin_part(whole, buffer->buf, (size_t)buffer->len, buffer->readonly);
}

/* As bytes. */
static int write_flat(writer *to, PyObject *object)
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

/* As a memoryview: of the very same bytes where they are lent, and their format and shape. */
static int write_view(writer *to, PyObject *object)
{
    PyObject *flat = PyMemoryView_GetContiguous(object, PyBUF_READ, 'C');
    if (flat == NULL) {
        return -1;
    }
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(flat);
    const char *format = buffer->format == NULL ? "B" : buffer->format;
    Py_ssize_t dimensions = buffer->ndim;
    int outcome = -1;
    if (write_pin(to, 'M', pin_of_view(to, flat)) == 0 &&
        write_bytes(to, &dimensions, sizeof dimensions) == 0 &&
        write_bytes(to, buffer->shape, (size_t)dimensions * sizeof *buffer->shape) == 0) {
        outcome = write_sized(to, 'b', format, (Py_ssize_t)strlen(format));
    }
    Py_DECREF(flat);
    return outcome;
}

_Thread_local uint32_t fl_sharing FL_THREAD_LOCAL_MODEL;

/* A pickle's stream, and the buffers that it does not contain. */
static int write_pickle(writer *to, PyObject *object)
{
    PyObject *dumps = fl_imported(&to->state->dumps, "pickle", "dumps");
    PyObject *buffers = to->sending == NULL ? NULL : PyList_New(0);
    PyObject *keep = buffers == NULL ? NULL : PyObject_GetAttrString(buffers, "append");
    PyObject *bytes = NULL;
    if (keep != NULL && dumps != NULL) {
        PyObject *args = Py_BuildValue("(Oi)", object, 5);
        PyObject *named = Py_BuildValue("{sO}", "buffer_callback", keep);
        if (args != NULL && named != NULL) {
            FL_SHARING(bytes = PyObject_Call(dumps, args, named));
        }
        Py_XDECREF(args);
        Py_XDECREF(named);
    } else if (dumps != NULL && to->sending == NULL) {
        FL_SHARING(bytes = PyObject_CallFunction(dumps, "Oi", object, 5));
    }
    int outcome = -1;
    Py_ssize_t count = buffers == NULL ? 0 : PyList_GET_SIZE(buffers);
    if (bytes != NULL && PyBytes_Check(bytes)) {
        outcome = write_sized(to, count ? 'P' : 'p', PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    }
    if (outcome == 0 && count > 0) {
        outcome = write_bytes(to, &count, sizeof count);
    }
    for (Py_ssize_t i = 0; outcome == 0 && i < count; i++) {
        PyObject *raw = PyObject_CallMethod(PyList_GET_ITEM(buffers, i), "raw", NULL);
        outcome = raw == NULL ? -1 : write_pin(to, 'M', pin_of_view(to, raw));
        Py_XDECREF(raw);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(keep);
    Py_XDECREF(buffers);
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
        if (to->sending != NULL && PyBytes_GET_SIZE(object) >= FL_LARGE) {
            return write_pin(to, 'B', pin_of(to->sending, object));
        }
        return write_sized(to, 'b', PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    }
    if (PyByteArray_CheckExact(object)) {
        int outcome;
        FL_BEGIN_CRITICAL(object); /* another thread may resize it */
        outcome = write_sized(to, 'a', PyByteArray_AS_STRING(object), PyByteArray_GET_SIZE(object));
        FL_END_CRITICAL();
        return outcome;
    }
    if (PyMemoryView_Check(object)) {
        return to->sending == NULL ? write_flat(to, object) : write_view(to, object);
    }
    if (PyTuple_CheckExact(object)) {
        return write_tuple(to, object);
    }
    return write_pickle(to, object);
}

fl_item *fl_pack(fl_state *state, PyObject *object, const fl_sending *sending)
{
    writer to = {.state = state, .sending = sending};
    int outcome = write_object(&to, object);
    if (to.item == NULL) {
        for (size_t i = 0; i < to.pinned; i++) {
            fl_pin_unref(to.pins[i]);
        }
        free(to.pins);
        return NULL;
    }
    to.item->pins = to.pins;
    to.item->pinned = to.pinned;
    if (outcome < 0) {
        fl_item_unref(to.item);
        return NULL;
    }
    return to.item;
}
