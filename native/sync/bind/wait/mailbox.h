/* mailbox: how tasks are woken from anywhere: what an event loop calls, and the waiters' futures. */
#pragma once

#include "sync/bind/base/wrapper.h"
#include "sync/locks/semaphore.h"
#include "sync/wait/mailbox.h"

/* Around a call of the core that may wake tasks: those of this thread's own loop are woken here and now,
   without a system call, if a task of it runs at this moment. Otherwise the loop may be about to sleep, as
   under a signal handler, and the wakeup descriptor is rung. */
#define FL_WAKING(call)                                                                                     \
    do {                                                                                                   \
        fl_mailbox_batch();                                                                                 \
        call;                                                                                              \
        fl_mailbox *mailbox_ = fl_mailbox_flush();                                                          \
        if (mailbox_ != NULL) {                                                                             \
            fl_mailbox_deliver(mailbox_);                                                                   \
        }                                                                                                  \
    } while (0)
void fl_mailbox_deliver(fl_mailbox *mailbox);

fl_sem_result fl_permits_give_slow(fl_waitq *waitq, uint32_t count);

/* fl_sem_give, and each waiter that gets something is woken. */
static inline fl_sem_result fl_permits_give(fl_waitq *waitq, uint32_t count)
{
    fl_sem_result result;
    return fl_sem_give_at_once(waitq, count, &result) ? result : fl_permits_give_slow(waitq, count);
}

/* *inner becomes the iterator of a future of the loop that runs in this thread, which is what a task awaits.
   Returns the loop's Mailbox, with its body (borrowed) in *body and the future (a new reference, as the
   Mailbox is) in *future; NULL with an exception set. `shielded`: no cancellation ends the future, where its
   library would go on to cancel. */
PyObject *fl_await_here(fl_state *state, bool shielded, PyObject **inner, fl_mailbox **body,
                        PyObject **future);

/* Calls the function, in this Mailbox's loop, after so many nanoseconds: what has a cancel(); NULL with an
   exception set. */
PyObject *fl_mailbox_timer(PyObject *mailbox, int64_t sleep, PyObject *function);
/* Puts a future (stolen) in the place of the one that a waiter's task awaits, and returns that (a new
   reference). Either may be NULL. */
PyObject *fl_waiter_swap_future(fl_waiter *waiter, PyObject *future);

/* A task's waiter for this object, whose grant completes the future: as fl_waiter_for. */
fl_waiter *fl_task_waiter(PyObject *what, fl_mailbox *body, fl_waitq *waitq, uint32_t wanted, fl_stake stake,
                          PyObject *future);
/* Done with it; it is settled. */
void fl_task_waiter_done(fl_waiter *waiter);

/* In the loop's thread: completes the future of a waiter's task, if it has one. False: the task was
   cancelled, and has yet to learn of it. */
bool fl_mailbox_complete(fl_state *state, fl_waiter *waiter);
