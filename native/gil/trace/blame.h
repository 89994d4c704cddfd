/* blame: which thread held the lock while which other thread waited.
 *
 * The invariant: what fl_blame_wait adds up for one wait - by holder, no thread, and not known - is the
 * length of the wait, to the tick.
 *
 * The plain way, to add a hold's length to every waiter's account when the hold ends, costs as many steps as
 * threads wait, at every hold: a square. Here a hold is only noted (one entry in a row of bounded length),
 * and a waiter adds up the holds that lay in its wait when the wait is over. That is as many steps as there
 * were holds in the wait, which is the same square when a thousand threads pass the lock round in
 * microseconds. So steps are rationed: each wait may look at FL_BLAME_FREE_STEPS holds, and beyond that at
 * one for every FL_BLAME_NS_PER_STEP that the lock was held since, newest first; what lies before is added to
 * "not known". Hence the cost is bounded to a constant for each wait plus about one per cent of the time the
 * lock is held, a wait that saw no more holds than the free steps is exact, and of any other it is known how
 * much is not.
 *
 * Not for several threads at once: the lock that is watched guards it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_BLAME_FREE_STEPS 64
#define FL_BLAME_NS_PER_STEP 1000
#define FL_BLAME_HOLDS 4096  /* a power of two: how many holds are remembered */
#define FL_BLAME_PAIRS 65536 /* a power of two: at most half as many pairs of threads are kept apart */
#define FL_BLAME_LOSSES 4096 /* likewise, pairs with their stacks */

#define FL_BLAME_NO_THREAD 0            /* as a holder: the lock was free, on its way to the next */
#define FL_BLAME_UNKNOWN 0xFFFFFFFEu /* as a holder: a thread, but it is not known which */
#define FL_BLAME_ENDED 0xFFFFFFFFu   /* as either: threads that ended long ago, together */

#define FL_BLAME_FREE_NS 1000000 /* a thread that is awake takes a free lock sooner by far */

typedef struct {
    uint64_t start, end; /* ticks, like all times here */
    uint64_t asked;      /* when it was first asked to end, or would have been by a waiter that had a core;
                            `end`: it was not */
    uint64_t asleep, collecting, coreless; /* of the time since: it slept, collected garbage, had no core */
    uint32_t thread;
    uint32_t stack; /* what the holder was doing; 0: not looked at */
} fl_hold;

/* What was waited for. */
typedef struct {
    uint64_t all;
    uint64_t asked; /* behind a hold that was asked to end, until it was; */
    uint64_t late;  /* and from then on. Parts of that, spread evenly over it: */
    uint64_t asleep, collecting, coreless; /* the last with no holder: the lock was free, and the waiter had
                                              no core to take it, for FL_BLAME_FREE_NS or longer */
} fl_blame_parts;

typedef struct {
    uint32_t waiter, holder;
    fl_blame_parts parts;
} fl_blame_pair;

typedef struct {
    uint32_t waiter, holder, waiter_stack, holder_stack;
    uint64_t ticks, longest, waits; /* waits 0: the place is empty */
    uint64_t late, late_asleep, late_longest, late_waits; /* in calls that do not let go: `late` without
                                                             collections and lost cores */
} fl_blame_loss;

typedef struct {
    fl_hold *holds;
    uint64_t noted;       /* how many, ever */
    uint64_t ration;      /* steps saved up, in ns of hold */
    fl_blame_pair *pairs; /* open addressing; a pair of 0, 0 is an empty place */
    size_t pairs_room, pairs_used;
    fl_blame_loss *losses;
    size_t losses_room, losses_used;
    fl_blame_pair *spare_pairs; /* empty, of the same room: threads are merged into them, in turns */
    fl_blame_loss *spare_losses;
} fl_blame;

/* All zeros is empty and ready. Where memory is short, blame goes to "not known". */
void fl_blame_free(fl_blame *blame);

/* How much memory it takes, the structure itself not included. */
size_t fl_blame_bytes(const fl_blame *blame);

/* A hold has ended during which a thread waited. O(1). */
void fl_blame_hold(fl_blame *blame, fl_hold hold);

/* A wait has ended; `stack` is what the waiter was doing (0: not looked at). */
void fl_blame_wait(fl_blame *blame, uint32_t waiter, uint32_t stack, uint64_t start, uint64_t end);

/* Adds time whose holder the caller knows. */
void fl_blame_add(fl_blame *blame, uint32_t waiter, uint32_t holder, uint64_t ticks);

/* Threads are merged into FL_BLAME_ENDED, so that their serials need not be kept for ever. O(pairs), and may
   allocate; `ended(serial, context)` says which. */
void fl_blame_merge(fl_blame *blame, bool (*ended)(uint32_t serial, void *context), void *context);
