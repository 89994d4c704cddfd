/* Event: the flag in core, as threading.Event and asyncio.Event at once; and Gate, which is never cleared. */
#include "sync/bind/base/wait.h"

#include "sync/coordination/event.h"

static PyObject *is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_flag_is_set(fl_wrapper_waitq(self)));
}

static PyObject *set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_flag_set(fl_wrapper_waitq(self)));
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_flag_clear(fl_wrapper_waitq(self));
    Py_RETURN_NONE;
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int woken = fl_flag_is_set(fl_wrapper_waitq(self));
    if (!woken && deadline > 0) {
        woken = fl_wait_thread(self, fl_wrapper_waitq(self), 0, 0, deadline);
    }
    return woken < 0 ? NULL : PyBool_FromLong(woken);
}

static PyObject *wait_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 0, NULL);
}

static PyObject *statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {fl_flag_is_set(waitq), (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(self)->event_statistics, values, 2, 1);
}

static PyObject *repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return PyUnicode_FromFormat("<%s %s, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                fl_flag_is_set(waitq) ? "set" : "unset",
                                (unsigned)fl_waitq_waiting(waitq), (void *)self);
}

/* How much: a whole number from `least` on; -1 with an exception set. */
static int64_t parse_count(const char *name, PyObject *number, int least)
{
    long long count = PyLong_AsLongLong(number);
    if (count == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (count < least || count > FL_COUNT_MOST) {
        PyErr_Format(PyExc_ValueError, "%s must be %d or more, and at most %u", name, least, FL_COUNT_MOST);
        return -1;
    }
    return count;
}

static PyObject *change(PyObject *self, const char *method, PyObject *const *args, Py_ssize_t count,
                        PyObject *kwnames, bool (*by)(fl_waitq *waitq, uint32_t count), const char *refusal)
{
    static const char *const names[] = {"n", NULL};
    int64_t number = 1;
    if (count > 0 || kwnames != NULL) {
        PyObject *value;
        if (fl_arguments(method, names, args, count, kwnames, &value) < 0 ||
            (number = parse_count("n", value, 1)) < 0) {
            return NULL;
        }
    }
    bool done;
    FL_WAKING(done = by(fl_wrapper_waitq(self), (uint32_t)number));
    if (!done) {
        return fl_raise("TooManyReleasesError", refusal);
    }
    Py_RETURN_NONE;
}

static PyObject *count_down(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_down", args, count, kwnames, fl_count_down,
                  "the latch was counted down more often than it counts");
}

static PyObject *event_count_down(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_down", args, count, kwnames, fl_count_down,
                  "the event was counted down below nothing");
}

static PyObject *count_up(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_up", args, count, kwnames, fl_count_up, "the event counts no further");
}

static PyObject *count_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)fl_count_value(waitq), (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(self)->count_statistics, values, 2, 0);
}

static PyObject *get_value(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(fl_count_value(fl_wrapper_waitq(self)));
}

static PyObject *count_repr(PyObject *self)
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    return PyUnicode_FromFormat("<%s value=%u, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                (unsigned)fl_count_value(waitq), (unsigned)fl_waitq_waiting(waitq),
                                (void *)self);
}

/* Not literals: see permits.c. */
static char count_word[] = "count", value_word[] = "value";

static PyObject *latch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {count_word, NULL};
    PyObject *number;
    int64_t count;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Latch", names, &number) ||
        (count = parse_count("count", number, 0)) < 0) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_count_new((uint32_t)count));
}

static PyObject *countdown_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {value_word, NULL};
    PyObject *number = NULL;
    int64_t count = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:CountdownEvent", names, &number) ||
        (number != NULL && (count = parse_count("value", number, 0)) < 0)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_count_new((uint32_t)count));
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Event", names)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_flag_new());
}

static PyObject *gate_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Gate", names)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_flag_new());
}

