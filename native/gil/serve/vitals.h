/* vitals: the state of the GILs of this process, for a thread that never takes one.
 *
 * What is read is guarded by each GIL's mutex, not by the GIL: the interpreter holds that mutex for a moment
 * at each take and drop, whatever keeps the GIL itself for however long. fl_registry_each locks it, and keeps
 * the GIL's memory from going away meanwhile. Nothing here touches a thread state: its address is copied, and
 * a seat's thread is a record of the probe's own, which lives as long as the seat does.
 *
 * A thread of the program that holds such a mutex may lose its core. So each call has a deadline, `until`
 * (in ticks): past it the call waits for no mutex, and returns again what the previous call saw.
 */
#pragma once

#include "gil/threads/gil.h"

#define FL_VITAL_GILS 64 /* any further ones are not listed */

/* One GIL at one moment. Times in ticks. */
typedef struct {
    uint64_t birth, now;
    uint16_t index;
    uint32_t holder; /* serial; 0: it is free, or on its way to a thread that waits */
    pid_t holder_id;
    uint64_t t_acquired;
    const void *tstate; /* of the holder; only to be read as outside.h does */
    uint32_t waiting;   /* how many threads */
    uint32_t waiter;    /* the one that has waited longest */
    pid_t waiter_id;
    uint64_t t_want;    /* since when */
    uint64_t t_dropped; /* when it was let go of, where that is known; else 0 */
} fl_vital_gil;

/* Makes the first pass over the GILs, however long that takes. */
void fl_vitals_begin(void);

/* All GILs that are alive, the main interpreter's first. False: as they were at the previous call. */
bool fl_vitals_gils(fl_vital_gil gils[FL_VITAL_GILS], size_t *count, uint64_t until);

/* ---- Whether they move */

typedef enum {
    FL_HEALTH_MOVES,   /* it is passed on, or free and no thread waits, or not held for long */
    FL_HEALTH_COMPUTES, /* it has not been let go of for long, but its holder uses a core or waits for one */
    FL_HEALTH_BUSY,    /* likewise, and for longer than a computing thread may */
    FL_HEALTH_STALLED, /* its holder does not compute either; or it is free, and the thread that has
                          waited longest is asleep */
} fl_health;

typedef struct {
    uint64_t stalled_ns;   /* not let go of and not computed for so long: stalled */
    uint64_t busy_ns; /* not let go of for so long: busy; UINT64_MAX: a thread may compute for ever */
} fl_health_limits;

typedef struct {
    fl_health health;
    fl_vital_gil gil; /* the one that is worst off */
    uint64_t still_ns; /* for how long it has not moved */
} fl_diagnosis;

/* Looks at all GILs. To be called now and then, a fraction of limits->stalled_ns apart: whether a holder
   computes shows between two calls. One thread at a time. */
fl_diagnosis fl_vitals_diagnose(const fl_health_limits *limits, uint64_t until);

/* ---- What was counted */

/* One thread at one GIL. Times in ticks, and what goes on is counted up to now. */
typedef struct {
    uint64_t birth;
    uint32_t serial;
    uint16_t gil;
    pid_t native_id;
    bool holding, waiting, ended;
    uint64_t since; /* when that hold or wait began */
    uint64_t acquisitions, contended, held, waited, forced_drops, voluntary_drops;
} fl_vital_seat;

typedef struct {
    uint64_t ticks;
    fl_tally total; /* of all threads and GILs, ever; the maxima mean nothing */
    fl_vital_seat *seats;
    size_t count, room;
    fl_vital_seat *spare; /* for the next count */
    size_t spare_room;
    bool counted;
} fl_vitals;

/* All zeros, or what an earlier call left there, which stays if there is nothing newer to be had by `until`.
   The first call takes as long as it takes. False: no memory. */
bool fl_vitals_count(fl_vitals *vitals, uint64_t until);

void fl_vitals_free(fl_vitals *vitals);
