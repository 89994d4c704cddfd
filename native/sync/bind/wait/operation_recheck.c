/* What comes by itself, as the permits of a rate, is looked for: a timer of the loop completes the future,
 * the task looks, and where there is nothing yet it awaits another future.
 */
#include "sync/bind/wait/operation.h"
#include "sync/bind/wait/mailbox.h"
#include "machine/clock.h"

bool fl_operation_rechecks(const fl_operation *self)
{
    return self->waitq->ops->look != NULL;
}

int fl_operation_set_timer(fl_operation *self, PyObject *mailbox)
{
    int64_t date = fl_operation_rechecks(self) ? self->waitq->ops->look(self->waiter) : FL_FOREVER;
    if (date == FL_FOREVER) {
        return 0;
    }
    int64_t now = fl_clock_now(), sleep = date > now ? date - now : 0;
    PyObject *look = PyObject_GetAttrString((PyObject *)self, "_recheck");
    self->timer = look == NULL ? NULL : fl_mailbox_timer(mailbox, sleep, look);
    Py_XDECREF(look);
    return self->timer == NULL ? -1 : 0;
}

int fl_operation_await_again(fl_operation *self)
{
    fl_state *state = PyType_GetModuleState(Py_TYPE(self));
    fl_mailbox *body;
    PyObject *future, *mailbox = fl_await_here(state, false, &self->awaitable.inner, &body, &future);
    if (mailbox == NULL) {
        return -1;
    }
    PyObject *before = fl_waiter_swap_future(self->waiter, future);
    Py_XDECREF(before);
    int outcome = fl_operation_set_timer(self, mailbox);
    uint32_t now = fl_load(&self->waiter->state, acquire); /* pairs with settle */
    if (outcome == 0 && now != FL_WAITING) { /* while there was no future to complete */
        fl_mailbox_complete(state, self->waiter);
    }
    Py_DECREF(mailbox);
    return outcome;
}

void fl_operation_stop_timer(fl_operation *self)
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
