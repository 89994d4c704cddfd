/* A task's wait for one of several things: the awaitable that select_async() returns. See select.c. */
#include "sync/bind/wait/select.h"
#include "sync/bind/base/task.h"
#include "sync/bind/wait/awaitable.h"
#include "sync/bind/wait/mailbox.h"

#include <stdlib.h>

typedef enum { NEW, WAITING, OVER } phase;

typedef struct {
    fl_awaitable awaitable;
    fl_cases cases;
    fl_choice choice; /* its waiters are the mailbox's while it waits, and NULL otherwise */
    phase phase;
} selection;

static const fl_awaitable_ops ops;

PyObject *fl_selection_new(fl_state *state, fl_cases *cases)
{
    selection *self = fl_awaitable_new(state->selection_type, &ops);
    if (self != NULL) {
        self->cases = *cases;
        *cases = (fl_cases){NULL, NULL};
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
            fl_task_waiter_done(waiters[i]);
        }
    }
    free(waiters);
}

/* PYGEN_RETURN: with an exception set, which came after it had met another, which has gone on. */
static PySendResult end_early(PyObject *op, PyObject **result)
{
    selection *self = (selection *)op;
    bool stands = false, raised = PyErr_Occurred() != NULL;
    *result = NULL;
    self->phase = OVER;
    if (self->choice.waiters == NULL) {
        return PYGEN_ERROR;
    }
    uint32_t winner = fl_choice_end(&self->choice);
    if (winner != FL_CHOICE_NONE) {
        fl_waiter *waiter = self->choice.waiters[winner];
        stands = raised && fl_wait_stands(fl_wrapper_state((PyObject *)self), waiter);
        if (!stands) {
            fl_waiter_abandon(waiter, FL_CANCELLED);
        }
    }
    PyObject *type, *value, *traceback; /* an exception that is set while the waiters are settled */
    PyErr_Fetch(&type, &value, &traceback);
    forget(self);
    PyErr_Restore(type, value, traceback);
    if (stands) {
        *result = fl_selected(PyType_GetModuleState(Py_TYPE(self)), &self->cases, winner, 0, false);
    }
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

static void give_up(PyObject *op)
{
    PyObject *none;
    end_early(op, &none);
}

/* Decided: what it ends with, or NULL with an exception. */
static PyObject *end(selection *self, fl_state *state)
{
    uint32_t winner = fl_choice_end(&self->choice), granted = FL_GRANTED, wanted = 0;
    bool taken = false, refused = false;
    if (winner != FL_CHOICE_NONE) {
        fl_waiter *waiter = self->choice.waiters[winner];
        taken =
            fl_cas(&waiter->state, &granted, FL_TAKEN, acq_rel, acquire); /* pairs with fl_mailbox_close */
        refused = !taken && granted == FL_REFUSED;
        wanted = waiter->wanted;
    }
    self->phase = OVER;
    forget(self);
    if (taken || refused) {
        return fl_selected(state, &self->cases, winner, wanted, refused);
    }
    return fl_raise(state, LoopClosedError,
                    "the event loop of this task was closed, or its future completed by another");
}

/* The waiters are made and entered; 0, or -1 with an exception and nothing left. */
static int enter_all(selection *self, fl_state *state, const uint32_t *wanted, uint32_t first)
{
    fl_mailbox *body;
    PyObject *future, *mailbox = fl_await_here(state, false, &self->awaitable.inner, &body, &future);
    if (mailbox == NULL) {
        forget(self);
        return -1;
    }
    bool whole = true;
    for (uint32_t i = 0; i < self->choice.count && whole; i++) {
        const fl_operation *operation = fl_select_case(&self->cases, i);
        fl_waiter *waiter = fl_task_waiter(operation->wrapper, body, operation->waitq, wanted[i],
                                           FL_HOLDER(fl_owner_task()), future);
        self->choice.waiters[i] = waiter;
        whole = waiter != NULL;
        if (whole) {
            fl_select_prepare(waiter, &self->choice, &self->cases, i);
        }
    }
    if (whole) {
        fl_select_begin(&self->choice, &self->cases, first);
        self->phase = WAITING;
    } else {
        Py_CLEAR(self->awaitable.inner);
        forget(self);
    }
    Py_DECREF(future);
    Py_DECREF(mailbox);
    return whole ? 0 : -1;
}

/* The first step: what it ends with at once; NULL without an exception: it waits. */
static PyObject *begin(selection *self, fl_state *state)
{
    fl_select_room room;
    PyObject *result;
    if (!fl_select_at_once(&room, state, &self->cases, fl_owner_task(), &result)) {
        self->choice = room.choice;
        room.choice.waiters = NULL;
        if (enter_all(self, state, room.wanted, room.first) == 0 && fl_choice_decided(&self->choice)) {
            Py_CLEAR(self->awaitable.inner);
            result = end(self, state);
        }
    }
    fl_select_free(&room);
    return result;
}

static PySendResult step(PyObject *op, PyObject *value, PyObject **result)
{
    selection *self = (selection *)op;
    fl_state *state = PyType_GetModuleState(Py_TYPE(op));
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
    PySendResult sent;
    if (fl_awaitable_awaits(op, value, result, &sent)) {
        return sent;
    }
    *result = end(self, state);
    return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
}

static const fl_awaitable_ops ops = {.step = step, .raised = end_early, .give_up = give_up};

static int selection_traverse(PyObject *op, visitproc visit, void *arg)
{
    selection *self = (selection *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->cases.operations);
    Py_VISIT(self->cases.labels);
    Py_VISIT(self->awaitable.inner);
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
    fl_awaitable_give_up(op);
    Py_CLEAR(self->awaitable.inner);
    fl_cases_clear(&self->cases);
    return 0;
}

PyType_Spec fl_selection_spec = FL_TYPE("fairlead.wait.Selection", selection,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    FL_AWAITABLE_SLOTS,
    {Py_tp_traverse, (void *)selection_traverse},
    {Py_tp_clear, (void *)selection_clear},
    {Py_tp_dealloc, (void *)fl_awaitable_dealloc},
    FL_SLOTS(Selection, fl_awaitable_));
