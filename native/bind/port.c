/* Port: what an event loop polls and calls so that its tasks can be woken from anywhere. */
#include "bind/wait.h"

#include <errno.h>
#include <math.h>

#include "core/port.h"

PyDoc_STRVAR(port_type_doc,
"Port(make_future, running=None, call_later=None, /)\n"
"--\n"
"\n"
"The way into one event loop, for tasks that wait.\n"
"\n"
"make_future() returns something to await once, with done() and set_result(value). running() says whether\n"
"a task of the loop runs at this moment in this thread; then what it releases is seen to at once.\n"
"call_later(seconds, function) calls that once, in the loop's thread, and returns what has a cancel();\n"
"without it no task of the loop can wait for a rate limiter. The loop polls fileno() for reading and then\n"
"calls the port, in its own thread. The port closes when it is not referred to any more, or by close():\n"
"then every task of it that still waits has left the queue, and what was granted to one that has not\n"
"resumed is given on. So the loop alone should hold it.");

typedef struct {
    PyObject_HEAD
    fl_port *body;
    PyObject *make_future;
    PyObject *running;    /* NULL: never known */
    PyObject *call_later; /* NULL: it has no timers */
    PyObject *weak;
} port;

static PyObject *port_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *make_future, *running = Py_None, *call_later = Py_None;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a port takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_UnpackTuple(args, "Port", 1, 3, &make_future, &running, &call_later)) {
        return NULL;
    }
    port *self = (port *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->make_future = Py_NewRef(make_future);
    self->running = running == Py_None ? NULL : Py_NewRef(running);
    self->call_later = call_later == Py_None ? NULL : Py_NewRef(call_later);
    self->body = fl_port_new();
    if (self->body == NULL) {
        Py_DECREF(self);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    fl_store(&self->body->shell, self, release); /* pairs with fl_port_tell */
    fl_roster_add(self->body, PyInterpreterState_GetID(PyInterpreterState_Get()));
    return (PyObject *)self;
}

static int port_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((port *)op)->make_future);
    Py_VISIT(((port *)op)->running);
    Py_VISIT(((port *)op)->call_later);
    return 0;
}

static int port_clear(PyObject *op)
{
    port *self = (port *)op;
    PyObject *module = ((PyHeapTypeObject *)Py_TYPE(op))->ht_module; /* NULL: the type was cleared first */
    if (module != NULL && fl_state_of(module)->recent_port == op) {
        fl_state_of(module)->recent_loop = fl_state_of(module)->recent_port = NULL;
    }
    if (self->body != NULL) {
        fl_store(&self->body->shell, NULL, relaxed); /* no task of its loop runs any more */
        fl_port_close(self->body);
    }
    Py_CLEAR(self->make_future);
    Py_CLEAR(self->running);
    Py_CLEAR(self->call_later);
    return 0;
}