static PyMethodDef gate_methods[] = {
    {"is_open", is_set, METH_NOARGS, FL_DOC(Gate, is_open)},
    {"open", set, METH_NOARGS, FL_DOC(Gate, open)},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, FL_DOC(Gate, wait)},
    {"wait_async", wait_async, METH_NOARGS, FL_DOC(Gate, wait_async)},
    {"statistics", statistics, METH_NOARGS, FL_DOC(Gate, statistics)},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot gate_slots[] = {
    {Py_tp_new, (void *)gate_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, gate_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(Gate)},
    {0, NULL},
};

static PyType_Spec gate_spec = FL_TYPE("fairlead._native.Gate", sizeof(fl_wrapper), 0, gate_slots);

static PyMethodDef methods[] = {
    {"is_set", is_set, METH_NOARGS, FL_DOC(Event, is_set)},
    {"set", set, METH_NOARGS, FL_DOC(Event, set)},
    {"clear", clear, METH_NOARGS, FL_DOC(Event, clear)},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, FL_DOC(Event, wait)},
    {"wait_async", wait_async, METH_NOARGS, FL_DOC(Event, wait_async)},
    {"statistics", statistics, METH_NOARGS, FL_DOC(Event, statistics)},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef latch_methods[] = {
    {"count_down", FL_METHOD(count_down), METH_FASTCALL | METH_KEYWORDS, FL_DOC(Latch, count_down)},
    {"is_set", is_set, METH_NOARGS, FL_DOC(Latch, is_set)},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, FL_DOC(Latch, wait)},
    {"wait_async", wait_async, METH_NOARGS, FL_DOC(Latch, wait_async)},
    {"statistics", count_statistics, METH_NOARGS, FL_DOC(Latch, statistics)},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef countdown_methods[] = {
    {"count_up", FL_METHOD(count_up), METH_FASTCALL | METH_KEYWORDS, FL_DOC(CountdownEvent, count_up)},
    {"count_down", FL_METHOD(event_count_down),
     METH_FASTCALL | METH_KEYWORDS, FL_DOC(CountdownEvent, count_down)},
    {"is_set", is_set, METH_NOARGS, FL_DOC(CountdownEvent, is_set)},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, FL_DOC(CountdownEvent, wait)},
    {"wait_async", wait_async, METH_NOARGS, FL_DOC(CountdownEvent, wait_async)},
    {"statistics", count_statistics, METH_NOARGS, FL_DOC(CountdownEvent, statistics)},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef count_fields_got[] = {
    {"value", get_value, NULL, FL_DOC(CountdownEvent, value), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)event_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(Event)},
    {0, NULL},
};

static PyType_Slot latch_slots[] = {
    {Py_tp_new, (void *)latch_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)count_repr},
    {Py_tp_methods, latch_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_getset, count_fields_got},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(Latch)},
    {0, NULL},
};

static PyType_Slot countdown_slots[] = {
    {Py_tp_new, (void *)countdown_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)count_repr},
    {Py_tp_methods, countdown_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_getset, count_fields_got},
    {Py_tp_doc, (void *)(uintptr_t)FL_TYPE_DOC(CountdownEvent)},
    {0, NULL},
};

static PyType_Spec latch_spec = FL_TYPE("fairlead.sync.Latch", sizeof(fl_wrapper), 0, latch_slots);

static PyType_Spec countdown_spec =
    FL_TYPE("fairlead.sync.CountdownEvent", sizeof(fl_wrapper), 0, countdown_slots);

static PyType_Spec event_spec = FL_TYPE("fairlead.sync.Event", sizeof(fl_wrapper), 0, slots);

FL_RECORD(desc, "fairlead.sync", EventStatistics);

FL_RECORD(count_desc, "fairlead.sync", CountdownStatistics);

int fl_event_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->event_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &event_spec, NULL);
    state->gate_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &gate_spec, NULL);
    state->latch_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &latch_spec, NULL);
    state->countdown_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &countdown_spec, NULL);
    state->event_statistics = PyStructSequence_NewType(&desc);
    state->count_statistics = PyStructSequence_NewType(&count_desc);
    PyTypeObject *types[] = {state->event_type,     state->gate_type,        state->latch_type,
                             state->countdown_type, state->event_statistics, state->count_statistics};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types));
}
