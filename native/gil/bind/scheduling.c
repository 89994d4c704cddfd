/* The scheduler, for Python. */
#include "gil/bind/module.h"

#include "gil/hooks/control.h"
#include "gil/hooks/hooks.h"
#include "gil/schedule/schedule.h"
#include "gil/schedule/counts.h"
#include "gil/threads/patience.h"

#ifndef FL_PROBE_REFUSAL

PyDoc_STRVAR(schedule_doc,
"schedule($module, mode, share, spin, for_ns, trial, /)\n"
"--\n"
"\n"
"Schedule all GILs: mode 0 stock, 1 interactive; share in 1024ths; for so\n"
"long, or 0 for ever. False: this is a trial, and an order of another\n"
"process is in force, which stays.\n"
"\n"
"Puts the hooks in for good; they rest until a thread waits for the GIL\n"
"where this is the only one. Raises UnsupportedInterpreterError where they\n"
"cannot be.");

static PyObject *probe_schedule(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    static bool installed;
    int mode, share, spin, trial;
    unsigned long long for_ns;
    if (!PyArg_ParseTuple(arguments, "iipKp:schedule", &mode, &share, &spin, &for_ns, &trial)) {
        return NULL;
    }
    if (mode < FL_MODE_STOCK || mode > FL_MODE_INTERACTIVE || share < 1 || share >= FL_SHARE_ONE) {
        PyErr_SetString(PyExc_ValueError, "the mode or the share is out of range");
        return NULL;
    }
    fl_module_enter();
    const char *failure = fl_module_prepare();
    bool first = !installed;
    if (!failure && first) {
        failure = fl_hooks_install();
        installed = !failure;
    }
    if (!failure) {
        uint64_t until = for_ns ? fl_ticks_now() + fl_ticks_from_ns(for_ns) : FL_FOREVER;
        fl_policy_mode wanted = (fl_policy_mode)mode;
        failure = fl_schedule_set((fl_schedule_settings){wanted, share, spin != 0, until, trial != 0});
    }
    if (!failure && first && !for_ns) { /* the end of its time is announced when it comes */
        fl_hooks_rest();
    }
    fl_module_leave();
    if (failure) {
        return fl_module_fail("UnsupportedInterpreterError", failure);
    }
    return PyBool_FromLong(!trial || !fl_schedule_ordered());
}

PyDoc_STRVAR(scheduler_doc,
"scheduler($module, /)\n"
"--\n"
"\n"
"What the scheduler of the main interpreter's GIL has done, as a dict. Hooks\n"
"that rest go in for it.");

static int add_counts(PyObject *dict, const fl_schedule_count *counts, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (fl_module_add(dict, counts[i].name, fl_module_number(counts[i].value)) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *probe_scheduler(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fl_module_enter();
    const char *failure = fl_hooks_wake(); /* so that orders are obeyed when the program next looks */
    fl_schedule_state state = fl_schedule_look();
    fl_module_leave();
    if (failure) {
        return fl_module_fail("UnsupportedInterpreterError", failure);
    }
    const fl_schedule_count present[] = {
        {"mode", (uint64_t)state.mode}, {"waiting", state.waiting}, {"tripped", state.tripped},
        {"trips", state.trips},         {"off", state.off},         {"scheduled_ns", state.scheduled_ns},
        {"canary", state.canary},
    };
    fl_schedule_count counts[FL_SCHEDULE_COUNTS];
    fl_schedule_counts(&state, counts);
    PyObject *dict = PyDict_New();
    if (dict
        && (add_counts(dict, present, sizeof present / sizeof *present) < 0
            || add_counts(dict, counts, FL_SCHEDULE_COUNTS) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

PyDoc_STRVAR(control_doc,
"control($module, /)\n"
"--\n"
"\n"
"Make the page by which other processes give orders; forked children make\n"
"their own. True unless the system has no room for one.");

static PyObject *probe_control(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fl_module_enter();
    bool open = fl_control_open();
    fl_module_leave();
    return PyBool_FromLong(open);
}

PyDoc_STRVAR(canary_doc,
"canary($module, state, /)\n"
"--\n"
"\n"
"Say that a canary tries the policy (1), kept it (2) or not (3), or none is\n"
"there (0).");

static PyObject *probe_canary(PyObject *Py_UNUSED(module), PyObject *argument)
{
    long state = PyLong_AsLong(argument);
    if (state == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (state < FL_CANARY_NONE || state >= FL_CANARIES) {
        PyErr_SetString(PyExc_ValueError, "the state is out of range");
        return NULL;
    }
    fl_schedule_canary((fl_canary)state);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(priority_doc,
"priority($module, priority, /)\n"
"--\n"
"\n"
"Set the present thread's priority (0 normal, 1 io, 2 background); returns\n"
"the one before.");

static PyObject *probe_priority(PyObject *Py_UNUSED(module), PyObject *argument)
{
    long priority = PyLong_AsLong(argument);
    if (priority == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (priority < FL_PRIORITY_NORMAL || priority > FL_PRIORITY_BACKGROUND) {
        PyErr_SetString(PyExc_ValueError, "the priority is out of range");
        return NULL;
    }
    return PyLong_FromLong((long)fl_schedule_priority((fl_priority)priority));
}

PyMethodDef fl_module_scheduling[] = {
    {"schedule", probe_schedule, METH_VARARGS, schedule_doc},
    {"scheduler", probe_scheduler, METH_NOARGS, scheduler_doc},
    {"control", probe_control, METH_NOARGS, control_doc},
    {"canary", probe_canary, METH_O, canary_doc},
    {"priority", probe_priority, METH_O, priority_doc},
    {NULL, NULL, 0, NULL},
};

#endif
