/* An operation that is not awaited yet, as a case of a selection (select.c). */
#include "sync/bind/wait/operation.h"

bool fl_operation_selectable(fl_state *state, PyObject *op)
{
    if (Py_TYPE(op) != state->operation_type) {
        PyErr_Format(PyExc_TypeError,
                     "select() takes what acquire_async(), wait_async(), get_async() and the like return, "
                     "not a %s",
                     Py_TYPE(op)->tp_name);
        return false;
    }
    fl_operation *self = (fl_operation *)op;
    const fl_waitq_ops *ops = self->waitq->ops;
    if (self->phase != FL_OPERATION_NEW) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
        return false;
    }
    if (fl_operation_rechecks(self)) {
        fl_raise(state, UsageError, "a rate limiter cannot be selected: its permits come with time");
        return false;
    }
    if (ops->marks) {
        fl_raise(state, UsageError,
                        "a barrier and a combiner cannot be selected: "
                        "leaving them has effects");
        return false;
    }
    return true;
}

int fl_operation_attempt(fl_operation *self, uint64_t holder, uint32_t *wanted)
{
    int taken = fl_operation_is_refused(self) ? FL_REFUSAL
                : self->attempt != NULL ? self->attempt(self->wrapper, self->item, &self->wanted)
                                        : fl_operation_take(self, fl_operation_stake(self, holder));
    *wanted = self->wanted;
    return taken;
}

bool fl_operation_is_refused(fl_operation *self)
{
    return self->refuses != NULL && self->refuses(self->wrapper);
}

PyObject *fl_operation_finish(fl_operation *self, uint32_t wanted, bool refused)
{
    PyObject *result;
    self->wanted = wanted;
    fl_operation_end(self, refused, &result);
    return result;
}

int fl_operation_spend(fl_operation *self)
{
    bool is_new;
    FL_BEGIN_CRITICAL(self);
    is_new = self->phase == FL_OPERATION_NEW;
    if (is_new) {
        self->phase = FL_OPERATION_OVER;
        self->selected = true;
    }
    FL_END_CRITICAL();
    if (!is_new) {
        PyErr_SetString(PyExc_RuntimeError, "cannot select what was awaited before, call it again");
    }
    return is_new ? 0 : -1;
}
