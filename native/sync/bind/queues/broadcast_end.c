/* What the receiver of a broadcast does: its place in the line of what the BroadcastRing was sent. See
 * broadcast.c.
 */
#include "sync/bind/queues/ends.h"

#include "interpreters/bind/codec.h"
#include "sync/bind/wait/blocking.h"
#include "sync/bind/wait/operation.h"
#include "sync/coordination/sequence.h"

static void *raise_over(PyObject *op)
{
    return fl_raise(fl_wrapper_state(op), ChannelClosedError,
                    "the channel is closed, and there is nothing left to receive");
}

/* What looking at the broadcast from this place comes to. */
typedef enum { NOTHING, FOUND, MISSED, ENDED } outlook;

/* FOUND: *object is a new reference or NULL with an exception, and the receiver has moved on; MISSED: so has
   it, by *missed. With `again`: the newest there is, seen or not, and the receiver stays. */
static outlook look(PyObject *op, bool again, PyObject **object, uint64_t *missed)
{
    fl_channel_end *self = (fl_channel_end *)op;
    outlook found = NOTHING;
    fl_item *copy = NULL;
    *object = NULL;
    FL_BEGIN_CRITICAL(fl_line_of(op));
    fl_broadcast_ring *ring = ((fl_broadcast *)fl_line_of(op))->ring;
    fl_mutex_lock_if(ring->lock);
    uint64_t word = fl_sequence_word(self->wrapper.waitq), sent = word & ~FL_SEQUENCE_CLOSED;
    uint64_t place = ring->latest || again ? sent - 1 : self->place;
    if (sent == 0 || (self->place == sent && !again)) {
        found = word & FL_SEQUENCE_CLOSED ? ENDED : NOTHING;
    } else if (sent - place > ring->capacity) {
        found = MISSED;
        *missed = sent - ring->capacity - place;
        self->place = sent - ring->capacity;
    } else {
        void *at = ring->at[place % ring->capacity];
        found = FOUND;
        self->place = again ? self->place : place + 1;
        if (ring->lock != NULL) {
            copy = at;
            fl_item_ref(copy);
        } else {
            *object = Py_NewRef((PyObject *)at);
        }
    }
    fl_mutex_unlock_if(ring->lock);
    FL_END_CRITICAL();
    if (copy != NULL) {
        *object = fl_unpack(fl_wrapper_state(op), copy);
        fl_item_unref(copy);
    }
    return found;
}

/* The object, or NULL: with an exception, or *again. */
static PyObject *take(PyObject *op, bool *again)
{
    PyObject *object;
    uint64_t missed = 0;
    *again = false;
    if (fl_end_refuses(op)) {
        return fl_raise_end_closed(op);
    }
    switch (look(op, false, &object, &missed)) {
    case FOUND:
        return object;
    case MISSED:
        return fl_raise_with(fl_wrapper_state(op), FL_ERROR_LaggedError,
                             "(K)", (unsigned long long)missed);
    case ENDED:
        return raise_over(op);
    default:
        *again = true;
        return NULL;
    }
}

uint64_t fl_broadcast_place(PyObject *op)
{
    uint64_t place;
    FL_BEGIN_CRITICAL(fl_line_of(op));
    place = ((fl_channel_end *)op)->place;
    FL_END_CRITICAL();
    return place;
}

PyObject *fl_broadcast_receive(PyObject *op, int64_t deadline)
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    for (;;) {
        bool again;
        PyObject *object = take(op, &again);
        if (!again) {
            return object;
        }
        uint32_t seen = fl_sequence_seen(fl_broadcast_place(op));
        int outcome = deadline == 0 ? 0
                                    : fl_wait_thread_unless(op, waitq, seen, (fl_stake){0}, deadline,
                                                            fl_end_refuses);
        if (outcome < 0) {
            return NULL;
        }
        if (outcome == 0) {
            return fl_raise(fl_wrapper_state(op), QueueEmpty, "there is nothing to receive");
        }
    }
}

static int attempt(PyObject *op, PyObject *Py_UNUSED(item), uint32_t *wanted)
{
    fl_waitq *waitq = fl_wrapper_waitq(op);
    *wanted = fl_sequence_seen(fl_broadcast_place(op));
    return waitq->ops->attempt(waitq, *wanted, (fl_stake){0});
}

static PyObject *finish(PyObject *op, fl_end Py_UNUSED(end))
{
    bool again;
    PyObject *object = take(op, &again);
    if (again) {
        PyErr_SetString(PyExc_RuntimeError, "another has received by this end meanwhile; clone it for each");
    }
    return object;
}

PyObject *fl_broadcast_receive_async(PyObject *op)
{
    return fl_operation_unless(fl_operation_of(fl_wrapper_state(op), op, NULL, 0, attempt, finish),
                               fl_end_refuses);
}

PyObject *fl_broadcast_latest(PyObject *op)
{
    PyObject *object;
    uint64_t missed;
    return look(op, true, &object, &missed) == FOUND ? object
           : fl_end_refuses(op)                      ? fl_raise_end_closed(op)
                                                     : raise_over(op);
}

uint64_t fl_broadcast_pending(PyObject *op)
{
    uint64_t sent = fl_sequence_word(fl_wrapper_waitq(op)) & ~FL_SEQUENCE_CLOSED;
    return sent - fl_broadcast_place(op);
}
