/* See codec.h. A value is a letter and what belongs to it, in this machine's own byte order. */
#include "bind/codec.h"

#include "bind/wait.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    fl_item *item;
    size_t room;
    const fl_sending *sending;
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
static fl_pin *pin_of_view(const fl_sending *sending, PyObject *view)
{
    fl_pin *whole = fl_view_pin(sending->state, view);
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    return whole == NULL ? pin_of(sending, view)
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
    if (write_pin(to, 'M', pin_of_view(to->sending, flat)) == 0 &&
        write_bytes(to, &dimensions, sizeof dimensions) == 0 &&
        write_bytes(to, buffer->shape, (size_t)dimensions * sizeof *buffer->shape) == 0) {
        outcome = write_sized(to, 'b', format, (Py_ssize_t)strlen(format));
    }
    Py_DECREF(flat);
    return outcome;
}

/* A pickle's stream, and the buffers that it does not contain. */
static int write_pickle(writer *to, PyObject *object)
{
    PyObject *pickle = PyImport_ImportModule("pickle");
    PyObject *dumps = pickle == NULL ? NULL : PyObject_GetAttrString(pickle, "dumps");
    PyObject *buffers = to->sending == NULL ? NULL : PyList_New(0);
    PyObject *keep = buffers == NULL ? NULL : PyObject_GetAttrString(buffers, "append");
    PyObject *bytes = NULL;
    if (keep != NULL && dumps != NULL) {
        PyObject *args = Py_BuildValue("(Oi)", object, 5);
        PyObject *named = Py_BuildValue("{sO}", "buffer_callback", keep);
        bytes = args == NULL || named == NULL ? NULL : PyObject_Call(dumps, args, named);
        Py_XDECREF(args);
        Py_XDECREF(named);
    } else if (dumps != NULL && to->sending == NULL) {
        bytes = PyObject_CallFunction(dumps, "Oi", object, 5);
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
        outcome = raw == NULL ? -1 : write_pin(to, 'M', pin_of_view(to->sending, raw));
        Py_XDECREF(raw);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(keep);
    Py_XDECREF(buffers);
    Py_XDECREF(dumps);
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

fl_item *fl_pack(PyObject *object, const fl_sending *sending)
{
    writer to = {.sending = sending};
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

fl_item *fl_encode(PyObject *object)
{
    return fl_pack(object, NULL);
}

typedef struct {
    fl_state *state; /* NULL: it refers to nothing */
    fl_pin **pins;
    size_t pinned;
    const char *at, *end;
} reader;

static int damaged(void)
{
    fl_raise("SerializationError", "a message is damaged: it ends before its time, or is none");
    return -1;
}

/* Bytes where they are; NULL: there are not so many. */
static const char *read_bytes(reader *from, size_t size)
{
    if ((size_t)(from->end - from->at) < size) {
        damaged();
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
        damaged();
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
        damaged();
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
        damaged();
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
        PyObject *view = pin == NULL ? NULL : view_of(from, pin);
        if (view == NULL || PyList_Append(buffers, view) < 0) {
            Py_CLEAR(buffers);
        }
        Py_XDECREF(view);
    }
    if (with_buffers && buffers == NULL) {
        return NULL;
    }
    PyObject *pickle = PyImport_ImportModule("pickle");
    PyObject *loads = pickle == NULL ? NULL : PyObject_GetAttrString(pickle, "loads");
    PyObject *args = loads == NULL ? NULL : Py_BuildValue("(y#)", bytes, size);
    PyObject *named = args == NULL || buffers == NULL ? NULL : Py_BuildValue("{sO}", "buffers", buffers);
    bool ready = args != NULL && (buffers == NULL || named != NULL);
    PyObject *object = ready ? PyObject_Call(loads, args, named) : NULL;
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(loads);
    Py_XDECREF(pickle);
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
        damaged();
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
        damaged();
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
    default: damaged(); return NULL;
    }
}

static PyObject *read_whole(reader *from)
{
    PyObject *object = read_object(from);
    if (object != NULL && from->at != from->end) {
        Py_CLEAR(object);
        damaged();
    }
    return object;
}

PyObject *fl_unpack(fl_state *state, const fl_item *item)
{
    reader from = {state, item->pins, item->pinned, item->bytes, item->bytes + item->size};
    return read_whole(&from);
}

PyObject *fl_decode(const fl_item *item)
{
    return fl_decode_bytes(item->bytes, item->size);
}

PyObject *fl_decode_bytes(const char *bytes, size_t size)
{
    reader from = {NULL, NULL, 0, bytes, bytes + size};
    return read_whole(&from);
}
