#include "gil/serve/vitals.h"

#include <stdlib.h>
#include <string.h>

#include "gil/threads/kernel.h"
#include "gil/observe/observe.h"
#include "gil/observe/offcpu.h"
#include "gil/threads/patience.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

#define CHECK_NS 50000000 /* over less time a share of a core says nothing */
#define COMPUTING 20      /* a holder computes that has had this part (1 / n) of a core */

/* ---- Each GIL */

typedef struct {
    fl_vital_gil *gils;
    size_t count;
} gil_row;

static void look_at_gil(fl_gil *gil, void *context)
{
    gil_row *row = context;
    if (!gil->alive || gil->idle || row->count == FL_VITAL_GILS) {
        return;
    }
    fl_vital_gil *vital = &row->gils[row->count++];
    *vital = (fl_vital_gil){.birth = gil->since, .now = fl_gil_now(gil), .index = gil->index};
    if (gil->holder) {
        vital->holder = gil->holder->serial;
        vital->holder_id = gil->holder->thread->native_id;
        vital->t_acquired = gil->holder->t_acquired;
        vital->tstate = gil->py->last_holder;
    } else if (gil->dropper) {
        vital->t_dropped = gil->dropper->t_dropped;
    }
    for (const fl_seat *seat = gil->first; seat; seat = seat->behind) {
        if (vital->waiting++ == 0 || seat->t_want < vital->t_want) {
            vital->waiter = seat->serial;
            vital->waiter_id = seat->thread->native_id;
            vital->t_want = seat->t_want;
        }
    }
}

/* As of the last pass that reached all GILs. */
static struct {
    fl_vital_gil gils[FL_VITAL_GILS];
    size_t count;
    uint64_t moment;
} last;

bool fl_vitals_gils(fl_vital_gil gils[FL_VITAL_GILS], size_t *count, uint64_t until)
{
    gil_row row = {gils, 0};
    bool all = fl_registry_each_until(look_at_gil, &row, until);
    if (all) {
        memcpy(last.gils, gils, row.count * sizeof *gils);
        last.count = row.count;
        last.moment = fl_ticks_now();
    } else {
        memcpy(gils, last.gils, last.count * sizeof *gils);
    }
    *count = last.count;
    return all;
}

void fl_vitals_begin(void)
{
    fl_vital_gil gils[FL_VITAL_GILS];
    size_t count;
    (void)fl_vitals_gils(gils, &count, FL_FOREVER);
}

/* ---- Whether they move */

/* What is remembered of a GIL from one call to the next. */
typedef struct {
    uint64_t birth;
    uint32_t holder;
    uint64_t t_acquired;
    uint64_t t_checked, cpu_ns; /* the holder's CPU time at some moment */
    uint64_t t_alive;           /* when it was last seen to compute, or to take the GIL */
} watch;

static watch watches[FL_VITAL_GILS];

/* The place of a GIL that is not there is used for another. */
static watch *watch_of(const fl_vital_gil *gils, size_t count, uint64_t birth)
{
    watch *spare = NULL;
    for (size_t i = 0; i < FL_VITAL_GILS; i++) {
        watch *at = &watches[i];
        if (at->holder && at->birth == birth) {
            return at;
        }
        bool used = false;
        for (size_t j = 0; at->holder && j < count && !used; j++) {
            used = gils[j].birth == at->birth;
        }
        spare = used ? spare : at;
    }
    return spare;
}

static uint64_t since(const fl_vital_gil *gil, uint64_t moment)
{
    return gil->now > moment ? fl_ticks_to_ns(gil->now - moment) : 0;
}

static bool wants_a_core(pid_t thread)
{
    return fl_kernel_state(thread) == 'R';
}

/* When the holder was last seen to do something. */
static uint64_t holder_alive(const fl_vital_gil *gil, watch *of)
{
    if (of->birth != gil->birth || of->holder != gil->holder || of->t_acquired != gil->t_acquired) {
        *of = (watch){.birth = gil->birth,
                      .holder = gil->holder,
                      .t_acquired = gil->t_acquired,
                      .t_checked = gil->now,
                      .cpu_ns = fl_kernel_cpu_ns(gil->holder_id),
                      .t_alive = gil->t_acquired};
        /* It may have taken the GIL long ago and have had no core since, no more than this thread. */
        if (since(gil, gil->t_acquired) >= CHECK_NS && wants_a_core(gil->holder_id)) {
            of->t_alive = gil->now;
        }
        return of->t_alive;
    }
    uint64_t passed = fl_ticks_to_ns(gil->now - of->t_checked);
    if (passed >= CHECK_NS) {
        uint64_t cpu_ns = fl_kernel_cpu_ns(gil->holder_id);
        if (cpu_ns - of->cpu_ns >= passed / COMPUTING || wants_a_core(gil->holder_id)) {
            of->t_alive = gil->now;
        }
        of->cpu_ns = cpu_ns;
        of->t_checked = gil->now;
    }
    return of->t_alive;
}