static void port_dealloc(PyObject *op)
{
    port *self = (port *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weak != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    port_clear(op);
    if (self->body != NULL) {
        fl_roster_remove(self->body);
        fl_port_unref(self->body);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

PyObject *fl_port_future(PyObject *op, fl_port **body)
{
    port *self = (port *)op;
    *body = self->body;
    fl_store(&self->body->home, fl_owner_thread(), relaxed); /* read by this thread */
    return PyObject_CallNoArgs(self->make_future);
}

#define LONGEST_TIMER 86400e9 /* who looks too early looks again */

PyObject *fl_port_timer(PyObject *op, int64_t sleep, PyObject *function)
{
    PyObject *call_later = ((port *)op)->call_later;
    if (call_later == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this event loop's port was made without call_later, and so its "
                                            "tasks cannot wait for a rate limiter");
        return NULL;
    }
    return PyObject_CallFunction(call_later, "dO", fmin((double)sleep, LONGEST_TIMER) / 1e9, function);
}

/* The finder is Python, and is asked at every wait. As long as a port is there, so is its loop, which its
   make_future is a method of: so the same loop has the same port. */
PyObject *fl_port_here(fl_state *state)
{
    PyObject *loop = NULL;
#ifndef Py_GIL_DISABLED
    int trio = PyDict_Contains(PyImport_GetModuleDict(), state->name_trio);
    if (trio < 0 || (!trio && (loop = fl_running_loop(state)) == NULL && PyErr_Occurred())) {
        return NULL;
    }
    Py_XDECREF(loop); /* runs, and so lives */
    if (loop != NULL && loop == state->recent_loop) {
        return Py_NewRef(state->recent_port);
    }
#endif
    if (state->current_port == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "import fairlead.wait before something is awaited");
        return NULL;
    }
    PyObject *found = PyObject_CallNoArgs(state->current_port);
    if (found != NULL && !PyObject_TypeCheck(found, state->port_type)) {
        PyErr_SetString(PyExc_TypeError, "the finder of ports returned something else");
        Py_CLEAR(found);
    }
    if (found != NULL && loop != NULL) {
        state->recent_loop = loop;
        state->recent_port = found;
    }
    return found;
}

/* 1: it was done before; 0: it is done now; -1: an exception. */
static int complete(fl_state *state, PyObject *future)
{
    PyObject *done = PyObject_CallMethodNoArgs(future, state->name_done);
    int was_done = done == NULL ? -1 : PyObject_IsTrue(done);
    Py_XDECREF(done);
    if (was_done == 0) {
        PyObject *set = PyObject_CallMethodOneArg(future, state->name_set_result, Py_None);
        was_done = set == NULL ? -1 : 0;
        Py_XDECREF(set);
    }
    return was_done;
}

bool fl_port_complete(fl_state *state, fl_waiter *waiter)
{
#ifdef Py_GIL_DISABLED /* else waits(), which looks at it under this lock, has the GIL */
    fl_port_lock(waiter->port);
#endif
    PyObject *future = fl_exchange(&waiter->payload, NULL, acq_rel); /* pairs with the ticket's drop_waiter */
#ifdef Py_GIL_DISABLED
    fl_mutex_unlock(&waiter->port->lock);
#endif
    if (future == NULL) {
        return true;
    }
    int was_done = complete(state, future);
    if (was_done < 0) { /* perhaps by a signal handler, which must not cost the task its wake-up */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (complete(state, future) < 0) {
            fl_raise_later(future);
        }
        PyErr_Restore(type, value, traceback);
        fl_raise_later(future); /* last: it is raised in the next call of Python */
    }
    Py_DECREF(future);
    return was_done <= 0;
}

/* What was granted to a cancelled task goes on at once, as asyncio's does: not when the task has its turn.
   Whether that was to a task of this very port. */
static bool pass_on(port *self, fl_waiter *waiter)
{
    fl_port_hush();
    fl_waiter_abandon(waiter, FL_CANCELLED);
    fl_port *told = fl_port_unhush();
    if (told == NULL) {
        return false;
    }
    if (told != self->body) {
        fl_port_tell(told);
        return false;
    }
    fl_port_unref(told);
    return true;
}

/* A waiter that was nudged has found nothing: perhaps because who has it is no more. */
static void look_for_holder(fl_waiter *waiter)
{
    /* it waits still, and so its ticket is there, with what it is for: both are of this thread */
    if (!waiter->told && fl_cell_orphaned(waiter->cell) && fl_load(&waiter->payload, acquire) != NULL) {
        waiter->told = true; /* `payload` pairs with the ticket's store */
        if (fl_holder_ended(waiter->request, waiter->cell) < 0) {
            fl_raise_later(waiter->request);
        }
    }
}

/* Whether there is more by now. */
static bool drain_once(port *self)
{
    bool more = false;
    fl_state *module = fl_shell_state((PyObject *)self);
    fl_waiter *waiter = fl_port_drain(self->body);
    while (waiter != NULL) {
        fl_waiter *next = waiter->ready;
        fl_port_seen(waiter);
        if (fl_load(&waiter->state, acquire) == FL_NUDGED) { /* pairs with the nudge */
            if (!fl_cell_retry(waiter)) {
                if (waiter->cell->kind->timed) {
                    fl_port_complete(module, waiter); /* the task sets its timer anew */
                } else {
                    look_for_holder(waiter);
                }
            }
        }
        uint32_t state = fl_load(&waiter->state, acquire); /* pairs with the grant */
        if (state == FL_GRANTED || state == FL_DONE || state == FL_REFUSED || state == FL_BROKEN) {
            more |= !fl_port_complete(module, waiter) && state == FL_GRANTED && pass_on(self, waiter);
        }
        fl_waiter_unref(waiter);
        waiter = next;
    }
    return more;
}

static void drain(port *self)
{
    while (drain_once(self)) {
    }
}

/* Whether a task of its loop runs in this thread; with an exception set, it does not. */
static bool runs_here(port *self)
{
    PyObject *found;
#ifndef Py_GIL_DISABLED
    fl_state *state = fl_shell_state((PyObject *)self);
    if (state->recent_port == (PyObject *)self) { /* asyncio's, asked without the adapter, which is Python */
        PyObject *loop = fl_running_loop(state);
        found = loop != NULL && loop == state->recent_loop ? fl_asyncio_task(state, loop) : NULL;
        Py_XDECREF(found);
        Py_XDECREF(loop);
        return found != NULL;
    }
#endif
    found = self->running == NULL ? NULL : PyObject_CallNoArgs(self->running);
    Py_XDECREF(found);
    return found != NULL && found != Py_None && found != Py_False;
}

void fl_port_tell(fl_port *body)
{
    PyObject *type, *value, *traceback; /* a destructor may release while an exception is on its way */
    PyErr_Fetch(&type, &value, &traceback);
    /* a task may have called into another interpreter, which is not to touch its loop's objects: they may end
       meanwhile, and only this number of theirs stays */
    port *self = body->space == PyInterpreterState_GetID(PyInterpreterState_Get())
                     ? fl_load(&body->shell, acquire) /* pairs with port_new; the loop holds it */
                     : NULL;
    Py_XINCREF(self);
    if (self != NULL && runs_here(self)) {
        drain(self);
    } else {
        if (PyErr_Occurred()) {
            fl_raise_later((PyObject *)self);
        }
        fl_bell_ring(body->bell);
    }
    Py_XDECREF(self);
    PyErr_Restore(type, value, traceback);
    fl_port_unref(body);
}

static PyObject *port_call(PyObject *op, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) > 0 || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "a port is called without arguments");
        return NULL;
    }
    fl_port_hear(((port *)op)->body); /* first: who posts after the stack was taken rings again */
    drain((port *)op);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(fileno_doc,
"fileno($self, /)\n"
"--\n"
"\n"
"The descriptor that becomes readable when there is something to drain.");

