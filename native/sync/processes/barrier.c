/* See barrier.h. */
#include "sync/processes/barrier.h"

#define TAG_MASK ((1u << (64 - FL_PROCESS_BITS)) - 1)

static uint32_t phase_of(uint64_t state)
{
    return (uint32_t)(state >> 32);
}

/* The process that came to this phase, as its place says. The tag is never that of an empty place. */
static uint64_t came_to(uint64_t who, uint32_t phase)
{
    return who << (64 - FL_PROCESS_BITS) | (phase & TAG_MASK);
}

static bool is_of(uint64_t place, uint32_t phase)
{
    return place != 0 && (place & TAG_MASK) == (phase & TAG_MASK);
}

/* How many phases before this one ended well, one after the other. */
static uint32_t well_since(uint64_t state)
{
    return (uint32_t)state >> 8;
}

/* The state after a phase: ended well, or by a reset. */
static uint64_t next_state(uint64_t state, bool well)
{
    uint32_t ends = ((uint32_t)state & 0x7e) | (well ? 0 : 1);
    uint32_t in_a_row = well ? well_since(state) + (well_since(state) < 0xffffff) : 0;
    return (uint64_t)(phase_of(state) + 1) << 32 | in_a_row << 8 | ends << 1;
}

static bool all_came(fl_shm_barrier *barrier, uint32_t parties, uint32_t phase)
{
    uint32_t came = 0;
    while (came < parties && is_of(fl_load(&barrier->places[came], seq_cst), phase)) {
        came++;
    }
    return came == parties;
}

/* True: it is over. Any process may call it, any number of times. */
static bool end_phase(fl_shm_barrier *barrier, uint32_t parties, uint64_t state)
{
    if (!all_came(barrier, parties, phase_of(state))) {
        return false;
    }
    if (fl_cas(&barrier->state, &state, next_state(state, true), seq_cst, relaxed)) {
        fl_shm_notify(&barrier->eventcount, UINT32_MAX);
    }
    return true;
}

fl_shm_result fl_shm_barrier_come(fl_shm_barrier *barrier, uint32_t parties, uint64_t me,
                                  fl_shm_party *party)
{
    uint64_t state = fl_load(&barrier->state, seq_cst);
    if (state & 1) {
        return FL_SHM_SHUT_DOWN;
    }
    for (uint32_t at = 0; at < parties; at++) {
        uint64_t place = fl_load(&barrier->places[at], seq_cst);
        if (is_of(place, phase_of(state))) {
            continue;
        }
        if (fl_load(&barrier->state, seq_cst) != state) {
            return FL_SHM_NOT; /* the place may be of a later phase */
        }
        if (fl_cas(&barrier->places[at], &place, came_to(me, phase_of(state)), seq_cst, relaxed)) {
            *party = (fl_shm_party){.phase = phase_of(state), .place = at};
            if (at + 1 == parties) { /* places are taken in order */
                end_phase(barrier, parties, state);
            }
            return FL_SHM_DONE;
        }
    }
    end_phase(barrier, parties, state); /* the last to arrive may have died before it did */
    return FL_SHM_NOT;
}

/* What has become of the phase that this one came to, which is not the present one. */
static fl_shm_result ended(uint64_t state, uint32_t phase)
{
    uint32_t ago = phase_of(state) - phase;
    bool well = ago > 7 ? ago <= well_since(state) : !(state >> ago & 1);
    return well ? FL_SHM_DONE : FL_SHM_SHUT_DOWN;
}

static void break_phase(fl_shm_barrier *barrier, uint64_t state)
{
    if (fl_cas(&barrier->state, &state, state | 1, seq_cst, relaxed)) {
        fl_shm_notify(&barrier->eventcount, UINT32_MAX);
    }
}

/* A process that arrived at this phase and is dead; 0: none. */
static uint64_t dead_in(fl_shm_barrier *barrier, uint32_t parties, uint32_t phase)
{
    uint64_t alive = 0; /* the last that was asked for */
    for (uint32_t at = 0; at < parties; at++) {
        uint64_t place = fl_load(&barrier->places[at], seq_cst);
        uint64_t who = place >> (64 - FL_PROCESS_BITS);
        if (who != alive && is_of(place, phase) && !fl_process_alive(who)) {
            return who;
        }
        alive = is_of(place, phase) ? who : alive;
    }
    return 0;
}

fl_shm_result fl_shm_barrier_try(fl_shm_barrier *barrier, uint32_t parties, const fl_shm_party *party,
                                 bool look, uint64_t *dead)
{
    uint64_t state = fl_load(&barrier->state, seq_cst);
    if (phase_of(state) != party->phase) {
        return ended(state, party->phase);
    }
    if (state & 1) {
        return FL_SHM_SHUT_DOWN;
    }
    if (!look) {
        return FL_SHM_NOT;
    }
    if (end_phase(barrier, parties, state)) {
        return fl_shm_barrier_try(barrier, parties, party, false, dead);
    }
    *dead = dead_in(barrier, parties, party->phase);
    if (*dead != 0) {
        break_phase(barrier, state);
        state = fl_load(&barrier->state, seq_cst);
        return phase_of(state) == party->phase ? FL_SHM_DIED : ended(state, party->phase);
    }
    return FL_SHM_NOT;
}

bool fl_shm_barrier_ready(fl_shm_barrier *barrier, uint32_t parties)
{
    uint64_t state = fl_load(&barrier->state, seq_cst);
    return (state & 1) || all_came(barrier, parties, phase_of(state)) ||
           dead_in(barrier, parties, phase_of(state)) != 0;
}

bool fl_shm_barrier_leave(fl_shm_barrier *barrier, const fl_shm_party *party)
{
    uint64_t state = fl_load(&barrier->state, seq_cst);
    while (phase_of(state) == party->phase && !(state & 1)) {
        if (fl_cas(&barrier->state, &state, state | 1, seq_cst, seq_cst)) {
            fl_shm_notify(&barrier->eventcount, UINT32_MAX);
            return true;
        }
    }
    return phase_of(state) == party->phase || ended(state, party->phase) != FL_SHM_DONE;
}

void fl_shm_barrier_break(fl_shm_barrier *barrier)
{
    fl_fetch_or(&barrier->state, 1, seq_cst);
    fl_shm_notify(&barrier->eventcount, UINT32_MAX);
}

void fl_shm_barrier_reset(fl_shm_barrier *barrier, uint32_t parties)
{
    uint64_t state = fl_load(&barrier->state, seq_cst);
    for (uint32_t at = 0; at < parties; at++) { /* whose tags would be right again 1024 resets from now */
        uint64_t place = fl_load(&barrier->places[at], seq_cst);
        if (!is_of(place, phase_of(state)) && fl_load(&barrier->state, seq_cst) == state) {
            fl_cas(&barrier->places[at], &place, 0, seq_cst, relaxed);
        }
    }
    while (!fl_cas(&barrier->state, &state, next_state(state, false), seq_cst, seq_cst)) {
    }
    fl_shm_notify(&barrier->eventcount, UINT32_MAX);
}

uint32_t fl_shm_barrier_waiting(fl_shm_barrier *barrier, uint32_t parties)
{
    uint32_t waiting = 0, phase = phase_of(fl_load(&barrier->state, relaxed)); /* a figure to show */
    for (uint32_t at = 0; at < parties; at++) {
        waiting += is_of(fl_load(&barrier->places[at], relaxed), phase);
    }
    return waiting;
}