static fl_diagnosis diagnose(const fl_vital_gil *gil, watch *of, const fl_health_limits *limits)
{
    fl_diagnosis found = {.health = FL_HEALTH_MOVES, .gil = *gil};
    if (gil->holder) {
        uint64_t idle_ns = since(gil, holder_alive(gil, of));
        found.still_ns = since(gil, gil->t_acquired);
        if (idle_ns >= limits->stalled_ns) {
            found.health = FL_HEALTH_STALLED;
        } else if (found.still_ns >= limits->busy_ns) {
            found.health = FL_HEALTH_BUSY;
        } else if (found.still_ns >= limits->stalled_ns) {
            found.health = FL_HEALTH_COMPUTES;
        }
    } else if (gil->waiting) {
        found.still_ns = since(gil, gil->t_dropped > gil->t_want ? gil->t_dropped : gil->t_want);
        if (found.still_ns >= limits->stalled_ns && !wants_a_core(gil->waiter_id)) {
            found.health = FL_HEALTH_STALLED;
        }
    }
    return found;
}

fl_diagnosis fl_vitals_diagnose(const fl_health_limits *limits, uint64_t until)
{
    fl_vital_gil gils[FL_VITAL_GILS];
    fl_diagnosis worst = {.health = FL_HEALTH_MOVES};
    size_t count;
    bool seen = fl_vitals_gils(gils, &count, until);
    for (size_t i = 0; i < count; i++) {
        fl_diagnosis one = diagnose(&gils[i], watch_of(gils, count, gils[i].birth), limits);
        if (i == 0 || one.health > worst.health
            || (one.health == worst.health && one.still_ns > worst.still_ns)) {
            worst = one;
        }
    }
    uint64_t now = fl_ticks_now(), unseen_ns = now > last.moment ? fl_ticks_to_ns(now - last.moment) : 0;
    if (!seen && unseen_ns >= limits->stalled_ns) { /* a holder of a GIL's mutex needs moments, and a core */
        worst.health = FL_HEALTH_STALLED;
        worst.still_ns += unseen_ns;
    }
    return worst;
}

/* ---- What was counted */

static void count_gil(fl_gil *gil, void *context)
{
    fl_vitals *vitals = context;
    uint64_t now = gil->alive ? fl_gil_now(gil) : 0;
    if (gil->alive) {
        vitals->ticks = now;
        fl_off_cpu_settle(gil, now);
    }
    fl_tally_add(&vitals->total, &gil->departed);
    for (const fl_seat *seat = gil->seats; seat; seat = seat->of_gil, vitals->count++) {
        fl_tally tally = seat->tally;
        if (gil->alive) {
            fl_observe_present(gil, seat, 0, now, &tally);
        }
        fl_tally_add(&vitals->total, &tally);
        if (vitals->count < vitals->room) {
            vitals->seats[vitals->count] = (fl_vital_seat){
                .birth = gil->since,
                .serial = seat->serial,
                .gil = gil->index,
                .native_id = seat->thread->native_id,
                .holding = gil->alive && seat->holding,
                .waiting = gil->alive && seat->waiting,
                .ended = seat->ended || !gil->alive,
                .since = seat->holding ? seat->t_acquired : seat->t_want,
                .acquisitions = tally.acquisitions,
                .contended = tally.contended,
                .held = tally.held,
                .waited = tally.waited,
                .forced_drops = tally.forced_drops,
                .voluntary_drops = tally.voluntary_drops,
            };
        }
    }
}

static int by_seat(const void *left, const void *right)
{
    const fl_vital_seat *a = left, *b = right;
    int births = (a->birth > b->birth) - (a->birth < b->birth);
    return births ? births : (a->serial > b->serial) - (a->serial < b->serial);
}

bool fl_vitals_count(fl_vitals *vitals, uint64_t until)
{
    fl_vitals fresh = {.seats = vitals->spare, .room = vitals->spare_room, .counted = true};
    bool all, memory = true;
    until = vitals->counted ? until : FL_FOREVER;
    do {
        if (fresh.count >= fresh.room) {
            size_t room = fresh.count + fresh.count / 8 + 64;
            fl_vital_seat *grown = realloc(fresh.seats, room * sizeof *grown);
            memory = grown != NULL;
            if (!memory) {
                break;
            }
            fresh.seats = grown;
            fresh.room = room;
        }
        fresh.count = 0;
        all = fl_registry_departed_until(&fresh.total, until)
              && fl_registry_each_until(count_gil, &fresh, until);
    } while (all && fresh.count > fresh.room);
    if (memory && all) {
        qsort(fresh.seats, fresh.count, sizeof *fresh.seats, by_seat);
        fresh.spare = vitals->seats;
        fresh.spare_room = vitals->room;
        *vitals = fresh;
    } else {
        vitals->spare = fresh.seats;
        vitals->spare_room = fresh.room;
    }
    return memory;
}

void fl_vitals_free(fl_vitals *vitals)
{
    free(vitals->seats);
    free(vitals->spare);
    *vitals = (fl_vitals){0};
}

#endif
