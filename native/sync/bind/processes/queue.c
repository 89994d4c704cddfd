/* SharedQueue: the base of fairlead.sync.shared.Queue. */
#include "sync/processes/queue.h"

#include "sync/bind/processes/shm.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/base/imports.h"

/* `amount` is the capacity in units of 8 bytes. Of flags: deaths are only counted. */
#define TAKES_OVER 1u

static size_t queue_size(uint32_t amount, uint32_t Py_UNUSED(flags))
{
    return sizeof(fl_shm_queue) + (size_t)amount * 8;
}

/* Of the locks too, whose holder may have died. */
static bool queue_ready(void *body, fl_shm_eventcount *eventcount)
{
    fl_shm_queue *queue = fl_shm_part_of(body);
    bool gets = eventcount == &queue->filled || eventcount == &queue->getting.eventcount;
    bool shut = fl_load(&queue->shut, seq_cst) != 0;
    return shut || (gets ? fl_shm_queue_used(queue) > 0 && fl_shm_lock_ready(&queue->getting)
                         : fl_shm_lock_ready(&queue->putting));
}

static const fl_shm_type queue_kind = {
    .kind = FL_SHM_QUEUE,
    .size = queue_size,
    .eventcounts = 4,
    .eventcount_at = {offsetof(fl_shm_queue, filled), offsetof(fl_shm_queue, emptied),
                      offsetof(fl_shm_queue, getting.eventcount), offsetof(fl_shm_queue, putting.eventcount)},
    .ready = queue_ready,
};

static PyObject *number_of(fl_shm_queue *queue, const fl_shm_eventcount *eventcount)
{
    long which = 0;
    while ((const char *)queue + queue_kind.eventcount_at[which] != (const char *)eventcount) {
        which++;
    }
    return PyLong_FromLong(which);
}

static uint64_t capacity_of(PyObject *self)
{
    return (uint64_t)((fl_shm_object *)self)->amount * 8;
}

/* What both ends make of a beginning. True: go on, with the lock. */
static bool goes_on(PyObject *self, fl_shm_lock *end, int *result, uint64_t dead, const char *what)
{
    if (*result == FL_SHM_INHERITED) {
        /* Let go of in any case: whether there is room, or a message, is not known yet. */
        fl_shm_queue_give_up(end, fl_process_self());
        *result = FL_SHM_NOT;
        if (!(((fl_shm_object *)self)->flags & TAKES_OVER)) {
            fl_raise_with(fl_shm_state(self), FL_ERROR_OwnerDiedError, "(si)", what, fl_process_number(dead));
            *result = -1;
        }
        return false;
    }
    return *result == FL_SHM_DONE;
}

static int put_attempt(PyObject *self, void *arg, bool look, fl_shm_eventcount **eventcount)
{
    fl_shm_queue *queue = fl_shm_part(self);
    const Py_buffer *message = arg;
    uint64_t me = fl_process_self(), dead = 0, length = (uint64_t)message->len;
    int result;
    do {
        result = (int)fl_shm_queue_begin_put(queue, capacity_of(self), length, me, look, eventcount, &dead);
        if (goes_on(self, &queue->putting, &result, dead,
                    "a process died while it put a message, which may be lost; the queue is whole: go on")) {
            fl_shm_queue_end_put(queue, capacity_of(self), message->buf, length, me);
        }
    } while (result == FL_SHM_NOT && *eventcount == NULL); /* taken over, and not yet tried */
    return result;
}

static int get_attempt(PyObject *self, void *arg, bool look, fl_shm_eventcount **eventcount)
{
    fl_shm_queue *queue = fl_shm_part(self);
    PyObject **message = arg;
    uint64_t me = fl_process_self(), dead = 0, length;
    int result;
    do {
        result = (int)fl_shm_queue_begin_get(queue, me, look, eventcount, &dead);
        if (goes_on(self, &queue->getting, &result, dead,
                    "a process died while it got a message, which may be lost; the queue is whole: go on")) {
            bool whole = fl_shm_queue_length(queue, capacity_of(self), &length);
            *message = whole ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length) : NULL;
            if (*message == NULL) {
                fl_shm_queue_give_up(&queue->getting, me);
                if (!whole) {
                    fl_raise(fl_shm_state(self), WrongSegmentError,
                             "the queue was damaged from outside; make it anew");
                }
                return -1;
            }
            fl_shm_queue_end_get(queue, capacity_of(self), PyBytes_AS_STRING(*message), length, me);
        }
    } while (result == FL_SHM_NOT && *eventcount == NULL);
    return result;
}

