/* The ring and the heap of a queue. The heap makes the comparisons of heapq in heapq's order, so that equal
 * objects come out of it in the same order as out of queue.PriorityQueue.
 */
#include "sync/bind/queues/elements.h"

#include "interpreters/bind/codec.h"

/* Memory that any interpreter may free. */
bool fl_elements_grow(fl_elements *elements)
{
    uint32_t room = elements->room ? 2 * elements->room : 8;
    void **at = PyMem_RawMalloc(room * sizeof *at);
    if (at == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < elements->count; i++) {
        at[i] = *fl_elements_place(elements, i);
    }
    PyMem_RawFree(elements->at);
    elements->at = at;
    elements->room = room;
    elements->first = 0;
    return true;
}

int fl_elements_traverse(const fl_elements *elements, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < elements->count; i++) {
        Py_VISIT(*fl_elements_place(elements, i));
    }
    return 0;
}

fl_elements fl_elements_empty(fl_elements *elements)
{
    fl_elements all = *elements;
    *elements = (fl_elements){.changes = all.changes + 1, .lock = all.lock};
    return all;
}

void fl_elements_drop(fl_elements *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        void *element = *fl_elements_place(all, i);
        if (all->lock != NULL) {
            fl_item_unref(element);
        } else {
            Py_DECREF((PyObject *)element);
        }
    }
    PyMem_RawFree(all->at);
}

/* A way that has nowhere led yet; how many there are. */
static uint32_t begin(fl_state *state, const fl_elements *elements, fl_heap_path *path)
{
    path->state = state;
    fl_mutex_lock_if(elements->lock);
    uint32_t count = elements->count;
    path->changes = elements->changes;
    fl_mutex_unlock_if(elements->lock);
    path->depth = path->rise = 0;
    return count;
}

/* As an object of this interpreter, a new reference: another thread may take it meanwhile. NULL without an
   exception: the elements has changed. */
static PyObject *object_at(const fl_elements *elements, const fl_heap_path *path, uint32_t index)
{
    if (elements->lock == NULL) {
        return elements->changes == path->changes ? Py_NewRef((PyObject *)elements->at[index]) : NULL;
    }
    fl_item *item = NULL;
    fl_mutex_lock_if(elements->lock);
    if (elements->changes == path->changes) {
        item = elements->at[index];
        fl_item_ref(item);
    }
    fl_mutex_unlock_if(elements->lock);
    if (item == NULL) {
        return NULL;
    }
    PyObject *object = fl_unpack(path->state, item);
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

static int less_at(const fl_elements *elements, const fl_heap_path *path, uint32_t one, uint32_t other)
{
    PyObject *first = object_at(elements, path, one);
    return less(first, first == NULL ? NULL : object_at(elements, path, other));
}

int fl_heap_find_push(fl_state *state, const fl_elements *elements, PyObject *object, fl_heap_path *path)
{
    uint32_t at = begin(state, elements, path);
    path->steps[0] = at;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        int up = less(Py_NewRef(object), object_at(elements, path, parent));
        if (up < 0) {
            return -1;
        }
        if (up != 1) {
            break;
        }
        path->steps[++path->depth] = at = parent;
    }
    return 0;
}

bool fl_heap_push(fl_elements *elements, void *element, const fl_heap_path *path)
{
    if (elements->changes != path->changes) {
        return false;
    }
    fl_elements_push(elements, element);
    for (int i = 0; i < path->depth; i++) {
        elements->at[path->steps[i]] = elements->at[path->steps[i + 1]];
    }
    elements->at[path->steps[path->depth]] = element;
    return true;
}

/* The last object goes to the top, sinks to the bottom on the side of the smaller ones, and rises again. */
int fl_heap_find_pop(fl_state *state, const fl_elements *elements, fl_heap_path *path)
{
    uint32_t count = begin(state, elements, path), left = count - 1, child;
    path->steps[0] = 0;
    while (count > 0 && (child = 2 * path->steps[path->depth] + 1) < left) {
        if (child + 1 < left) {
            int first = less_at(elements, path, child, child + 1);
            if (first < 0 || first == CHANGED) {
                return first < 0 ? -1 : 0;
            }
            child += !first;
        }
        path->steps[++path->depth] = child;
    }
    for (path->rise = path->depth; path->rise > 0; path->rise--) {
        int up = less_at(elements, path, left, path->steps[path->rise]);
        if (up < 0) {
            return -1;
        }
        if (up != 1) {
            break;
        }
    }
    return 0;
}

void *fl_heap_pop(fl_elements *elements, const fl_heap_path *path)
{
    if (elements->changes != path->changes) {
        return NULL;
    }
    void *smallest = elements->at[0], *last = fl_elements_last(elements);
    for (int i = 0; i < path->rise; i++) {
        elements->at[path->steps[i]] = elements->at[path->steps[i + 1]];
    }
    if (elements->count > 0) {
        elements->at[path->steps[path->rise]] = last;
    }
    return smallest;
}
