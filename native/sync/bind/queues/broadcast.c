/* BroadcastRing: the last n objects that were sent. With its ends (ends.c, broadcast_end.c) what a broadcast
 * and a watched value are made of; fairlead.sync._channels has their public classes.
 *
 * The wait queue's version counts what was ever sent; object k is at k % capacity until k + capacity is sent.
 * To send is one stretch of C: the object is stored and the version advances, under the GIL, or within the
 * broadcast's critical section, and where other interpreters have the broadcast with its lock. So is to read:
 * the version is looked at, the object taken, and the reader moved on. A reader moves only when it takes, so
 * that a reader that is cancelled has missed nothing.
 *
 * A broadcast that several interpreters have carries copies.
 */
#include "sync/bind/queues/broadcast.h"
#include "sync/bind/base/arguments.h"
#include "sync/bind/wait/mailbox.h"

#include "interpreters/bind/codec.h"
#include "sync/coordination/sequence.h"

#define MOST 0x3fffffff

/* The last reference to what several interpreters have. */
static void ring_free(void *body)
{
    fl_broadcast_ring *ring = body;
    for (uint32_t i = 0; i < ring->capacity; i++) {
        if (ring->at[i] != NULL) {
            fl_item_unref(ring->at[i]);
        }
    }
    PyMem_RawFree(ring);
}

fl_shared *fl_broadcast_share(PyObject *op, uint32_t type)
{
    fl_broadcast *self = (fl_broadcast *)op;
    uint64_t word;
    do { /* making bytes of an object runs Python, which may send, or share this very fl_broadcast */
        fl_broadcast_ring *objects = self->ring;
        if (objects->lock != NULL) {
            return fl_load(&self->wrapper.shared, relaxed); /* written under this object's lock */
        }
        word = fl_sequence_word(self->wrapper.waitq);
        size_t size = sizeof(fl_broadcast_ring) + objects->capacity * sizeof(void *);
        fl_broadcast_ring *copy = PyMem_RawCalloc(1, size);
        if (copy == NULL) {
            return (fl_shared *)PyErr_NoMemory();
        }
        copy->capacity = objects->capacity;
        copy->latest = objects->latest;
        for (uint32_t i = 0; i < copy->capacity && self->ring == objects; i++) {
            PyObject *object = Py_XNewRef((PyObject *)objects->at[i]);
            copy->at[i] = object == NULL ? NULL : fl_pack(fl_wrapper_state((PyObject *)self), object, NULL);
            Py_XDECREF(object);
            if (object != NULL && copy->at[i] == NULL) {
                ring_free(copy);
                return NULL;
            }
        }
        if (self->ring != objects || word != fl_sequence_word(self->wrapper.waitq)) {
            ring_free(copy);
            continue;
        }
        fl_shared *shared = fl_shared_new(self->wrapper.waitq, type, copy, ring_free);
        if (shared == NULL) {
            ring_free(copy);
            return (fl_shared *)PyErr_NoMemory();
        }
        copy->lock = &shared->lock;
        self->ring = copy;
        fl_store(&self->wrapper.shared, shared, release); /* before a destructor can share it again */
        for (uint32_t i = 0; i < objects->capacity; i++) {
            Py_XDECREF((PyObject *)objects->at[i]);
        }
        PyMem_RawFree(objects);
        return shared;
    } while (true);
}

void fl_broadcast_attach(PyObject *op, fl_shared *shared)
{
    ((fl_broadcast *)op)->ring = shared->body;
}

/* 1: sent; 0: what the broadcast carries has changed meanwhile; FL_REFUSAL: closed. */
static int try_to_put(fl_broadcast *self, PyObject *object, fl_item *copy, void **gone, fl_mailbox **mailbox)
{
    int result = 0;
    FL_BEGIN_CRITICAL(self);
    fl_broadcast_ring *ring = self->ring;
    if ((ring->lock != NULL) == (copy != NULL)) {
        fl_mutex_lock_if(ring->lock);
        uint64_t word = fl_sequence_word(self->wrapper.waitq);
        if (word & FL_SEQUENCE_CLOSED) {
            result = FL_REFUSAL;
        } else {
            void **at = &ring->at[word % ring->capacity];
            *gone = *at;
            *at = copy != NULL ? (void *)copy : (void *)Py_NewRef(object);
            fl_mailbox_batch();
            fl_sequence_advance(self->wrapper.waitq);
            *mailbox = fl_mailbox_flush();
            result = 1;
        }
        fl_mutex_unlock_if(ring->lock);
    }
    FL_END_CRITICAL();
    return result;
}

