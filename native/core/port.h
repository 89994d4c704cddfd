/* port: the one way into an event loop.
 *
 * A task that waits has a counted waiter, and its loop a port: a stack of waiters that were granted or
 * nudged, and a bell that the loop polls. Posting is a compare-and-swap, and rings only when the stack was
 * empty, so that n grants cost one system call; it needs neither the GIL nor the interpreter of the loop.
 * Compare asyncio's call_soon_threadsafe, which writes to a socket every time and holds the sender's GIL
 * while it does.
 *
 * The loop drains: clears the bell if it has heard it, takes the whole stack, and looks at the state of each.
 * A waiter is in the stack at most once (`posted`): who finds it there knows that the loop will look at the
 * state after that.
 *
 * A port closes with its loop. All waiters of a port are also in a list of it, under a mutex, so that
 * closing finds those that are queued somewhere (they leave), granted and not yet resumed, posted or not
 * (what they were granted is given back). This is what lets a loop be closed at any moment without losing a
 * permit.
 */
#ifndef FL_CORE_PORT_H
#define FL_CORE_PORT_H

#include "core/cell.h"

typedef struct fl_port {
    fl_atomic(fl_waiter *) stack; /* FL_PORT_CLOSED at the end */
    fl_atomic(uint32_t) refs;
    fl_atomic(uint64_t) home; /* fl_owner_thread() of the loop's thread */
    fl_mutex lock; /* of `all` and `closed`; taken without any cell's lock, which may be taken within it */
    fl_atomic(uint32_t) generation;
    bool closed;
    fl_waiter *all;
    fl_atomic(void *) shell; /* the loop's side */
    int poll, bell;
    struct fl_port *listed, **link; /* these three are the roster's, and under its lock */
    int64_t space;
} fl_port;

/* NULL: no memory, or no descriptor (errno). One reference. */
fl_port *fl_port_new(void);
void fl_port_unref(fl_port *port);

/* The lock of the list of all waiters; fl_mutex_unlock(&port->lock) is its end. */
void fl_port_lock(fl_port *port);

/* A waiter for a task, not queued yet, with one reference, in the port's list. The cell and the port are
   counted. NULL: no memory, or the port is closed. */
fl_waiter *fl_port_waiter(fl_port *port, fl_cell *cell, uint32_t wanted, uint64_t owner);
/* Out of the port's list; drops the reference. The waiter is settled and its payload taken out. */
void fl_port_forget(fl_waiter *waiter);

void fl_waiter_ref(fl_waiter *waiter);
void fl_waiter_unref(fl_waiter *waiter);

/* A thread that may be inside its own loop's turn can spare the bell: between fl_port_hush and
   fl_port_unhush, a post to a port whose loop runs in this thread is not rung, and fl_port_unhush returns one
   such port (with a reference), which the caller drains or rings. Nothing in between blocks. */
void fl_port_hush(void);
fl_port *fl_port_unhush(void);

/* Any thread, any interpreter. Takes over one reference of the waiter. Does not block. */
void fl_port_post(fl_port *port, fl_waiter *waiter);

/* The loop's thread, when it has polled the bell: who posts to an empty stack from now on rings again. Not
   where it drains what it posted itself, which has rung nothing: this is a system call. */
void fl_port_hear(fl_port *port);

/* The loop's thread: what was posted, oldest first, linked by `ready`, each with a reference. The state of
   each is to be looked at after fl_port_seen. */
fl_waiter *fl_port_drain(fl_port *port);
void fl_port_seen(fl_waiter *waiter);

/* Once. Every waiter of the port that is not settled is broken; its payload is left to its owner. */
void fl_port_close(fl_port *port);

#endif