static void *refuse(PyObject *self, int result, bool gets)
{
    if (result == FL_SHM_SHUT_DOWN) {
        return fl_raise(fl_shm_state(self), QueueShutDown, "the queue has been shut down");
    }
    if (result == FL_SHM_NOT) {
        return gets ? fl_raise(fl_shm_state(self), QueueEmpty, "there is nothing to get")
                    : fl_raise(fl_shm_state(self), QueueFull, "there is no room to put it");
    }
    return NULL;
}

/* Of what is to be put: -1 with an exception. */
static int open_message(PyObject *self, PyObject *data, Py_buffer *message)
{
    if (PyObject_GetBuffer(data, message, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    if (fl_shm_queue_takes((uint64_t)message->len) > capacity_of(self)) {
        PyErr_Format(PyExc_ValueError, "a message of %zd bytes can never fit into the queue, which has room "
                                       "for one of %llu: make it with a larger capacity",
                     message->len, (unsigned long long)capacity_of(self) - 8);
        PyBuffer_Release(message);
        return -1;
    }
    return 0;
}

static int parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *kwnames, bool gets,
                 PyObject **data, int64_t *deadline)
{
    static const char *const names[] = {"!data", "block", "timeout", NULL};
    PyObject *values[3] = {NULL};
    if (fl_arguments(function, names + gets, args, count, kwnames, values + gets) < 0 ||
        fl_deadline_parse(values[1], values[2], deadline) < 0) {
        return -1;
    }
    *data = values[0];
    return 0;
}

static PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *data;
    int64_t deadline;
    Py_buffer message;
    if (parse("put", args, count, kwnames, false, &data, &deadline) < 0 ||
        open_message(self, data, &message) < 0) {
        return NULL;
    }
    int result = fl_shm_wait_thread(self, put_attempt, &message, deadline);
    PyBuffer_Release(&message);
    if (result != FL_SHM_DONE) {
        return refuse(self, result, false);
    }
    Py_RETURN_NONE;
}

static PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *none, *message = NULL;
    int64_t deadline;
    if (parse("get", args, count, kwnames, true, &none, &deadline) < 0) {
        return NULL;
    }
    int result = fl_shm_wait_thread(self, get_attempt, &message, deadline);
    return result == FL_SHM_DONE ? message : refuse(self, result, true);
}

static PyObject *queue_try_put(PyObject *self, PyObject *data)
{
    Py_buffer message;
    fl_shm_eventcount *eventcount = NULL;
    if (open_message(self, data, &message) < 0) {
        return NULL;
    }
    int result = put_attempt(self, &message, true, &eventcount);
    PyBuffer_Release(&message);
    if (result == FL_SHM_NOT) {
        return number_of(fl_shm_part(self), eventcount);
    }
    if (result != FL_SHM_DONE) {
        return refuse(self, result, false);
    }
    Py_RETURN_NONE;
}

static PyObject *queue_try_get(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *message = NULL;
    fl_shm_eventcount *eventcount = NULL;
    int result = get_attempt(self, &message, true, &eventcount);
    if (result == FL_SHM_NOT) {
        return number_of(fl_shm_part(self), eventcount);
    }
    return result == FL_SHM_DONE ? message : refuse(self, result, true);
}

static PyObject *queue_shutdown(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int immediate = fl_shutdown_arguments(args, count, kwnames);
    if (immediate < 0) {
        return NULL;
    }
    fl_shm_queue_shut(fl_shm_part(self), immediate ? FL_SHM_SHUT_AT_ONCE : FL_SHM_SHUT);
    Py_RETURN_NONE;
}

static PyObject *queue_look(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    fl_shm_queue *queue = fl_shm_part(self);
    return Py_BuildValue("KKIII", (unsigned long long)fl_shm_queue_used(queue),
                         (unsigned long long)capacity_of(self),
                         (unsigned int)fl_load(&queue->shut, relaxed),
                         (unsigned int)fl_load(&queue->putting.deaths, relaxed),
                         (unsigned int)fl_load(&queue->getting.deaths, relaxed));
}

static PyObject *new_queue(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return fl_shm_new(type, &queue_kind, args);
}

PyType_Spec fl_shm_queue_spec = FL_TYPE("fairlead._native.SharedQueue", fl_shm_object, Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)new_queue},
    FL_SLOTS(SharedQueue, queue_));
