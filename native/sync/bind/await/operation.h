/* What the files of an operation share: it is awaited in operation.c, looks again by a timer in
 * operation_recheck.c, and is one of the cases of a selection in operation_case.c.
 */
#ifndef FL_SYNC_BIND_AWAIT_OPERATION_H
#define FL_SYNC_BIND_AWAIT_OPERATION_H

#include "sync/bind/base/wait.h"

typedef enum { FL_OPERATION_NEW, FL_OPERATION_WAITING, FL_OPERATION_OVER } fl_operation_phase;

typedef struct {
    fl_awaitable awaitable;
    PyObject *wrapper;
    fl_waitq *waitq;     /* the wrapper's, or one that lives as long */
    fl_waiter *waiter; /* queued or granted; NULL otherwise */
    PyObject *item;    /* for `finish`; may be NULL */
    PyObject *timer;   /* of the loop, for what comes by itself; may be NULL */
    fl_handoff *handoff; /* of a meeting: what goes over, and then what came: the other side writes here */
    bool attempted;    /* by fl_operation_enter */
    bool selected;     /* by a selection, whose waiter may refer to `handoff` as long as this is there */
    fl_attempt attempt; /* NULL: the wait queue's */
    fl_finish finish; /* NULL: it returns True */
    fl_refuses refuses; /* NULL: the wait queue alone says whether it is closed */
    fl_stake stake; /* where it is `staked`; else that of the task that awaits it */
    bool staked;
    uint32_t wanted;
    fl_operation_phase phase;
} fl_operation;

/* Takes from its wait queue without waiting. */
bool fl_operation_take(fl_operation *self, fl_stake stake);

/* What it ends with: its result, or an exception. */
PySendResult fl_operation_end(fl_operation *self, bool refused, PyObject **result);

/* Whether what it waits for comes by itself, and is to be looked for. */
bool fl_operation_rechecks(const fl_operation *self);
/* Queued, with a future: it is completed when it is time to look. -1: an exception. */
int fl_operation_set_timer(fl_operation *self, PyObject *mailbox);
void fl_operation_stop_timer(fl_operation *self);
/* Queued, and its future is over: another one. -1: an exception. */
int fl_operation_await_again(fl_operation *self);
/* By a timer of its loop: it is time for its task to look. */
void fl_operation_recheck(fl_operation *self);

/* What select() makes of one that is not awaited yet, and asks in its awaiting task's place. False, with an
   exception: it is none, was awaited, or cannot be one of several. */
bool fl_operation_selectable(fl_state *state, PyObject *operation);
/* The stake of its waiter: that which it has of its own, else that of the one that asks. */
static inline fl_stake fl_operation_stake(const fl_operation *self, uint64_t holder)
{
    return self->staked ? self->stake : FL_HOLDER(holder);
}
/* Takes without waiting: 1: taken; 0: not there, and *wanted is; FL_REFUSAL; -1: an exception. */
int fl_operation_attempt(fl_operation *self, uint64_t holder, uint32_t *wanted);
/* Whether what it wants is closed (fl_operation_unless). To be asked before it takes and once its waiter is
   in the queue, which is refused then. */
bool fl_operation_is_refused(fl_operation *self);
/* It is over: what awaiting it would return, or NULL with an exception. */
PyObject *fl_operation_finish(fl_operation *self, uint32_t wanted, bool refused);
/* From now on nothing else can await it; the selection keeps it until no waiter refers to it. -1: an
   exception, it is awaited already. */
int fl_operation_spend(fl_operation *self);

#endif
