/* select and select_async: waits for several things at once, and takes one of them.
 *
 * A case is a ticket that nobody has begun to await: it says what is wanted of which cell, and how what was
 * taken is finished. What is there already is taken without queueing; from which case on they are asked is
 * different every time, so that none of those that are ready is preferred. Else the choice in core decides.
 *
 * The two endings: a thread parks on the choice's word, with waiters that are allocated, because it keeps its
 * places while signal handlers run; a task awaits one future of its port, which is the payload of every
 * waiter. A greenlet awaits as a task does.
 */
#include "bind/wait.h"

#include <stdlib.h>

#include "core/choice.h"
#include "core/clock.h"

typedef enum { NEW, WAITING, OVER } phase;

typedef struct {
    PyObject_HEAD
    PyObject *cases; /* a tuple of tickets; NULL: over */
    PyObject *inner; /* the iterator of the future that is awaited */
    fl_choice choice; /* its waiters are the port's while it waits, and NULL otherwise */
    phase phase;
} selection;

/* A place to begin at, another every time. */
static uint32_t any_place(uint32_t count)
{
    static fl_atomic(uint32_t) turns;
    uint32_t turn = fl_fetch_add(&turns, 1, relaxed) + 1; /* only different */
    return (uint32_t)(((uint64_t)(turn * 2654435769u ^ turn >> 7) * count) >> 32);
}

static PyObject *selected(fl_state *state, PyObject *cases, uint32_t place, uint32_t wanted, bool refused)
{
    PyObject *value = fl_ticket_finish(PyTuple_GET_ITEM(cases, place), wanted, refused), *index, *record;
    if (value == NULL) {
        return NULL;
    }
    index = PyLong_FromUnsignedLong(place);
    record = index == NULL ? NULL : PyStructSequence_New(state->selected_type);
    if (record == NULL) {
        Py_XDECREF(index);
        Py_DECREF(value);
        return NULL;
    }
    PyStructSequence_SetItem(record, 0, index);
    PyStructSequence_SetItem(record, 1, value);
    return record;
}

/* Whether these are cases, as a new tuple; NULL with an exception set. */
static PyObject *checked(fl_state *state, PyObject *const *args, Py_ssize_t count)
{
    if (count == 0) {
        PyErr_SetString(PyExc_TypeError, "select() needs something to choose from");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (fl_ticket_choose(state, args[i]) == NULL) {
            return NULL;
        }
        for (Py_ssize_t before = 0; before < i; before++) {
            if (args[before] == args[i]) {
                PyErr_SetString(PyExc_ValueError, "a case is given twice, call it for each");
                return NULL;
            }
        }
    }
    PyObject *cases = PyTuple_New(count);
    for (Py_ssize_t i = 0; cases != NULL && i < count; i++) {
        PyTuple_SET_ITEM(cases, i, Py_NewRef(args[i]));
    }
    return cases;
}

static void spend(PyObject *cases)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cases); i++) {
        fl_ticket_spend(PyTuple_GET_ITEM(cases, i));
    }
}

/* The place of one that could be taken without waiting; -1: none, and *wanted is set for each; -2: an
   exception. */
static Py_ssize_t take_one(PyObject *cases, uint64_t owner, uint32_t first, uint32_t *wanted)
{
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = (first + i) % count;
        int taken = fl_ticket_attempt(PyTuple_GET_ITEM(cases, place), owner, &wanted[place]);
        if (taken != 0) {
            return taken < 0 ? -2 : (Py_ssize_t)place;
        }
    }
    return -1;
}

static fl_cell *cell_of(fl_state *state, PyObject *cases, uint32_t place)
{
    return fl_ticket_choose(state, PyTuple_GET_ITEM(cases, place));
}

/* Room for so many; NULL with an exception. */
typedef struct {
    fl_choice choice;
    fl_waiter *waiters;
    uint32_t *wanted;
} room;

