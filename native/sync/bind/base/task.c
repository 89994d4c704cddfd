/* Which task or greenlet runs in this thread: the holder's identity for what only its holder may release.
 *
 * Asked at every acquire and release of an RLock, so that a thread without a loop must learn quickly that it
 * has none: a few look-ups in dictionaries, one call of asyncio's C function, and where trio was imported a
 * look at its variable of this thread. The finder, which is Python and knows the adapters, is asked only
 * where there is a task to be found.
 */
#include "sync/bind/base/wait.h"

/* A new reference; NULL: not there, or an exception is set. */
static PyObject *imported(PyObject *name)
{
    return fl_dict_get(PyImport_GetModuleDict(), name);
}

/* A function of asyncio's; a new reference, or NULL as of imported(). Kept once it was found. */
static PyObject *of_asyncio(fl_state *state, PyObject **kept, PyObject *name)
{
#ifndef Py_GIL_DISABLED
    if (*kept != NULL) {
        return Py_NewRef(*kept);
    }
#endif
    PyObject *asyncio = imported(state->name_asyncio);
    if (asyncio == NULL) {
        return NULL;
    }
    PyObject *function = PyObject_GetAttr(asyncio, name);
    Py_DECREF(asyncio);
    if (function == NULL) { /* another thread is about to import it */
        PyErr_Clear();
    }
#ifndef Py_GIL_DISABLED
    Py_XSETREF(*kept, Py_XNewRef(function));
#endif
    return function;
}

/* The result of the function, which is stolen; NULL for None. */
static PyObject *called(PyObject *function, PyObject *argument)
{
    if (function == NULL) {
        return NULL;
    }
    PyObject *found =
        argument == NULL ? PyObject_CallNoArgs(function) : PyObject_CallOneArg(function, argument);
    Py_DECREF(function);
    if (found == Py_None) {
        Py_CLEAR(found);
    }
    return found;
}

PyObject *fl_running_loop(fl_state *state)
{
    return called(of_asyncio(state, &state->running_loop, state->name_running_loop), NULL);
}

PyObject *fl_asyncio_task(fl_state *state, PyObject *loop)
{
    return called(of_asyncio(state, &state->task_of, state->name_current_task), loop);
}

/* trio's variable of each thread has a task while one runs there. Its dictionary is asked: an attribute that
   is not there is an exception, which costs more than all the rest. */
static int has_task(fl_state *state, PyObject *thread_local)
{
    PyObject *names = PyObject_GetAttr(thread_local, state->name_dict);
    int has = names == NULL ? -1 : PyDict_Contains(names, state->name_task);
    Py_XDECREF(names);
    return has;
}

/* Whether a task of trio may run here; -1: an exception. */
static int in_trio(fl_state *state)
{
    int may_be = PyDict_Contains(PyImport_GetModuleDict(), state->name_trio);
    if (may_be <= 0) {
        return may_be;
    }
    PyObject *adapter = imported(state->name_trio_adapter), *thread_local = NULL;
    if (adapter != NULL) {
        thread_local = PyObject_GetAttr(adapter, state->name_thread_local);
        Py_DECREF(adapter);
    }
    if (thread_local == NULL) { /* not imported, or by another thread and not whole yet: the finder waits */
        PyErr_Clear();
        return 1;
    }
    may_be = thread_local == Py_None || has_task(state, thread_local); /* None: the finder knows */
    Py_DECREF(thread_local);
    return PyErr_Occurred() ? -1 : may_be;
}

PyObject *fl_task_here(fl_state *state)
{
    if (state->current_task == NULL) {
        return NULL;
    }
    int may_be = in_trio(state);
    if (may_be == 0) {
        PyObject *loop = fl_running_loop(state);
        may_be = loop != NULL;
        Py_XDECREF(loop);
    }
    if (may_be <= 0) {
        return NULL;
    }
    PyObject *task = PyObject_CallNoArgs(state->current_task);
    if (task == Py_None) {
        Py_CLEAR(task);
    }
    return task;
}

PyObject *fl_holder_here(fl_state *state)
{
    PyObject *task = fl_task_here(state);
    if (task != NULL || PyErr_Occurred()) {
        return task;
    }
    int may_be = PyDict_Contains(PyImport_GetModuleDict(), state->name_gevent);
    if (may_be <= 0) {
        return NULL;
    }
    PyObject *adapter = PyImport_ImportModule("fairlead.wait._gevent");
    PyObject *greenlet = adapter == NULL ? NULL : PyObject_CallMethod(adapter, "task", NULL);
    Py_XDECREF(adapter);
    if (greenlet == Py_None) {
        Py_CLEAR(greenlet);
    }
    return greenlet;
}

