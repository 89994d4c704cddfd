/* SharedBarrier: the base of fairlead.sync.shared.Barrier. */
#include "sync/processes/barrier.h"

#include "sync/bind/processes/shm.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/imports.h"

static size_t barrier_size(uint32_t amount, uint32_t Py_UNUSED(flags))
{
    return sizeof(fl_shm_barrier) + amount * sizeof(uint64_t);
}

static bool barrier_ready(void *body, fl_shm_eventcount *Py_UNUSED(eventcount))
{
    return fl_shm_barrier_ready(fl_shm_part_of(body), ((const fl_shm_body *)body)->amount);
}

static const fl_shm_type barrier_kind = {
    .kind = FL_SHM_BARRIER,
    .size = barrier_size,
    .eventcounts = 1,
    .eventcount_at = {offsetof(fl_shm_barrier, eventcount)},
    .ready = barrier_ready,
};

static uint32_t parties_of(PyObject *self)
{
    return ((fl_shm_object *)self)->amount;
}

static int broken(PyObject *self)
{
    fl_raise(fl_shm_state(self), BrokenBarrierError,
             "a party gave up, so the barrier is broken; reset() repairs it");
    return -1;
}

static int come_attempt(PyObject *self, void *party, bool Py_UNUSED(look), fl_shm_eventcount **eventcount)
{
    fl_shm_barrier *barrier = fl_shm_part(self);
    *eventcount = &barrier->eventcount;
    int result = (int)fl_shm_barrier_come(barrier, parties_of(self), fl_process_self(), party);
    return result == FL_SHM_SHUT_DOWN ? broken(self) : result;
}

static int meet_attempt(PyObject *self, void *party, bool look, fl_shm_eventcount **eventcount)
{
    fl_shm_barrier *barrier = fl_shm_part(self);
    uint64_t dead = 0;
    *eventcount = &barrier->eventcount;
    int result = (int)fl_shm_barrier_try(barrier, parties_of(self), party, look, &dead);
    if (result == FL_SHM_DIED) {
        char text[120];
        PyOS_snprintf(text, sizeof text,
                      "process %d arrived and died, so the barrier is broken: reset() repairs it",
                      fl_process_number(dead));
        fl_raise(fl_shm_state(self), BrokenBarrierError, text);
        return -1;
    }
    return result == FL_SHM_SHUT_DOWN ? broken(self) : result;
}

static PyObject *barrier_wait(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    fl_shm_party party;
    if (fl_timeout_argument("wait", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    /* whether there is a place does not depend on others that are to come */
    int result = fl_shm_wait_thread(self, come_attempt, &party, FL_FOREVER);
    if (result < 0) {
        return NULL;
    }
    result = fl_shm_wait_thread(self, meet_attempt, &party, deadline);
    /* all may have come in the last moment */
    if (result != FL_SHM_DONE && fl_shm_barrier_leave(fl_shm_part(self), &party) && result >= 0) {
        broken(self);
        return NULL;
    }
    return result < 0 ? NULL : PyLong_FromUnsignedLong(party.place);
}

static PyObject *barrier_come(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_party party;
    fl_shm_eventcount *eventcount;
    int result = come_attempt(self, &party, true, &eventcount);
    if (result == FL_SHM_NOT) {
        Py_RETURN_NONE;
    }
    return result < 0 ? NULL : Py_BuildValue("II", party.phase, party.place);
}

/* What _come() returned, as two arguments; false with an exception set. */
static bool parse_party(PyObject *const *args, Py_ssize_t count, fl_shm_party *party)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "a party is its phase and its place");
        return false;
    }
    party->phase = (uint32_t)PyLong_AsUnsignedLongMask(args[0]);
    party->place = (uint32_t)PyLong_AsUnsignedLongMask(args[1]);
    return !PyErr_Occurred();
}

static PyObject *barrier_met(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    fl_shm_party party;
    fl_shm_eventcount *eventcount;
    if (!parse_party(args, count, &party)) {
        return NULL;
    }
    int result = meet_attempt(self, &party, true, &eventcount);
    return result < 0 ? NULL : PyBool_FromLong(result == FL_SHM_DONE);
}

static PyObject *barrier_leave(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    fl_shm_party party;
    if (!parse_party(args, count, &party)) {
        return NULL;
    }
    fl_shm_barrier_leave(fl_shm_part(self), &party);
    Py_RETURN_NONE;
}

static PyObject *barrier_abort(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_barrier_break(fl_shm_part(self));
    Py_RETURN_NONE;
}

static PyObject *barrier_reset(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_barrier_reset(fl_shm_part(self), parties_of(self));
    Py_RETURN_NONE;
}

static PyObject *barrier_look(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_barrier *barrier = fl_shm_part(self);
    return Py_BuildValue("IN", (unsigned int)fl_shm_barrier_waiting(barrier, parties_of(self)),
                         PyBool_FromLong(fl_shm_barrier_broken(barrier)));
}

static PyObject *new_barrier(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &barrier_kind, args);
}

PyType_Spec fl_shm_barrier_spec = FL_TYPE("fairlead._native.SharedBarrier", fl_shm_object,
    Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)new_barrier},
    FL_SLOTS(SharedBarrier, barrier_));
