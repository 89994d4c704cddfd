/* Event: the flag in core, as threading.Event and asyncio.Event at once; and Gate, which is never cleared. */
#include "bind/wait.h"

#include "core/event.h"

PyDoc_STRVAR(is_set_doc,
"is_set($self, /)\n"
"--\n"
"\n"
"Whether the flag is set.");

static PyObject *is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_flag_is_set(fl_shell_cell(self)));
}

PyDoc_STRVAR(set_doc,
"set($self, /)\n"
"--\n"
"\n"
"Sets the flag and wakes everyone who waits at this moment, even if it is cleared at once. Never waits,\n"
"and a signal handler or a destructor may call it.");

static PyObject *set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_flag_set(fl_shell_cell(self)));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_doc,
"clear($self, /)\n"
"--\n"
"\n"
"Clears the flag.");

static PyObject *clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_flag_clear(fl_shell_cell(self));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(wait_doc,
"wait($self, /, timeout=None)\n"
"--\n"
"\n"
"Waits until the flag is set; False: the time was over first. For threads; tasks await wait_async().");

static PyObject *wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *timeout;
    int64_t deadline;
    if (fl_arguments("wait", names, args, count, kwnames, &timeout) < 0 ||
        fl_deadline_parse(NULL, timeout, &deadline) < 0) {
        return NULL;
    }
    int woken = fl_flag_is_set(fl_shell_cell(self));
    if (!woken && deadline > 0) {
        woken = fl_wait_thread(fl_shell_cell(self), 0, 0, deadline);
    }
    return woken < 0 ? NULL : PyBool_FromLong(woken);
}

PyDoc_STRVAR(wait_async_doc,
"wait_async($self, /)\n"
"--\n"
"\n"
"An awaitable that waits until the flag is set, and returns True. For tasks.");

static PyObject *wait_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_ticket_new(fl_shell_state(self), self, 0, NULL);
}

PyDoc_STRVAR(statistics_doc,
"statistics($self, /)\n"
"--\n"
"\n"
"A record of the moment: is_set, waiting (threads and tasks).");

static PyObject *statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_cell *cell = fl_shell_cell(self);
    long values[] = {fl_flag_is_set(cell), (long)fl_cell_waiting(cell)};
    return fl_record(fl_shell_state(self)->event_statistics, values, 2, 1);
}

static PyObject *repr(PyObject *self)
{
    fl_cell *cell = fl_shell_cell(self);
    return PyUnicode_FromFormat("<%s %s, %u waiting, at %p>", Py_TYPE(self)->tp_name,
                                fl_flag_is_set(cell) ? "set" : "unset",
                                (unsigned)fl_cell_waiting(cell), (void *)self);
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Event", names)) {
        return NULL;
    }
    return fl_shell_new(type, fl_flag_new());
}

PyDoc_STRVAR(is_open_doc,
"is_open($self, /)\n"
"--\n"
"\n"
"Whether it was open, a moment ago.");

PyDoc_STRVAR(open_doc,
"open($self, /)\n"
"--\n"
"\n"
"Lets everyone pass, those who come later too. Never waits; wakes two threads, of which each wakes two\n"
"more before it goes on.");

static PyObject *gate_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Gate", names)) {
        return NULL;
    }
    return fl_shell_new(type, fl_gate_new());
}

static PyMethodDef gate_methods[] = {
    {"is_open", is_set, METH_NOARGS, is_open_doc},
    {"open", set, METH_NOARGS, open_doc},
    {"wait", FL_METHOD(wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(gate_type_doc,
"Gate()\n"
"--\n"
"\n"
"A flag that is set once: what fairlead.sync.StartGate is made of.");

static PyType_Slot gate_slots[] = {
    {Py_tp_new, (void *)gate_new},
    {Py_tp_dealloc, (void *)fl_shell_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, gate_methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)gate_type_doc},
    {0, NULL},
};

static PyType_Spec gate_spec = {
    .name = "fairlead._native.Gate",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = gate_slots,
};

static PyMethodDef methods[] = {
    {"is_set", is_set, METH_NOARGS, is_set_doc},
    {"set", set, METH_NOARGS, set_doc},
    {"clear", clear, METH_NOARGS, clear_doc},
    {"wait", FL_METHOD(wait), METH_FASTCALL | METH_KEYWORDS, wait_doc},
    {"wait_async", wait_async, METH_NOARGS, wait_async_doc},
    {"statistics", statistics, METH_NOARGS, statistics_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(type_doc,
"Event()\n"
"--\n"
"\n"
"A flag that threads and tasks wait for.\n"
"\n"
"As threading.Event, and with wait_async() as asyncio.Event. In a forked child it is as it was at the fork,\n"
"and nobody waits.");

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)event_new},
    {Py_tp_dealloc, (void *)fl_shell_dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_methods, methods},
    {Py_tp_members, fl_shell_members},
    {Py_tp_doc, (void *)(uintptr_t)type_doc},
    {0, NULL},
};

static PyType_Spec event_spec = {
    .name = "fairlead.sync.Event",
    .basicsize = sizeof(fl_shell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyStructSequence_Field fields[] = {
    {"is_set", "whether the flag is set"},
    {"waiting", "threads and tasks that wait"},
    {NULL, NULL},
};

static PyStructSequence_Desc desc = {
    .name = "fairlead.sync.EventStatistics",
    .doc = "An event at one moment.",
    .fields = fields,
    .n_in_sequence = 2,
};

int fl_event_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->event_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &event_spec, NULL);
    state->gate_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &gate_spec, NULL);
    state->event_statistics = PyStructSequence_NewType(&desc);
    if (state->event_type == NULL || state->gate_type == NULL || state->event_statistics == NULL ||
        PyModule_AddType(module, state->event_type) < 0 || PyModule_AddType(module, state->gate_type) < 0) {
        return -1;
    }
    return PyModule_AddType(module, state->event_statistics);
}
