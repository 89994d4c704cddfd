/* See stamped.h. Only what a writer does is here. */
#include "sync/locks/stamped.h"

uint64_t fl_stamped_begin(fl_waitq *waitq)
{
    uint64_t version = fl_load(fl_stamped_version(waitq), relaxed) | 1; /* written by the writer */
    fl_store(fl_stamped_version(waitq), version, relaxed); /* before the fence */
    fl_fence(release); /* pairs with fl_stamped_same */
    return version;
}

uint64_t fl_stamped_end(fl_waitq *waitq)
{
    uint64_t version = (fl_load(fl_stamped_version(waitq), relaxed) | 1) + 1; /* as above */
    fl_store(fl_stamped_version(waitq), version, release); /* pairs with fl_stamped_look */
    return version;
}
