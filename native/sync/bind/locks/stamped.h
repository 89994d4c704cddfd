/* stamped: what the `with` of a StampedLock asks of it. Attached; NULL: an exception is set. */
#ifndef FL_SYNC_BIND_LOCKS_STAMPED_H
#define FL_SYNC_BIND_LOCKS_STAMPED_H

#include "sync/bind/base/wait.h"

enum { FL_STAMP_LOOKS = 1, FL_STAMP_READS, FL_STAMP_WRITES };

/* The stamp of the calling thread, which waits for it; 0 as a stamp: the time was over. */
PyObject *fl_stamped_acquire(PyObject *lock, int kind, int64_t deadline);
/* An awaitable that comes in, for the calling task. What it ends with is the finish's to say, which begins
   with fl_stamped_came_in: the stamp. */
PyObject *fl_stamped_operation(PyObject *lock, int kind, fl_finish finish, PyObject *item);
PyObject *fl_stamped_came_in(PyObject *lock, int kind);
PyObject *fl_stamped_release(PyObject *lock, PyObject *stamp);

/* A getter; `kind` is what it is for. */
PyObject *fl_stamped_visiting(PyObject *lock, void *kind);

#endif
