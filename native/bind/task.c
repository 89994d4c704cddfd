/* Which task runs in this thread: the holder's identity for what only its holder may release.
 *
 * Asked at every acquire and release of an RLock, so that a thread without a loop must learn quickly that it
 * has none: two look-ups in dictionaries and one call of asyncio's C function. trio has no such function, and
 * where it was imported the finder in Python is asked.
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

PyObject *fl_task_here(fl_state *state)
{
    if (state->current_task == NULL) {
        return NULL;
    }
    int may_be = PyDict_Contains(PyImport_GetModuleDict(), state->name_trio);
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
    state->name_running_loop = PyUnicode_InternFromString("_get_running_loop");
    if (state->name_asyncio == NULL || state->name_trio == NULL || state->name_running_loop == NULL) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
