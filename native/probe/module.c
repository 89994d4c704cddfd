/* The extension fairlead._probe. Use it through fairlead.gil. */
#include "probe/compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe/hooks.h"
#include "probe/observe.h"
#include "probe/recorder.h"
#include "probe/registry.h"
#include "probe/schedule.h"
#include "probe/snapshot.h"
#include "probe/stacks.h"

static PyObject *fail(const char *error, const char *text)
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
    "open($module, /)\n--\n\nRaises UnsupportedInterpreter: there is no GIL here that could be observed.");

static PyObject *probe_open(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return fail("UnsupportedInterpreter", FL_PROBE_REFUSAL);
}

static PyMethodDef probe_methods[] = {
    {"open", probe_open, METH_NOARGS, open_doc},
    {NULL, NULL, 0, NULL},
};

#else

/* ---- One at a time. Several interpreters may call at once, each with its own GIL. */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* Who holds the gate may let go of the GIL; so whoever waits for the gate must not hold it. */
static void enter(void)
{
    while (pthread_mutex_trylock(&gate) != 0) {
        Py_BEGIN_ALLOW_THREADS
        struct timespec moment = {0, 100000};
        nanosleep(&moment, NULL);
        Py_END_ALLOW_THREADS
    }
}

static void leave(void)
{
    pthread_mutex_unlock(&gate);
}

/* ---- Windows */

/* Under the gate. What had been counted when a window was opened. */
static fl_snapshot bases[FL_WINDOWS];
static bool window_open[FL_WINDOWS];

/* Of the windows, those that were opened through this module, in this interpreter. */
typedef struct {
    unsigned windows; /* bits */
} module_state;

static module_state *state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* Under the gate. */
static void close_window(module_state *state, int window)
{
    fl_window_close(window);
    fl_snapshot_free(&bases[window]);
    window_open[window] = false;
    state->windows &= ~(1u << window);
    fl_hooks_release();
}

/* Windows that an interpreter left open end with it. Not those of the main one: the process ends, and a
   thread that is no more may have been the last to go through the gate. */
static void probe_free(void *module)
{
    module_state *state = state_of(module);
    if (state == NULL || !state->windows || PyInterpreterState_Get() == PyInterpreterState_Main()) {
        return;
    }
    enter();
    for (int window = 0; window < FL_WINDOWS; window++) {
        if (state->windows >> window & 1) {
            close_window(state, window);
        }
    }
    leave();
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

static const char *prepare(void)
{
    static bool prepared;
    if (!prepared) {
        const char *failure = fl_hooks_prepare();
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
"The first window puts the hooks in. Raises UnsupportedInterpreter where\n"
"they cannot be, and UsageError when too many windows are open.");

static PyObject *probe_open(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    int window = 0;
    fl_window_result result = FL_WINDOW_OK;
    fl_snapshot base = {0};
    enter();
    const char *failure = prepare();
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
            state_of(module)->windows |= 1u << window;
        } else {
            fl_hooks_release();
        }
    }
    leave();
    if (failure) {
        return fail("UnsupportedInterpreter", failure);
    }
    if (result == FL_WINDOW_TOO_MANY) {
        return fail("UsageError", "too many observations at once (8): end one first");
    }
    return result == FL_WINDOW_OK ? PyLong_FromLong(window) : PyErr_NoMemory();
}

