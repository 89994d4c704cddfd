/* lock: what a Condition needs of its lock, which is a Lock or an RLock. */
#pragma once

#include "sync/bind/base/state.h"

/* How it is held: by which task or greenlet (an RLock says so: a reference; NULL: by this thread), and how
   often. */
typedef struct {
    PyObject *task;
    uint32_t depth;
} fl_lock_hold;

typedef struct {
    int (*owner)(PyObject *lock, uint64_t *owner); /* as which the caller holds it; -1: an exception */
    int (*is_held)(PyObject *lock); /* by the caller, as far as it can tell; -1: an exception */
    int (*let_go)(PyObject *lock, fl_lock_hold *before); /* entirely; -1: an exception, and no change */
    void (*hold_again)(PyObject *lock, fl_lock_hold before); /* its wait queue has been taken again */
    PyObject *(*acquire)(PyObject *lock, PyObject *const *args, Py_ssize_t count, PyObject *kwnames);
    PyObject *(*enter)(PyObject *lock, PyObject *ignored);
    PyObject *(*aenter)(PyObject *lock, PyObject *ignored);
    PyObject *(*acquire_async)(PyObject *lock, PyObject *ignored);
    PyObject *(*release)(PyObject *lock, PyObject *ignored);
    PyObject *(*locked)(PyObject *lock, PyObject *ignored);
    PyObject *(*statistics)(PyObject *lock, PyObject *ignored);
} fl_lock_kind;

extern const fl_lock_kind fl_lock_as_lock, fl_rlock_as_lock;
