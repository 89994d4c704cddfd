/* A ticket that nobody has begun to await, as a case of a selection (select.c). */
#include "bind/ticket.h"
#include "core/phaser.h"

bool fl_ticket_selectable(fl_state *state, PyObject *op)
{
    if (Py_TYPE(op) != state->ticket_type) {
        PyErr_Format(PyExc_TypeError,
                     "select() takes what acquire_async(), wait_async(), get_async() and the like return, "
                     "not a %s",
                     Py_TYPE(op)->tp_name);
        return false;
    }
    fl_ticket *self = (fl_ticket *)op;
    const fl_kind *kind = self->cell->kind;
    if (self->phase != FL_TICKET_NEW) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
        return false;
    }
    if (fl_ticket_looks(self)) {
        fl_raise("UsageError", "a rate limiter cannot be selected: its permits come with time");
        return false;
    }
    if (kind == &fl_phaser_kind && self->attempt != NULL) {
        fl_raise("UsageError",
                        "who arrives at a phaser cannot take that back: arrive(), and select "
                        "wait_phase_async()");
        return false;
    }
    if (kind->marks) {
        fl_raise("UsageError",
                        "a barrier, a condition and a combining lock cannot be selected: who leaves them has "
                        "done something");
        return false;
    }
    return true;
}

fl_cell *fl_ticket_cell(PyObject *op)
{
    return ((fl_ticket *)op)->cell;
}

PyObject *fl_ticket_shell(PyObject *op)
{
    return ((fl_ticket *)op)->shell;
}

uint64_t fl_ticket_owner(PyObject *op, uint64_t mine)
{
    return ((fl_ticket *)op)->owner != 0 ? ((fl_ticket *)op)->owner : mine;
}

int fl_ticket_attempt(PyObject *op, uint64_t owner, uint32_t *wanted)
{
    fl_ticket *self = (fl_ticket *)op;
    int taken = self->attempt != NULL ? self->attempt(self->shell, &self->wanted)
                                      : fl_ticket_take(self, fl_ticket_owner(op, owner));
    *wanted = self->wanted;
    return taken;
}

PyObject *fl_ticket_finish(PyObject *op, uint32_t wanted, bool refused)
{
    PyObject *result;
    ((fl_ticket *)op)->wanted = wanted;
    fl_ticket_end((fl_ticket *)op, refused, &result);
    return result;
}

int fl_ticket_spend(PyObject *op)
{
    fl_ticket *self = (fl_ticket *)op;
    bool is_new;
    FL_BEGIN_CRITICAL(op);
    is_new = self->phase == FL_TICKET_NEW;
    if (is_new) {
        self->phase = FL_TICKET_OVER;
        self->selected = true;
    }
    FL_END_CRITICAL();
    if (!is_new) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
    }
    return is_new ? 0 : -1;
}