/* Whether the broadcast carries copies by now. */
static bool is_shared(fl_broadcast *self)
{
    bool shared;
    FL_BEGIN_CRITICAL(self);
    shared = self->ring->lock != NULL;
    FL_END_CRITICAL();
    return shared;
}

PyObject *fl_broadcast_put(PyObject *op, PyObject *item)
{
    fl_broadcast *self = (fl_broadcast *)op;
    fl_item *copy = NULL;
    void *gone = NULL;
    fl_mailbox *mailbox = NULL;
    int result;
    do {
        if (copy == NULL && is_shared(self) && (copy = fl_pack(fl_wrapper_state(op), item, NULL)) == NULL) {
            return NULL;
        }
        result = try_to_put(self, item, copy, &gone, &mailbox);
    } while (result == 0);
    if (mailbox != NULL) {
        fl_mailbox_deliver(mailbox);
    }
    if (result == FL_REFUSAL && copy != NULL) {
        fl_item_unref(copy);
    }
    if (gone != NULL && copy != NULL) {
        fl_item_unref(gone);
    } else {
        Py_XDECREF((PyObject *)gone);
    }
    if (result == FL_REFUSAL) {
        return fl_raise(fl_wrapper_state(op), ChannelClosedError, "the channel is closed, and takes nothing");
    }
    Py_RETURN_NONE;
}

#define ring_put fl_broadcast_put

static PyObject *ring_is_closed(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong((fl_sequence_word(fl_wrapper_waitq(op)) & FL_SEQUENCE_CLOSED) != 0);
}

static PyObject *ring_waiting(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(fl_waitq_waiting(fl_wrapper_waitq(op)));
}

static PyObject *broadcast_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *number;
    int64_t capacity;
    int newest = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:BroadcastRing", FL_PARAMETERS(BroadcastRing),
                                     &number, &newest) ||
        (capacity = fl_whole("capacity", number, 1, MOST, "")) < 0) {
        return NULL;
    }
    fl_broadcast *self = (fl_broadcast *)fl_wrapper_new(type, fl_sequence_new());
    if (self == NULL) {
        return NULL;
    }
    self->ring = PyMem_RawCalloc(1, sizeof(fl_broadcast_ring) + (size_t)capacity * sizeof(void *));
    if (self->ring == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->ring->capacity = (uint32_t)capacity;
    self->ring->latest = newest;
    return (PyObject *)self;
}

/* Copies, and what is not whole yet, are nothing to the collector. */
static bool has_objects(PyObject *op)
{
    const fl_broadcast_ring *ring = ((fl_broadcast *)op)->ring;
    return ring != NULL && ring->lock == NULL;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    const fl_broadcast_ring *ring = ((fl_broadcast *)op)->ring;
    Py_VISIT(Py_TYPE(op));
    for (uint32_t i = 0; has_objects(op) && i < ring->capacity; i++) {
        Py_VISIT((PyObject *)ring->at[i]);
    }
    return 0;
}

static int clear(PyObject *op)
{
    if (has_objects(op)) {
        fl_sequence_close(fl_wrapper_waitq(op)); /* no reader finds a place without an object */
        fl_broadcast_ring *ring = ((fl_broadcast *)op)->ring;
        for (uint32_t i = 0; i < ring->capacity; i++) {
            PyObject *object = ring->at[i];
            ring->at[i] = object == NULL ? NULL : Py_NewRef(Py_None);
            Py_XDECREF(object);
        }
    }
    return 0;
}

static void dealloc(PyObject *op)
{
    fl_broadcast_ring *ring = ((fl_broadcast *)op)->ring;
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, dealloc)
    if (has_objects(op)) {
        for (uint32_t i = 0; i < ring->capacity; i++) {
            Py_XDECREF((PyObject *)ring->at[i]);
        }
        PyMem_RawFree(ring);
        ((fl_broadcast *)op)->ring = NULL;
    }
    fl_wrapper_dealloc(op);
    Py_TRASHCAN_END
}

PyType_Spec fl_broadcast_spec = FL_TYPE("fairlead._native.BroadcastRing", fl_broadcast, Py_TPFLAGS_HAVE_GC,
    {Py_tp_new, (void *)broadcast_new},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    FL_WRAPPER_SLOTS_AND(BroadcastRing, ring_, dealloc));
