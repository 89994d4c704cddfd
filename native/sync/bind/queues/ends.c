/* SendingEnd and ReceivingEnd: what the ends of channels are made of; sync._channels has their classes.
 *
 * An end has a line in common with others: a Queue, a Rendezvous or a BroadcastRing, and two CountdownEvents
 * that count the open ends of each kind. It waits at the line's queue under its own name, so that closing it,
 * which is one stretch of C, refuses its own waiters and no others; and closes the line if it was the last of
 * its kind. Two that are the last at once both do, and the second time changes nothing.
 */
#include "sync/bind/queues/bounded.h"
#include "sync/bind/queues/ends.h"
#include "sync/bind/queues/queues.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/bind/wait/operation.h"
#include "sync/coordination/sequence.h"

static PyObject *count_of(PyObject *op, bool senders)
{
    return PyTuple_GET_ITEM(((fl_channel_end *)op)->parts, senders ? 1 : 2);
}

/* The line as a queue; NULL: it is a Rendezvous, or a BroadcastRing. */
static fl_bounded *queue_of(PyObject *op)
{
    PyObject *line = fl_line_of(op);
    return Py_IS_TYPE(line, fl_wrapper_state(line)->queue_type) ? fl_bounded_begin(line) : NULL;
}

static bool is_broadcast(PyObject *op)
{
    return Py_IS_TYPE(fl_line_of(op), fl_wrapper_state(op)->broadcast_type);
}

static bool is_closed(PyObject *op)
{
    return fl_load(&((fl_channel_end *)op)->closed, acquire); /* pairs with close_end */
}

bool fl_end_refuses(PyObject *op)
{
    bool closed = is_closed(op);
    if (closed) {
        FL_WAKING(fl_waitq_refuse_of(fl_wrapper_waitq(op), op));
    }
    return closed;
}

void *fl_raise_end_closed(PyObject *op)
{
    return fl_raise(fl_wrapper_state(op), EndClosedError, "this end of the channel has been closed");
}

