/* The extension fairlead._probe. Use it through fairlead.gil. */
#include "gil/bind/module.h"

#include <string.h>
#include <time.h>

#include "gil/hooks/hooks.h"
#include "gil/observe/observe.h"
#include "gil/observe/snapshot.h"
#include "gil/observe/outside.h"
#include "gil/observe/stacks.h"
#include "gil/trace/loops.h"

PyObject *fl_module_fail(const char *error, const char *text)
{
    PyObject *errors = PyImport_ImportModule("fairlead.errors");
    PyObject *type = errors ? PyObject_GetAttrString(errors, error) : NULL;
    if (type) {
        PyErr_SetString(type, text);
    }
    Py_XDECREF(type);
    Py_XDECREF(errors);
    return NULL;
}

#ifdef FL_PROBE_REFUSAL

PyDoc_STRVAR(
    open_doc,
    "open($module, /)\n--\n\nRaises UnsupportedInterpreterError: there is no GIL here that could be "
    "observed.");

static PyObject *probe_open(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return fl_module_fail("UnsupportedInterpreterError", FL_PROBE_REFUSAL);
}

static PyMethodDef probe_methods[] = {
    {"open", probe_open, METH_NOARGS, open_doc},
    {NULL, NULL, 0, NULL},
};

#else

int fl_module_add(PyObject *dict, const char *name, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

PyObject *fl_module_number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

/* ---- One at a time */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

void fl_module_enter(void)
{
    while (pthread_mutex_trylock(&gate) != 0) {
        Py_BEGIN_ALLOW_THREADS
        struct timespec moment = {0, 100000};
        nanosleep(&moment, NULL);
        Py_END_ALLOW_THREADS
    }
}

void fl_module_leave(void)
{
    pthread_mutex_unlock(&gate);
}

/* ---- Windows */

/* Under the gate. The counts at the moment when each window was opened. */
static fl_snapshot bases[FL_WINDOWS];
static bool window_open[FL_WINDOWS];
static uint64_t thresholds[FL_WINDOWS]; /* ns; UINT64_MAX: none */

/* The windows that this interpreter has opened through this module. */
typedef struct {
    unsigned windows; /* bits */
} module_state;

static module_state *state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* Stacks are sampled for the whole process, from the smallest threshold that any window asks for. Under the
   gate. */
static void apply_thresholds(void)
{
    uint64_t least = UINT64_MAX;
    for (int window = 0; window < FL_WINDOWS; window++) {
        if (window_open[window] && thresholds[window] < least) {
            least = thresholds[window];
        }
    }
    fl_observe_threshold(least);
}

/* Under the gate. */
static void close_window(module_state *state, int window)
{
    fl_window_close(window);
    fl_snapshot_free(&bases[window]);
    window_open[window] = false;
    apply_thresholds();
    state->windows &= ~(1u << window);
    fl_hooks_release();
}

/* An interpreter that ends closes the windows that it left open. The main interpreter leaves them: the
   process ends with it, and a thread that no longer runs may hold the gate. */
static void probe_free(void *module)
{
    module_state *state = state_of(module);
    if (state == NULL || !state->windows || PyInterpreterState_Get() == PyInterpreterState_Main()) {
        return;
    }
    fl_module_enter();
    for (int window = 0; window < FL_WINDOWS; window++) {
        if (state->windows >> window & 1) {
            close_window(state, window);
        }
    }
    fl_module_leave();
}

/* In the child of a fork: windows that are open count from now on. */
static void forked(void)
{
    pthread_mutex_init(&gate, NULL);
    memset(bases, 0, sizeof bases);
    for (int window = 0; window < FL_WINDOWS; window++) {
        bases[window].ticks = fl_ticks_now();
    }
}

static void observers_forked(void)
{
    fl_stacks_fork();
    fl_outside_fork();
    fl_snapshot_fork();
    fl_loops_fork();
}

const char *fl_module_prepare(void)
{
    static bool prepared;
    if (!prepared) {
        const char *failure = fl_hooks_prepare(observers_forked);
        if (!failure && pthread_atfork(NULL, NULL, forked) != 0) {
            failure = "there is no memory left";
        }
        if (failure) {
            return failure;
        }
        fl_observe_threshold(UINT64_MAX);
        prepared = true;
    }
    return NULL;
}

PyDoc_STRVAR(open_doc,
"open($module, /)\n"
"--\n"
"\n"
"Begin to count, and return the number of a window for read() and close().\n"
"\n"
"The first window puts the hooks in. Raises UnsupportedInterpreterError where\n"
"they cannot be, and UsageError when too many windows are open.");

static PyObject *probe_open(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    int window = 0;
    fl_window_result result = FL_WINDOW_OK;
    fl_snapshot base = {0};
    fl_module_enter();
    const char *failure = fl_module_prepare();
    if (!failure) {
        failure = fl_hooks_install();
    }
    if (!failure) {
        fl_hooks_observe(&fl_observe);
        (void)fl_stacks_prepare();
        result = fl_window_open(&window, &base);
        if (result == FL_WINDOW_OK) {
            bases[window] = base;
            window_open[window] = true;
            thresholds[window] = UINT64_MAX;
            state_of(module)->windows |= 1u << window;
        } else {
            fl_hooks_release();
        }
    }
    fl_module_leave();
    if (failure) {
        return fl_module_fail("UnsupportedInterpreterError", failure);
    }
    if (result == FL_WINDOW_TOO_MANY) {
        return fl_module_fail("UsageError", "too many observations at once (8): end one first");
    }
    return result == FL_WINDOW_OK ? PyLong_FromLong(window) : PyErr_NoMemory();
}

PyDoc_STRVAR(readable_doc,
"readable($module, /)\n"
"--\n"
"\n"
"Whether stacks can be read: frames look as the interpreter itself says.");

static PyObject *probe_readable(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_stacks_readable());
}

