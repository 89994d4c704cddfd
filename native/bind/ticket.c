/* Ticket: one wait of one task, as an awaitable without a coroutine.
 *
 * It takes at once what is there, and is then over in one step. Otherwise it queues a counted waiter, asks
 * the loop's port for a future, and passes every send and throw on to that future's iterator. Whatever ends
 * the wait without a result (a cancellation, close(), the death of the coroutine) settles the waiter: it
 * leaves, or gives back what it was granted.
 *
 * What comes by itself, as the permits of a rate, is looked for: a timer of the loop completes the future,
 * the task looks, and where there is nothing yet it awaits another future.
 */
#include "bind/wait.h"

#include "core/barrier.h"
#include "core/combine.h"
#include "core/notices.h"
#include "core/phaser.h"
#include "core/port.h"
#include "core/rate.h"

typedef enum { NEW, WAITING, OVER } phase;

typedef struct {
    PyObject_HEAD
    PyObject *shell;
    fl_cell *cell;     /* the shell's, or one that lives as long */
    fl_waiter *waiter; /* queued or granted; NULL otherwise */
    PyObject *inner;   /* the iterator of the future that is awaited */
    PyObject *item;    /* for `finish`; may be NULL */
    PyObject *timer;   /* of the loop, for what comes by itself; may be NULL */
    fl_parcel *parcel; /* of a meeting: what goes over, and then what came; who meets it writes here */
    bool selected;     /* by a selection, whose waiter may refer to `parcel` as long as this is there */
    fl_attempt attempt; /* NULL: the cell's */
    fl_conclude conclude; /* NULL: `finish` */
    fl_finish finish;
    uint64_t owner; /* 0: the task that awaits it */
    uint32_t wanted;
    phase phase;
} ticket;

PyObject *fl_ticket_new(fl_state *state, PyObject *shell, uint32_t wanted, fl_finish finish)
{
    return fl_ticket_at(state, shell, fl_shell_cell(shell), wanted, finish, NULL);
}

