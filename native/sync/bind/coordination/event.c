/* Event: the flag in core, as threading.Event and asyncio.Event at once; and Gate, which is never cleared. */
#include "sync/bind/base/wait.h"

#include "sync/coordination/event.h"

FL_DOC(is_set_doc, "is_set($self, /)",
"Whether the flag is set, or what is counted has come to nothing.");

static PyObject *is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_flag_is_set(fl_wrapper_waitq(self)));
}

FL_DOC(set_doc, "set($self, /)",
"Sets the flag and wakes all that wait at this moment, even if it is cleared at once. Never waits, and a\n"
"signal handler or a destructor may call it. Of more than eight threads it wakes two, and each of them\n"
"another one before it goes on.");

static PyObject *set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_flag_set(fl_wrapper_waitq(self)));
    Py_RETURN_NONE;
}

FL_DOC(clear_doc, "clear($self, /)",
"Clears the flag.");

static PyObject *clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_flag_clear(fl_wrapper_waitq(self));
    Py_RETURN_NONE;
}

FL_DOC(wait_doc, "wait($self, /, timeout=None)",
"Waits until it is set; False: the time was over first. For threads; tasks await wait_async().");

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

FL_DOC(wait_async_doc, "wait_async($self, /)",
"An awaitable that waits until it is set, and returns True. For tasks.");

static PyObject *wait_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 0, NULL);
}

FL_DOC(statistics_doc, "statistics($self, /)",
"A record of the moment: is_set, waiting (threads and tasks).");

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

FL_DOC(count_down_doc, "count_down($self, /, n=1)",
"Says that n of what is waited for have come. Never waits, and a signal handler or a destructor may call\n"
"it. Raises TooManyReleasesError (a ValueError) when fewer than n are to come; then none is counted.");

static PyObject *count_down(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_down", args, count, kwnames, fl_count_down,
                  "the latch was counted down more often than it counts");
}

FL_DOC(event_count_down_doc, "count_down($self, /, n=1)",
"As Latch.count_down().");

static PyObject *event_count_down(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_down", args, count, kwnames, fl_count_down,
                  "the event was counted down below nothing");
}

FL_DOC(count_up_doc, "count_up($self, /, n=1)",
"Says that n more are to come. Never waits, and a signal handler or a destructor may call it.");

static PyObject *count_up(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return change(self, "count_up", args, count, kwnames, fl_count_up, "the event counts no further");
}

FL_DOC(count_statistics_doc, "statistics($self, /)",
"A record of the moment: value (what is still to come), waiting (threads and tasks).");

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

FL_DOC(is_open_doc, "is_open($self, /)",
"Whether it was open, a moment ago.");

FL_DOC(open_doc, "open($self, /)",
"Lets all waiters pass, and all later ones, as Event.set().");

static PyObject *gate_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Gate", names)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_flag_new());
}

static PyMethodDef gate_methods[] = {
    {"is_open", is_set, METH_NOARGS, is_open_doc},
    {"open", set, METH_NOARGS, open_doc},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

FL_DOC(gate_type_doc, "Gate()",
"A flag that is set once: what fairlead.sync.StartGate is made of.");

static PyType_Slot gate_slots[] = {
    {Py_tp_new, (void *)gate_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, gate_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)gate_type_doc},
    {0, NULL},
};

static PyType_Spec gate_spec = FL_TYPE("fairlead._native.Gate", sizeof(fl_wrapper), 0, gate_slots);

static PyMethodDef methods[] = {
    {"is_set", is_set, METH_NOARGS, is_set_doc},
    {"set", set, METH_NOARGS, set_doc},
    {"clear", clear, METH_NOARGS, clear_doc},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef latch_methods[] = {
    {"count_down", FL_METHOD(count_down), METH_FASTCALL | METH_KEYWORDS, count_down_doc},
    {"is_set", is_set, METH_NOARGS, is_set_doc},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", count_statistics, METH_NOARGS, count_statistics_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef countdown_methods[] = {
    {"count_up", FL_METHOD(count_up), METH_FASTCALL | METH_KEYWORDS, count_up_doc},
    {"count_down", FL_METHOD(event_count_down), METH_FASTCALL | METH_KEYWORDS, event_count_down_doc},
    {"is_set", is_set, METH_NOARGS, is_set_doc},
    {"wait", FL_METHOD(event_wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", count_statistics, METH_NOARGS, count_statistics_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef count_fields_got[] = {
    {"value", get_value, NULL, "What is still to come.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

FL_DOC(latch_type_doc, "Latch(count)",
"Opens for good when it has been counted down so often; threads and tasks wait for that.\n"
"\n"
"In a forked child it counts what it counted at the fork, and there are no waiters.");

FL_DOC(countdown_type_doc, "CountdownEvent(value=0)",
"Is set while what it counts has come to nothing; unlike a Latch it may be counted up again.\n"
"\n"
"All that wait when the count reaches zero are woken, even if it is counted up at once. In a forked child\n"
"it counts what it counted at the fork, and there are no waiters.");

FL_DOC(type_doc, "Event()",
"A flag that threads and tasks wait for.\n"
"\n"
"As threading.Event, and with wait_async() as asyncio.Event. In a forked child it is as it was at the\n"
"fork, without waiters.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)event_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Slot latch_slots[] = {
    {Py_tp_new, (void *)latch_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)count_repr},
    {Py_tp_methods, latch_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_getset, count_fields_got},
    {Py_tp_doc, (void *)(uintptr_t)latch_type_doc},
    {0, NULL},
};

static PyType_Slot countdown_slots[] = {
    {Py_tp_new, (void *)countdown_new},
    {Py_tp_dealloc, (void *)fl_wrapper_dealloc},
    {Py_tp_repr, (void *)count_repr},
    {Py_tp_methods, countdown_methods},
    {Py_tp_members, fl_wrapper_members},
    {Py_tp_getset, count_fields_got},
    {Py_tp_doc, (void *)(uintptr_t)countdown_type_doc},
    {0, NULL},
};

static PyType_Spec latch_spec = FL_TYPE("fairlead.sync.Latch", sizeof(fl_wrapper), 0, latch_slots);

static PyType_Spec countdown_spec =
    FL_TYPE("fairlead.sync.CountdownEvent", sizeof(fl_wrapper), 0, countdown_slots);

static PyType_Spec event_spec = FL_TYPE("fairlead.sync.Event", sizeof(fl_wrapper), 0, slots);

FL_RECORD(desc, "fairlead.sync.EventStatistics", "An event at one moment.",
    {"is_set", "whether the flag is set"},
    {"waiting", "threads and tasks that wait"}
);

FL_RECORD(count_desc, "fairlead.sync.CountdownStatistics", "A latch or a countdown at one moment.",
    {"value", "what is still to come"},
    {"waiting", "threads and tasks that wait"}
);

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