static void *raise_unmet(PyObject *op, int result)
{
    fl_state *state = fl_wrapper_state(op);
    if (result == FL_REFUSAL && is_closed(op)) {
        return fl_raise_end_closed(op);
    }
    if (result == FL_REFUSAL) {
        return fl_raise(state, QueueShutDown, "the other end of the channel has been closed");
    }
    if (result == 0 && ((fl_channel_end *)op)->sends) {
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
                         : fl_wait_thread_unless(op, waitq, 1, (fl_stake){0}, deadline, fl_end_refuses);
}

/* A meeting, by this side; the handoff, which is stolen, is in *place, and then what came. */
static int meet(PyObject *op, fl_handoff **place, int64_t deadline)
{
    if (is_closed(op)) {
        return FL_REFUSAL;
    }
    fl_waitq *waitq = fl_wrapper_waitq(op);
    fl_meeting_side side = ((fl_channel_end *)op)->sends ? FL_MEET_SEND : FL_MEET_RECEIVE;
    bool met;
    FL_WAKING(met = fl_meeting_try(waitq, side, place));
    if (met) {
        return 1;
    }
    return deadline == 0 ? fl_meeting_closed(waitq) ? FL_REFUSAL : 0
                         : fl_wait_thread_unless(op, waitq, side, fl_meeting_place(place), deadline,
                                                 fl_end_refuses);
}

/* What a greenlet's wait ends with is never None, which says that its time was over. */
static PyObject *finish_in_greenlet(PyObject *Py_UNUSED(op), fl_end end)
{
    PyObject *item = end.item == NULL ? Py_None : end.item;
    return end.refused ? PyLong_FromLong(FL_REFUSAL) : PyTuple_Pack(1, item);
}

static PyObject *operation_of_meeting(PyObject *op, fl_handoff *handoff, fl_finish finish)
{
    fl_meeting_side side = ((fl_channel_end *)op)->sends ? FL_MEET_SEND : FL_MEET_RECEIVE;
    return fl_operation_unless(fl_operation_meeting(fl_wrapper_state(op), op, side, handoff, finish),
                               fl_end_refuses);
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

/* Never waits. To how many receivers it goes; NULL with an exception. */
static PyObject *broadcast(PyObject *op, PyObject *item)
{
    if (is_closed(op)) {
        return raise_unmet(op, FL_REFUSAL);
    }
    int64_t receivers = (int64_t)fl_count_value(fl_wrapper_waitq(count_of(op, false)));
    PyObject *sent = fl_broadcast_put(fl_line_of(op), item);
    Py_XDECREF(sent);
    return sent == NULL ? NULL : PyLong_FromLongLong(receivers);
}

static PyObject *send_within(PyObject *op, PyObject *item, int64_t deadline)
{
    if (is_broadcast(op)) {
        return broadcast(op, item);
    }
    fl_bounded *queue = queue_of(op);
    if (queue == NULL) {
        fl_handoff *handoff = fl_handoff_new(item);
        return handoff == NULL ? NULL : meet_within(op, handoff, deadline);
    }
    int result = take(op, deadline);
    if (result != 1) {
        return raise_unmet(op, result);
    }
    return fl_none(fl_bounded_store(queue, item));
}

static PyObject *sending_send(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const names[] = {"!item", "block", "timeout", NULL};
    PyObject *values[3];
    int64_t deadline;
    if (fl_arguments("send", names, args, count, kwnames, values) < 0 ||
        fl_queue_deadline(values[1], values[2], &deadline) < 0) {
        return NULL;
    }
    return send_within(op, values[0], deadline);
}

static PyObject *sending_send_nowait(PyObject *op, PyObject *item)
{
    return send_within(op, item, 0);
}

static PyObject *finish_put(PyObject *op, fl_end end)
{
    if (end.refused) {
        return raise_unmet(op, FL_REFUSAL);
    }
    return fl_none(fl_bounded_store(queue_of(op), end.item));
}

static PyObject *finish_sent(PyObject *op, fl_end end)
{
    return end.refused ? raise_unmet(op, FL_REFUSAL) : Py_NewRef(Py_None);
}

static PyObject *sending_send_async(PyObject *op, PyObject *item)
{
    if (is_broadcast(op)) {
        PyObject *sent = broadcast(op, item);
        Py_XDECREF(sent);
        return sent == NULL ? NULL : fl_operation_done(fl_wrapper_state(op));
    }
    if (queue_of(op) == NULL) {
        fl_handoff *handoff = fl_handoff_new(item);
        return handoff == NULL ? NULL : operation_of_meeting(op, handoff, finish_sent);
    }
    return fl_operation_unless(
        fl_operation_at(fl_wrapper_state(op), op, fl_wrapper_waitq(op), 1, finish_put, item), fl_end_refuses);
}

static PyObject *receive_within(PyObject *op, int64_t deadline)
{
    if (is_broadcast(op)) {
        return fl_broadcast_receive(op, deadline);
    }
    fl_bounded *queue = queue_of(op);
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

static PyObject *finish_get(PyObject *op, fl_end end)
{
    return end.refused ? raise_unmet(op, FL_REFUSAL) : fl_bounded_fetch(queue_of(op));
}

static PyObject *finish_received(PyObject *op, fl_end end)
{
    return end.refused ? raise_unmet(op, FL_REFUSAL) : Py_NewRef(end.item);
}

static PyObject *receiving_receive_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (is_broadcast(op)) {
        return fl_broadcast_receive_async(op);
    }
    if (queue_of(op) == NULL) {
        return operation_of_meeting(op, NULL, finish_received);
    }
    return fl_operation_unless(fl_operation_new(fl_wrapper_state(op), op, 1, finish_get), fl_end_refuses);
}

/* Whether it receives a broadcast; false with an exception. */
static bool check_broadcast(PyObject *op)
{
    bool checked = is_broadcast(op);
    if (!checked) {
        fl_raise(fl_wrapper_state(op), UsageError, "only a broadcast's receiver has a place");
    }
    return checked;
}

static PyObject *receiving_latest(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return check_broadcast(op) ? fl_broadcast_latest(op) : NULL;
}

static PyObject *receiving_pending(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return check_broadcast(op) ? PyLong_FromUnsignedLongLong(fl_broadcast_pending(op)) : NULL;
}

/* It was the last of its kind. */
static void close_line(PyObject *op, bool sends)
{
    fl_bounded *queue = queue_of(op);
    if (queue != NULL) {
        fl_bounded_shutdown(queue, !sends);
    } else if (!is_broadcast(op)) {
        fl_rendezvous_shutdown(fl_line_of(op), !sends);
    } else if (sends) {
        FL_WAKING(fl_sequence_close(fl_wrapper_waitq(op)));
    }
}

static void close_end(PyObject *op)
{
    fl_channel_end *self = (fl_channel_end *)op;
    if (fl_exchange(&self->closed, true, acq_rel)) { /* pairs with is_closed */
        return;
    }
    fl_waitq *count = fl_wrapper_waitq(count_of(op, self->sends));
    fl_end_refuses(op);
    FL_WAKING(fl_count_down(count, 1));
    if (fl_count_value(count) == 0) {
        close_line(op, self->sends);
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

static int attempt_to_enter(PyObject *Py_UNUSED(op), PyObject *Py_UNUSED(item), uint32_t *Py_UNUSED(wanted))
{
    return 1;
}

static PyObject *entered(PyObject *op, fl_end Py_UNUSED(end))
{
    return Py_NewRef(op);
}

static PyObject *end_aenter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_of(fl_wrapper_state(op), op, NULL, 1, attempt_to_enter, entered);
}

static PyObject *end_aexit(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count))
{
    return end_aclose(op, NULL);
}

static PyObject *sending_wait_closed(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return fl_wait_for_zero("wait_closed", count_of(op, false), args, count, kwnames);
}

static PyObject *sending_wait_closed_async(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return fl_operation_new(fl_wrapper_state(op), count_of(op, false), 0, NULL);
}

static PyObject *get_parts(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((fl_channel_end *)op)->parts);
}

static PyObject *get_open(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!is_closed(op));
}

