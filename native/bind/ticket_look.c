/* What comes by itself, as the permits of a rate, is looked for: a timer of the loop completes the future,
 * the task looks, and where there is nothing yet it awaits another future.
 */
#include "bind/ticket.h"
#include "core/rate.h"

bool fl_ticket_looks(const fl_ticket *self)
{
    return self->cell->kind->timed;
}

int fl_ticket_set_timer(fl_ticket *self, PyObject *port)
{
    int64_t sleep = fl_ticket_looks(self) ? fl_rate_sleep(self->waiter) : FL_FOREVER;
    if (sleep == FL_FOREVER) {
        return 0;
    }
    PyObject *look = PyObject_GetAttrString((PyObject *)self, "_look");
    self->timer = look == NULL ? NULL : fl_port_timer(port, sleep, look);
    Py_XDECREF(look);
    return self->timer == NULL ? -1 : 0;
}

int fl_ticket_await_again(fl_ticket *self)
{
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    fl_port *body;
    PyObject *port = fl_port_here(state);
    PyObject *future = port == NULL ? NULL : fl_port_future(port, &body);
    int outcome = future == NULL ? -1 : fl_await_future(future, &self->inner);
    if (outcome == 0) {
        /* pairs with the port's taking it out */
        PyObject *before = fl_exchange(&self->waiter->payload, Py_NewRef(future), acq_rel);
        Py_XDECREF(before);
        outcome = fl_ticket_set_timer(self, port);
        uint32_t now = fl_load(&self->waiter->state, acquire); /* pairs with settle */
        if (outcome == 0 && now != FL_WAITING) { /* while there was no future to complete */
            fl_port_complete(state, self->waiter);
        }
    }
    Py_XDECREF(future);
    Py_XDECREF(port);
    return outcome;
}

void fl_ticket_stop_timer(fl_ticket *self)
{
    PyObject *timer = self->timer;
    self->timer = NULL;
    if (timer != NULL) {
        PyObject *type, *value, *traceback; /* an exception may be on its way */
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *stopped = PyObject_CallMethod(timer, "cancel", NULL);
        if (stopped == NULL) {
            fl_raise_later(timer);
        }
        Py_XDECREF(stopped);
        Py_DECREF(timer);
        PyErr_Restore(type, value, traceback);
    }
}

void fl_ticket_look(fl_ticket *self)
{
    if (self->waiter != NULL) {
        fl_port_complete(PyType_GetModuleState(Py_TYPE(self)), self->waiter);
    }
}
