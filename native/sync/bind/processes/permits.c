/* SharedSemaphore: the base of fairlead.sync.shared.Semaphore. */
#include "sync/processes/permits.h"

#include "sync/bind/processes/shm.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/imports.h"

/* Of flags: each permit belongs to the process that has it. */
#define OWNED 1u

static size_t permits_size(uint32_t amount, uint32_t flags)
{
    return sizeof(fl_shm_permits) + (flags & OWNED ? amount * sizeof(uint64_t) : 0);
}

static void permits_make(void *part, uint32_t amount, uint32_t flags)
{
    fl_store(&((fl_shm_permits *)part)->free, flags & OWNED ? 0 : amount, relaxed); /* not shared yet */
}

static fl_shm_result try(fl_shm_object *self, bool look)
{
    fl_shm_permits *permits = fl_shm_part((PyObject *)self);
    return self->flags & OWNED ? fl_shm_owned_try(permits, self->amount, fl_process_self(), look)
                               : fl_shm_count_try(permits);
}

static int permits_attempt(PyObject *self, void *Py_UNUSED(call), bool look, fl_shm_eventcount **eventcount)
{
    *eventcount = &((fl_shm_permits *)fl_shm_part(self))->eventcount;
    return (int)try((fl_shm_object *)self, look);
}

static bool permits_ready(void *op, fl_shm_eventcount *Py_UNUSED(eventcount))
{
    const fl_shm_body *body = op;
    const fl_shm_permits *permits = fl_shm_part_of(body);
    return body->flags & OWNED ? fl_shm_owned_ready(permits, body->amount)
                               : fl_load(&permits->free, seq_cst) > 0;
}

static const fl_shm_type permits_kind = {
    .kind = FL_SHM_PERMITS,
    .size = permits_size,
    .make = permits_make,
    .eventcounts = 1,
    .eventcount_at = {offsetof(fl_shm_permits, eventcount)},
    .ready = permits_ready,
};

static PyObject *permits_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"blocking", "timeout", NULL};
    PyObject *values[2];
    int64_t deadline;
    if (fl_arguments("acquire", names, args, count, kwnames, values) < 0 ||
        fl_deadline_parse(values[0], values[1], &deadline) < 0) {
        return NULL;
    }
    int result = fl_shm_wait_thread(self, permits_attempt, NULL, deadline);
    return result < 0 ? NULL : PyBool_FromLong(result != FL_SHM_NOT);
}

static PyObject *give(PyObject *self, uint32_t count)
{
    fl_shm_object *object = (fl_shm_object *)self;
    fl_shm_permits *permits = fl_shm_part(self);
    if (object->flags & OWNED) {
        if (!fl_shm_owned_give(permits, object->amount, fl_process_self(), count)) {
            return fl_raise(fl_shm_state(self), NotHeldError,
                            "this process does not have that many permits of the semaphore");
        }
    } else if (!fl_shm_count_give(permits, count)) {
        return fl_raise(fl_shm_state(self), TooManyReleasesError, "Semaphore released too many times");
    }
    Py_RETURN_NONE;
}

static PyObject *permits_release(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"n", NULL};
    PyObject *value;
    int64_t number = 1;
    if (fl_arguments("release", names, args, count, kwnames, &value) < 0 ||
        (value != NULL && (number = fl_whole("n", value, 1, FL_SHM_MOST_PERMITS, "")) < 0)) {
        return NULL;
    }
    return give(self, (uint32_t)number);
}

static PyObject *permits_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_none(fl_shm_wait_thread(self, permits_attempt, NULL, FL_FOREVER));
}

static PyObject *permits_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return give(self, 1);
}

static PyObject *permits_look(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_object *object = (fl_shm_object *)self;
    fl_shm_permits *permits = fl_shm_part(self);
    uint32_t free = object->flags & OWNED ? fl_shm_owned_free(permits, object->amount)
                                          : fl_load(&permits->free, relaxed);
    return Py_BuildValue("II", (unsigned int)free, (unsigned int)fl_load(&permits->deaths, relaxed));
}

static PyObject *new_semaphore(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &permits_kind, args);
}

PyType_Spec fl_shm_permits_spec = FL_TYPE("fairlead._native.SharedSemaphore", fl_shm_object,
    Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)new_semaphore},
    FL_SLOTS(SharedSemaphore, permits_));