static void free_room(room *self)
{
    free(self->choice.waiters);
    free(self->waiters);
    free(self->wanted);
}

static int make_room(room *self, uint32_t count, bool waiters)
{
    *self = (room){.choice = {.count = count}};
    self->choice.waiters = calloc(count, sizeof *self->choice.waiters);
    self->waiters = waiters ? calloc(count, sizeof *self->waiters) : NULL;
    self->wanted = calloc(count, sizeof *self->wanted);
    if (self->choice.waiters == NULL || (waiters && self->waiters == NULL) || self->wanted == NULL) {
        free_room(self);
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* So that a signal which interrupted no sleep is seen (wait.c). */
#define LOOK_NS 50000000

/* All waiters are initialized, and none is queued. As fl_wait_thread; 1: *winner is GRANTED or REFUSED. */
static int wait_in_thread(fl_choice *choice, uint32_t first, int64_t deadline, uint32_t *winner)
{
    fl_choice_begin(choice, first);
    for (;;) {
        fl_wait_result result;
        uint32_t generation = fl_fork_generation;
        int64_t look = fl_park_misses_signals() ? fl_clock_now() + LOOK_NS : FL_FOREVER;
        FL_BEGIN_SLEEP(choice->waiters[0], deadline)
        result = fl_choice_wait(choice, deadline, look);
        FL_END_SLEEP
        if (result != FL_WAIT_INTERRUPTED) {
            *winner = fl_choice_end(choice);
            return result == FL_WAIT_GRANTED;
        }
        if (PyErr_CheckSignals() < 0) {
            *winner = fl_choice_end(choice);
            if (*winner != FL_CHOICE_NONE) {
                fl_waiter_abandon(choice->waiters[*winner], FL_CANCELLED);
            }
            return -1;
        }
        if (generation != fl_fork_generation && !fl_choice_decided(choice)) { /* the handler forked */
            fl_choice_begin(choice, first);
        }
    }
}

static PyObject *select_in_thread(fl_state *state, PyObject *cases, int64_t deadline)
{
    room here;
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(cases), first = any_place(count), winner;
    if (make_room(&here, count, true) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    Py_ssize_t taken = take_one(cases, fl_owner_thread(), first, here.wanted);
    if (taken >= 0) {
        result = selected(state, cases, (uint32_t)taken, here.wanted[taken], false);
    } else if (taken == -1) {
        for (uint32_t i = 0; i < count; i++) {
            here.choice.waiters[i] = &here.waiters[i];
            fl_waiter_init(&here.waiters[i], cell_of(state, cases, i), here.wanted[i], fl_owner_thread());
            here.waiters[i].request = fl_ticket_shell(PyTuple_GET_ITEM(cases, i));
            here.waiters[i].choice = &here.choice;
            here.waiters[i].place = i;
        }
        int outcome = wait_in_thread(&here.choice, first, deadline, &winner);
        if (outcome == 1) {
            bool refused = fl_load(&here.waiters[winner].state, acquire) == FL_REFUSED; /* settled */
            result = selected(state, cases, winner, here.waiters[winner].wanted, refused);
        } else if (outcome == 0) {
            result = Py_NewRef(Py_None);
        }
    }
    free_room(&here);
    spend(cases);
    return result;
}

static PyObject *selection_new(fl_state *state, PyObject *cases)
{
    selection *self = PyObject_GC_New(selection, state->selection_type);
    if (self != NULL) {
        self->cases = Py_NewRef(cases);
        self->inner = NULL;
        self->choice = (fl_choice){0};
        self->phase = NEW;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

/* Done with the waiters, which are settled. */
static void forget(selection *self)
{
    fl_waiter **waiters = self->choice.waiters;
    self->choice.waiters = NULL;
    for (uint32_t i = 0; i < self->choice.count; i++) {
        if (waiters[i] != NULL) {
            PyObject *future = fl_exchange(&waiters[i]->payload, NULL, acq_rel); /* pairs with the port's */
            fl_port_forget(waiters[i]);
            Py_XDECREF(future);
        }
    }
    free(waiters);
}

static void give_up(selection *self)
{
    self->phase = OVER;
    if (self->choice.waiters != NULL) {
        uint32_t winner = fl_choice_end(&self->choice);
        if (winner != FL_CHOICE_NONE) {
            fl_waiter_abandon(self->choice.waiters[winner], FL_CANCELLED);
        }
        forget(self);
    }
}

/* Decided: what it ends with, or NULL with an exception. */
static PyObject *end(selection *self, fl_state *state)
{
    uint32_t winner = fl_choice_end(&self->choice), granted = FL_GRANTED, wanted = 0;
    bool taken = false, refused = false;
    if (winner != FL_CHOICE_NONE) {
        fl_waiter *waiter = self->choice.waiters[winner];
        taken = fl_cas(&waiter->state, &granted, FL_TAKEN, acq_rel, acquire); /* pairs with fl_port_close */
        refused = !taken && granted == FL_REFUSED;
        wanted = waiter->wanted;
    }
    self->phase = OVER;
    forget(self);
    if (taken || refused) {
        return selected(state, self->cases, winner, wanted, refused);
    }
    return fl_raise("LoopClosed",
                    "the event loop of this task was closed, or its future completed by another");
}

/* The waiters are made and entered; 0, or -1 with an exception and nothing left. */
static int enter_all(selection *self, fl_state *state, const uint32_t *wanted, uint32_t first)
{
    PyObject *port = fl_port_here(state), *future = NULL;
    fl_port *body;
    if (port == NULL) {
        return -1;
    }
    if (!PyObject_TypeCheck(port, state->port_type)) {
        PyErr_SetString(PyExc_TypeError, "the finder of ports returned something else");
    } else {
        future = fl_port_future(port, &body);
    }
    PyAsyncMethods *async = future == NULL ? NULL : Py_TYPE(future)->tp_as_async;
    if (async != NULL && async->am_await != NULL) {
        Py_XSETREF(self->inner, async->am_await(future));
    } else if (future != NULL) {
        PyErr_SetString(PyExc_TypeError, "the future that a port's make_future() returned cannot be awaited");
    }
    bool whole = self->inner != NULL;
    for (uint32_t i = 0; i < self->choice.count && whole; i++) {
        fl_waiter *waiter = fl_port_waiter(body, cell_of(state, self->cases, i), wanted[i], fl_owner_task());
        self->choice.waiters[i] = waiter;
        whole = waiter != NULL;
        if (whole) {
            waiter->request = fl_ticket_shell(PyTuple_GET_ITEM(self->cases, i));
            waiter->choice = &self->choice;
            waiter->place = i;
            fl_store(&waiter->payload, Py_NewRef(future), release); /* pairs with the port's taking it out */
        } else {
            fl_raise("LoopClosed", "the event loop of this task has been closed");
        }
    }
    if (whole) {
        fl_choice_begin(&self->choice, first);
        self->phase = WAITING;
    } else {
        Py_CLEAR(self->inner);
        forget(self);
    }
    Py_XDECREF(future);
    Py_DECREF(port);
    return whole ? 0 : -1;
}

/* The first step: what it ends with at once; NULL without an exception: it waits. */
static PyObject *begin(selection *self, fl_state *state)
{
    room here;
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(self->cases), first = any_place(count);
    if (make_room(&here, count, false) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    Py_ssize_t taken = take_one(self->cases, fl_owner_task(), first, here.wanted);
    if (taken >= 0) {
        result = selected(state, self->cases, (uint32_t)taken, here.wanted[taken], false);
    } else if (taken == -1) {
        self->choice = here.choice;
        here.choice.waiters = NULL;
        if (enter_all(self, state, here.wanted, first) == 0 && fl_choice_decided(&self->choice)) {
            Py_CLEAR(self->inner);
            result = end(self, state);
        }
    }
    free_room(&here);
    spend(self->cases);
    return result;
}

static PySendResult step(selection *self, PyObject *value, PyObject **result)
{
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    *result = NULL;
    if (self->phase == OVER) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse an awaited selection, call select_async() again");
        return PYGEN_ERROR;
    }
    if (self->phase == NEW) {
        *result = begin(self, state);
        if (self->phase != WAITING) {
            self->phase = OVER;
            return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
        }
        value = Py_None;
    }
    PySendResult sent = PyIter_Send(self->inner, value, result);
    if (sent == PYGEN_NEXT) {
        return sent;
    }
    Py_CLEAR(self->inner);
    if (sent == PYGEN_ERROR) {
        PyObject *type, *error, *traceback; /* an exception that is set while the waiters are settled */
        PyErr_Fetch(&type, &error, &traceback);
        give_up(self);
        PyErr_Restore(type, error, traceback);
        return sent;
    }
    Py_CLEAR(*result);
    *result = end(self, state);
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

static PySendResult selection_send(PyObject *op, PyObject *value, PyObject **result)
{
    PySendResult sent;
    FL_BEGIN_CRITICAL(op);
    sent = step((selection *)op, value, result);
    FL_END_CRITICAL();
    return sent;
}

static PyObject *selection_next(PyObject *op)
{
    PyObject *result;
    PySendResult sent = selection_send(op, Py_None, &result);
    return fl_as_iteration(sent, result);
}

PyDoc_STRVAR(send_doc,
"send($self, value, /)\n"
"--\n"
"\n"
"As of a generator.");

static PyObject *selection_send_method(PyObject *op, PyObject *value)
{
    PyObject *result;
    PySendResult sent = selection_send(op, value, &result);
    return fl_as_iteration(sent, result);
}

PyDoc_STRVAR(throw_doc,
"throw($self, kind, value=None, traceback=None, /)\n"
"--\n"
"\n"
"As of a generator. Ends the wait: nothing is taken.");

static PyObject *selection_throw(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    selection *self = (selection *)op;
    PyObject *result;
    if (count < 1 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "throw() takes 1 to 3 arguments");
        return NULL;
    }
    FL_BEGIN_CRITICAL(op);
    result = fl_throw_into(self->inner, args, count);
    if (result == NULL) {
        PyObject *type, *value, *traceback; /* an exception that is set while the waiters are settled */
        PyErr_Fetch(&type, &value, &traceback);
        Py_CLEAR(self->inner);
        give_up(self);
        PyErr_Restore(type, value, traceback);
    }
    FL_END_CRITICAL();
    return result;
}

PyDoc_STRVAR(close_doc,
"close($self, /)\n"
"--\n"
"\n"
"As of a generator. Ends the wait as throw() does, without an exception.");

static PyObject *selection_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    FL_BEGIN_CRITICAL(op);
    Py_CLEAR(((selection *)op)->inner);
    give_up((selection *)op);
    FL_END_CRITICAL();
    Py_RETURN_NONE;
}

static int selection_traverse(PyObject *op, visitproc visit, void *arg)
{
    selection *self = (selection *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->cases);
    Py_VISIT(self->inner);
    for (uint32_t i = 0; self->choice.waiters != NULL && i < self->choice.count; i++) {
        if (self->choice.waiters[i] != NULL) { /* made by now */
            PyObject *future = fl_load(&self->choice.waiters[i]->payload, relaxed); /* no other thread runs */
            Py_VISIT(future);
        }
    }
    return 0;
}

static int selection_clear(PyObject *op)
{
    selection *self = (selection *)op;
    give_up(self);
    Py_CLEAR(self->inner);
    Py_CLEAR(self->cases);
    return 0;
}

static void selection_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    selection_clear(op);
    PyObject_GC_Del(op);
    Py_DECREF(type);
}

static PyMethodDef selection_methods[] = {
    {"send", selection_send_method, METH_O, send_doc},
    {"throw", FL_METHOD(selection_throw), METH_FASTCALL, throw_doc},
    {"close", selection_close, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(selection_doc,
"One wait of one task for one of several things: await it once.");

static PyType_Slot selection_slots[] = {
    {Py_am_await, (void *)PyObject_SelfIter},
    {Py_am_send, (void *)selection_send},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)selection_next},
    {Py_tp_traverse, (void *)selection_traverse},
    {Py_tp_clear, (void *)selection_clear},
    {Py_tp_dealloc, (void *)selection_dealloc},
    {Py_tp_methods, selection_methods},
    {Py_tp_doc, (void *)(uintptr_t)selection_doc},
    {0, NULL},
};

static PyType_Spec selection_spec = {
    .name = "fairlead.wait.Selection",
    .basicsize = sizeof(selection),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = selection_slots,
};

PyDoc_STRVAR(select_doc,
"select($module, /, *cases, timeout=None)\n"
"--\n"
"\n"
"Waits until one of several things can be had, and takes that one: a record of case, its number, and\n"
"value.\n"
"\n"
"For threads; tasks await select_async(). A case is what acquire_async(), wait_async(), get_async(),\n"
"put_async(item), receive_async() and their like return, which nobody awaits. What is taken is as if it had\n"
"been awaited, its exception too, as QueueShutDown; of the others nothing is taken, at any moment. Where\n"
"several can be had, any of them is. None: the time, in seconds, was over first.");

static PyObject *select_one(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    fl_state *state = fl_state_of(module);
    int64_t deadline;
    if (fl_timeout_argument("select", args + count, 0, kwnames, &deadline) < 0) {
        return NULL;
    }
    PyObject *cases = checked(state, args, count), *result = NULL;
    int greenlet = cases == NULL ? -1 : fl_in_greenlet();
    if (greenlet == 0) {
        result = select_in_thread(state, cases, deadline);
    } else if (greenlet > 0) {
        PyObject *made = selection_new(state, cases);
        result = made == NULL ? NULL : fl_greenlet_wait(made, deadline);
        Py_XDECREF(made);
    }
    Py_XDECREF(cases);
    return result;
}

PyDoc_STRVAR(select_async_doc,
"select_async($module, /, *cases)\n"
"--\n"
"\n"
"As select(), in an awaitable. For tasks, with the time-outs of their library. A task that is cancelled has\n"
"taken nothing.");

static PyObject *select_async(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    fl_state *state = fl_state_of(module);
    PyObject *cases = checked(state, args, count);
    PyObject *made = cases == NULL ? NULL : selection_new(state, cases);
    Py_XDECREF(cases);
    return made;
}

static PyMethodDef functions[] = {
    {"select", FL_METHOD(select_one), METH_FASTCALL | METH_KEYWORDS, select_doc},
    {"select_async", FL_METHOD(select_async), METH_FASTCALL, select_async_doc},
    {NULL, NULL, 0, NULL},
};

static PyStructSequence_Field fields[] = {
    {"case", "which of the cases, from 0 on"},
    {"value", "what awaiting it would have returned"},
    {NULL, NULL},
};

static PyStructSequence_Desc desc = {
    .name = "fairlead.sync.Selected",
    .doc = "The one that was taken.",
    .fields = fields,
    .n_in_sequence = 2,
};

int fl_select_exec(PyObject *module)
{
    fl_state *state = fl_state_of(module);
    state->selection_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &selection_spec, NULL);
    state->selected_type = PyStructSequence_NewType(&desc);
    PyTypeObject *types[] = {state->selection_type, state->selected_type};
    return fl_add_types(module, types, Py_ARRAY_LENGTH(types)) < 0 ? -1
                                                                   : PyModule_AddFunctions(module, functions);
}
