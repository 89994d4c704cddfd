/* bounded: objects between two semaphores, which Queue, LifoQueue and PriorityQueue are the wrappers of; and
 * SimpleQueue, which has the first alone.
 *
 * Every function is called attached. What may wait says so.
 */
#pragma once

#include "sync/bind/queues/elements.h"
#include "sync/bind/base/wrapper.h"
#include "sync/locks/semaphore.h"

#include "sync/coordination/event.h"

/* FL_SIMPLE: first in, first out, without slots. */
typedef enum { FL_FIFO, FL_LIFO, FL_PRIORITY, FL_SIMPLE } fl_order;

/* All but the wait queue of a queue. Once several interpreters have it, its elements are copies, and
   all of this is used with its lock. */
typedef struct {
    fl_elements elements;
    fl_waitq *slots; /* NULL: any number of objects, and no putter waits */
    fl_atomic(fl_waitq *) finished; /* a flag that joiners wait for; made by the first of them */
    uint64_t unfinished;
    uint32_t maxsize; /* 0: none */
    fl_atomic(uint32_t) generation;
    fl_atomic(bool) shut;
    bool emptied; /* by a shutdown */
    uint8_t order;
} fl_storage;

typedef struct {
    fl_wrapper wrapper;
    fl_storage *storage; /* the wrapper's, or once it is shared that which is shared; NULL: being made */
} fl_bounded;

static inline fl_waitq *fl_bounded_objects(fl_bounded *self)
{
    return self->wrapper.waitq;
}

/* A new queue; NULL with an exception. */
PyObject *fl_bounded_new(PyTypeObject *type, fl_order order, uint32_t maxsize, bool fair);
void fl_bounded_dealloc(PyObject *op);

/* Puts in order what a fork has left, once in a child. */
void fl_bounded_recover(fl_bounded *self);

/* Begins every operation. */
static inline fl_bounded *fl_bounded_begin(PyObject *op)
{
    fl_bounded *self = (fl_bounded *)op;
    /* pairs with fl_bounded_recover */
    if (fl_load(&self->storage->generation, acquire) != fl_fork_generation) {
        fl_bounded_recover(self);
    }
    return self;
}

/* Raises what a wait without success means; NULL. */
void *fl_bounded_raise(fl_bounded *self, int result, bool putting);

/* Takes a slot, or an object's permit. 1: taken; 0: not within the time; FL_REFUSAL: shut down; -1: an
   exception. */
int fl_bounded_wait(fl_bounded *self, fl_waitq *waitq, int64_t deadline);
static inline int fl_bounded_take(fl_bounded *self, fl_waitq *waitq, int64_t deadline)
{
    return waitq == NULL || fl_sem_try(waitq, 1, 0) ? 1 : fl_bounded_wait(self, waitq, deadline);
}

/* With a slot in hand, which goes back unless it succeeds; -1 with an exception. */
int fl_bounded_store(fl_bounded *self, PyObject *item);
/* With an object's permit in hand. NULL with an exception. */
PyObject *fl_bounded_fetch(fl_bounded *self);
/* Likewise; the permit goes back. */
PyObject *fl_bounded_look(fl_bounded *self);
/* What a get would return; NULL without an exception: nothing. */
PyObject *fl_bounded_look_at(fl_bounded *self);

/* false: it was said more often than objects were put. */
bool fl_bounded_task_done(fl_bounded *self);
/* 1: nothing is unfinished; 0: there is a flag to wait for, which is not set; -1: no memory. */
int fl_bounded_begin_join(fl_bounded *self);
void fl_bounded_shutdown(fl_bounded *self, bool immediate);
void fl_bounded_resize(fl_bounded *self, uint32_t maxsize);
/* Objects that are promised to no waiter. */
uint32_t fl_bounded_size(fl_bounded *self);
/* For the collector, of objects: what a destructor does with the queue meanwhile finds it whole, and empty.
   */
void fl_bounded_clear(fl_bounded *self);

/* What several interpreters have of it, attached and with the object's own lock; NULL with an exception, as
   where objects are in it. And of an object that was just made for that. */
fl_shared *fl_bounded_share(PyObject *op, uint32_t type);
void fl_bounded_attach(PyObject *op, fl_shared *shared);
