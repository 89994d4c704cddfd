/* shared: what a primitive is in more than one interpreter, found by a number.
 *
 * An object of Python belongs to one interpreter; a cell to none. Who hands a primitive to another
 * interpreter gets a handle, 32 bits of slot and 32 of generation, and there it becomes another object over
 * the same cell. The handle holds nothing: it is good as long as some object that was handed over exists, and
 * never means a later one.
 *
 * A queue that is handed over has a line here, of items that know no Python, instead of a ring of objects.
 */
#ifndef FL_CORE_SHARED_H
#define FL_CORE_SHARED_H

#include "core/cell.h"

typedef struct fl_item {
    struct fl_item *next;
    size_t size;
    char bytes[];
} fl_item;

typedef struct fl_shared {
    fl_cell *cell;
    uint32_t refs, slot, generation; /* the registry's lock */
    uint32_t type;                   /* the binding's word for the type of its objects */
    fl_mutex lock;                   /* of the line */
    fl_atomic(uint32_t) forks;
    fl_item *first, *last;
} fl_shared;

/* With one reference, and one of its own to the cell. NULL: no memory. */
fl_shared *fl_shared_new(fl_cell *cell, uint32_t type);
/* With another reference. NULL: nobody has it any more, or nobody ever had. */
fl_shared *fl_shared_find(uint64_t handle);
void fl_shared_unref(fl_shared *shared);

static inline uint64_t fl_shared_handle(const fl_shared *shared)
{
    return (uint64_t)shared->generation << 32 | shared->slot;
}

/* Takes over the item, which was allocated by malloc. Does not block. */
void fl_line_put(fl_shared *shared, fl_item *item);
/* The first item, for the caller to free; NULL: there is none. */
fl_item *fl_line_get(fl_shared *shared);

#endif
