/* Event: the flag in core, as threading.Event and asyncio.Event at once. */
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"

#include "sync/coordination/event.h"

static PyObject *event_is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_flag_is_set(fl_wrapper_waitq(self)));
}

static PyObject *event_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FL_WAKING(fl_flag_set(fl_wrapper_waitq(self)));
    Py_RETURN_NONE;
}

static PyObject *event_clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_flag_clear(fl_wrapper_waitq(self));
    Py_RETURN_NONE;
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return fl_wait_for_zero("wait", self, args, count, kwnames);
}

static PyObject *event_wait_async(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(self), self, 0, NULL);
}

static PyObject *event_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {fl_flag_is_set(waitq), (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(self)->event_statistics, values, 2, 1);
}

static PyObject *repr(PyObject *self)
{
    return fl_wrapper_repr(self, "%s", fl_flag_is_set(fl_wrapper_waitq(self)) ? "set" : "unset");
}

static PyObject *change(PyObject *self, const char *method, PyObject *const *args, Py_ssize_t count,
                        PyObject *kwnames, bool (*by)(fl_waitq *waitq, uint32_t count), const char *refusal)
{
    static const char *const names[] = {"n", NULL};
    int64_t number = 1;
    if (count > 0 || kwnames != NULL) {
        PyObject *value;
        if (fl_arguments(method, names, args, count, kwnames, &value) < 0 ||
            (number = fl_whole("n", value, 1, FL_COUNT_MOST, "")) < 0) {
            return NULL;
        }
    }
    bool done;
    FL_WAKING(done = by(fl_wrapper_waitq(self), (uint32_t)number));
    if (!done) {
        return fl_raise(fl_wrapper_state(self), TooManyReleasesError, refusal);
    }
    Py_RETURN_NONE;
}

static PyObject *countdown_count_down(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                      PyObject *kwnames)
{
    return change(self, "count_down", args, count, kwnames, fl_count_down,
                  "it was counted down more often than it counts");
}

static PyObject *countdown_count_up(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                    PyObject *kwnames)
{
    return change(self, "count_up", args, count, kwnames, fl_count_up, "the event counts no further");
}

static PyObject *countdown_statistics(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_waitq *waitq = fl_wrapper_waitq(self);
    long values[] = {(long)fl_count_value(waitq), (long)fl_waitq_waiting(waitq)};
    return fl_record(fl_wrapper_state(self)->count_statistics, values, 2, 0);
}

static PyObject *get_value(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(fl_count_value(fl_wrapper_waitq(self)));
}

static PyObject *count_repr(PyObject *self)
{
    return fl_wrapper_repr(self, "value=%u", (unsigned)fl_count_value(fl_wrapper_waitq(self)));
}

static PyObject *countdown_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *number = NULL;
    int64_t count = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:CountdownEvent", FL_PARAMETERS(CountdownEvent),
                                     &number) ||
        (number != NULL && (count = fl_whole("value", number, 0, FL_COUNT_MOST, "")) < 0)) {
        return NULL;
    }
    return fl_wrapper_new(type, fl_count_new((uint32_t)count));
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return PyArg_ParseTupleAndKeywords(args, kwargs, ":Event", FL_PARAMETERS(Event))
               ? fl_wrapper_new(type, fl_flag_new())
               : NULL;
}

/* What it does as an Event does. */
#define countdown_is_set event_is_set
#define countdown_wait event_wait
#define countdown_wait_async event_wait_async

static PyGetSetDef count_fields_got[] = {
    {"value", get_value, NULL, FL_DOC(CountdownEvent, value), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyType_Spec fl_event_spec = FL_TYPE("fairlead.sync.Event", fl_wrapper, 0,
    {Py_tp_new, (void *)event_new},
    {Py_tp_repr, (void *)repr},
    FL_WRAPPER_SLOTS(Event, event_));

PyType_Spec fl_countdown_spec = FL_TYPE("fairlead.sync.CountdownEvent", fl_wrapper, 0,
    {Py_tp_new, (void *)countdown_new},
    {Py_tp_repr, (void *)count_repr},
    {Py_tp_getset, count_fields_got},
    FL_WRAPPER_SLOTS(CountdownEvent, countdown_));
