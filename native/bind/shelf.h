/* shelf: where a queue keeps its objects: a ring, or the array of a heap.
 *
 * Every function is called attached, and where there is no GIL within the critical section of the object
 * that has the shelf. None runs Python but the two that look for a place in a heap; these compare first and
 * move nothing, so that no lock is held over Python, an error leaves the heap as it was, and a comparison may
 * use the queue itself. Whether what they found is still so, `changes` tells.
 */
#ifndef FL_BIND_SHELF_H
#define FL_BIND_SHELF_H

#include <Python.h>

#include <stdbool.h>

typedef struct {
    PyObject **at;
    uint32_t room; /* a power of two, or none yet */
    uint32_t first, count;
    uint64_t changes; /* how often something was put or taken */
} fl_shelf;

/* Makes room for one more; -1: no memory, with the exception set. */
int fl_shelf_grow(fl_shelf *shelf);

static inline int fl_shelf_reserve(fl_shelf *shelf)
{
    return shelf->count < shelf->room ? 0 : fl_shelf_grow(shelf);
}

static inline PyObject **fl_shelf_place(const fl_shelf *shelf, uint32_t index)
{
    return &shelf->at[(shelf->first + index) & (shelf->room - 1)];
}

/* Behind all others, in room that was reserved. */
static inline void fl_shelf_push(fl_shelf *shelf, PyObject *item)
{
    *fl_shelf_place(shelf, shelf->count++) = Py_NewRef(item);
    shelf->changes++;
}

/* There is one. The reference goes to the caller. */
static inline PyObject *fl_shelf_first(fl_shelf *shelf)
{
    PyObject *item = *fl_shelf_place(shelf, 0);
    shelf->first = (shelf->first + 1) & (shelf->room - 1);
    shelf->count--;
    shelf->changes++;
    return item;
}

static inline PyObject *fl_shelf_last(fl_shelf *shelf)
{
    shelf->changes++;
    return *fl_shelf_place(shelf, --shelf->count);
}

int fl_shelf_traverse(const fl_shelf *shelf, visitproc visit, void *arg);
/* Takes out everything there is; fl_shelf_drop lets it go, outside of any critical section. */
fl_shelf fl_shelf_empty(fl_shelf *shelf);
void fl_shelf_drop(fl_shelf *all);

#define FL_HEAP_DEPTH 32

/* Where a push or a pop of a heap leads, and the state of the shelf that this is true of. */
typedef struct {
    uint64_t changes;
    int depth, rise;
    uint32_t path[FL_HEAP_DEPTH + 1];
} fl_heap_way;

/* 0: found; -1: a comparison raised. After it the shelf may have changed: then fl_heap_push and fl_heap_pop
   do nothing, and the way is to be found anew. */
int fl_heap_find_push(const fl_shelf *shelf, PyObject *item, fl_heap_way *way);
int fl_heap_find_pop(const fl_shelf *shelf, fl_heap_way *way);
/* In room that was reserved. */
bool fl_heap_push(fl_shelf *shelf, PyObject *item, const fl_heap_way *way);
/* The smallest; NULL: the shelf has changed. */
PyObject *fl_heap_pop(fl_shelf *shelf, const fl_heap_way *way);

#endif
