/* collections: how often the garbage collector ran, for how long, in which thread, and begun where.
 *
 * The collector says when it begins and ends (gc.callbacks), in the thread that has the GIL. A thread that
 * asks for the GIL meanwhile waits until it ends.
 *
 * Not for several threads at once: the lock that is watched guards it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FL_COLLECTIONS 128 /* threads, generations and places that are kept apart */

typedef struct {
    uint32_t thread, generation, stack; /* serial 0: others that found no place; stack 0: not looked at */
    uint64_t runs, ticks, longest;
} fl_collection;

typedef struct {
    fl_collection of[FL_COLLECTIONS];
    size_t count;
} fl_collections;

void fl_collections_add(fl_collections *collections, const fl_collection *one);
