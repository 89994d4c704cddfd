/* The counters and stacks as Python objects. */
#include "gil/bind/module.h"

#include <stdlib.h>
#include <string.h>

#include "gil/hooks/hooks.h"
#include "gil/observe/observe.h"
#include "gil/observe/recorder.h"
#include "gil/threads/registry.h"
#include "gil/observe/stacks.h"
#include "gil/threads/threads.h"

#ifndef FL_PROBE_REFUSAL

static PyObject *histogram(const uint64_t *counts)
{
    PyObject *tuple = PyTuple_New(FL_HISTOGRAM_BUCKETS);
    for (Py_ssize_t i = 0; tuple && i < FL_HISTOGRAM_BUCKETS; i++) {
        PyObject *count = fl_module_number(counts[i]);
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
        {"held_asleep_ns", fl_ticks_to_ns(tally->asleep)},
        {"held_checked_ns", fl_ticks_to_ns(tally->off_cpu_known)},
        {"waited_ns", fl_ticks_to_ns(tally->waited)},
        {"max_wait_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_WAIT])},
        {"max_held_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_HELD])},
        {"overrun_ns", fl_ticks_to_ns(tally->overrun)},
        {"overrun_off_cpu_ns", fl_ticks_to_ns(tally->overrun_off_cpu)},
        {"max_overrun_ns", fl_ticks_to_ns(tally->maxima.of[FL_MAXIMUM_OVERRUN])},
        {"forced_drops", tally->forced_drops},
        {"voluntary_drops", tally->voluntary_drops},
        {"requests", tally->requests},
        {"handoffs", tally->handoffs},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (fl_module_add(dict, numbers[i].name, fl_module_number(numbers[i].value)) < 0) {
            return -1;
        }
    }
    return fl_module_add(dict, "wait_histogram", histogram(tally->wait_histogram)) < 0
                   || fl_module_add(dict, "held_histogram", histogram(tally->held_histogram)) < 0
               ? -1
               : 0;
}

static PyObject *seats(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->seat_count; i++) {
        const fl_seat_count *seat = &snapshot->seats[i];
        PyObject *dict = PyDict_New();
        if (!dict || fl_module_add(dict, "serial", fl_module_number(seat->serial)) < 0
            || fl_module_add(dict, "gil", fl_module_number(seat->gil)) < 0
            || add_tally(dict, &seat->tally) < 0 || PyList_Append(list, dict) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(dict);
    }
    return list;
}

static unsigned long long ns(uint64_t ticks)
{
    return fl_ticks_to_ns(ticks);
}

static PyObject *pairs(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->pair_count; i++) {
        const fl_pair_count *pair = &snapshot->pairs[i];
        const fl_blame_parts *parts = &pair->pair.parts;
        PyObject *tuple = Py_BuildValue("(HIIKKKKKK)", pair->gil, pair->pair.waiter, pair->pair.holder,
                                        ns(parts->all), ns(parts->asked), ns(parts->late), ns(parts->asleep),
                                        ns(parts->collecting), ns(parts->coreless));
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
            "(HIIIIKKKKKKK)", count->gil, count->loss.waiter, count->loss.holder, count->loss.waiter_stack,
            count->loss.holder_stack, ns(count->loss.ticks), (unsigned long long)count->loss.waits,
            ns(count->loss.longest), ns(count->loss.late), ns(count->loss.late_asleep),
            (unsigned long long)count->loss.late_waits, ns(count->loss.late_longest));
        if (!tuple || PyList_Append(list, tuple) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(tuple);
    }
    return list;
}

static PyObject *collections(const fl_snapshot *snapshot)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < snapshot->collection_count; i++) {
        const fl_collection *of = &snapshot->collections[i].of;
        PyObject *tuple = Py_BuildValue("(IIIKKK)", of->thread, of->generation, of->stack,
                                        (unsigned long long)of->runs, ns(of->ticks), ns(of->longest));
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
"A dict: ns (how long ago that was), interval_ns (the switch interval of\n"
"the main interpreter, now), threads (dicts of counters), blame\n"
"((gil, waiter, holder, ns in all, asked, late, asleep, collecting,\n"
"coreless), ...), losses ((gil, waiter, holder, waiter's stack, holder's\n"
"stack, ns, waits, longest ns, late ns, of it asleep, waits, longest), ...)\n"
"and collections ((thread, generation, stack, runs, ns, longest ns), ...).");