int fl_caller_here(fl_state *state, fl_caller *me)
{
    me->thread = fl_owner_thread();
    me->task = fl_holder_here(state);
    return me->task == NULL && PyErr_Occurred() ? -1 : 0;
}

/* What is not there is NULL, without an exception; any other exception stays. */
static PyObject *field(PyObject *of, const char *name)
{
    PyObject *value = of == NULL ? NULL : PyObject_GetAttrString(of, name);
    if (value == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    }
    return value;
}

int fl_task_ended(fl_state *state, PyObject *task)
{
    PyObject *answer = PyObject_CallMethodNoArgs(task, state->name_done); /* asyncio's */
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        answer = field(task, "dead"); /* a greenlet's */
        if (answer == NULL && !PyErr_Occurred()) { /* trio's; a coroutine that is over has no frame */
            PyObject *body = field(task, "coro"), *frame = field(body, "cr_frame");
            answer = frame == NULL ? NULL : PyBool_FromLong(frame == Py_None);
            Py_XDECREF(frame);
            Py_XDECREF(body);
        }
    }
    int ended = answer == NULL ? 0 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return PyErr_Occurred() ? -1 : ended;
}

static PyObject *task_ended(PyObject *module, PyObject *task)
{
    int ended = fl_task_ended(fl_state_of(module), task);
    return ended < 0 ? NULL : PyBool_FromLong(ended);
}

fl_atomic(uint32_t) fl_naming_tasks;

uint64_t fl_owner_named_slow(fl_state *state)
{
    PyObject *number = state->task_number == NULL ? NULL : PyObject_CallNoArgs(state->task_number);
    uint64_t name = number == NULL ? 0 : PyLong_AsUnsignedLongLongMask(number);
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        fl_raise_later(state->task_number);
        name = 0;
    }
    return fl_owner_task() | name * (FL_OWNER_PLACE + 1);
}

static PyObject *name_tasks(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    fl_state *state = fl_state_of(module);
    int on = count == 2 ? PyObject_IsTrue(args[1]) : -1;
    if (on < 0) {
        PyErr_SetString(PyExc_TypeError, "name_tasks() takes a function and a truth value");
        return NULL;
    }
    if (state->task_number == NULL) { /* and never changed: another may be calling it at this moment */
        state->task_number = Py_NewRef(args[0]);
    }
    if (on) {
        fl_fetch_add(&fl_naming_tasks, 1, relaxed); /* only whether it is worth to ask */
    } else {
        fl_fetch_sub(&fl_naming_tasks, 1, relaxed); /* the same */
    }
    Py_RETURN_NONE;
}

static PyObject *task_serial(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static fl_atomic(uint64_t) given;
    uint64_t number = fl_fetch_add(&given, 1, relaxed) + 1; /* only unique */
    return PyLong_FromUnsignedLongLong(number < UINT64_C(1) << 24 ? number : 0);
}

static PyObject *use_tasks(PyObject *module, PyObject *finder)
{
    fl_state *state = fl_state_of(module);
    Py_XSETREF(state->current_task, Py_NewRef(finder));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"use_tasks", use_tasks, METH_O, FL_DOC(module, use_tasks)},
    {"name_tasks", FL_METHOD(name_tasks), METH_FASTCALL, FL_DOC(module, name_tasks)},
    {"task_ended", task_ended, METH_O, FL_DOC(module, task_ended)},
    {"task_serial", task_serial, METH_NOARGS, FL_DOC(module, task_serial)},
    {NULL, NULL, 0, NULL},
};

int fl_task_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    const struct {
        PyObject **place;
        const char *name;
    } names[] = {
        {&state->name_asyncio, "asyncio"},
        {&state->name_running_loop, "_get_running_loop"},
        {&state->name_current_task, "current_task"},
        {&state->name_trio, "trio"},
        {&state->name_trio_adapter, "fairlead.wait._trio"},
        {&state->name_thread_local, "thread_local"},
        {&state->name_dict, "__dict__"},
        {&state->name_task, "task"},
        {&state->name_gevent, "gevent.hub"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *names[i].place = PyUnicode_InternFromString(names[i].name);
        if (*names[i].place == NULL) {
            return -1;
        }
    }
    return PyModule_AddFunctions(module, functions);
}
