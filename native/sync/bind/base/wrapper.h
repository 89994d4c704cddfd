/* wrapper: what every primitive is for Python: a small object of one interpreter over a wait queue.
 *
 * The wait queue is counted, knows no Python, and may be shared. A primitive tries its fast path, and then
 * ends in a wait of its caller (wait/blocking.h) or in an awaitable (wait/operation.h).
 */
#pragma once

#include "interpreters/shared.h"
#include "sync/bind/base/imports.h"
#include "sync/wait/waitq.h"

typedef struct {
    PyObject_HEAD
    fl_waitq *waitq;
    PyObject *weak;
    fl_atomic(fl_shared *) shared; /* NULL: no other interpreter has it */
    fl_atomic(struct fl_lost *) lost; /* of a lock: see locks/lost.h */
} fl_wrapper;

static inline fl_waitq *fl_wrapper_waitq(PyObject *wrapper)
{
    return ((fl_wrapper *)wrapper)->waitq;
}

static inline fl_state *fl_wrapper_state(PyObject *wrapper)
{
    return fl_type_state(Py_TYPE(wrapper));
}

/* What every type of wrappers has: weak references, and an end, at which tp_clear lets go of what it refers
   to. */
extern PyMemberDef fl_wrapper_members[];
void fl_wrapper_dealloc(PyObject *self);
#define FL_WRAPPER_SLOTS_AND(type, prefix, dealloc)                                                         \
    {Py_tp_dealloc, (void *)(dealloc)}, {Py_tp_members, fl_wrapper_members}, FL_SLOTS(type, prefix)
#define FL_WRAPPER_SLOTS(type, prefix) FL_WRAPPER_SLOTS_AND(type, prefix, fl_wrapper_dealloc)

/* Allocates a wrapper of this type and takes over the reference to the wait queue; NULL (of the wait queue)
   is a MemoryError. */
PyObject *fl_wrapper_new(PyTypeObject *type, fl_waitq *waitq);

/* "<Type ..., n waiting, at 0x...>", with what the format says. */
PyObject *fl_wrapper_repr(PyObject *self, const char *format, ...);

/* A wrapper that refers to another one as long as it is there: a condition to its lock, a view to what it is
   a view of. */
typedef struct {
    fl_wrapper wrapper;
    PyObject *of;
} fl_part;
/* Over the same wait queue; NULL with an exception. */
PyObject *fl_part_new(PyTypeObject *type, PyObject *of);
int fl_part_traverse(PyObject *self, visitproc visit, void *arg);
void fl_part_dealloc(PyObject *self);
#define FL_PART_SLOTS(type, prefix)                                                                         \
    {Py_tp_traverse, (void *)fl_part_traverse}, FL_WRAPPER_SLOTS_AND(type, prefix, fl_part_dealloc)

/* What a wait returns beside 1 (taken), 0 (timed out) and -1 (an exception): the wait queue was closed. */
#define FL_REFUSAL 2
/* Of what may be closed while it is waited for: called once the waiter is queued, says whether it was, and
   refuses its waiters then. */
typedef bool (*fl_refuses)(PyObject *what);
