/* SendingEnd and ReceivingEnd: what the ends of channels are made of; sync._channels has their classes.
 *
 * An end has a line in common with others: a Queue, a Rendezvous or a BroadcastRing, and two CountdownEvents
 * that count the open ends of each kind. It waits at the line's queue under its own name, so that closing it,
 * which is one stretch of C, refuses its own waiters and no others; and closes the line if it was the last of
 * its kind. Two that are the last at once both do, and the second time changes nothing.
 */
#include "sync/bind/queues/bounded.h"
#include "sync/bind/queues/broadcast.h"
#include "sync/bind/queues/queues.h"
#include "sync/coordination/sequence.h"

typedef struct {
    fl_wrapper wrapper; /* over the queue that it waits at; of a broadcast's sender one that it does not */
    PyObject *parts;    /* the tuple of the line and of the counts of its senders and receivers */
    PyObject *reader;   /* of a broadcast's receiver */
    bool sends;
    fl_atomic(bool) closed;
} channel_end;

static PyObject *line_of(const channel_end *self)
{
    return PyTuple_GET_ITEM(self->parts, 0);
}

static fl_waitq *count_of(const channel_end *self, bool senders)
{
    return fl_wrapper_waitq(PyTuple_GET_ITEM(self->parts, senders ? 1 : 2));
}

/* The line as a queue; NULL: it is a Rendezvous, or a BroadcastRing. */
static fl_bounded *queue_of(const channel_end *self)
{
    PyObject *line = line_of(self);
    return Py_IS_TYPE(line, fl_wrapper_state(line)->queue_type) ? fl_bounded_begin(line) : NULL;
}

static bool is_closed(PyObject *op)
{
    return fl_load(&((channel_end *)op)->closed, acquire); /* pairs with close_end */
}

static void refuse_own(PyObject *op)
{
    channel_end *self = (channel_end *)op;
    if (self->reader != NULL) {
        fl_reader_close(self->reader);
    } else {
        FL_WAKING(fl_waitq_refuse_of(self->wrapper.waitq, op));
    }
}

/* Before one takes, and when it has entered the queue: whether the end was closed. It is refused then. */
static bool refuses(PyObject *op)
{
    bool closed = is_closed(op);
    if (closed) {
        refuse_own(op);
    }
    return closed;
}

static void *raise_unmet(PyObject *op, int result)
{
    channel_end *self = (channel_end *)op;
    fl_state *state = fl_wrapper_state(op);
    if (result == FL_REFUSAL && is_closed(op)) {
        return fl_raise(state, EndClosedError, "this end of the channel has been closed");
    }
    if (result == FL_REFUSAL) {
        return fl_raise(state, QueueShutDown, "the other end of the channel has been closed");
    }
    if (result == 0 && self->sends) {
        return fl_raise(state, QueueFull, "there was no room, and no receiver");
    }
    return result == 0 ? fl_raise(state, QueueEmpty, "there was nothing to receive") : NULL;
}

/* A permit of the line's queue, which says that there is room, or an object. As fl_wait_thread. */
static int take(PyObject *op, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    if (is_closed(op)) {
        return FL_REFUSAL;
    }
    if (fl_sem_try(waitq, 1, 0)) {
        return 1;
    }
    return deadline == 0 ? fl_sem_closed(waitq) ? FL_REFUSAL : 0
                         : fl_wait_thread_unless(op, waitq, 1, (fl_stake){0}, deadline, refuses);
}

/* A meeting, by this side; the handoff, which is stolen, is in *place, and then what came. */
static int meet(PyObject *op, fl_handoff **place, int64_t deadline)
{
    if (is_closed(op)) {
        return FL_REFUSAL;
    }
    fl_waitq *waitq = fl_wrapper_waitq(op);
    fl_meeting_side side = ((channel_end *)op)->sends ? FL_MEET_SEND : FL_MEET_RECEIVE;
    bool met;
    FL_WAKING(met = fl_meeting_try(waitq, side, place));
    if (met) {
        return 1;
    }
    return deadline == 0 ? fl_meeting_closed(waitq) ? FL_REFUSAL : 0
                         : fl_wait_thread_unless(op, waitq, side, fl_meeting_place(place), deadline, refuses);
}

