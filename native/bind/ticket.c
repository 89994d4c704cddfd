/* Ticket: one wait of one task, as an awaitable without a coroutine.
 *
 * It takes at once what is there, and is then over in one step. Otherwise it queues a counted waiter, asks
 * the loop's port for a future, and passes every send and throw on to that future's iterator. Whatever ends
 * the wait without a result (a cancellation, close(), the death of the coroutine) settles the waiter: it
 * leaves, or gives back what it was granted.
 */
#include "bind/ticket.h"
#include "core/rate.h"

PyObject *fl_ticket_new(fl_state *state, PyObject *shell, uint32_t wanted, fl_finish finish)
{
    return fl_ticket_at(state, shell, fl_shell_cell(shell), wanted, finish, NULL);
}

PyObject *fl_ticket_at(fl_state *state, PyObject *shell, fl_cell *cell, uint32_t wanted, fl_finish finish,
                       PyObject *item)
{
    fl_ticket *self = PyObject_GC_New(fl_ticket, state->ticket_type);
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
    self->busy = false;
    self->selected = false;
    self->attempt = NULL;
    self->conclude = NULL;
    self->finish = finish;
    self->owner = 0;
    self->wanted = wanted;
    self->phase = FL_TICKET_NEW;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void fl_ticket_for(PyObject *op, uint64_t owner)
{
    ((fl_ticket *)op)->owner = owner;
}

static uint64_t holder(fl_ticket *self)
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
    fl_ticket *self = (fl_ticket *)fl_ticket_new(state, shell, wanted, NULL);
    if (self != NULL) {
        self->attempt = attempt;
        self->conclude = conclude;
    }
    return (PyObject *)self;
}

