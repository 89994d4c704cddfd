/* gone: a holder that has ended, and is waited for. */
#pragma once

#include "sync/bind/base/wrapper.h"

/* Attached, by a waiter that has found that the wait queue's holder has ended: the lock breaks (FL_REFUSAL),
   or a warning says so (0; -1: which raised). */
int fl_holder_ended(PyObject *what, fl_waitq *waitq);

/* By a primitive that knows its holders, before it waits: warns if one of them is a task or a thread that has
   ended (-1: which raised). At most so many are looked at. */
#define FL_HOLDERS_CHECKED 16
typedef enum { FL_NONE_GONE, FL_TASK_GONE, FL_THREAD_GONE } fl_gone;
int fl_warn_if_gone(PyObject *what, fl_gone gone);
