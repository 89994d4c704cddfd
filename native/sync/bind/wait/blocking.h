/* blocking: the endings of a wait that block the caller. A thread sleeps, detached; where gevent runs in it,
 * its hub runs the other greenlets meanwhile.
 */
#pragma once

#include "sync/bind/base/wrapper.h"
#include "sync/wait/thread_table.h"

/* Around the sleep of a thread that waits by this waiter (of a choice, by any of its waiters): detaches, and
   says in the thread table what it sleeps for, so that sync.waits() can tell: the object in the waiter's
   `request`, which the caller refers to. There is no other way to sleep for what has a holder. */
#define FL_BEGIN_SLEEP(waiter, deadline)                                                                    \
    {                                                                                                      \
        PyThreadState *parked_ = PyThreadState_Get();                                                     \
        int64_t space_ = PyInterpreterState_GetID(PyThreadState_GetInterpreter(parked_));                 \
        Py_BEGIN_ALLOW_THREADS                                                                             \
        fl_thread_table_begin((waiter), (deadline), parked_, space_);
#define FL_END_SLEEP                                                                                        \
        fl_thread_table_end();                                                                              \
        Py_END_ALLOW_THREADS                                                                               \
    }

/* Waits in this thread, which is attached, detaches meanwhile, and runs signal handlers, in its place. 1:
   taken; 0: timed out; -1: an exception, as of a signal handler, or because a task runs in this thread, whose
   loop would stand still; FL_REFUSAL: the wait queue was closed. But for 1 nothing is taken. `what`: the
   object that it waits for, which is what sync.waits() shows. */
int fl_wait_thread(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline);
/* The same, for what may be closed meanwhile; `refuses` is called once it is queued, says whether it was, and
   refuses its waiters then. */
int fl_wait_thread_unless(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          int64_t deadline, fl_refuses refuses);

/* This thread's waiter (fl_thread_waiter) for this object; NULL with an exception. */
fl_waiter *fl_waiter_for(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake);
/* One sleep of it, once it has entered, and the signal handlers that are due. 1: it has been granted; 0: its
   time was over, and it has left; FL_REFUSAL; FL_AGAIN: none of these yet; -1: an exception, and it waits
   still. */
#define FL_AGAIN 4
int fl_sleep(fl_waiter *waiter, int64_t deadline, int *looks);
/* Sleeps until it is over, if the thread may block. As fl_wait_thread; with -1 the waiter is settled, and
   what it may have been granted is given back. Where that cannot be it is 1, and what a handler has raised is
   raised afterwards. */
int fl_wait_in_place(fl_state *state, fl_waiter *waiter, int64_t deadline);

/* wait(timeout=None), by this name: until a count (sync/coordination/event.h) is 0. */
PyObject *fl_wait_for_zero(const char *function, PyObject *what, PyObject *const *args, Py_ssize_t count,
                           PyObject *kwnames);

/* Takes a lock that must be had, for ever: an exception of a signal handler waits until it is taken (-1, with
   the last one set). */
int fl_wait_thread_always(PyObject *what, fl_waitq *waitq, fl_stake stake);

/* What a wait of a greenlet returns where none calls: nothing has been done. */
#define FL_NO_GREENLET 3
/* Whether this thread's hub can run others while the caller waits; -1: an exception. */
int fl_in_greenlet(fl_state *state);
/* As fl_wait_thread, of the greenlet that calls. */
int fl_wait_greenlet(PyObject *what, fl_waitq *waitq, uint32_t wanted, fl_stake stake, int64_t deadline);
/* There: waits with this operation (stolen; NULL: an exception is set), and returns what it ends with; None:
   the time was over first. */
PyObject *fl_greenlet_wait(PyObject *operation, int64_t deadline);
