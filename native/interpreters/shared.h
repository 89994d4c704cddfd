/* shared: what a primitive is in more than one interpreter, found by a number.
 *
 * A Python object belongs to one interpreter; a wait queue to none. To hand a primitive to another
 * interpreter, a thread makes a handle of it: 32 bits of slot and 32 of generation. Over there the handle
 * becomes another object over the same wait queue. The handle holds no reference: it is valid as long as an
 * object that is shared in this way exists, and never refers to a later one.
 *
 * What is more than a wait queue, as a queue with objects in it, has a body, which is used under the lock.
 * Instead of objects it has items, which know no Python.
 *
 * A forking thread takes every lock of this file first, so that the child finds the table whole and
 * unlocked.
 */
#pragma once

#include "sync/wait/waitq.h"

typedef struct fl_item {
    fl_atomic(uint32_t) refs;
    struct fl_pin **pins; /* what it refers to, in an array of its own; NULL: nothing */
    size_t pinned;
    size_t size;
    char bytes[];
} fl_item;

typedef struct fl_shared {
    fl_waitq *waitq;
    uint32_t refs, slot, generation; /* the registry's lock */
    uint32_t type;                   /* the binding's word for the type of its objects */
    fl_mutex lock;                   /* of the body */
    void *body;                      /* goes by `drop` with the last reference; NULL: there is none */
    void (*drop)(void *body);
} fl_shared;

/* With one reference, and one of its own to the wait queue. NULL: no memory, and the body is the caller's
 * still. */
fl_shared *fl_shared_new(fl_waitq *waitq, uint32_t type, void *body, void (*drop)(void *body));
/* With another reference. NULL: it is gone, or never was. */
fl_shared *fl_shared_find(uint64_t handle);
void fl_shared_unref(fl_shared *shared);

static inline uint64_t fl_shared_handle(const fl_shared *shared)
{
    return (uint64_t)shared->generation << 32 | shared->slot;
}

/* Of an item that was allocated by malloc, with one reference. */
void fl_item_ref(fl_item *item);
/* From any thread, of any interpreter. NULL is none. */
void fl_item_unref(fl_item *item);
/* With what it refers to. */
size_t fl_item_size(const fl_item *item);
