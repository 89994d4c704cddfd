/* The ring and the heap of a queue. The heap makes the comparisons of heapq in heapq's order, so that equal
 * objects come out of it in the same order as out of queue.PriorityQueue.
 */
#include "bind/shelf.h"

#include "bind/codec.h"

/* Memory that any interpreter may free. */
bool fl_shelf_grow(fl_shelf *shelf)
{
    uint32_t room = shelf->room ? 2 * shelf->room : 8;
    void **at = PyMem_RawMalloc(room * sizeof *at);
    if (at == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < shelf->count; i++) {
        at[i] = *fl_shelf_place(shelf, i);
    }
    PyMem_RawFree(shelf->at);
    shelf->at = at;
    shelf->room = room;
    shelf->first = 0;
    return true;
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
    *shelf = (fl_shelf){.changes = all.changes + 1, .lock = all.lock};
    return all;
}

void fl_shelf_drop(fl_shelf *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        void *element = *fl_shelf_place(all, i);
        if (all->lock != NULL) {
            fl_item_unref(element);
        } else {
            Py_DECREF((PyObject *)element);
        }
    }
    PyMem_RawFree(all->at);
}

/* A way that has nowhere led yet; how many there are. */
static uint32_t begin(const fl_shelf *shelf, fl_heap_way *way)
{
    fl_mutex_lock_if(shelf->lock);
    uint32_t count = shelf->count;
    way->changes = shelf->changes;
    fl_mutex_unlock_if(shelf->lock);
    way->depth = way->rise = 0;
    return count;
}

/* As an object of this interpreter, a new reference: another thread may take it meanwhile. NULL without an
   exception: the shelf has changed. */
static PyObject *object_at(const fl_shelf *shelf, const fl_heap_way *way, uint32_t index)
{
    if (shelf->lock == NULL) {
        return shelf->changes == way->changes ? Py_NewRef((PyObject *)shelf->at[index]) : NULL;
    }
    fl_item *item = NULL;
    fl_mutex_lock_if(shelf->lock);
    if (shelf->changes == way->changes) {
        item = shelf->at[index];
        fl_item_ref(item);
    }
    fl_mutex_unlock_if(shelf->lock);
    if (item == NULL) {
        return NULL;
    }
    PyObject *object = fl_decode(item);
    fl_item_unref(item);
    return object;
}

#define CHANGED 2

/* Whether one is less than the other, which both are stolen; -1: an exception; CHANGED: one is not there. */
static int less(PyObject *one, PyObject *other)
{
    int result = CHANGED;
    if (one != NULL && other != NULL) {
        result = PyObject_RichCompareBool(one, other, Py_LT);
    } else if (PyErr_Occurred()) {
        result = -1;
    }
    Py_XDECREF(one);
    Py_XDECREF(other);
    return result;
}

static int less_at(const fl_shelf *shelf, const fl_heap_way *way, uint32_t one, uint32_t other)
{
    PyObject *first = object_at(shelf, way, one);
    return less(first, first == NULL ? NULL : object_at(shelf, way, other));
}

int fl_heap_find_push(const fl_shelf *shelf, PyObject *object, fl_heap_way *way)
{
    uint32_t at = begin(shelf, way);
    way->path[0] = at;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        int up = less(Py_NewRef(object), object_at(shelf, way, parent));
        if (up < 0) {
            return -1;
        }
        if (up != 1) {
            break;
        }
        way->path[++way->depth] = at = parent;
    }
    return 0;
}

bool fl_heap_push(fl_shelf *shelf, void *element, const fl_heap_way *way)
{
    if (shelf->changes != way->changes) {
        return false;
    }
    fl_shelf_push(shelf, element);
    for (int i = 0; i < way->depth; i++) {
        shelf->at[way->path[i]] = shelf->at[way->path[i + 1]];
    }
    shelf->at[way->path[way->depth]] = element;
    return true;
}

/* The last object goes to the top, sinks to the bottom on the side of the smaller ones, and rises again. */
int fl_heap_find_pop(const fl_shelf *shelf, fl_heap_way *way)
{
    uint32_t count = begin(shelf, way), left = count - 1, child;
    way->path[0] = 0;
    while (count > 0 && (child = 2 * way->path[way->depth] + 1) < left) {
        if (child + 1 < left) {
            int first = less_at(shelf, way, child, child + 1);
            if (first < 0 || first == CHANGED) {
                return first < 0 ? -1 : 0;
            }
            child += !first;
        }
        way->path[++way->depth] = child;
    }
    for (way->rise = way->depth; way->rise > 0; way->rise--) {
        int up = less_at(shelf, way, left, way->path[way->rise]);
        if (up < 0) {
            return -1;
        }
        if (up != 1) {
            break;
        }
    }
    return 0;
}

void *fl_heap_pop(fl_shelf *shelf, const fl_heap_way *way)
{
    if (shelf->changes != way->changes) {
        return NULL;
    }
    void *smallest = shelf->at[0], *last = fl_shelf_last(shelf);
    for (int i = 0; i < way->rise; i++) {
        shelf->at[way->path[i]] = shelf->at[way->path[i + 1]];
    }
    if (shelf->count > 0) {
        shelf->at[way->path[way->rise]] = last;
    }
    return smallest;
}
