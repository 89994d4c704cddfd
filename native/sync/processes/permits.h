/* Permits and flags in shared memory; see shm.h. */
#pragma once

#include "sync/processes/shm.h"

#define FL_SHM_MOST_PERMITS 0x7fffffffu
#define FL_SHM_MOST_OWNED 4096u

/* A semaphore. Counted permits have no owner: `free` says how many there are. Owned ones are each a word with
   the process that has it, as a lock is (invariant 1), so that those of a dead process are found. */
typedef struct {
    fl_shm_eventcount eventcount;
    fl_atomic(uint32_t) free; /* counted */
    fl_atomic(uint32_t) deaths; /* owned permits that came back from the dead */
    fl_atomic(uint64_t) owners[];
} fl_shm_permits;

/* None of these blocks. FL_SHM_DONE, FL_SHM_NOT, and of owned ones FL_SHM_INHERITED. */
fl_shm_result fl_shm_count_try(fl_shm_permits *permits);
fl_shm_result fl_shm_owned_try(fl_shm_permits *permits, uint32_t amount, uint64_t me, bool look);
/* False: there would be too many, or this process has not so many; none is given then. */
bool fl_shm_count_give(fl_shm_permits *permits, uint32_t count);
bool fl_shm_owned_give(fl_shm_permits *permits, uint32_t amount, uint64_t me, uint32_t count);
/* How many are free. */
uint32_t fl_shm_owned_free(const fl_shm_permits *permits, uint32_t amount);

/* Whether fl_shm_owned_try would bring something. Costs what fl_process_alive does. */
bool fl_shm_owned_ready(const fl_shm_permits *permits, uint32_t amount);

/* A flag. `word` is odd while it is set, and its rest counts how often it was: a waiter has been woken once
   that is another, though it may be clear again. */
typedef struct {
    fl_shm_eventcount eventcount;
    fl_atomic(uint32_t) word;
} fl_shm_flag;

void fl_shm_flag_set(fl_shm_flag *flag);
void fl_shm_flag_clear(fl_shm_flag *flag);
static inline uint32_t fl_shm_flag_word(fl_shm_flag *flag)
{
    return fl_load(&flag->word, seq_cst);
}
/* `since`: the word when the wait began. */
static inline bool fl_shm_flag_passed(fl_shm_flag *flag, uint32_t since)
{
    uint32_t word = fl_shm_flag_word(flag);
    return (word & 1) || word >> 1 != since >> 1;
}
