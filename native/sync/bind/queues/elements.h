/* elements: where a queue keeps its objects: a ring, or the array of a heap.
 *
 * The elements are objects of one interpreter, or where `lock` is set copies of objects
 * (interpreters/shared.h), which several interpreters have. Every function is called attached, and within
 * the critical section of the object that has the elements; those that touch it, besides, with the lock. None
 * runs Python but the two that look for a place in a heap, which are called without the lock; these compare
 * first and move nothing, so that no lock is held over Python, an error leaves the heap as it was, and a
 * comparison may use the queue itself. `changes` says whether what they found is still so.
 */
#pragma once

#include "sync/bind/base/state.h"

#include <stdbool.h>

#include "machine/atomic.h"

typedef struct {
    void **at;
    uint32_t room; /* a power of two, or none yet */
    uint32_t first, count;
    uint64_t changes; /* how often something was put or taken */
    fl_mutex *lock;   /* NULL: the elements are objects of this interpreter */
} fl_elements;

/* Makes room for one more; false: no memory. */
bool fl_elements_grow(fl_elements *elements);

static inline bool fl_elements_reserve(fl_elements *elements)
{
    return elements->count < elements->room || fl_elements_grow(elements);
}

static inline void **fl_elements_place(const fl_elements *elements, uint32_t index)
{
    return &elements->at[(elements->first + index) & (elements->room - 1)];
}

/* Behind all others, in room that was reserved; the reference is the elements's. */
static inline void fl_elements_push(fl_elements *elements, void *element)
{
    *fl_elements_place(elements, elements->count++) = element;
    elements->changes++;
}

/* There is one. The reference goes to the caller. */
static inline void *fl_elements_first(fl_elements *elements)
{
    void *element = *fl_elements_place(elements, 0);
    elements->first = (elements->first + 1) & (elements->room - 1);
    elements->count--;
    elements->changes++;
    return element;
}

static inline void *fl_elements_last(fl_elements *elements)
{
    elements->changes++;
    return *fl_elements_place(elements, --elements->count);
}

/* Of objects only. */
int fl_elements_traverse(const fl_elements *elements, visitproc visit, void *arg);
/* Takes out everything there is; fl_elements_drop lets it go, outside of any lock and critical section. */
fl_elements fl_elements_empty(fl_elements *elements);
void fl_elements_drop(fl_elements *all);

#define FL_HEAP_DEPTH 32

/* Where a push or a pop of a heap leads, and the state of the elements that this is true of. */
typedef struct {
    fl_state *state;
    uint64_t changes;
    int depth, rise;
    uint32_t steps[FL_HEAP_DEPTH + 1];
} fl_heap_path;

/* 0: found; -1: a comparison, or making an object of a copy, raised. After it the elements may have changed:
   then fl_heap_push and fl_heap_pop do nothing, and the way is to be found anew. */
int fl_heap_find_push(fl_state *state, const fl_elements *elements, PyObject *object, fl_heap_path *path);
int fl_heap_find_pop(fl_state *state, const fl_elements *elements, fl_heap_path *path);
/* In room that was reserved; if it is true the reference is the elements's. */
bool fl_heap_push(fl_elements *elements, void *element, const fl_heap_path *path);
/* The smallest; NULL: the elements has changed. */
void *fl_heap_pop(fl_elements *elements, const fl_heap_path *path);
