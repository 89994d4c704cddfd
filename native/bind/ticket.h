/* What the files of a ticket share: it is awaited in ticket.c, looks again by a timer in ticket_look.c, and
 * is one of the cases of a selection in ticket_case.c.
 */
#ifndef FL_BIND_TICKET_H
#define FL_BIND_TICKET_H

#include "bind/wait.h"

typedef enum { FL_TICKET_NEW, FL_TICKET_WAITING, FL_TICKET_OVER } fl_ticket_phase;

typedef struct {
    PyObject_HEAD
    PyObject *shell;
    fl_cell *cell;     /* the shell's, or one that lives as long */
    fl_waiter *waiter; /* queued or granted; NULL otherwise */
    PyObject *inner;   /* the iterator of the future that is awaited */
    PyObject *item;    /* for `finish`; may be NULL */
    PyObject *timer;   /* of the loop, for what comes by itself; may be NULL */
    fl_parcel *parcel; /* of a meeting: what goes over, and then what came; who meets it writes here */
    bool busy;         /* a step of it runs: what that calls may not take another */
    bool selected;     /* by a selection, whose waiter may refer to `parcel` as long as this is there */
    fl_attempt attempt; /* NULL: the cell's */
    fl_conclude conclude; /* NULL: `finish` */
    fl_finish finish;
    uint64_t owner; /* 0: the task that awaits it */
    uint32_t wanted;
    fl_ticket_phase phase;
} fl_ticket;

/* Takes from its cell without waiting. */
bool fl_ticket_take(fl_ticket *self, uint64_t owner);

/* What it ends with: its result, or an exception. */
PySendResult fl_ticket_end(fl_ticket *self, bool refused, PyObject **result);

/* Whether what it waits for comes by itself, and is to be looked for. */
bool fl_ticket_looks(const fl_ticket *self);
/* Queued, with a future: it is completed when it is time to look. -1: an exception. */
int fl_ticket_set_timer(fl_ticket *self, PyObject *port);
void fl_ticket_stop_timer(fl_ticket *self);
/* Queued, and its future is over: another one. -1: an exception. */
int fl_ticket_await_again(fl_ticket *self);
/* By a timer of its loop: it is time for its task to look. */
void fl_ticket_look(fl_ticket *self);

#endif
