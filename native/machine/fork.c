#include "machine/fork.h"

uint32_t fl_fork_generation = 1;
fl_mutex fl_fork_repairs;

void fl_fork_happened(void)
{
    fl_fork_generation++;
    fl_store(&fl_fork_repairs, 0, relaxed); /* the only thread */
}

void fl_fork_unlock(fl_atomic(uint32_t) *generation, fl_mutex *mutex)
{
    /* pairs with the release below */
    if (__builtin_expect(FL_LOAD_GENERATION(generation) != fl_fork_generation, false)) {
        fl_mutex_lock(&fl_fork_repairs);
        if (fl_load(generation, relaxed) != fl_fork_generation) { /* written under `fl_fork_repairs` */
            fl_store(mutex, 0, relaxed);                          /* published with the generation */
            fl_store(generation, fl_fork_generation, release);    /* pairs with the acquire above */
        }
        fl_mutex_unlock(&fl_fork_repairs);
    }
}