static PyObject *end_new(PyTypeObject *type, PyObject *parts, bool sends)
{
    PyObject *line = PyTuple_GET_ITEM(parts, 0);
    bool bounded = Py_IS_TYPE(line, fl_wrapper_state(line)->queue_type);
    fl_waitq *waitq = bounded && sends ? ((fl_bounded *)line)->storage->slots : fl_wrapper_waitq(line);
    fl_waitq_ref(waitq);
    fl_channel_end *self = (fl_channel_end *)fl_wrapper_new(type, waitq);
    if (self != NULL) {
        self->parts = Py_NewRef(parts);
        self->sends = sends;
        fl_count_up(fl_wrapper_waitq(count_of((PyObject *)self, sends)), 1);
    }
    return (PyObject *)self;
}

static PyObject *sending_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *parts;
    return PyArg_ParseTuple(args, "O!:SendingEnd", &PyTuple_Type, &parts) ? end_new(type, parts, true) : NULL;
}

static PyObject *receiving_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *parts, *like = NULL;
    if (!PyArg_ParseTuple(args, "O!|O!:ReceivingEnd", &PyTuple_Type, &parts, fl_own_type(type), &like)) {
        return NULL;
    }
    PyObject *self = end_new(type, parts, false);
    if (self != NULL && is_broadcast(self)) {
        bool same = like != NULL && fl_line_of(like) == fl_line_of(self);
        uint64_t place = same ? fl_broadcast_place(like) : fl_broadcast_pending(self); /* all there was */
        ((fl_channel_end *)self)->place = place;
    }
    return self;
}

static void finalize(PyObject *op)
{
    PyObject *type, *value, *traceback; /* it may be collected while an exception is on its way */
    PyErr_Fetch(&type, &value, &traceback);
    if (((fl_channel_end *)op)->parts != NULL) {
        close_end(op);
    }
    PyErr_Restore(type, value, traceback);
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((fl_channel_end *)op)->parts);
    return 0;
}

static int clear(PyObject *op)
{
    finalize(op); /* with its parts, which are gone afterwards */
    Py_CLEAR(((fl_channel_end *)op)->parts);
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

PyType_Spec fl_end_spec = FL_TYPE("fairlead._native.ChannelEnd", fl_channel_end,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    {Py_tp_finalize, (void *)finalize},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_getset, getters},
    FL_WRAPPER_SLOTS_AND(ChannelEnd, end_, dealloc));

PyType_Spec fl_sending_spec = FL_TYPE("fairlead._native.SendingEnd", fl_channel_end, Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)sending_new},
    FL_SLOTS(SendingEnd, sending_));

PyType_Spec fl_receiving_spec = FL_TYPE("fairlead._native.ReceivingEnd", fl_channel_end,
    Py_TPFLAGS_BASETYPE,
    {Py_tp_new, (void *)receiving_new},
    FL_SLOTS(ReceivingEnd, receiving_));
