/* phaser: parties that come and go, and meet at the end of each phase.
 *
 * Prior art: java.util.concurrent.Phaser (Doug Lea, JSR 166; https://docs.oracle.com/en/java/javase/21/docs/
 * api/java.base/java/util/concurrent/Phaser.html), after the phasers of X10 (Shirako and others, 2008,
 * https://doi.org/10.1145/1375527.1375568). What the operations mean is Java's. Phasers may form a tree: one
 * with parties is a party of its parent, which it arrives at when all of its own have.
 *
 * * All phasers of a tree have one wait queue, the root's. Its word is the phase in the low half, and two
 * flags; the counts are in the nodes; everything changes under its queue lock. TERMINATED  for ever. No party
 * waits, and nothing counts. ADVANCING   the last has arrived, and may do something before the next phase
 * begins by fl_phaser_advance.
 * * Once all of a node have arrived, a party that registers with it does so for the next phase; and one that
 *   arrives when its own parties have is early: that is noted (in a list, the wait queue's `owner`), and
 *   counts when the next phase begins. So no party arrives in the place of a child.
 * * A node that the root has advanced past is brought up to the phase when it is next used: `unarrived` of
 *   the new phase is its parties, and so below. So advancing takes as long whatever the size of the tree.
 * * An arrival is not taken back: a waiter that stops, by a time-out or a cancellation, has arrived.
 *
 * Rejected. Java's phasers of a tree have each a state of their own, so that few contend for each; here the
 * lock is held for some nanoseconds, and no party waits for a parent that lags behind. Waiting in register()
 * until the phase has advanced, as Java does, could wait for what the caller is to do itself.
 *
 * Invariants, checked by the model (phaser-* in native/tests/model/scenarios_phaser.c):
 * 1. A phase advances when every party that is registered for it has arrived, and not before; once.
 * 2. A waiter for the end of a phase goes on when that comes, and when it is terminated.
 */
#ifndef FL_SYNC_COORDINATION_PHASER_H
#define FL_SYNC_COORDINATION_PHASER_H

#include "sync/wait/waitq.h"

#define FL_PHASER_MOST 0x3fffffffu /* parties of a node */
#define FL_PHASER_PHASE 0x7fffffffu /* after this one comes 0 */
#define FL_PHASER_TERMINATED (UINT64_C(1) << 32)
#define FL_PHASER_ADVANCING (UINT64_C(1) << 33)

typedef struct fl_phaser {
    fl_waitq *waitq; /* the root's */
    struct fl_phaser *parent; /* outlives it */
    /* queue lock */
    struct fl_phaser *next; /* of those with early ones */
    uint32_t parties, unarrived;         /* its own */
    uint32_t children, children_missing; /* those below that have parties, and have not all arrived */
    uint32_t phase;                      /* of which these are */
    uint32_t early, early_gone; /* arrived for the next phase; of these, how many will not be parties of it */
} fl_phaser;

typedef enum {
    FL_PHASER_OK,
    FL_PHASER_LAST,         /* the caller is to call fl_phaser_advance */
    FL_PHASER_OVER,         /* it is terminated, and nothing has changed */
    FL_PHASER_UNREGISTERED, /* it has no party that could arrive; nothing has changed */
    FL_PHASER_TOO_MANY,     /* parties; nothing has changed */
} fl_phaser_result;

extern const fl_waitq_ops fl_phaser_ops;

static inline fl_waitq *fl_phaser_new_waitq(void)
{
    return fl_waitq_new(&fl_phaser_ops, 0, 0, 0);
}

/* With both flags. */
static inline uint64_t fl_phaser_word(fl_waitq *waitq)
{
    fl_waitq_refresh(waitq);
    return fl_load(&waitq->word, acquire); /* pairs with fl_phaser_advance */
}

/* None of these blocks; as fl_sem_give, they may be called from anywhere. It counts for *phase. */
fl_phaser_result fl_phaser_register(fl_phaser *self, uint32_t parties, uint32_t *phase);
fl_phaser_result fl_phaser_arrive(fl_phaser *self, bool deregister, uint32_t *phase);

/* By the last that has arrived: the next phase, or the end if that is wanted or the root has no parties.
   True: all have arrived early at that one, too, and the caller is to call it again. */
bool fl_phaser_advance(fl_phaser *root, bool terminate);
void fl_phaser_terminate(fl_waitq *waitq);

/* What it counts at this moment, each child as one. */
void fl_phaser_counts(fl_phaser *self, uint32_t *parties, uint32_t *unarrived);
/* It goes, and whatever has arrived early at it. */
void fl_phaser_forget(fl_phaser *self);

#endif
