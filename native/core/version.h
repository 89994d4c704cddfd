/* version: a number that only grows, and those who wait for the next one. Broadcasts and watched values are
 * kept beside it; whoever waits says which number it has seen.
 *
 * The word is the number, with CLOSED above it; it changes under the queue lock only. Nothing is taken, so
 * nothing is given back. Who has seen all there is, when it is closed, is refused.
 */
#ifndef FL_CORE_VERSION_H
#define FL_CORE_VERSION_H

#include "core/cell.h"

#define FL_VERSION_CLOSED (UINT64_C(1) << 63)

extern const fl_kind fl_version_kind;

static inline fl_cell *fl_version_new(void)
{
    return fl_cell_new(&fl_version_kind, 0, 0, 0);
}

/* With FL_VERSION_CLOSED. */
static inline uint64_t fl_version_word(fl_cell *cell)
{
    fl_cell_refresh(cell);
    return fl_load(&cell->word, acquire); /* pairs with fl_version_advance */
}

/* What a waiter wants that has seen this number. Of one that is behind by just 2**32 it says nothing new: it
   looks itself before it waits. */
static inline uint32_t fl_version_seen(uint64_t number)
{
    return (uint32_t)number;
}

/* Wakes all that wait. False: it is closed, and nothing has changed. Neither blocks; as fl_sem_give, both may
   be called from anywhere. */
bool fl_version_advance(fl_cell *cell);
void fl_version_close(fl_cell *cell);

#endif