static PyObject *port_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(((port *)op)->body->poll);
}

PyDoc_STRVAR(close_doc,
"close($self, /)\n"
"--\n"
"\n"
"Ends every wait of this port. What was granted to tasks that have not resumed is given on. May be called\n"
"twice.");

static PyObject *port_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    fl_port_close(((port *)op)->body);
    Py_RETURN_NONE;
}

static PyMethodDef port_methods[] = {
    {"fileno", port_fileno, METH_NOARGS, fileno_doc},
    {"close", port_close, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef port_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(port, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot port_slots[] = {
    {Py_tp_new, (void *)port_new},
    {Py_tp_call, (void *)port_call},
    {Py_tp_traverse, (void *)port_traverse},
    {Py_tp_clear, (void *)port_clear},
    {Py_tp_dealloc, (void *)port_dealloc},
    {Py_tp_methods, port_methods},
    {Py_tp_members, port_members},
    {Py_tp_doc, (void *)(uintptr_t)port_type_doc},
    {0, NULL},
};

static PyType_Spec port_spec = {
    .name = "fairlead.wait.Port",
    .basicsize = sizeof(port),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = port_slots,
};

int fl_port_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->name_done = PyUnicode_InternFromString("done");
    state->name_set_result = PyUnicode_InternFromString("set_result");
    state->port_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &port_spec, NULL);
    if (state->name_done == NULL || state->name_set_result == NULL || state->port_type == NULL) {
        return -1;
    }
    return PyModule_AddType(module, state->port_type);
}
