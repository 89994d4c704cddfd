/* mailbox: the one way into an event loop.
 *
 * A task that waits has a counted waiter, and its loop a mailbox: a stack of waiters that were granted or
 * woken, and a wakeup descriptor that the loop polls. Posting is a compare-and-swap, and rings only when the
 * stack was empty, so that n grants cost one system call; it needs neither the GIL nor the interpreter of the
 * loop. Compare asyncio's call_soon_threadsafe, which writes to a socket every time and holds the sender's
 * GIL while it does.
 *
 * The loop drains: clears the wakeup descriptor if it has heard it, takes the whole stack, and looks at the
 * state of each. A waiter is in the stack at most once (`posted`): a thread that finds it there knows that
 * the loop will look at the state after that.
 *
 * A mailbox closes with its loop. All waiters of a mailbox are also in lists of it, under a mutex, so that
 * closing finds those that are queued somewhere (they leave), granted and not yet resumed, posted or not
 * (what they were granted is given back). This is what lets a loop be closed at any moment without losing a
 * permit.
 */
#pragma once

#include "sync/wait/waitq.h"

typedef struct fl_mailbox {
    fl_atomic(fl_waiter *) stack; /* FL_MAILBOX_CLOSED at the end */
    fl_atomic(uint32_t) refs;
    fl_atomic(uint64_t) home; /* fl_owner_thread() of the loop's thread */
    fl_mutex
        lock; /* of the lists and `closed`; taken without any queue lock, which may be taken within it */
    fl_atomic(uint32_t) generation;
    bool closed;
    fl_waiter *for_locks, *others; /* all waiters: those that may come to wait for a holder, and the rest */
    fl_atomic(void *) wrapper; /* the loop's side */
    fl_wakeup wakeup;
    struct fl_mailbox *listed, **link; /* these three are the thread table's, and under its lock */
    int64_t space;
} fl_mailbox;

/* NULL: no memory, or no descriptor (errno). One reference. */
fl_mailbox *fl_mailbox_new(void);
void fl_mailbox_unref(fl_mailbox *mailbox);

/* The lock of the list of all waiters; fl_mutex_unlock(&mailbox->lock) is its end. */
void fl_mailbox_lock(fl_mailbox *mailbox);

/* A waiter for a task, not queued yet, with one reference, in the mailbox's list. The wait queue and the
   mailbox are counted. NULL: no memory, or the mailbox is closed. */
fl_waiter *fl_mailbox_waiter(fl_mailbox *mailbox, fl_waitq *waitq, uint32_t wanted, fl_stake stake);
/* Out of the mailbox's list; drops the reference. The waiter is settled and its payload taken out. */
void fl_mailbox_forget(fl_waiter *waiter);

void fl_waiter_ref(fl_waiter *waiter);
void fl_waiter_unref(fl_waiter *waiter);

/* A thread that may be inside its own loop's turn can spare the wakeup descriptor: between fl_mailbox_batch
   and fl_mailbox_flush, a post to a mailbox whose loop runs in this thread is not rung, and fl_mailbox_flush
   returns one such mailbox (with a reference), which the caller drains or rings. Nothing in between blocks.
 */
void fl_mailbox_batch(void);
fl_mailbox *fl_mailbox_flush(void);

/* Any thread, any interpreter. Takes over one reference of the waiter. Does not block. */
void fl_mailbox_post(fl_mailbox *mailbox, fl_waiter *waiter);

/* The loop's thread, when it has polled the wakeup descriptor: a post to an empty stack from now on rings
   again. Not where it drains what it posted itself, which has rung nothing: this is a system call. */
void fl_mailbox_hear(fl_mailbox *mailbox);

/* The loop's thread: what was posted, oldest first, linked by `ready`, each with a reference. The state of
   each is to be looked at after fl_mailbox_seen. */
fl_waiter *fl_mailbox_drain(fl_mailbox *mailbox);
void fl_mailbox_seen(fl_waiter *waiter);

/* The mailbox is closed from now on, and a waiter of it that was not settled is broken: with a reference, its
   payload left to the caller. NULL: there are no more. */
fl_waiter *fl_mailbox_break(fl_mailbox *mailbox);
/* That for all waiters, whose payloads are left to their owners. */
void fl_mailbox_close(fl_mailbox *mailbox);
