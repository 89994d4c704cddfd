#include "gil/schedule/modes.h"

#include <stdlib.h>

#include "gil/hooks/control.h"
#include "gil/hooks/hooks.h"
#include "gil/schedule/idle.h"
#include "gil/threads/patience.h"
#include "gil/threads/registry.h"

#ifndef FL_PROBE_REFUSAL

static const char switched_on[] = "the GIL is scheduled by order of fairlead ctl";
static const char switched_off[] = "the interpreter's own scheduling is in force by order of fairlead ctl";
static const char time_over[] = "the time that the GIL was to be scheduled for is over; the interpreter's "
                                "own scheduling is in force";
static const char gave_up[] = "threads that were given the GIL did not wake up for it; the interpreter's "
                              "own scheduling is back in force";

static fl_schedule_settings settings; /* with the main GIL held; each GIL's policy has its own copy */
/* From outside (control.h): the mode, -1 for none; and whether that is not for the program to change. */
static atomic_int ordered = -1;
static atomic_bool off;
static atomic_uint trips;
static _Atomic fl_canary canary;
/* Under the mutex of the main interpreter's GIL: ticks under another mode than STOCK, and since when so. */
static uint64_t scheduled, scheduled_since;
static fl_idle idle; /* likewise */

/* After each change of the mode. */
static void note_mode(fl_gil *gil, const fl_policy *policy)
{
    bool stock = policy->mode == FL_MODE_STOCK;
    if (gil->index == 0 && stock == (scheduled_since != 0)) {
        uint64_t now = fl_gil_now(gil);
        scheduled += stock ? now - scheduled_since : 0;
        scheduled_since = stock ? 0 : now;
    }
}

fl_policy *fl_modes_make(fl_gil *gil)
{
    fl_policy *policy = malloc(sizeof *policy);
    if (policy != NULL) {
        int64_t interval = (int64_t)gil->py->interval * 1000;
        int order = atomic_load(&ordered);
        fl_policy_mode mode = order < 0 ? settings.mode : (fl_policy_mode)order;
        fl_policy_init(policy, mode, settings.share, interval, NULL, fl_ns_of(fl_gil_now(gil)));
        policy->spare_cores = settings.spin;
        gil->until = order < 0 ? settings.until : FL_FOREVER;
        gil->schedule = policy;
        note_mode(gil, policy);
    }
    return policy;
}

/* From its next look on, each waiter is scheduled in the new mode. */
static void change(fl_gil *gil, fl_policy *policy, fl_policy_mode mode, int32_t share)
{
    int64_t now = fl_ns_of(fl_gil_now(gil));
    for (fl_policy_thread *thread; (thread = fl_policy_evict(policy, now)) != NULL;) {
        fl_scheduled *other = fl_scheduled_of(thread);
        fl_parker_awake(&other->parker); /* evicted, hence not granted: it looks anew, in the new mode */
        fl_parker_wake(&other->parker);
    }
    fl_policy_set_mode(policy, mode, share, now);
    note_mode(gil, policy);
}

/* Another has said what it wants. */
static void end_trial(void)
{
    fl_canary tries = FL_CANARY_TRIES;
    (void)atomic_compare_exchange_strong(&canary, &tries, FL_CANARY_NONE);
}

