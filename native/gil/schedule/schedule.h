/* schedule: the scheduling policy of gil/policy/policy.h at work on the GILs of this process. */
#pragma once

#include "gil/policy/policy.h"
#include "gil/threads/gil.h"

typedef struct {
    fl_policy_mode mode;
    int32_t share; /* of FL_SHARE_ONE */
    bool spin;     /* more than one core may be used */
    uint64_t until; /* in ticks: from then on it is STOCK; FL_FOREVER */
    bool trial;     /* by a canary: an order of another process that is in force stays */
} fl_schedule_settings;

/* What a trial of the policy in the program itself (fairlead.gil.schedule.canary) has come to. */
typedef enum {
    FL_CANARY_NONE,
    FL_CANARY_TRIES,
    FL_CANARY_KEPT,     /* the policy was better */
    FL_CANARY_REJECTED, /* it was not */
    FL_CANARIES,
} fl_canary;

typedef struct {
    fl_policy_mode mode; /* as it is: STOCK after the watchdog has given up */
    uint32_t waiting;
    bool tripped;
    bool off;              /* by an order from outside (control.h) */
    uint32_t trips;        /* of the watchdog */
    fl_canary canary;
    uint64_t scheduled_ns; /* time under another policy than STOCK */
    fl_policy_counts counts;
} fl_schedule_state;

/* From now on all GILs are scheduled like this. The hooks are in, and stay in for the life of the process,
 * since from now on threads may be parked by them. With the GIL held. NULL, or why not; then nothing has
 * changed. */
const char *fl_schedule_set(fl_schedule_settings settings);

/* The mode is by an order of another process (control.h), and not as the program asks for. Any thread. */
bool fl_schedule_ordered(void);

/* What the scheduler of the main interpreter's GIL has done; all zeros before fl_schedule_set. Any thread
 * that has no GIL's mutex. */
fl_schedule_state fl_schedule_look(void);
bool fl_schedule_look_until(fl_schedule_state *state, uint64_t until); /* false: as fl_registry_each_until */

/* For what is said of this process from here on; a forked child begins with none. Any thread. */
void fl_schedule_canary(fl_canary state);

/* The present thread's priority, now and at every GIL; returns the one before. With the GIL held. */
fl_priority fl_schedule_priority(fl_priority priority);
