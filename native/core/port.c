/* The stack of a port, and its end. See port.h. */
#include "core/port.h"

#include <stdlib.h>

static fl_waiter closed_mark;
#define FL_PORT_CLOSED (&closed_mark)

fl_port *fl_port_new(void)
{
    fl_port *port = calloc(1, sizeof *port);
    if (port == NULL) {
        return NULL;
    }
    port->refs = 1;
    port->generation = fl_fork_generation;
    port->poll = fl_bell_open(&port->bell);
    if (port->poll < 0) {
        free(port);
        return NULL;
    }
    return port;
}

void fl_port_unref(fl_port *port)
{
    if (fl_fetch_sub(&port->refs, 1, acq_rel) == 1) { /* pairs with itself: the last sees what all did */
        fl_bell_close(port->poll, port->bell);
        free(port);
    }
}

/* In a forked child another thread of the parent may have left it locked; the list is whole at any moment. */
void fl_port_lock(fl_port *port)
{
    fl_fork_unlock(&port->generation, &port->lock);
    fl_mutex_lock(&port->lock);
}

fl_waiter *fl_port_waiter(fl_port *port, fl_cell *cell, uint32_t wanted, uint64_t owner)
{
    fl_waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL) {
        return NULL;
    }
    fl_waiter_init(waiter, cell, wanted, owner);
    waiter->port = port;
    waiter->refs = 1;
    fl_port_lock(port);
    bool closed = port->closed;
    if (!closed) {
        waiter->after = port->all;
        if (port->all != NULL) {
            port->all->before = waiter;
        }
        port->all = waiter;
    }
    fl_mutex_unlock(&port->lock);
    if (closed) {
        free(waiter);
        return NULL;
    }
    fl_cell_ref(cell);
    fl_fetch_add(&port->refs, 1, relaxed); /* who adds one has one */
    return waiter;
}

/* The port's lock. */
static void unlist(fl_port *port, fl_waiter *waiter)
{
    if (waiter->before != NULL) {
        waiter->before->after = waiter->after;
    } else if (port->all == waiter) {
        port->all = waiter->after;
    } else {
        return; /* taken out by fl_port_close */
    }
    if (waiter->after != NULL) {
        waiter->after->before = waiter->before;
    }
    waiter->before = waiter->after = NULL;
}

void fl_port_forget(fl_waiter *waiter)
{
    fl_port *port = waiter->port;
    fl_port_lock(port);
    unlist(port, waiter);
    fl_mutex_unlock(&port->lock);
    fl_waiter_unref(waiter);
}

void fl_waiter_ref(fl_waiter *waiter)
{
    fl_fetch_add(&waiter->refs, 1, relaxed); /* who adds one has one, or holds the queue lock */
}

void fl_waiter_unref(fl_waiter *waiter)
{
    if (fl_fetch_sub(&waiter->refs, 1, acq_rel) == 1) { /* pairs with itself: the last sees what all did */
        fl_cell *cell = waiter->cell;
        fl_port *port = waiter->port;
        free(waiter);
        fl_cell_unref(cell);
        fl_port_unref(port);
    }
}

#ifdef FL_MODEL /* the model's threads have no storage of their own, and always ring */
static bool deferred(fl_port *port)
{
    (void)port;
    return false;
}
#else
static _Thread_local struct {
    bool hushed;
    fl_port *port;
} here __attribute__((tls_model("initial-exec")));

void fl_port_hush(void)
{
    here.hushed = true;
}

fl_port *fl_port_unhush(void)
{
    fl_port *port = here.port;
    here.hushed = false;
    here.port = NULL;
    return port;
}

/* Whether this thread will see to the port itself. */
static bool deferred(fl_port *port)
{
    if (!here.hushed || here.port != NULL || fl_load(&port->home, relaxed) != fl_owner_thread()) { /* ours */
        return false;
    }
    fl_fetch_add(&port->refs, 1, relaxed); /* who adds one has one */
    here.port = port;
    return true;
}
#endif

void fl_port_post(fl_port *port, fl_waiter *waiter)
{
    if (fl_exchange(&waiter->posted, 1, acq_rel)) { /* pairs with fl_port_seen */
        fl_waiter_unref(waiter);
        return;
    }
    fl_fetch_add(&port->refs, 1, relaxed); /* the waiter, which counts the port, may be gone first */
    fl_waiter *top = fl_load(&port->stack, relaxed); /* only a first guess */
    do {
        waiter->ready = top;
    } while (top != FL_PORT_CLOSED &&
             !fl_cas(&port->stack, &top, waiter, release, relaxed)); /* pairs with fl_port_drain */
    if (top == FL_PORT_CLOSED) {
        fl_waiter_unref(waiter); /* fl_port_close settles it */
    } else if (top == NULL && !deferred(port)) {
        fl_bell_ring(port->bell);
    }
    fl_port_unref(port);
}

void fl_port_hear(fl_port *port)
{
    fl_bell_clear(port->poll);
}

fl_waiter *fl_port_drain(fl_port *port)
{
    fl_waiter *top = fl_load(&port->stack, relaxed); /* only a first guess */
    do {
        if (top == FL_PORT_CLOSED) {
            return NULL;
        }
    } while (!fl_cas(&port->stack, &top, NULL, acquire, relaxed)); /* pairs with fl_port_post */
    fl_waiter *oldest = NULL;
    while (top != NULL) {
        fl_waiter *next = top->ready;
        top->ready = oldest;
        oldest = top;
        top = next;
    }
    return oldest;
}

void fl_port_seen(fl_waiter *waiter)
{
    fl_exchange(&waiter->posted, 0, acq_rel); /* pairs with fl_port_post: who posts now posts again */
}

void fl_port_close(fl_port *port)
{
    fl_waiter *top = fl_exchange(&port->stack, FL_PORT_CLOSED, acq_rel); /* pairs with fl_port_post */
    while (top != NULL && top != FL_PORT_CLOSED) {
        fl_waiter *next = top->ready;
        fl_waiter_unref(top);
        top = next;
    }
    for (;;) {
        fl_port_lock(port);
        port->closed = true;
        fl_waiter *waiter = port->all;
        if (waiter != NULL) {
            fl_waiter_ref(waiter); /* its owner waits for the lock to take it out of the list */
            unlist(port, waiter);
            fl_waiter_abandon(waiter, FL_BROKEN); /* which its owner then waits for, too */
        }
        fl_mutex_unlock(&port->lock);
        if (waiter == NULL) {
            return;
        }
        fl_waiter_unref(waiter);
    }
}
