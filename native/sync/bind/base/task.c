/* Which task or greenlet runs in this thread: the holder's identity for what only its holder may release.
 *
 * Asked at every acquire and release of an RLock, so that a thread without a loop must learn quickly that it
 * has none, and that a task allocates nothing: what asyncio and trio have for it, which is C, is found once
 * and kept.
 */
#include "sync/bind/base/task.h"

/* A new reference; NULL for None. */
static PyObject *not_none(PyObject *found)
{
    if (found == Py_None) {
        Py_CLEAR(found);
    }
    return found;
}

PyObject *fl_running_loop(fl_state *state)
{
    PyObject *function = fl_of_asyncio(state, &state->running_loop, state->name_asyncio,
                                       "_get_running_loop");
    return function == NULL ? NULL : not_none(PyObject_CallNoArgs(function));
}

PyObject *fl_asyncio_task(fl_state *state, PyObject *loop)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *function = fl_of_asyncio(state, &state->task_of, state->name_asyncio_tasks, "current_task");
    return function == NULL ? NULL : not_none(PyObject_CallOneArg(function, loop));
#else /* where that function is Python, and allocates */
    PyObject *tasks = fl_of_asyncio(state, &state->task_of, state->name_asyncio_tasks, "_current_tasks");
    return tasks == NULL ? NULL : fl_dict_get(tasks, loop);
#endif
}

/* When this thread last found that a task of asyncio's runs, and of which loop, which may be gone. */
static _Thread_local struct {
#ifndef PYPY_VERSION
    fl_py_turn turn;
#endif
    uint32_t generation;
    const PyObject *loop;
} of_task FL_THREAD_LOCAL_MODEL;

bool fl_runs_task_still(const PyObject *loop)
{
#ifdef PYPY_VERSION
    (void)loop;
    return false;
#else
    return loop != NULL && of_task.loop == loop && of_task.generation == fl_fork_generation &&
           fl_py_turn_lasts(&of_task.turn);
#endif
}

bool fl_runs_task_of(fl_state *state, const PyObject *loop)
{
    if (fl_runs_task_still(loop)) {
        return true;
    }
    PyObject *here = fl_running_loop(state);
    PyObject *task = here != NULL && here == loop ? fl_asyncio_task(state, here) : NULL;
    bool runs = task != NULL;
    Py_XDECREF(here);
    Py_XDECREF(task);
#ifndef PYPY_VERSION
    if (runs) {
        of_task.turn = fl_py_turn_here();
        of_task.generation = fl_fork_generation;
        of_task.loop = loop;
    }
#endif
    return runs;
}

/* trio's variable of each thread has a task while one runs there. Its dictionary is asked: an attribute that
   is not there is an exception, which costs more than all the rest. */
static PyObject *trio_task(fl_state *state, PyObject *context)
{
    if (PyCallable_Check(context)) {
        return not_none(PyObject_CallNoArgs(context));
    }
    PyObject *names = PyObject_GetAttr(context, state->name_dict);
    PyObject *task = names == NULL ? NULL : fl_dict_get(names, state->name_task);
    Py_XDECREF(names);
    return task;
}

PyObject *fl_task_here(fl_state *state)
{
    PyObject *context, *task = NULL;
    int trio = fl_of_adapter(state, &state->trio_context, state->name_trio, "fairlead.wait._trio",
                             "run_context", &context);
    if (trio > 0) { /* first: in guest mode an asyncio loop runs underneath */
        task = trio_task(state, context);
    }
    if (trio < 0 || task != NULL || (trio > 0 && PyErr_Occurred())) {
        return task;
    }
    PyObject *loop = fl_running_loop(state);
    if (loop != NULL) {
        task = fl_asyncio_task(state, loop);
        Py_DECREF(loop);
    }
    return task;
}

/* That, or the greenlet where gevent runs in this thread; the first greenlet of a thread is the thread. */
static PyObject *holder_here(fl_state *state)
{
    PyObject *task = fl_task_here(state);
    if (task != NULL || PyErr_Occurred()) {
        return task;
    }
    PyObject *greenlet_of;
    int gevent = fl_of_adapter(state, &state->greenlet_of, state->name_gevent, "fairlead.wait._gevent",
                               "task", &greenlet_of);
    return gevent <= 0 ? NULL : not_none(PyObject_CallNoArgs(greenlet_of));
}

_Thread_local fl_caller_memory fl_caller_last FL_THREAD_LOCAL_MODEL;
fl_atomic(uint32_t) fl_caller_interpreters;

int fl_caller_ask(fl_state *state, fl_caller *me)
{
    fl_caller_memory last = {
#ifndef PYPY_VERSION
        .turn = fl_py_turn_here(), /* before: what is asked may switch to others and back */
#endif
        .interpreters = fl_load(&fl_caller_interpreters, relaxed), /* its own is counted */
        .generation = fl_fork_generation,
    };
    *me = (fl_caller){fl_owner_thread(), holder_here(state)};
    if (me->task == NULL && PyErr_Occurred()) {
        return -1;
    }
    last.who = *me;
    fl_caller_last = last;
    return 0;
}

static fl_atomic(bool) blocking_allowed;

int fl_refuse_to_block(fl_state *state)
{
    if (fl_load(&blocking_allowed, relaxed)) { /* set by the program, before */
        return 0;
    }
    PyObject *task = fl_task_here(state);
    if (task == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(task);
    int notebook = PyDict_Contains(state->modules, state->name_ipykernel); /* its cells are tasks */
    if (notebook == 0) {
        fl_raise(state, DeadlockError,
                 "a task that waits in its loop's thread stops every task of the loop; await the call with "
                 "_async, use `async with`, or see fairlead.sync.blocking_in_tasks()");
    }
    return notebook > 0 ? 0 : -1;
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
    return fl_truth(fl_task_ended(fl_state_of(module), task));
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

static PyObject *current_task(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    PyObject *task = holder_here(fl_state_of(module));
    return task != NULL || PyErr_Occurred() ? task : Py_NewRef(Py_None);
}

static PyObject *blocking_in_tasks(PyObject *Py_UNUSED(module), PyObject *allowed)
{
    int allow = PyObject_IsTrue(allowed);
    if (allow < 0) {
        return NULL;
    }
    return PyBool_FromLong(fl_exchange(&blocking_allowed, allow, relaxed)); /* by itself */
}

PyMethodDef fl_task_functions[] = {
    {"blocking_in_tasks", blocking_in_tasks, METH_O, FL_DOC(module, blocking_in_tasks)},
    {"current_task", current_task, METH_NOARGS, FL_DOC(module, current_task)},
    {"name_tasks", FL_FAST(name_tasks), METH_FASTCALL, FL_DOC(module, name_tasks)},
    {"task_ended", task_ended, METH_O, FL_DOC(module, task_ended)},
    {"task_serial", task_serial, METH_NOARGS, FL_DOC(module, task_serial)},
    {NULL, NULL, 0, NULL},
};