PyObject *fl_ticket_meeting(fl_state *state, PyObject *shell, fl_meeting_side side, fl_parcel *parcel,
                            fl_finish finish)
{
    fl_ticket *self = (fl_ticket *)fl_ticket_new(state, shell, side, finish);
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
static void drop_waiter(fl_ticket *self)
{
    fl_waiter *waiter = self->waiter;
    self->waiter = NULL;
    self->wanted = waiter->wanted;
    if (waiter->cell->kind->forget != NULL) {
        waiter->cell->kind->forget(waiter); /* its request is the shell, which goes with the ticket */
    }
    PyObject *future = fl_exchange(&waiter->payload, NULL, acq_rel); /* pairs with the port's taking it out */
    fl_port_forget(waiter);
    Py_XDECREF(future);
}

static void give_up(fl_ticket *self)
{
    self->phase = FL_TICKET_OVER;
    fl_ticket_stop_timer(self);
    if (self->waiter != NULL) {
        fl_waiter_abandon(self->waiter, FL_CANCELLED);
        drop_waiter(self);
    }
}

/* With an exception set, which ends the wait: it leaves, or gives back what it was granted. True: that is
   final and stands, and the exception has been put off. */
static bool stands(fl_ticket *self)
{
    bool stands = self->waiter != NULL && fl_wait_stands(self->waiter);
    PyObject *type, *value, *traceback; /* an exception that is set while the waiter is settled */
    PyErr_Fetch(&type, &value, &traceback);
    give_up(self);
    PyErr_Restore(type, value, traceback);
    return stands;
}

PySendResult fl_ticket_end(fl_ticket *self, bool refused, PyObject **result)
{
    fl_parcel *parcel = self->parcel;
    self->parcel = NULL;
    self->phase = FL_TICKET_OVER;
    fl_ticket_stop_timer(self);
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

bool fl_ticket_take(fl_ticket *self, uint64_t owner)
{
    fl_cell *cell = self->cell;
    bool taken;
    if (cell->kind->attempt == NULL) {
        taken = false;
    } else if (cell->kind->wakes) {
        FL_WAKING(taken = cell->kind->attempt(cell, self->wanted, owner));
    } else {
        taken = cell->kind->attempt(cell, self->wanted, owner);
    }
    return taken;
}

/* 1: taken; 0: queued; FL_REFUSAL: the cell is closed; -1: an exception. Unless queued, nothing is left. */
static int begin(fl_ticket *self)
{
    fl_cell *cell = self->cell;
    int taken = self->attempt != NULL ? self->attempt(self->shell, &self->wanted)
                                      : fl_ticket_take(self, holder(self));
    if (taken) {
        return taken;
    }
    if (fl_look_at_holders(self->shell, cell) < 0) {
        return -1;
    }
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *port = fl_port_here(state);
    if (port == NULL) {
        return -1;
    }
    int outcome = -1;
    fl_port *body;
    PyObject *future = fl_port_future(port, &body);
    if (future == NULL || fl_await_future(future, &self->inner) < 0) {
        goto done;
    }
    self->waiter = fl_port_waiter(body, cell, self->wanted, holder(self));
    if (self->waiter == NULL) {
        fl_raise("LoopClosedError",
                 "the event loop of this task has been closed");
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
        self->phase = FL_TICKET_WAITING;
        if (fl_ticket_set_timer(self, port) < 0) {
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

int fl_ticket_join(PyObject *op)
{
    fl_ticket *self = (fl_ticket *)op;
    self->busy = true; /* nobody else has it yet, but what runs meanwhile can find it */
    int outcome = begin(self);
    self->busy = false;
    return outcome;
}

static PySendResult step(fl_ticket *self, PyObject *value, PyObject **result)
{
    *result = NULL;
    if (self->phase == FL_TICKET_OVER) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse an awaited acquire, call acquire_async() again");
        return PYGEN_ERROR;
    }
    if (self->phase == FL_TICKET_NEW) {
        int taken = begin(self);
        if (taken != 0) {
            self->phase = FL_TICKET_OVER;
            return taken < 0 ? PYGEN_ERROR : fl_ticket_end(self, taken == FL_REFUSAL, result);
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
            return stands(self) ? fl_ticket_end(self, false, result) : sent;
        }
        Py_CLEAR(*result);
        if (self->waiter != NULL && fl_ticket_looks(self)) {
            fl_ticket_stop_timer(self);
            FL_WAKING(fl_rate_look(self->waiter));
        }
        state = FL_GRANTED;
        granted = self->waiter != NULL &&
                  fl_cas(&self->waiter->state, &state, FL_TAKEN, acq_rel, acquire); /* pairs with a grant */
        if (granted || self->waiter == NULL || !fl_ticket_looks(self) ||
            (state != FL_WAITING && state != FL_NUDGED)) {
            break;
        }
        if (fl_ticket_await_again(self) < 0) {
            give_up(self);
            return PYGEN_ERROR;
        }
        value = Py_None;
    }
    if (!granted && self->waiter != NULL && state == FL_REFUSED) {
        drop_waiter(self);
        return fl_ticket_end(self, true, result);
    }
    if (!granted && (self->waiter == NULL || state != FL_DONE)) {
        give_up(self);
        fl_raise("LoopClosedError",
                 "the event loop of this task was closed, or its future completed by another");
        return PYGEN_ERROR;
    }
    drop_waiter(self);
    return fl_ticket_end(self, false, result);
}

static PySendResult ticket_send(PyObject *op, PyObject *value, PyObject **result)
{
    fl_ticket *self = (fl_ticket *)op;
    PySendResult sent = PYGEN_ERROR;
    *result = NULL;
    FL_BEGIN_CRITICAL(op);
    if (fl_awaitable_begin(&self->busy)) {
        sent = step(self, value, result);
        self->busy = false;
    }
    FL_END_CRITICAL();
    return sent;
}

PyDoc_STRVAR(send_doc,
"send($self, value, /)\n"
"--\n"
"\n"
"As of a generator.");

static PyObject *throw_inside(fl_ticket *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *yielded = fl_throw_into(&self->inner, args, count), *result;
    if (yielded != NULL) {
        return yielded; /* the future will not go yet */
    }
    if (!stands(self)) {
        return NULL;
    }
    PySendResult sent = fl_ticket_end(self, false, &result);
    return fl_as_iteration(sent, result);
}

PyDoc_STRVAR(throw_doc,
"throw($self, kind, value=None, traceback=None, /)\n"
"--\n"
"\n"
"As of a generator. Ends the wait: it leaves the queue, or gives back what it was granted.");

static PyObject *ticket_throw(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    fl_ticket *self = (fl_ticket *)op;
    PyObject *result = NULL;
    if (fl_throw_arguments(count) < 0) {
        return NULL;
    }
    FL_BEGIN_CRITICAL(op);
    if (fl_awaitable_begin(&self->busy)) {
        result = throw_inside(self, args, count);
        self->busy = false;
    }
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
    fl_ticket *self = (fl_ticket *)op;
    bool begun;
    FL_BEGIN_CRITICAL(op);
    begun = fl_awaitable_begin(&self->busy);
    if (begun) {
        Py_CLEAR(self->inner);
        give_up(self);
        self->busy = false;
    }
    FL_END_CRITICAL();
    return begun ? Py_NewRef(Py_None) : NULL;
}

static int ticket_traverse(PyObject *op, visitproc visit, void *arg)
{
    fl_ticket *self = (fl_ticket *)op;
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

static void drop_parcel(fl_ticket *self)
{
    fl_parcel *parcel = self->parcel;
    self->parcel = NULL;
    fl_parcel_drop(parcel);
}

static int ticket_clear(PyObject *op)
{
    fl_ticket *self = (fl_ticket *)op;
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
    Py_TRASHCAN_BEGIN(op, ticket_dealloc)
    ticket_clear(op);
    drop_parcel((fl_ticket *)op);
    PyObject_GC_Del(op);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyDoc_STRVAR(look_doc,
"_look($self, /)\n"
"--\n"
"\n"
"By a timer of its loop: it is time for its task to look.");

static PyObject *ticket_look(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    FL_BEGIN_CRITICAL(op);
    fl_ticket_look((fl_ticket *)op);
    FL_END_CRITICAL();
    Py_RETURN_NONE;
}

static PyMethodDef ticket_methods[] = {
    {"send", fl_awaitable_send, METH_O, send_doc},
    {"throw", FL_METHOD(ticket_throw), METH_FASTCALL, throw_doc},
    {"close", ticket_close, METH_NOARGS, close_doc},
    {"_look", ticket_look, METH_NOARGS, look_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(ticket_type_doc,
"One wait of one task: await it once.");

static PyType_Slot ticket_slots[] = {
    {Py_am_await, (void *)PyObject_SelfIter},
    {Py_am_send, (void *)ticket_send},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)fl_awaitable_next},
    {Py_tp_traverse, (void *)ticket_traverse},
    {Py_tp_clear, (void *)ticket_clear},
    {Py_tp_dealloc, (void *)ticket_dealloc},
    {Py_tp_methods, ticket_methods},
    {Py_tp_doc, (void *)(uintptr_t)ticket_type_doc},
    {0, NULL},
};

static PyType_Spec ticket_spec = {
    .name = "fairlead.wait.Ticket",
    .basicsize = sizeof(fl_ticket),
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
