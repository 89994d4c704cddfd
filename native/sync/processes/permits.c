/* See permits.h. */
#include "sync/processes/permits.h"

fl_shm_result fl_shm_count_try(fl_shm_permits *permits)
{
    uint32_t free = fl_load(&permits->free, seq_cst);
    while (free > 0) {
        if (fl_cas(&permits->free, &free, free - 1, seq_cst, seq_cst)) {
            return FL_SHM_DONE;
        }
    }
    return FL_SHM_NOT;
}

bool fl_shm_count_give(fl_shm_permits *permits, uint32_t count)
{
    uint32_t free = fl_load(&permits->free, relaxed); /* only a first guess */
    do {
        if (count > FL_SHM_MOST_PERMITS - free) {
            return false;
        }
    } while (!fl_cas(&permits->free, &free, free + count, seq_cst, relaxed));
    fl_shm_notify(&permits->eventcount, count);
    return true;
}

/* Where this process begins to look: not all at the same. */
static uint32_t first(uint64_t me, uint32_t amount)
{
    return (uint32_t)fl_process_number(me) % amount;
}

fl_shm_result fl_shm_owned_try(fl_shm_permits *permits, uint32_t amount, uint64_t me, bool look)
{
    for (uint32_t i = 0, at = first(me, amount); i < amount; i++, at = at + 1 == amount ? 0 : at + 1) {
        uint64_t owner = fl_load(&permits->owners[at], seq_cst);
        if (owner == 0 && fl_cas(&permits->owners[at], &owner, me, seq_cst, relaxed)) {
            return FL_SHM_DONE;
        }
    }
    uint64_t alive = me; /* the last that was asked for */
    for (uint32_t at = 0; look && at < amount; at++) {
        uint64_t owner = fl_load(&permits->owners[at], seq_cst);
        if (owner == 0 || owner == alive || fl_process_alive(owner)) {
            alive = owner;
        } else if (fl_cas(&permits->owners[at], &owner, me, seq_cst, relaxed)) {
            fl_fetch_add(&permits->deaths, 1, relaxed); /* a figure to show */
            return FL_SHM_INHERITED;
        }
    }
    return FL_SHM_NOT;
}

bool fl_shm_owned_give(fl_shm_permits *permits, uint32_t amount, uint64_t me, uint32_t count)
{
    uint32_t mine = 0, given = 0;
    for (uint32_t at = 0; at < amount; at++) {
        mine += fl_load(&permits->owners[at], relaxed) == me; /* no other process writes that */
    }
    if (mine < count) {
        return false;
    }
    for (uint32_t i = 0, at = first(me, amount); i < amount && given < count;
         i++, at = at + 1 == amount ? 0 : at + 1) {
        uint64_t owner = me;
        given += fl_cas(&permits->owners[at], &owner, 0, seq_cst, relaxed);
    }
    fl_shm_notify(&permits->eventcount, given);
    return given == count; /* but if two threads gave the same ones at once */
}

uint32_t fl_shm_owned_free(const fl_shm_permits *permits, uint32_t amount)
{
    uint32_t free = 0;
    for (uint32_t at = 0; at < amount; at++) {
        free += fl_load(&permits->owners[at], relaxed) == 0; /* a figure to show */
    }
    return free;
}

bool fl_shm_owned_ready(const fl_shm_permits *permits, uint32_t amount)
{
    uint64_t alive = UINT64_MAX;
    for (uint32_t at = 0; at < amount; at++) {
        uint64_t owner = fl_load(&permits->owners[at], seq_cst);
        if (owner == 0 || (owner != alive && !fl_process_alive(owner))) {
            return true;
        }
        alive = owner;
    }
    return false;
}

void fl_shm_flag_set(fl_shm_flag *flag)
{
    uint32_t word = fl_load(&flag->word, seq_cst);
    while (!(word & 1)) {
        if (fl_cas(&flag->word, &word, (word + 2) | 1, seq_cst, seq_cst)) {
            fl_shm_notify(&flag->eventcount, UINT32_MAX);
            return;
        }
    }
}

void fl_shm_flag_clear(fl_shm_flag *flag)
{
    fl_fetch_and(&flag->word, ~1u, seq_cst);
}
