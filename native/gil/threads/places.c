#include "gil/threads/places.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef FL_PROBE_REFUSAL

/* A place is found within REACH of its hash. GONE keeps the row behind it reachable. */
#define PLACES 4096
#define REACH 32
#define GONE ((fl_gil *)1)
static struct {
    const fl_py_gil *_Atomic py;
    fl_gil *_Atomic gil;
} places[PLACES];

static size_t place_of(const fl_py_gil *py)
{
    uintptr_t value = (uintptr_t)py >> 4;
    return (size_t)((value * 0x9E3779B97F4A7C15u) >> 40);
}

fl_gil *fl_places_find(const fl_py_gil *py)
{
    size_t at = place_of(py);
    for (size_t i = 0; i < REACH; i++) {
        const fl_py_gil *there = atomic_load_explicit(&places[(at + i) % PLACES].py, memory_order_acquire);
        if (there == py) {
            fl_gil *gil = atomic_load_explicit(&places[(at + i) % PLACES].gil, memory_order_acquire);
            return gil != GONE && gil->py == py ? gil
                                                : NULL; /* another's, when the place is being used again */
        }
        if (there == NULL) {
            return NULL;
        }
    }
    return NULL;
}

bool fl_places_put(const fl_py_gil *py, fl_gil *gil)
{
    size_t at = place_of(py), free_place = PLACES;
    for (size_t i = 0; i < REACH; i++) {
        size_t here = (at + i) % PLACES;
        const fl_py_gil *there = atomic_load_explicit(&places[here].py, memory_order_relaxed);
        if (there == py || there == NULL) {
            free_place = there == py || free_place == PLACES ? here : free_place;
            break;
        }
        if (free_place == PLACES && atomic_load_explicit(&places[here].gil, memory_order_relaxed) == GONE) {
            free_place = here;
        }
    }
    if (free_place == PLACES) {
        return false;
    }
    /* The GIL first: a thread that finds the address finds the GIL, too (acquire in fl_places_find). */
    atomic_store_explicit(&places[free_place].gil, gil, memory_order_release);
    atomic_store_explicit(&places[free_place].py, py, memory_order_release);
    return true;
}

void fl_places_remove(const fl_py_gil *py)
{
    size_t at = place_of(py);
    for (size_t i = 0; i < REACH; i++) {
        if (atomic_load_explicit(&places[(at + i) % PLACES].py, memory_order_relaxed) == py) {
            atomic_store_explicit(&places[(at + i) % PLACES].gil, GONE, memory_order_release);
            return;
        }
    }
}

#endif