/* What a greenlet's wait ends with is never None, which says that its time was over. */
static PyObject *finish_in_greenlet(PyObject *Py_UNUSED(op), PyObject *item, bool refused)
{
    return refused ? PyLong_FromLong(FL_REFUSAL) : PyTuple_Pack(1, item == NULL ? Py_None : item);
}

static PyObject *operation_of_meeting(PyObject *op, fl_handoff *handoff, fl_finish finish)
{
    fl_meeting_side side = ((channel_end *)op)->sends ? FL_MEET_SEND : FL_MEET_RECEIVE;
    return fl_operation_unless(fl_operation_meeting(fl_wrapper_state(op), op, side, handoff, finish),
                               refuses);
}

/* Steals the handoff. A new reference to what came, None for a sender; NULL with an exception. */
static PyObject *meet_within(PyObject *op, fl_handoff *handoff, int64_t deadline)
{
    PyObject *came = NULL;
    int result, greenlet = deadline > 0 ? fl_in_greenlet(fl_wrapper_state(op)) : 0;
    if (greenlet > 0) { /* whose stack is not in its place while it waits, but its operation is */
        PyObject *ended = fl_greenlet_wait(operation_of_meeting(op, handoff, finish_in_greenlet), deadline);
        if (ended != NULL && PyTuple_Check(ended)) {
            came = Py_NewRef(PyTuple_GET_ITEM(ended, 0));
        } else if (ended != NULL) {
            raise_unmet(op, ended == Py_None ? 0 : FL_REFUSAL);
        }
        Py_XDECREF(ended);
        return came;
    }
    result = greenlet < 0 ? -1 : meet(op, &handoff, deadline);
    if (result == 1) {
        came = Py_NewRef(handoff == NULL ? Py_None : (PyObject *)handoff->object);
    }
    fl_handoff_drop(handoff); /* of what stays here the caller has a reference */
    return result == 1 ? came : raise_unmet(op, result);
}

static bool is_broadcast(PyObject *op)
{
    return Py_IS_TYPE(line_of((channel_end *)op), fl_wrapper_state(op)->broadcast_type);
}

/* Never waits. To how many receivers it goes; NULL with an exception. */
static PyObject *broadcast(PyObject *op, PyObject *item)
{
    if (is_closed(op)) {
        return raise_unmet(op, FL_REFUSAL);
    }
    int64_t receivers = (int64_t)fl_count_value(count_of((channel_end *)op, false));
    PyObject *sent = fl_broadcast_put(line_of((channel_end *)op), item);
    Py_XDECREF(sent);
    return sent == NULL ? NULL : PyLong_FromLongLong(receivers);
}

static PyObject *send_within(PyObject *op, PyObject *item, int64_t deadline)
{
    if (is_broadcast(op)) {
        return broadcast(op, item);
    }
    fl_bounded *queue = queue_of((channel_end *)op);
    if (queue == NULL) {
        fl_handoff *handoff = fl_handoff_new(item);
        return handoff == NULL ? NULL : meet_within(op, handoff, deadline);
    }
    int result = take(op, deadline);
    if (result != 1) {
        return raise_unmet(op, result);
    }
    return fl_bounded_store(queue, item) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *sending_send(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"item", "block", "timeout", NULL};
    PyObject *values[3];
    int64_t deadline;
    if (fl_arguments("send", names, args, count, kwnames, values) < 0) {
        return NULL;
    }
    if (values[0] == NULL) {
        PyErr_SetString(PyExc_TypeError, "send() missing required argument 'item'");
        return NULL;
    }
    int parsed = fl_queue_deadline(values[1], values[2], &deadline);
    return parsed < 0 ? NULL : send_within(op, values[0], deadline);
}

static PyObject *sending_send_nowait(PyObject *op, PyObject *item)
{
    return send_within(op, item, 0);
}

