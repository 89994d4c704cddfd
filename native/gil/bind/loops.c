/* What watched event loops report, from Python. */
#include "gil/bind/module.h"

#include "gil/trace/loops.h"

#ifndef FL_PROBE_REFUSAL

PyDoc_STRVAR(loop_open_doc,
"loop_open($module, name, due_ns, /)\n"
"--\n"
"\n"
"Watch the event loop of the thread of this name; returns its number, or -1\n"
"where too many are watched. Its first beat is due at due_ns, on time.monotonic().");

static PyObject *probe_loop_open(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *name;
    unsigned long long due_ns;
    if (!PyArg_ParseTuple(arguments, "sK:loop_open", &name, &due_ns)) {
        return NULL;
    }
    fl_module_enter();
    int number = fl_loops_open(name, due_ns);
    fl_module_leave();
    return PyLong_FromLong(number);
}

PyDoc_STRVAR(loop_beat_doc,
"loop_beat($module, number, delay_ns, late, own_ns, gil_ns, core_ns, callback, due_ns, /)\n"
"--\n"
"\n"
"Count a beat of that loop, and what made it late; the next is due at due_ns.\n"
"The callback is the one that took own_ns, or None.");

static PyObject *probe_loop_beat(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int number, late;
    const char *callback;
    unsigned long long delay_ns, own_ns, gil_ns, core_ns, due_ns;
    if (!PyArg_ParseTuple(arguments, "iKpKKKzK:loop_beat", &number, &delay_ns, &late, &own_ns, &gil_ns,
                          &core_ns, &callback, &due_ns)) {
        return NULL;
    }
    if (number >= 0 && number < FL_LOOPS) {
        fl_loop_beat beat = {
            .delay = delay_ns, .late = late, .own = own_ns, .gil = gil_ns, .core = core_ns};
        fl_module_enter();
        fl_loops_beat(number, &beat, callback, due_ns);
        fl_module_leave();
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(loop_close_doc,
"loop_close($module, number, /)\n"
"--\n"
"\n"
"Stop watching that loop; what it counted stays.");

static PyObject *probe_loop_close(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int number;
    if (!PyArg_ParseTuple(arguments, "i:loop_close", &number)) {
        return NULL;
    }
    if (number >= 0 && number < FL_LOOPS) {
        fl_module_enter();
        fl_loops_close(number);
        fl_module_leave();
    }
    Py_RETURN_NONE;
}

PyMethodDef fl_module_loops[] = {
    {"loop_open", probe_loop_open, METH_VARARGS, loop_open_doc},
    {"loop_beat", probe_loop_beat, METH_VARARGS, loop_beat_doc},
    {"loop_close", probe_loop_close, METH_VARARGS, loop_close_doc},
    {NULL, NULL, 0, NULL},
};

#endif