static bool is_open(long window)
{
    if (window >= 0 && window < FL_WINDOWS && window_open[window]) {
        return true;
    }
    PyErr_SetString(PyExc_ValueError, "this window is not open");
    return false;
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
    enter();
    bool open = is_open(window);
    if (open) {
        close_window(state_of(module), (int)window);
    }
    leave();
    if (!open) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- Reading */

static int add(PyObject *dict, const char *name, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *histogram(const uint64_t *counts)
{
    PyObject *tuple = PyTuple_New(FL_HISTOGRAM_BUCKETS);
    for (Py_ssize_t i = 0; tuple && i < FL_HISTOGRAM_BUCKETS; i++) {
        PyObject *count = number(counts[i]);
        if (count == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, count);
    }
    return tuple;
}

static int add_tally(PyObject *dict, const fl_tally *tally)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"acquisitions", tally->acquisitions},
        {"contended", tally->contended},
        {"held_ns", fl_ticks_to_ns(tally->held)},
        {"held_off_cpu_ns", fl_ticks_to_ns(tally->off_cpu)},
        {"held_checked_ns", fl_ticks_to_ns(tally->off_cpu_known)},
        {"waited_ns", fl_ticks_to_ns(tally->waited)},
        {"max_wait_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_WAIT])},
        {"max_held_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_HELD])},
        {"overrun_ns", fl_ticks_to_ns(tally->overrun)},
        {"max_overrun_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_OVERRUN])},
        {"forced_drops", tally->forced_drops},
        {"voluntary_drops", tally->voluntary_drops},
        {"requests", tally->requests},
        {"handoffs", tally->handoffs},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (add(dict, numbers[i].name, number(numbers[i].value)) < 0) {
            return -1;
        }
    }
    return add(dict, "wait_histogram", histogram(tally->wait_histogram)) < 0
                   || add(dict, "held_histogram", histogram(tally->held_histogram)) < 0
               ? -1
               : 0;
}

static PyObject *seats(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->seat_count; i++) {
        const fl_seat_count *seat = &snapshot->seats[i];
        PyObject *dict = PyDict_New();
        if (!dict || add(dict, "serial", number(seat->serial)) < 0 || add(dict, "gil", number(seat->gil)) < 0
            || add_tally(dict, &seat->tally) < 0 || PyList_Append(list, dict) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *pairs(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->pair_count; i++) {
        const fl_pair_count *pair = &snapshot->pairs[i];
        PyObject *tuple = Py_BuildValue("(HIIK)", pair->gil, pair->pair.waiter, pair->pair.holder,
                                        (unsigned long long)fl_ticks_to_ns(pair->pair.ticks));
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    return list;
}

static PyObject *losses(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->loss_count; i++) {
        const fl_loss_count *count = &snapshot->losses[i];
        PyObject *tuple = Py_BuildValue(
            "(HIIIIKKK)", count->gil, count->loss.waiter, count->loss.holder, count->loss.waiter_stack,
            count->loss.holder_stack, (unsigned long long)fl_ticks_to_ns(count->loss.ticks),
            (unsigned long long)count->loss.waits, (unsigned long long)fl_ticks_to_ns(count->loss.longest));
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    return list;
}

PyDoc_STRVAR(read_doc,
"read($module, window, /)\n"
"--\n"
"\n"
"What was counted since a window was opened.\n"
"\n"
"A dict: ns (how long ago that was), threads (dicts of counters), blame\n"
"((gil, waiter, holder, ns), ...) and losses ((gil, waiter, holder,\n"
"waiter's stack, holder's stack, ns, waits, longest ns), ...).");

static PyObject *probe_read(PyObject *Py_UNUSED(module), PyObject *argument)
{
    long window = PyLong_AsLong(argument);
    if (window == -1 && PyErr_Occurred()) {
        return NULL;
    }
    fl_snapshot now = {0};
    uint64_t began = 0;
    enter();
    bool open = is_open(window), taken = false;
    if (open) {
        (void)fl_hooks_intact();
        taken = fl_snapshot_take(&now, (int)window);
    }
    if (taken) {
        began = bases[window].ticks;
        fl_snapshot_subtract(&now, &bases[window]);
    }
    leave();
    if (!open) {
        return NULL;
    }
    if (!taken) {
        return PyErr_NoMemory();
    }
    PyObject *dict = PyDict_New();
    if (dict
        && (add(dict, "ns", number(fl_ticks_to_ns(now.ticks - began))) < 0
            || add(dict, "threads", seats(&now)) < 0 || add(dict, "blame", pairs(&now)) < 0
            || add(dict, "losses", losses(&now)) < 0)) {
        Py_CLEAR(dict);
    }
    fl_snapshot_free(&now);
    return dict;
}

static void add_up(fl_gil *gil, void *context)
{
    fl_tally *sum = context;
    uint64_t now = gil->alive ? fl_gil_now(gil) : 0;
    fl_tally_add(sum, &gil->departed);
    for (const fl_seat *seat = gil->seats; seat; seat = seat->of_gil) {
        fl_tally tally = seat->tally;
        if (gil->alive) {
            fl_observe_present(gil, seat, 0, now, &tally);
        }
        fl_tally_add(sum, &tally);
    }
}

PyDoc_STRVAR(totals_doc,
"totals($module, /)\n"
"--\n"
"\n"
"The sums of all counters in this process, ever, as a dict; they never fall.");

static PyObject *probe_totals(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    enter();
    fl_tally sum = fl_registry_departed();
    fl_registry_each(add_up, &sum);
    uint64_t active = fl_hooks_active_ns();
    leave();
    PyObject *dict = PyDict_New();
    if (dict && (add(dict, "observed_ns", number(active)) < 0 || add_tally(dict, &sum) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* ---- Threads and stacks */

PyDoc_STRVAR(threads_doc,
"threads($module, /)\n"
"--\n"
"\n"
"All threads known: (serial, native id, gil, ended, name), newest first.");

static PyObject *probe_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    size_t room = fl_registry_threads(NULL, 0, false) + 64;
    fl_thread_record *records = PyMem_Malloc(room * sizeof *records);
    if (records == NULL) {
        return PyErr_NoMemory();
    }
    size_t count = fl_registry_threads(records, room, false);
    count = count < room ? count : room;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        const fl_thread_record *record = &records[i];
        PyObject *name = PyUnicode_DecodeUTF8(record->name, (Py_ssize_t)strlen(record->name), "replace");
        PyObject *tuple = name ? Py_BuildValue("(IiHOO)", record->serial, (int)record->native_id, record->gil,
                                               record->ended ? Py_True : Py_False, name)
                               : NULL;
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
        Py_XDECREF(name);
    }
    PyMem_Free(records);
    return list;
}

PyDoc_STRVAR(name_doc,
"name($module, names, /)\n"
"--\n"
"\n"
"Give threads their names: a dict from the operating system's number of\n"
"each to its name. Of several that had a number the latest is meant.");

static int by_native_id(const void *left, const void *right)
{
    pid_t a = ((const fl_thread_name *)left)->native_id, b = ((const fl_thread_name *)right)->native_id;
    return (a > b) - (a < b);
}

static PyObject *probe_name(PyObject *Py_UNUSED(module), PyObject *argument)
{
    if (!PyDict_Check(argument)) {
        PyErr_SetString(PyExc_TypeError, "names must be a dict");
        return NULL;
    }
    fl_thread_name *names = PyMem_Calloc((size_t)PyDict_GET_SIZE(argument) + 1, sizeof *names);
    if (names == NULL) {
        return PyErr_NoMemory();
    }
    size_t count = 0;
    Py_ssize_t at = 0;
    PyObject *number, *name;
    while (PyDict_Next(argument, &at, &number, &name)) {
        Py_ssize_t size;
        names[count].native_id = (pid_t)PyLong_AsLong(number);
        names[count].name = PyUnicode_AsUTF8AndSize(name, &size); /* the dict keeps it */
        if (PyErr_Occurred()) { /* a name that has no UTF-8, for example: that thread has none */
            PyErr_Clear();
            continue;
        }
        names[count++].size = (size_t)size;
    }
    qsort(names, count, sizeof *names, by_native_id);
    fl_registry_name(names, count);
    PyMem_Free(names);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stack_doc,
"stack($module, id, /)\n"
"--\n"
"\n"
"The frames of a stack, innermost first: (function, file, line, column,\n"
"end_line, end_column). Empty for 0.");

static PyObject *probe_stack(PyObject *Py_UNUSED(module), PyObject *argument)
{
    unsigned long id = PyLong_AsUnsignedLong(argument);
    if (id == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    fl_stack_frame frame;
    for (size_t depth = 0; list && fl_stacks_frame((uint32_t)id, depth, &frame); depth++) {
        PyObject *tuple = Py_BuildValue("(ssiiii)", frame.function, frame.file, frame.line, frame.column,
                                        frame.end_line, frame.end_column);
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    PyObject *frames = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return frames;
}

PyDoc_STRVAR(threshold_doc,
"threshold($module, ns, /)\n"
"--\n"
"\n"
"From which length on waits are looked at: their stacks are taken. None: none is.");

static PyObject *probe_threshold(PyObject *Py_UNUSED(module), PyObject *argument)
{
    uint64_t ns = argument == Py_None ? UINT64_MAX : PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred()) {
        return NULL;
    }
    enter();
    const char *failure = prepare();
    if (!failure) {
        fl_observe_threshold(ns);
    }
    leave();
    if (failure) {
        return fail("UnsupportedInterpreter", failure);
    }
    Py_RETURN_NONE;
}

/* ---- Recording */

PyDoc_STRVAR(record_doc,
"record($module, path, meta, events, later, counters_ns, /)\n"
"--\n"
"\n"
"Begin a recording; a window must be open. meta is the META block's JSON\n"
"without its last brace. Raises OSError when the file cannot be made.");

static PyObject *probe_record(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *path;
    const char *meta;
    int events, later;
    unsigned long long counters_ns;
    if (!PyArg_ParseTuple(arguments, "O&sppK:record", PyUnicode_FSConverter, &path, &meta, &events, &later,
                          &counters_ns)) {
        return NULL;
    }
    fl_recorder_options options = {.events = events, .later = later, .counters_ns = counters_ns};
    int error = 0;
    fl_recorder_result result;
    enter();
    Py_BEGIN_ALLOW_THREADS
    result = fl_recorder_start(PyBytes_AS_STRING(path), meta, options, &error);
    Py_END_ALLOW_THREADS
    leave();
    Py_DECREF(path);
    switch (result) {
    case FL_RECORDER_OK:
        Py_RETURN_NONE;
    case FL_RECORDER_BUSY:
        return fail("UsageError", "a recording is going on already: end it first");
    case FL_RECORDER_TOO_MANY:
        return fail("UsageError", "too many observations at once (8): end one first");
    case FL_RECORDER_FILE:
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    default:
        return PyErr_NoMemory();
    }
}

PyDoc_STRVAR(record_stop_doc,
"record_stop($module, /)\n"
"--\n"
"\n"
"End the recording, and return the errno of what could not be written, 0\n"
"when all was; None when there was no recording.");

static PyObject *probe_record_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int error = 0;
    bool was_on;
    enter();
    Py_BEGIN_ALLOW_THREADS
    was_on = fl_recorder_stop(&error);
    Py_END_ALLOW_THREADS
    leave();
    if (!was_on) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLong(error);
}

PyDoc_STRVAR(record_pause_doc,
"record_pause($module, /)\n"
"--\n"
"\n"
"End the recorder's thread until record_resume(): for a fork in between.");

static PyObject *probe_record_pause(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    enter();
    Py_BEGIN_ALLOW_THREADS
    fl_recorder_pause();
    Py_END_ALLOW_THREADS
    leave();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(record_resume_doc,
"record_resume($module, /)\n"
"--\n"
"\n"
"Start the recorder's thread again.");

static PyObject *probe_record_resume(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    enter();
    fl_recorder_resume();
    leave();
    Py_RETURN_NONE;
}

/* ---- Scheduling */

PyDoc_STRVAR(schedule_doc,
"schedule($module, mode, share, spin, /)\n"
"--\n"
"\n"
"Schedule all GILs: mode 0 stock, 1 interactive, 2 fair; share in 1024ths.\n"
"\n"
"Puts the hooks in for good. Raises UnsupportedInterpreter where they\n"
"cannot be.");

static PyObject *probe_schedule(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    static bool installed;
    int mode, share, spin;
    if (!PyArg_ParseTuple(arguments, "iip:schedule", &mode, &share, &spin)) {
        return NULL;
    }
    if (mode < FL_MODE_STOCK || mode > FL_MODE_FAIR || share < 1 || share >= FL_SHARE_ONE) {
        PyErr_SetString(PyExc_ValueError, "the mode or the share is out of range");
        return NULL;
    }
    enter();
    const char *failure = prepare();
    if (!failure && !installed) {
        failure = fl_hooks_install();
        installed = !failure;
    }
    if (!failure) {
        failure = fl_schedule_set((fl_schedule_settings){(fl_policy_mode)mode, share, spin != 0});
    }
    leave();
    if (failure) {
        return fail("UnsupportedInterpreter", failure);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(scheduler_doc,
"scheduler($module, /)\n"
"--\n"
"\n"
"What the scheduler of the main interpreter's GIL has done, as a dict.");

static PyObject *probe_scheduler(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    enter();
    fl_schedule_state state = fl_schedule_look();
    leave();
    const fl_policy_counts *counts = &state.counts;
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"mode", (uint64_t)state.mode},     {"waiting", state.waiting},
        {"tripped", state.tripped},         {"acquisitions", counts->acquired},
        {"waits", counts->waited},          {"forced_drops", counts->forced},
        {"handed", counts->handed},         {"left_free", counts->left_free},
        {"requests", counts->asked},        {"repeated_requests", counts->asked_again},
        {"kicks", counts->kicked},          {"slices", counts->slices},
        {"aged", counts->aged},             {"spins", counts->spun},
        {"withdrawn", counts->revoked},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof numbers / sizeof *numbers; i++) {
        if (add(dict, numbers[i].name, number(numbers[i].value)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
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

static PyMethodDef probe_methods[] = {
    {"schedule", probe_schedule, METH_VARARGS, schedule_doc},
    {"scheduler", probe_scheduler, METH_NOARGS, scheduler_doc},
    {"priority", probe_priority, METH_O, priority_doc},
    {"open", probe_open, METH_NOARGS, open_doc},
    {"close", probe_close, METH_O, close_doc},
    {"read", probe_read, METH_O, read_doc},
    {"totals", probe_totals, METH_NOARGS, totals_doc},
    {"threads", probe_threads, METH_NOARGS, threads_doc},
    {"name", probe_name, METH_O, name_doc},
    {"stack", probe_stack, METH_O, stack_doc},
    {"threshold", probe_threshold, METH_O, threshold_doc},
    {"record", probe_record, METH_VARARGS, record_doc},
    {"record_stop", probe_record_stop, METH_NOARGS, record_stop_doc},
    {"record_pause", probe_record_pause, METH_NOARGS, record_pause_doc},
    {"record_resume", probe_record_resume, METH_NOARGS, record_resume_doc},
    {NULL, NULL, 0, NULL},
};

#endif

static PyModuleDef_Slot probe_slots[] = {
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
