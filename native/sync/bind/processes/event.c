/* SharedEvent: the base of fairlead.sync.shared.Event. */
#include "sync/processes/permits.h"

#include "sync/bind/processes/shm.h"
#include "sync/bind/base/arguments.h"

static size_t event_size(uint32_t Py_UNUSED(amount), uint32_t Py_UNUSED(flags))
{
    return sizeof(fl_shm_flag);
}

static bool event_ready(void *body, fl_shm_eventcount *Py_UNUSED(eventcount))
{
    return fl_shm_flag_word(fl_shm_part_of(body)) & 1;
}

static const fl_shm_type event_kind = {
    .kind = FL_SHM_EVENT,
    .size = event_size,
    .eventcounts = 1,
    .eventcount_at = {offsetof(fl_shm_flag, eventcount)},
    .ready = event_ready,
};

static int event_attempt(PyObject *self, void *since, bool Py_UNUSED(look), fl_shm_eventcount **eventcount)
{
    fl_shm_flag *flag = fl_shm_part(self);
    *eventcount = &flag->eventcount;
    return fl_shm_flag_passed(flag, *(uint32_t *)since) ? FL_SHM_DONE : FL_SHM_NOT;
}

static PyObject *event_is_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fl_shm_flag_word(fl_shm_part(self)) & 1);
}

static PyObject *event_set(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_flag_set(fl_shm_part(self));
    Py_RETURN_NONE;
}

static PyObject *event_clear(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_flag_clear(fl_shm_part(self));
    Py_RETURN_NONE;
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    uint32_t since = fl_shm_flag_word(fl_shm_part(self));
    int result = fl_shm_wait_thread(self, event_attempt, &since, deadline);
    return result < 0 ? NULL : PyBool_FromLong(result == FL_SHM_DONE);
}

static PyObject *event_word(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_shm_flag_word(fl_shm_part(self)));
}

static PyObject *event_passed(PyObject *self, PyObject *since)
{
    unsigned long word = PyLong_AsUnsignedLong(since);
    if (word == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyBool_FromLong(fl_shm_flag_passed(fl_shm_part(self), (uint32_t)word));
}

static PyObject *new_event(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &event_kind, args);
}

PyType_Spec fl_shm_event_spec = FL_TYPE("fairlead._native.SharedEvent", fl_shm_object, Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)new_event},
    FL_SLOTS(SharedEvent, event_));