PyObject *fl_ticket_at(fl_state *state, PyObject *shell, fl_cell *cell, uint32_t wanted, fl_finish finish,
                       PyObject *item)
{
    ticket *self = PyObject_GC_New(ticket, state->ticket_type);
    if (self == NULL) {
        return NULL;
    }
    self->shell = Py_NewRef(shell);
    self->cell = cell;
    self->waiter = NULL;
    self->inner = NULL;
    self->item = Py_XNewRef(item);
    self->timer = NULL;
    self->parcel = NULL;
    self->selected = false;
    self->attempt = NULL;
    self->conclude = NULL;
    self->finish = finish;
    self->owner = 0;
    self->wanted = wanted;
    self->phase = NEW;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void fl_ticket_for(PyObject *op, uint64_t owner)
{
    ((ticket *)op)->owner = owner;
}

static uint64_t holder(ticket *self)
{
    if (self->owner) {
        return self->owner;
    }
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    return Py_TYPE(self->shell) == state->lock_type ? fl_owner_named(state) : fl_owner_task();
}

PyObject *fl_ticket_of(fl_state *state, PyObject *shell, uint32_t wanted, fl_attempt attempt,
                       fl_conclude conclude)
{
    ticket *self = (ticket *)fl_ticket_new(state, shell, wanted, NULL);
    if (self != NULL) {
        self->attempt = attempt;
        self->conclude = conclude;
    }
    return (PyObject *)self;
}

PyObject *fl_ticket_meeting(fl_state *state, PyObject *shell, fl_meeting_side side, fl_parcel *parcel,
                            fl_finish finish)
{
    ticket *self = (ticket *)fl_ticket_new(state, shell, side, finish);
    if (self == NULL) {
        fl_parcel_drop(parcel);
        return NULL;
    }
    self->parcel = parcel;
    self->owner = fl_meeting_place(&self->parcel);
    return (PyObject *)self;
}

PyObject *fl_ticket_concluding(fl_state *state, PyObject *shell, fl_conclude conclude)
{
    return fl_ticket_of(state, shell, 0, NULL, conclude);
}

/* Done with the waiter, which is settled. */
static void drop_waiter(ticket *self)
{
    fl_waiter *waiter = self->waiter;
    self->waiter = NULL;
    self->wanted = waiter->wanted;
    if (waiter->cell->kind == &fl_combine_kind) {
        fl_combine_forget(waiter); /* the request is the shell, which goes with the ticket */
    }
    PyObject *future = fl_exchange(&waiter->payload, NULL, acq_rel); /* pairs with the port's taking it out */
    fl_port_forget(waiter);
    Py_XDECREF(future);
}

static void stop_timer(ticket *self)
{
    PyObject *timer = self->timer;
    self->timer = NULL;
    if (timer != NULL) {
        PyObject *type, *value, *traceback; /* an exception may be on its way */
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *stopped = PyObject_CallMethod(timer, "cancel", NULL);
        if (stopped == NULL) {
            PyErr_WriteUnraisable(timer);
        }
        Py_XDECREF(stopped);
        Py_DECREF(timer);
        PyErr_Restore(type, value, traceback);
    }
}

static void give_up(ticket *self)
{
    self->phase = OVER;
    stop_timer(self);
    if (self->waiter != NULL) {
        fl_waiter_abandon(self->waiter, FL_CANCELLED);
        drop_waiter(self);
    }
}

/* Whether an exception that ends a wait, which met somebody all the same, comes again at the next one. */
static bool postpone(PyObject *error)
{
    PyObject *wait = PyImport_ImportModule("fairlead.wait");
    PyObject *answer = wait == NULL ? NULL : PyObject_CallMethod(wait, "postponed", "O", error);
    bool postponed = answer == Py_True;
    if (answer == NULL) {
        PyErr_WriteUnraisable(error);
    }
    Py_XDECREF(answer);
    Py_XDECREF(wait);
    return postponed;
}

bool fl_wait_stands(fl_waiter *waiter)
{
    PyObject *type, *value, *traceback; /* an exception that is set while the waiter is settled */
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t granted = FL_GRANTED;
    bool stands = waiter->final && !fl_waiter_abandon(waiter, FL_CANCELLED) &&
                  fl_cas(&waiter->state, &granted, FL_TAKEN, acq_rel, acquire); /* pairs with fl_port_close */
    if (stands) {
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback != NULL) {
            PyException_SetTraceback(value, traceback);
        }
        stands = postpone(value);
    }
    if (stands) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, value, traceback);
    }
    return stands;
}

/* With an exception set, which ends the wait: it leaves, or gives back what it was granted. True: that is
   final and stands, and the exception has been put off. */
static bool stands(ticket *self)
{
    bool stands = self->waiter != NULL && fl_wait_stands(self->waiter);
    PyObject *type, *value, *traceback; /* an exception that is set while the waiter is settled */
    PyErr_Fetch(&type, &value, &traceback);
    give_up(self);
    PyErr_Restore(type, value, traceback);
    return stands;
}

