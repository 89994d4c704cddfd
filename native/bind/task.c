/* Which task or greenlet runs in this thread: the holder's identity for what only its holder may release.
 *
 * Asked at every acquire and release of an RLock, so that a thread without a loop must learn quickly that it
 * has none: a few look-ups in dictionaries, one call of asyncio's C function, and where trio was imported one
 * of its own that looks at a thread's variable. The finder, which is Python and knows the adapters, is asked
 * only where there is a task to be found.
 */
#include "bind/wait.h"

/* A new reference; NULL: not there, or an exception is set. */
static PyObject *imported(PyObject *name)
{
    PyObject *modules = PyImport_GetModuleDict(), *found;
#if PY_VERSION_HEX >= 0x030D0000
    PyDict_GetItemRef(modules, name, &found);
#else
    found = Py_XNewRef(PyDict_GetItemWithError(modules, name));
#endif
    return found;
}

PyObject *fl_running_loop(fl_state *state)
{
    PyObject *asyncio = imported(state->name_asyncio);
    if (asyncio == NULL) {
        return NULL;
    }
    PyObject *running_loop = PyObject_GetAttr(asyncio, state->name_running_loop);
    Py_DECREF(asyncio);
    if (running_loop == NULL) { /* another thread is about to import it */
        PyErr_Clear();
        return NULL;
    }
    PyObject *loop = PyObject_CallNoArgs(running_loop);
    Py_DECREF(running_loop);
    if (loop == Py_None) {
        Py_CLEAR(loop);
    }
    return loop;
}

/* Whether a task of trio may run here; -1: an exception. */
static int in_trio(fl_state *state)
{
    int may_be = PyDict_Contains(PyImport_GetModuleDict(), state->name_trio);
    if (may_be <= 0) {
        return may_be;
    }
    PyObject *adapter = imported(state->name_trio_adapter), *in_task = NULL, *found = NULL;
    if (adapter != NULL) {
        in_task = PyObject_GetAttr(adapter, state->name_in_task);
        Py_DECREF(adapter);
    }
    if (in_task == NULL) { /* not imported, or by another thread and not whole yet: the finder waits */
        PyErr_Clear();
        return 1;
    }
    found = PyObject_CallNoArgs(in_task);
    Py_DECREF(in_task);
    if (found == NULL) {
        return -1;
    }
    may_be = PyObject_IsTrue(found);
    Py_DECREF(found);
    return may_be;
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

PyDoc_STRVAR(use_tasks_doc,
"use_tasks($module, finder, /)\n"
"--\n"
"\n"
"Sets what says which task runs in this thread: it returns an object that is the task's own, or None.");

static PyObject *use_tasks(PyObject *module, PyObject *finder)
{
    fl_state *state = fl_state_of(module);
    Py_XSETREF(state->current_task, Py_NewRef(finder));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"use_tasks", use_tasks, METH_O, use_tasks_doc},
    {NULL, NULL, 0, NULL},
};

int fl_task_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->name_asyncio = PyUnicode_InternFromString("asyncio");
    state->name_trio = PyUnicode_InternFromString("trio");
    state->name_trio_adapter = PyUnicode_InternFromString("fairlead.wait._trio");
    state->name_in_task = PyUnicode_InternFromString("in_task");
    state->name_gevent = PyUnicode_InternFromString("gevent.hub");
    state->name_running_loop = PyUnicode_InternFromString("_get_running_loop");
    if (state->name_asyncio == NULL || state->name_trio == NULL || state->name_trio_adapter == NULL ||
        state->name_in_task == NULL || state->name_gevent == NULL || state->name_running_loop == NULL) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
