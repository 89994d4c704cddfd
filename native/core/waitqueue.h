/* waitqueue: an intrusive first-in first-out queue whose members know their place in it.
 *
 * Each member gets a ticket when it joins; who returns to the front gets the one before the
 * first's. A member's place is its ticket less the first member's: exact while members leave
 * from the front, and too high by the number that left from the middle otherwise, which is
 * what a back-up timer may be (late, never early). Finding a place by walking the queue would
 * cost O(n) per waiting thread.
 *
 * Locking: every function needs the lock that protects the queue. None blocks or allocates.
 */
#ifndef FL_WAITQUEUE_H
#define FL_WAITQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_waitlink {
    struct fl_waitlink *prev, *next;
    uint32_t ticket; /* wraps round: only differences mean anything */
} fl_waitlink;

typedef struct fl_waitqueue {
    fl_waitlink ends; /* ends.next is the first member, ends.prev the last */
    uint32_t count;
    uint32_t tickets; /* the next ticket to hand out */
} fl_waitqueue;

static inline void fl_waitqueue_init(fl_waitqueue *queue)
{
    queue->ends.prev = queue->ends.next = &queue->ends;
    queue->count = 0;
    queue->tickets = 0;
}

static inline fl_waitlink *fl_waitqueue_first(const fl_waitqueue *queue)
{
    return queue->count ? queue->ends.next : NULL;
}

static inline void fl_waitqueue_push(fl_waitqueue *queue, fl_waitlink *link)
{
    link->ticket = queue->tickets++;
    link->prev = queue->ends.prev;
    link->next = &queue->ends;
    queue->ends.prev->next = link;
    queue->ends.prev = link;
    queue->count++;
}

/* Ahead of the first. */
static inline void fl_waitqueue_return(fl_waitqueue *queue, fl_waitlink *link)
{
    link->ticket = queue->count ? queue->ends.next->ticket - 1 : queue->tickets++;
    link->prev = &queue->ends;
    link->next = queue->ends.next;
    link->prev->next = link->next->prev = link;
    queue->count++;
}

static inline void fl_waitqueue_remove(fl_waitqueue *queue, fl_waitlink *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
    queue->count--;
}

/* How many members are ahead of this one, at most (exactly 0 for the first). */
static inline uint32_t fl_waitqueue_place(const fl_waitqueue *queue, const fl_waitlink *link)
{
    return link->ticket - queue->ends.next->ticket;
}

#endif
