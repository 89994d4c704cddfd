/* The ring and the heap of a queue. The heap makes the comparisons of heapq in heapq's order, so that equal
 * objects come out of it in the same order as out of queue.PriorityQueue.
 */
#include "bind/shelf.h"

int fl_shelf_grow(fl_shelf *shelf)
{
    uint32_t room = shelf->room ? 2 * shelf->room : 8;
    PyObject **at = PyMem_New(PyObject *, room);
    if (at == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < shelf->count; i++) {
        at[i] = *fl_shelf_place(shelf, i);
    }
    PyMem_Free(shelf->at);
    shelf->at = at;
    shelf->room = room;
    shelf->first = 0;
    return 0;
}

int fl_shelf_traverse(const fl_shelf *shelf, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < shelf->count; i++) {
        Py_VISIT(*fl_shelf_place(shelf, i));
    }
    return 0;
}

fl_shelf fl_shelf_empty(fl_shelf *shelf)
{
    fl_shelf all = *shelf;
    *shelf = (fl_shelf){.changes = all.changes + 1};
    return all;
}

void fl_shelf_drop(fl_shelf *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        Py_DECREF(*fl_shelf_place(all, i));
    }
    PyMem_Free(all->at);
}

/* Whether one is less than the other; -1: the comparison raised. Another thread may take either meanwhile. */
static int less(PyObject *one, PyObject *other)
{
    Py_INCREF(one);
    Py_INCREF(other);
    int result = PyObject_RichCompareBool(one, other, Py_LT);
    Py_DECREF(one);
    Py_DECREF(other);
    return result;
}

int fl_heap_find_push(const fl_shelf *shelf, PyObject *item, fl_heap_way *way)
{
    uint32_t at = shelf->count;
    way->changes = shelf->changes;
    way->depth = 0;
    way->path[0] = at;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        int up = less(item, shelf->at[parent]);
        if (up < 0) {
            return -1;
        }
        if (!up || shelf->changes != way->changes) {
            break;
        }
        way->path[++way->depth] = at = parent;
    }
    return 0;
}

bool fl_heap_push(fl_shelf *shelf, PyObject *item, const fl_heap_way *way)
{
    if (shelf->changes != way->changes) {
        return false;
    }
    fl_shelf_push(shelf, item);
    for (int i = 0; i < way->depth; i++) {
        shelf->at[way->path[i]] = shelf->at[way->path[i + 1]];
    }
    shelf->at[way->path[way->depth]] = item;
    return true;
}

/* The last object goes to the top, sinks to the bottom on the side of the smaller ones, and rises again. */
int fl_heap_find_pop(const fl_shelf *shelf, fl_heap_way *way)
{
    uint32_t left = shelf->count - 1, child;
    way->changes = shelf->changes;
    way->depth = 0;
    way->path[0] = 0;
    while ((child = 2 * way->path[way->depth] + 1) < left) {
        if (child + 1 < left) {
            int first = less(shelf->at[child], shelf->at[child + 1]);
            if (first < 0) {
                return -1;
            }
            if (shelf->changes != way->changes) {
                return 0;
            }
            child += !first;
        }
        way->path[++way->depth] = child;
    }
    for (way->rise = way->depth; way->rise > 0; way->rise--) {
        int up = less(shelf->at[left], shelf->at[way->path[way->rise]]);
        if (up < 0) {
            return -1;
        }
        if (!up || shelf->changes != way->changes) {
            break;
        }
    }
    return 0;
}

PyObject *fl_heap_pop(fl_shelf *shelf, const fl_heap_way *way)
{
    if (shelf->changes != way->changes) {
        return NULL;
    }
    PyObject *smallest = shelf->at[0], *last = fl_shelf_last(shelf);
    for (int i = 0; i < way->rise; i++) {
        shelf->at[way->path[i]] = shelf->at[way->path[i + 1]];
    }
    if (shelf->count > 0) {
        shelf->at[way->path[way->rise]] = last;
    }
    return smallest;
}
