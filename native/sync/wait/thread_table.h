/* thread table: the threads of this process that wait or may own something, what each of them waits for at
 * this moment, and the mailboxes whose tasks wait. A look at all waits begins with it
 * (sync/bind/base/waits.c).
 *
 * A thread has a record from its first fl_owner_thread() until it ends. Around its sleep, and nowhere else,
 * it says there which waiter it sleeps by: two short turns of a mutex that no other parked thread of the same
 * moment is likely to want, and that costs a thread nothing while it does not sleep. Tasks say nothing: their
 * waiters are in the list of their mailbox, and the mailboxes are listed here.
 *
 * Invariant: while a shard's lock is held, every waiter that a record of it names is there, is constant but
 * for its state, and so are its wait queue and the object that it was made for (`request`); while a mailbox's
 * lock is held, so is every waiter of the mailbox. So a reader copies what it wants under the lock, adding a
 * reference to what it keeps.
 *
 * A thread that sleeps may be held: it does not come back from fl_thread_table_end until it is let go. So its
 * stack stands still while it is read, also where there is no GIL. The holding thread runs no Python.
 *
 * A thread that ends is struck off first, and then looks whether there are waiters for what it had (a lock):
 * the first that does is woken, or the lock closes. A waiter does it the other way round: it is in the
 * thread table, or in its mailbox's list, before it looks whether the holder has ended. So one of the two
 * sees the other. Waiters of locks have lists of their own: what else is waited for costs an end nothing.
 *
 * The table also keeps the one waiter that a thread waits with (waitq.h, invariant 3).
 *
 * Rejected. A list of all wait queues costs every object that is made. A record that is written without a
 * lock could not keep what it names alive while it is looked at.
 */
#pragma once

#include "sync/wait/mailbox.h"

typedef struct fl_parked {
    uint64_t number; /* fl_owner_thread(); constant */
    uint64_t ident;  /* the system's, as threading.get_ident() has it; constant */
    struct fl_parked *next, **link;
    struct fl_parked *next_for_lock, **link_for_lock; /* of those that sleep for what has a holder */
    fl_waiter *spare;  /* its own: the waiter that it uses next */
    fl_waiter *waiter; /* NULL: it does not sleep; one of several if it has a choice */
    void *state;             /* these three are the caller's of fl_thread_table_begin */
    int64_t space;
    int64_t deadline;
    fl_atomic(uint32_t) held; /* written under the shard's lock; its thread parks on it */
} fl_parked;

/* A waiter of the calling thread for its next wait, which fl_thread_waiter_done ends; NULL: no memory. */
fl_waiter *fl_thread_waiter(fl_waitq *waitq, uint32_t wanted, fl_stake stake);
void fl_thread_waiter_done(fl_waiter *waiter);

/* Around the sleep of the calling thread, detached. `state` and `space`: its thread state and interpreter. */
void fl_thread_table_begin(fl_waiter *waiter, int64_t deadline, void *state, int64_t space);
void fl_thread_table_end(void);

/* Calls `see` for every thread that sleeps, under its shard's lock: no Python, and no call that blocks. */
void fl_thread_table_parked(void (*see)(void *context, fl_parked *parked), void *context);

/* Shard's lock, as within `see`: it stays where it is until fl_thread_table_release, without that lock. */
void fl_thread_table_hold(fl_parked *parked);
void fl_thread_table_release(fl_parked *parked);

/* The system's identity of the thread with this number, with or without FL_OWNER_TASK; 0: it has ended, or
   there never was one. */
uint64_t fl_thread_table_ident(uint64_t owner);

/* The calling thread's record; NULL: it has none. */
fl_parked *fl_thread_table_own(void);
/* The end of a thread, by itself. */
void fl_thread_table_unregister(fl_parked *parked);

/* A mailbox is listed from its beginning to its end by its maker; `space`: the interpreter of its loop. */
void fl_thread_table_add(fl_mailbox *mailbox, int64_t space);
void fl_thread_table_remove(fl_mailbox *mailbox);
/* Calls `see` for every waiter of every mailbox that waits, under the mailbox's lock: as above. False: no
   memory. */
bool fl_thread_table_tasks(void (*see)(void *context, const fl_mailbox *mailbox, fl_waiter *waiter),
                           void *context);

/* After a fork, without the wait queue's lock: how many permits tasks have been granted and not yet taken up,
   which are of this process: those of the forking thread's loops, and any that began to wait since. */
uint32_t fl_thread_table_granted(const fl_waitq *waitq);

/* Once per process. False: no memory. */
bool fl_thread_table_setup(void);
