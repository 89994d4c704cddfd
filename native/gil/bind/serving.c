/* The endpoint, for Python. */
#include "gil/bind/module.h"

#include <errno.h>

#include "gil/serve/serve.h"
#include "gil/serve/vital_pages.h"

#ifndef FL_PROBE_REFUSAL

/* serve_pause ends the thread before a fork that Python makes. In the child of any other fork, sockets that
   stayed open would look as if it served. */
static void forked(void)
{
    fl_serve_forked();
    fl_vital_pages_fork();
}

static PyObject *fail(fl_serve_result result, int error)
{
    switch (result) {
    case FL_SERVE_BUSY:
        return fl_module_fail("UsageError", "this process serves already: stop that first");
    case FL_SERVE_ADDRESS:
        return fl_module_fail("UsageError", "the host is no numeric address");
    case FL_SERVE_TOKEN:
        return fl_module_fail("UsageError", "an address that other machines can reach takes a token");
    default:
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
}

PyDoc_STRVAR(serve_doc,
"serve($module, host, port, token, for_all, stalled_ns, busy_ns, /)\n"
"--\n"
"\n"
"Answer HTTP at an address from a thread that never takes the GIL; returns\n"
"the port. A window must be open as long as it goes on. for_all: what has no\n"
"names takes the token, too.");

static PyObject *probe_serve(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    static bool prepared;
    const char *host, *token;
    unsigned short port;
    unsigned long long stalled_ns;
    int for_all;
    PyObject *busy;
    if (!PyArg_ParseTuple(arguments, "sHspKO:serve", &host, &port, &token, &for_all, &stalled_ns, &busy)) {
        return NULL;
    }
    uint64_t busy_ns = busy == Py_None ? UINT64_MAX : PyLong_AsUnsignedLongLong(busy);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) { /* another may end first */
        return fl_module_fail("UsageError", "the main interpreter alone can serve: call this in its code");
    }
    int error = 0;
    uint16_t taken = port;
    fl_serve_result result = FL_SERVE_SYSTEM;
    fl_module_enter();
    error = prepared ? 0 : pthread_atfork(NULL, NULL, forked);
    prepared = error == 0;
    if (prepared) {
        Py_BEGIN_ALLOW_THREADS
        result = fl_serve_start(host, &taken, token, for_all, &fl_vital_pages, &error);
        Py_END_ALLOW_THREADS
    }
    if (result == FL_SERVE_OK) {
        fl_vital_pages_limit(stalled_ns, busy_ns);
    }
    fl_module_leave();
    return result == FL_SERVE_OK ? PyLong_FromLong(taken) : fail(result, error);
}

PyDoc_STRVAR(serve_stop_doc,
"serve_stop($module, /)\n"
"--\n"
"\n"
"Stop serving; harmless when this process does not serve.");

static PyObject *probe_serve_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fl_module_enter();
    Py_BEGIN_ALLOW_THREADS
    (void)fl_serve_stop();
    Py_END_ALLOW_THREADS
    fl_module_leave();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(serve_pause_doc,
"serve_pause($module, /)\n"
"--\n"
"\n"
"Before a fork: end the thread; clients wait.");

/* Keeps the GIL, which the server's thread never takes: a forking thread that released it would have to
   wait for it, and clients would go unanswered for as long. */
static PyObject *probe_serve_pause(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fl_serve_pause();
    Py_RETURN_NONE;
}

/* These two count the process's threads once all handlers of the fork have run, and warn of more than one. */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
#define THREADS_ARE_COUNTED_LAST 1
#else
#define THREADS_ARE_COUNTED_LAST 0
#endif

static PyFrameObject *forks; /* the main thread's frame that has called os.fork() */

/* Whether the fork's handlers still run, in frames below the one that forks. */
static bool in_handler(void)
{
    PyFrameObject *at = PyThreadState_GetFrame(PyThreadState_Get());
    bool below = at != forks;
    while (at != NULL && at != forks) {
        PyFrameObject *back = PyFrame_GetBack(at);
        Py_DECREF(at);
        at = back;
    }
    Py_XDECREF(at);
    return below && at != NULL;
}

/* A pending call of the main thread, which looks for such in the handlers, too. */
static int resume(void *unused)
{
    if (in_handler() && Py_AddPendingCall(resume, unused) == 0) {
        return 0;
    }
    Py_CLEAR(forks);
    (void)fl_serve_resume(); /* without a thread nothing is served, and clients see that */
    return 0;
}

PyDoc_STRVAR(serve_resume_doc,
"serve_resume($module, main, /)\n"
"--\n"
"\n"
"After a fork, in the parent: the thread comes back. main: this is the main\n"
"thread; where the interpreter would count the new one, it comes back when\n"
"the fork has returned.");

static PyObject *probe_serve_resume(PyObject *Py_UNUSED(module), PyObject *main)
{
    PyFrameObject *handler = PyThreadState_GetFrame(PyThreadState_Get());
    if (THREADS_ARE_COUNTED_LAST && PyObject_IsTrue(main) && handler != NULL) {
        Py_XSETREF(forks, PyFrame_GetBack(handler));
    }
    Py_XDECREF(handler);
    if (forks == NULL || Py_AddPendingCall(resume, NULL) != 0) {
        (void)fl_serve_resume();
    }
    Py_RETURN_NONE;
}

PyMethodDef fl_module_serving[] = {
    {"serve", probe_serve, METH_VARARGS, serve_doc},
    {"serve_stop", probe_serve_stop, METH_NOARGS, serve_stop_doc},
    {"serve_pause", probe_serve_pause, METH_NOARGS, serve_pause_doc},
    {"serve_resume", probe_serve_resume, METH_O, serve_resume_doc},
    {NULL, NULL, 0, NULL},
};

#endif
