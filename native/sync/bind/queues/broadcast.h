/* BroadcastRing, as its readers see it. See broadcast.c. */
#pragma once

#include "sync/bind/base/wrapper.h"

/* All but the wait queue. Once several interpreters have it, its objects are copies, and `lock` is held. */
typedef struct {
    fl_mutex *lock; /* NULL: objects of one interpreter */
    uint32_t capacity;
    bool latest; /* its readers want the newest, and miss nothing by it */
    void *at[];
} fl_broadcast_ring;

typedef struct {
    fl_wrapper wrapper;
    fl_broadcast_ring *ring; /* the wrapper's, or once it is shared that which is shared; NULL: being made */
} fl_broadcast;

/* Sends to all its readers; None, or NULL with an exception. */
PyObject *fl_broadcast_put(PyObject *broadcast, PyObject *item);

/* What several interpreters have of it, attached and with the object's own lock; NULL with an exception, as
   where objects are in it. And of an object that was just made for that. */
fl_shared *fl_broadcast_share(PyObject *op, uint32_t type);
void fl_broadcast_attach(PyObject *op, fl_shared *shared);