static PySendResult finish(ticket *self, bool refused, PyObject **result)
{
    fl_parcel *parcel = self->parcel;
    self->parcel = NULL;
    self->phase = OVER;
    stop_timer(self);
    if (parcel != NULL) {
        *result = self->finish(self->shell, parcel->object, refused);
        fl_parcel_drop(parcel);
    } else if (self->conclude != NULL) {
        *result = self->conclude(self->shell, self->wanted, refused);
    } else if (self->finish != NULL) {
        *result = self->finish(self->shell, self->item, refused);
    } else {
        *result = Py_NewRef(Py_True);
    }
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

static int await_future(ticket *self, PyObject *future)
{
    PyAsyncMethods *async = Py_TYPE(future)->tp_as_async;
    if (async == NULL || async->am_await == NULL) {
        PyErr_SetString(PyExc_TypeError, "the future that a port's make_future() returned cannot be awaited");
        return -1;
    }
    Py_XSETREF(self->inner, async->am_await(future));
    return self->inner == NULL ? -1 : 0;
}

/* Whether what it waits for comes by itself, and is to be looked for. */
static bool looks(const ticket *self)
{
    return self->cell->kind == &fl_rate_kind;
}

/* Queued, with a future: it is completed when it is time to look. -1: an exception. */
static int set_timer(ticket *self, PyObject *port)
{
    int64_t sleep = looks(self) ? fl_rate_sleep(self->waiter) : FL_FOREVER;
    if (sleep == FL_FOREVER) {
        return 0;
    }
    PyObject *look = PyObject_GetAttrString((PyObject *)self, "_look");
    self->timer = look == NULL ? NULL : fl_port_timer(port, sleep, look);
    Py_XDECREF(look);
    return self->timer == NULL ? -1 : 0;
}

/* Queued, and its future is over: another one. -1: an exception. */
static int await_again(ticket *self)
{
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    fl_port *body;
    PyObject *port = fl_port_here(state);
    PyObject *future = port == NULL ? NULL : fl_port_future(port, &body);
    int outcome = future == NULL ? -1 : await_future(self, future);
    if (outcome == 0) {
        /* pairs with the port's taking it out */
        PyObject *before = fl_exchange(&self->waiter->payload, Py_NewRef(future), acq_rel);
        Py_XDECREF(before);
        outcome = set_timer(self, port);
        uint32_t now = fl_load(&self->waiter->state, acquire); /* pairs with settle */
        if (outcome == 0 && now != FL_WAITING) { /* while there was no future to complete */
            fl_port_complete(state, self->waiter);
        }
    }
    Py_XDECREF(future);
    Py_XDECREF(port);
    return outcome;
}

PyDoc_STRVAR(look_doc,
"_look($self, /)\n"
"--\n"
"\n"
"By a timer of its loop: it is time for its task to look.");

static PyObject *look(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    ticket *self = (ticket *)op;
    FL_BEGIN_CRITICAL(op);
    if (self->waiter != NULL) {
        fl_port_complete(PyType_GetModuleState(Py_TYPE(op)), self->waiter);
    }
    FL_END_CRITICAL();
    Py_RETURN_NONE;
}

/* Takes from its cell without waiting. */
static bool attempt(ticket *self, uint64_t owner)
{
    fl_cell *cell = self->cell;
    bool taken;
    if (cell->kind == &fl_meeting_kind) { /* which may wake somebody */
        FL_WAKING(taken = cell->kind->attempt(cell, self->wanted, owner));
    } else {
        taken = cell->kind->attempt(cell, self->wanted, owner);
    }
    return taken;
}

/* 1: taken; 0: queued; FL_REFUSAL: the cell is closed; -1: an exception. Unless queued, nothing is left. */
static int begin(ticket *self)
{
    fl_cell *cell = self->cell;
    int taken = self->attempt != NULL ? self->attempt(self->shell, &self->wanted)
                                      : attempt(self, holder(self));
    if (taken) {
        return taken;
    }
    if (fl_look_at_holders(self->shell, cell) < 0) {
        return -1;
    }
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    if (state->current_port == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "import fairlead.wait before something is awaited");
        return -1;
    }
    PyObject *port = fl_port_here(state);
    if (port == NULL) {
        return -1;
    }
    int outcome = -1;
    PyObject *future = NULL;
    if (!PyObject_TypeCheck(port, state->port_type)) {
        PyErr_SetString(PyExc_TypeError, "the finder of ports returned something else");
        goto done;
    }
    fl_port *body;
    future = fl_port_future(port, &body);
    if (future == NULL || await_future(self, future) < 0) {
        goto done;
    }
    self->waiter = fl_port_waiter(body, cell, self->wanted, holder(self));
    if (self->waiter == NULL) {
        fl_raise("LoopClosed", "the event loop of this task has been closed");
        goto done;
    }
    self->waiter->request = self->shell;
    fl_store(&self->waiter->payload, Py_NewRef(future), release); /* pairs with the port's taking it out */
    outcome = fl_cell_enter(self->waiter);
    if (!outcome && fl_load(&self->waiter->state, acquire) == FL_REFUSED) { /* pairs with fl_cell_refuse */
        outcome = FL_REFUSAL;
    }
    if (!outcome && fl_cell_orphaned(cell)) { /* it is in its port's list by now: see roster.h */
        self->waiter->told = true;
        if (fl_holder_ended(self->shell, cell) < 0) {
            fl_waiter_abandon(self->waiter, FL_CANCELLED);
            outcome = -1;
        }
    }
    if (outcome) {
        drop_waiter(self);
    } else {
        self->phase = WAITING;
        if (set_timer(self, port) < 0) {
            give_up(self);
            outcome = -1;
        }
    }
done:
    if (outcome != 0) {
        Py_CLEAR(self->inner);
    }
    Py_XDECREF(future);
    Py_DECREF(port);
    return outcome;
}

