/* A barrier in shared memory; see shm.h.
 *
 * An arrival is a word: the process, and in ten bits of its own the phase that it came to. So no process
 * clears the places of a phase that is over, which could be cut off by a kill in the middle: in the next
 * phase they are free because they name another. The last to come, or one that finds all places taken, ends
 * the phase by one step of `state`, which any process may take (invariant 2). A waiter checks whether those
 * that came before are alive, and breaks the barrier where one is not: it cannot go through with the others.
 */
#pragma once

#include "sync/processes/shm.h"

#define FL_SHM_MOST_PARTIES 4096u

/* `state`: the phase in the high 32 bits. Bit 0: it is broken. Bit n, from 1 to 7: the phase n before this
   one did not end well, but by a reset. Above: how many in a row ended well until now, as far as that can be
   counted. So a party that does not look while others meet again and again learns that it met; only if
   it looks after more than seven phases, and one since then was reset, it learns that its own was. */
typedef struct {
    fl_shm_eventcount eventcount;
    fl_atomic(uint64_t) state;
    fl_atomic(uint64_t) places[];
} fl_shm_barrier;

/* A party that has arrived. */
typedef struct {
    uint32_t phase, place;
} fl_shm_party;

static inline bool fl_shm_barrier_broken(fl_shm_barrier *barrier)
{
    return fl_load(&barrier->state, seq_cst) & 1;
}

/* None of these blocks. FL_SHM_DONE: it has come; FL_SHM_SHUT_DOWN: it is broken; FL_SHM_NOT: there is no
   place, because all of this phase have come and it is just about to end: try again. */
fl_shm_result fl_shm_barrier_come(fl_shm_barrier *barrier, uint32_t parties, uint64_t me,
                                  fl_shm_party *party);

/* Of a party that has arrived. FL_SHM_DONE: all have; FL_SHM_NOT; FL_SHM_SHUT_DOWN: it is broken, or was
   reset; FL_SHM_DIED: `dead` had come and is dead, and for this the barrier is broken now. */
fl_shm_result fl_shm_barrier_try(fl_shm_barrier *barrier, uint32_t parties, const fl_shm_party *party,
                                 bool look, uint64_t *dead);

/* Whether a waiter should look. Costs what fl_process_alive does. */
bool fl_shm_barrier_ready(fl_shm_barrier *barrier, uint32_t parties);

/* It does not wait any more, and breaks the barrier, unless the phase is over: false. */
bool fl_shm_barrier_leave(fl_shm_barrier *barrier, const fl_shm_party *party);

/* For good, until it is reset; and empty and whole again, which its waiters find broken. */
void fl_shm_barrier_break(fl_shm_barrier *barrier);
void fl_shm_barrier_reset(fl_shm_barrier *barrier, uint32_t parties);

/* How many wait: a figure to show. */
uint32_t fl_shm_barrier_waiting(fl_shm_barrier *barrier, uint32_t parties);
