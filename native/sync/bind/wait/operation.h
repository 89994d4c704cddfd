/* operation: one wait of one task, as an awaitable. It is awaited in operation.c, looks again by a timer in
 * operation_recheck.c, and is one of the cases of a selection in operation_case.c.
 */
#pragma once

#include "sync/bind/wait/awaitable.h"
#include "sync/bind/base/wrapper.h"
#include "sync/coordination/meeting.h"

/* How a wait ended: with what the awaitable carries, and the waiter's `wanted` as it was left; `refused`: the
   wait queue was closed, and nothing is taken. */
typedef struct {
    PyObject *item; /* may be NULL */
    uint32_t wanted;
    bool refused;
} fl_end;

/* What an awaitable returns once its wait is over; NULL with an exception set. Without one it is True. */
typedef PyObject *(*fl_finish)(PyObject *wrapper, fl_end end);

/* An awaitable that takes `wanted` from the wrapper's wait queue when it is awaited. */
PyObject *fl_operation_new(fl_state *state, PyObject *wrapper, uint32_t wanted, fl_finish finish);
/* From another wait queue that lives as long as the wrapper; `item` may be NULL. */
PyObject *fl_operation_at(fl_state *state, PyObject *wrapper, fl_waitq *waitq, uint32_t wanted,
                          fl_finish finish, PyObject *item);

/* A handoff with an object, for a sender; NULL with an exception. */
fl_handoff *fl_handoff_new(PyObject *object);
/* With what is in it; may be NULL. */
void fl_handoff_drop(fl_handoff *handoff);

/* An awaitable of a meeting, by this side, which steals the handoff (NULL: a receiver brings none);
   `finish` is given what is in its place by then. Once it has met, a cancellation is too late for one that
   sends: it ends as if there was none, and the task is cancelled at its next wait. */
PyObject *fl_operation_meeting(fl_state *state, PyObject *wrapper, fl_meeting_side side, fl_handoff *handoff,
                            fl_finish finish);

/* With a way of the wrapper's own to take without waiting: 1: taken, 0: not there, -1: an exception. It is
   called when the awaitable is awaited, in the task that awaits, may change what is wanted, and warns of
   holders that have ended. */
typedef int (*fl_attempt)(PyObject *wrapper, PyObject *item, uint32_t *wanted);
PyObject *fl_operation_of(fl_state *state, PyObject *wrapper, PyObject *item, uint32_t wanted,
                          fl_attempt attempt, fl_finish finish);

/* What __aenter__ returns, which `async with` awaits at once: done if it could be taken, else that operation.
   NULL with an exception set. */
PyObject *fl_operation_enter(fl_state *state, PyObject *wrapper, PyObject *item, uint32_t wanted,
                             fl_attempt attempt, fl_finish finish);

/* The same awaitable (NULL: an exception is set), for what may be closed meanwhile: it takes nothing then. */
PyObject *fl_operation_unless(PyObject *operation, fl_refuses refuses);

/* With this stake instead of that of the task that awaits it. */
void fl_operation_for(PyObject *operation, fl_stake stake);

/* An awaitable that is done; for `async with`, which awaits at once, and for what never waits. */
PyObject *fl_operation_done(fl_state *state);

/* ---- What its files and a selection share. */

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
