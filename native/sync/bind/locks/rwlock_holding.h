/* The holders of a RWLock: entering, leaving, and whether one has ended. */
#pragma once

#include "sync/bind/locks/holders.h"
#include "sync/bind/wait/operation.h"
#include "sync/locks/rwlock.h"

typedef struct {
    fl_wrapper wrapper;
    fl_holders holders;
    fl_atomic(uint32_t) generation; /* of the process that `holders` is of */
} fl_rwlock;

/* One of the three views: for reading, for reading with a right to write next, for writing. */
typedef struct {
    fl_part part; /* of the lock */
    uint32_t mode;
} fl_rwlock_view;

/* Begins every operation on a lock. */
fl_rwlock *fl_rwlock_begin(PyObject *lock);
/* The same on the lock of a view. */
fl_rwlock *fl_rwlock_of_view(PyObject *view);
/* The caller comes in by this view. 1: it has; 0: the time was over; -1: an exception. */
int fl_rwlock_come_in(PyObject *view, int64_t deadline);
/* The hooks of a view's operation. They run in the task that awaits. */
int fl_rwlock_attempt(PyObject *view, PyObject *item, uint32_t *wanted);
PyObject *fl_rwlock_finish(PyObject *view, fl_end end);
/* The caller is inside one time less by `mode` (FL_RW_NONE: the most that it may do, which is more than to
   read), and one more by `instead`, if that is not FL_RW_NONE. -1: an exception. */
int fl_rwlock_leave(fl_rwlock *self, uint32_t mode, uint32_t instead);
