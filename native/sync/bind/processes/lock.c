/* SharedLock: the base of fairlead.sync.shared.Lock. */
#include "sync/bind/processes/shm.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/imports.h"

static size_t lock_size(uint32_t amount, uint32_t flags)
{
    (void)amount, (void)flags;
    return sizeof(fl_shm_lock);
}

static bool lock_ready(void *body, fl_shm_eventcount *Py_UNUSED(eventcount))
{
    return fl_shm_lock_ready(fl_shm_part_of(body));
}

static const fl_shm_type lock_kind = {
    .kind = FL_SHM_LOCK,
    .size = lock_size,
    .eventcounts = 1,
    .eventcount_at = {offsetof(fl_shm_lock, eventcount)},
    .ready = lock_ready,
};

typedef struct {
    bool inherit;
    uint64_t dead;
} lock_call;

static int lock_attempt(PyObject *self, void *arg, bool look, fl_shm_eventcount **eventcount)
{
    fl_shm_lock *lock = fl_shm_part(self);
    lock_call *call = arg;
    *eventcount = &lock->eventcount;
    return (int)fl_shm_lock_try(lock, fl_process_self(), look, call->inherit, &call->dead);
}

/* Of what fl_shm_flags says: whether acquiring takes over from the dead. */
#define TAKES_OVER 1u

static int lock_take(PyObject *self, bool inherit, int64_t deadline)
{
    lock_call call = {.inherit = inherit};
    int result = fl_shm_wait_thread(self, lock_attempt, &call, deadline);
    if (result == FL_SHM_DIED) {
        fl_raise_with(fl_shm_state(self), FL_ERROR_OwnerDiedError, "(si)",
                      "the process that held the lock died; what it protects may be half done: recover() "
                      "takes the lock nevertheless",
                      fl_process_number(call.dead));
        return -1;
    }
    return result;
}

static PyObject *lock_acquire(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_acquire_arguments("acquire", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int result = lock_take(self, ((fl_shm_object *)self)->flags & TAKES_OVER, deadline);
    return result < 0 ? NULL : PyBool_FromLong(result != FL_SHM_NOT);
}

static PyObject *lock_recover(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("recover", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    int result = lock_take(self, true, deadline);
    if (result == FL_SHM_NOT) {
        PyErr_SetString(PyExc_TimeoutError, "the lock was not released in time");
        return NULL;
    }
    return result < 0 ? NULL : PyBool_FromLong(result == FL_SHM_INHERITED);
}

static PyObject *lock_release(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (!fl_shm_lock_release(fl_shm_part(self), fl_process_self())) {
        return fl_raise(fl_shm_state(self), NotHeldError, "this process does not hold the lock");
    }
    Py_RETURN_NONE;
}

static PyObject *lock_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return fl_none(lock_take(self, ((fl_shm_object *)self)->flags & TAKES_OVER, FL_FOREVER));
}

static PyObject *lock_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return lock_release(self, NULL);
}

static PyObject *lock_look(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_lock *lock = fl_shm_part(self);
    uint64_t owner = fl_load(&lock->owner, seq_cst);
    bool alive = owner == 0 || fl_process_alive(owner);
    return Py_BuildValue("iNI", fl_process_number(owner), PyBool_FromLong(alive),
                         (unsigned int)fl_load(&lock->deaths, relaxed));
}

static PyObject *new_lock(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &lock_kind, args);
}

PyType_Spec fl_shm_lock_spec = FL_TYPE("fairlead._native.SharedLock", fl_shm_object, Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)new_lock},
    FL_SLOTS(SharedLock, lock_));
