/* condition: what the waits of threads (condition.c) and those of tasks (notice.c) share. */
#pragma once

#include "sync/bind/locks/lock.h"
#include "sync/bind/wait/mailbox.h"
#include "sync/coordination/condition.h"

typedef struct {
    fl_part part; /* of its lock */
    const fl_lock_kind *as;
} fl_condition_wrapper;

static inline fl_waitq *fl_condition_lock_queue(const fl_condition_wrapper *self)
{
    return fl_wrapper_waitq(self->part.of);
}

/* 0: the caller holds it; -1: a NotHeldError, or another exception. */
int fl_condition_check_held(fl_condition_wrapper *self, const char *refusal);

/* Queues the waiter, and then lets go of the lock, so that no notification is missed. */
int fl_condition_begin(fl_condition_wrapper *self, fl_waiter *waiter, fl_lock_hold *before);

/* *result is what the predicate returns; whether that is true; -1: an exception. */
int fl_condition_ask(PyObject *predicate, PyObject **result);

static inline void fl_condition_notify_next(const fl_condition_wrapper *self)
{
    FL_WAKING(fl_condition_give(self->part.wrapper.waitq, 1));
}

/* The awaitable of a task's or a greenlet's wait. predicate: the wait ends when that is true; NULL: with the
   first notification. */
PyObject *fl_notice_new(PyObject *op, PyObject *predicate);

/* A Condition with this Lock, over the queue that another interpreter's has, whose reference it steals; NULL
   with an exception. */
PyObject *fl_condition_with(PyObject *lock, fl_waitq *waitq);
