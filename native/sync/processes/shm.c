/* See shm.h. */
#include "sync/processes/shm.h"

#include "machine/clock.h"

bool fl_shm_prepare(fl_shm_wait *wait, fl_shm_eventcount *eventcount)
{
    if (wait->asked && wait->eventcount == eventcount) {
        return false;
    }
    wait->eventcount = eventcount;
    wait->asked = true;
    /* In this order. A process that notifies after that changes the word, and this one does not sleep; or it
       has taken note of an older `asked`, and cannot clear it. */
    wait->seen = fl_load(&eventcount->word, seq_cst);
    uint32_t asked = fl_load(&eventcount->asked, relaxed);
    while (!fl_cas(&eventcount->asked, &asked, (asked + 2) | 1, seq_cst, relaxed)) {
    }
    return true;
}

fl_park_result fl_shm_sleep(fl_shm_wait *wait, int64_t deadline)
{
    int64_t look = fl_clock_now() + ((int64_t)FL_SHM_FIRST_LOOK_NS << wait->looks);
    bool last = deadline <= look;
    fl_park_result result = fl_park_shared(&wait->eventcount->word, wait->seen, last ? deadline : look);
    wait->asked = false;
    wait->look = result == FL_PARK_TIMED_OUT;
    wait->late = wait->look && last;
    wait->looks += wait->look && wait->looks < FL_SHM_LAST_LOOK;
    return result;
}

void fl_shm_notify(fl_shm_eventcount *eventcount, uint32_t count)
{
    uint32_t asked = fl_load(&eventcount->asked, seq_cst); /* after what was changed; see fl_shm_prepare */
    if (!(asked & 1)) {
        return;
    }
    fl_fetch_add(&eventcount->word, 1, seq_cst);
    if (fl_unpark_shared(&eventcount->word, count) == 0) {
        /* No process sleeps that asked before `asked` was read: a dead one is forgotten, too. */
        fl_cas(&eventcount->asked, &asked, asked & ~1u, seq_cst, relaxed);
    }
}

fl_shm_result fl_shm_lock_try(fl_shm_lock *lock, uint64_t me, bool look, bool inherit, uint64_t *dead)
{
    uint64_t owner = 0;
    if (fl_cas(&lock->owner, &owner, me, seq_cst, seq_cst)) {
        return FL_SHM_DONE;
    }
    if (!look || owner == me || fl_process_alive(owner)) {
        return FL_SHM_NOT;
    }
    *dead = owner;
    if (!inherit) {
        return FL_SHM_DIED;
    }
    if (!fl_cas(&lock->owner, &owner, me, seq_cst, relaxed)) {
        return FL_SHM_NOT; /* another was quicker */
    }
    fl_fetch_add(&lock->deaths, 1, relaxed); /* a figure to show */
    return FL_SHM_INHERITED;
}

bool fl_shm_lock_ready(const fl_shm_lock *lock)
{
    uint64_t owner = fl_load(&lock->owner, seq_cst);
    return owner == 0 || !fl_process_alive(owner);
}

bool fl_shm_lock_release(fl_shm_lock *lock, uint64_t me)
{
    if (!fl_cas(&lock->owner, &me, 0, seq_cst, relaxed)) {
        return false;
    }
    fl_shm_notify(&lock->eventcount, 1);
    return true;
}
