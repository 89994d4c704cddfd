/* shelf: where a queue keeps its objects: a ring, or the array of a heap.
 *
 * The elements are objects of one interpreter, or where `lock` is set copies of objects (core/shared.h),
 * which several interpreters have. Every function is called attached, and within the critical section of the
 * object that has the shelf; those that touch it, besides, with the lock. None runs Python but the two that
 * look for a place in a heap, which are called without the lock; these compare first and move nothing, so
 * that no lock is held over Python, an error leaves the heap as it was, and a comparison may use the queue
 * itself. Whether what they found is still so, `changes` tells.
 */
#ifndef FL_BIND_SHELF_H
#define FL_BIND_SHELF_H

#include <Python.h>

#include <stdbool.h>

#include "core/fl_atomic.h"

typedef struct {
    void **at;
    uint32_t room; /* a power of two, or none yet */
    uint32_t first, count;
    uint64_t changes; /* how often something was put or taken */
    fl_mutex *lock;   /* NULL: the elements are objects of this interpreter */
} fl_shelf;

/* Makes room for one more; false: no memory. */
bool fl_shelf_grow(fl_shelf *shelf);

static inline bool fl_shelf_reserve(fl_shelf *shelf)
{
    return shelf->count < shelf->room || fl_shelf_grow(shelf);
}

static inline void **fl_shelf_place(const fl_shelf *shelf, uint32_t index)
{
    return &shelf->at[(shelf->first + index) & (shelf->room - 1)];
}

/* Behind all others, in room that was reserved; the reference is the shelf's. */
static inline void fl_shelf_push(fl_shelf *shelf, void *element)
{
    *fl_shelf_place(shelf, shelf->count++) = element;
    shelf->changes++;
}

/* There is one. The reference goes to the caller. */
static inline void *fl_shelf_first(fl_shelf *shelf)
{
    void *element = *fl_shelf_place(shelf, 0);
    shelf->first = (shelf->first + 1) & (shelf->room - 1);
    shelf->count--;
    shelf->changes++;
    return element;
}

static inline void *fl_shelf_last(fl_shelf *shelf)
{
    shelf->changes++;
    return *fl_shelf_place(shelf, --shelf->count);
}

/* Of objects only. */
int fl_shelf_traverse(const fl_shelf *shelf, visitproc visit, void *arg);
/* Takes out everything there is; fl_shelf_drop lets it go, outside of any lock and critical section. */
fl_shelf fl_shelf_empty(fl_shelf *shelf);
void fl_shelf_drop(fl_shelf *all);

#define FL_HEAP_DEPTH 32

/* Where a push or a pop of a heap leads, and the state of the shelf that this is true of. */
typedef struct {
    uint64_t changes;
    int depth, rise;
    uint32_t path[FL_HEAP_DEPTH + 1];
} fl_heap_way;

/* 0: found; -1: a comparison, or making an object of a copy, raised. After it the shelf may have changed:
   then fl_heap_push and fl_heap_pop do nothing, and the way is to be found anew. */
int fl_heap_find_push(const fl_shelf *shelf, PyObject *object, fl_heap_way *way);
int fl_heap_find_pop(const fl_shelf *shelf, fl_heap_way *way);
/* In room that was reserved; if it is true the reference is the shelf's. */
bool fl_heap_push(fl_shelf *shelf, void *element, const fl_heap_way *way);
/* The smallest; NULL: the shelf has changed. */
void *fl_heap_pop(fl_shelf *shelf, const fl_heap_way *way);

#endif