bool fl_ticket_selectable(fl_state *state, PyObject *op)
{
    if (Py_TYPE(op) != state->ticket_type) {
        PyErr_Format(PyExc_TypeError,
                     "select() takes what acquire_async(), wait_async(), get_async() and the like return, "
                     "not a %s",
                     Py_TYPE(op)->tp_name);
        return false;
    }
    ticket *self = (ticket *)op;
    const fl_kind *kind = self->cell->kind;
    if (self->phase != NEW) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
        return false;
    }
    if (looks(self)) {
        fl_raise("UsageError", "a rate limiter cannot be selected: its permits come with time");
        return false;
    }
    if (kind == &fl_phaser_kind && self->attempt != NULL) {
        fl_raise("UsageError",
                        "who arrives at a phaser cannot take that back: arrive(), and select "
                        "await_phase_async()");
        return false;
    }
    if (kind == &fl_barrier_kind || kind == &fl_combine_kind || kind == &fl_notices_kind) {
        fl_raise("UsageError",
                        "a barrier, a condition and a combining lock cannot be selected: who leaves them has "
                        "done something");
        return false;
    }
    return true;
}

fl_cell *fl_ticket_cell(PyObject *op)
{
    return ((ticket *)op)->cell;
}

PyObject *fl_ticket_shell(PyObject *op)
{
    return ((ticket *)op)->shell;
}

uint64_t fl_ticket_owner(PyObject *op, uint64_t mine)
{
    return ((ticket *)op)->owner != 0 ? ((ticket *)op)->owner : mine;
}

int fl_ticket_attempt(PyObject *op, uint64_t owner, uint32_t *wanted)
{
    ticket *self = (ticket *)op;
    int taken = self->attempt != NULL ? self->attempt(self->shell, &self->wanted)
                                      : attempt(self, fl_ticket_owner(op, owner));
    *wanted = self->wanted;
    return taken;
}

PyObject *fl_ticket_finish(PyObject *op, uint32_t wanted, bool refused)
{
    PyObject *result;
    ((ticket *)op)->wanted = wanted;
    finish((ticket *)op, refused, &result);
    return result;
}

int fl_ticket_spend(PyObject *op)
{
    ticket *self = (ticket *)op;
    bool is_new;
    FL_BEGIN_CRITICAL(op);
    is_new = self->phase == NEW;
    if (is_new) {
        self->phase = OVER;
        self->selected = true;
    }
    FL_END_CRITICAL();
    if (!is_new) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
    }
    return is_new ? 0 : -1;
}

int fl_ticket_join(PyObject *self)
{
    return begin((ticket *)self);
}

