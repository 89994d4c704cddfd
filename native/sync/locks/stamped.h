/* stamped: a readers-writer lock, and a count of writes, by which reading without it is judged.
 *
 * Prior art: java.util.concurrent.locks.StampedLock (Doug Lea, Java 8), whose semantics these are; sequence
 * locks (Linux, include/linux/seqlock.h), and what they need of a memory model (Boehm, "Can Seqlocks Get
 * Along With Programming Language Memory Models?", 2012, https://doi.org/10.1145/2247684.2247688).
 *
 * The lock is rwlock.h's, waiters and phases included. `version` is even while there is no writer; a thread
 * with the lock to write makes it odd before its first change, and even again after its last. A reader that
 * finds the same even version before and after has seen no change of a writer in part.
 *
 * Invariants, checked by the model (stamped-* in native/tests/model/scenarios_stamped.c):
 * 1. Between two readings of the same even version no writer has changed anything: what was read is of one
 *    moment.
 * 2. Only a sole holder goes from reading to writing, and no other writes in between.
 *
 * Of the orders: the version is made odd before the release fence, changes come after it; a reader's last
 * look at the version comes after its acquire fence, what it has read before it. If it has read one of
 * those changes the two fences synchronize, and it finds the version odd or later. The even version is stored
 * with release, after all changes, and pairs with the acquire of a reader that begins.
 */
#ifndef FL_SYNC_LOCKS_STAMPED_H
#define FL_SYNC_LOCKS_STAMPED_H

#include "sync/locks/rwlock.h"

typedef struct {
    fl_waitq waitq;
    fl_atomic(uint64_t) version;
} fl_stamped;

static inline fl_waitq *fl_stamped_new(void)
{
    return fl_waitq_new_within(sizeof(fl_stamped), &fl_rw_ops, 0, FL_RW_MOST, 0);
}

static inline fl_atomic(uint64_t) *fl_stamped_version(fl_waitq *waitq)
{
    return &((fl_stamped *)(void *)waitq)->version;
}

/* Begins to read without the lock: odd: there is a writer. Any thread, attached or not. */
static inline uint64_t fl_stamped_look(fl_waitq *waitq)
{
    return fl_load(fl_stamped_version(waitq), acquire); /* pairs with fl_stamped_end */
}

/* Whether nothing has changed since that version, which was even, was looked at. */
static inline bool fl_stamped_same(fl_waitq *waitq, uint64_t version)
{
    fl_fence(acquire); /* pairs with the fence in fl_stamped_begin */
    return fl_load(fl_stamped_version(waitq), relaxed) == version; /* after the fence */
}

/* By the writer, before the first change and after the last. Both return the version. */
uint64_t fl_stamped_begin(fl_waitq *waitq);
uint64_t fl_stamped_end(fl_waitq *waitq);

#endif
