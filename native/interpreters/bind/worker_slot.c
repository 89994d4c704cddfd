/* WorkerSlot: what a worker, in an interpreter of its own, takes calls from and replies to. The job queue's
 * other side is job_queue.c.
 */
#include "interpreters/bind/job_queue.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/wrapper.h"

typedef struct {
    PyObject_HEAD
    fl_job_queue *job_queue;
    fl_worker_slot
        *slot; /* the engine's fl_job_queue_leave frees it, after this interpreter has run its last */
} worker_slot_object;

static PyObject *worker_slot_take(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    worker_slot_object *self = (worker_slot_object *)op;
    int64_t deadline;
    if (count > 1) {
        PyErr_SetString(PyExc_TypeError, "take() takes 1 argument");
        return NULL;
    }
    if (fl_deadline_parse(NULL, count > 0 ? args[0] : NULL, &deadline) < 0) {
        return NULL;
    }
    if (self->slot->job != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "reply to the last call first");
        return NULL;
    }
    fl_job *job = NULL;
    while (job == NULL) {
        int got = fl_wait_permit(op, self->job_queue->work, &self->job_queue->for_work, deadline);
        if (got != 1) {
            return fl_none(got);
        }
        job = fl_job_queue_take(self->job_queue, self->slot);
    }
    PyObject *value = fl_unpack(fl_wrapper_state(op), job->call);
    fl_item_unref(job->call); /* what it refers to is let go of before the reply */
    job->call = NULL;
    return value;
}

/* A worker's completions: their value, packed, and their kind. NULL without an exception: they are none. */
static fl_item *completions_in(PyObject *op, PyObject *const *args, Py_ssize_t count, uint8_t *kind)
{
    long number = count == 2 ? PyLong_AsLong(args[0]) : FL_COMPLETIONS_BEGUN;
    if (number <= FL_COMPLETIONS_BEGUN || number >= FL_COMPLETIONS_UNREADABLE) {
        return NULL;
    }
    *kind = (uint8_t)number;
    return fl_pack(fl_wrapper_state(op), args[1], &(fl_sending){NULL});
}

static PyObject *worker_slot_reply(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    worker_slot_object *self = (worker_slot_object *)op;
    uint8_t kind;
    fl_item *item = self->slot->job == NULL ? NULL : completions_in(op, args, count, &kind);
    if (item == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "reply() takes a kind and a value, once for each call");
        }
        return NULL;
    }
    bool refused = kind == FL_COMPLETIONS_REFUSED;
    return PyBool_FromLong(fl_job_queue_reply(self->job_queue, self->slot, kind, refused, item));
}

static PyObject *worker_slot_notify(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    worker_slot_object *self = (worker_slot_object *)op;
    uint8_t kind;
    fl_item *item = completions_in(op, args, count, &kind);
    if (item == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "notify() takes a kind and a value");
        }
        return NULL;
    }
    if (!fl_job_queue_notify(self->job_queue, self->slot->worker, kind, item)) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *worker_slot_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long number;
    unsigned int worker;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KI:WorkerSlot", FL_PARAMETERS(WorkerSlot), &number,
                                     &worker)) {
        return NULL;
    }
    fl_job_queue *job_queue = fl_job_queue_find(number);
    if (job_queue == NULL) {
        return fl_raise(fl_type_state(type), HandleGoneError,
                        "there is no job queue with this number any more");
    }
    worker_slot_object *self = (worker_slot_object *)type->tp_alloc(type, 0);
    fl_worker_slot *slot = self == NULL ? NULL
                                 : fl_job_queue_join(job_queue, worker, PyInterpreterState_Get(),
                                                PyThread_get_thread_ident());
    if (self == NULL) {
        fl_job_queue_unref(job_queue);
        return NULL;
    }
    self->job_queue = job_queue;
    self->slot = slot;
    if (slot == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void worker_slot_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    fl_job_queue_unref(((worker_slot_object *)op)->job_queue);
    type->tp_free(op);
    Py_DECREF(type);
}

PyType_Spec fl_worker_slot_spec = FL_TYPE("fairlead._native.WorkerSlot", worker_slot_object, 0,
    {Py_tp_new, (void *)worker_slot_new},
    {Py_tp_dealloc, (void *)worker_slot_dealloc},
    FL_SLOTS(WorkerSlot, worker_slot_));
