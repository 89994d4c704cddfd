/* control: a page of memory that another process may write an order into, for the scheduler.
 *
 * The page is in a file in /dev/shm that only its owner and root may open. A program and the processes that
 * it forks share one file, with a page for each, which a child takes by a compare-and-swap: a fork makes no
 * file, and a child that ends by _exit() leaves none. No thread serves the page: the hooks compare one word
 * at each take of the GIL and while they wait for it, so an order reaches a process whose Python is stuck,
 * and costs nothing else. Hooks that rest (hooks.h) look when a thread first waits.
 * fairlead.gil.schedule.outside is the other side. It finds the file among those that a process has mapped.
 *
 * An order is one word, written at once: the later order wins. The answer's fields are written before
 * `answered`, under the mutex of the main interpreter's GIL.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FL_CONTROL_MAGIC 0x4c544346u /* "FCTL" */
#define FL_CONTROL_VERSION 3u
#define FL_CONTROL_PAGES 255 /* in a file, after 64 bytes of its own */

/* The low byte of a request; above it a number that is another each time. */
enum {
    FL_ORDER_STATUS, /* change nothing, and answer */
    FL_ORDER_STOCK,
    FL_ORDER_INTERACTIVE,
    FL_ORDER_OFF, /* stock, whatever the program itself asks for, until another order */
    FL_ORDERS,
};

/* Whether the hooks look for orders. */
enum {
    FL_AWAKE,
    FL_RESTING,     /* no thread has waited for the GIL yet; the first that does obeys */
    FL_CANNOT_WAKE, /* one has, and they could not be put in */
    FL_BYPASSED,    /* they are in, and do not see the threads that wait */
};

typedef struct {
    _Alignas(64) uint32_t magic; /* a cache line */
    uint32_t version;
    _Atomic uint32_t pid;    /* as the process knows itself; 0: the page is free */
    _Atomic uint32_t canary; /* an fl_canary */
    _Atomic uint32_t request;
    _Atomic uint32_t answered; /* the request that the rest answers */
    _Atomic uint32_t mode, off, trips, waiting;
    _Atomic uint64_t acquired, waited;
    _Atomic uint32_t hooks; /* FL_AWAKE and so on */
    uint32_t reserved;
} fl_control_page;

_Static_assert(sizeof(fl_control_page) == 64, "as fairlead.gil.schedule.outside reads it");

/* Never NULL: one that no other process sees until there is a file. */
extern fl_control_page *_Atomic fl_control_here;

static inline fl_control_page *fl_control(void)
{
    return atomic_load_explicit(&fl_control_here, memory_order_acquire);
}

/* Makes the file of this process and of those that it will fork, and removes the files of processes that are
 * no more. False: it cannot be made, and no order comes. One thread at a time. */
bool fl_control_open(void);

/* Before a fork: an order that no thread has obeyed yet is one to the child, too. What the parent does after
 * the fork may change the page, which the child sees, before the child comes to look at it. */
void fl_control_forking(void);

/* In the child of a fork: orders to the parent are no longer ours. A child that is process 1 of a number
 * space takes none. */
void fl_control_forked(void);

/* Takes a page there, when a request is first looked at: most children become another program before that. A
 * child takes no orders while all are in use. Under the mutex of the GIL that was forked. */
void fl_control_renew(void);
