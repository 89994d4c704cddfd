/* roster: the threads of this process that wait or may own something, what each of them waits for at this
 * moment, and the ports whose tasks wait. It is what a look at all waits begins with (bind/waits.c).
 *
 * A thread has a record from its first fl_owner_thread() until it ends. Around its sleep, and nowhere else,
 * it says there which waiter it sleeps by: two short turns of a mutex that no other sleeper of the same
 * moment is likely to want, and that nobody pays who does not sleep. Tasks say nothing: their waiters are in
 * the list of their port, and the ports are listed here.
 *
 * Invariant: while a shard's lock is held, every waiter that a record of it names is there, is constant but
 * for its state, and so are its cell and the object that it was made for (`request`); while a port's lock is
 * held, so is every waiter of the port. So who looks copies what it wants under the lock, adding a reference
 * to what it keeps.
 *
 * A thread that sleeps may be held: it does not come back from fl_roster_end until it is let go. So its
 * stack stands still while it is read, also where there is no GIL. Who holds runs no Python meanwhile.
 *
 * A thread that ends is struck off first, and then looks whether somebody waits for what it had (a lock): the
 * first who does is alarmed, or the lock closes. Who waits does it the other way round: it is in the roster,
 * or in its port's list, before it looks whether the holder has ended. So one of the two sees the other.
 *
 * Rejected. A list of all cells costs every object that is made. A record that is written without a lock
 * could not keep what it names alive while it is looked at.
 */
#ifndef FL_CORE_ROSTER_H
#define FL_CORE_ROSTER_H

#include "core/port.h"

typedef struct fl_sleeper {
    uint64_t number; /* fl_owner_thread(); constant */
    uint64_t ident;  /* the system's, as threading.get_ident() has it; constant */
    struct fl_sleeper *next, **link;
    fl_waiter *waiter; /* NULL: it does not sleep; one of several if it has a choice */
    void *state;             /* these three are the caller's of fl_roster_begin */
    int64_t space;
    int64_t deadline;
    fl_atomic(uint32_t) held; /* written under the shard's lock; its thread parks on it */
} fl_sleeper;

/* Around the sleep of the calling thread, detached. `state` and `space`: its thread state and interpreter. */
void fl_roster_begin(fl_waiter *waiter, int64_t deadline, void *state, int64_t space);
void fl_roster_end(void);

/* Calls `see` for every thread that sleeps, under its shard's lock: no Python, and no call that blocks. */
void fl_roster_sleepers(void (*see)(void *context, fl_sleeper *sleeper), void *context);

/* Shard's lock, as within `see`: it stays where it is until fl_roster_release, without that lock. */
void fl_roster_hold(fl_sleeper *sleeper);
void fl_roster_release(fl_sleeper *sleeper);

/* The system's identity of the thread with this number, with or without FL_OWNER_TASK; 0: it has ended, or
   there never was one. */
uint64_t fl_roster_ident(uint64_t owner);

/* The calling thread's record; NULL: it has none. */
fl_sleeper *fl_roster_own(void);
/* The end of a thread, by itself. */
void fl_roster_strike(fl_sleeper *sleeper);

/* A port is listed from its beginning to its end by who made it; `space`: the interpreter of its loop. */
void fl_roster_add(fl_port *port, int64_t space);
void fl_roster_remove(fl_port *port);
/* Calls `see` for every waiter of every port that is not settled, under the port's lock: as above. False: no
   memory. */
bool fl_roster_tasks(void (*see)(void *context, const fl_port *port, fl_waiter *waiter), void *context);

/* After a fork, without the cell's lock: how many permits tasks have been granted and not yet taken up, which
   are of this process: those of the forking thread's loops, and any that began to wait since. */
uint32_t fl_roster_granted(const fl_cell *cell);

/* Once per process. False: no memory. */
bool fl_roster_setup(void);

#endif