static PySendResult step(ticket *self, PyObject *value, PyObject **result)
{
    *result = NULL;
    if (self->phase == OVER) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse an awaited acquire, call acquire_async() again");
        return PYGEN_ERROR;
    }
    if (self->phase == NEW) {
        int taken = begin(self);
        if (taken != 0) {
            self->phase = OVER;
            return taken < 0 ? PYGEN_ERROR : finish(self, taken == FL_REFUSAL, result);
        }
        value = Py_None;
    }
    uint32_t state;
    bool granted;
    for (;;) {
        PySendResult sent = PyIter_Send(self->inner, value, result);
        if (sent == PYGEN_NEXT) {
            return sent;
        }
        Py_CLEAR(self->inner);
        if (sent == PYGEN_ERROR) {
            return stands(self) ? finish(self, false, result) : sent;
        }
        Py_CLEAR(*result);
        if (self->waiter != NULL && looks(self)) {
            stop_timer(self);
            FL_WAKING(fl_rate_look(self->waiter));
        }
        state = FL_GRANTED;
        granted = self->waiter != NULL &&
                  fl_cas(&self->waiter->state, &state, FL_TAKEN, acq_rel, acquire); /* pairs with a grant */
        if (granted || self->waiter == NULL || !looks(self) || (state != FL_WAITING && state != FL_NUDGED)) {
            break;
        }
        if (await_again(self) < 0) {
            give_up(self);
            return PYGEN_ERROR;
        }
        value = Py_None;
    }
    if (!granted && self->waiter != NULL && state == FL_REFUSED) {
        drop_waiter(self);
        return finish(self, true, result);
    }
    if (!granted && (self->waiter == NULL || state != FL_DONE)) {
        give_up(self);
        fl_raise("LoopClosed", "the event loop of this task was closed, or its future completed by another");
        return PYGEN_ERROR;
    }
    drop_waiter(self);
    return finish(self, false, result);
}

static PySendResult ticket_send(PyObject *op, PyObject *value, PyObject **result)
{
    PySendResult sent;
    FL_BEGIN_CRITICAL(op);
    sent = step((ticket *)op, value, result);
    FL_END_CRITICAL();
    return sent;
}

PyObject *fl_as_iteration(PySendResult sent, PyObject *result)
{
    if (sent == PYGEN_RETURN) {
        /* a tuple or an exception would be unpacked by PyErr_SetObject */
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
        Py_DECREF(result);
        if (stop != NULL) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
        return NULL;
    }
    return result;
}

static PyObject *ticket_next(PyObject *op)
{
    PyObject *result;
    PySendResult sent = ticket_send(op, Py_None, &result);
    return fl_as_iteration(sent, result);
}

PyDoc_STRVAR(send_doc,
"send($self, value, /)\n"
"--\n"
"\n"
"As of a generator.");

static PyObject *ticket_send_method(PyObject *op, PyObject *value)
{
    PyObject *result;
    PySendResult sent = ticket_send(op, value, &result);
    return fl_as_iteration(sent, result);
}

/* Raises what throw() was called with. */
static void raise_thrown(PyObject *const *args, Py_ssize_t count)
{
    if (PyExceptionInstance_Check(args[0])) {
        PyErr_SetObject((PyObject *)Py_TYPE(args[0]), args[0]);
    } else if (PyExceptionClass_Check(args[0])) {
        PyErr_SetObject(args[0], count > 1 ? args[1] : NULL);
    } else {
        PyErr_SetString(PyExc_TypeError, "throw() takes an exception class or an exception");
    }
}

PyObject *fl_throw_into(PyObject *inner, PyObject *const *args, Py_ssize_t count)
{
    PyObject *thrower = inner == NULL ? NULL : PyObject_GetAttrString(inner, "throw"), *yielded = NULL;
    if (thrower != NULL) {
        yielded = PyObject_Vectorcall(thrower, args, (size_t)count, NULL);
        Py_DECREF(thrower);
    } else {
        PyErr_Clear();
        raise_thrown(args, count);
    }
    return yielded;
}

static PyObject *throw_inside(ticket *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *yielded = fl_throw_into(self->inner, args, count);
    if (yielded != NULL) {
        return yielded; /* the future will not go yet */
    }
    PyObject *inner = self->inner, *result;
    self->inner = NULL;
    PyObject *type, *value, *traceback; /* an exception that is set while the future goes */
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(inner);
    PyErr_Restore(type, value, traceback);
    if (!stands(self)) {
        return NULL;
    }
    PySendResult sent = finish(self, false, &result);
    return fl_as_iteration(sent, result);
}