static PyObject *finish_put(PyObject *op, PyObject *item, bool refused)
{
    if (refused) {
        return raise_unmet(op, FL_REFUSAL);
    }
    return fl_bounded_store(queue_of((channel_end *)op), item) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *finish_sent(PyObject *op, PyObject *Py_UNUSED(item), bool refused)
{
    return refused ? raise_unmet(op, FL_REFUSAL) : Py_NewRef(Py_None);
}

static PyObject *sending_send_async(PyObject *op, PyObject *item)
{
    if (is_broadcast(op)) {
        PyObject *sent = broadcast(op, item);
        Py_XDECREF(sent);
        return sent == NULL ? NULL : fl_operation_done(fl_wrapper_state(op));
    }
    if (queue_of((channel_end *)op) == NULL) {
        fl_handoff *handoff = fl_handoff_new(item);
        return handoff == NULL ? NULL : operation_of_meeting(op, handoff, finish_sent);
    }
    return fl_operation_unless(
        fl_operation_at(fl_wrapper_state(op), op, fl_wrapper_waitq(op), 1, finish_put, item), refuses);
}

static PyObject *receive_within(PyObject *op, int64_t deadline)
{
    channel_end *self = (channel_end *)op;
    if (self->reader != NULL) {
        return fl_reader_receive(self->reader, deadline);
    }
    fl_bounded *queue = queue_of(self);
    if (queue == NULL) {
        return meet_within(op, NULL, deadline);
    }
    int result = take(op, deadline);
    return result == 1 ? fl_bounded_fetch(queue) : raise_unmet(op, result);
}

static PyObject *receiving_receive(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    return fl_queue_arguments("receive", args, count, kwnames, &deadline) < 0 ? NULL
                                                                              : receive_within(op, deadline);
}

static PyObject *receiving_receive_nowait(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return receive_within(op, 0);
}

static PyObject *finish_get(PyObject *op, PyObject *Py_UNUSED(item), bool refused)
{
    return refused ? raise_unmet(op, FL_REFUSAL) : fl_bounded_fetch(queue_of((channel_end *)op));
}

static PyObject *finish_received(PyObject *op, PyObject *item, bool refused)
{
    return refused ? raise_unmet(op, FL_REFUSAL) : Py_NewRef(item);
}

static PyObject *receiving_receive_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    channel_end *self = (channel_end *)op;
    if (self->reader != NULL) {
        return fl_reader_receive_async(self->reader);
    }
    if (queue_of(self) == NULL) {
        return operation_of_meeting(op, NULL, finish_received);
    }
    return fl_operation_unless(fl_operation_new(fl_wrapper_state(op), op, 1, finish_get), refuses);
}

/* It was the last of its kind. */
static void close_line(channel_end *self)
{
    fl_bounded *queue = queue_of(self);
    PyObject *line = line_of(self);
    if (queue != NULL) {
        fl_bounded_shutdown(queue, !self->sends);
    } else if (Py_IS_TYPE(line, fl_wrapper_state(line)->rendezvous_type)) {
        fl_rendezvous_shutdown(line, !self->sends);
    } else if (self->sends) {
        FL_WAKING(fl_sequence_close(fl_wrapper_waitq(line)));
    }
}

static void close_end(PyObject *op)
{
    channel_end *self = (channel_end *)op;
    if (fl_exchange(&self->closed, true, acq_rel)) { /* pairs with is_closed */
        return;
    }
    fl_waitq *count = count_of(self, self->sends);
    refuse_own(op);
    FL_WAKING(fl_count_down(count, 1));
    if (fl_count_value(count) == 0) {
        close_line(self);
    }
}

static PyObject *end_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    close_end(op);
    Py_RETURN_NONE;
}

static PyObject *end_aclose(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    close_end(op);
    return fl_operation_done(fl_wrapper_state(op));
}

static PyObject *end_enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(op);
}

static PyObject *end_exit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return end_close(op, NULL);
}

static int attempt_to_enter(PyObject *Py_UNUSED(op), uint32_t *Py_UNUSED(wanted))
{
    return 1;
}

static PyObject *entered(PyObject *op, uint32_t Py_UNUSED(wanted), bool Py_UNUSED(refused))
{
    return Py_NewRef(op);
}

static PyObject *end_aenter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(op), op, 1, attempt_to_enter, entered);
}

static PyObject *end_aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return end_aclose(op, NULL);
}

