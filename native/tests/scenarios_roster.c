/* One that looks at who sleeps while sleepers come and go: what it holds stays as it was. */
#include "core/roster.h"
#include "scenarios.h"

#include <string.h>

static fl_sleeper *kept[MODEL_THREADS];
static uint32_t kept_count;

static void begin_roster(void)
{
    model_begin(1, FL_CELL_OWNED);
    fl_roster_setup();
    kept_count = 0;
}

/* Nobody sleeps, and nobody is held. */
static void nobody(void *context, fl_sleeper *sleeper)
{
    (void)context, (void)sleeper;
    MODEL_CHECK(false);
}

static void end_roster(void)
{
    fl_roster_sleepers(nobody, NULL);
    fl_owner_ended = NULL;
    model_end();
}

/* As model_wait_at, with word of the sleep. */
static void sleep_for_the_lock(int64_t deadline)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, cell, 1, fl_owner_thread());
    bool taken = fl_sem_try(cell, 1, fl_owner_thread()) || fl_cell_enter(waiter);
    if (!taken) {
        fl_roster_begin(waiter, deadline, NULL, 0);
        taken = fl_cell_wait(waiter, deadline) == FL_WAIT_GRANTED;
        fl_roster_end();
    }
    model_poison(waiter);
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

static void sleep_long(void)
{
    sleep_for_the_lock(FL_FOREVER);
}

static void sleep_within_a_time(void)
{
    sleep_for_the_lock(1);
}

static void keep(void *context, fl_sleeper *sleeper)
{
    (void)context;
    MODEL_CHECK(sleeper->waiter->cell == cell && sleeper->waiter->owner == sleeper->number);
    fl_roster_hold(sleeper);
    kept[kept_count++] = sleeper;
}

static void look(void)
{
    fl_roster_sleepers(keep, NULL);
    for (uint32_t i = 0; i < kept_count; i++) {
        uint64_t word = fl_load(&cell->word, relaxed); /* a moment later */
        MODEL_CHECK((uint32_t)word <= 1 && kept[i]->waiter != NULL && kept[i]->waiter->cell == cell);
        fl_roster_release(kept[i]);
    }
}

/* One takes the lock and ends; who waits for it, or comes to, is told, and then gives up. */
static bool dead;

static void begin_death(void)
{
    begin_roster();
    dead = false;
}

static void take_it_along(void)
{
    dead = fl_sem_try(cell, 1, fl_owner_thread());
    fl_roster_strike(fl_roster_own());
}

/* Another lets go of it and ends then, which is nobody's concern. */
static void give_it_back_and_end(void)
{
    if (fl_sem_try(cell, 1, fl_owner_thread())) {
        model_took(1);
        model_give(1);
    }
    fl_roster_strike(fl_roster_own());
}

static void wait_for_the_dead(void)
{
    fl_waiter *waiter = &frames[model_self()][0].waiter;
    frames[model_self()][0].used = true;
    fl_waiter_init(waiter, cell, 1, fl_owner_thread());
    bool taken = fl_sem_try(cell, 1, fl_owner_thread()) || fl_cell_enter(waiter);
    while (!taken && !waiter->told) {
        fl_roster_begin(waiter, FL_FOREVER, NULL, 0);
        fl_wait_result result = fl_cell_wait(waiter, FL_FOREVER);
        fl_roster_end();
        taken = result == FL_WAIT_GRANTED || (!waiter->told && fl_cell_enter(waiter));
    }
    MODEL_CHECK(taken || dead);
    model_poison(waiter);
    if (taken) {
        model_took(1);
        model_give(1);
    }
}

static void end_death(void)
{
    MODEL_CHECK(cell->head == NULL && (uint32_t)cell->word == !dead);
    cell->word = 1; /* as model_end wants it */
    cell->owner = 0;
    end_roster();
}

static const model_scenario scenarios[] = {
    {"roster-3", 3, 0, PATIENT, begin_roster, end_roster, {sleep_long, sleep_long, look}},
    {"roster-3-timed", 3, 0, PATIENT, begin_roster, end_roster, {sleep_long, sleep_within_a_time, look}},
    {"roster-2-death", 3, 0, PATIENT, begin_death, end_death, {take_it_along, wait_for_the_dead}},
    {"roster-2-end", 3, 0, PATIENT, begin_death, end_death, {give_it_back_and_end, wait_for_the_dead}},
};

const model_table roster_scenarios = MODEL_TABLE(scenarios);
