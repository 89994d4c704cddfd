/* Reader: one place in the line of what a BroadcastRing was sent. See broadcast.c. */
#include "sync/bind/queues/broadcast.h"

#include "interpreters/bind/codec.h"
#include "sync/bind/queues/queues.h"
#include "sync/coordination/sequence.h"

typedef struct {
    fl_part part; /* of the broadcast */
    uint64_t place; /* within the broadcast's critical section: how many it has seen or missed */
    fl_atomic(bool) closed; /* by its end */
} reader;

static void *closed(reader *self)
{
    if (fl_load(&self->closed, acquire)) { /* pairs with fl_reader_close */
        return fl_raise(fl_wrapper_state((PyObject *)self), EndClosedError,
                        "this end of the channel has been closed");
    }
    return fl_raise(fl_wrapper_state((PyObject *)self), ChannelClosedError,
                    "the channel is closed, and there is nothing left to receive");
}

PyObject *fl_reader_at(PyObject *broadcast, uint64_t place)
{
    reader *made = (reader *)fl_part_new(fl_wrapper_state(broadcast)->reader_type, broadcast);
    if (made != NULL) {
        made->place = place;
    }
    return (PyObject *)made;
}

/* What looking at the broadcast from this place comes to. */
typedef enum { NOTHING, FOUND, MISSED, ENDED } outlook;

/* FOUND: *object is a new reference or NULL with an exception, and the reader has moved on; MISSED: so has
   it, by *missed. With `again`: the newest there is, seen or not, and the reader stays. */
static outlook look(reader *self, bool again, PyObject **object, uint64_t *missed)
{
    outlook found = NOTHING;
    fl_item *copy = NULL;
    *object = NULL;
    FL_BEGIN_CRITICAL(self->part.of);
    fl_broadcast_ring *ring = ((fl_broadcast *)self->part.of)->ring;
    fl_mutex_lock_if(ring->lock);
    uint64_t word = fl_sequence_word(self->part.wrapper.waitq), sent = word & ~FL_SEQUENCE_CLOSED;
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
        *object = fl_unpack(fl_wrapper_state((PyObject *)self), copy);
        fl_item_unref(copy);
    }
    return found;
}

/* The object, or NULL: with an exception, or *again. */
static PyObject *take(reader *self, bool *again)
{
    PyObject *object;
    uint64_t missed = 0;
    *again = false;
    if (fl_load(&self->closed, acquire)) { /* pairs with fl_reader_close */
        return closed(self);
    }
    switch (look(self, false, &object, &missed)) {
    case FOUND:
        return object;
    case MISSED:
        return fl_raise_with(fl_wrapper_state((PyObject *)self), FL_ERROR_LaggedError,
                             "(K)", (unsigned long long)missed);
    case ENDED:
        return closed(self);
    default:
        *again = true;
        return NULL;
    }
}

/* The place as a waiter wants it. */
static uint32_t seen(reader *self)
{
    uint64_t place;
    FL_BEGIN_CRITICAL(self->part.of);
    place = self->place;
    FL_END_CRITICAL();
    return fl_sequence_seen(place);
}

void fl_reader_close(PyObject *op)
{
    reader *self = (reader *)op;
    fl_store(&self->closed, true, release); /* pairs with closed() */
    FL_WAKING(fl_waitq_refuse_of(self->part.wrapper.waitq, op));
}

/* When one has entered the queue: whether it was closed. Its waiter is refused then. */
static bool refuses(PyObject *op)
{
    bool is_closed = fl_load(&((reader *)op)->closed, acquire); /* pairs with fl_reader_close */
    if (is_closed) {
        fl_reader_close(op);
    }
    return is_closed;
}

PyObject *fl_reader_receive(PyObject *op, int64_t deadline)
{
    reader *self = (reader *)op;
    for (;;) {
        bool again;
        PyObject *object = take(self, &again);
        if (!again) {
            return object;
        }
        int outcome = deadline == 0 ? 0
                                    : fl_wait_thread_unless(op, self->part.wrapper.waitq, seen(self),
                                                            (fl_stake){0}, deadline, refuses);
        if (outcome < 0) {
            return NULL;
        }
        if (outcome == 0) {
            return fl_raise(fl_wrapper_state(op), QueueEmpty, "there is nothing to receive");
        }
    }
}

static int attempt(PyObject *op, uint32_t *wanted)
{
    reader *self = (reader *)op;
    *wanted = seen(self);
    return self->part.wrapper.waitq->ops->attempt(self->part.wrapper.waitq, *wanted, (fl_stake){0});
}

static PyObject *conclude(PyObject *op, uint32_t Py_UNUSED(wanted), bool Py_UNUSED(refused))
{
    bool again;
    PyObject *object = take((reader *)op, &again);
    if (again) {
        PyErr_SetString(PyExc_RuntimeError, "another has received by this end meanwhile; clone it for each");
    }
    return object;
}

PyObject *fl_reader_receive_async(PyObject *op)
{
    return fl_operation_unless(fl_operation_of(fl_wrapper_state(op), op, 0, attempt, conclude), refuses);
}

static PyObject *reader_clone(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t place;
    FL_BEGIN_CRITICAL(((fl_part *)op)->of);
    place = ((reader *)op)->place;
    FL_END_CRITICAL();
    return fl_reader_at(((fl_part *)op)->of, place);
}

static PyObject *reader_latest(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *object;
    uint64_t missed;
    return look((reader *)op, true, &object, &missed) == FOUND ? object : closed((reader *)op);
}

static PyObject *reader_pending(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t sent = fl_sequence_word(fl_wrapper_waitq(op)) & ~FL_SEQUENCE_CLOSED, place;
    FL_BEGIN_CRITICAL(((fl_part *)op)->of);
    place = ((reader *)op)->place;
    FL_END_CRITICAL();
    return PyLong_FromUnsignedLongLong(sent - place);
}

PyType_Spec fl_reader_spec = FL_TYPE("fairlead._native.Reader", reader,
    Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    FL_PART_SLOTS(Reader, reader_));