static PyObject *probe_read(PyObject *Py_UNUSED(module), PyObject *argument)
{
    long window = PyLong_AsLong(argument);
    if (window == -1 && PyErr_Occurred()) {
        return NULL;
    }
    fl_snapshot now = {0};
    uint64_t began = 0;
    bool taken = false;
    fl_module_enter();
    const fl_snapshot *base = fl_module_window(window);
    if (base) {
        fl_hooks_reinstall();
        taken = fl_snapshot_take(&now, (int)window);
    }
    if (taken) {
        began = base->ticks;
        fl_snapshot_subtract(&now, base);
    }
    fl_module_leave();
    if (!base) {
        return NULL;
    }
    if (!taken) {
        return PyErr_NoMemory();
    }
    PyObject *dict = PyDict_New();
    if (dict
        && (fl_module_add(dict, "ns", fl_module_number(fl_ticks_to_ns(now.ticks - began))) < 0
            || fl_module_add(dict, "interval_ns", fl_module_number((uint64_t)now.interval_us * 1000)) < 0
            || fl_module_add(dict, "threads", seats(&now)) < 0
            || fl_module_add(dict, "blame", pairs(&now)) < 0
            || fl_module_add(dict, "losses", losses(&now)) < 0
            || fl_module_add(dict, "collections", collections(&now)) < 0)) {
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
        if (gil->alive && fl_hooks_observed()) {
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
    fl_module_enter();
    fl_tally sum = fl_registry_departed();
    fl_registry_each(add_up, &sum);
    uint64_t active = fl_hooks_active_ns();
    fl_module_leave();
    PyObject *dict = PyDict_New();
    if (dict
        && (fl_module_add(dict, "observed_ns", fl_module_number(active)) < 0 || add_tally(dict, &sum) < 0)) {
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
    size_t room = fl_threads_copy(NULL, 0, false) + 64;
    fl_thread_record *records = PyMem_Malloc(room * sizeof *records);
    if (records == NULL) {
        return PyErr_NoMemory();
    }
    size_t count = fl_threads_copy(records, room, false);
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
"Name threads: a dict from native thread id to name. An id that several\n"
"threads have had means the latest of them.");

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
    fl_threads_name(names, count);
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

PyDoc_STRVAR(collected_doc,
"collected($module, phase, info, /)\n"
"--\n"
"\n"
"To stand in gc.callbacks while anything is observed.");

static PyObject *probe_collected(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 2 && PyUnicode_Check(arguments[0]) && PyDict_Check(arguments[1])) {
        PyObject *generation = PyDict_GetItemString(arguments[1], "generation");
        long number = generation ? PyLong_AsLong(generation) : 0;
        PyErr_Clear();
        fl_observe_collection(PyUnicode_CompareWithASCIIString(arguments[0], "start") == 0, (uint32_t)number);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(memory_doc,
"memory($module, /)\n"
"--\n"
"\n"
"What the probe keeps at the moment, as a dict of numbers: records of\n"
"threads and of GILs, seats (a thread at a GIL), pairs and losses of blame,\n"
"rings and stacks; and bytes, the size of all that.");

static PyObject *probe_memory(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    size_t ring_bytes;
    fl_module_enter();
    fl_registry_size kept = fl_registry_measure();
    size_t threads = fl_threads_copy(NULL, 0, false), rings = fl_recorder_rings(&ring_bytes);
    size_t bytes = kept.bytes + fl_threads_bytes() + ring_bytes + fl_stacks_bytes();
    fl_module_leave();
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"threads", threads},       {"gils", kept.gils},     {"alive_gils", kept.alive},
        {"idle_gils", kept.idle},   {"seats", kept.seats},   {"pairs", kept.pairs},
        {"losses", kept.losses},    {"rings", rings},        {"stacks", fl_stacks_count()},
        {"bytes", bytes},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof numbers / sizeof *numbers; i++) {
        if (fl_module_add(dict, numbers[i].name, fl_module_number(numbers[i].value)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

PyMethodDef fl_module_reading[] = {
    {"read", probe_read, METH_O, read_doc},
    {"totals", probe_totals, METH_NOARGS, totals_doc},
    {"threads", probe_threads, METH_NOARGS, threads_doc},
    {"name", probe_name, METH_O, name_doc},
    {"collected", (PyCFunction)(void (*)(void))probe_collected, METH_FASTCALL, collected_doc},
    {"stack", probe_stack, METH_O, stack_doc},
    {"memory", probe_memory, METH_NOARGS, memory_doc},
    {NULL, NULL, 0, NULL},
};

#endif
