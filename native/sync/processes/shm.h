/* shm: primitives in memory that processes share, any of which may be killed between any two instructions.
 *
 * Nothing here is a list, because a list is not whole while it is changed, and no process would be left to
 * repair it. A primitive is a few words, and every step that counts is one compare-and-swap or one store:
 *
 * Invariant 1. One step takes something and writes its owner: the word that says that a lock is taken is the
 *    identity of its owner (process.h). So whatever a dead process held is found by its
 *    identity, and what it had not yet taken is free.
 * Invariant 2. Between any two steps of a process the primitive is whole: if a process dies there, another
 *    can go on from what it finds.
 * Invariant 3. A sleeper holds nothing, and no other process knows it. It sleeps until a word changes
 *    (fl_shm_eventcount) and then looks for itself. A wake-up that goes to a process that dies with it is
 *    lost; so a sleeper checks by itself, too: first after 4 ms, at last every 64. Without a death no wake-up
 *    is lost, and no such check is needed: the model shows the one with them and the other without
 *    (native/tests/model/test_model_shm.c).
 *
 * Prior art: the robust futexes of Linux (Ingo Molnar, 2006, Documentation/locking/robust-futexes.rst),
 * which the kernel walks at the end of a thread. Those belong to threads, and what is held here belongs to
 * a process: a task that takes a lock may release it in another thread. Also the event counts of Dmitry
 * Vyukov, which fl_shm_eventcount is one of. Rejected: a queue of waiters with hand-off as in waitq.h, for
 * the reason above, so there is no order here: sleepers and newcomers are equals.
 *
 * Words that decide are read and written in one total order (seq_cst): a process that is about to sleep first
 * says so and then checks, and one that changes something first changes it and then checks for sleepers.
 */
#pragma once

#include "machine/atomic.h"
#include "machine/process.h"

#define FL_SHM_MAGIC 0x6461656c72696166u /* "fairlead" */
#define FL_SHM_VERSION 1u

/* What stands at the beginning of a segment; what it is of follows. Written before another process can
   open it. */
typedef struct {
    uint64_t magic;
    uint32_t version; /* of all that is laid out in this room */
    uint32_t kind;
    uint64_t size;  /* of the whole segment */
    uint64_t space; /* fl_process_space() of its maker */
    uint8_t token[16];
    uint32_t amount, flags; /* what the kind was made with */
    uint64_t spare;
} fl_shm_header;

_Static_assert(sizeof(fl_shm_header) == 64, "the layout is part of the version");

/* What waiters for a change sleep on. `asked` is odd if there may be a sleeper, and another number
   after each time that one was about to sleep. */
typedef struct {
    fl_atomic(uint32_t) word, asked;
} fl_shm_eventcount;

/* One wait. Zero it, and while trying says FL_SHM_NOT (with `turn`, where to wait): if fl_shm_prepare() says
   so try again, and otherwise sleep. `look` is for trying: check whether the owner that stands in the way is
   dead. */
typedef struct {
    fl_shm_eventcount *eventcount;
    uint32_t seen, looks;
    bool asked, look, late;
} fl_shm_wait;

#define FL_SHM_FIRST_LOOK_NS 4000000
#define FL_SHM_LAST_LOOK 4 /* doublings */

/* True: it is known now that there is a waiter, and what is waited for may have come in between. */
bool fl_shm_prepare(fl_shm_wait *wait, fl_shm_eventcount *eventcount);
/* Blocks, detached, until there may be something, a signal, or the time is over (`late`). */
fl_park_result fl_shm_sleep(fl_shm_wait *wait, int64_t deadline);
/* After a change: wakes so many of those that sleep. Never blocks. */
void fl_shm_notify(fl_shm_eventcount *eventcount, uint32_t count);
/* By a process that was woken and has no use for it: the next may have. */
static inline void fl_shm_pass_on(fl_shm_eventcount *eventcount)
{
    fl_unpark_shared(&eventcount->word, 1);
}

typedef enum {
    FL_SHM_DONE,
    FL_SHM_NOT,       /* not now */
    FL_SHM_INHERITED, /* done; the holder before is dead */
    FL_SHM_DIED,      /* not done, because the holder is dead: process `dead` */
    FL_SHM_SHUT_DOWN, /* not ever */
} fl_shm_result;

/* A lock, held by a process. 0: free. */
typedef struct {
    fl_atomic(uint64_t) owner;
    fl_shm_eventcount eventcount;
    fl_atomic(uint32_t) deaths; /* of owners, counted by the next one */
} fl_shm_lock;

/* Never blocks. `inherit`: takes over from a dead owner, which is only seen with wait->look. */
fl_shm_result fl_shm_lock_try(fl_shm_lock *lock, uint64_t me, bool look, bool inherit, uint64_t *dead);
/* Whether trying with wait->look might bring something. Costs what fl_process_alive does. */
bool fl_shm_lock_ready(const fl_shm_lock *lock);
/* False: it is not this process that holds it. Never blocks. */
bool fl_shm_lock_release(fl_shm_lock *lock, uint64_t me);