const char *fl_modes_obey(fl_gil *gil, fl_policy *policy, uint64_t now)
{
    const char *news = NULL;
    if (now >= gil->until) {
        gil->until = FL_FOREVER;
        if (policy->mode != FL_MODE_STOCK) {
            news = gil->index == 0 ? time_over : NULL;
            change(gil, policy, FL_MODE_STOCK, settings.share);
        }
    }
    fl_control_renew();
    uint32_t request = atomic_load(&fl_control()->request);
    gil->obeyed = request;
    uint32_t order = request & 0xff;
    if (order > FL_ORDER_STATUS && order < FL_ORDERS) {
        fl_policy_mode mode = order == FL_ORDER_INTERACTIVE ? FL_MODE_INTERACTIVE : FL_MODE_STOCK;
        atomic_store(&ordered, (int)mode);
        atomic_store(&off, order == FL_ORDER_OFF);
        end_trial();
        gil->until = FL_FOREVER;
        if (policy->mode != mode) {
            if (gil->index == 0) {
                news = mode == FL_MODE_STOCK ? switched_off : switched_on;
            }
            change(gil, policy, mode, settings.share);
        }
    }
    if (gil->index == 0) {
        fl_control_page *page = fl_control();
        atomic_store(&page->mode, (uint32_t)policy->mode);
        atomic_store(&page->off, atomic_load(&off));
        atomic_store(&page->trips, atomic_load(&trips));
        atomic_store(&page->canary, (uint32_t)atomic_load(&canary));
        atomic_store(&page->waiting, policy->waiting);
        atomic_store(&page->acquired, policy->counts.acquired);
        atomic_store(&page->waited, policy->counts.waited);
        atomic_store(&page->answered, request);
    }
    return news;
}

const char *fl_modes_acquire(fl_gil *gil, fl_policy *policy, uint64_t now)
{
    if (__builtin_expect(fl_hooks_miss_waiters(gil), 0) && policy->mode != FL_MODE_STOCK) {
        change(gil, policy, FL_MODE_STOCK, settings.share);
    }
    return gil->index == 0 ? fl_idle_acquired(&idle, policy, fl_ns_of(now)) : NULL;
}

const char *fl_modes_tripped(fl_gil *gil, const fl_policy *policy)
{
    atomic_fetch_add(&trips, 1);
    note_mode(gil, policy);
    return gave_up;
}

void fl_modes_forked(fl_gil *gil, const fl_policy *policy)
{
    atomic_store(&trips, 0);
    atomic_store(&canary, FL_CANARY_NONE);
    fl_idle_forked(&idle);
    scheduled = 0;
    scheduled_since = policy->mode == FL_MODE_STOCK ? 0 : fl_gil_now(gil);
}

void fl_schedule_canary(fl_canary state)
{
    atomic_store(&canary, state);
}

/* An order that no thread has looked at yet comes before what the program asks for now. */
static void obey_first(fl_gil *gil, void *context)
{
    (void)context;
    if (gil->alive && gil->index == 0 && gil->schedule
        && atomic_load(&fl_control()->request) != gil->obeyed) {
        (void)fl_modes_obey(gil, gil->schedule, fl_gil_now(gil));
    }
}

fl_schedule_settings fl_modes_set(fl_schedule_settings wanted)
{
    fl_registry_each(obey_first, NULL);
    fl_schedule_settings before = settings;
    if (!wanted.trial) {
        end_trial();
    }
    settings = wanted;
    if (atomic_load(&off)) {
        settings.mode = FL_MODE_STOCK;
    } else if (!wanted.trial) {
        atomic_store(&ordered, -1);
    }
    return before;
}

bool fl_schedule_ordered(void)
{
    return atomic_load(&ordered) >= 0;
}

static void apply(fl_gil *gil, void *context)
{
    (void)context;
    if (!gil->alive || (gil->idle && gil->schedule == NULL)) { /* it may be gone; else it gets one later */
        return;
    }
    fl_policy *policy = fl_modes_policy_now(gil);
    if (policy == NULL || (settings.trial && fl_schedule_ordered())) { /* a waiter may have obeyed just now */
        return;
    }
    change(gil, policy, settings.mode, settings.share);
    gil->until = settings.until;
    policy->spare_cores = settings.spin;
}

void fl_modes_apply(void)
{
    fl_registry_each(apply, NULL);
}

fl_schedule_state fl_modes_state(fl_gil *gil, const fl_policy *policy)
{
    uint64_t ticks = scheduled + (scheduled_since ? fl_gil_now(gil) - scheduled_since : 0);
    return (fl_schedule_state){.mode = policy->mode,
                               .waiting = policy->waiting,
                               .tripped = policy->tripped,
                               .off = atomic_load(&off),
                               .trips = atomic_load(&trips),
                               .canary = atomic_load(&canary),
                               .scheduled_ns = fl_ticks_to_ns(ticks),
                               .counts = policy->counts};
}

#endif
