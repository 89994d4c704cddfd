/* See stamped.h. Only who has the lock to write is here. */
#include "core/stamped.h"

uint64_t fl_stamped_begin(fl_cell *cell)
{
#if FL_MODEL_BREAK == 40
    return fl_load(fl_stamped_version(cell), relaxed);
#else
    uint64_t version = fl_load(fl_stamped_version(cell), relaxed) | 1; /* written by who has the lock */
    fl_store(fl_stamped_version(cell), version, relaxed); /* before the fence */
    fl_fence(release); /* pairs with fl_stamped_same */
    return version;
#endif
}

uint64_t fl_stamped_end(fl_cell *cell)
{
    uint64_t version = (fl_load(fl_stamped_version(cell), relaxed) | 1) + 1; /* as above */
    fl_store(fl_stamped_version(cell), version, release); /* pairs with fl_stamped_look */
    return version;
}