static PyObject *sending_wait_closed(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int64_t deadline;
    if (fl_timeout_argument("wait_closed", args, count, kwnames, &deadline) < 0) {
        return NULL;
    }
    fl_waitq *receivers = count_of((channel_end *)op, false);
    int none = fl_count_value(receivers) == 0;
    if (!none && deadline > 0) {
        none = fl_wait_thread(PyTuple_GET_ITEM(((channel_end *)op)->parts, 2), receivers, 0, (fl_stake){0},
                              deadline);
    }
    return none < 0 ? NULL : PyBool_FromLong(none);
}

static PyObject *sending_wait_closed_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(op), PyTuple_GET_ITEM(((channel_end *)op)->parts, 2), 0, NULL);
}

static PyObject *get_parts(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((channel_end *)op)->parts);
}

static PyObject *get_open(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!is_closed(op));
}

static PyObject *end_new(PyTypeObject *type, PyObject *args, const char *format, bool sends)
{
    PyObject *parts, *reader = NULL;
    if (!PyArg_ParseTuple(args, format, &PyTuple_Type, &parts, &reader)) {
        return NULL;
    }
    PyObject *line = PyTuple_GET_ITEM(parts, 0);
    bool bounded = Py_IS_TYPE(line, fl_wrapper_state(line)->queue_type);
    fl_waitq *waitq = bounded && sends ? ((fl_bounded *)line)->storage->slots : fl_wrapper_waitq(line);
    fl_waitq_ref(waitq);
    channel_end *self = (channel_end *)fl_wrapper_new(type, waitq);
    if (self != NULL) {
        self->parts = Py_NewRef(parts);
        self->reader = Py_XNewRef(reader);
        self->sends = sends;
        fl_count_up(count_of(self, sends), 1);
    }
    return (PyObject *)self;
}

static PyObject *sending_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return end_new(type, args, "O!:SendingEnd", true);
}

static PyObject *receiving_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return end_new(type, args, "O!|O:ReceivingEnd", false);
}

static void finalize(PyObject *op)
{
    PyObject *type, *value, *traceback; /* it may be collected while an exception is on its way */
    PyErr_Fetch(&type, &value, &traceback);
    if (((channel_end *)op)->parts != NULL) {
        close_end(op);
    }
    PyErr_Restore(type, value, traceback);
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((channel_end *)op)->parts);
    Py_VISIT(((channel_end *)op)->reader);
    return 0;
}

static int clear(PyObject *op)
{
    finalize(op); /* with its parts, which are gone afterwards */
    Py_CLEAR(((channel_end *)op)->parts);
    Py_CLEAR(((channel_end *)op)->reader);
    return 0;
}

static void dealloc(PyObject *op)
{
    if (PyObject_CallFinalizerFromDealloc(op) < 0) {
        return; /* a destructor of what it closed has kept it */
    }
    fl_wrapper_dealloc(op);
}

static PyGetSetDef getters[] = {
    {"_line", get_parts, NULL, "What it has in common with other ends.", NULL},
    {"_open", get_open, NULL, "Whether it has not been closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* What both kinds do alike. */
#define sending_close end_close
#define sending_aclose end_aclose
#define sending_enter end_enter
#define sending_exit end_exit
#define sending_aenter end_aenter
#define sending_aexit end_aexit
#define receiving_close end_close
#define receiving_aclose end_aclose
#define receiving_enter end_enter
#define receiving_exit end_exit
#define receiving_aenter end_aenter
#define receiving_aexit end_aexit

#define END(type, prefix)                                                                                   \
    FL_TYPE("fairlead._native." #type, channel_end, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,              \
            {Py_tp_new, (void *)prefix##new},                                                              \
            {Py_tp_finalize, (void *)finalize},                                                            \
            {Py_tp_traverse, (void *)traverse},                                                            \
            {Py_tp_clear, (void *)clear},                                                                  \
            {Py_tp_getset, getters},                                                                       \
            FL_WRAPPER_SLOTS_AND(type, prefix, dealloc))

PyType_Spec fl_sending_spec = END(SendingEnd, sending_);
PyType_Spec fl_receiving_spec = END(ReceivingEnd, receiving_);
