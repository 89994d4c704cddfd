/* Recordings, for Python. */
#include "gil/bind/module.h"

#include <errno.h>

#include "gil/observe/recorder.h"

#ifndef FL_PROBE_REFUSAL

static int detach(void *Py_UNUSED(unused))
{
    PyObject *module = PyImport_ImportModule("fairlead.gil.observe.programs.launched");
    PyObject *said = module ? PyObject_CallMethod(module, "detach", NULL) : NULL;
    if (said == NULL) {
        PyErr_WriteUnraisable(module);
    }
    Py_XDECREF(said);
    Py_XDECREF(module);
    return 0; /* -1 would raise in the program */
}

/* The file is closed. The main thread closes the window, which takes the GIL. */
static void expired(void)
{
    (void)Py_AddPendingCall(detach, NULL);
}

PyDoc_STRVAR(record_doc,
"record($module, path, meta, events, later, counters_ns, lease,\n"
"       duration_ns, most_bytes, /)\n"
"--\n"
"\n"
"Begin a recording; a window must be open. meta is the META block's JSON\n"
"without its last brace. It ends when the file at lease, unless that is\n"
"None, can be locked, or after duration_ns, unless that is 0; a file of\n"
"most_bytes, unless that is 0, gets no more events. Raises OSError when a\n"
"file cannot be opened.");

static PyObject *probe_record(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *path;
    const char *meta, *lease;
    int events, later;
    unsigned long long counters_ns, duration_ns, most_bytes;
    if (!PyArg_ParseTuple(arguments, "O&sppKzKK:record", PyUnicode_FSConverter, &path, &meta, &events, &later,
                          &counters_ns, &lease, &duration_ns, &most_bytes)) {
        return NULL;
    }
    fl_recorder_options options = {.events = events,
                                   .later = later,
                                   .counters_ns = counters_ns,
                                   .lease = lease,
                                   .duration_ns = duration_ns,
                                   .most_bytes = most_bytes,
                                   .expired = expired};
    int error = 0;
    fl_recorder_result result;
    fl_module_enter();
    Py_BEGIN_ALLOW_THREADS
    result = fl_recorder_start(PyBytes_AS_STRING(path), meta, options, &error);
    Py_END_ALLOW_THREADS
    fl_module_leave();
    Py_DECREF(path);
    switch (result) {
    case FL_RECORDER_OK:
        Py_RETURN_NONE;
    case FL_RECORDER_BUSY:
        return fl_module_fail("UsageError", "a recording is going on already: end it first");
    case FL_RECORDER_TOO_MANY:
        return fl_module_fail("UsageError", "too many observations at once (8): end one first");
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
    fl_module_enter();
    Py_BEGIN_ALLOW_THREADS
    was_on = fl_recorder_stop(&error);
    Py_END_ALLOW_THREADS
    fl_module_leave();
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
    fl_module_enter();
    Py_BEGIN_ALLOW_THREADS
    fl_recorder_pause();
    Py_END_ALLOW_THREADS
    fl_module_leave();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(record_resume_doc,
"record_resume($module, /)\n"
"--\n"
"\n"
"Start the recorder's thread again.");

static PyObject *probe_record_resume(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fl_module_enter();
    fl_recorder_resume();
    fl_module_leave();
    Py_RETURN_NONE;
}

PyMethodDef fl_module_recording[] = {
    {"record", probe_record, METH_VARARGS, record_doc},
    {"record_stop", probe_record_stop, METH_NOARGS, record_stop_doc},
    {"record_pause", probe_record_pause, METH_NOARGS, record_pause_doc},
    {"record_resume", probe_record_resume, METH_NOARGS, record_resume_doc},
    {NULL, NULL, 0, NULL},
};

#endif
