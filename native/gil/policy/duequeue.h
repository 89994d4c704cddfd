/* duequeue: waiting threads, earliest deadline first.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) threaded through the members: no allocation,
 * O(log n) amortised, removal from the middle. Members of one deadline leave in the order in which they
 * began to wait.
 *
 * Locking: every function needs the lock that protects the queue.
 */
#pragma once

#include <stdint.h>

typedef struct fl_duelink {
    struct fl_duelink *child, *next, *prev; /* prev: the left sibling, or the parent of a first child */
    int64_t due;  /* ns; fixed while the member is in the queue */
    int64_t since; /* ns; breaks ties */
} fl_duelink;

typedef struct fl_duequeue {
    fl_duelink *first; /* NULL: empty */
    uint32_t count;
} fl_duequeue;

void fl_duequeue_add(fl_duequeue *queue, fl_duelink *link);
void fl_duequeue_remove(fl_duequeue *queue, fl_duelink *link);