const fl_snapshot *fl_module_window(long window)
{
    if (window >= 0 && window < FL_WINDOWS && window_open[window]) {
        return &bases[window];
    }
    PyErr_SetString(PyExc_ValueError, "this window is not open");
    return NULL;
}

PyDoc_STRVAR(close_doc,
"close($module, window, /)\n"
"--\n"
"\n"
"Close a window. With the last one the hooks are taken out.");

static PyObject *probe_close(PyObject *module, PyObject *argument)
{
    long window = PyLong_AsLong(argument);
    if (window == -1 && PyErr_Occurred()) {
        return NULL;
    }
    fl_module_enter();
    bool open = fl_module_window(window) != NULL;
    if (open) {
        close_window(state_of(module), (int)window);
    }
    fl_module_leave();
    if (!open) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(threshold_doc,
"threshold($module, window, ns, /)\n"
"--\n"
"\n"
"Set from which length of a wait on this window wants its stacks sampled;\n"
"None: never. Stacks are shared by all windows of the process, so the\n"
"smallest threshold of them counts.");

static PyObject *probe_threshold(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int window;
    PyObject *wanted;
    if (!PyArg_ParseTuple(arguments, "iO:threshold", &window, &wanted)) {
        return NULL;
    }
    uint64_t ns = wanted == Py_None ? UINT64_MAX : PyLong_AsUnsignedLongLong(wanted);
    if (PyErr_Occurred()) {
        return NULL;
    }
    fl_module_enter();
    bool open = fl_module_window(window) != NULL;
    if (open) {
        thresholds[window] = ns;
        apply_thresholds();
    }
    fl_module_leave();
    if (!open) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef probe_methods[] = {
    {"open", probe_open, METH_NOARGS, open_doc},
    {"close", probe_close, METH_O, close_doc},
    {"readable", probe_readable, METH_NOARGS, readable_doc},
    {"threshold", probe_threshold, METH_VARARGS, threshold_doc},
    {NULL, NULL, 0, NULL},
};

static int probe_exec(PyObject *module)
{
    return PyModule_AddFunctions(module, fl_module_loops) < 0
                   || PyModule_AddFunctions(module, fl_module_reading) < 0
                   || PyModule_AddFunctions(module, fl_module_recording) < 0
                   || PyModule_AddFunctions(module, fl_module_scheduling) < 0
                   || PyModule_AddFunctions(module, fl_module_serving) < 0
               ? -1
               : 0;
}

#endif

static PyModuleDef_Slot probe_slots[] = {
#ifndef FL_PROBE_REFUSAL
    {Py_mod_exec, (void *)probe_exec},
#endif
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef probe_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fairlead._probe",
    .m_doc = "Hooks into the interpreter's GIL. Use it through fairlead.gil.",
    .m_methods = probe_methods,
#ifndef FL_PROBE_REFUSAL
    .m_size = sizeof(module_state),
    .m_free = probe_free,
#endif
    .m_slots = probe_slots,
};

PyMODINIT_FUNC PyInit__probe(void);

PyMODINIT_FUNC PyInit__probe(void)
{
    return PyModuleDef_Init(&probe_module);
}
