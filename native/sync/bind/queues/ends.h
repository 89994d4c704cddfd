/* What the ends of all channels (ends.c) and the receivers of broadcasts (broadcast_end.c) share. */
#pragma once

#include "sync/bind/queues/broadcast.h"

typedef struct {
    fl_wrapper wrapper; /* over the queue that it waits at; of a broadcast's sender one that it does not */
    PyObject *parts;    /* the tuple of the line and of the counts of its senders and receivers */
    uint64_t place;     /* of a broadcast's receiver, within the line's critical section: how many it has seen
                           or missed */
    bool sends;
    fl_atomic(bool) closed;
} fl_channel_end;

static inline PyObject *fl_line_of(PyObject *op)
{
    return PyTuple_GET_ITEM(((fl_channel_end *)op)->parts, 0);
}

/* Before one takes, and when it has entered the queue: whether the end was closed. Its waiters are refused
   then. */
bool fl_end_refuses(PyObject *op);

/* Of an end that was closed: an EndClosedError, and NULL. */
void *fl_raise_end_closed(PyObject *op);

/* By the receiver of a broadcast. What it receives within the time; an awaitable of that; the newest object,
   seen or not. NULL with an exception. Its place; and how many were sent since. */
PyObject *fl_broadcast_receive(PyObject *op, int64_t deadline);
PyObject *fl_broadcast_receive_async(PyObject *op);
PyObject *fl_broadcast_latest(PyObject *op);
uint64_t fl_broadcast_place(PyObject *op);
uint64_t fl_broadcast_pending(PyObject *op);