PyDoc_STRVAR(throw_doc,
"throw($self, kind, value=None, traceback=None, /)\n"
"--\n"
"\n"
"As of a generator. Ends the wait: it leaves the queue, or gives back what it was granted.");

static PyObject *ticket_throw(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result;
    if (count < 1 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "throw() takes 1 to 3 arguments");
        return NULL;
    }
    FL_BEGIN_CRITICAL(op);
    result = throw_inside((ticket *)op, args, count);
    FL_END_CRITICAL();
    return result;
}

PyDoc_STRVAR(close_doc,
"close($self, /)\n"
"--\n"
"\n"
"As of a generator. Ends the wait as throw() does, without an exception.");

static PyObject *ticket_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    ticket *self = (ticket *)op;
    FL_BEGIN_CRITICAL(op);
    Py_CLEAR(self->inner);
    give_up(self);
    FL_END_CRITICAL();
    Py_RETURN_NONE;
}

static int ticket_traverse(PyObject *op, visitproc visit, void *arg)
{
    ticket *self = (ticket *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->shell);
    Py_VISIT(self->inner);
    Py_VISIT(self->item);
    Py_VISIT(self->timer);
    if (self->parcel != NULL) {
        Py_VISIT((PyObject *)self->parcel->object);
    }
    if (self->waiter != NULL) {
        PyObject *future = fl_load(&self->waiter->payload, relaxed); /* no thread of Python runs meanwhile */
        Py_VISIT(future);
    }
    return 0;
}

static void drop_parcel(ticket *self)
{
    fl_parcel *parcel = self->parcel;
    self->parcel = NULL;
    fl_parcel_drop(parcel);
}

static int ticket_clear(PyObject *op)
{
    ticket *self = (ticket *)op;
    give_up(self);
    Py_CLEAR(self->inner);
    Py_CLEAR(self->item);
    if (!self->selected) {
        drop_parcel(self);
    }
    Py_CLEAR(self->shell);
    return 0;
}

static void ticket_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    ticket_clear(op);
    drop_parcel((ticket *)op);
    PyObject_GC_Del(op);
    Py_DECREF(type);
}

static PyMethodDef ticket_methods[] = {
    {"send", ticket_send_method, METH_O, send_doc},
    {"throw", FL_METHOD(ticket_throw), METH_FASTCALL, throw_doc},
    {"close", ticket_close, METH_NOARGS, close_doc},
    {"_look", look, METH_NOARGS, look_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(ticket_type_doc,
"One wait of one task: await it once.");

static PyType_Slot ticket_slots[] = {
    {Py_am_await, (void *)PyObject_SelfIter},
    {Py_am_send, (void *)ticket_send},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)ticket_next},
    {Py_tp_traverse, (void *)ticket_traverse},
    {Py_tp_clear, (void *)ticket_clear},
    {Py_tp_dealloc, (void *)ticket_dealloc},
    {Py_tp_methods, ticket_methods},
    {Py_tp_doc, (void *)(uintptr_t)ticket_type_doc},
    {0, NULL},
};

static PyType_Spec ticket_spec = {
    .name = "fairlead.wait.Ticket",
    .basicsize = sizeof(ticket),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = ticket_slots,
};

PyDoc_STRVAR(use_ports_doc,
"use_ports($module, finder, /)\n"
"--\n"
"\n"
"Sets what is called in a task that must wait: it returns the Port of the loop that runs here.");

static PyObject *use_ports(PyObject *module, PyObject *finder)
{
    fl_state *state = fl_state_of(module);
    Py_XSETREF(state->current_port, Py_NewRef(finder));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"use_ports", use_ports, METH_O, use_ports_doc},
    {NULL, NULL, 0, NULL},
};

int fl_ticket_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    if (!fl_cell_setup()) {
        PyErr_NoMemory();
        return -1;
    }
    state->ticket_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &ticket_spec, NULL);
    if (state->ticket_type == NULL || PyModule_AddType(module, state->ticket_type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
